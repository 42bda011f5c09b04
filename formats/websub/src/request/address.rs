//! URLs of topics and callbacks. Their text is checked and never changed [websub §5.1].

use abreast_webtypes::{MAX_URI_LENGTH, excerpt, without_login};
use thiserror::Error;
use url::Url;

/// Why a URL cannot be a topic or a callback.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The URL has more than [`MAX_URI_LENGTH`] bytes.
    #[error("longer than {MAX_URI_LENGTH} bytes")]
    TooLong,
    /// White space, control characters or others that a URL must percent-encode.
    #[error("`{0}` has characters in it that a URL must percent-encode")]
    Character(String),
    /// Not absolute, or not a URL.
    #[error("`{0}` is not an absolute URL")]
    NotAbsolute(String),
    /// Neither `http` nor `https`, or no host.
    #[error("`{0}` begins with neither `http://` nor `https://`")]
    Scheme(String),
    /// A name or password before the host.
    #[error("a user name or password stands in the URL")]
    Credentials,
    /// A fragment, which no client sends to a server.
    #[error("`{0}` has a `#` in it; what follows it is never sent")]
    Fragment(String),
}

/// Checks that a URL can be a topic [websub §5.1].
///
/// # Examples
/// ```
/// use abreast_websub::{AddressError, check_topic};
///
/// assert_eq!(check_topic("https://library.example/feed?set=maps"), Ok(()));
/// let fault = check_topic("https://library.example/feed#top");
/// assert!(matches!(fault, Err(AddressError::Fragment(_))));
/// ```
///
/// # Errors
/// See [`AddressError`].
pub fn check_topic(url: &str) -> Result<(), AddressError> {
    check(url)
}

/// Checks that a URL can be a callback. The check is of the text only: a name may lead to any host,
/// so a hub decides separately which callbacks it allows.
///
/// # Examples
/// ```
/// use abreast_websub::{AddressError, check_callback};
///
/// assert_eq!(check_callback("https://mirror.example/in?box=7"), Ok(()));
/// let fault = check_callback("https://me:hush@mirror.example/in");
/// assert_eq!(fault, Err(AddressError::Credentials));
/// ```
///
/// # Errors
/// See [`AddressError`].
pub fn check_callback(url: &str) -> Result<(), AddressError> {
    check(url)
}

/// The text for a message: cut, and without a password.
fn shown(text: &str) -> String {
    excerpt(&without_login(text))
}

fn check(text: &str) -> Result<(), AddressError> {
    if text.len() > MAX_URI_LENGTH {
        return Err(AddressError::TooLong);
    }
    // Stricter than URL parsers, which drop or encode such characters: hubs compare and send the
    // text itself.
    if !text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"' | b'\\'))
    {
        return Err(AddressError::Character(shown(text)));
    }
    let url = Url::parse(text).map_err(|_| AddressError::NotAbsolute(shown(text)))?;
    let has_slashes = text.split_once(':').is_some_and(|(_, rest)| rest.starts_with("//"));
    if !matches!(url.scheme(), "http" | "https")
        || !has_slashes
        || url.host_str().is_none_or(str::is_empty)
    {
        return Err(AddressError::Scheme(shown(text)));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(AddressError::Credentials);
    }
    if text.contains('#') {
        return Err(AddressError::Fragment(shown(text)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_the_web_are_taken() {
        for url in [
            "http://example.org",
            "HTTPS://Example.org:8443/a%20b?c=d&e={f}|",
            "http://[::1]:1/",
            "http://1/",
        ] {
            assert_eq!(check_callback(url), Ok(()), "{url}");
        }
    }

    #[test]
    fn anything_else_is_refused_with_its_reason() {
        type ErrorMatcher = fn(&AddressError) -> bool;
        let cases: [(&str, ErrorMatcher); 13] = [
            ("", |e| matches!(e, AddressError::NotAbsolute(_))),
            ("/a", |e| matches!(e, AddressError::NotAbsolute(_))),
            ("http://", |e| matches!(e, AddressError::NotAbsolute(_))),
            ("http:example.org", |e| matches!(e, AddressError::Scheme(_))),
            ("file:///etc/passwd", |e| matches!(e, AddressError::Scheme(_))),
            ("javascript:alert(1)", |e| matches!(e, AddressError::Scheme(_))),
            ("ftp://example.org/", |e| matches!(e, AddressError::Scheme(_))),
            ("http://a b/", |e| matches!(e, AddressError::Character(_))),
            ("http://example.org/\r\nX: y", |e| matches!(e, AddressError::Character(_))),
            ("http://example.org\\@evil.example/", |e| matches!(e, AddressError::Character(_))),
            ("http://example.org/ä", |e| matches!(e, AddressError::Character(_))),
            ("http://u:p@example.org/", |e| matches!(e, AddressError::Credentials)),
            ("http://example.org/#a", |e| matches!(e, AddressError::Fragment(_))),
        ];
        for (url, is) in cases {
            let error = check_topic(url).unwrap_err();
            assert!(is(&error), "{url}: {error:?}");
        }
        assert_eq!(
            check_topic(&format!("http://e/{}", "a".repeat(MAX_URI_LENGTH))),
            Err(AddressError::TooLong)
        );
    }
}
