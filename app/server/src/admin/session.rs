//! Sign-in of administrators: a token starts a session, which a cookie continues.
//!
//! The cookie contains a random identifier instead of the token. The token of a session is checked
//! for each request, so that a revoked token ends the session. Nodes that share a store share the
//! sessions. Scripts cannot read the cookie, and
//! browsers send it to `/admin` only.

use crate::site::served::Site;
use crate::site::sessions::{SESSION_AGE, Sessions, SharedRecords};
use crate::site::tokens::Scope;
use http::header::{COOKIE, HOST, ORIGIN};
use http::{HeaderMap, HeaderValue};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;

/// Most bytes of a token.
const MAX_TOKEN: usize = 256;
/// Most cookies of a request with the name of this server's cookie that are examined.
const COOKIES_MAX: usize = 4;

/// Cookies of a server for administrators.
pub(super) struct Cookies<'r> {
    site: &'r Site,
    sessions: &'r Arc<Sessions>,
    headers: &'r HeaderMap,
    /// Name of the cookie. The ports of a host share cookies, so that each server has its own name.
    name: String,
}

/// An administrator who is signed in.
pub(super) struct Administrator {
    /// Name of the token.
    pub(super) name: String,
}

impl<'r> Cookies<'r> {
    /// The cookies of a request.
    pub(super) fn of(site: &'r Site, sessions: &'r Arc<Sessions>, headers: &'r HeaderMap) -> Self {
        let mut name = "abreast_admin_".to_owned();
        for byte in &Sha256::digest(site.publisher.urls().base())[..4] {
            // Writing to a string succeeds.
            let _ = write!(name, "{byte:02x}");
        }
        Self { site, sessions, headers, name }
    }

    /// The identifiers in the cookies.
    fn ids(&self) -> impl Iterator<Item = &'r str> {
        let cookies = self.headers.get_all(COOKIE).iter();
        let pairs =
            cookies.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(';'));
        pairs.filter_map(|pair| {
            let (name, value) = pair.trim().split_once('=')?;
            (name == self.name).then_some(value)
        })
    }

    /// Does work with the sessions, which waits for the store if several nodes share them.
    async fn with_sessions<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Sessions, &SharedRecords) -> T + Send + 'static,
    ) -> io::Result<T> {
        let shared = self.site.api.as_ref().and_then(|api| api.tokens.shared_records());
        if shared.is_none() {
            return Ok(work(self.sessions, &None));
        }
        let sessions = Arc::clone(self.sessions);
        let work = tokio::task::spawn_blocking(move || work(&sessions, &shared));
        work.await.map_err(io::Error::other)
    }

    /// The administrator of the session, if there is one and its token is still valid.
    pub(super) async fn administrator(&self) -> Option<Administrator> {
        let ids: Vec<String> = self.ids().take(COOKIES_MAX).map(str::to_owned).collect();
        if ids.is_empty() {
            return None;
        }
        let find = move |sessions: &Sessions, shared: &SharedRecords| {
            ids.iter().filter_map(|id| sessions.token(shared, id)).collect::<Vec<_>>()
        };
        let digests = self.with_sessions(find).await.ok()?;
        let tokens = self.site.api.as_ref()?.tokens.current();
        digests.iter().find_map(|digest| {
            let token = tokens.iter().find(|token| token.sha256 == *digest)?;
            token.allows(Scope::Admin, None).then(|| Administrator { name: token.name.clone() })
        })
    }

    /// Starts a session with a token: the name of the token, and the value of `Set-Cookie`; else the
    /// reason for users.
    pub(super) async fn sign_in(
        &self,
        token: Option<&str>,
    ) -> Result<(String, HeaderValue), String> {
        let text = token.unwrap_or_default().trim();
        if text.is_empty() || text.len() > MAX_TOKEN {
            return Err("Enter a token.".to_owned());
        }
        let tokens = self.site.api.as_ref().map(|api| &api.tokens);
        let Some(tokens) = tokens else { return Err("This server has no tokens.".to_owned()) };
        match tokens.find(text) {
            Some(token) if token.allows(Scope::Admin, None) => {
                let digest = token.sha256.clone();
                let id = self
                    .with_sessions(move |sessions, shared| sessions.start(shared, &digest))
                    .await
                    .and_then(|id| id)
                    .map_err(|error| format!("No session can be started: {error}."))?;
                Ok((token.name, self.cookie(&id, SESSION_AGE.as_secs())))
            }
            Some(token) => Err(format!(
                "The token {} does not have the scope admin for all sets.",
                token.name
            )),
            None if tokens.is_damaged() => Err(
                "No token can be checked, since the file of tokens is damaged: abreast repair restores it."
                    .to_owned(),
            ),
            None => Err("There is no such token.".to_owned()),
        }
    }

    /// Counts a refused attempt to sign in; returns the number to report, if it is time.
    pub(super) fn refuse(&self) -> Option<u64> {
        self.sessions.refuse()
    }

    /// Ends the session; returns the value of `Set-Cookie`.
    ///
    /// # Errors
    /// The session may still be open on other nodes.
    pub(super) async fn sign_out(&self) -> io::Result<HeaderValue> {
        let ids: Vec<String> = self.ids().take(COOKIES_MAX).map(str::to_owned).collect();
        let end = move |sessions: &Sessions, shared: &SharedRecords| {
            ids.iter().try_for_each(|id| sessions.end(shared, id))
        };
        self.with_sessions(end).await.and_then(|ended| ended)?;
        Ok(self.cookie("", 0))
    }

    /// The value of `Set-Cookie`. Without `Path`, browsers send the cookie to `/admin` only, also if a
    /// proxy adds a prefix [rfc6265 §5.1.4].
    fn cookie(&self, id: &str, seconds: u64) -> HeaderValue {
        let origin = self.headers.get(ORIGIN).map(HeaderValue::as_bytes).unwrap_or_default();
        // Browsers do not send cookies with `Secure` over HTTP.
        let is_secure = !origin.starts_with(b"http:")
            && (origin.starts_with(b"https:")
                || self.site.publisher.urls().base().starts_with("https:"));
        let secure = if is_secure { "; Secure" } else { "" };
        let name = &self.name;
        // `Lax`: links of other sites lead to the pages. Forms are checked by their origin.
        let text = format!("{name}={id}; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
        HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static(""))
    }
}

