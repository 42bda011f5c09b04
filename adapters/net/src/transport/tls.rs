//! TLS settings: trusted certificates, the client's certificate, and explanations of failed
//! handshakes.

use std::path::Path;
use std::sync::Arc;

use rustls::client::WantsClientCert;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{CertificateError, ClientConfig, ConfigBuilder, RootCertStore};

use crate::address::error::{Error, ErrorKind};
use crate::address::origin::Origin;
use crate::settings::options::{ClientCertificate, Options};
use crate::settings::pin::PinVerifier;
use crate::transport::trust::NamedVerifier;

/// Names of the protocols in the TLS handshake [rfc7301 §6], [rfc9113 §3.2].
const ALPN_HTTP1: &[u8] = b"http/1.1";
pub(crate) const ALPN_HTTP2: &[u8] = b"h2";

/// The protocols of clients, the preferred one first.
pub(crate) fn protocols(http2: bool) -> &'static [&'static [u8]] {
    if http2 { &[ALPN_HTTP2, ALPN_HTTP1] } else { &[ALPN_HTTP1] }
}

/// Whether this server has a pin or a client certificate, and so needs separate settings.
pub(crate) fn is_special(options: &Options, origin: &Origin) -> bool {
    options.pins.iter().any(|pin| pin.is_for(&origin.host, origin.port))
        || options
            .client_certificate
            .as_ref()
            .is_some_and(|own| key_of(&own.url).as_deref() == Some(&origin.key))
}

fn key_of(url: &str) -> Option<String> {
    let target = crate::address::origin::Target::split(url).ok()?;
    Origin::parse(target.origin).ok().map(|origin| origin.key)
}

/// The built-in web roots plus the certificates of a PEM file, or for a pinned host its key.
/// Verification cannot be disabled. `origin` is given only for servers with separate settings. The
/// server chooses one of the protocols, so the caller must speak all of them.
pub(crate) fn client_config(
    options: &Options,
    origin: Option<&Origin>,
    protocols: &[&[u8]],
) -> Result<Arc<ClientConfig>, String> {
    // With an explicit provider, a process-wide default does not have to be installed.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("TLS cannot be set up: {e}"))?;
    let pins = options
        .pins
        .iter()
        .filter(|pin| origin.is_some_and(|origin| pin.is_for(&origin.host, origin.port)));
    let builder = match PinVerifier::new(pins, algorithms) {
        Some(verifier) => builder.dangerous().with_custom_certificate_verifier(verifier),
        None => match options.extra_roots.as_deref() {
            None => builder.with_root_certificates(built_in()),
            Some(path) => {
                let named = certificates(path)?;
                let mut roots = built_in();
                for certificate in &named {
                    roots.add(certificate.clone()).map_err(|e| unreadable(path, &e))?;
                }
                let verifier =
                    NamedVerifier::new(roots, named, Arc::clone(builder.crypto_provider()))
                        .map_err(|e| unreadable(path, &e))?;
                builder.dangerous().with_custom_certificate_verifier(verifier)
            }
        },
    };
    let own = options.client_certificate.as_ref();
    let mut config = match own
        .filter(|own| origin.is_some_and(|origin| key_of(&own.url).as_ref() == Some(&origin.key)))
    {
        None => builder.with_no_client_auth(),
        Some(own) => with_own(builder, own)?,
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(Arc::new(config))
}

/// The same settings for a connection of HTTP/1.1.
pub(crate) fn without_http2(config: Arc<ClientConfig>) -> Arc<ClientConfig> {
    if config.alpn_protocols.len() == 1 {
        return config;
    }
    let mut config = Arc::unwrap_or_clone(config);
    config.alpn_protocols.retain(|protocol| protocol != ALPN_HTTP2);
    Arc::new(config)
}

/// TLS settings for connections that are not HTTP: the built-in web roots, plus the certificates of
/// a PEM file.
///
/// # Errors
/// The file cannot be read, as a text.
pub fn client_tls(extra_roots: Option<&Path>) -> Result<ClientConfig, String> {
    let options = Options { extra_roots: extra_roots.map(Path::to_owned), ..Options::default() };
    client_config(&options, None, &[]).map(Arc::unwrap_or_clone)
}

/// Adds the client certificate to the settings.
fn with_own(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    own: &ClientCertificate,
) -> Result<ClientConfig, String> {
    let wrong = |path: &Path, what: &str, e: &dyn std::fmt::Display| {
        format!("cannot read {what} from `{}`: {e}", path.display())
    };
    let no_certificate = |e: &dyn std::fmt::Display| wrong(&own.certificate, "our certificate", e);
    let chain = CertificateDer::pem_file_iter(&own.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|e| no_certificate(&e))?;
    if chain.is_empty() {
        return Err(no_certificate(&"there is none in it"));
    }
    let key = PrivateKeyDer::from_pem_file(&own.key)
        .map_err(|e| wrong(&own.key, "our private key", &e))?;
    builder.with_client_auth_cert(chain, key).map_err(|e| no_certificate(&e))
}

/// Checks the files of a client certificate before it is used.
///
/// # Errors
/// They cannot be read, or do not belong together.
pub fn check_client_certificate(own: &ClientCertificate) -> Result<(), Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("TLS cannot be set up: {e}"))
        .and_then(|builder| with_own(builder.with_root_certificates(built_in()), own))
        .map(drop)
        .map_err(|message| Error::new(ErrorKind::Tls, "", message))
}

