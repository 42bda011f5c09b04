//! The content of a Source's server, and its responses: faults, and documents of the history.

use super::Column;
use super::history::{Clock, FUTURE, History, SECOND};
use super::pushed::Push;
use super::rendering::{Asked, body};
use abreast_testkit::pages::{Answer, Server};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// The response instead of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Status(u16),
    Garbage,
    /// The transfer ends in the middle.
    Cut,
    /// The document redirects to itself.
    Redirect,
    /// A challenge page for browsers, with status 200.
    Challenge,
    /// The same with status 403, and a header field that marks it.
    Wall,
}

/// As Anubis answers.
const CHALLENGE: &str = "<!doctype html><html lang=\"en\"><head><title>Making sure you&#39;re not a bot!</title>\
    <link rel=\"stylesheet\" href=\"/.within.website/x/xess/xess.css\">\
    <script id=\"anubis_version\" type=\"application/json\">\"v1.21.3\"</script>\
    <script id=\"anubis_challenge\" type=\"application/json\">{}</script></head>\
    <body><script src=\"/.within.website/x/cmd/anubis/static/js/main.mjs\"></script></body></html>";

/// The content of the server.
pub(super) struct Published {
    pub(super) documents: History,
    /// The entities.
    pub(super) versions: History,
    /// By path; the number of answers that are left, or all.
    pub(super) faults: BTreeMap<String, (Fault, Option<usize>)>,
    /// The document at a path until its transfer ended in the middle.
    pub(super) before: Option<(String, History)>,
    /// When a document was requested last.
    pub(super) requested: Option<Instant>,
    /// Requests that may still come in this run.
    pub(super) left: usize,
    /// Stops the run.
    pub(super) cancel: Arc<AtomicBool>,
}

/// A server of the published documents.
pub(super) fn serve(column: &'static Column, published: &Arc<Mutex<Published>>) -> Server {
    let (server, state) = (Server::start(), Arc::clone(published));
    let base = server.base.clone();
    server.handler(move |target, _| answer(column, &state, &base, target));
    server
}

fn answer(
    column: &Column,
    published: &Mutex<Published>,
    base: &str,
    target: &str,
) -> Option<Answer> {
    if target == "/hub" || target == "/subscribe" {
        return None;
    }
    let mut published = published.lock().unwrap();
    if published.left == 0 {
        published.cancel.store(true, Ordering::Relaxed);
    }
    published.left = published.left.saturating_sub(1);
    let path = target.split('?').next().unwrap();
    if !path.starts_with("/e/") && path != "/topic" {
        published.requested = Some(Instant::now());
    }
    let mut fault = None;
    if let Some((one, left)) = published.faults.get_mut(path)
        && *left != Some(0)
    {
        fault = Some(*one);
        *left = left.map(|left| left - 1);
    }
    // The response after the fault is another version.
    let before = match fault {
        Some(Fault::Cut) => published.before.take_if(|before| before.0 == path),
        _ => None,
    };
    match fault {
        Some(Fault::Status(status)) => return Some(Answer::status(status)),
        Some(Fault::Garbage) => return Some(Answer::ok("<garbage & {\"not")),
        Some(Fault::Redirect) => return Some(Answer::status(302).header("location", target)),
        Some(fault @ (Fault::Challenge | Fault::Wall)) => {
            let answer = Answer::ok(CHALLENGE).header("content-type", "text/html; charset=utf-8");
            return Some(match fault {
                Fault::Wall => Answer { status: 403, ..answer }.header("cf-mitigated", "challenge"),
                _ => answer,
            });
        }
        Some(Fault::Cut) | None => {}
    }
    let (history, form) =
        (before.as_ref().map_or(&published.documents, |before| &before.1), column.rendered.form());
    if target == "/topic" && column.push == Some(Push::Events) {
        return Some(Answer::events());
    }
    let asked = Asked { history, base, target };
    let answer = if let Some(entity) = path.strip_prefix("/e/") {
        let entity = entity.parse().ok()?;
        match published.versions.versions.get(&entity) {
            Some(version) => Answer::ok(body(form, &asked.entity(entity), *version))
                .header("content-type", column.rendered.media_type()),
            None => column.rendered.deleted(),
        }
    } else {
        let mut answer = column.rendered.document(&asked)?;
        if let Ok(text) = String::from_utf8(answer.body.clone()) {
            answer.body = history.written(text).into_bytes();
        }
        answer
    };
    let date = match history.clock {
        Clock::Right => Some(published.versions.now + SECOND),
        Clock::Stopped(time) => Some(time),
        Clock::None => None,
    };
    if fault == Some(Fault::Cut) {
        let short = answer.body.len() / 2;
        return Some(Answer::cut(answer.body, short));
    }
    Some(match date {
        Some(micros) => {
            let date = UNIX_EPOCH + Duration::from_micros(micros.clamp(0, FUTURE * 2) as u64);
            answer.header("date", &httpdate::fmt_http_date(date))
        }
        None => answer,
    })
}
