//! TLS: trusted certificates, and explanations of failed handshakes.

use crate::account::Account;
use crate::error::{Error, ErrorKind};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Secures a connection: the certificate must be for the domain of the account.
pub(crate) async fn secure(
    stream: TcpStream,
    account: &Account,
) -> Result<TlsStream<TcpStream>, Error> {
    let domain = account.jid.domain().as_str();
    let name = ServerName::try_from(domain.to_owned()).map_err(|_| {
        Error::new(
            ErrorKind::Usage,
            format!("`{domain}` is not a name that a certificate can be for"),
        )
    })?;
    let connector = TlsConnector::from(config(account.ca_file.as_deref())?);
    connector.connect(name, stream).await.map_err(|error| failed(&error, account))
}

fn config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, Error> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = ca_file {
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|error| unreadable(path, &error))?;
        }
    }
    // With an explicit provider, a process-wide default does not have to be installed.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::new(ErrorKind::Tls, format!("TLS cannot be set up: {error}")))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// Checks a file for [`Account::ca_file`] before it is used.
///
/// # Errors
/// It cannot be read, or does not contain a certificate.
pub fn check_certificates(path: &Path) -> Result<(), Error> {
    config(Some(path)).map(drop)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = read.map_err(|error| unreadable(path, &error))?;
    if found.is_empty() { Err(unreadable(path, &"there is none in it")) } else { Ok(found) }
}

fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    Error::new(
        ErrorKind::Usage,
        format!("cannot read certificates from `{}`: {error}", path.display()),
    )
    .with_help("give a PEM file with the certificates that are trusted")
}

/// The error for a failed handshake, with its cause.
fn failed(error: &std::io::Error, account: &Account) -> Error {
    let (server, domain) = (account.server(), account.jid.domain());
    let cause = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let Some(cause) = cause else {
        return Error::new(
            ErrorKind::Connection,
            format!("the TLS handshake with {server} was cut off: {error}"),
        );
    };
    let mut help =
        "have the certificate corrected, or name that of its authority with `ca_file` (--ca-file)";
    let why = match cause {
        // The verifier's error is available as text only.
        rustls::Error::InvalidCertificate(CertificateError::Other(other))
            if format!("{other:?}").contains("CaUsedAsEndEntity") =>
        {
            help = "make a certificate with basicConstraints CA:FALSE for the server";
            "its certificate is marked as that of an authority (CA:TRUE)".to_owned()
        }
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "its certificate is signed by an authority that is not known here".to_owned()
        }
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => format!("its certificate is not for {domain}"),
        rustls::Error::InvalidCertificate(CertificateError::BadSignature) => {
            "its certificate is not signed by the authority of that name that is known here"
                .to_owned()
        }
        rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "its certificate has expired".to_owned(),
        other => other.to_string(),
    };
    Error::new(ErrorKind::Tls, format!("no secure connection to {server}: {why}")).with_help(help)
}
