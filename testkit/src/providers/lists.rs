//! ResourceSync 1.1: Resource Lists and Change Lists.

use super::adversity::Fault;
use super::data::{Change, ChangeList, Listing, Version};
use super::kinds::{Changes, Lists};
use super::provider::Provider;
use super::time::{EPOCH, text};
use crate::bytes::digest::md5_hex;
use crate::bytes::documents::document;
use std::fmt::Write as _;

impl Provider {
    pub(super) fn list_document(&mut self, lists: &Lists, path: &str) -> Option<String> {
        if lists.is_live && path.starts_with("/list") {
            self.make_listing();
        }
        match path {
            "/caps.xml" => {
                let changes = ("changelist", "/changes.xml");
                let changes = Some(changes).filter(|_| lists.has_changes());
                Some(self.capabilities([("resourcelist", "/list.xml")].into_iter().chain(changes)))
            }
            "/list.xml" if lists.parts > 0 => Some(self.list_index(lists)),
            "/list.xml" => Some(self.resource_list(lists, None)),
            "/changes.xml" if matches!(lists.changes, Changes::Index(..)) => {
                Some(self.change_index(lists))
            }
            _ => {
                let part = path.strip_prefix("/list/").and_then(|part| part.strip_suffix(".xml"));
                let part = part.and_then(|part| part.parse::<u64>().ok());
                if let Some(part) = part.filter(|part| *part < lists.parts) {
                    return Some(self.resource_list(lists, Some(part)));
                }
                let list = self.change_lists(lists).into_iter().find(|list| list.path == path)?;
                Some(self.change_list(lists, &list))
            }
        }
    }

