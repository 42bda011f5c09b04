//! Verification of signed requests [rfc9421 §3.2] by keys that are known beforehand.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{HeaderMap, Method};
use ring::signature::{ED25519, UnparsedPublicKey};
use rustls::pki_types::SubjectPublicKeyInfoDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::Value;
use thiserror::Error;

use crate::signature::key::thumbprint;
use crate::signature::{authority, seconds};

/// The bytes before an Ed25519 key in its SubjectPublicKeyInfo [rfc8410 §10.1].
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// Most keys of a file.
const MAX_KEYS: usize = 100;
/// Longest lifetime of a signature: the most that [web-bot-auth] recommends.
const MAX_LIFETIME: Duration = Duration::from_secs(24 * 3_600);
/// How much the clock of a signer may be ahead.
const SKEW: Duration = Duration::from_secs(60);
/// Most signatures of a request that are checked.
const MAX_SIGNATURES: usize = 4;

/// A public Ed25519 key, by which signatures are verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    bytes: [u8; 32],
    thumbprint: String,
}

/// The reason why a file has no usable public keys.
#[derive(Debug, Error)]
pub enum PublicKeyError {
    /// The text is neither PEM nor JSON.
    #[error(
        "this is not a public key in PEM, a JWK or a JWK Set (help: `openssl pkey -in key.pem -pubout` prints the public key of a private one)"
    )]
    Form,
    /// The text has a private key.
    #[error(
        "this is a private key, which stays with its owner (help: `openssl pkey -in key.pem -pubout` prints its public key)"
    )]
    Private,
    /// No key of the algorithm.
    #[error("there is no Ed25519 key (help: only these verify requests, see docs/deploying.md)")]
    Algorithm,
    /// There are too many keys in one file.
    #[error("there are more than {MAX_KEYS} keys (help: keep only those that sign requests)")]
    Many,
}

impl PublicKey {
    /// Reads the Ed25519 keys of a text: one in PEM [rfc8410 §4], a JWK [rfc8037 §2], or a JWK Set
    /// [rfc7517 §5], whose other keys are ignored.
    ///
    /// # Errors
    /// There is no such key, or a private one.
    pub fn parse_all(text: &[u8]) -> Result<Vec<Self>, PublicKeyError> {
        let text = text.trim_ascii();
        if !text.starts_with(b"{") {
            if memchr::memmem::find(text, b"PRIVATE KEY-----").is_some() {
                return Err(PublicKeyError::Private);
            }
            let key =
                SubjectPublicKeyInfoDer::from_pem_slice(text).map_err(|_| PublicKeyError::Form)?;
            let bytes = key.as_ref().strip_prefix(&SPKI).ok_or(PublicKeyError::Algorithm)?;
            return Self::new(bytes).map(|key| vec![key]).ok_or(PublicKeyError::Algorithm);
        }
        let document: Value = serde_json::from_slice(text).map_err(|_| PublicKeyError::Form)?;
        let listed = match document.get("keys") {
            Some(keys) => keys.as_array().map(Vec::as_slice).ok_or(PublicKeyError::Form)?,
            None => std::slice::from_ref(&document),
        };
        if listed.len() > MAX_KEYS {
            return Err(PublicKeyError::Many);
        }
        if listed.iter().any(|key| key.get("d").is_some()) {
            return Err(PublicKeyError::Private);
        }
        let keys: Vec<Self> = listed.iter().filter_map(Self::of_jwk).collect();
        if keys.is_empty() { Err(PublicKeyError::Algorithm) } else { Ok(keys) }
    }

    fn new(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; 32] = bytes.try_into().ok()?;
        Some(Self { bytes, thumbprint: thumbprint(&URL_SAFE_NO_PAD.encode(bytes)) })
    }

    fn of_jwk(jwk: &Value) -> Option<Self> {
        let member = |name: &str| jwk.get(name).and_then(Value::as_str);
        let is_ed25519 = (member("kty"), member("crv")) == (Some("OKP"), Some("Ed25519"));
        let x = URL_SAFE_NO_PAD.decode(member("x").filter(|_| is_ed25519)?).ok()?;
        Self::new(&x)
    }

    /// The thumbprint, which is the `keyid` of signatures [rfc7638 §3, rfc8037 §A.3].
    pub fn thumbprint(&self) -> &str {
        &self.thumbprint
    }
}

/// Public keys, each with the number of its owner.
#[derive(Clone, Debug, Default)]
pub struct KnownKeys(HashMap<String, ([u8; 32], usize)>);

