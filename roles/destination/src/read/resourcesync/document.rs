//! ResourceSync documents, fetched and read entry by entry, within limits [rs-core §7].

use crate::diagnostics::{Diagnostics, Pace, Remark};
use crate::error::{Error, ExitCode};
use crate::package::listing::Packaged;
use crate::read::pieces::{Answered, Pieces, Stop, read_document, receive};
use crate::requests::{Begun, Requests, net_error};
use abreast_resourcesync::v1_1::{
    Capability, Entry, Finding, Head, Limits, Parser, Root, SPEC_MAX_ENTRIES, Step, Tolerance,
};
use abreast_store::mirror::Document;
use abreast_webtypes::{Timestamp, excerpt, resolve};

/// Largest document read, unpacked; ten times what the specification allows.
pub(crate) const DOCUMENT_BYTES_MAX: u64 = 512 << 20;
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

/// The latest one.
pub(crate) const fn at_latest(zoneless: bool, stated: Timestamp) -> Timestamp {
    if zoneless { stated.plus_micros(ZONE_MICROS) } else { stated }
}

/// Whether a document has times without a zone.
pub(crate) fn is_zoneless(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.code == "rs.zone")
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
    let mut reading = Reading::new(url, &requests.diagnostics, each);
    let answered = read_document(requests, url, known, DOCUMENT_BYTES_MAX, &mut reading)?;
    Ok(answered
        .map_or(Answer::Unchanged, |answered| Answer::Read(Box::new(reading.into_read(answered)))))
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
            let mut reading = Reading::new(url, &requests.diagnostics, &mut *each);
            let (most, mut pace) = (DOCUMENT_BYTES_MAX, Pace::default());
            return match receive(url, &mut response, begin, most, &mut pace, &mut reading).await {
                Ok(answered) => Ok(Ok(Page::Document(Box::new(reading.into_read(answered))))),
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
pub(crate) fn note_findings(diagnostics: &Diagnostics, url: &str, findings: &[Finding]) {
    for finding in findings {
        let (code, line, count) = (finding.code, finding.line, finding.count);
        diagnostics.note(url, Remark { code, line, count, message: finding.message.clone() });
    }
}

/// One document while it is read.
struct Reading<'a> {
    url: &'a str,
    diagnostics: &'a Diagnostics,
    each: Each<'a>,
    read: Read,
    parser: Parser,
    entry: Entry,
    /// Whether the first entry showed that an `urlset` is an index all the same.
    as_index: Option<bool>,
}

impl Pieces for Reading<'_> {
    fn begin(&mut self, answered: &Answered) -> Result<(), Error> {
        self.read = Read { url: answered.url.clone(), ..Read::default() };
        self.parser = new_parser(self.diagnostics);
        self.as_index = None;
        Ok(())
    }

    /// Packed by the publisher and not for the transfer, which its name should show.
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

fn new_parser(diagnostics: &Diagnostics) -> Parser {
    Parser::with_tolerance(Limits::default(), diagnostics.tolerance)
}

impl<'a> Reading<'a> {
    fn new(url: &'a str, diagnostics: &'a Diagnostics, each: Each<'a>) -> Self {
        let (read, entry, parser) = (Read::default(), Entry::default(), new_parser(diagnostics));
        Self { url, diagnostics, each, read, parser, entry, as_index: None }
    }

    /// The document, after the end was reached, or enough of it was read.
    fn into_read(self, answered: Answered) -> Read {
        note_findings(self.diagnostics, self.url, self.parser.findings());
        Read {
            skipped: self.parser.skipped(),
            zoneless: is_zoneless(self.parser.findings()),
            last_modified: answered.last_modified,
            date: answered.stated_date,
            validators: answered.validators,
            ..self.read
        }
    }

    fn drain(&mut self) -> Result<Go, Error> {
        loop {
            let step = self.parser.next(&mut self.entry);
            match step.map_err(|fault| syntax_error(self.url, &fault))? {
                Step::NeedInput | Step::End => return Ok(Go::On),
                Step::Head => {
                    self.read.head = self.parser.head().cloned().unwrap_or_default();
                    // Even before the first entry: the head may be all that was asked for.
                    if (self.each)(&self.read.head, &Entry::default())? == Go::Enough {
                        return Ok(Go::Enough);
                    }
                }
                Step::Entry => {
                    self.read.entries += 1;
                    let mut entry = std::mem::take(&mut self.entry);
                    self.check_entry(&mut entry)?;
                    let go = (self.each)(&self.read.head, &entry)?;
                    self.entry = entry;
                    if go == Go::Enough {
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
}

pub(crate) fn syntax_error(url: &str, fault: &abreast_resourcesync::v1_1::Error) -> Error {
    let exit = match fault.code() {
        "rs.entries" | "rs.links" | "xml.size" => ExitCode::Limit,
        _ => ExitCode::SourceInvalid,
    };
    Error::new(fault.code(), exit, format!("cannot read {url}\n  {fault}"))
}
