//! Digest fields of HTTP [rfc9530 §2, §3]: dictionaries of byte sequences [rfc9651 §3.2, §3.3.5].

use crate::{Algorithm, Digests, excerpt};
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use thiserror::Error;

/// Why a digest field could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("`{value}` is not a dictionary of digests: {what}")]
pub struct DigestFieldError {
    what: &'static str,
    value: String,
}

impl Digests {
    /// Reads the value of `Repr-Digest` or `Content-Digest`, its lines joined by commas, and adds
    /// the digests of SHA-256 and SHA-512. Other algorithms are left out, since the other
    /// registered algorithms are deprecated [rfc9530 §5].
    ///
    /// # Errors
    /// A value with a syntax error. The whole value is then ignored [rfc9651 §4.2].
    ///
    /// # Examples
    /// ```
    /// let mut digests = abreast_webtypes::Digests::default();
    /// digests.parse_field("sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:, crc32c=:AAAAAA==:")?;
    /// assert!(digests.sha256.is_some());
    /// # Ok::<(), abreast_webtypes::DigestFieldError>(())
    /// ```
    pub fn parse_field(&mut self, value: &str) -> Result<(), DigestFieldError> {
        let mut read = Self::default();
        match read.members(&mut Cursor(value.trim_matches(' '))) {
            Ok(()) => {
                for algorithm in ALGORITHMS {
                    if let Some(bytes) = read.bytes_of(algorithm) {
                        self.set(algorithm, bytes);
                    }
                }
                Ok(())
            }
            Err(what) => Err(DigestFieldError { what, value: excerpt(value) }),
        }
    }

    fn members(&mut self, rest: &mut Cursor<'_>) -> Result<(), &'static str> {
        while !rest.0.is_empty() {
            let key = rest.key().ok_or("an algorithm is missing")?;
            let bytes = rest.after("=").and_then(Cursor::bytes);
            let bytes = bytes.ok_or("a value is not base64 between colons")?;
            rest.parameters().ok_or("a parameter cannot be read")?;
            // The last of several members with one name counts.
            if let Some(algorithm) = ALGORITHMS.into_iter().find(|known| known.token() == key) {
                if bytes.len() != algorithm.length() {
                    return Err("a digest has the wrong length");
                }
                self.set(algorithm, &bytes);
            }
            rest.0 = rest.0.trim_start_matches([' ', '\t']);
            if rest.0.is_empty() {
                return Ok(());
            }
            rest.after(",").ok_or("a value is not followed by a comma")?;
            rest.0 = rest.0.trim_start_matches([' ', '\t']);
            if rest.0.is_empty() {
                return Err("it ends with a comma");
            }
        }
        Ok(())
    }
}

const ALGORITHMS: [Algorithm; 2] = [Algorithm::Sha256, Algorithm::Sha512];

/// Base64 with or without padding [rfc9651 §4.2.7].
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The unread rest of a value.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn after(&mut self, mark: &str) -> Option<&mut Self> {
        self.0 = self.0.strip_prefix(mark)?;
        Some(self)
    }