/// Whether a page of this server sent the form: at the address of the request, or at the public
/// address `base`. Browsers send the origin of the page with each POST; sandboxed pages have the
/// origin `null`.
pub(super) fn is_from_own_page(headers: &HeaderMap, base: &str) -> bool {
    if let Some(site) = headers.get("sec-fetch-site") {
        return site.as_bytes() == b"same-origin";
    }
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let Some((origin, (_, authority))) =
        text(ORIGIN).and_then(|origin| Some((origin, origin.split_once("://")?)))
    else {
        return false;
    };
    let is_of_request = text(HOST).is_some_and(|host| authority.eq_ignore_ascii_case(host));
    let is_public = base.strip_prefix(origin).is_some_and(|rest| rest.starts_with('/'));
    is_of_request || is_public
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_forms_of_own_pages_are_accepted() {
        let host = ("host", "h.example:8080");
        for (pairs, expected) in [
            (vec![host, ("origin", "http://h.example:8080")], true),
            (vec![host, ("origin", "https://public.example")], true),
            (vec![host, ("origin", "null"), ("sec-fetch-site", "same-origin")], true),
            (vec![host, ("origin", "null")], false),
            (vec![host, ("origin", "https://evil.example")], false),
            (vec![host, ("origin", "https://public.example.evil")], false),
            (vec![host, ("origin", "https://public.exampl")], false),
            (vec![host, ("origin", "")], false),
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
            let headers: HeaderMap = pairs
                .iter()
                .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
                .collect::<Vec<(http::HeaderName, HeaderValue)>>()
                .into_iter()
                .collect();
            let is_own = is_from_own_page(&headers, "https://public.example/x/");
            assert_eq!(is_own, expected, "{pairs:?}");
        }
    }
}
