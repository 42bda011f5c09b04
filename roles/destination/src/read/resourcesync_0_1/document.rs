//! Documents of ResourceSync 0.1, fetched and read entry by entry, within limits [rs-0.1 §3.1].

use crate::diagnostics::{Diagnostics, Remark};
use crate::error::{Error, ExitCode};
use crate::read::pieces::{Answered, Pieces, read_document};
use crate::read::resourcesync::document::{
    DOCUMENT_BYTES_MAX, Go, at_earliest, at_latest, is_zoneless, note_findings, syntax_error,
};
use crate::requests::Requests;
use abreast_resourcesync::v0_1::{
    CHANGE_SET, Entry, Head, Limits, Link, Parser, Root, Step, Tolerance,
};
use abreast_store::mirror::Document;
use abreast_webtypes::{Timestamp, W3cDatetime, excerpt, resolve};

/// The name of the period that a document is about; its begin is written `start=TIME` (DCMI Period).
const PERIOD: &str = "DCTERMS.temporal";

/// A document that was read, with the metadata of the answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Read {
    /// The document's own head.
    pub(super) head: Head,
    /// The head of the answer.
    pub(super) answered: Answered,
    /// How many entries were left out because they could not be understood.
    pub(super) skipped: u64,
    /// Times were written without a zone.
    pub(super) zoneless: bool,
}

impl Read {
    /// Whether it is an index of Sitemaps.
    pub(super) fn is_index(&self) -> bool {
        self.head.root == Root::SitemapIndex
    }

    /// The earliest instant that may be meant by a time of this document.
    pub(super) fn at_earliest(&self, stated: Timestamp) -> Timestamp {
        at_earliest(self.zoneless, stated)
    }

    /// The latest instant that may be meant by a time of this document.
    pub(super) fn at_latest(&self, stated: Timestamp) -> Timestamp {
        at_latest(self.zoneless, stated)
    }

    /// When it was last modified, as it states.
    pub(super) fn modified(&self) -> Option<Timestamp> {
        self.head.modified.map(|modified| self.at_earliest(modified.instant))
    }
}

/// A part of a document, as it is read.
pub(super) enum Part<'a> {
    /// The head. It comes first, and again when a transfer broke off and is repeated: what came
    /// before does not count then.
    Begin(&'a Head),
    /// An entry; its `loc` is absolute.
    Entry(&'a Head, &'a Entry),
}

type Each<'a> = &'a mut dyn FnMut(Part<'_>) -> Result<Go, Error>;

/// Reads a document part by part; `None` when it has not changed since it was known.
pub(super) fn read(
    requests: &Requests<'_>,
    url: &str,
    known: Option<&Document>,
    each: Each<'_>,
) -> Result<Option<Read>, Error> {
    let diagnostics = &requests.diagnostics;
    let mut reading = Reading {
        url,
        diagnostics,
        each,
        parser: new_parser(diagnostics),
        base: String::new(),
        entry: Entry::default(),
    };
    let answered = read_document(requests, url, known, DOCUMENT_BYTES_MAX, &mut reading)?;
    Ok(answered.map(|answered| {
        note_findings(diagnostics, url, reading.parser.findings());
        Read {
            head: reading.parser.head().cloned().unwrap_or_default(),
            answered,
            skipped: reading.parser.skipped(),
            zoneless: is_zoneless(reading.parser.findings()),
        }
    }))
}

/// Reads no more than the head of a document.
pub(super) fn read_head(requests: &Requests<'_>, url: &str) -> Result<Read, Error> {
    read(requests, url, None, &mut |_| Ok(Go::Enough))?.ok_or_else(|| unasked(url))
}

/// Whether the server answers that a document has not changed.
pub(super) fn is_unchanged(
    requests: &Requests<'_>,
    url: &str,
    known: &Document,
) -> Result<bool, Error> {
    if known.etag.is_none() && known.last_modified.is_none() {
        return Ok(false);
    }
    Ok(read(requests, url, Some(known), &mut |_| Ok(Go::Enough))?.is_none())
}

/// Whether a document has changed since it was read.
pub(super) fn has_changed(
    requests: &Requests<'_>,
    url: &str,
    known: &Document,
) -> Result<bool, Error> {
    let read = read(requests, url, Some(known), &mut |_| Ok(Go::On))?;
    Ok(read.is_some_and(|read| read.answered.validators.fingerprint != known.fingerprint))
}

/// A server answered that a document has not changed that nobody asked so.
pub(super) fn unasked(url: &str) -> Error {
    Error::new("http.status", ExitCode::SourceInvalid, format!("{url} answered 304 unasked"))
}

/// Whether a document is a change set. The attribute that states it is only recommended
/// [rs-0.1 §5.1]; the links that change sets have state it as well.
pub(super) fn is_change_set(head: &Head, base: &str) -> bool {
    head.change_set
        || head.links.iter().any(|link| {
            link.has_rel(CHANGE_SET)
                && (link.has_rel("prev")
                    || link.has_rel("current")
                        && resolve(base, &link.href).is_ok_and(|url| url == base))
        })
}

/// The time since which a document has all changes, if it states that.
pub(super) fn from_of(head: &Head) -> Option<Timestamp> {
    let period = head.metas.iter().find(|meta| meta.name.trim().eq_ignore_ascii_case(PERIOD))?;
    let start = period.content.split(';').find_map(|part| part.trim().strip_prefix("start="))?;
    W3cDatetime::parse(start.trim().as_bytes()).ok().map(|start| start.instant)
}

/// Where a link leads.
pub(super) fn target(base: &str, link: &Link) -> Option<String> {
    resolve(base, link.href.trim()).ok()
}

fn new_parser(diagnostics: &Diagnostics) -> Parser {
    Parser::with_tolerance(Limits::default(), diagnostics.tolerance)
}

/// One document while it is read.
struct Reading<'a> {
    url: &'a str,
    diagnostics: &'a Diagnostics,
    each: Each<'a>,
    parser: Parser,
    /// The URL that answered.
    base: String,
    entry: Entry,
}

