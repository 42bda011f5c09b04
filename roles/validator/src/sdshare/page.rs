//! Checks of a page of a feed: bytes in, entries and findings out [rfc4287 §4.1]
//! [sdshare §Server Role].

use super::read::Reading;
use crate::fetch::values::first_line;
use crate::fetch::{ResponseFacts, values};
use crate::report::{Findings, Rule, rules as r};
use abreast_sdshare::{ATOM_NAMESPACE, Entry, Error, Feed, FeedKind, Limits, Link, Parser, Step};
use abreast_webtypes::excerpt;

/// Whether the first bytes are from an Atom feed.
pub(crate) fn is_feed(begin: &[u8]) -> bool {
    crate::fetch::root::root_of(begin, &[ATOM_NAMESPACE])
        .is_some_and(|(is_atom, name)| is_atom || name == "feed")
}

/// Checks a single feed, passed to its parser in pieces.
pub(crate) fn check_feed(bytes: &[u8], piece: usize, found: Findings) -> Findings {
    let mut page = PageReader::new("file:///", found, u64::MAX);
    let mut reading = Reading::new(0, 1, None);
    let mut listener = |entry: &Entry, found: &mut Findings| reading.entry(entry, None, found);
    for piece in bytes.chunks(piece) {
        page.feed(piece, &mut listener);
    }
    page.finish(&mut listener).found
}

/// Reads a page entry by entry. A listener can add findings to each entry.
pub(super) struct PageReader {
    parser: Parser,
    entry: Entry,
    found: Findings,
    kind: Option<FeedKind>,
    bytes: u64,
    error: Option<Error>,
}

/// A page of a feed that was read.
pub(super) struct Page {
    pub(super) head: Feed,
    pub(super) kind: Option<FeedKind>,
    pub(super) entries: u64,
    pub(super) bytes: u64,
    pub(super) found: Findings,
    pub(super) is_complete: bool,
    /// Why the page cannot be read to its end.
    pub(super) refusal: Option<String>,
}

pub(super) type Listener<'a> = dyn FnMut(&Entry, &mut Findings) + 'a;

impl PageReader {
    pub(super) fn new(url: &str, found: Findings, most: u64) -> Self {
        Self {
            parser: Parser::new(url, Limits::default().with_bytes(most)),
            entry: Entry::default(),
            found,
            kind: None,
            bytes: 0,
            error: None,
        }
    }

    /// Uses `charset` of the answer's media type as encoding.
    pub(super) fn answered(mut self, facts: &ResponseFacts) -> Self {
        self.parser.use_charset(facts.media_type());
        self
    }

    /// Reads the next bytes; `false` after an error, when the rest is ignored.
    pub(super) fn feed(&mut self, bytes: &[u8], listener: &mut Listener<'_>) -> bool {
        self.bytes += bytes.len() as u64;
        self.parser.feed(bytes);
        self.run(listener);
        self.error.is_none()
    }

    fn run(&mut self, listener: &mut Listener<'_>) -> bool {
        while self.error.is_none() {
            match self.parser.next(&mut self.entry) {
                Ok(Step::Entry) => {
                    self.kind = self.kind.or(self.entry.kind());
                    // For IRIs that are not absolute, the parser reports the fault.
                    for iri in &self.entry.resources {
                        if let Some(fault) = values::absolute_fault(iri)
                            && fault != values::NOT_ABSOLUTE
                        {
                            let message = || format!("\"{}\" {fault}", excerpt(iri));
                            self.found.add(&r::SDS_RESOURCE, (self.entry.line, 0), message);
                        }
                    }
                    types(&self.entry.links, self.entry.line, &mut self.found);
                    listener(&self.entry, &mut self.found);
                }
                Ok(Step::NeedInput) => return false,
                Ok(Step::End) => return true,
                Err(error) => self.error = Some(error),
            }
        }
        false
    }

    pub(super) fn finish(mut self, listener: &mut Listener<'_>) -> Page {
        self.parser.finish();
        let is_complete = self.run(listener);
        if let Some(error) = &self.error {
            let rule = match error.code() {
                "atom.root" | "atom.namespace" | "atom.nested" => &r::ATOM_FEED,
                "atom.paging" => &r::PAGE_NEXT,
                "atom.updated" => &r::ATOM_UPDATED,
                "sdshare.limit" => &r::LIMIT,
                other => r::of_syntax(other),
            };
            self.found.add(rule, (error.line(), error.column()), || match error.help() {
                Some(help) => format!("{} ({help})", error.message()),
                None => error.message().to_owned(),
            });
        }
        types(&self.parser.head().links, 0, &mut self.found);
        self.judge();
        let entries = self.parser.entries();
        let (head, _) = self.parser.into_parts();
        let Self { kind, bytes, found, error, .. } = self;
        let refusal = error.as_ref().map(first_line);
        Page { head, kind, entries, bytes, found, is_complete, refusal }
    }

