//! Private keys for signatures of requests.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair as _};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// How a key is made, for the help of errors.
const HELP: &str = "`openssl genpkey -algorithm ed25519 -out key.pem` makes a key";

/// A private Ed25519 key that signs requests; `Debug` hides it. Clones share the key.
///
/// # Examples
/// ```
/// use abreast_net::SigningKey;
///
/// // The key of RFC 9421, appendix B.1.4; RFC 8037, appendix A.3, has its rule for thumbprints.
/// let jwk = r#"{"kty":"OKP","crv":"Ed25519","d":"n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU",
///     "x":"JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs"}"#;
/// let key = SigningKey::parse(jwk.as_bytes())?;
/// assert_eq!(key.thumbprint(), "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U");
/// # Ok::<(), abreast_net::SigningKeyError>(())
/// ```
#[derive(Clone)]
pub struct SigningKey(Arc<KeyAndId>);

struct KeyAndId {
    pair: Ed25519KeyPair,
    /// The public key as in a JWK [rfc8037 §2].
    x: String,
    thumbprint: String,
}

/// The reason why a file is not a usable key; it has nothing of the key.
#[derive(Debug, Error)]
pub enum SigningKeyError {
    /// The text is neither PEM nor JSON.
    #[error("this is not a private key in PEM or a JWK (help: {HELP})")]
    Form,
    /// A PEM file without a readable PKCS#8 key.
    #[error(
        "the PEM file has no readable `PRIVATE KEY` (help: {HELP}; a key of another program is converted by `openssl pkcs8 -topk8 -nocrypt`)"
    )]
    Pem,
    /// The key in the PEM file is encrypted.
    #[error(
        "the key is encrypted, and there is no way to give its password (help: `openssl pkcs8 -in key.pem -out plain.pem` removes the encryption; protect the file by `chmod 600`)"
    )]
    Encrypted,
    /// A key of another algorithm.
    #[error("the key is not an Ed25519 key (help: {HELP})")]
    Algorithm,
    /// A JWK without a private key.
    #[error(
        "the JWK has no private key `d`, which is the base64url of 32 bytes [rfc8037 §2] (help: {HELP})"
    )]
    NotPrivate,
    /// A JWK whose parts do not belong together.
    #[error(
        "`x` of the JWK is not the public key of `d` [rfc8037 §2] (help: export both from the same key)"
    )]
    Mismatch,
}

impl SigningKey {
    /// Reads a key in PKCS#8, in PEM [rfc8410 §7], or in a JWK [rfc8037 §2].
    ///
    /// # Errors
    /// The text is not a private Ed25519 key.
    pub fn parse(text: &[u8]) -> Result<Self, SigningKeyError> {
        let trimmed = text.trim_ascii();
        let pair = if trimmed.starts_with(b"{") {
            of_jwk(trimmed)?
        } else if memchr::memmem::find(trimmed, b"-----BEGIN").is_some() {
            of_pem(trimmed)?
        } else {
            return Err(SigningKeyError::Form);
        };
        let x = URL_SAFE_NO_PAD.encode(pair.public_key().as_ref());
        let thumbprint = thumbprint(&x);
        Ok(Self(Arc::new(KeyAndId { pair, x, thumbprint })))
    }

    /// The SHA-256 thumbprint of the public key [rfc7638 §3, rfc8037 §A.3], which is the
    /// `keyid` of signatures.
    pub fn thumbprint(&self) -> &str {
        &self.0.thumbprint
    }

    /// The public key as the member `x` of a JWK [rfc8037 §2].
    pub fn x(&self) -> &str {
        &self.0.x
    }

    pub(crate) fn sign(&self, base: &[u8]) -> [u8; 64] {
        let mut signature = [0; 64];
        // Signatures of this algorithm have 64 bytes [rfc8032 §5.1.6].
        let made = self.0.pair.sign(base);
        for (to, from) in signature.iter_mut().zip(made.as_ref()) {
            *to = *from;
        }
        signature
    }
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SigningKey").field(&self.0.thumbprint).finish()
    }
}

/// The thumbprint of the key with this `x`: the digest of its required members in the order of their
/// names [rfc7638 §3, rfc8037 §A.3].
pub(crate) fn thumbprint(x: &str) -> String {
    let members = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#);
    URL_SAFE_NO_PAD.encode(Sha256::digest(members))
}

