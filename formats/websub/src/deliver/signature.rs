//! Signatures of deliveries, `X-Hub-Signature` [websub §7.1].

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::{Sha256, Sha384, Sha512};
use std::fmt::{self, Write as _};
use std::str::FromStr;
use thiserror::Error;

/// The header a signature travels in.
pub const SIGNATURE_HEADER: &str = "X-Hub-Signature";
/// Bytes of a signature header; longer ones are refused unread.
pub const MAX_SIGNATURE_LENGTH: usize = 256;

/// How a signature is made, weakest first [websub §7.1.1].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// HMAC with SHA-1: believed to hold for this use, and not advised [websub §8.3].
    Sha1,
    /// HMAC with SHA-256, which is the default.
    #[default]
    Sha256,
    /// HMAC with SHA-384, between SHA-256 and SHA-512 in strength.
    Sha384,
    /// HMAC with SHA-512: faster than SHA-256 on processors without instructions for SHA-256.
    Sha512,
}

impl Method {
    /// Every known method, the weakest first.
    pub const ALL: [Self; 4] = [Self::Sha1, Self::Sha256, Self::Sha384, Self::Sha512];

    /// Name of the method in the header.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }

    /// Length of the method's signatures in bytes.
    pub const fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

impl FromStr for Method {
    type Err = SignatureError;

    fn from_str(name: &str) -> Result<Self, SignatureError> {
        // Lenient: in any letter case.
        let known = Self::ALL.into_iter().find(|method| method.name().eq_ignore_ascii_case(name));
        known.ok_or_else(|| SignatureError::Method(abreast_webtypes::excerpt(name)))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a delivery is not authentic. Its content must then be ignored [websub §7.1.2].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// A secret was agreed on, and the signature is missing.
    #[error("the delivery is not signed, though a secret was agreed on")]
    Missing,
    /// The header is longer than [`MAX_SIGNATURE_LENGTH`].
    #[error("the signature header is longer than {MAX_SIGNATURE_LENGTH} bytes")]
    TooLong,
    /// The value is not `method=hex` with as many digits as the method has.
    #[error("the signature header does not read `method=hex`")]
    Syntax,
    /// A method that this program does not know.
    #[error("the signature's method is \"{0}\"; expected sha1, sha256, sha384 or sha512")]
    Method(String),
    /// A method that is weaker than asked for.
    #[error("the signature is made with {used}, weaker than {least}")]
    Weak {
        /// The method of the signature.
        used: Method,
        /// The weakest method that is accepted.
        least: Method,
    },
    /// Made with another secret, or of other bytes.
    #[error("the signature is not of these bytes and this secret")]
    Wrong,
}

/// A signature: a method, and the digest of the bytes and a secret.
///
/// # Examples
/// ```
/// use abreast_websub::{Method, Signature};
///
/// let header = "sha1=de7c9b85b8b78aa6bc8a7a36f70a90701c9db4d9";
/// let signature: Signature = header.parse()?;
/// assert_eq!(signature.method(), Method::Sha1);
/// assert_eq!(signature.to_string(), header);
/// # Ok::<(), abreast_websub::SignatureError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Signature {
    method: Method,
    bytes: [u8; 64],
}

impl Signature {
    /// Method that made the signature.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The signature as bytes, without its method.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.method.length()]
    }

    fn new(method: Method, made: &[u8]) -> Self {
        let mut bytes = [0; 64];
        bytes[..made.len()].copy_from_slice(made);
        Self { method, bytes }
    }
}

/// Compares in constant time, so that the time does not reveal the first difference.
impl PartialEq for Signature {
    fn eq(&self, other: &Self) -> bool {
        let differing =
            self.bytes.iter().zip(&other.bytes).fold(0, |sum, (one, other)| sum | (one ^ other));
        self.method == other.method && std::hint::black_box(differing) == 0
    }
}

impl Eq for Signature {}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({self})")
    }
}

/// As in the header: `sha256=…` with digits in lower case.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::with_capacity(8 + 128);
        text.push_str(self.method.name());
        text.push('=');
        for byte in self.as_bytes() {
            write!(text, "{byte:02x}")?;
        }
        f.write_str(&text)
    }
}

