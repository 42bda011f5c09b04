//! The column of ResourceSync 0.1: a Sitemap, and change sets with links to previous ones.

use super::history::{Change, History, Kind, Page, Toward};
use super::rendering::{Asked, Form, Rendered, body};
use crate::rs01_source::{CHANGE_SET, document, fixity, link, modified};
use abreast_testkit::pages::Answer;
use std::fmt::Write as _;

/// A Source of ResourceSync 0.1.
pub(crate) struct OldResourceSync {
    /// Links from the Sitemap to where changes are pushed.
    pub(crate) links: String,
}

fn facts(history: &History, loc: &str, version: u32) -> String {
    if history.has_digests { fixity(&body(Form::Files, loc, version)) } else { String::new() }
}

fn entry(asked: &Asked<'_>, change: &Change) -> String {
    let (loc, time) = (asked.entity_of(change), asked.history.stamp(change.time));
    if asked.history.is_foreign {
        // Entries for other protocols of the site are not resources of the set [rs-0.1 §6].
        return format!(
            "<url rs:protocol=\"http://www.openarchives.org/OAI/2.0/\"><loc>{loc}</loc><lastmod>{time}</lastmod></url>\n"
        );
    }
    let (time, facts) = match change.kind {
        Kind::Deleted => (format!("<expires>{time}</expires>"), String::new()),
        kind => (
            format!("<lastmod rs:type=\"{}\">{time}</lastmod>", kind.word()),
            facts(asked.history, &loc, change.version),
        ),
    };
    format!("<url><loc>{loc}</loc>{time}{facts}</url>\n")
}

fn entries(asked: &Asked<'_>, changes: &[Change]) -> String {
    changes.iter().map(|change| entry(asked, change)).collect()
}

/// The link to the change set that is the newest.
fn current(asked: &Asked<'_>) -> String {
    link(&format!("current {CHANGE_SET}"), &asked.url(&asked.newest_path()))
}

/// A pushed change set with the changes after a time.
pub(crate) fn pushed(asked: &Asked<'_>, changes: &[Change], from: i64, until: i64) -> String {
    let (from, until) = (asked.history.span(from), asked.history.span(until));
    let period =
        format!("<xhtml:meta name=\"DCTERMS.temporal\" content=\"start={from}; end={until}\"/>\n");
    let inside = current(asked) + &period + &entries(asked, changes);
    document("urlset", "rs:type=\"changeset\"", &inside)
}

impl OldResourceSync {
    fn sitemap(&self, asked: &Asked<'_>) -> String {
        let (history, snapshot) = (asked.history, &asked.history.snapshot);
        let mut inside = modified(&history.span(snapshot.at)) + &current(asked);
        inside.push_str(&self.links.replace("BASE", asked.base));
        for (entity, version) in &snapshot.versions {
            let loc = asked.entity(*entity);
            let time = history.lastmod(snapshot.modified.get(entity).copied());
            if history.is_foreign {
                let _ = writeln!(
                    inside,
                    "<url rs:protocol=\"http://www.openarchives.org/OAI/2.0/\"><loc>{loc}</loc></url>"
                );
                continue;
            }
            let facts = facts(history, &loc, *version);
            let _ = writeln!(inside, "<url><loc>{loc}</loc><lastmod>{time}</lastmod>{facts}</url>");
        }
        document("urlset", "", &inside)
    }

    fn change_set(asked: &Asked<'_>, page: &Page) -> String {
        let history = asked.history;
        let last = page.changes.iter().map(|change| change.time).max().unwrap_or(page.from);
        let mut inside = modified(&history.span(last)) + &current(asked);
        if let Some(target) = history.link(page.number, Toward::Older) {
            inside.push_str(&link(
                &format!("prev {CHANGE_SET}"),
                &asked.page_url(target, "/changes"),
            ));
        }
        inside.push_str(&entries(asked, &page.changes));
        document("urlset", "rs:type=\"changeset\"", &inside)
    }
}

impl Rendered for OldResourceSync {
    fn form(&self) -> Form {
        Form::Files
    }

    fn newest(&self) -> Option<&'static str> {
        Some("/changes")
    }

    fn snapshot(&self) -> Option<&'static str> {
        Some("/start")
    }

    fn document(&self, asked: &Asked<'_>) -> Option<Answer> {
        let history = asked.history;
        let text = match asked.path() {
            "/start" => self.sitemap(asked),
            "/changes" => Self::change_set(asked, &history.served_newest()?),
            _ => Self::change_set(asked, &history.served_page(asked.page()?)?),
        };
        Some(Answer::ok(text).header("content-type", "application/xml"))
    }
}