    /// Converts the deviations that the parser reported into findings.
    fn judge(&mut self) {
        let mut kept: Vec<(&'static str, u64)> = Vec::new();
        for noticed in self.parser.findings() {
            let rule = rule(noticed.code, self.kind);
            // The finding already contains the section, from its rule.
            let message = match noticed.message.rfind(" [") {
                Some(end) if noticed.message.ends_with(']') => &noticed.message[..end],
                _ => &noticed.message,
            };
            self.found.add(rule, (noticed.line, 0), || message.to_owned());
            match kept.iter_mut().find(|(code, _)| *code == noticed.code) {
                Some((_, count)) => *count += 1,
                None => kept.push((noticed.code, 1)),
            }
        }
        for (code, count) in kept {
            for _ in count..self.parser.count_of(code) {
                self.found.add(rule(code, self.kind), (0, 0), || "another one, like those above");
            }
        }
    }
}

/// Reports links whose `type` is not a media type.
fn types(links: &[Link], line: u64, found: &mut Findings) {
    let types = links.iter().filter_map(|link| link.media_type.as_deref());
    for text in types.filter(|text| !values::is_media_type(text)) {
        found.add(&r::ATOM_TYPE, (line, 0), || format!("`type` is \"{}\"", excerpt(text)));
    }
}

/// The rule that a deviation violates, which depends on the kind of feed.
fn rule(code: &str, kind: Option<FeedKind>) -> &'static Rule {
    match code {
        "atom.alternate" => &r::ATOM_ALTERNATE,
        "atom.alternate-twice" => &r::ATOM_ALTERNATE_ONCE,
        "atom.author" => &r::ATOM_AUTHOR,
        "atom.base" => &r::ATOM_BASE,
        "atom.id" => &r::ATOM_ID,
        "atom.link" => &r::ATOM_LINK,
        "atom.paging" => &r::PAGE_NEXT,
        "atom.paging-loop" => &r::PAGE_LOOP,
        "atom.text" => &r::ATOM_TEXT,
        "atom.title" => &r::ATOM_TITLE,
        "atom.updated" => &r::ATOM_UPDATED,
        "sdshare.alternate" => &r::SDS_ALTERNATE,
        "sdshare.collection" => &r::SDS_TWO_FEEDS,
        "sdshare.older" => &r::SDS_OLDER,
        "sdshare.resource" => &r::SDS_RESOURCE,
        "sdshare.type" => &r::SDS_TYPE,
        "sdshare.link" => match kind {
            Some(FeedKind::Overview) => &r::SDS_COLLECTION_LINK,
            Some(FeedKind::Snapshots) => &r::SDS_SNAPSHOT_LINK,
            Some(FeedKind::ChunkedSnapshot) => &r::SDS_CHUNK_LINK,
            Some(FeedKind::Fragments) => &r::SDS_FRAGMENT_LINK,
            Some(FeedKind::Collection) | None => &r::SDS_MIXED,
        },
        _ => &r::SDS_MIXED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Mode;

    #[test]
    fn every_code_of_the_reader_has_a_rule_of_its_own() {
        let rules: std::collections::BTreeSet<_> =
            abreast_sdshare::CODES.iter().map(|(code, _)| rule(code, None).id).collect();
        // `sdshare.link` without a kind is `sdshare.mixed`.
        assert_eq!(rules.len(), abreast_sdshare::CODES.len() - 1);
    }

    #[test]
    fn feeds_are_known_by_their_root() {
        for begin in [
            "<feed xmlns='http://www.w3.org/2005/Atom'>",
            "\u{feff}<?xml version='1.0'?>\n<!-- a feed --><a:feed xmlns:a='http://www.w3.org/2005/Atom'>",
            "<entry xmlns='http://www.w3.org/2005/Atom'/>",
            "<feed xmlns='http://purl.org/atom/ns#'>",
        ] {
            assert!(is_feed(begin.as_bytes()), "{begin}");
        }
        for begin in ["", "<!DOCTYPE html><html>", "<urlset><feed/>", "<!-- <feed> -->", "feed"] {
            assert!(!is_feed(begin.as_bytes()), "{begin}");
        }
    }

    #[test]
    fn all_findings_are_counted() {
        let entries = "<entry/>".repeat(250);
        let feed = format!("<feed xmlns='{ATOM_NAMESPACE}'>{entries}</feed>");
        let found = check_feed(feed.as_bytes(), 7, Findings::new("f", Mode::Normal, 3)).into_list();
        let titles: Vec<_> =
            found.iter().filter(|found| found.rule.id == r::ATOM_TITLE.id).collect();
        assert_eq!(titles.len(), 3);
        assert_eq!(titles.iter().map(|found| 1 + found.more).sum::<u64>(), 251);
    }
}
