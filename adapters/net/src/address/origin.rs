//! The server of a URL, and the request target that is sent to the server.

use http::HeaderValue;
use http::uri::PathAndQuery;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use url::Url;

use crate::address::error::{Error, ErrorKind};
use crate::address::secret::Authorization;

/// Longest URL accepted, in bytes.
const MAX_URL_BYTES: usize = 8 << 10;

/// Characters that must be percent-encoded in a path or query. `%` is excluded: existing encodings
/// are not changed. Lenient: `[` and `]` are sent raw, as all browsers do.
const ILLEGAL: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// A URL split into two parts, without interpreting either.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    /// Scheme and authority as written, user and password included.
    pub(crate) origin: &'a str,
    /// Path and query as written, without the fragment; may be empty or start with `?`.
    pub(crate) path: &'a str,
}

impl<'a> Target<'a> {
    pub(crate) fn split(url: &'a str) -> Result<Self, Error> {
        if url.len() > MAX_URL_BYTES {
            let head: String = url.chars().take(100).collect();
            return Err(Error::new(
                ErrorKind::Url,
                &head,
                format!("the URL is longer than {MAX_URL_BYTES} bytes"),
            ));
        }
        let bytes = url.as_bytes();
        let scheme_end = if starts_with_ignoring_case(bytes, b"http://") {
            7
        } else if starts_with_ignoring_case(bytes, b"https://") {
            8
        } else {
            return Err(Error::new(
                ErrorKind::Scheme,
                url,
                "only http and https URLs can be fetched",
            ));
        };
        let rest = &bytes[scheme_end..];
        let length =
            rest.iter().position(|b| matches!(b, b'/' | b'?' | b'#')).unwrap_or(rest.len());
        let (origin, path) = url.split_at(scheme_end + length);
        let path = path.split_once('#').map_or(path, |(path, _fragment)| path);
        Ok(Self { origin, path })
    }

    /// Path and query, encoded for the request line.
    pub(crate) fn path_and_query(&self) -> Result<PathAndQuery, Error> {
        let legal = self.path.bytes().all(|b| {
            b.is_ascii()
                && !matches!(
                    b,
                    0..=b' ' | 0x7f | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}'
                )
        });
        let parsed = if legal && self.path.starts_with('/') {
            PathAndQuery::try_from(self.path)
        } else {
            let slash = if self.path.starts_with('/') { "" } else { "/" };
            PathAndQuery::try_from(format!("{slash}{}", utf8_percent_encode(self.path, ILLEGAL)))
        };
        parsed.map_err(|e| {
            let url = format!("{}{}", self.origin, self.path);
            Error::new(ErrorKind::Url, &url, "the path cannot be sent").with_cause(e)
        })
    }
}

fn starts_with_ignoring_case(bytes: &[u8], prefix: &[u8]) -> bool {
    bytes.get(..prefix.len()).is_some_and(|head| head.eq_ignore_ascii_case(prefix))
}

/// A server: scheme, host and port.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) https: bool,
    /// Name or address for the resolver and the certificate; IPv6 without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// The value of the `Host` header.
    pub(crate) host_header: HeaderValue,
    /// `scheme://host:port` in a normal form, for comparison and as key of limits.
    pub(crate) key: String,
    /// User and password of the URL, if any.
    pub(crate) credentials: Option<Authorization>,
}

impl Origin {
    /// Parses scheme and authority. Slow, but called once per origin.
    pub(crate) fn parse(origin: &str) -> Result<Self, Error> {
        // The callers add the whole URL: this part may contain a part of a password.
        let wrong = |message: &str| Error::new(ErrorKind::Url, "", message);
        // The `url` crate would silently replace these characters, as browsers do.
        if origin.bytes().any(|b| matches!(b, 0..=b' ' | b'\\' | 0x7f)) {
            return Err(wrong("the host has characters no host may have"));
        }
        let url = Url::parse(origin).map_err(|e| wrong("the URL cannot be read").with_cause(e))?;
        let host = url
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| wrong("the URL has no host"))?;
        let https = url.scheme() == "https";
        let port = url.port_or_known_default().ok_or_else(|| wrong("the URL has no port"))?;
        let host_header = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let credentials = (!url.username().is_empty() || url.password().is_some()).then(|| {
            let decode = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
            Authorization::basic(
                &decode(url.username()),
                &decode(url.password().unwrap_or_default()),
            )
        });
        Ok(Self {
            https,
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port,
            host_header: HeaderValue::from_str(&host_header)
                .map_err(|e| wrong("the host cannot be sent").with_cause(e))?,
            key: format!("{}://{host}:{port}", url.scheme()),
            credentials,
        })
    }
}

