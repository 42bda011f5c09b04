//! ResourceSync documents, fetched and read entry by entry, within limits [rs-core §7].

use crate::diagnostics::{Diagnostics, Pace, Remark};
use crate::error::{Error, ExitCode};
use crate::package::listing::Packaged;
use crate::requests::{Begun, Requests, net_error};
use abreast_net::{Request, Response, StatusCode};
use abreast_resourcesync::v1_1::{
    Capability, Entry, Head, Limits, Parser, Root, SPEC_MAX_ENTRIES, Step, Tolerance,
};
use abreast_store::mirror::Document;
use abreast_webtypes::{Timestamp, excerpt, resolve};
use std::hash::{DefaultHasher, Hasher as _};
use std::io::Write as _;
use std::time::Instant;

/// Largest document read, unpacked; ten times what the specification allows.
pub(crate) const DOCUMENT_BYTES_MAX: u64 = 512 << 20;
/// Unpacked bytes above which the ratio counts, and the largest ratio.
const RATIO_FREE_BYTES: u64 = 10 << 20;
const RATIO_MAX: u64 = 200;
/// Packed bytes unpacked at a time, so that no piece becomes large.
const PACKED_PIECE: usize = 4 << 10;
/// Bytes that show whether an answer is a document or a page.
const BEGIN_BYTES: usize = 1_024;
/// Longest page scanned for links.
const PAGE_BYTES_MAX: usize = 256 << 10;

/// A document that was read, with the metadata of the answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Read {
    /// The document's own head.
    pub(crate) head: Head,
    /// The URL that answered.
    pub(crate) url: String,
    /// Validators and fingerprint, for the next conditional request.
    pub(crate) validators: Document,
    /// `Last-Modified` as an instant.
    pub(crate) last_modified: Option<Timestamp>,
    /// The server's clock.
    pub(crate) date: Option<Timestamp>,
    /// How many entries it has.
    pub(crate) entries: u64,
    /// How many more were left out because they could not be understood.
    pub(crate) skipped: u64,
    /// Times were written without a zone: they may be off by most of a day.
    pub(crate) zoneless: bool,
}

/// The answer to a conditional request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Nothing has changed.
    Unchanged,
    /// The document was read to its end.
    Read(Box<Read>),
}

/// The largest difference between a time without a zone, as it was meant, and the same time in UTC,
/// microseconds.
const ZONE_MICROS: i64 = 26 * 3_600_000_000;

impl Read {
    /// Whether it is an index of documents.
    pub(crate) fn is_index(&self) -> bool {
        self.head.root == Root::SitemapIndex
    }

    /// The earliest instant that may be meant by a time of this document.
    pub(crate) fn at_earliest(&self, stated: Timestamp) -> Timestamp {
        at_earliest(self.zoneless, stated)
    }
}

/// The earliest instant that may be meant by a time, which may have been written without a zone.
pub(crate) const fn at_earliest(zoneless: bool, stated: Timestamp) -> Timestamp {
    if zoneless { stated.plus_micros(-ZONE_MICROS) } else { stated }
}

/// Whether a document has times without a zone.
pub(crate) fn is_zoneless(parser: &Parser) -> bool {
    parser.findings().iter().any(|finding| finding.code == "rs.zone")
}

/// Whether reading continues after an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Go {
    /// Read on.
    On,
    /// Enough was read.
    Enough,
}

/// The kind of document at a URL, for discovery.
#[derive(Debug)]
pub(crate) enum Page {
    /// A ResourceSync document or Sitemap, read as far as was asked.
    Document(Box<Read>),
    /// Something else: its first bytes.
    Other(Vec<u8>),
}

type Each<'a> = &'a mut dyn FnMut(&Head, &Entry) -> Result<Go, Error>;