fn of_pem(text: &[u8]) -> Result<Ed25519KeyPair, SigningKeyError> {
    if memchr::memmem::find(text, b"ENCRYPTED").is_some() {
        return Err(SigningKeyError::Encrypted);
    }
    for other in [&b"BEGIN EC PRIVATE KEY"[..], b"BEGIN RSA PRIVATE KEY"] {
        if memchr::memmem::find(text, other).is_some() {
            return Err(SigningKeyError::Algorithm);
        }
    }
    let key = PrivatePkcs8KeyDer::from_pem_slice(text).map_err(|_| SigningKeyError::Pem)?;
    // OpenSSL writes version 1, without the public key, which is then derived.
    Ed25519KeyPair::from_pkcs8_maybe_unchecked(key.secret_pkcs8_der())
        .map_err(|_| SigningKeyError::Algorithm)
}

fn of_jwk(text: &[u8]) -> Result<Ed25519KeyPair, SigningKeyError> {
    let jwk: Value = serde_json::from_slice(text).map_err(|_| SigningKeyError::Form)?;
    let member = |name: &str| jwk.get(name).and_then(Value::as_str);
    if member("kty").is_none() {
        return Err(SigningKeyError::Form);
    }
    if (member("kty"), member("crv")) != (Some("OKP"), Some("Ed25519")) {
        return Err(SigningKeyError::Algorithm);
    }
    let bytes = |name| member(name).and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
    let seed = bytes("d").ok_or(SigningKeyError::NotPrivate)?;
    let pair =
        Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| SigningKeyError::NotPrivate)?;
    // A key without its public part is complete: the part is derived.
    if jwk.get("x").is_some() && bytes("x").as_deref() != Some(pair.public_key().as_ref()) {
        return Err(SigningKeyError::Mismatch);
    }
    Ok(pair)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// `test-key-ed25519` [rfc9421 §B.1.4].
    pub(crate) const PEM: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n";
    const D: &str = "n4Ni-HpISpVObnQMW0wOhCKROaIKqKtW_2ZYb2p9KcU";
    const X: &str = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs";

    #[test]
    fn the_example_key_is_read_from_pem_and_jwk() {
        for text in [
            PEM.to_owned(),
            format!("\n{PEM}"),
            format!(r#"{{"kty":"OKP","crv":"Ed25519","kid":"a","d":"{D}","x":"{X}"}}"#),
            format!(r#"{{"kty":"OKP","crv":"Ed25519","d":"{D}"}}"#),
        ] {
            let key = SigningKey::parse(text.as_bytes()).unwrap();
            assert_eq!(key.x(), X, "{text}");
            assert_eq!(key.thumbprint(), "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U");
            let shown = format!("{key:?}");
            assert!(!shown.contains(D) && !shown.contains(X), "{shown}");
        }
    }

    #[test]
    fn other_files_are_refused_with_their_reason() {
        let jwk = |members: &str| format!("{{{members}}}");
        for (text, part) in [
            (String::new(), "not a private key in PEM or a JWK"),
            ("text".to_owned(), "not a private key in PEM or a JWK"),
            ("{".to_owned(), "not a private key in PEM or a JWK"),
            (jwk("\"keys\":[]"), "not a private key in PEM or a JWK"),
            (jwk("\"kty\":\"EC\",\"crv\":\"P-256\""), "not an Ed25519 key"),
            (jwk("\"kty\":\"OKP\",\"crv\":\"X25519\""), "not an Ed25519 key"),
            (format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{X}"}}"#), "has no private key"),
            (
                format!(r#"{{"kty":"OKP","crv":"Ed25519","d":"AAAA","x":"{X}"}}"#),
                "has no private key",
            ),
            (
                format!(r#"{{"kty":"OKP","crv":"Ed25519","d":"{D}","x":"{D}"}}"#),
                "not the public key",
            ),
            (format!(r#"{{"kty":"OKP","crv":"Ed25519","d":"{D}","x":1}}"#), "not the public key"),
            (PEM.replace("PRIVATE", "PUBLIC"), "no readable `PRIVATE KEY`"),
            (PEM.replace("MC4C", "****"), "no readable `PRIVATE KEY`"),
            (PEM.replace("MC4C", "MC4D"), "not an Ed25519 key"),
            (PEM.replace(" PRIVATE", " ENCRYPTED PRIVATE"), "encrypted"),
            (PEM.replace(" PRIVATE", " RSA PRIVATE"), "not an Ed25519 key"),
        ] {
            let error = SigningKey::parse(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("help: "), "{text}: {error}");
            assert!(!error.contains(D), "{error}");
        }
    }
}