impl KnownKeys {
    /// Adds a key; returns whether it is new.
    pub fn add(&mut self, key: &PublicKey, owner: usize) -> bool {
        self.0.insert(key.thumbprint.clone(), (key.bytes, owner)).is_none()
    }

    /// The owner of the key that signed a request to the server with this public URL, and not to the
    /// `Host` of the request: who repeats a signature for another server can choose that field.
    /// `None` without a valid signature of a known key.
    ///
    /// The signature has to cover `@authority`, and may cover `@method` and `signature-agent`. It
    /// needs `created`, `expires`, `keyid` and the tag `web-bot-auth` [web-bot-auth].
    pub fn signer(
        &self,
        server: &str,
        method: &Method,
        headers: &HeaderMap,
        now: SystemTime,
    ) -> Option<usize> {
        let inputs = joined(headers, "signature-input").filter(|_| !self.0.is_empty())?;
        let signatures = joined(headers, "signature")?;
        let agent = joined(headers, "signature-agent");
        let authority = authority(server)?;
        let of_request = Components { authority: &authority, method, agent: agent.as_deref() };
        members(&inputs).take(MAX_SIGNATURES).find_map(|(label, input)| {
            let params = Params::parse(input)?;
            let &(key, owner) = self.0.get(params.keyid?)?;
            if !params.is_valid(seconds(now)) {
                return None;
            }
            let base = format!("{}\"@signature-params\": {input}", of_request.lines(&params)?);
            let (_, signature) = members(&signatures).find(|(other, _)| *other == label)?;
            let signature = signature.strip_prefix(':')?.strip_suffix(':')?;
            let signature = STANDARD.decode(signature).ok()?;
            UnparsedPublicKey::new(&ED25519, key).verify(base.as_bytes(), &signature).ok()?;
            Some(owner)
        })
    }
}

/// The values of a field in one line [rfc9421 §2.1].
fn joined(headers: &HeaderMap, name: &str) -> Option<String> {
    let mut joined: Option<String> = None;
    for value in headers.get_all(name) {
        let value = value.to_str().ok()?.trim();
        match &mut joined {
            None => joined = Some(value.to_owned()),
            Some(text) => {
                text.push_str(", ");
                text.push_str(value);
            }
        }
    }
    joined
}

/// Splits a text at a byte outside quoted strings [rfc9651 §3.3.3].
fn split(text: &str, at: u8) -> impl Iterator<Item = &str> {
    let (mut rest, bytes) = (Some(text), at);
    std::iter::from_fn(move || {
        let text = rest?;
        let (mut is_quoted, mut is_escaped) = (false, false);
        let end = text.bytes().position(|byte| {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if is_quoted => is_escaped = true,
                b'"' => is_quoted = !is_quoted,
                _ => return !is_quoted && byte == bytes,
            }
            false
        });
        let (one, others) = match end {
            Some(end) => (&text[..end], Some(&text[end + 1..])),
            None => (text, None),
        };
        rest = others;
        Some(one)
    })
}

/// Keys and values of a dictionary of inner lists or strings [rfc9651 §3.2].
fn members(dictionary: &str) -> impl Iterator<Item = (&str, &str)> {
    split(dictionary, b',').filter_map(|member| member.trim().split_once('='))
}

/// Covered components and parameters of a signature [rfc9421 §2.3].
#[derive(Debug, Default)]
struct Params<'a> {
    components: Vec<&'a str>,
    created: Option<u64>,
    expires: Option<u64>,
    keyid: Option<&'a str>,
    alg: Option<&'a str>,
    tag: Option<&'a str>,
}

impl<'a> Params<'a> {
    fn parse(input: &'a str) -> Option<Self> {
        let list = input.strip_prefix('(')?;
        let components = split(list, b')').next()?;
        let rest = list.get(components.len() + 1..)?;
        let listed = split(components, b' ').filter(|one| !one.is_empty());
        let mut params = Self { components: listed.collect(), ..Self::default() };
        let mut parts = split(rest, b';');
        if parts.next() != Some("") {
            return None;
        }
        for part in parts {
            let (name, value) = part.trim().split_once('=')?;
            let text = || value.strip_prefix('"')?.strip_suffix('"');
            match name {
                "created" => params.created = Some(value.parse().ok()?),
                "expires" => params.expires = Some(value.parse().ok()?),
                "keyid" => params.keyid = Some(text()?),
                "alg" => params.alg = Some(text()?),
                "tag" => params.tag = Some(text()?),
                _ => {}
            }
        }
        Some(params)
    }