/// Reads a document and hands over each entry. After a broken transfer all entries come again.
fn read_entries(
    requests: &Requests<'_>,
    url: &str,
    known: Option<&Document>,
    each: Each<'_>,
) -> Result<Answer, Error> {
    let request = Request {
        if_none_match: known.and_then(|known| known.etag.as_deref()),
        if_modified_since: known.and_then(|known| known.last_modified.as_deref()),
        ..requests.request(url)
    };
    let work = abreast_net::with_retries(&requests.client, url, async |_| {
        let asked = Instant::now();
        let Begun { mut response, begin } = requests.begin(&request).await?;
        if known.is_some() {
            requests.fresh.note(&response);
        }
        let mut pace = Pace::of_head(asked);
        if response.status() == StatusCode::NOT_MODIFIED {
            requests.diagnostics.keep_pace(pace);
            return Ok(Ok(Answer::Unchanged));
        }
        if response.status() != StatusCode::OK {
            let message = format!(
                "cannot read {url}: the server answered {} without a document",
                response.status()
            );
            return Ok(Err(Error::new("http.status", ExitCode::SourceInvalid, message)));
        }
        response.set_limit(DOCUMENT_BYTES_MAX);
        match read_response(url, &mut response, &begin, &requests.diagnostics, &mut pace, each)
            .await
        {
            Ok(read) => {
                requests.diagnostics.keep_pace(pace);
                Ok(Ok(Answer::Read(Box::new(read))))
            }
            Err(Stop::Net(error)) => Err(error),
            Err(Stop::Document(error)) => Ok(Err(error)),
        }
    });
    match requests.run(work)? {
        Ok(answer) => answer,
        Err(error) => Err(net_error(error)),
    }
}

/// The required kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A Resource List, a Sitemap, or an index of such.
    Resources,
    /// A Change List or an index of such.
    Changes,
    /// An archive of Change Lists [rs-archives §5].
    ChangesArchive,
    /// A dump or an index of such.
    Dump(Packaged),
}

impl Kind {
    fn check(self, head: &Head, url: &str) -> Result<(), Error> {
        let (is_right, name) = match self {
            Self::Resources => (
                matches!(head.capability, None | Some(Capability::ResourceList)),
                "a Resource List".to_owned(),
            ),
            Self::Changes => {
                (head.capability == Some(Capability::ChangeList), "a Change List".to_owned())
            }
            Self::ChangesArchive => (
                head.capability == Some(Capability::ChangeListArchive),
                "an archive of Change Lists".to_owned(),
            ),
            Self::Dump(packaged) => {
                let wanted = dump_capability(packaged);
                (head.capability == Some(wanted), format!("a `{}`", wanted.token()))
            }
        };
        if is_right {
            return Ok(());
        }
        Err(Error::new("list.capability", ExitCode::SourceInvalid, format!("{url} is not {name}")))
    }
}

pub(super) const fn dump_capability(packaged: Packaged) -> Capability {
    match packaged {
        Packaged::Snapshot => Capability::ResourceDump,
        Packaged::Changes => Capability::ChangeDump,
    }
}

/// A part of a document, as it is read.
pub(crate) enum Part<'a> {
    /// The head. It comes first, and again when a transfer broke off and is repeated: what came
    /// before does not count then.
    Begin(&'a Head),
    /// A document that an index names.
    Member(Member),
    /// Any other entry.
    Entry(&'a Head, &'a Entry),
}

/// A document that an index names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Member {
    pub(crate) url: String,
    /// What it includes according to the index: a snapshot of then, or changes of a span.
    pub(crate) at: Option<Timestamp>,
    pub(crate) from: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
}

impl Member {
    pub(super) fn of(entry: &Entry) -> Self {
        Self {
            url: entry.loc.clone(),
            at: entry.at.map(|at| at.instant),
            from: entry.from.map(|from| from.instant),
            until: entry.until.map(|until| until.instant),
        }
    }
}