impl FromStr for Signature {
    type Err = SignatureError;

    /// Reads a header's value. Lenient: digits in any letter case, blanks around.
    fn from_str(value: &str) -> Result<Self, SignatureError> {
        if value.len() > MAX_SIGNATURE_LENGTH {
            return Err(SignatureError::TooLong);
        }
        let (method, digits) = value.trim_ascii().split_once('=').ok_or(SignatureError::Syntax)?;
        let method: Method = method.parse()?;
        if digits.len() != method.length() * 2 {
            return Err(SignatureError::Syntax);
        }
        let mut bytes = [0; 64];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks_exact(2)) {
            let digit = |digit: u8| char::from(digit).to_digit(16).ok_or(SignatureError::Syntax);
            *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
        }
        Ok(Self { method, bytes })
    }
}

/// A method and a secret, prepared: the secret is worked in once, so a signature costs one pass
/// over the bytes.
#[derive(Clone)]
pub struct Key(State);

#[derive(Clone)]
enum State {
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
    Sha384(Hmac<Sha384>),
    Sha512(Hmac<Sha512>),
}

impl Key {
    /// Prepares a secret of any length.
    pub fn new(method: Method, secret: &[u8]) -> Self {
        // An HMAC key may have any length [rfc2104 §3]: this cannot fail.
        fn keyed<M: KeyInit>(secret: &[u8]) -> M {
            M::new_from_slice(secret).expect("an HMAC key may have any length")
        }
        Self(match method {
            Method::Sha1 => State::Sha1(keyed(secret)),
            Method::Sha256 => State::Sha256(keyed(secret)),
            Method::Sha384 => State::Sha384(keyed(secret)),
            Method::Sha512 => State::Sha512(keyed(secret)),
        })
    }

    /// Method that signs the bytes.
    pub fn method(&self) -> Method {
        match self.0 {
            State::Sha1(_) => Method::Sha1,
            State::Sha256(_) => Method::Sha256,
            State::Sha384(_) => Method::Sha384,
            State::Sha512(_) => Method::Sha512,
        }
    }

    /// The signature of a body.
    pub fn sign(&self, body: &[u8]) -> Signature {
        fn made<M: Mac + Clone>(state: &M, body: &[u8]) -> hmac::digest::Output<M> {
            let mut state = state.clone();
            state.update(body);
            state.finalize().into_bytes()
        }
        let method = self.method();
        match &self.0 {
            State::Sha1(state) => Signature::new(method, &made(state, body)),
            State::Sha256(state) => Signature::new(method, &made(state, body)),
            State::Sha384(state) => Signature::new(method, &made(state, body)),
            State::Sha512(state) => Signature::new(method, &made(state, body)),
        }
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({}, hidden)", self.method())
    }
}

