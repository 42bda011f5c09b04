//! The checker of a single document. It streams in bounded memory and continues after faults.
//!
//! Only bytes that are not XML end the check: nothing after them can be reported.

mod start;

use crate::fetch::ResponseFacts;
use crate::fetch::values::{self, NOT_UTF_8, a_moment_after};
use crate::report::{Findings, rules as r};
use crate::resourcesync::checker::start::CheckerState;
use crate::resourcesync::entry::{DocumentObserver, Entry, Head, MAX_LINKS};
use crate::resourcesync::judge;
use crate::resourcesync::markup::{ElementFaults, KNOWN, datetime};
use abreast_resourcesync::sitemap::{
    space_around_loc, text_between_elements, trimmed, without_date,
};
use abreast_resourcesync::v1_1::{self, Limits, Parser, SPEC_MAX_ENTRIES, Step};
use abreast_webtypes::xml::{Reader, Token};
use abreast_webtypes::{MAX_URI_LENGTH, SyntaxError, excerpt};
use start::Start;
use std::time::SystemTime;

/// Most bytes of a Sitemap, unpacked [rs-core §7].
pub(crate) const SPEC_MAX_BYTES: u64 = 50 << 20;
/// Longest text of `lastmod` and `changefreq`, in bytes.
const MAX_TEXT: usize = 1_024;
/// Size in bytes of the pieces in which a chunk is parsed.
const PIECE: usize = 64 << 10;

/// An observer that ignores all parts of the document.
impl DocumentObserver for () {
    fn head(&mut self, _head: &Head) {}
    fn entry(&mut self, _head: &Head, _entry: &Entry, _found: &mut Findings) {}
}

/// Checks one document of ResourceSync or a Sitemap.
pub(crate) struct Checker<W> {
    xml: Reader,
    pub(crate) found: Findings,
    pub(crate) observer: W,
    pub(crate) head: Head,
    head_done: bool,
    place: CheckerState,
    entry: Entry,
    text: String,
    faults: ElementFaults,
    state: judge::State,
    /// The parser that copies use, until it refuses this document.
    reader: Option<Box<(Parser, v1_1::Entry)>>,
    /// Error for which copies refuse the document.
    pub(crate) refusal: Option<SyntaxError>,
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
    /// Whether the document was read to its end.
    pub(crate) complete: bool,
    broken: bool,
}

impl<W: DocumentObserver> Checker<W> {
    pub(crate) fn new(found: Findings, observer: W, max_bytes: u64) -> Self {
        Self {
            xml: Reader::with_limit(KNOWN, max_bytes),
            found,
            observer,
            head: Head::default(),
            head_done: false,
            place: CheckerState::Outside,
            entry: Entry::default(),
            text: String::new(),
            faults: ElementFaults {
                now: Some(a_moment_after(SystemTime::now())),
                ..ElementFaults::default()
            },
            state: judge::State::default(),
            reader: Some(Self::reader(Limits::default())),
            refusal: None,
            bytes: 0,
            entries: 0,
            complete: false,
            broken: false,
        }
    }

    /// Applies the limits of a manifest in a package, of which copies read more entries.
    pub(crate) fn of_manifest(mut self) -> Self {
        self.reader = Some(Self::reader(Limits::of_manifest()));
        self
    }

    fn reader(limits: Limits) -> Box<(Parser, v1_1::Entry)> {
        Box::new((Parser::new(limits), v1_1::Entry::default()))
    }

    /// Uses the headers of the answer: `charset` of the media type, and the clock of the server,
    /// which may be ahead of the local one.
    pub(crate) fn answered(&mut self, facts: &ResponseFacts) {
        self.xml.use_charset(facts.media_type());
        if let Some(reader) = &mut self.reader {
            reader.0.use_charset(facts.media_type());
        }
        let date = facts.date.as_deref().and_then(|date| httpdate::parse_http_date(date).ok());
        self.faults.now = self.faults.now.max(date.map(a_moment_after));
    }