/// Reads a document of a kind, or an index of such, part by part.
pub(crate) fn read_parts(
    requests: &Requests<'_>,
    url: &str,
    kind: Kind,
    known: Option<&Document>,
    each: &mut dyn FnMut(Part<'_>) -> Result<Go, Error>,
) -> Result<Answer, Error> {
    read_entries(requests, url, known, &mut |head, entry| {
        if entry.loc.is_empty() {
            kind.check(head, url)?;
            return each(Part::Begin(head));
        }
        match head.root {
            Root::SitemapIndex => each(Part::Member(Member::of(entry))),
            Root::UrlSet => each(Part::Entry(head, entry)),
        }
    })
}

/// Whether the server answers that a document has not changed.
pub(crate) fn is_unchanged(
    requests: &Requests<'_>,
    url: &str,
    known: &Document,
) -> Result<bool, Error> {
    let answer = read_entries(requests, url, Some(known), &mut |_, _| Ok(Go::Enough))?;
    Ok(matches!(answer, Answer::Unchanged))
}

/// Whether a document has changed since it was read.
pub(crate) fn has_changed(
    requests: &Requests<'_>,
    url: &str,
    known: &Document,
) -> Result<bool, Error> {
    match read_entries(requests, url, Some(known), &mut |_, _| Ok(Go::On))? {
        Answer::Unchanged => Ok(false),
        Answer::Read(read) => Ok(read.validators.fingerprint != known.fingerprint),
    }
}

/// Finds out what a URL is. Entries are handed over while `each` wants them.
pub(crate) fn read_page(
    requests: &Requests<'_>,
    url: &str,
    links: &mut Vec<String>,
    each: Each<'_>,
) -> Result<Page, Error> {
    let request = requests.request(url);
    let work = abreast_net::with_retries(&requests.client, url, async |_| {
        let Begun { mut response, mut begin } = requests.begin(&request).await?;
        for value in response.headers().get_all("link") {
            links.extend(value.to_str().ok().into_iter().flat_map(super::links::in_header));
        }
        while begin.len() < BEGIN_BYTES
            && let Some(chunk) = response.chunk().await?
        {
            begin.extend_from_slice(&chunk);
        }
        if is_document(&begin) {
            response.set_limit(DOCUMENT_BYTES_MAX);
            let mut pace = Pace::default();
            return match read_response(
                url,
                &mut response,
                &begin,
                &requests.diagnostics,
                &mut pace,
                each,
            )
            .await
            {
                Ok(read) => Ok(Ok(Page::Document(Box::new(read)))),
                Err(Stop::Net(error)) => Err(error),
                Err(Stop::Document(error)) => Ok(Err(error)),
            };
        }
        while begin.len() < PAGE_BYTES_MAX
            && let Some(chunk) = response.chunk().await?
        {
            begin.extend_from_slice(&chunk);
        }
        begin.truncate(PAGE_BYTES_MAX);
        Ok(Ok(Page::Other(begin)))
    });
    match requests.run(work)? {
        Ok(page) => page,
        Err(error) => Err(net_error(error)),
    }
}

/// Whether a text begins as a document of this protocol, packed perhaps: as XML that is neither a
/// page nor of OAI-PMH.
pub(super) fn is_document(begin: &[u8]) -> bool {
    let text = begin.trim_ascii_start();
    let is_packed = begin.starts_with(&[0x1f, 0x8b]);
    let is_xml = text.starts_with(b"<") || text.starts_with(b"\xef\xbb\xbf");
    let is_other = super::discover::is_oai_pmh(text) || super::discover::is_rss(text);
    is_packed || is_xml && !super::links::is_html(text) && !is_other
}

/// Notes the violations of the specification that a parser found.
pub(super) fn note_findings(diagnostics: &Diagnostics, url: &str, parser: &Parser) {
    for finding in parser.findings() {
        let (code, line, count) = (finding.code, finding.line, finding.count);
        diagnostics.note(url, Remark { code, line, count, message: finding.message.clone() });
    }
}

enum Stop {
    Net(abreast_net::Error),
    Document(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Document(error)
    }
}

/// Whether `Last-Modified` is a validator. A document that was changed in the second of its answer
/// may change again in that second and keep the date [rfc9110 §8.8.2].
fn tells_states_apart(modified: Option<Timestamp>, date: Option<Timestamp>) -> bool {
    const CERTAIN_AFTER: i64 = 2_000_000;
    matches!((modified, date), (Some(modified), Some(date)) if date >= modified.plus_micros(CERTAIN_AFTER))
}

async fn read_response(
    url: &str,
    response: &mut Response,
    begin: &[u8],
    diagnostics: &Diagnostics,
    pace: &mut Pace,
    each: Each<'_>,
) -> Result<Read, Stop> {
    let instant = |name: &str| {
        let time = httpdate::parse_http_date(response.header(name)?).ok()?;
        let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(Timestamp::from_seconds(i64::try_from(since.as_secs()).ok()?))
    };
    let (modified, date) = (instant("last-modified"), instant("date"));
    let mut read = Read {
        url: response.url().to_owned(),
        last_modified: modified,
        date,
        validators: Document {
            etag: response.header("etag").map(str::to_owned),
            last_modified: response
                .header("last-modified")
                .filter(|_| tells_states_apart(modified, date))
                .map(str::to_owned),
            fingerprint: 0,
        },
        ..Read::default()
    };
    let mut parser = Parser::with_tolerance(Limits::default(), diagnostics.tolerance);
    let mut entry = Entry::default();
    let mut reading = Reading { url, diagnostics, read: &mut read, as_index: None };
    let mut fingerprint = DefaultHasher::new();
    let mut unpacker: Option<Unpacker> = None;
    let mut first = true;
    let mut pending = begin.to_vec();
    loop {
        let chunk = if pending.is_empty() {
            let waiting = Instant::now();
            let chunk = response.chunk().await.map_err(Stop::Net)?;
            pace.add(chunk.as_ref().map_or(0, bytes::Bytes::len), waiting.elapsed());
            chunk
        } else {
            Some(std::mem::take(&mut pending).into())
        };
        let Some(chunk) = chunk else { break };
        fingerprint.write(&chunk);
        if first && !chunk.is_empty() {
            first = false;
            if chunk.starts_with(&[0x1f, 0x8b]) {
                unpacker = Some(Unpacker::new());
                reading.note_gzip(response.header("content-type"))?;
            }
        }
        let go = match &mut unpacker {
            None => {
                parser.feed(&chunk);
                reading.drain(&mut parser, &mut entry, each)?
            }
            Some(unpacker) => {
                let mut go = Go::On;
                for piece in chunk.chunks(PACKED_PIECE) {
                    parser.feed(unpacker.unpack(url, piece)?);
                    go = reading.drain(&mut parser, &mut entry, each)?;
                    if go == Go::Enough {
                        break;
                    }
                }
                go
            }
        };
        if go == Go::Enough {
            reading.finish(&parser);
            return Ok(read);
        }
    }
    if let Some(unpacker) = unpacker {
        unpacker.finish(url)?;
    }
    parser.finish();
    reading.drain(&mut parser, &mut entry, each)?;
    reading.finish(&parser);
    read.validators.fingerprint = fingerprint.finish().cast_signed();
    Ok(read)
}

/// One document while it is read.
struct Reading<'a> {
    url: &'a str,
    diagnostics: &'a Diagnostics,
    read: &'a mut Read,
    /// Whether the first entry showed that an `urlset` is an index all the same.
    as_index: Option<bool>,
}