/// Is a delivery signed with that secret, by a method no weaker than `least`? [websub §7.1.2]
///
/// `values` are the values of the header in their order: only the first one counts, so that nobody
/// chooses by adding another.
///
/// # Examples
/// ```
/// use abreast_websub::{Key, Method, SignatureError, verify};
///
/// let (secret, body) = (b"3f9c0d27", b"<urlset/>");
/// let header = Key::new(Method::Sha1, secret).sign(body).to_string();
/// assert_eq!(verify(secret, Method::Sha1, [header.as_str()], body), Ok(Method::Sha1));
/// let weak = SignatureError::Weak { used: Method::Sha1, least: Method::Sha256 };
/// assert_eq!(verify(secret, Method::Sha256, [header.as_str()], body), Err(weak));
/// ```
///
/// # Errors
/// See [`SignatureError`].
pub fn verify<'a>(
    secret: &[u8],
    least: Method,
    values: impl IntoIterator<Item = &'a str>,
    body: &[u8],
) -> Result<Method, SignatureError> {
    let value = values.into_iter().next().ok_or(SignatureError::Missing)?;
    let signature: Signature = value.parse()?;
    if signature.method < least {
        return Err(SignatureError::Weak { used: signature.method, least });
    }
    if Key::new(signature.method, secret).sign(body) == signature {
        Ok(signature.method)
    } else {
        Err(SignatureError::Wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Made with another implementation: `openssl dgst -hmac Jefe`.
    const MADE: [&str; 4] = [
        "sha1=effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
        "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        "sha384=af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
        "sha512=164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737",
    ];
    const BODY: &[u8] = b"what do ya want for nothing?";

    #[test]
    fn signatures_are_those_of_other_programs() {
        for (method, made) in Method::ALL.into_iter().zip(MADE) {
            let signature = Key::new(method, b"Jefe").sign(BODY);
            assert_eq!(signature.to_string(), made);
            assert_eq!(signature.as_bytes().len(), method.length());
            assert_eq!(verify(b"Jefe", Method::Sha1, [made], BODY), Ok(method));
            assert_eq!(
                verify(b"Jefe", Method::Sha1, [made.to_uppercase().as_str()], BODY),
                Ok(method)
            );
        }
    }

    #[test]
    fn another_secret_body_or_method_is_not_believed() {
        let made = MADE[1];
        assert_eq!(verify(b"jefe", Method::Sha256, [made], BODY), Err(SignatureError::Wrong));
        assert_eq!(verify(b"Jefe", Method::Sha256, [made], b"what"), Err(SignatureError::Wrong));
        let weak = SignatureError::Weak { used: Method::Sha1, least: Method::Sha256 };
        assert_eq!(verify(b"Jefe", Method::Sha256, [MADE[0]], BODY), Err(weak));
        assert_eq!(verify(b"Jefe", Method::Sha256, [], BODY), Err(SignatureError::Missing));
    }

    #[test]
    fn only_the_first_of_several_headers_counts() {
        let wrong = MADE[1].replace('b', "c");
        assert_eq!(verify(b"Jefe", Method::Sha1, [MADE[1], &wrong], BODY), Ok(Method::Sha256));
        assert_eq!(
            verify(b"Jefe", Method::Sha1, [wrong.as_str(), MADE[1]], BODY),
            Err(SignatureError::Wrong)
        );
        let both = format!("{}, {}", MADE[1], MADE[1]);
        assert_eq!(
            verify(b"Jefe", Method::Sha1, [both.as_str()], BODY),
            Err(SignatureError::Syntax)
        );
    }

    #[test]
    fn odd_headers_are_refused() {
        for (value, error) in [
            ("", SignatureError::Syntax),
            ("sha256", SignatureError::Syntax),
            ("sha256=", SignatureError::Syntax),
            ("sha256=zz", SignatureError::Syntax),
            ("md5=00", SignatureError::Method("md5".to_owned())),
            ("=00", SignatureError::Method(String::new())),
        ] {
            assert_eq!(value.parse::<Signature>().unwrap_err(), error, "{value}");
        }
        assert_eq!(format!("{}0000", MADE[1]).parse::<Signature>(), Err(SignatureError::Syntax));
        assert_eq!(MADE[1].replace('b', "g").parse::<Signature>(), Err(SignatureError::Syntax));
        assert_eq!("s".repeat(10_000).parse::<Signature>(), Err(SignatureError::TooLong));
    }

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(format!("{:?}", Key::new(Method::Sha256, b"Jefe")), "Key(sha256, hidden)");
    }

    proptest! {
        #[test]
        fn only_unchanged_signed_bytes_verify(
            secret in proptest::collection::vec(any::<u8>(), 1..200),
            mut body: Vec<u8>,
            method in 0..4_usize,
            at: usize,
        ) {
            let signature = Key::new(Method::ALL[method], &secret).sign(&body);
            let text = signature.to_string();
            prop_assert_eq!(text.parse::<Signature>(), Ok(signature));
            prop_assert!(verify(&secret, Method::Sha1, [text.as_str()], &body).is_ok());
            body.insert(at % (body.len() + 1), 1);
            prop_assert_eq!(verify(&secret, Method::Sha1, [text.as_str()], &body), Err(SignatureError::Wrong));
        }

        #[test]
        fn no_header_panics(value: String) {
            let _ = value.parse::<Signature>();
        }
    }
}
