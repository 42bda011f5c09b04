//! Redirects: the target, and whether it may be followed.

use abreast_webtypes::has_scheme;
use http::StatusCode;
use url::Url;

use crate::address::error::{Error, ErrorKind};
use crate::address::origin::Target;
use crate::address::userinfo::without_userinfo;

pub(crate) fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The next URL. An absolute location is used as written, a relative location is resolved. User and
/// password in the location are removed, because a server must not choose our credentials.
pub(crate) fn next_url(
    current: &str,
    location: Option<&[u8]>,
    allow_downgrade: bool,
) -> Result<String, Error> {
    let refuse = |message: String| Error::new(ErrorKind::Redirect, current, message);
    let location =
        location.ok_or_else(|| refuse("the server redirects without a `Location`".into()))?;
    let location = std::str::from_utf8(location)
        .map_err(|_| refuse("the redirect's location is not readable text".into()))?
        .trim();
    let origin = Target::split(current)?.origin;
    let next = if has_scheme(location) {
        location.to_owned()
    } else if location.starts_with("//") {
        let scheme = origin.split_once(':').map_or("http", |(scheme, _)| scheme);
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{origin}{location}")
    } else {
        let base = Url::parse(current)
            .map_err(|e| refuse("the redirect's base cannot be read".into()).with_cause(e))?;
        let joined = base.join(location);
        joined
            .map_err(|e| {
                refuse(format!("the redirect to {location:?} cannot be resolved")).with_cause(e)
            })?
            .into()
    };
    let next = without_userinfo(next.split_once('#').map_or(next.as_str(), |(url, _)| url));
    if Target::split(&next).is_err() {
        let shown: String = next.chars().take(200).collect();
        return Err(refuse(format!(
            "the server redirects to {shown:?}, which is not an http(s) URL"
        )));
    }
    let is_https = |url: &str| url.get(..6).is_some_and(|s| s.eq_ignore_ascii_case("https:"));
    if is_https(current) && !is_https(&next) && !allow_downgrade {
        return Err(Error::new(
            ErrorKind::Downgrade,
            current,
            format!("the server redirects from https to {next:?}"),
        )
        .with_help("if this is intended, run with `--allow-downgrade`"));
    }
    Ok(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(current: &str, location: &str) -> Result<String, &'static str> {
        next_url(current, Some(location.as_bytes()), false).map_err(|e| e.code())
    }

    #[test]
    fn locations_are_resolved_and_absolute_ones_kept_as_written() {
        let from = "http://example.org/a/b?q";
        assert_eq!(
            next(from, "http://other.example/%2e%2e/X#f").unwrap(),
            "http://other.example/%2e%2e/X"
        );
        assert_eq!(next(from, "/c/%7e./../d").unwrap(), "http://example.org/c/%7e./../d");
        assert_eq!(next(from, "//other.example/c").unwrap(), "http://other.example/c");
        assert_eq!(next(from, "../c?x=a:b").unwrap(), "http://example.org/c?x=a:b");
        assert_eq!(next(from, "?r").unwrap(), "http://example.org/a/b?r");
    }

    #[test]
    fn only_http_and_https_are_followed() {
        for location in [
            "file:///etc/passwd",
            "data:,x",
            "ftp://example.org/",
            "gopher://x/",
            "javascript:1",
            "http:/x",
            "http:x",
        ] {
            assert_eq!(next("http://example.org/", location), Err("http.redirect"), "{location}");
        }
        assert_eq!(
            next_url("http://example.org/", None, false).unwrap_err().code(),
            "http.redirect"
        );
        assert_eq!(
            next_url("http://example.org/", Some(b"\xff"), false).unwrap_err().code(),
            "http.redirect"
        );
    }

    #[test]
    fn leaving_https_is_refused_unless_allowed() {
        assert_eq!(next("https://example.org/", "http://example.org/"), Err("http.downgrade"));
        assert!(next_url("https://example.org/", Some(b"HTTP://example.org/"), true).is_ok());
        assert!(next("HTTPS://example.org/", "/same").is_ok());
        assert!(next("http://example.org/", "https://example.org/").is_ok());
    }

    #[test]
    fn a_server_cannot_choose_our_credentials() {
        assert_eq!(
            next("http://example.org/", "http://a:b@other.example/").unwrap(),
            "http://other.example/"
        );
    }
}
