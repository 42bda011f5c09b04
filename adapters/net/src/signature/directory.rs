//! The directory of the keys that sign requests: its document, and the signatures of its responses.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, header};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::signature::key::SigningKey;
use crate::signature::request::Parameters;
use crate::signature::{authority, seconds};

/// How long the proof that the server has the keys is valid, longer than the document is cached.
const LIFETIME: Duration = Duration::from_secs(24 * 3_600);
const TAG: &str = "http-message-signatures-directory";

/// Public keys by which servers verify signed requests, as the document that is served at
/// [`KeyDirectory::PATH`] [web-bot-auth]. Clones share the keys.
#[derive(Clone, Debug)]
pub struct KeyDirectory {
    keys: Vec<SigningKey>,
    document: String,
    digest: HeaderValue,
}

impl KeyDirectory {
    /// The path of the document at the root of a host.
    pub const PATH: &str = "/.well-known/http-message-signatures-directory";
    /// The media type of the document.
    pub const MEDIA_TYPE: &str = "application/http-message-signatures-directory+json";

    /// Creates the directory of these keys.
    pub fn new(keys: Vec<SigningKey>) -> Self {
        let listed = keys.iter().map(|key| {
            json!({"kty": "OKP", "crv": "Ed25519", "kid": key.thumbprint(), "x": key.x(), "use": "sig"})
        });
        let document = json!({ "keys": listed.collect::<Vec<_>>() }).to_string();
        let digest = STANDARD.encode(Sha256::digest(&document));
        let digest = HeaderValue::try_from(format!("sha-256=:{digest}:"))
            .unwrap_or_else(|_| HeaderValue::from_static(""));
        Self { keys, document, digest }
    }

    /// The JWK Set [rfc7517 §5].
    pub fn document(&self) -> &str {
        &self.document
    }

    /// The headers of a response: the media type, the digest of the body [rfc9530 §2], and one
    /// signature by each key over the digest and the authority of the request, that of `base`, the
    /// public URL of the server: proxies may change the `Host` of requests.
    pub fn headers(&self, base: &str, now: SystemTime) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(Self::MEDIA_TYPE));
        headers.insert("content-digest", self.digest.clone());
        let Some(authority) = authority(base) else { return headers };
        let lines = format!(
            "\"@authority\";req: {authority}\n\"content-digest\": {}\n",
            self.digest.to_str().unwrap_or_default()
        );
        let created = seconds(now);
        let params = Parameters {
            components: "\"@authority\";req \"content-digest\"",
            created,
            expires: created.saturating_add(LIFETIME.as_secs()),
            nonce: None,
            tag: TAG,
        };
        let (mut inputs, mut signatures) = (Vec::new(), Vec::new());
        for (number, key) in self.keys.iter().enumerate() {
            let (input, signature) = params.sign(key, &lines);
            inputs.push(format!("binding{number}={input}"));
            signatures.push(format!("binding{number}=:{signature}:"));
        }
        for (name, members) in [("signature-input", inputs), ("signature", signatures)] {
            if let Ok(value) = HeaderValue::try_from(members.join(", ")) {
                headers.insert(name, value);
            }
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::key::tests::PEM;

    /// The vector `web_bot_auth_directory_response_v1.json` of `cloudflare/web-bot-auth`.
    #[test]
    fn the_response_is_signed_as_the_published_vector() {
        let key = SigningKey::parse(PEM.as_bytes()).unwrap();
        let params = Parameters {
            components: "\"@authority\";req \"content-digest\"",
            created: 1_735_689_600,
            expires: 4_889_289_600,
            nonce: None,
            tag: TAG,
        };
        let lines = "\"@authority\";req: signature-agent.test\n\"content-digest\": sha-256=:CADMT2aBdV/rqQr/NIru64ERQkCobVvllA4V0fLFDu0=:\n";
        assert_eq!(
            params.sign(&key, lines).1,
            "yiHq0TXrbpzbmlttAQMpYoAufitFJUWuNsakB7QQMoN0EHbo5o51bZRVR8az/ptTWCwllix9clrKXfGKwdPzBg=="
        );
    }

    #[test]
    fn the_document_has_no_private_part() {
        let key = SigningKey::parse(PEM.as_bytes()).unwrap();
        let directory = KeyDirectory::new(vec![key]);
        let document: serde_json::Value = serde_json::from_str(directory.document()).unwrap();
        let expected = json!({"keys": [{
            "kty": "OKP", "crv": "Ed25519", "kid": "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U",
            "x": "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs", "use": "sig",
        }]});
        assert_eq!(document, expected);
    }
}
