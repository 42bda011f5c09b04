//! The column of SDShare: a collection with snapshots and a fragments feed in pages, the newest
//! change first.

use super::history::{Change, Kind, Page, Toward};
use super::rendering::{Asked, Form, N_TRIPLES, Rendered, statements};
use crate::sdshare_source::ATOM;
use abreast_testkit::pages::Answer;
use abreast_webtypes::{Timestamp, W3cDatetime};
use std::fmt::Write as _;

const NAMESPACE: &str = "http://www.sdshare.org/2012/core/";
const MARK: &str = "<category scheme=\"urn:abreast:sdshare\" term=\"deleted\"/>";

/// A server of SDShare.
pub(crate) struct SdShare;

/// The time from which on changes are requested.
fn since(asked: &Asked<'_>) -> Option<Timestamp> {
    let (_, query) = asked.target.split_once('?')?;
    let value = query.split('&').find_map(|pair| pair.strip_prefix("since="))?;
    abreast_sdshare::parse_since(value).unwrap()
}

fn link(relation: &str, href: &str, media_type: &str) -> String {
    let rest = format!("type=\"{media_type}\" href=\"{href}\"/>");
    format!("<link rel=\"{NAMESPACE}{relation}\" {rest}<link rel=\"alternate\" {rest}")
}

fn entry(asked: &Asked<'_>, id: &str, updated: i64, more: &str) -> String {
    let updated = asked.history.stamp(updated);
    format!(
        "<entry><id>urn:x:{id}</id><title>e</title><updated>{updated}</updated>{more}</entry>\n"
    )
}

fn feed(asked: &Asked<'_>, updated: i64, more: &str, entries: &str) -> Answer {
    let updated = asked.history.span(updated);
    let id = asked.url(asked.target).replace('&', "&amp;");
    let text = format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:s=\"{NAMESPACE}\"><id>{id}</id><title>t</title>\
         <author><name>a</name></author><updated>{updated}</updated>{more}{entries}</feed>"
    );
    Answer::ok(text).header("content-type", ATOM)
}

fn fragment(asked: &Asked<'_>, change: &Change) -> String {
    let iri = asked.entity_of(change);
    // Entries of other uses of Atom have neither a fragment nor a resource.
    let more = if asked.history.is_foreign || change.kind == Kind::Unknown {
        format!("<link rel=\"alternate\" href=\"{iri}\"/>")
    } else {
        let link = link("fragment", &format!("/e/{}", change.entity), N_TRIPLES);
        let is_marked = change.kind == Kind::Deleted && asked.history.marks_deletions;
        let mark = if is_marked { MARK } else { "" };
        let resource = format!("<s:resource>{iri}</s:resource>");
        format!("{link}{mark}{}", if iri.is_empty() { "" } else { &resource })
    };
    entry(asked, &format!("change-{}", change.id), change.time, &more)
}

impl SdShare {
    fn fragments(asked: &Asked<'_>, page: &Page) -> Answer {
        let history = asked.history;
        let since = since(asked);
        // Servers compare the times that they show.
        let shown = |change: &&Change| {
            since.is_none_or(|since| {
                let stated = W3cDatetime::parse(history.stamp(change.time).as_bytes()).unwrap();
                stated.instant >= since
            })
        };
        let entries: String =
            page.changes.iter().rev().filter(shown).map(|it| fragment(asked, it)).collect();
        let query =
            asked.target.split_once('?').map_or_else(String::new, |it| format!("?{}", it.1));
        let mut more = String::new();
        // Servers list nothing behind the last change that they show.
        let is_more = |page: &Page| page.changes.iter().any(|change| shown(&change));
        let older = history.pages.iter().filter(|it| it.number < page.number);
        let is_odd = history.links.contains_key(&(page.number, Toward::Older));
        let has_next = is_odd || history.endless.is_some() || older.clone().any(is_more);
        let next = history.link(page.number, Toward::Older).filter(|_| has_next);
        if let Some(target) = next {
            let url = asked.page_url(target, "/changes");
            let _ = write!(more, "<link rel=\"next\" href=\"{url}{query}\"/>");
        }
        let newest = history.pages.iter().flat_map(|page| &page.changes).map(|it| it.time).max();
        feed(asked, newest.unwrap_or(page.from), &more, &entries)
    }
}

impl Rendered for SdShare {
    fn form(&self) -> Form {
        Form::Statements
    }

    fn newest(&self) -> Option<&'static str> {
        Some("/changes")
    }

    fn snapshot(&self) -> Option<&'static str> {
        Some("/snapshot")
    }

    fn deleted(&self) -> Answer {
        // An empty fragment: there are no statements about the resource any more.
        Answer::ok("").header("content-type", N_TRIPLES)
    }

    fn document(&self, asked: &Asked<'_>) -> Option<Answer> {
        let history = asked.history;
        Some(match asked.path() {
            "/start" => {
                let fragments = link("fragmentsfeed", &asked.newest_path(), ATOM);
                let mut entries = entry(asked, "f", history.now, &fragments);
                if !history.lacks_snapshot {
                    entries +=
                        &entry(asked, "s", history.now, &link("snapshotsfeed", "/list", ATOM));
                }
                feed(asked, history.now, "", &entries)
            }
            "/list" => {
                let at = history.span(history.snapshot.at);
                let link = link("snapshot", "/snapshot", N_TRIPLES);
                let entry = format!(
                    "<entry><id>urn:x:s</id><title>s</title><updated>{at}</updated>{link}</entry>"
                );
                feed(asked, history.snapshot.at, "", &entry)
            }
            "/snapshot" => statements(asked),
            "/changes" => Self::fragments(asked, &history.served_newest()?),
            _ => Self::fragments(asked, &history.served_page(asked.page()?)?),
        })
    }
}