    /// The characters up to the first that does not belong.
    fn take(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let end = self.0.find(|c| !belongs(c)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }

    fn key(&mut self) -> Option<&'a str> {
        self.0.starts_with(|c: char| c.is_ascii_lowercase() || c == '*').then(|| {
            self.take(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.*".contains(c))
        })
    }

    fn bytes(&mut self) -> Option<Vec<u8>> {
        let (text, rest) = self.after(":")?.0.split_once(':')?;
        self.0 = rest;
        BASE64.decode(text).ok()
    }

    /// Skips parameters: no parameter of a digest has a meaning.
    fn parameters(&mut self) -> Option<()> {
        while self.after(";").is_some() {
            self.0 = self.0.trim_start_matches(' ');
            self.key()?;
            if self.after("=").is_some() {
                self.item()?;
            }
        }
        Some(())
    }

    /// Passes over the value of a parameter.
    fn item(&mut self) -> Option<()> {
        if self.0.starts_with(':') {
            return self.bytes().map(drop);
        }
        if self.after("\"").is_none() {
            let is_part = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~:/?@".contains(c);
            return Some(self.take(is_part)).filter(|item| !item.is_empty()).map(drop);
        }
        loop {
            self.take(|c| matches!(c, ' '..='~') && c != '"' && c != '\\');
            if self.after("\"").is_some() {
                return Some(());
            }
            self.after("\\")?.0.starts_with(['"', '\\']).then(|| self.0 = &self.0[1..])?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HELLO: &str = "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=";

    fn read(value: &str) -> Result<Digests, DigestFieldError> {
        let mut digests = Digests::default();
        digests.parse_field(value).map(|()| digests)
    }

    #[test]
    fn digests_of_known_algorithms_are_read() {
        let mut hello = Digests::default();
        let hex = "sha-256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        hello.parse_into(hex.as_bytes()).unwrap();
        let long = base64::engine::general_purpose::STANDARD.encode([7; 64]);
        for (value, is_hello) in [
            (format!("sha-256=:{HELLO}:"), true),
            (format!(" sha-256=:{}: ", HELLO.trim_end_matches('=')), true),
            (format!("md5=:aGVsbG8=:,\t sha-256=:{HELLO}: , other=::"), true),
            (format!("sha-256=:{HELLO}:;a;b=1;c=\"x\\\"y, z\"; d=?0;e=:AA==:;f=t/k"), true),
            (format!("sha-256=:{}:, sha-256=:{HELLO}:", "A".repeat(43)), true),
            (format!("sha-512=:{long}:"), false),
            ("md5=:aGVsbG8=:".to_owned(), false),
            (String::new(), false),
        ] {
            let digests = read(&value).unwrap();
            assert_eq!(digests.sha256.is_some(), is_hello, "{value}");
            assert_eq!(digests.sha512.is_some(), value.starts_with("sha-512"), "{value}");
            assert_eq!((digests.md5, digests.agree(&hello) == Some(false)), (None, false));
        }
    }

    #[test]
    fn what_is_malformed_counts_as_a_whole() {
        for value in [
            format!("sha-256={HELLO}"),
            format!("sha-256=:{HELLO}"),
            format!("sha-256=:{HELLO}:,"),
            format!("sha-256=:{HELLO}: x"),
            format!("sha-256=:{HELLO}:;"),
            format!("sha-256=:{HELLO}:;a=\"x"),
            format!("sha-256=:{HELLO}:;a=\"\\x\""),
            format!("sha-256=:{HELLO}:, md5"),
            format!("sha-256=:{HELLO}:, md5=1"),
            format!("SHA-256=:{HELLO}:"),
            format!(",sha-256=:{HELLO}:"),
            "sha-256=:aGVsbG8=:".to_owned(),
            "sha-256=:a*b=:".to_owned(),
            format!("sha-256 = :{HELLO}:"),
            format!("SHA-256={HELLO}"),
        ] {
            let mut digests = Digests::default();
            let error = digests.parse_field(&value).unwrap_err();
            assert!(digests.is_empty(), "{value}");
            assert!(error.to_string().contains("not a dictionary of digests: "), "{error}");
        }
    }

    proptest! {
        #[test]
        fn nothing_panics(value in ".*", part in "[a-z0-9=:;,\"\\\\ -]*") {
            let _ = read(&value);
            let _ = read(&format!("sha-256=:{HELLO}:{part}"));
        }

        #[test]
        fn what_is_written_is_read(bytes in any::<[u8; 32]>()) {
            let mut digests = Digests::default();
            digests.set(Algorithm::Sha256, &bytes);
            let mut text = b"sha-256=:".to_vec();
            digests.write_base64_to(Algorithm::Sha256, &mut text);
            text.push(b':');
            prop_assert_eq!(read(std::str::from_utf8(&text).unwrap()), Ok(digests));
        }
    }
}
