//! Which certificates are trusted, and which one is shown?

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::options::Options;
use crate::origin::Origin;
use crate::pin::PinVerifier;

/// Whether this server's settings differ from those of all others.
pub(crate) fn is_special(options: &Options, origin: &Origin) -> bool {
    options.pins.iter().any(|pin| pin.is_for(&origin.host, origin.port))
        || options.client_certificate.as_ref().is_some_and(|own| key_of(&own.url).as_deref() == Some(&origin.key))
}

fn key_of(url: &str) -> Option<String> {
    let target = crate::origin::Target::split(url).ok()?;
    Origin::parse(target.origin).ok().map(|origin| origin.key)
}

/// The built-in web roots plus the certificates of a PEM file, or for a pinned host its key. There is no way to switch
/// verification off. `origin` only for servers with settings of their own.
pub(crate) fn client_config(options: &Options, origin: Option<&Origin>) -> Result<Arc<ClientConfig>, String> {
    // The provider is named here, so that no process-wide default has to be installed first.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let algorithms = provider.signature_verification_algorithms;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("TLS cannot be set up: {e}"))?;
    let pins = options.pins.iter().filter(|pin| origin.is_some_and(|origin| pin.is_for(&origin.host, origin.port)));
    let builder = match PinVerifier::new(pins, algorithms) {
        Some(verifier) => builder.dangerous().with_custom_certificate_verifier(verifier),
        None => builder.with_root_certificates(roots(options.extra_roots.as_deref())?),
    };
    let own = options.client_certificate.as_ref();
    let mut config = match own.filter(|own| origin.is_some_and(|origin| key_of(&own.url).as_ref() == Some(&origin.key)))
    {
        None => builder.with_no_client_auth(),
        Some(own) => {
            let wrong = |path: &Path, what: &str, e: &dyn std::fmt::Display| {
                format!("cannot read {what} from `{}`: {e}", path.display())
            };
            let no_certificate = |e: &dyn std::fmt::Display| wrong(&own.certificate, "our certificate", e);
            let chain = CertificateDer::pem_file_iter(&own.certificate)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|e| no_certificate(&e))?;
            let key = PrivateKeyDer::from_pem_file(&own.key).map_err(|e| wrong(&own.key, "our private key", &e))?;
            builder.with_client_auth_cert(chain, key).map_err(|e| no_certificate(&e))?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn roots(extra: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = extra {
        let wrong = |e: &dyn std::fmt::Display| format!("cannot read certificates from `{}`: {e}", path.display());
        let mut added = 0_usize;
        for certificate in CertificateDer::pem_file_iter(path).map_err(|e| wrong(&e))? {
            roots.add(certificate.map_err(|e| wrong(&e))?).map_err(|e| wrong(&e))?;
            added += 1;
        }
        if added == 0 {
            return Err(wrong(&"there is none in it"));
        }
    }
    Ok(roots)
}
