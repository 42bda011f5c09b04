//! Resolution of references, and the host of a URI. The text of a URI is its identity [rfc3986
//! §6.2.1].

use thiserror::Error;
use url::Url;

/// Most bytes in one URI; longer URIs are refused.
pub const MAX_URI_LENGTH: usize = 8 * 1_024;

/// Scheme, host and port: what authority and credentials are bound to [rfc6454 §4].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    /// Scheme of the URI, in lower case.
    pub scheme: String,
    /// Host in lower case, international names in their ASCII form, IPv6 in brackets.
    pub host: String,
    /// The scheme's default when none is written.
    pub port: u16,
}

impl Origin {
    /// The origin of an absolute URI; `None` for relative references and schemes without host or
    /// known port.
    ///
    /// # Examples
    /// ```
    /// use abreast_webtypes::Origin;
    ///
    /// let page = Origin::of("https://Library.example/maps").expect("an absolute URI");
    /// assert_eq!(page.to_string(), "https://library.example:443");
    /// assert_ne!(Some(page), Origin::of("http://library.example/maps"));
    /// assert_eq!(Origin::of("urn:isbn:9780262510875"), None);
    /// ```
    pub fn of(uri: &str) -> Option<Self> {
        if uri.len() > MAX_URI_LENGTH {
            return None;
        }
        let url = Url::parse(uri).ok()?;
        Some(Self {
            scheme: url.scheme().to_owned(),
            host: url.host_str().filter(|host| !host.is_empty())?.to_owned(),
            port: url.port_or_known_default()?,
        })
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}:{}", self.scheme, self.host, self.port)
    }
}

/// Why a reference leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// The URI has more than [`MAX_URI_LENGTH`] bytes.
    #[error("a URI is longer than {MAX_URI_LENGTH} bytes")]
    TooLong,
    /// White space or a control character inside.
    #[error("`{0}` has white space or control characters in it")]
    Character(String),
    /// The base is not absolute, or the two make no URI.
    #[error("`{reference}` cannot be resolved against `{base}`: {cause}")]
    Unresolvable {
        /// The reference, shortened for a message.
        reference: String,
        /// The base, shortened for a message.
        base: String,
        /// The error of the URL parser.
        cause: url::ParseError,
    },
}

/// Resolves a reference in a document at `base` [rfc3986 §5].
///
/// An absolute URI is returned exactly as written, without normalising anything: two spellings are
/// two resources unless their publisher declares them equal. Only relative references are resolved.
///
/// # Examples
/// ```
/// use abreast_webtypes::resolve;
///
/// let list = "https://repo.example/rs/resourcelist.xml";
/// assert_eq!(resolve(list, "../items/7")?, "https://repo.example/items/7");
/// assert_eq!(resolve(list, "urn:isbn:9780262510875")?, "urn:isbn:9780262510875");
/// assert!(resolve(list, "items/a b").is_err());
/// # Ok::<(), abreast_webtypes::ResolveError>(())
/// ```
///
/// # Errors
/// See [`ResolveError`].
pub fn resolve(base: &str, reference: &str) -> Result<String, ResolveError> {
    let reference = reference.trim_ascii();
    if reference.len() > MAX_URI_LENGTH {
        return Err(ResolveError::TooLong);
    }
    if reference.bytes().any(|byte| byte <= b' ' || byte == 0x7f) {
        return Err(ResolveError::Character(crate::excerpt(reference)));
    }
    if has_scheme(reference) {
        return Ok(reference.to_owned());
    }
    let unresolvable = |cause| ResolveError::Unresolvable {
        reference: crate::excerpt(reference),
        base: crate::excerpt(base),
        cause,
    };
    if base.len() > MAX_URI_LENGTH {
        return Err(ResolveError::TooLong);
    }
    let resolved = Url::parse(base).and_then(|base| base.join(reference)).map_err(unresolvable)?;
    if resolved.as_str().len() > MAX_URI_LENGTH {
        return Err(ResolveError::TooLong);
    }
    Ok(resolved.into())
}

/// The URI without its fragment and the `#`.
///
/// # Examples
/// ```
/// use abreast_webtypes::without_fragment;
///
/// let concept = "https://library.example/subjects#maps";
/// assert_eq!(without_fragment(concept), "https://library.example/subjects");
/// ```
pub fn without_fragment(uri: &str) -> &str {
    uri.split_once('#').map_or(uri, |(before, _)| before)
}