fn built_in() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

fn unreadable(path: &Path, e: &dyn std::fmt::Display) -> String {
    format!("cannot read certificates from `{}`: {e}", path.display())
}

/// The certificates of a PEM file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|e| unreadable(path, &e))?;
    if found.is_empty() { Err(unreadable(path, &"there is none in it")) } else { Ok(found) }
}

/// Checks a file for [`Options::extra_roots`] before it is used.
///
/// # Errors
/// It cannot be read, or does not contain a certificate.
pub fn check_certificates(path: &Path) -> Result<(), Error> {
    certificates(path).map(drop).map_err(|message| {
        Error::new(ErrorKind::Tls, "", message)
            .with_help("give a PEM file with the certificates that are trusted")
    })
}

/// Whether a handshake failed because the server answered with something other than TLS.
pub(crate) fn is_no_tls(error: &Error) -> bool {
    let cause =
        std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    let cause = cause
        .and_then(|cause| cause.get_ref())
        .and_then(|cause| cause.downcast_ref::<rustls::Error>());
    matches!(cause, Some(rustls::Error::InvalidMessage(_)))
}

/// The error for a failed handshake, with its cause and a help text.
pub(crate) fn failed(e: std::io::Error, url: &str) -> Error {
    let Some(cause) = e.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return Error::new(ErrorKind::Connect, url, "the TLS handshake was cut off")
            .with_help("if the server has no TLS at this port, write the address with http://")
            .with_cause(e);
    };
    let (message, help) = explain(cause);
    Error::new(ErrorKind::Tls, url, message).with_help(help).with_cause(e)
}

const RENEW: &str = "have the certificate renewed, or pin the server's key with `--pin`; check this machine's clock too";
const NAMES: &str =
    "use the host name that the certificate is for, or pin the server's key with `--pin`";
const AUTHORITY: &str = "name the certificate, or that of the authority that signed it, with `--ca-file`, or pin the server's key with `--pin`";

fn explain(cause: &rustls::Error) -> (String, &'static str) {
    use rustls::Error as E;
    let certificate = match cause {
        E::InvalidCertificate(certificate) => certificate,
        E::InvalidMessage(_) => {
            let message =
                "the server does not speak TLS at this port, and the address begins with https://";
            return (
                message.to_owned(),
                "write the address with http://, or with the port that has TLS",
            );
        }
        E::AlertReceived(alert) => {
            let message = format!("the server refuses the TLS connection: {alert:?}");
            return (
                message,
                "if the server asks for a certificate of ours, name it with `--client-cert`",
            );
        }
        E::PeerIncompatible(_) => {
            return (
                format!("no TLS in common with the server: {cause}"),
                "the server must have TLS 1.2 or 1.3",
            );
        }
        _ => return (format!("TLS failed: {cause}"), AUTHORITY),
    };
    match certificate {
        CertificateError::UnknownIssuer => {
            ("the server's certificate is signed by an authority that is not known here".to_owned(), AUTHORITY)
        }
        CertificateError::BadSignature => (
            "the server's certificate is not signed by the authority of that name that is known here".to_owned(),
            AUTHORITY,
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            ("the server's certificate has expired".to_owned(), RENEW)
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            ("the server's certificate is not valid yet".to_owned(), RENEW)
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            ("the server's certificate is for another host name".to_owned(), NAMES)
        }
        // The verifier's error is available as text only.
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            ("the server's certificate is self-signed, and not known here".to_owned(), AUTHORITY)
        }
        CertificateError::Other(other) => (format!("the server's certificate is refused: {other}"), AUTHORITY),
        _ => (format!("the server's certificate is refused: {cause}"), AUTHORITY),
    }
}
