//! A reader of versions in JSON Lines, for tests; the protocol is not used elsewhere. The reader
//! shows the work of a reader for a protocol with pages, and that the driver does the rest.
//!
//! Each document has one JSON object for each line, and starts with its head:
//!
//! | line | members |
//! |---|---|
//! | head of a page | `older`, the previous page; `dump`; `from`, the time since which this page
//! and the following pages have all versions; `until` if it is pushed |
//! | head of the dump | `at`, the time up to which it has all versions; `count`, the number of
//! lines after it |
//! | version | `id`, a URI; `time`; `digest`, as in ResourceSync; `deleted` |
//!
//! The address of a feed is its newest page. The newest version in a page is first.

mod tests;

use super::walk::{Cut, Trail, Walk};
use super::{Finding, Offers, Pushed, Reader, Snapshot, SourceSet, Start, Whole};
use crate::plan::listed::Listed;
use crate::plan::listed::testing::listed;
use crate::read::protocol::{AnswerHead, Protocol};
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::pieces::{Answered, Asked, Pieces, read_unknown};
use crate::request::requests::Requests;
use abreast_core::Kind;
use abreast_store::mirror::Mirror;
use abreast_webtypes::{Digests, Moment, Timestamp, W3cDatetime, resolve};
use serde::Deserialize;

/// Known by its first bytes.
pub(super) const PROTOCOL: Protocol = Protocol {
    name: "JSON Lines",
    recognises: |head: &AnswerHead<'_>| head.bytes.starts_with(b"{\"feed\":"),
    has_mark: |_| true,
    reader: || Box::<Feed>::default(),
    at_site: None,
};

const BYTES_MAX: u64 = 16 << 20;

/// The first line of a document.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Head {
    older: Option<String>,
    dump: Option<String>,
    from: Option<String>,
    until: Option<String>,
    at: Option<String>,
    count: Option<usize>,
}

/// Another line as it is written.
#[derive(Deserialize)]
struct Line<'l> {
    id: &'l str,
    time: &'l str,
    #[serde(default)]
    digest: &'l str,
    #[serde(default)]
    deleted: bool,
}

#[derive(Debug)]
struct Version {
    uri: String,
    time: Moment,
    digests: Digests,
    is_deleted: bool,
}

impl Version {
    fn read(line: &[u8], document: &str) -> Option<Self> {
        let line: Line<'_> = serde_json::from_slice(line).ok()?;
        let mut digests = Digests::default();
        digests.parse_into(line.digest.as_bytes()).ok()?;
        let (uri, time) = (resolve(document, line.id).ok()?, time(line.time)?);
        Some(Self { uri, time, digests, is_deleted: line.deleted })
    }

    /// As a resource of the dump.
    fn resource<'l>(&'l self, document: &'l str) -> Listed<'l> {
        let modified = (!self.is_deleted).then(|| self.time.first().as_micros());
        Listed { modified, digests: &self.digests, ..listed(document, &self.uri, Vec::new()) }
    }

    /// As a change in a page.
    fn change<'l>(&'l self, page: &'l str) -> Listed<'l> {
        let change = Some(if self.is_deleted { Kind::Delete } else { Kind::Update });
        Listed { change, changed: Some(self.time), ..self.resource(page) }
    }
}

fn time(text: &str) -> Option<Moment> {
    W3cDatetime::parse(text.as_bytes()).ok().map(W3cDatetime::moment)
}

/// A parsed document. Lines that are not valid versions are `None`.
#[derive(Debug)]
struct Document {
    url: String,
    head: Head,
    versions: Vec<Option<Version>>,
    answered: Answered,
}

impl Document {
    fn parse(url: &str, bytes: &[u8], answered: Answered) -> Result<Self, Error> {
        let mut lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let head = serde_json::from_slice(lines.next().unwrap_or_default())
            .map_err(|error| wrong(url, &format!("its first line is not a head: {error}")))?;
        let versions = lines.map(|line| Version::read(line, url)).collect();
        Ok(Self { url: url.to_owned(), head, versions, answered })
    }

    fn read(requests: &Requests<'_>, url: &str) -> Result<Self, Error> {
        let mut bytes = Bytes(Vec::new());
        let answered = read_unknown(requests, &Asked::whole(url, BYTES_MAX), &mut bytes)?;
        Self::parse(url, &bytes.0, answered)
    }

    /// Passes on the changes of the document, the oldest first.
    fn hand_over(&self, walk: &mut Walk<'_, '_>) -> Result<(), Error> {
        walk.begin_changes(&self.url, None, None);
        for version in self.versions.iter().rev() {
            match version {
                Some(version) => walk.change(&version.change(&self.url))?,
                None => walk.unusable(|| format!("a line of {} that is not a version", self.url)),
            }
        }
        Ok(())
    }
}

struct Bytes(Vec<u8>);

impl Pieces for Bytes {
    fn begin(&mut self, _: &Answered) -> Result<(), Error> {
        Ok(())
    }

    fn piece(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        self.0.extend_from_slice(bytes);
        Ok(true)
    }

    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

fn wrong(url: &str, why: &str) -> Error {
    Error::new("json-lines", ExitCode::SourceInvalid, format!("cannot use {url}: {why}"))
}

/// A feed.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    url: String,
    dump: Option<String>,
    /// The newest page, until it is used.
    newest: Option<Document>,
}

