//! ResourceSync 0.1: Sitemaps and change sets, without dumps.

use super::adversity::Fault;
use super::data::Change;
use super::kinds::Sitemaps;
use super::provider::Provider;
use super::time::{EPOCH, text};
use crate::bytes::digest::md5_hex;
use base64::Engine as _;
use std::fmt::Write as _;

/// Relation type of change sets.
const CHANGE_SET: &str = "http://www.openarchives.org/rs/changeset";

fn document(root: &str, attributes: &str, inside: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<{root} xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
         xmlns:rs=\"http://www.openarchives.org/rs/terms/\" xmlns:xhtml=\"http://www.w3.org/1999/xhtml\" {attributes}>\n\
         {inside}</{root}>\n"
    )
}

fn link(rel: &str, href: &str) -> String {
    format!("<xhtml:link rel=\"{rel} {CHANGE_SET}\" href=\"{href}\"/>\n")
}

impl Provider {
    pub(super) fn sitemap_document(&mut self, sitemaps: &Sitemaps, path: &str) -> Option<String> {
        if sitemaps.is_live && path.starts_with("/s") {
            self.make_listing();
        }
        let length = if sitemaps.length == 0 { usize::MAX } else { sitemaps.length };
        let open = self.published / length;
        let number =
            |begin: &str| path.strip_prefix(begin)?.strip_suffix(".xml")?.parse::<u64>().ok();
        match path {
            "/s.xml" if sitemaps.parts > 0 => Some(self.sitemap_index(sitemaps)),
            "/s.xml" => Some(self.sitemap(sitemaps, None)),
            "/c.xml" => self.changes_of_set(sitemaps, open, length),
            _ => {
                if let Some(part) = number("/s/").filter(|part| *part < sitemaps.parts) {
                    return Some(self.sitemap(sitemaps, Some(part)));
                }
                let set = number("/c/").filter(|set| (*set as usize) < open)?;
                self.changes_of_set(sitemaps, set as usize, length)
            }
        }
    }

    /// The place in the log where the oldest change set begins that the others lead to.
    pub(super) fn oldest_listed(&self, sitemaps: &Sitemaps) -> usize {
        if sitemaps.length == 0 {
            return self.data.first;
        }
        let (length, open) = (sitemaps.length, self.published / sitemaps.length);
        let hole = self.data.hole.filter(|_| self.faults.has(Fault::Holes));
        let is_there = |set: &usize| {
            let (begin, end) = (set * length, (set + 1) * length);
            end > self.data.first && hole.is_none_or(|hole| !(begin..end).contains(&hole))
        };
        (0..open).rev().take_while(is_there).last().unwrap_or(open) * length
    }

    fn sitemap_head(&self, sitemaps: &Sitemaps) -> String {
        sitemaps.modified(self.data.listing.at) + &link("current", &format!("{}/c.xml", self.base))
    }

    fn sitemap_index(&mut self, sitemaps: &Sitemaps) -> String {
        let mut inside = self.sitemap_head(sitemaps);
        let time = if sitemaps.has_modified {
            format!("<lastmod>{}</lastmod>", text(self.data.listing.at, sitemaps.precision))
        } else {
            String::new()
        };
        for part in 0..sitemaps.parts {
            let base = &self.base;
            let _ = writeln!(inside, "<sitemap><loc>{base}/s/{part}.xml</loc>{time}</sitemap>");
        }
        if self.has(Fault::Loops) && self.chance(4) {
            let again = ["/s.xml", "/s/0.xml"][self.random.index(2)];
            let _ = writeln!(inside, "<sitemap><loc>{}{again}</loc></sitemap>", self.base);
        }
        document("sitemapindex", "", &inside)
    }