    fn is_valid(&self, now: u64) -> bool {
        let Some((created, expires)) = self.created.zip(self.expires) else { return false };
        self.tag == Some("web-bot-auth")
            && self.alg.is_none_or(|alg| alg == "ed25519")
            && created <= now.saturating_add(SKEW.as_secs())
            && now < expires
            && expires.saturating_sub(created) <= MAX_LIFETIME.as_secs()
            && self.components.contains(&"\"@authority\"")
    }
}

/// The parts of a request that a signature may cover.
struct Components<'a> {
    authority: &'a str,
    method: &'a Method,
    agent: Option<&'a str>,
}

impl Components<'_> {
    /// The lines of the covered components; `None` if any is unknown, absent or listed twice.
    fn lines(&self, params: &Params<'_>) -> Option<String> {
        let mut lines = String::new();
        for (number, component) in params.components.iter().enumerate() {
            if params.components[..number].contains(component) {
                return None;
            }
            let value = match *component {
                "\"@authority\"" => self.authority,
                "\"@method\"" => self.method.as_str(),
                "\"signature-agent\"" => self.agent?,
                other => {
                    let key =
                        other.strip_prefix("\"signature-agent\";key=\"")?.strip_suffix('"')?;
                    members(self.agent?).find(|(member, _)| *member == key)?.1
                }
            };
            lines.push_str(component);
            lines.push_str(": ");
            lines.push_str(value);
            lines.push('\n');
        }
        Some(lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::key::SigningKey;
    use crate::signature::key::tests::PEM;
    use crate::signature::request::RequestSigner;
    use http::HeaderValue;
    use std::time::UNIX_EPOCH;

    const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=\n-----END PUBLIC KEY-----\n";
    const X: &str = "JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs";
    const CREATED: u64 = 1_735_689_600;

    fn known() -> KnownKeys {
        let mut known = KnownKeys::default();
        assert!(known.add(&PublicKey::parse_all(PUBLIC.as_bytes()).unwrap()[0], 7));
        known
    }

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn signed() -> HeaderMap {
        let key = SigningKey::parse(PEM.as_bytes()).unwrap();
        let signer = RequestSigner::new(key, "https://harvest.example").unwrap();
        let mut headers = HeaderMap::new();
        let host = HeaderValue::from_static("Repo.Example");
        signer.sign(&mut headers, &host, at(CREATED), "").unwrap();
        headers
    }

    fn signer(headers: &HeaderMap, now: u64) -> Option<usize> {
        known().signer("https://repo.example/", &Method::GET, headers, at(now))
    }

    /// The vectors of `cloudflare/web-bot-auth`, whose lifetime of a century is refused.
    #[test]
    fn published_vectors_are_verified_but_for_their_lifetime() {
        for (input, signature, agent) in [
            (
                "sig1=(\"@authority\");created=1735689600;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";alg=\"ed25519\";expires=4889289600;nonce=\"zIW8+cdmA3vdYagbxojpONwa/l0EKJ/O3/wD486VvsQjO/RxPaSt6ZxvQaMcQzNnqKN/mQ6hpGiFro2L2qkz5A==\";tag=\"web-bot-auth\"",
                "sig1=:QKN4fTdIYfh82fvoZCQiQA1weuozfCS/Led2zTMbewMMqH8PI2Wsy/5c4ao6B6D09nraNQdBNOADg8aM1MqfCg==:",
                "",
            ),
            (
                "sig2=(\"@authority\" \"signature-agent\";key=\"agent2\");created=1735689600;keyid=\"poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U\";alg=\"ed25519\";expires=4889289600;nonce=\"n9p433xm+NJ3ph3upfBIGmsuwHw387YV7Q/F+6BSpGCVjYCqQw6rznNA8PVVLySrAWsv0hQtFioQb6E1YsauiA==\";tag=\"web-bot-auth\"",
                "sig2=:RdNFx5Bj6au3YgAMQL/RzmUlZE8QZLIaXGRpw985hWnwPfMxT228NMk6ehRS1PSl4e8PhbNZACSanGdhEwYCCg==:",
                "agent2=\"https://signature-agent.test\"",
            ),
        ] {
            let (label, params) = members(input).next().unwrap();
            let parsed = Params::parse(params).unwrap();
            let of =
                Components { authority: "example.com", method: &Method::GET, agent: Some(agent) };
            let base = format!("{}\"@signature-params\": {params}", of.lines(&parsed).unwrap());
            let (other, value) = members(signature).next().unwrap();
            assert_eq!(label, other);
            let value = STANDARD.decode(value.trim_matches(':')).unwrap();
            let key = UnparsedPublicKey::new(&ED25519, URL_SAFE_NO_PAD.decode(X).unwrap());
            key.verify(base.as_bytes(), &value).unwrap();
            assert!(!parsed.is_valid(CREATED + 1), "{input}");
        }
    }

    #[test]
    fn a_signature_is_valid_for_its_server_and_time() {
        let headers = signed();
        for (now, is_valid) in
            [(-61, false), (-60, true), (0, true), (299, true), (300, false), (86_400, false)]
        {
            let found = signer(&headers, CREATED.checked_add_signed(now).unwrap());
            assert_eq!(found, is_valid.then_some(7), "{now}");
        }
        let of = |known: &KnownKeys, server: &str| {
            known.signer(server, &Method::GET, &headers, at(CREATED))
        };
        assert_eq!(of(&known(), "https://other.example/"), None);
        assert_eq!(of(&KnownKeys::default(), "https://repo.example/"), None);
        // The two fields in several lines, beside another signature.
        let mut several = headers.clone();
        for (name, value) in [("signature-input", "a=(\"date\");x=1"), ("signature", "a=:AAAA:")] {
            several.append(name, HeaderValue::from_static(value));
        }
        assert_eq!(signer(&several, CREATED), Some(7));
    }

    #[test]
    fn any_changed_part_makes_a_stranger() {
        let headers = signed();
        for (name, from, to) in [
            ("signature-agent", "harvest", "other"),
            ("signature-agent", "sig1=", "sig2="),
            ("signature-input", "sig1=", "sig2="),
            ("signature-input", "expires=1735689900", "expires=1735699900"),
            ("signature-input", "expires=1735689900", "expires=x"),
            ("signature-input", "created=1735689600;", ""),
            ("signature-input", "\"@authority\" ", ""),
            ("signature-input", "\"@authority\" ", "\"@authority\" \"@authority\" "),
            ("signature-input", "\"@authority\" ", "\"@authority\" \"@path\" "),
            ("signature-input", "web-bot-auth", "web-bot"),
            ("signature-input", ";tag=\"web-bot-auth\"", ""),
            ("signature-input", "ed25519", "hmac-sha256"),
            ("signature-input", "keyid=\"p", "keyid=\"q"),
            ("signature-input", "(", ""),
            ("signature-input", ")", ""),
            ("signature-input", ")", ")x"),
            ("signature", ":", ""),
            ("signature", "sig1=:", "sig1=:AA"),
        ] {
            let mut changed = headers.clone();
            let value = headers[name].to_str().unwrap().replace(from, to);
            assert_ne!(value, headers[name], "{from}");
            changed.insert(name, HeaderValue::try_from(value).unwrap());
            assert_eq!(signer(&changed, CREATED), None, "{name}: {from} {to}");
        }
        for name in ["signature-agent", "signature-input", "signature"] {
            let mut without = headers.clone();
            without.remove(name);
            assert_eq!(signer(&without, CREATED), None, "{name}");
        }
    }

    #[test]
    fn public_keys_are_read_from_pem_jwk_and_sets() {
        let jwk = format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{X}"}}"#);
        let other = r#"{"kty":"EC","crv":"P-256"}"#;
        for text in [PUBLIC.to_owned(), jwk.clone(), format!(r#"{{"keys":[{other},{jwk}]}}"#)] {
            let keys = PublicKey::parse_all(text.as_bytes()).unwrap();
            assert_eq!(keys.len(), 1, "{text}");
            assert_eq!(keys[0].thumbprint(), "poqkLGiymh_W0uP6PZFw-dvez3QJT5SolqXBCW38r0U");
        }
        for (text, part) in [
            (String::new(), "not a public key"),
            ("text".to_owned(), "not a public key"),
            ("{".to_owned(), "not a public key"),
            (PEM.to_owned(), "a private key"),
            (jwk.replace("\"x\"", "\"d\":\"A\",\"x\""), "a private key"),
            (other.to_owned(), "no Ed25519 key"),
            (r#"{"keys":[]}"#.to_owned(), "no Ed25519 key"),
            (r#"{"keys":1}"#.to_owned(), "not a public key"),
            (jwk.replace(X, "AAAA"), "no Ed25519 key"),
            (PUBLIC.replace("K2Vw", "K2Vx"), "no Ed25519 key"),
            (format!(r#"{{"keys":[{}]}}"#, vec![other; 101].join(",")), "more than 100"),
        ] {
            let error = PublicKey::parse_all(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("help: "), "{text}: {error}");
        }
    }
}
