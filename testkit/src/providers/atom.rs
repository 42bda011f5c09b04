//! SDShare: snapshots and fragments of a collection of descriptions.

use super::adversity::Fault;
use super::kinds::Atom;
use super::provider::Provider;
use super::time::{Precision, text};
use std::collections::BTreeMap;

const ATOM: &str = "application/atom+xml";
const N_TRIPLES: &str = "application/n-triples";
const RELATION: &str = "http://www.sdshare.org/2012/core/";

fn link(relation: &str, media_type: &str, href: &str) -> String {
    format!(
        "<link rel=\"{RELATION}{relation}\" type=\"{media_type}\" href=\"{href}\"/>\
         <link rel=\"alternate\" type=\"{media_type}\" href=\"{href}\"/>"
    )
}

impl Provider {
    pub(super) fn atom_document(&mut self, atom: &Atom, target: &str) -> Option<String> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if atom.is_live && path == "/snapshots" {
            self.make_listing();
        }
        let (now, at) = (self.now, self.data.listing.at);
        match path {
            "/collection" => {
                let mut entries = String::new();
                if atom.has_snapshots {
                    entries += &entry(atom, "s", now, &link("snapshotsfeed", ATOM, "/snapshots"));
                }
                entries += &entry(atom, "f", now, &link("fragmentsfeed", ATOM, "/fragments"));
                Some(feed(atom, now, "", &entries))
            }
            "/snapshots" if atom.has_snapshots => {
                let link = match atom.chunks {
                    0 => link("snapshot", N_TRIPLES, "/snapshot"),
                    _ => link("chunked-snapshot", ATOM, "/chunks"),
                };
                Some(feed(atom, at, "", &entry(atom, "snapshot", at, &link)))
            }
            "/chunks" => {
                let mut entries = String::new();
                for chunk in 0..atom.chunks {
                    let link = link("snapshot-component", N_TRIPLES, &format!("/chunk/{chunk}"));
                    entries += &entry(atom, &format!("chunk{chunk}"), at, &link);
                }
                Some(feed(atom, at, "", &entries))
            }
            "/snapshot" => Some(self.statements(|_| true)),
            "/fragments" => Some(self.fragments(atom, query)),
            _ => {
                let chunk: u64 = path.strip_prefix("/chunk/")?.parse().ok()?;
                Some(self.statements(|entity| entity % atom.chunks.max(1) == chunk))
            }
        }
    }

    /// The statements about entities of the list that was made last.
    fn statements(&self, is_wanted: impl Fn(u64) -> bool) -> String {
        let listed = self.data.listing.entities.iter().filter(|it| is_wanted(*it.0));
        listed.map(|(entity, version)| self.body(*entity, version.number)).collect()
    }

    /// The last change of each entity, and whether it is there after it.
    fn last_changes(&self) -> BTreeMap<u64, (i64, bool)> {
        let mut last = BTreeMap::new();
        for change in &self.data.log[..self.published] {
            let is_there = !change.is_deletion() && change.kind != "Move";
            last.insert(change.entity, (change.time, is_there));
            if change.kind == "Move" {
                last.insert(change.target, (change.time, true));
            }
        }
        last
    }

    /// Whether an entry shows a copy that is compared again that none is missing: it is not later than the snapshot. Else
    /// servers that drop older entries have the same documents.
    pub(super) fn has_entry_of_snapshot(&self, atom: &Atom) -> bool {
        let oldest = self.last_changes().values().map(|it| it.0).min();
        !atom.has_snapshots || oldest.is_none_or(|oldest| oldest <= self.data.listing.at)
    }

    fn fragments(&mut self, atom: &Atom, query: &str) -> String {
        let value = |name: &str| {
            query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
        };
        let since = value("since").map(str::to_owned);
        let page: usize = value("page").and_then(|page| page.parse().ok()).unwrap_or(0);
        let last = self.last_changes();
        let newest = last.values().map(|it| it.0).max();
        let mut changed: Vec<_> = last.into_iter().collect();
        if let Some(since) = &since {
            changed.retain(|(_, (time, _))| {
                let time = text(*time, Precision::Micro);
                time > *since || time == *since && !atom.is_exclusive
            });
        }
        changed.sort_by_key(|(entity, (time, _))| (*time, *entity));
        if atom.is_newest_first {
            changed.reverse();
        }
        let (from, length) = (page * self.page, self.page);
        let mut entries = String::new();
        for (entity, (time, is_there)) in changed.iter().skip(from).take(length) {
            let iri = self.iri(*entity);
            let mark = if atom.has_marks && !is_there {
                "<category scheme=\"urn:abreast:sdshare\" term=\"deleted\"/>"
            } else {
                ""
            };
            let link = link("fragment", N_TRIPLES, &format!("{iri}.nt"));
            let inside = format!("{mark}{link}<s:resource>{iri}</s:resource>");
            for _ in 0..self.copies() {
                entries += &entry(atom, &format!("{entity}-{time}"), *time, &inside);
            }
        }
        let mut next = (from + length < changed.len()).then_some(page + 1);
        if self.has(Fault::EmptyPage) && next.is_none() && !entries.is_empty() {
            next = Some(page + 1);
        }
        if self.has(Fault::Loops) && self.chance(6) {
            next = Some(self.random.index(page + 1));
        }
        let next = next.map_or_else(String::new, |next| {
            let since = since.map_or_else(String::new, |since| format!("&amp;since={since}"));
            format!("<link rel=\"next\" href=\"/fragments?page={next}{since}\"/>")
        });
        feed(atom, newest.unwrap_or(self.now), &next, &entries)
    }
}

/// The time that a feed has on all its pages.
pub(super) fn time_of(feed: &[u8]) -> Option<&str> {
    let feed = str::from_utf8(feed).ok()?;
    feed.split_once("<updated>")?.1.split_once("</updated>").map(|it| it.0)
}

fn feed(atom: &Atom, updated: i64, links: &str, entries: &str) -> String {
    let updated = text(updated, atom.precision);
    format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:s=\"{RELATION}\"><id>urn:x:feed</id><title>t</title>\
         <author><name>a</name></author><updated>{updated}</updated>{links}{entries}</feed>"
    )
}

fn entry(atom: &Atom, id: &str, updated: i64, inside: &str) -> String {
    let updated = text(updated, atom.precision);
    format!(
        "<entry><id>urn:x:{id}</id><title>e</title><updated>{updated}</updated>{inside}</entry>\n"
    )
}
