//! One document, fetched and read entry by entry, within limits [rs-core §7, rs-0.1 §3.1].

use crate::report::error::{Error, ExitCode};
use crate::request::diagnostics::{Diagnostics, Remark};
pub(crate) use crate::request::pieces::unasked;
use crate::request::pieces::{
    Answered, Asked, Go, Nothing, Pieces, Received, read_document, receive,
};
use crate::request::requests::Requests;
use abreast_resourcesync::sitemap::{Finding, Limits, Parser, Root, Step, Tolerance, Version};
use abreast_store::mirror::Document;
use abreast_webtypes::{Moment, SyntaxError, Timestamp, W3cDatetime, excerpt, resolve};

/// Maximum length of a decompressed document in bytes; ten times the limit of the specification.
pub(crate) const DOCUMENT_BYTES_MAX: u64 = 512 << 20;
/// Number of bytes that contain the head of a document.
pub(crate) const BEGIN_BYTES: usize = 64 << 10;
/// Maximum difference between a local time without a zone and the same text read as UTC, in
/// microseconds.
pub(crate) const ZONE_MICROS: i64 = 26 * 3_600_000_000;

/// A parsed document, with the metadata of the response.
#[derive(Debug)]
pub(crate) struct Read<V: Version> {
    /// The document's own head.
    pub(crate) head: V::Head,
    /// The head of the response.
    pub(crate) answered: Answered,
    /// Whether the document is an index.
    pub(crate) is_index: bool,
    /// Number of entries that could not be parsed and were left out.
    pub(crate) skipped: u64,
    /// Whether there were times without a zone, which may be wrong by most of a day.
    pub(crate) zoneless: bool,
}

impl<V: Version> Read<V> {
    /// All instants that may be meant by a time of this document.
    pub(crate) fn moment(&self, stated: W3cDatetime) -> Moment {
        if self.zoneless { stated.moment().widened(ZONE_MICROS) } else { stated.moment() }
    }

    /// The latest instant that may be meant by a time of this document.
    pub(crate) fn at_latest(&self, stated: Timestamp) -> Timestamp {
        if self.zoneless { stated.plus_micros(ZONE_MICROS) } else { stated }
    }
}

/// The earliest instant that may be meant by a time, which may have been written without a zone.
pub(crate) const fn at_earliest(zoneless: bool, stated: Timestamp) -> Timestamp {
    if zoneless { stated.plus_micros(-ZONE_MICROS) } else { stated }
}

/// Whether a document has times without a zone.
pub(crate) fn is_zoneless(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.code == "rs.zone")
}

/// A part of a document, as it is read.
pub(crate) enum Part<'a, V: Version> {
    /// The head of the document, and the head of the response; the first part.
    Begin(&'a V::Head, &'a Answered),
    /// An entry; its `loc` is absolute.
    Entry(&'a V::Head, &'a V::Entry),
}

impl<'a, V: Version> Part<'a, V> {
    /// The head of the document.
    pub(crate) const fn head(&self) -> &'a V::Head {
        match self {
            Self::Begin(head, _) | Self::Entry(head, _) => head,
        }
    }
}

pub(crate) type Each<'a, V> = &'a mut dyn FnMut(Part<'_, V>) -> Result<Go, Error>;

/// Reads a document part by part; `None` when it has not changed since it was known.
pub(crate) fn read<V: Version>(
    requests: &Requests<'_>,
    url: &str,
    known: Option<&Document>,
    each: Each<'_, V>,
) -> Result<Option<Read<V>>, Error> {
    read_asked(requests, &Asked { known, ..Asked::whole(url, DOCUMENT_BYTES_MAX) }, each)
}

/// Reads the start of a document part by part: its head, and possibly some entries.
pub(crate) fn read_begin<V: Version>(
    requests: &Requests<'_>,
    url: &str,
    each: Each<'_, V>,
) -> Result<Read<V>, Error> {
    let asked = Asked::begin(url, BEGIN_BYTES, DOCUMENT_BYTES_MAX);
    read_asked(requests, &asked, each)?.ok_or_else(|| unasked(url))
}

fn read_asked<V: Version>(
    requests: &Requests<'_>,
    asked: &Asked<'_>,
    each: Each<'_, V>,
) -> Result<Option<Read<V>>, Error> {
    let received = receive(requests, asked)?;
    received.map(|received| read_received(requests, received, each)).transpose()
}

/// Parses the received part of a document.
pub(crate) fn read_received<V: Version>(
    requests: &Requests<'_>,
    received: Received<'_>,
    each: Each<'_, V>,
) -> Result<Read<V>, Error> {
    let mut reading = Reading::new(received.url(), &requests.diagnostics, each);
    let answered = received.hand_over(requests, &mut reading)?;
    Ok(reading.into_read(answered))
}

/// Whether the server responds that a document has not changed.
pub(crate) fn is_unchanged(
    requests: &Requests<'_>,
    url: &str,
    known: &Document,
) -> Result<bool, Error> {
    if known.etag.is_none() && known.last_modified.is_none() {
        return Ok(false);
    }
    let asked = Asked { known: Some(known), ..Asked::begin(url, 0, DOCUMENT_BYTES_MAX) };
    Ok(read_document(requests, &asked, &mut Nothing)?.is_none())
}

/// Whether a document has changed since it was read.
pub(crate) fn has_changed(
    requests: &Requests<'_>,
    url: &str,
    known: &Document,
) -> Result<bool, Error> {
    let asked = Asked { known: Some(known), ..Asked::whole(url, DOCUMENT_BYTES_MAX) };
    let answered = read_document(requests, &asked, &mut Nothing)?;
    Ok(answered.is_some_and(|answered| answered.validators.fingerprint != known.fingerprint))
}

/// Records a deviation from the specification.
///
/// # Errors
/// The user wants none.
pub(crate) fn note(
    diagnostics: &Diagnostics,
    url: &str,
    code: &'static str,
    line: u64,
    message: String,
) -> Result<(), Error> {
    if diagnostics.tolerance == Tolerance::Strict {
        return Err(
            refusal(url, code, &message).with_help("`--strict` refuses what is read otherwise")
        );
    }
    diagnostics.note(url, Remark { code, line, message, count: 1 });
    Ok(())
}

/// Records the deviations that a parser found.
pub(crate) fn note_findings(diagnostics: &Diagnostics, url: &str, findings: &[Finding]) {
    for finding in findings {
        let (code, line, count) = (finding.code, finding.line, finding.count);
        diagnostics.note(url, Remark { code, line, count, message: finding.message.clone() });
    }
}

/// Why a document cannot be read.
pub(crate) fn refusal(url: &str, code: &'static str, message: &str) -> Error {
    Error::new(code, ExitCode::SourceInvalid, format!("cannot read {url}\n  {message}"))
}

pub(crate) fn syntax_error(url: &str, fault: &SyntaxError) -> Error {
    let exit = match fault.code() {
        "rs.entries" | "rs.links" | "xml.size" => ExitCode::Limit,
        _ => ExitCode::SourceInvalid,
    };
    Error::new(fault.code(), exit, format!("cannot read {url}\n  {fault}"))
}

/// A document that is being parsed.
struct Reading<'a, V: Version> {
    url: &'a str,
    diagnostics: &'a Diagnostics,
    each: Each<'a, V>,
    parser: Parser<V>,
    answered: Answered,
    entry: V::Entry,
}

