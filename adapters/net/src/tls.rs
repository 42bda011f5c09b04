//! Which certificates are trusted?

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// The built-in web roots plus the certificates of a PEM file. There is no way to switch verification off.
pub(crate) fn client_config(extra_roots: Option<&Path>) -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(path) = extra_roots {
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
    // The provider is named here, so that no process-wide default has to be installed first.
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("TLS cannot be set up: {e}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
