//! Credentials that are never printed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

use crate::address::error::{Error, ErrorKind};

/// The value of an `Authorization` header; `Debug` hides it.
///
/// The client sends it to the origin of the request's URL only, never after a redirect to another
/// scheme, host or port.
#[derive(Clone, PartialEq, Eq)]
pub struct Authorization(HeaderValue);

impl Authorization {
    /// Credentials of the scheme `Basic`: a user and a password.
    pub fn basic(user: &str, password: &str) -> Self {
        let text = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
        Self(sensitive(HeaderValue::from_str(&text).expect("base64 is a legal header value")))
    }

    /// A bearer token.
    ///
    /// # Errors
    /// `http.header` when the token has characters that a header may not contain.
    pub fn bearer(token: &str) -> Result<Self, Error> {
        Self::raw(&format!("Bearer {token}"))
    }

    /// The whole header value as given.
    ///
    /// # Errors
    /// `http.header` when the value has characters that a header may not contain.
    pub fn raw(value: &str) -> Result<Self, Error> {
        match HeaderValue::from_str(value) {
            Ok(value) => Ok(Self(sensitive(value))),
            Err(_) => Err(Error::new(
                ErrorKind::Header,
                "",
                "the credentials have characters no header may have",
            )
            .with_help("remove line ends and control characters from the configured secret")),
        }
    }

    pub(crate) fn value(&self) -> &HeaderValue {
        &self.0
    }
}

impl std::fmt::Debug for Authorization {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Authorization(hidden)")
    }
}

fn sensitive(mut value: HeaderValue) -> HeaderValue {
    value.set_sensitive(true);
    value
}
