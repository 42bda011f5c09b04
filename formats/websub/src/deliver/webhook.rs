//! Signatures of webhooks, in the headers of Standard Webhooks 1.0.
//!
//! Each signature is a HMAC with SHA-256 of `ID.TIMESTAMP.BODY`, in base64 after `v1,`. A request
//! has one for each secret, separated by spaces, so that a receiver can replace its secret.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use thiserror::Error;

/// The header with the identifier of a message, which is the same in each attempt.
pub const WEBHOOK_ID: &str = "webhook-id";
/// The header with the time of the attempt, in seconds since 1970.
pub const WEBHOOK_TIMESTAMP: &str = "webhook-timestamp";
/// The header with the signatures.
pub const WEBHOOK_SIGNATURE: &str = "webhook-signature";
/// The prefix of a secret in base64.
const ENCODED: &str = "whsec_";
/// The prefix of a signature.
const VERSION: &str = "v1,";

/// The key of a webhook. Not shown by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookKey(Box<[u8]>);

impl fmt::Debug for WebhookKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookKey(…)")
    }
}

/// A secret that cannot be used. The text does not contain it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the secret is empty, or is not base64 after `whsec_`")]
pub struct WebhookSecretError;

impl WebhookKey {
    /// The key for a secret: base64 after `whsec_`, or any other text.
    ///
    /// # Errors
    /// The secret is empty, or is not base64 after `whsec_`.
    pub fn new(secret: &str) -> Result<Self, WebhookSecretError> {
        let bytes = match secret.strip_prefix(ENCODED) {
            Some(encoded) => BASE64_STANDARD.decode(encoded).map_err(|_| WebhookSecretError)?,
            None => secret.as_bytes().to_owned(),
        };
        if bytes.is_empty() { Err(WebhookSecretError) } else { Ok(Self(bytes.into())) }
    }

    /// The signature of a message, for the header [`WEBHOOK_SIGNATURE`].
    ///
    /// # Examples
    /// ```
    /// use abreast_websub::WebhookKey;
    ///
    /// let key = WebhookKey::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")?;
    /// let signature = key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
    /// assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    /// # Ok::<(), abreast_websub::WebhookSecretError>(())
    /// ```
    pub fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("a HMAC takes a key of any length");
        for part in [id.as_bytes(), b".", timestamp.to_string().as_bytes(), b".", body] {
            mac.update(part);
        }
        format!("{VERSION}{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_base64_after_their_prefix_or_text() {
        let of = |secret| WebhookKey::new(secret);
        assert_eq!(of("whsec_dGV4dA=="), of("text"));
        assert_ne!(of("dGV4dA=="), of("text"));
        for secret in ["", "whsec_", "whsec_%"] {
            assert_eq!(of(secret), Err(WebhookSecretError), "{secret}");
        }
        assert_eq!(format!("{:?}", of("text")), "Ok(WebhookKey(…))");
    }
}