impl Reader for Feed {
    fn find(&mut self, finding: &mut Finding<'_, '_>) -> Result<Start, Error> {
        let url = finding.options.url.clone();
        let newest = Document::read(finding.requests, &url)?;
        let dump = newest.head.dump.as_ref().and_then(|dump| resolve(&url, dump).ok());
        let has_list = dump.is_some();
        *self = Self { url: url.clone(), dump, newest: Some(newest) };
        Ok(Start { first: url, uri_space: None, has_list, is_found_anew: !finding.is_read_only })
    }

    fn keep(&self, _: &Mirror) -> Result<(), Error> {
        Ok(())
    }

    fn sets(&mut self, _: &Requests<'_>, options: &SyncOptions) -> Result<Vec<SourceSet>, Error> {
        Ok(vec![SourceSet { name: "feed".to_owned(), url: options.url.clone() }])
    }

    fn offers(&self, _: Option<&Mirror>, _: &SyncOptions) -> Result<Offers, Error> {
        let whole = if self.dump.is_some() { Whole::Snapshot } else { Whole::Changes };
        Ok(Offers { whole, changes: Some(self.url.clone()), ..Offers::default() })
    }

    fn snapshot(&mut self, walk: &mut Walk<'_, '_>) -> Result<Snapshot, Error> {
        // Older than the dump by now.
        self.newest = None;
        let Some(url) = &self.dump else { return Ok(Snapshot::default()) };
        let dump = Document::read(walk.requests, url)?;
        walk.clock(&dump.answered);
        if dump.head.count != Some(dump.versions.len()) {
            return Err(wrong(url, "it does not have as many lines as its head states"));
        }
        let at = dump.head.at.as_deref().and_then(time);
        let known = walk.position().snapshot();
        if walk.is_conditional() && at.is_some_and(|at| known >= Some(at.first())) {
            return Ok(Snapshot { is_unchanged: true, ..Snapshot::default() });
        }
        walk.begin_snapshot(url)?;
        walk.begin_document(url);
        for version in dump.versions.iter().flatten() {
            walk.resource(&version.resource(url), at, None)?;
        }
        let unusable = dump.versions.iter().filter(|version| version.is_none()).count();
        walk.skipped(url, unusable as u64)?;
        walk.end_document(url)?;
        Ok(Snapshot { lists_all: true, as_of: at, changes_from: at, ..Snapshot::default() })
    }

    fn changes(&mut self, walk: &mut Walk<'_, '_>) -> Result<(), Error> {
        let mut page = match self.newest.take() {
            Some(newest) => newest,
            None => Document::read(walk.requests, &self.url)?,
        };
        walk.clock(&page.answered);
        // Up to the oldest change that is known, so that a Source that went back is noticed.
        let oldest = walk.marks().oldest();
        let reach = walk
            .since()
            .map(|since| oldest.map_or(since.first(), |oldest| oldest.min(since.first())));
        let (mut trail, mut admission) = (Trail::new(false), walk.admission(&self.url));
        loop {
            trail.visit(&page.url);
            walk.earlier_document();
            page.hand_over(walk)?;
            if let Some(from) = page.head.from.as_deref().and_then(time) {
                walk.reaches_back_to(from);
            }
            let end = page.versions.iter().flatten().map(|version| version.time.last()).min();
            if end.zip(reach).is_some_and(|(end, reach)| end < reach) {
                walk.walked.end = end;
                return Ok(());
            }
            let Some(older) = &page.head.older else { return Ok(()) };
            let older =
                resolve(&page.url, older).map_err(|error| wrong(&page.url, &error.to_string()))?;
            let allowed = admission.check(&older).map_err(|refusal| {
                let why = format!("its older page is {older}: {}", refusal.message());
                Cut { is_newer: false, code: refusal.code(), url: page.url.clone(), why }
            });
            if let Err(cut) =
                allowed.and_then(|()| trail.check(&page.url, page.versions.len(), &older))
            {
                walk.cut(cut);
                return Ok(());
            }
            page = Document::read(walk.requests, &older)?;
        }
    }

    fn pushed(&self, bytes: &[u8]) -> Result<Box<dyn Pushed>, String> {
        let page = Document::parse(&self.url, bytes, Answered::default());
        let page = page.map_err(|error| error.to_string())?;
        let of = |time: Option<Moment>| time.map(Moment::first);
        let until = of(page.head.until.as_deref().and_then(time)).ok_or("it has no `until`")?;
        if page.versions.iter().any(Option::is_none) {
            return Err("it has a line that is not a version".to_owned());
        }
        let from = of(page.head.from.as_deref().and_then(time));
        Ok(Box::new(PushedPage { from, until, page }))
    }
}

struct PushedPage {
    from: Option<Timestamp>,
    until: Timestamp,
    page: Document,
}

impl Pushed for PushedPage {
    fn from(&self) -> Option<Timestamp> {
        self.from
    }

    fn until(&self) -> Timestamp {
        self.until
    }

    fn is_span(&self) -> bool {
        self.from.is_some()
    }

    fn each(&self, walk: &mut Walk<'_, '_>) -> Result<(), Error> {
        self.page.hand_over(walk)
    }
}