impl Pieces for Reading<'_> {
    fn begin(&mut self, answered: &Answered) -> Result<(), Error> {
        self.parser = new_parser(self.diagnostics);
        self.base.clone_from(&answered.url);
        Ok(())
    }

    fn is_packed(&mut self, answered: &Answered) -> Result<(), Error> {
        if answered.names_gzip() {
            return Ok(());
        }
        let message = "packed with gzip, which neither its name nor its headers state";
        self.note("rs.gzip", 1, message.to_owned())
    }

    fn piece(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        self.parser.feed(bytes);
        Ok(self.drain()? == Go::On)
    }

    fn end(&mut self) -> Result<(), Error> {
        self.parser.finish();
        self.drain().map(drop)
    }
}

impl Reading<'_> {
    fn drain(&mut self) -> Result<Go, Error> {
        loop {
            let step = self.parser.next(&mut self.entry);
            match step.map_err(|fault| syntax_error(self.url, &fault))? {
                Step::NeedInput | Step::End => return Ok(Go::On),
                Step::Head => {
                    let head = self.parser.head().cloned().unwrap_or_default();
                    if (self.each)(Part::Begin(&head))? == Go::Enough {
                        return Ok(Go::Enough);
                    }
                }
                Step::Entry => {
                    let mut entry = std::mem::take(&mut self.entry);
                    self.make_absolute(&mut entry)?;
                    let Some(head) = self.parser.head() else { continue };
                    let go = (self.each)(Part::Entry(head, &entry))?;
                    self.entry = entry;
                    if go == Go::Enough {
                        return Ok(Go::Enough);
                    }
                }
            }
        }
    }

    fn make_absolute(&self, entry: &mut Entry) -> Result<(), Error> {
        if !entry.loc.starts_with("http")
            && let Ok(absolute) = resolve(&self.base, &entry.loc)
            && absolute != entry.loc
        {
            let message = format!("`loc` is \"{}\", which is relative", excerpt(&entry.loc));
            self.note("rs.relative", entry.line, message)?;
            entry.loc = absolute;
        }
        Ok(())
    }

    fn note(&self, code: &'static str, line: u64, message: String) -> Result<(), Error> {
        if self.diagnostics.tolerance == Tolerance::Strict {
            let message = format!("cannot read {}\n  {message}", self.url);
            return Err(Error::new(code, ExitCode::SourceInvalid, message)
                .with_help("`--strict` refuses what is read otherwise"));
        }
        self.diagnostics.note(self.url, Remark { code, line, message, count: 1 });
        Ok(())
    }
}