/// Whether a text starts with a scheme and a colon [rfc3986 §3.1].
///
/// # Examples
/// ```
/// use abreast_webtypes::has_scheme;
///
/// assert!(has_scheme("urn:isbn:9780262510875"));
/// // A colon in a later segment does not end a scheme.
/// assert!(!has_scheme("items/ark:12148"));
/// ```
pub fn has_scheme(reference: &str) -> bool {
    let scheme = reference.split_once(':').map_or("", |(scheme, _)| scheme).as_bytes();
    let is_character =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.first().is_some_and(u8::is_ascii_alphabetic) && scheme.iter().all(is_character)
}

/// The fault of a relative or empty reference.
pub const NOT_ABSOLUTE: &str = "is not absolute";
const NO_SLASHES: &str = "has no `//` behind its scheme";
const NO_HOST: &str = "has no host";
const PORT: &str = "has a port that is not a number up to 65535";
const HOST: &str = "has a host that is not a name or an address";
/// The faults of addresses that nothing is requested from.
pub const UNUSABLE: [&str; 4] = [NO_SLASHES, NO_HOST, PORT, HOST];

/// The fault of a URI or IRI that must be absolute and usable, with any characters [rfc3986 §4.3].
///
/// # Examples
/// ```
/// use abreast_webtypes::absolute_fault;
///
/// assert_eq!(absolute_fault("https://repo.example/items/7"), None);
/// assert_eq!(absolute_fault("items/7"), Some("is not absolute"));
/// assert_eq!(absolute_fault("https:/repo.example/items/7"), Some("has no `//` behind its scheme"));
/// ```
pub fn absolute_fault(uri: &str) -> Option<&'static str> {
    let Some((scheme, rest)) = uri.split_once(':').filter(|_| has_scheme(uri)) else {
        return Some(NOT_ABSOLUTE);
    };
    let is_web = ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
    if is_web { web_fault(uri, rest) } else { None }
}

/// The fault of a web address, judged by the text after its scheme. Clients repair such addresses
/// in different ways [rfc9110 §4.2].
fn web_fault(uri: &str, rest: &str) -> Option<&'static str> {
    let Some(rest) = rest.strip_prefix("//") else { return Some(NO_SLASHES) };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with(':') {
        return Some(NO_HOST);
    }
    // Most hosts are names in ASCII, without a port.
    let is_name = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'.' | b'-');
    if host.bytes().all(is_name) {
        return None;
    }
    match Url::parse(uri) {
        Ok(_) => None,
        Err(url::ParseError::InvalidPort) => Some(PORT),
        Err(_) => Some(HOST),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn absolute_uris_keep_their_exact_text() {
        for uri in [
            "HTTP://Example.org:80/%7ea/../b?",
            "http://example.org",
            "urn:x:Y",
            "http://example.org/ä",
        ] {
            assert_eq!(resolve("http://example.org/list", uri).unwrap(), uri);
        }
    }

    #[test]
    fn relative_references_are_resolved() {
        for (reference, expected) in [
            ("b", "http://example.org/a/b"),
            ("../b?c#d", "http://example.org/b?c#d"),
            ("//other.example/x", "http://other.example/x"),
            ("?q", "http://example.org/a/list?q"),
            ("", "http://example.org/a/list"),
            ("./a:b", "http://example.org/a/a:b"),
        ] {
            assert_eq!(
                resolve("http://example.org/a/list", reference).unwrap(),
                expected,
                "{reference}"
            );
        }
    }

    #[test]
    fn refuses_what_leads_nowhere() {
        assert!(matches!(resolve("http://example.org/", "a b"), Err(ResolveError::Character(_))));
        assert!(matches!(resolve("relative", "b"), Err(ResolveError::Unresolvable { .. })));
        assert_eq!(
            resolve("http://example.org/", &"a".repeat(MAX_URI_LENGTH + 1)),
            Err(ResolveError::TooLong)
        );
    }

    #[test]
    fn origins_compare_by_scheme_host_and_port() {
        assert_eq!(Origin::of("HTTP://Example.org/a"), Origin::of("http://example.org:80/b?c"));
        assert_ne!(Origin::of("https://example.org/"), Origin::of("http://example.org/"));
        assert_ne!(Origin::of("http://example.org:8080/"), Origin::of("http://example.org/"));
        assert_eq!(Origin::of("http://[::1]:99/").unwrap().to_string(), "http://[::1]:99");
        for uri in ["urn:a:b", "a/b", "file:///etc", "mailto:a@example.org", ""] {
            assert_eq!(Origin::of(uri), None, "{uri}");
        }
    }

    #[test]
    fn fragments_are_cut() {
        assert_eq!(without_fragment("http://example.org/a#b#c"), "http://example.org/a");
        assert_eq!(without_fragment("http://example.org/a"), "http://example.org/a");
    }

    proptest! {
        #[test]
        fn no_text_panics(base: String, reference: String) {
            let _ = resolve(&base, &reference);
            let _ = Origin::of(&reference);
        }
    }
}
