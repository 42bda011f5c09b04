//! `/admin`: pages for administrators. The server signs administrators in and carries out what
//! their forms request; [`Administration`] makes the pages.
//!
//! A form is a POST to the path of an operation of the API below `/admin`, so the pages can do what
//! the API can do, and nothing else.

mod form;
mod session;

use crate::api;
use crate::message::present::policy_of;
use crate::message::respond::{Answer, problem, see_other as see, text, try_later};
use crate::site::administration::{AdminPath, Administration};
use crate::site::heads::Heads;
use crate::site::served::Site;
use crate::site::sessions::Sessions;
use abreast_hub::Client;
use abreast_source::projection::pages::HTML;
use form::Form;
use http::header::{ALLOW, CONNECTION, CONTENT_SECURITY_POLICY, REFERRER_POLICY, SET_COOKIE};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use hyper::body::{Body as _, Incoming};
use session::Cookies;
use std::sync::Arc;

const PREFIX: &str = "/admin/";
const SIGN_IN: &str = "sign-in";
const SIGN_OUT: &str = "sign-out";

/// Whether a path belongs to the pages for administrators.
pub(crate) fn is_path(path: &str) -> bool {
    path == "/admin" || path.starts_with(PREFIX)
}

/// The relative address of `/admin/` from a path below it.
pub(crate) fn root_of(path: &str) -> Option<String> {
    Some(AdminPath { path: path.strip_prefix(PREFIX)?, query: "" }.root())
}