impl Reading<'_> {
    fn drain(
        &mut self,
        parser: &mut Parser,
        entry: &mut Entry,
        each: Each<'_>,
    ) -> Result<Go, Stop> {
        loop {
            match parser.next(entry).map_err(|fault| syntax_error(self.url, &fault))? {
                Step::NeedInput | Step::End => return Ok(Go::On),
                Step::Head => {
                    self.read.head = parser.head().cloned().unwrap_or_default();
                    // Even before the first entry: the head may be all that was asked for.
                    if each(&self.read.head, &Entry::default())? == Go::Enough {
                        return Ok(Go::Enough);
                    }
                }
                Step::Entry => {
                    self.read.entries += 1;
                    self.check_entry(entry)?;
                    if each(&self.read.head, entry)? == Go::Enough {
                        return Ok(Go::Enough);
                    }
                }
            }
        }
    }

    /// Checks that a parser cannot do: entries compared with each other, and with the document's
    /// own URL.
    fn check_entry(&mut self, entry: &mut Entry) -> Result<(), Error> {
        if self.read.head.capability.is_none() && entry.change.is_some() {
            let message = "its entries are changes, and it does not state that it is a Change List";
            return Err(self
                .refuse("rs.capability", message)
                .with_help("read as a list of all there is, it would delete everything else"));
        }
        if !entry.loc.starts_with("http")
            && let Ok(absolute) = resolve(&self.read.url, &entry.loc)
            && absolute != entry.loc
        {
            let message = format!("`loc` is \"{}\", which is relative", excerpt(&entry.loc));
            self.note("rs.relative", entry.line, message)?;
            entry.loc = absolute;
        }
        if self.read.entries == SPEC_MAX_ENTRIES + 1 {
            let message =
                format!("more than the {SPEC_MAX_ENTRIES} entries that a Sitemap may have");
            self.note("rs.over-limit", entry.line, message)?;
        }
        let own = self.read.head.capability;
        let is_list = entry.capability.is_some()
            && entry.capability == own
            && !matches!(own, Some(Capability::Description | Capability::CapabilityList));
        match self.as_index {
            None if is_list && self.read.head.root == Root::UrlSet => {
                let message = "an `urlset` whose entries are lists: read as an index".to_owned();
                self.note("rs.root", entry.line, message)?;
                self.read.head.root = Root::SitemapIndex;
                self.as_index = Some(true);
            }
            None => self.as_index = Some(false),
            Some(true) if !is_list => {
                return Err(
                    self.refuse("rs.root", "some of its entries are lists and some are not")
                );
            }
            Some(false) if is_list && self.read.head.root == Root::UrlSet => {
                return Err(
                    self.refuse("rs.root", "some of its entries are lists and some are not")
                );
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Packed by the publisher and not for the transfer, which its name should show.
    fn note_gzip(&self, media_type: Option<&str>) -> Result<(), Error> {
        let path = self.read.url.split(['?', '#']).next().unwrap_or_default();
        if path.to_ascii_lowercase().ends_with(".gz")
            || media_type.is_some_and(|media_type| media_type.contains("gzip"))
        {
            return Ok(());
        }
        self.note(
            "rs.gzip",
            1,
            "packed with gzip, which neither its name nor its headers state".to_owned(),
        )
    }

    fn note(&self, code: &'static str, line: u64, message: String) -> Result<(), Error> {
        if self.diagnostics.tolerance == Tolerance::Strict {
            return Err(self
                .refuse(code, &message)
                .with_help("`--strict` refuses what is read otherwise"));
        }
        self.diagnostics.note(self.url, Remark { code, line, message, count: 1 });
        Ok(())
    }

    fn refuse(&self, code: &'static str, message: &str) -> Error {
        Error::new(code, ExitCode::SourceInvalid, format!("cannot read {}\n  {message}", self.url))
    }

    /// The end was reached.
    fn finish(&mut self, parser: &Parser) {
        self.read.skipped = parser.skipped();
        self.read.zoneless = is_zoneless(parser);
        note_findings(self.diagnostics, self.url, parser);
    }
}

pub(crate) fn syntax_error(url: &str, fault: &abreast_resourcesync::v1_1::Error) -> Error {
    let exit = match fault.code() {
        "rs.entries" | "rs.links" | "xml.size" => ExitCode::Limit,
        _ => ExitCode::SourceInvalid,
    };
    Error::new(fault.code(), exit, format!("cannot read {url}\n  {fault}"))
}

/// Unpacks gzip that a server hands out as it is, as `sitemap.xml.gz` files are.
struct Unpacker {
    decoder: flate2::write::GzDecoder<Vec<u8>>,
    packed: u64,
    unpacked: u64,
}

impl Unpacker {
    fn new() -> Self {
        Self { decoder: flate2::write::GzDecoder::new(Vec::new()), packed: 0, unpacked: 0 }
    }

    fn unpack(&mut self, url: &str, piece: &[u8]) -> Result<&[u8], Error> {
        self.decoder.get_mut().clear();
        self.decoder.write_all(piece).map_err(|cause| broken(url).with_cause(cause))?;
        self.decoder.flush().map_err(|cause| broken(url).with_cause(cause))?;
        self.packed += piece.len() as u64;
        let out: &[u8] = self.decoder.get_ref();
        self.unpacked += out.len() as u64;
        if self.unpacked > DOCUMENT_BYTES_MAX
            || self.unpacked > RATIO_FREE_BYTES && self.unpacked / self.packed > RATIO_MAX
        {
            let message = format!("cannot read {url}: it unpacks to too much");
            return Err(Error::new("http.size", ExitCode::SourceInvalid, message));
        }
        Ok(out)
    }

    fn finish(mut self, url: &str) -> Result<(), Error> {
        self.decoder.try_finish().map_err(|cause| broken(url).with_cause(cause))
    }
}

fn broken(url: &str) -> Error {
    Error::new(
        "http.encoding",
        ExitCode::SourceInvalid,
        format!("cannot read {url}: the gzip is broken"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_of_the_same_second_does_not_tell_states_apart() {
        let at = |seconds| Some(Timestamp::from_seconds(seconds));
        for (modified, date, certain) in [
            (at(100), at(100), false),
            (at(100), at(101), false),
            (at(100), at(102), true),
            (at(100), at(90), false),
            (at(100), None, false),
            (None, at(100), false),
        ] {
            assert_eq!(tells_states_apart(modified, date), certain, "{modified:?} {date:?}");
        }
    }
}