    fn sitemap(&mut self, sitemaps: &Sitemaps, part: Option<u64>) -> String {
        let listing = self.data.listing.clone();
        let mut inside = self.sitemap_head(sitemaps);
        let is_here = |entity: &u64| part.is_none_or(|part| entity % sitemaps.parts == part);
        for (entity, version) in listing.entities.iter().filter(|it| is_here(it.0)) {
            for _ in 0..self.copies() {
                let time = text(version.time, sitemaps.precision);
                let fixity = self.fixity_of(sitemaps, *entity, version.number);
                let iri = self.iri(*entity);
                let _ = writeln!(
                    inside,
                    "<url><loc>{iri}</loc><lastmod>{time}</lastmod>{fixity}</url>"
                );
            }
        }
        let deleted = listing.deleted.iter().filter(|it| sitemaps.has_tombstones && is_here(it.0));
        for (entity, time) in deleted {
            let (iri, time) = (self.iri(*entity), text(*time, sitemaps.precision));
            let _ = writeln!(inside, "<url><loc>{iri}</loc><expires>{time}</expires></url>");
        }
        document("urlset", "", &inside)
    }

    fn fixity_of(&self, sitemaps: &Sitemaps, entity: u64, version: u64) -> String {
        if !sitemaps.has_fixity {
            return String::new();
        }
        let body = self.body(entity, version);
        let digits = md5_hex(body.as_bytes());
        let bytes: Vec<u8> = (0..digits.len() / 2)
            .filter_map(|at| u8::from_str_radix(&digits[at * 2..at * 2 + 2], 16).ok())
            .collect();
        let digest = base64::engine::general_purpose::STANDARD.encode(bytes);
        format!("<rs:fixity type=\"md5\">{digest}</rs:fixity><rs:size>{}</rs:size>", body.len())
    }

    /// A change set, if it is there.
    fn changes_of_set(&mut self, sitemaps: &Sitemaps, set: usize, length: usize) -> Option<String> {
        let open = self.published / length;
        let begin = if sitemaps.length == 0 { self.data.first } else { set * length };
        let end = set.saturating_add(1).saturating_mul(length).min(self.published);
        let hole = self.data.hole.filter(|_| self.faults.has(Fault::Holes));
        let is_gone =
            end <= self.data.first || hole.is_some_and(|hole| (begin..end).contains(&hole));
        if set < open && is_gone {
            return None;
        }
        let last = end.checked_sub(1).map_or(EPOCH, |last| self.data.log[last].noted);
        let mut inside =
            sitemaps.modified(last) + &link("current", &format!("{}/c.xml", self.base));
        let mut before = set.checked_sub(1);
        if self.has(Fault::Loops) && self.chance(6) {
            // Back to a later one, or to itself: nothing shows that others were passed over.
            before = Some(set + self.random.index(open + 1 - set));
        }
        if let Some(before) = before {
            let name =
                if before == open { "/c.xml".to_owned() } else { format!("/c/{before}.xml") };
            inside.push_str(&link("prev", &format!("{}{name}", self.base)));
        }
        let mut places: Vec<usize> = (begin..end).collect();
        if sitemaps.is_unordered {
            places.reverse();
            let middle = places.len() / 2;
            places.rotate_left(middle);
        }
        for place in places {
            for _ in 0..self.copies() {
                let change = self.data.log[place].clone();
                self.change_of_set(sitemaps, &change, &mut inside);
            }
        }
        let attributes = if sitemaps.is_typed { "rs:type=\"changeset\"" } else { "" };
        Some(document("urlset", attributes, &inside))
    }

    fn change_of_set(&self, sitemaps: &Sitemaps, change: &Change, out: &mut String) {
        let time = text(change.time, sitemaps.precision);
        for (entity, kind) in change.changed() {
            let iri = self.iri(entity);
            let what = if kind == "deleted" {
                format!("<expires>{time}</expires>")
            } else {
                let fixity = self.fixity_of(sitemaps, entity, change.version);
                format!("<lastmod rs:type=\"{kind}\">{time}</lastmod>{fixity}")
            };
            let _ = writeln!(out, "<url><loc>{iri}</loc>{what}</url>");
        }
    }
}