impl<V: Version> Pieces for Reading<'_, V> {
    fn begin(&mut self, answered: &Answered) -> Result<(), Error> {
        self.answered.clone_from(answered);
        self.parser.use_charset(answered.media_type.as_deref().unwrap_or_default());
        Ok(())
    }

    /// Packed by the publisher and not for the transfer, which its name should show.
    fn is_packed(&mut self, answered: &Answered) -> Result<(), Error> {
        if answered.names_gzip() {
            return Ok(());
        }
        let message = "packed with gzip, which neither its name nor its headers state".to_owned();
        note(self.diagnostics, self.url, "rs.gzip", 1, message)
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

fn new_parser<V: Version>(diagnostics: &Diagnostics) -> Parser<V> {
    Parser::with_tolerance(Limits::default(), diagnostics.tolerance)
}

/// The head of a document, if its first bytes contain the whole head.
pub(crate) fn head_in<V: Version>(begin: &[u8], diagnostics: &Diagnostics) -> Option<V::Head> {
    let (mut parser, mut entry) = (new_parser::<V>(diagnostics), V::Entry::default());
    parser.guess_encoding();
    parser.feed(begin);
    parser.next(&mut entry).ok()?;
    parser.head().cloned()
}

impl<'a, V: Version> Reading<'a, V> {
    fn new(url: &'a str, diagnostics: &'a Diagnostics, each: Each<'a, V>) -> Self {
        let (parser, entry) = (new_parser(diagnostics), V::Entry::default());
        Self { url, diagnostics, each, parser, answered: Answered::default(), entry }
    }

    /// The result, after the end of the document or of its required part.
    fn into_read(self, answered: Answered) -> Read<V> {
        note_findings(self.diagnostics, self.url, self.parser.findings());
        let mut head = self.parser.head().cloned().unwrap_or_default();
        Read {
            is_index: *V::root(&mut head) == Root::SitemapIndex,
            head,
            answered,
            skipped: self.parser.skipped(),
            zoneless: is_zoneless(self.parser.findings()),
        }
    }

    fn drain(&mut self) -> Result<Go, Error> {
        loop {
            let step = self.parser.next(&mut self.entry);
            let go = match step.map_err(|fault| syntax_error(self.url, &fault))? {
                Step::NeedInput | Step::End => return Ok(Go::On),
                Step::Head => {
                    let Some(head) = self.parser.head() else { continue };
                    (self.each)(Part::Begin(head, &self.answered))?
                }
                Step::Entry => {
                    let mut entry = std::mem::take(&mut self.entry);
                    self.make_absolute(&mut entry)?;
                    let Some(head) = self.parser.head() else { continue };
                    let go = (self.each)(Part::Entry(head, &entry))?;
                    self.entry = entry;
                    go
                }
            };
            if go == Go::Enough {
                return Ok(Go::Enough);
            }
        }
    }

    fn make_absolute(&self, entry: &mut V::Entry) -> Result<(), Error> {
        let line = *V::line(entry);
        let loc = V::loc(entry);
        if !loc.starts_with("http")
            && let Ok(absolute) = resolve(&self.answered.url, loc)
            && absolute != *loc
        {
            let message = format!("`loc` is \"{}\", which is relative", excerpt(loc));
            note(self.diagnostics, self.url, "rs.relative", line, message)?;
            *loc = absolute;
        }
        Ok(())
    }
}
