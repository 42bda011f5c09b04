//! Faults of a `hash` attribute, in words.

use super::digest::Algorithm;
use crate::excerpt;
use base64::Engine as _;

/// The fault of the first token of a `hash` attribute that is not the name of an algorithm and a
/// hex digest [rs-core §7].
///
/// # Examples
/// ```
/// use abreast_webtypes::hash_fault;
///
/// assert_eq!(hash_fault("md5:5d41402abc4b2a76b9719d911017c592"), None);
/// assert!(hash_fault("md5:5d41402a").is_some());
/// ```
pub fn hash_fault(attribute: &str) -> Option<String> {
    attribute.split_ascii_whitespace().find_map(|token| {
        token_fault(token).map(|fault| format!("\"{}\" of `hash` {fault}", excerpt(token)))
    })
}

fn token_fault(token: &str) -> Option<String> {
    let Some((name, digest)) = token.split_once(':').filter(|(name, _)| !name.is_empty()) else {
        let meant = Algorithm::ALL
            .into_iter()
            .find(|known| is_hex(token) && token.len() == known.length() * 2);
        return Some(match meant {
            Some(known) => {
                format!(
                    "has no algorithm; by its length it may be {0}, written `{0}:{token}`",
                    known.token()
                )
            }
            None => "is not `algorithm:digest`".to_owned(),
        });
    };
    if digest.is_empty() {
        return Some("has no digest behind the algorithm".to_owned());
    }
    let known = Algorithm::from_token(name.as_bytes());
    if !is_hex(digest) {
        let bytes = base64_length(digest);
        return Some(match (known, bytes) {
            (Some(known), Some(bytes)) if bytes == known.length() => {
                "is in base64, not in hex".to_owned()
            }
            (None, Some(16 | 20 | 32 | 48 | 64)) => "is in base64, not in hex".to_owned(),
            _ => "has characters that are not hex digits".to_owned(),
        });
    }
    let known = known.filter(|known| known.length() * 2 != digest.len())?;
    let fits = Algorithm::ALL.into_iter().find(|other| other.length() * 2 == digest.len());
    let fits = fits.map_or(String::new(), |other| format!(", as one of {} has", other.token()));
    Some(format!(
        "has {} hex digits{fits}; a digest of {} has {}",
        digest.len(),
        known.token(),
        known.length() * 2
    ))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Number of bytes that a text in base64 encodes, with or without padding, in either alphabet.
fn base64_length(text: &str) -> Option<usize> {
    let text = text.trim_end_matches('=').replace('-', "+").replace('_', "/");
    base64::prelude::BASE64_STANDARD_NO_PAD.decode(text).ok().map(|bytes| bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_hex_of_their_length() {
        assert_eq!(hash_fault("md5:1e0d5cb8ef6ba40c99b14c0237be735e\n whirlpool:00ff"), None);
        for (bad, why) in [
            ("1e0d5cb8ef6ba40c99b14c0237be735e", "has no algorithm; by its length it may be md5"),
            ("md5=1e0d5cb8ef6ba40c99b14c0237be735e", "is not `algorithm:digest`"),
            (":1e", "is not `algorithm:digest`"),
            ("md5:", "has no digest"),
            ("md5:1e", "has 2 hex digits; a digest of md5 has 32"),
            (
                "sha-256:1e0d5cb8ef6ba40c99b14c0237be735e",
                "has 32 hex digits, as one of md5 has; a digest of sha-256 has 64",
            ),
            ("md5:Hg1cuO9rpAyZsUwCN75zXg==", "is in base64"),
            ("md5:Hg1cuO9rpAyZsUwCN75zXg", "is in base64"),
            ("whirlpool:LFtzEvVP3tRzuzJwbQ7mtJ8ukbdZ0n2j9XGnJfoEOnc=", "is in base64"),
            ("sha-256:zz", "has characters that are not hex digits"),
            ("x:yz", "has characters that are not hex digits"),
        ] {
            let fault = hash_fault(bad).unwrap();
            let expected = format!("\"{bad}\" of `hash` {why}");
            assert!(fault.starts_with(&expected), "{bad}: {fault}");
        }
    }
}