/// Checks that a URL can be requested: http or https, a host, and no more bytes than a request may
/// have.
///
/// # Examples
/// ```
/// use abreast_net::{ErrorKind, check_url};
///
/// assert!(check_url("https://repo.example/changelist.xml").is_ok());
/// let error = check_url("ftp://repo.example/changelist.xml").unwrap_err();
/// assert_eq!((error.kind(), error.code()), (ErrorKind::Scheme, "uri.authority"));
/// ```
///
/// # Errors
/// `uri.authority` for another scheme, `uri.syntax` for anything else.
pub fn check_url(url: &str) -> Result<(), Error> {
    let target = Target::split(url)?;
    Origin::parse(target.origin).map_err(|error| error.with_url(url))?;
    target.path_and_query().map(|_| ())
}

impl Authorization {
    /// The user and the password before the host of a URL; `None` for a URL without them.
    ///
    /// # Examples
    /// ```
    /// use abreast_net::Authorization;
    ///
    /// let login = Authorization::of_url("https://mirror:s3cret@repo.example/").expect("a login");
    /// assert_eq!(format!("{login:?}"), "Authorization(hidden)");
    /// assert!(Authorization::of_url("https://repo.example/").is_none());
    /// ```
    pub fn of_url(url: &str) -> Option<Self> {
        Origin::parse(Target::split(url).ok()?.origin).ok()?.credentials
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::userinfo::without_userinfo;

    fn wire(url: &str) -> String {
        Target::split(url).unwrap().path_and_query().unwrap().as_str().to_owned()
    }

    #[test]
    fn path_is_sent_byte_for_byte() {
        for path in
            ["/a/%2e%2E/./b//c/../d?x=%zz&y=%", "/a;b=c,d:@!$&'()*+~-._?/?[1]", "/%C3%A9%c3%a9"]
        {
            assert_eq!(wire(&format!("http://example.org{path}")), path);
        }
    }

    #[test]
    fn illegal_characters_are_encoded_and_the_fragment_dropped() {
        assert_eq!(wire("http://example.org/a b/é\t{x}#part?no"), "/a%20b/%C3%A9%09%7Bx%7D");
        assert_eq!(wire("http://example.org"), "/");
        assert_eq!(wire("http://example.org?q=1#f"), "/?q=1");
    }

    #[test]
    fn a_line_end_in_the_path_cannot_split_the_request() {
        assert_eq!(wire("http://example.org/a HTTP/1.1\r\nX: y"), "/a%20HTTP/1.1%0D%0AX:%20y");
    }

    #[test]
    fn spellings_of_one_origin_share_a_key() {
        let key = |text| Origin::parse(text).unwrap().key;
        assert_eq!(key("http://Example.ORG"), key("HTTP://example.org:80"));
        assert_ne!(key("http://example.org"), key("https://example.org"));
        assert_ne!(key("http://example.org"), key("http://example.org:81"));
        assert_eq!(Origin::parse("http://[::1]:8080").unwrap().host, "::1");
    }

    #[test]
    fn user_and_password_become_credentials_and_leave_the_text() {
        let origin = Origin::parse("http://me:p%40ss@example.org").unwrap();
        assert_eq!(origin.credentials.unwrap().value().to_str().unwrap(), "Basic bWU6cEBzcw==");
        assert_eq!(without_userinfo("http://me:p@ss@example.org/a@b"), "http://example.org/a@b");
        assert_eq!(without_userinfo("http://example.org/a@b"), "http://example.org/a@b");
    }

    #[test]
    fn other_schemes_and_malformed_hosts_are_refused() {
        for (url, code) in [
            ("file:///etc/passwd", "uri.authority"),
            ("data:,x", "uri.authority"),
            ("ftp://example.org/", "uri.authority"),
            ("/relative", "uri.authority"),
        ] {
            assert_eq!(Target::split(url).unwrap_err().code(), code, "{url}");
        }
        for origin in [
            "http://",
            "http://good.example\\@bad.example",
            "http://a b",
            "http://host:99999",
            "http://[::1",
        ] {
            assert_eq!(Origin::parse(origin).unwrap_err().code(), "uri.syntax", "{origin}");
        }
        assert_eq!(
            Target::split(&format!("http://h/{}", "a".repeat(9000))).unwrap_err().code(),
            "uri.syntax"
        );
    }
}
