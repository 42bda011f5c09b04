//! Key pinning: the user trusts one key of a host, without a certificate authority.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, SignatureScheme};
use sha2::{Digest as _, Sha256};
use url::Url;

use crate::address::error::{Error, ErrorKind};

/// A host that is known by its key alone: its certificate may be self-signed, expired or for
/// another name, but must have this public key. Certificates with other keys are refused, also from
/// a trusted authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    host: String,
    port: Option<u16>,
    /// SHA-256 of the certificate's SubjectPublicKeyInfo.
    key: [u8; 32],
}

impl Pin {
    /// Reads `HOST[:PORT]=sha256/BASE64`, the digest being that of the key's SubjectPublicKeyInfo,
    /// as in curl's `--pinnedpubkey` (whose second slash is accepted). A pin without a port applies
    /// to every port of the host.
    ///
    /// # Examples
    /// ```
    /// use abreast_net::Pin;
    ///
    /// let pin = "repo.example:8443=sha256/47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    /// assert!(Pin::parse(pin).is_ok());
    /// assert!(Pin::parse("repo.example=sha256/AAAA").is_err());
    /// ```
    ///
    /// # Errors
    /// The expected form.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |message: &str| {
            Error::new(ErrorKind::Tls, "", format!("`{text}` is not a pin: {message}"))
                .with_help("write HOST=sha256/BASE64 with the SHA-256 of the server's public key")
        };
        let (place, digest) = text.split_once('=').ok_or_else(|| wrong("there is no `=`"))?;
        let url = Url::parse(&format!("https://{place}"))
            .map_err(|e| wrong("no host before `=`").with_cause(e))?;
        let host = url
            .host_str()
            .filter(|_| url.path() == "/" && url.username().is_empty() && url.query().is_none());
        let host = host.ok_or_else(|| wrong("no host before `=`"))?;
        let digest =
            digest.strip_prefix("sha256/").ok_or_else(|| wrong("only `sha256/` is known"))?;
        // The first character of the digest may be a slash too.
        let read = |digest: &str| STANDARD.decode(digest).ok().and_then(|key| key.try_into().ok());
        let key = read(digest).or_else(|| read(digest.strip_prefix('/')?));
        let port = place.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
        Ok(Self {
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port,
            key: key.ok_or_else(|| wrong("the digest is not the base64 of 32 bytes"))?,
        })
    }

    pub(crate) fn is_for(&self, host: &str, port: u16) -> bool {
        self.host.eq_ignore_ascii_case(host) && self.port.is_none_or(|own| own == port)
    }
}

/// Accepts certificates with one of these keys, and no others.
#[derive(Debug)]
pub(crate) struct PinVerifier {
    pub(crate) keys: Vec<[u8; 32]>,
    pub(crate) algorithms: WebPkiSupportedAlgorithms,
}

impl PinVerifier {
    pub(crate) fn new<'a>(
        pins: impl Iterator<Item = &'a Pin>,
        algorithms: WebPkiSupportedAlgorithms,
    ) -> Option<Arc<Self>> {
        let keys: Vec<_> = pins.map(|pin| pin.key).collect();
        (!keys.is_empty()).then(|| Arc::new(Self { keys, algorithms }))
    }
}

impl ServerCertVerifier for PinVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let certificate = ParsedCertificate::try_from(end_entity)?;
        let found: [u8; 32] = Sha256::digest(certificate.subject_public_key_info().as_ref()).into();
        if self.keys.contains(&found) {
            return Ok(ServerCertVerified::assertion());
        }
        let found = STANDARD.encode(found);
        let message = std::io::Error::other(format!(
            "the server's key is sha256/{found}, which is not the pinned one"
        ));
        Err(CertificateError::Other(rustls::OtherError(Arc::new(message))).into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_name_a_host_and_a_key() {
        let key = STANDARD.encode([7; 32]);
        let pin = Pin::parse(&format!("Museum.example=sha256/{key}")).unwrap();
        assert!(pin.is_for("museum.example", 443) && pin.is_for("museum.example", 8443));
        assert!(!pin.is_for("other.example", 443) && !pin.is_for("a.museum.example", 443));
        let pin = Pin::parse(&format!("[::1]:8443=sha256//{key}")).unwrap();
        assert!(pin.is_for("::1", 8443) && !pin.is_for("::1", 443));
        // Digests whose base64 begins with one slash and with two.
        for first in [[0xfc, 0], [0xff, 0xf0]] {
            let mut key = [7; 32];
            key[..2].copy_from_slice(&first);
            for slashes in ["/", "//"] {
                let pin =
                    Pin::parse(&format!("museum.example=sha256{slashes}{}", STANDARD.encode(key)))
                        .unwrap();
                assert_eq!(pin.key, key);
            }
        }
        for wrong in [
            "",
            "museum.example",
            "=sha256/x",
            "museum.example=md5/x",
            "museum.example=sha256/AAAA",
            "a/b=sha256/x",
        ] {
            assert!(Pin::parse(wrong).is_err(), "{wrong}");
        }
    }
}
