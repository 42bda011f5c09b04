//! Sessions of administrators: a cookie with the token.
//!
//! The token is checked for each request, so that a revoked token ends the session, and every node
//! accepts it. Scripts cannot read the cookie, and browsers send it to `/admin` only and not with
//! requests of other sites.

use crate::site::served::Site;
use crate::site::tokens::Scope;
use http::header::{COOKIE, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue};

const NAME: &str = "abreast_admin";
/// An administrator signs in again after this many seconds.
const SESSION_SECONDS: u32 = 12 * 3_600;
/// Most bytes of a token.
const MAX_TOKEN: usize = 256;

/// An administrator who is signed in.
pub(super) struct Session {
    /// Name of the token.
    pub(super) name: String,
}

/// The result of an attempt to sign in.
pub(super) enum SignIn {
    /// The value of `Set-Cookie`.
    Admitted(HeaderValue),
    /// The reason for users.
    Refused(String),
}

impl Session {
    /// The session of a request, if its cookie has a valid token.
    pub(super) fn of(site: &Site, headers: &HeaderMap) -> Option<Self> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == NAME).then_some(value)
        });
        pairs.find_map(|token| admitted(site, token).ok()).map(|name| Self { name })
    }

    /// The value of `Set-Cookie` that ends a session.
    pub(super) fn ended(headers: &HeaderMap) -> HeaderValue {
        cookie("", 0, headers)
    }
}

/// Checks the token of a form.
pub(super) fn sign_in(site: &Site, headers: &HeaderMap, token: Option<&str>) -> SignIn {
    let token = token.unwrap_or_default().trim();
    match admitted(site, token) {
        Ok(_) => SignIn::Admitted(cookie(token, SESSION_SECONDS, headers)),
        Err(reason) => SignIn::Refused(reason),
    }
}

/// The name of a token with the scope `admin` for all sets; else the reason for users.
fn admitted(site: &Site, token: &str) -> Result<String, String> {
    if token.is_empty() || token.len() > MAX_TOKEN {
        return Err("Enter a token.".to_owned());
    }
    let tokens = site.api.as_ref().map(|api| &api.tokens);
    let Some(tokens) = tokens else { return Err("This server has no tokens.".to_owned()) };
    match tokens.find(token) {
        Some(found) if found.allows(Scope::Admin, None) => Ok(found.name),
        Some(found) => Err(format!(
            "The token {} does not have the scope admin for all sets.",
            found.name
        )),
        None if tokens.is_damaged() => {
            Err("No token can be checked, since the file of tokens is damaged: abreast repair restores it.".to_owned())
        }
        None => Err("There is no such token.".to_owned()),
    }
}

/// The value of `Set-Cookie`. Without `Path`, browsers send the cookie to `/admin` only, also if a
/// proxy adds a prefix [rfc6265 §5.1.4].
fn cookie(token: &str, seconds: u32, headers: &HeaderMap) -> HeaderValue {
    // Browsers do not send cookies with `Secure` over HTTP.
    let origin = headers.get(ORIGIN).map(HeaderValue::as_bytes).unwrap_or_default();
    let secure = if origin.starts_with(b"https:") { "; Secure" } else { "" };
    let text = format!("{NAME}={token}; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("abreast_admin="))
}

/// Whether a page of this server sent the form. Browsers send the origin of the page with each POST;
/// sandboxed pages have the origin `null`.
pub(super) fn is_from_own_page(headers: &HeaderMap) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site.as_bytes() == b"same-origin";
    }
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let (Some(origin), Some(host)) = (text(ORIGIN), text(HOST)) else { return false };
    origin.split_once("://").is_some_and(|(_, authority)| authority.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pairs = pairs.iter();
        pairs.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn only_forms_of_own_pages_are_accepted() {
        let host = ("host", "h.example:8080");
        for (pairs, expected) in [
            (vec![host, ("origin", "http://h.example:8080")], true),
            (vec![host, ("origin", "null"), ("sec-fetch-site", "same-origin")], true),
            (vec![host, ("origin", "null")], false),
            (vec![host, ("origin", "https://evil.example")], false),
            (vec![host, ("origin", "http://h.example:8081")], false),
            (
                vec![host, ("origin", "http://h.example:8080"), ("sec-fetch-site", "cross-site")],
                false,
            ),
            (
                vec![host, ("origin", "http://h.example:8080"), ("sec-fetch-site", "same-site")],
                false,
            ),
            (vec![host, ("sec-fetch-site", "none")], false),
            (vec![host], false),
        ] {
            assert_eq!(is_from_own_page(&headers(&pairs)), expected, "{pairs:?}");
        }
    }

    #[test]
    fn cookies_are_for_the_server_only() {
        let plain = cookie("t", 60, &headers(&[("origin", "http://h.example")]));
        assert_eq!(plain, "abreast_admin=t; Max-Age=60; HttpOnly; SameSite=Strict");
        let secure = cookie("t", 60, &headers(&[("origin", "https://h.example")]));
        assert_eq!(secure, "abreast_admin=t; Max-Age=60; HttpOnly; SameSite=Strict; Secure");
    }
}