    /// Whether the document is not XML, so that no more faults can be reported.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// Checks the next bytes of the document.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        for piece in bytes.chunks(PIECE) {
            if self.broken {
                return;
            }
            if let Some(reader) = &mut self.reader {
                reader.0.feed(piece);
                self.read();
            }
            self.xml.push(piece);
            self.run();
        }
    }

    /// Parses the available bytes with the parser of copies.
    fn read(&mut self) {
        let Some(reader) = &mut self.reader else { return };
        let (parser, entry) = &mut **reader;
        loop {
            match parser.next(entry) {
                Ok(Step::NeedInput) => return,
                Ok(Step::Head | Step::Entry) => {}
                Ok(Step::End) => break,
                Err(error) => {
                    self.refusal = Some(error);
                    break;
                }
            }
        }
        self.reader = None;
    }

    /// Checks the end of the document.
    pub(crate) fn finish(&mut self) {
        if !self.broken {
            if let Some(reader) = &mut self.reader {
                reader.0.finish();
                self.read();
            }
            self.xml.finish();
            self.run();
        }
        if self.head.root.is_some() {
            let read =
                judge::Extent { head: self.head_done || !self.broken, entries: !self.broken };
            self.end_head(read);
            judge::end(&self.head, &self.state, self.entries, read, &mut self.found);
        }
        if !self.xml.is_utf_8() {
            self.found.add(&r::SITEMAP_UTF_8, (0, 0), || NOT_UTF_8.to_owned());
        }
        if self.entries > SPEC_MAX_ENTRIES {
            self.found
                .add(&r::ITEMS, (0, 0), || format!("the document has {} entries", self.entries));
        }
        if self.bytes > SPEC_MAX_BYTES {
            self.found.add(&r::SIZE, (0, 0), || format!("the document has {} bytes", self.bytes));
        }
        // For text that is not XML, the fault of XML is already reported.
        if let Some(error) = self.refusal.as_ref().filter(|_| !self.broken) {
            self.found.refuse(&r::READ, error);
        }
    }

    fn run(&mut self) {
        loop {
            let element = match self.xml.next() {
                Err(error) => {
                    self.broken = true;
                    let message = match error.help() {
                        Some(help) => format!("{} ({}; {help})", error.message(), error.code()),
                        None => format!("{} ({})", error.message(), error.code()),
                    };
                    let place = (error.line(), error.column());
                    self.found.add(r::of_sitemap_syntax(error.code()), place, || message);
                    return;
                }
                Ok(Token::NeedInput) => return,
                Ok(Token::Markup(_)) => continue,
                Ok(Token::Done) => {
                    self.complete = true;
                    return;
                }
                Ok(Token::Text(text)) => {
                    let (into, most) = match self.place {
                        CheckerState::Loc => (&mut self.entry.loc, MAX_URI_LENGTH * 2),
                        CheckerState::Lastmod
                        | CheckerState::ChangeFreq
                        | CheckerState::Priority => (&mut self.text, MAX_TEXT),
                        CheckerState::Root
                        | CheckerState::Entry
                        | CheckerState::Skipped { open: 1, is_void: true, .. }
                            if !text.trim_ascii().is_empty() =>
                        {
                            let message = text_between_elements(text.trim_ascii());
                            let place = self.here();
                            self.found.add(&r::TEXT, place, || message);
                            continue;
                        }
                        _ => continue,
                    };
                    if into.len() + text.len() <= most {
                        into.push_str(text);
                    }
                    continue;
                }
                Ok(Token::End) => None,
                Ok(Token::Start(element)) => Some(Start::of(
                    &element,
                    self.place,
                    &mut self.head,
                    &mut self.entry,
                    &mut self.faults,
                    self.head_done,
                )),
            };
            match element {
                Some(start) => self.start(start),
                None => self.end(),
            }
            if !self.faults.list.is_empty() {
                let place = self.here();
                for (rule, message) in self.faults.list.drain(..) {
                    self.found.add(rule, place, || message);
                }
            }
        }
    }

    /// Line and column of the current token.
    fn here(&self) -> (u64, u64) {
        let at = self.xml.error("", "");
        (at.line(), at.column())
    }

    fn start(&mut self, start: Start) {
        match start {
            Start::Go(place) => {
                self.text.clear();
                self.place = place;
            }
            Start::Entry => {
                self.end_head(judge::Extent { head: true, entries: false });
                // Counts the lines up to here only once.
                self.xml.line();
                let place = self.here();
                self.entry.clear(place);
                self.place = CheckerState::Entry;
            }
            Start::HeadMd(md) => {
                let place = self.here();
                if self.head.md.is_some() {
                    self.found.add(&r::MD_ONCE, place, || "a second `rs:md` of the document");
                } else {
                    self.head.md_place = place;
                    self.head.md = Some(*md);
                }
                self.place = CheckerState::Skipped { open: 1, in_entry: false, is_void: true };
            }
            Start::HeadLink(link) => {
                let place = self.here();
                if self.head.links.len() < MAX_LINKS {
                    self.head.links.push((*link, place));
                }
                self.place = CheckerState::Skipped { open: 1, in_entry: false, is_void: true };
            }
        }
    }

    fn end(&mut self) {
        match self.place {
            CheckerState::Skipped { open: 1, in_entry, .. } => {
                self.place = if in_entry { CheckerState::Entry } else { CheckerState::Root }
            }
            CheckerState::Skipped { open, in_entry, is_void } => {
                self.place = CheckerState::Skipped { open: open - 1, in_entry, is_void }
            }
            CheckerState::Loc => {
                let (loc, inside) = (&self.entry.loc, trimmed(&self.entry.loc));
                if inside.len() != loc.len() {
                    if inside.len() != loc.trim_ascii().len() {
                        self.faults.add(&r::LOC_SPACE, space_around_loc(loc));
                    }
                    self.entry.loc = inside.to_owned();
                }
                self.place = CheckerState::Entry;
            }
            CheckerState::Lastmod => {
                if let Some(message) = without_date(&self.text) {
                    self.faults.add(&r::DATETIME, message);
                } else {
                    self.entry.lastmod = datetime("lastmod", &self.text, &mut self.faults);
                }
                self.place = CheckerState::Entry;
            }
            CheckerState::ChangeFreq => {
                const DEFINED: [&str; 7] =
                    ["always", "hourly", "daily", "weekly", "monthly", "yearly", "never"];
                if !DEFINED.contains(&self.text.trim_ascii()) {
                    self.faults.add(
                        &r::CHANGEFREQ,
                        format!("`changefreq` is \"{}\"", excerpt(&self.text)),
                    );
                }
                self.place = CheckerState::Entry;
            }
            CheckerState::Priority => {
                let value = self.text.trim_ascii().parse::<f32>();
                if !value.is_ok_and(|value| (0.0..=1.0).contains(&value)) {
                    let message = format!("`priority` is \"{}\"", excerpt(&self.text));
                    self.faults.add(&r::SITEMAP_PRIORITY, message);
                }
                self.place = CheckerState::Entry;
            }
            CheckerState::Entry => {
                self.entries += 1;
                self.end_entry();
                self.place = CheckerState::Root;
            }
            CheckerState::Root | CheckerState::Outside => self.place = CheckerState::Outside,
        }
    }

    fn end_head(&mut self, read: judge::Extent) {
        if !self.head_done {
            self.head_done = true;
            judge::head(&self.head, read, &mut self.found);
            self.observer.head(&self.head);
        }
    }

    fn end_entry(&mut self) {
        let (entry, found) = (&self.entry, &mut self.found);
        match entry.locs {
            0 => found.add(&r::LOC, entry.place, || "an entry without `loc`"),
            1 => {}
            _ => found.add(&r::LOC, entry.place, || "an entry with several `loc`"),
        }
        if entry.locs > 0 {
            if let Some(fault) = values::uri_fault(&entry.loc) {
                found.add(&r::URI, entry.place, || {
                    format!("`loc` \"{}\" {fault}", excerpt(&entry.loc))
                });
            } else if let Some(fault) = values::not_normal(&entry.loc) {
                found.add(&r::URI_NORMAL, entry.place, || {
                    format!("`loc` \"{}\" {fault}", excerpt(&entry.loc))
                });
            }
        }
        if let Some(length) = values::too_many_characters(&entry.loc) {
            found.add(&r::SITEMAP_LOC, entry.place, || format!("`loc` has {length} characters"));
        }
        judge::entry(&self.head, entry, &mut self.state, found);
        self.observer.entry(&self.head, entry, found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Mode;

    /// More entries than copies read from documents other than manifests.
    #[test]
    fn copies_read_manifests_with_many_entries() {
        let entry = "<url><loc>h:a</loc></url>".repeat(200_001);
        let text = format!(
            "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:rs='http://www.openarchives.org/rs/terms/'>\
             <rs:md capability='resourcedump-manifest' at='2026-01-01T00:00:00Z'/>{entry}</urlset>"
        );
        let found = Findings::new("", Mode::Normal, 1);
        let mut checker = Checker::new(found, (), u64::MAX).of_manifest();
        checker.feed(text.as_bytes());
        checker.finish();
        assert!(checker.refusal.is_none(), "{:?}", checker.refusal);
        assert_eq!(checker.entries, 200_001);
    }
}