    /// The Capability List with documents: their capabilities and paths.
    pub(super) fn capabilities<'c>(
        &self,
        offered: impl Iterator<Item = (&'c str, &'c str)>,
    ) -> String {
        let offered = offered.map(|(kind, path)| (kind, format!("{}{path}", self.base)));
        crate::bytes::documents::capability_list(offered)
    }

    /// The link to the document above.
    pub(super) fn up(&self, path: &str) -> String {
        format!("<rs:ln rel=\"up\" href=\"{}{path}\"/>\n", self.base)
    }

    fn list_index(&mut self, lists: &Lists) -> String {
        let at = at(lists, &self.data.listing);
        let mut entries = self.up("/caps.xml");
        for part in 0..lists.parts {
            let base = &self.base;
            let _ = writeln!(
                entries,
                "<sitemap><loc>{base}/list/{part}.xml</loc><rs:md{at}/></sitemap>"
            );
        }
        if self.has(Fault::Loops) && self.chance(4) {
            let again = ["/list.xml", "/list/0.xml"][self.random.index(2)];
            let _ = writeln!(entries, "<sitemap><loc>{}{again}</loc></sitemap>", self.base);
        }
        document("sitemapindex", &format!("capability=\"resourcelist\"{at}"), &entries)
    }

    fn resource_list(&mut self, lists: &Lists, part: Option<u64>) -> String {
        let listing = self.data.listing.clone();
        let mut entries = match part {
            None => self.up("/caps.xml"),
            Some(_) => format!("<rs:ln rel=\"index\" href=\"{}/list.xml\"/>\n", self.base),
        };
        for (entity, version) in &listing.entities {
            if part.is_some_and(|part| entity % lists.parts != part) {
                continue;
            }
            for _ in 0..self.copies() {
                entries.push_str(&self.resource_entry(lists, (*entity, *version), ""));
            }
        }
        let at = at(lists, &listing);
        document("urlset", &format!("capability=\"resourcelist\"{at}"), &entries)
    }

    /// An entry for an entity, with further attributes.
    pub(super) fn resource_entry(
        &self,
        lists: &Lists,
        (entity, version): (u64, Version),
        more: &str,
    ) -> String {
        let (iri, time) = (self.iri(entity), text(version.time, lists.precision));
        let md = self.fixity(lists, entity, version.number);
        format!("<url><loc>{iri}</loc><lastmod>{time}</lastmod><rs:md{md}{more}/></url>\n")
    }

    /// How often an entry is there.
    pub(super) fn copies(&mut self) -> usize {
        1 + usize::from(self.has(Fault::Duplicates) && self.chance(4))
    }

    fn fixity(&self, lists: &Lists, entity: u64, version: u64) -> String {
        if !lists.has_fixity {
            return String::new();
        }
        let body = self.body(entity, version);
        format!(" hash=\"md5:{}\" length=\"{}\"", md5_hex(body.as_bytes()), body.len())
    }

    /// The time up to which everything is in the lists before that place in the log.
    pub(super) fn time_before(&self, place: usize) -> i64 {
        let last = place.checked_sub(1).and_then(|last| self.data.log.get(last));
        last.map_or(EPOCH, |change| change.noted)
    }

    /// All Change Lists, the oldest first.
    pub(super) fn change_lists(&self, lists: &Lists) -> Vec<ChangeList> {
        let Changes::Index(length, is_renamed) = lists.changes else {
            let (begin, end, is_closed) = (self.data.first, self.published, false);
            let one = ChangeList { path: "/changes.xml".to_owned(), begin, end, is_closed };
            return Some(one).filter(|_| lists.has_changes()).into_iter().collect();
        };
        let (first, open) = (self.data.first / length, self.published / length);
        let has_hole = self.faults.has(Fault::Holes);
        let of = |number: usize| {
            let (begin, is_closed) = (number * length, number < open);
            let end = if is_closed { begin + length } else { self.published };
            let path = if is_renamed && !is_closed {
                "/changes/open.xml".to_owned()
            } else {
                format!("/changes/{number}.xml")
            };
            ChangeList { path, begin, end, is_closed }
        };
        let is_there = |list: &ChangeList| {
            let hole = self.data.hole.filter(|_| has_hole);
            let is_hole = hole.is_some_and(|hole| (list.begin..list.end).contains(&hole));
            !(list.is_closed && is_hole && self.are_at_other_times(list.begin, length + 2))
        };
        (first..=open).map(of).filter(is_there).collect()
    }

    pub(super) fn span(&self, lists: &Lists, list: &ChangeList) -> String {
        let mut span = format!(" from=\"{}\"", text(self.time_before(list.begin), lists.precision));
        if list.is_closed {
            let until = text(self.time_before(list.end), lists.precision);
            let _ = write!(span, " until=\"{until}\"");
        }
        span
    }

    fn change_index(&mut self, lists: &Lists) -> String {
        let named = self.change_lists(lists);
        let mut entries = self.up("/caps.xml");
        for list in &named {
            let span = if lists.has_spans { self.span(lists, list) } else { String::new() };
            let _ = writeln!(
                entries,
                "<sitemap><loc>{}{}</loc><rs:md{span}/></sitemap>",
                self.base, list.path
            );
        }
        if self.has(Fault::Loops) && self.chance(4) {
            let again = if self.chance(2) { "/changes.xml" } else { &*self.random.of(&named).path };
            let _ = writeln!(entries, "<sitemap><loc>{}{again}</loc></sitemap>", self.base);
        }
        let from = self.time_before(named.first().map_or(0, |list| list.begin));
        let from = text(from, lists.precision);
        document("sitemapindex", &format!("capability=\"changelist\" from=\"{from}\""), &entries)
    }

    fn change_list(&mut self, lists: &Lists, list: &ChangeList) -> String {
        let mut entries = match lists.changes {
            Changes::Index(..) => {
                format!("<rs:ln rel=\"index\" href=\"{}/changes.xml\"/>\n", self.base)
            }
            _ => self.up("/caps.xml"),
        };
        for place in list.begin..list.end {
            let copies = self.copies();
            // Of changes with neither time nor digest, a second one is the same as one that is there twice.
            let are_told_apart = lists.has_times || lists.has_fixity;
            for _ in 0..if are_told_apart { copies } else { 1 } {
                let change = &self.data.log[place];
                for changed in change.changed() {
                    entries.push_str(&self.change_entry(lists, change, changed, ""));
                }
            }
        }
        let span = self.span(lists, list);
        document("urlset", &format!("capability=\"changelist\"{span}"), &entries)
    }

    /// An entry for what became of an entity, with further attributes.
    pub(super) fn change_entry(
        &self,
        lists: &Lists,
        change: &Change,
        (entity, kind): (u64, &str),
        more: &str,
    ) -> String {
        let iri = self.iri(entity);
        let time = text(change.time, lists.precision);
        let datetime =
            if lists.has_times { format!(" datetime=\"{time}\"") } else { String::new() };
        let is_deleted = kind == "deleted";
        let md =
            if is_deleted { String::new() } else { self.fixity(lists, entity, change.version) };
        format!("<url><loc>{iri}</loc><rs:md change=\"{kind}\"{datetime}{md}{more}/></url>\n")
    }
}

pub(super) fn at(lists: &Lists, listing: &Listing) -> String {
    if lists.has_at {
        format!(" at=\"{}\"", text(listing.at, lists.precision))
    } else {
        String::new()
    }
}