/// Answers a request for a page or from a form.
pub(crate) async fn answer(
    site: &Arc<Site>,
    heads: &Heads,
    (pages, sessions): (Option<&Arc<dyn Administration>>, &Arc<Sessions>),
    request: Request<Incoming>,
    client: &Client,
) -> Answer {
    let has_body = !request.body().is_end_stream();
    let mut answer = match pages {
        Some(pages) => respond(site, heads, (pages, sessions), request, client).await,
        None => problem(StatusCode::NOT_FOUND, "this server has no pages for administrators"),
    };
    let headers = answer.headers_mut();
    if has_body {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some((name, policy)) = policy(site) {
        headers.insert(name, policy);
    }
    // With `no-referrer`, browsers do not send the origin of forms.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    answer
}

/// The policy of all pages, without scripts.
fn policy(site: &Site) -> Option<(HeaderName, HeaderValue)> {
    let (_, policy) = policy_of(&site.publisher)?;
    let directives = policy.to_str().ok()?.split(';').map(str::trim);
    let kept = directives.filter(|directive| {
        !directive.starts_with("script-src") && !directive.starts_with("connect-src")
    });
    let policy = kept.collect::<Vec<_>>().join("; ");
    Some((CONTENT_SECURITY_POLICY, HeaderValue::from_str(&policy).ok()?))
}

async fn respond(
    site: &Arc<Site>,
    heads: &Heads,
    (pages, sessions): (&Arc<dyn Administration>, &Arc<Sessions>),
    request: Request<Incoming>,
    client: &Client,
) -> Answer {
    let (head, body) = request.into_parts();
    let Some(path) = head.uri.path().strip_prefix(PREFIX) else { return see("admin/") };
    let at = AdminPath { path, query: head.uri.query().unwrap_or_default() };
    if let Err(problem) = api::refuse_tokens_in_url(at.query) {
        return problem.answer();
    }
    let is_post = head.method == Method::POST;
    if !is_post && !matches!(head.method, Method::GET | Method::HEAD) {
        return refuse_method("GET, HEAD, POST");
    }
    if is_post && !session::is_from_own_page(&head.headers, site.publisher.urls().base()) {
        let detail = "the request is not from a page of this server: forms of other pages are refused (a proxy must pass on `Host`)";
        return problem(StatusCode::FORBIDDEN, detail);
    }
    let cookies = Cookies::of(site, sessions, &head.headers);
    let administrator = cookies.administrator().await;
    match (path, is_post) {
        (SIGN_IN, false) if administrator.is_some() => return see("./"),
        (SIGN_IN, false) => return html(pages.sign_in_page(site, None)),
        (SIGN_IN, true) => {
            let form = match Form::read(body).await {
                Ok(form) => form,
                Err(refused) => return refused,
            };
            return sign_in(site, pages, &cookies, &form, client).await;
        }
        (SIGN_OUT, true) => {
            return match cookies.sign_out().await {
                Ok(cookie) => with_cookie(see(SIGN_IN), cookie),
                Err(error) => {
                    tracing::error!("a session of an administrator cannot be ended: {error}");
                    try_later("the session cannot be ended on all nodes; sign out again", 5)
                }
            };
        }
        _ => {}
    }
    let Some(administrator) = administrator else {
        return see(&format!("{}{SIGN_IN}", at.root()));
    };
    if is_post {
        let form = match Form::read(body).await {
            Ok(form) => form,
            Err(refused) => return refused,
        };
        let call = head.uri.path_and_query().map_or("", |whole| whole.as_str());
        let Some(Ok(call)) = call.strip_prefix("/admin").map(str::parse::<Uri>) else {
            return problem(StatusCode::NOT_FOUND, "there is no such form");
        };
        return match api::administer(site, heads, &call, *client, &administrator.name).await {
            Ok(_) => {
                let back = form.get("back").filter(|back| is_page(back)).unwrap_or_default();
                see(&format!("{}{back}", at.root()))
            }
            Err(problem) => problem.answer(),
        };
    }
    let (site, pages) = (Arc::clone(site), Arc::clone(pages));
    let (path, query) = (path.to_owned(), at.query.to_owned());
    let made = tokio::task::spawn_blocking(move || {
        pages.page(&site, &AdminPath { path: &path, query: &query })
    });
    match made.await {
        Ok(Ok(Some(page))) => html(page),
        Ok(Err(error)) => {
            tracing::error!("a page for administrators cannot be made: {error}");
            try_later(&format!("the page cannot be made: {error}"), 10)
        }
        Ok(Ok(None)) => problem(StatusCode::NOT_FOUND, "there is no such page for administrators"),
        Err(_) => problem(StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be made"),
    }
}

/// Starts a session, or shows the reason of the refusal.
async fn sign_in(
    site: &Site,
    pages: &Arc<dyn Administration>,
    cookies: &Cookies<'_>,
    form: &Form,
    client: &Client,
) -> Answer {
    match cookies.sign_in(form.get("token")).await {
        Ok((administrator, cookie)) => {
            tracing::info!(administrator, %client, "signed in");
            with_cookie(see("./"), cookie)
        }
        Err(reason) => {
            // Anyone can send such requests: they must not fill the log.
            if let Some(attempts) = cookies.refuse() {
                tracing::warn!(%client, attempts, "an administrator could not sign in: {reason}");
            }
            let mut answer = html(pages.sign_in_page(site, Some(&reason)));
            *answer.status_mut() = StatusCode::FORBIDDEN;
            answer
        }
    }
}

/// Whether this is an address relative to `/admin/` that cannot leave it.
fn is_page(path: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./?=&".contains(&byte);
    path.bytes().all(allowed) && !path.starts_with('/') && !path.contains("..")
}

fn html(page: String) -> Answer {
    text(HTML, page)
}

fn with_cookie(mut answer: Answer, cookie: HeaderValue) -> Answer {
    answer.headers_mut().insert(SET_COOKIE, cookie);
    answer
}

fn refuse_method(allowed: &'static str) -> Answer {
    let mut answer =
        problem(StatusCode::METHOD_NOT_ALLOWED, "only GET, HEAD and POST are answered here");
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_lead_back_to_pages_of_administrators_only() {
        for page in ["", "sets/papers?done=scan", "topics/3?after=17"] {
            assert!(is_page(page), "{page}");
        }
        for other in
            ["/x", "//x.org", "https://x.org", "../x", "sets/../../x", "%2e%2e/x", "a\r\nb", "a\\b"]
        {
            assert!(!is_page(other), "{other}");
        }
    }
}
