//! The final form of errors and probes: paths of this machine are reduced to their last part, and
//! browsers receive a page.

use crate::message::body::ResponseBody;
use crate::message::negotiate;
use crate::message::respond::Answer;
use abreast_source::projection::pages::{Shell, content_security_policy, problem_page};
use abreast_source::publish::Publisher;
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body_util::BodyExt as _;
use serde::Deserialize;
use std::borrow::Cow;

const PROBLEM: &str = "application/problem+json";

/// The parts of a problem document that a page shows.
#[derive(Deserialize)]
struct Problem {
    title: String,
    status: u16,
    detail: String,
    help: Option<String>,
}

/// The request that an answer is for.
pub(crate) struct Asked<'r> {
    /// The path of the request.
    pub(crate) path: &'r str,
    /// The fields of the request that choose the form.
    pub(crate) headers: &'r HeaderMap,
    /// The relative address of `/admin/`, for a request below it.
    pub(crate) admin: Option<String>,
}

/// The answer to a request, on the site of this publisher.
pub(crate) async fn present(answer: Answer, asked: Asked<'_>, publisher: &Publisher) -> Answer {
    let (request, is_probe) = (asked.headers, asked.path == "/readyz");
    let is_problem = answer
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes() == PROBLEM.as_bytes());
    if !(is_problem || is_probe) || !matches!(answer.body(), ResponseBody::Memory(_)) {
        return answer;
    }
    let (mut head, body) = answer.into_parts();
    let bytes = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let text = String::from_utf8_lossy(&bytes);
    // Details of client errors only repeat the request.
    let is_of_server = is_probe || head.status.is_server_error();
    let shown = if is_of_server { without_paths(&text) } else { text.clone() };
    // Clients that accept JSON receive problem documents.
    let wants_page = negotiate::prefers(request, "text/html", PROBLEM)
        && negotiate::prefers(request, "text/html", "application/json");
    let page =
        (is_problem && wants_page).then(|| serde_json::from_str::<Problem>(&shown).ok()).flatten();
    let body = match page {
        Some(problem) => {
            let html = HeaderValue::from_static("text/html; charset=utf-8");
            head.headers.insert(CONTENT_TYPE, html);
            if let Some((name, policy)) = policy_of(publisher) {
                head.headers.insert(name, policy);
            }
            page_of(&problem, asked.admin, publisher)
        }
        None => shown.into_owned(),
    };
    head.headers.remove(CONTENT_LENGTH);
    if is_problem {
        vary_by_accept(&mut head.headers);
    }
    Response::from_parts(head, ResponseBody::from(body))
}

/// Adds `Vary`, because the form of an error depends on `Accept` [rfc9110 §12.5.5].
fn vary_by_accept(headers: &mut HeaderMap) {
    let names = |value: &HeaderValue| {
        let fields = value.to_str().unwrap_or_default().split(',');
        fields.map(str::trim).any(|field| field == "*" || field.eq_ignore_ascii_case("accept"))
    };
    if !headers.get_all(VARY).iter().any(names) {
        headers.append(VARY, HeaderValue::from_static("Accept"));
    }
}

/// The content security policy of all pages, as a header field.
pub(crate) fn policy_of(publisher: &Publisher) -> Option<(HeaderName, HeaderValue)> {
    let policy = content_security_policy(publisher.urls().base(), publisher.institution());
    Some((CONTENT_SECURITY_POLICY, HeaderValue::from_str(&policy).ok()?))
}

fn page_of(problem: &Problem, admin: Option<String>, publisher: &Publisher) -> String {
    let title = format!("{} {}", problem.status, problem.title);
    let mut shell = Shell::of(&title, publisher);
    if let Some(admin) = admin {
        shell = shell.below("Administration", admin);
    }
    problem_page(shell, &problem.detail, problem.help.as_deref())
}

/// Shortens each absolute path of the file system to its last part. URLs, and paths in this
/// server's addresses, do not change.
fn without_paths(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut done = 0;
    let mut before = ' ';
    let mut skip = 0;
    for (at, c) in text.char_indices() {
        let begins =
            c == '/' && at >= skip && matches!(before, ' ' | '`' | '\'' | '"' | '(' | '=' | '\n');
        if begins {
            // A path in quotes may contain spaces.
            let end = match before {
                '`' | '\'' | '"' => text[at..].find([before, '\n']),
                _ => text[at..].find([' ', ',', ';', ')', '\n', '"', '\\']),
            };
            let end = at + end.unwrap_or(text.len() - at);
            let path = text[at..end].trim_end_matches([':', '.']);
            if !is_address(path) {
                out.push_str(&text[done..at]);
                out.push_str(path.trim_end_matches('/').rsplit('/').next().unwrap_or_default());
                done = at + path.len();
            }
            skip = end;
        }
        before = c;
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// Whether this path is an address of the server, which errors and help texts may contain.
fn is_address(path: &str) -> bool {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    path.starts_with("//")
        || matches!(first, "admin" | "api" | "hub" | "readyz" | "livez" | "metrics" | "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_machine_are_cut_to_their_last_part() {
        for (text, shown) in [
            ("`/srv/my papers/a` vanished: no", "`a` vanished: no"),
            ("the store /var/lib/x/source.db was removed", "the store source.db was removed"),
            ("cannot open /srv/x: Permission denied", "cannot open x: Permission denied"),
            ("cannot open `/srv/x/`", "cannot open `x`"),
            ("(in /a/b/c), /d/e; f", "(in c), e; f"),
            ("{\"detail\":\"cannot read /a/b/c\"}", "{\"detail\":\"cannot read c\"}"),
            (
                "{\"detail\":\"cannot read\\n/a/b/c\\n\"}",
                "{\"detail\":\"cannot read\\n/a/b/c\\n\"}",
            ),
            ("see https://h.example/a/b", "see https://h.example/a/b"),
            ("POST /api/v1/sets/x/deletions", "POST /api/v1/sets/x/deletions"),
            ("ask /hub; a/b and 1/2", "ask /hub; a/b and 1/2"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(without_paths(text), shown);
        }
    }
}
