//! Page about the API, at its root, for browsers; other clients receive the OpenAPI document.

use super::answers::typed;
use super::openapi::{OPENAPI, openapi};
use super::operations::{OPERATIONS, Operation};
use crate::message::negotiate;
use crate::message::present::policy_of;
use crate::message::respond::Answer;
use crate::site::api::Readers;
use crate::site::served::Site;
use crate::site::tokens::Scope;
use abreast_source::projection::pages::{HTML, Shell, framed};
use askama::Template;
use http::header::VARY;
use http::{HeaderMap, HeaderValue};

/// Most sets for which the page has commands.
const SETS: usize = 5;

struct Row {
    method: &'static str,
    path: &'static str,
    scope: &'static str,
    summary: String,
}

#[derive(Template)]
#[template(path = "api.html")]
struct ApiPage<'p> {
    base: &'p str,
    summary: String,
    anyone_reads: bool,
    sets: Vec<&'p str>,
    operations: Vec<Row>,
}

/// Whether this is the root of the API.
pub(super) fn is_root(path: &str) -> bool {
    matches!(path.trim_end_matches('/'), "/api" | "/api/v1")
}

/// The root of the API: a page, or the OpenAPI document.
pub(super) fn root(site: &Site, readers: Readers, headers: &HeaderMap) -> Answer {
    let (publisher, base) = (&site.publisher, site.publisher.urls().base());
    let is_page = negotiate::prefers(headers, "text/html", "application/json");
    let mut answer = if is_page {
        let document = serde_json::from_str::<serde_json::Value>(OPENAPI).unwrap_or_default();
        let text = |pointer: &str| {
            document
                .pointer(pointer)
                .and_then(|found| found.as_str())
                .unwrap_or_default()
                .to_owned()
        };
        let operation = |found: &Operation| {
            let path = found.path.replace('/', "~1");
            let method = found.method.to_ascii_lowercase();
            Row {
                method: found.method,
                path: found.path,
                scope: found.scope.map_or("", Scope::name),
                summary: text(&format!("/paths/{path}/{method}/summary")),
            }
        };
        let anyone_reads = readers == Readers::Anyone;
        let sets = publisher.sets().iter().map(|set| set.slug.as_str()).take(SETS);
        let page = ApiPage {
            base,
            summary: text("/info/summary"),
            anyone_reads,
            sets: if anyone_reads { sets.collect() } else { Vec::new() },
            operations: OPERATIONS.iter().map(operation).collect(),
        };
        let shell = Shell::of("HTTP API", publisher);
        // Rendering into memory succeeds.
        let mut answer = typed(HTML, framed(shell, &page.render().unwrap_or_default()));
        answer.headers_mut().extend(policy_of(publisher));
        answer
    } else {
        typed("application/json", openapi(base))
    };
    answer.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    answer
}
