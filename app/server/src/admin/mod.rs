//! `/admin`: pages for administrators. The server signs administrators in and carries out what
//! their forms request; [`Administration`] makes the pages.
//!
//! A form is a POST to the path of an operation of the API below `/admin`, so the pages can do what
//! the API can do, and nothing else.

mod form;
mod session;

use crate::api;
use crate::message::present::policy_of;
use crate::message::respond::{Answer, problem, text};
use crate::site::administration::{AdminPath, Administration};
use crate::site::heads::Heads;
use crate::site::served::Site;
use abreast_hub::Client;
use abreast_source::projection::pages::HTML;
use form::Form;
use http::header::{
    ALLOW, CONNECTION, CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY, SET_COOKIE,
};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use hyper::body::{Body as _, Incoming};
use session::{Session, SignIn};
use std::sync::Arc;

const PREFIX: &str = "/admin/";
const SIGN_IN: &str = "sign-in";
const SIGN_OUT: &str = "sign-out";

/// Whether a path belongs to the pages for administrators.
pub(crate) fn is_path(path: &str) -> bool {
    path == "/admin" || path.starts_with(PREFIX)
}

/// Answers a request for a page or from a form.
pub(crate) async fn answer(
    site: &Arc<Site>,
    heads: &Heads,
    pages: Option<&Arc<dyn Administration>>,
    request: Request<Incoming>,
    client: &Client,
) -> Answer {
    let has_body = !request.body().is_end_stream();
    let mut answer = match pages {
        Some(pages) => respond(site, heads, pages, request, client).await,
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
    pages: &Arc<dyn Administration>,
    request: Request<Incoming>,
    client: &Client,
) -> Answer {
    let (head, body) = request.into_parts();
    let Some(path) = head.uri.path().strip_prefix(PREFIX) else { return see("admin/") };
    let at = AdminPath { path, query: head.uri.query().unwrap_or_default() };
    let is_post = head.method == Method::POST;
    if !is_post && !matches!(head.method, Method::GET | Method::HEAD) {
        return refuse_method("GET, HEAD, POST");
    }
    if is_post && !session::is_from_own_page(&head.headers) {
        let detail =
            "the request is not from a page of this server: forms of other pages are refused";
        return problem(StatusCode::FORBIDDEN, detail);
    }
    if path == SIGN_IN {
        if !is_post {
            return html(pages.sign_in_page(site, None));
        }
        let form = match Form::read(body).await {
            Ok(form) => form,
            Err(refused) => return refused,
        };
        return match session::sign_in(site, &head.headers, form.get("token")) {
            SignIn::Admitted(cookie) => with_cookie(see("./"), cookie),
            SignIn::Refused(reason) => {
                tracing::warn!(%client, "an administrator could not sign in: {reason}");
                let mut answer = html(pages.sign_in_page(site, Some(&reason)));
                *answer.status_mut() = StatusCode::FORBIDDEN;
                answer
            }
        };
    }
    if path == SIGN_OUT && is_post {
        return with_cookie(see(SIGN_IN), Session::ended(&head.headers));
    }
    let Some(session) = Session::of(site, &head.headers) else {
        return see(&format!("{}{SIGN_IN}", at.root()));
    };
    if is_post {
        let form = match Form::read(body).await {
            Ok(form) => form,
            Err(refused) => return refused,
        };
        let call = format!("/{path}");
        let done = api::administer(site, heads, &call, head.uri.query(), client.clone()).await;
        return match done {
            Ok(_) => {
                tracing::info!(administrator = session.name, "carried out: POST {call}");
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
        Ok(Some(page)) => html(page),
        Ok(None) => problem(StatusCode::NOT_FOUND, "there is no such page for administrators"),
        Err(_) => problem(StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be made"),
    }
}

/// Whether this is an address relative to `/admin/` that cannot leave it.
fn is_page(path: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./?=&%".contains(&byte);
    path.bytes().all(allowed) && !path.starts_with('/') && !path.contains("..")
}

fn html(page: String) -> Answer {
    text(HTML, page)
}

/// Redirects to a relative address, with GET.
fn see(address: &str) -> Answer {
    let mut answer = text("text/plain; charset=utf-8", format!("see {address}\n"));
    *answer.status_mut() = StatusCode::SEE_OTHER;
    if let Ok(location) = HeaderValue::from_str(address) {
        answer.headers_mut().insert(LOCATION, location);
    }
    answer
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
        for page in ["", "sets/papers?done=scan", "topics/3?after=17", "sets/a%20b"] {
            assert!(is_page(page), "{page}");
        }
        for other in ["/x", "//x.org", "https://x.org", "../x", "sets/../../x", "a\r\nb", "a\\b"] {
            assert!(!is_page(other), "{other}");
        }
    }
}
