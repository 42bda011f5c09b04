//! A second reader, for tests: plain text, one line for each resource or change. It shows that
//! runs, the deletion guard, audits and sinks are independent of the protocol.
//!
//! `list.txt` starts with the number of the last change that it includes, has a line `URL TIME MD5`
//! for each resource, and ends with `end`. `changes.txt` has all changes: `new`, `add` or
//! `put URL TIME MD5`, `deprecated URL TIME [MD5]`, `removed` or `gone URL TIME`. The cursor is a
//! number of lines. `dump.txt` has lines `URL LENGTH` of ZIP files, whose member `index.txt` has
//! lines `URL MEMBER`.
//!
//! A line may end with any of `href=URL`, `accept=TYPE`, `by=URL` (a replacement), `length=NUMBER`
//! and `patch=URL|TYPE|LENGTH|MD5 BEFORE|MD5 AFTER`, whose last three may be empty.

mod tests;

use super::position::Bookmark;
use super::walk::Walk;
use super::{Finding, Offers, Packages, Reader, Snapshot, SourceSet, Start, Whole};
use crate::plan::listed::testing::{NO_DIGESTS, listed};
use crate::plan::listed::{Listed, Patch};
use crate::plan::manifest::Manifest;
use crate::plan::planner::PlanContext;
use crate::read::protocol::{AnswerHead, Protocol};
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::package::archive::{Found, Package};
use crate::request::package::listing::{Dump, ListedPackage, Offered, Packaged};
use crate::request::requests::{Begun, Requests, net_error};
use abreast_core::Kind;
use abreast_store::mirror::Mirror;
use abreast_webtypes::{Digests, Timestamp};

/// Known by its first line, which is a number.
pub(super) const PROTOCOL: Protocol = Protocol {
    name: "text",
    recognises: is_list,
    has_mark: is_list,
    reader: || Box::<Text>::default(),
    at_site: None,
};

fn is_list(head: &AnswerHead<'_>) -> bool {
    let first = head.bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    !first.is_empty() && first.iter().all(u8::is_ascii_digit)
}

const BYTES_MAX: u64 = 1 << 20;

/// One line.
#[derive(Default)]
struct Line {
    url: String,
    time: Timestamp,
    digests: Digests,
    change: Option<Kind>,
    href: Option<String>,
    accept: Option<String>,
    length: Option<u64>,
    replaced_by: Vec<String>,
    patches: Vec<LinePatch>,
}

/// One patch of a line.
struct LinePatch {
    url: String,
    media_type: String,
    length: Option<u64>,
    before: Option<Digests>,
    after: Option<Digests>,
}

fn md5(text: &str) -> Option<Digests> {
    let mut digests = Digests::default();
    digests.parse_into(format!("md5:{text}").as_bytes()).ok()?;
    Some(digests)
}

impl LinePatch {
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split('|').map(|part| Some(part).filter(|part| !part.is_empty()));
        Some(Self {
            url: parts.next()??.to_owned(),
            media_type: parts.next()??.to_owned(),
            length: parts.next()?.and_then(|length| length.parse().ok()),
            before: parts.next()?.and_then(md5),
            after: parts.next()?.and_then(md5),
        })
    }

    fn listed(&self) -> Patch<'_> {
        let Self { url, media_type, length, before, after } = self;
        let (before, after) = (before.as_ref(), after.as_ref());
        Patch { href: url, media_type, length: *length, digests: &NO_DIGESTS, before, after }
    }
}

impl Line {
    fn read(text: &str, change: Option<Kind>) -> Option<Self> {
        let mut words = text.split(' ');
        let (url, time) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
        let mut line = Self { url, time: Timestamp::from_seconds(time), change, ..Self::default() };
        for word in words {
            match word.split_once('=') {
                None => line.digests = md5(word)?,
                Some(("href", href)) => line.href = Some(href.to_owned()),
                Some(("accept", accept)) => line.accept = Some(accept.to_owned()),
                Some(("length", length)) => line.length = Some(length.parse().ok()?),
                Some(("by", url)) => line.replaced_by.push(url.to_owned()),
                Some(("patch", patch)) => line.patches.push(LinePatch::read(patch)?),
                Some(_) => return None,
            }
        }
        Some(line)
    }

    fn listed<'a>(&'a self, document: &'a str) -> Listed<'a> {
        let has_state = !self.digests.is_empty() || self.change != Some(Kind::Deprecate);
        Listed {
            uri: &self.url,
            href: self.href.as_deref(),
            accept: self.accept.as_deref(),
            describes: false,
            body: None,
            document,
            modified: has_state.then(|| self.time.as_micros()),
            modified_is_change: false,
            length: self.length,
            media_type: None,
            digests: &self.digests,
            change: self.change,
            changed: self.change.map(|_| self.time.into()),
            id: None,
            patch: None,
            replaced_by: &self.replaced_by,
            patches: self.patches.iter().map(LinePatch::listed).collect(),
            links: Vec::new(),
            categories: Vec::new(),
        }
    }
}

/// Reads both documents.
#[derive(Default)]
pub(crate) struct Text {
    list: String,
    changes: String,
    dump: String,
}

fn odd(document: &str) -> Error {
    Error::new("text.line", ExitCode::SourceInvalid, format!("{document} is not whole"))
}

fn get(requests: &Requests<'_>, url: &str) -> Result<String, Error> {
    let request = requests.request(url);
    let work = abreast_net::with_retries(&requests.client, url, async |_| {
        let Begun { mut response, mut begin, .. } = requests.begin(&request).await?;
        response.set_limit(BYTES_MAX);
        while let Some(chunk) = response.chunk().await? {
            begin.extend_from_slice(&chunk);
        }
        Ok(begin)
    });
    String::from_utf8(requests.run(work)?.map_err(net_error)?).map_err(|_| odd(url))
}

impl Text {
    /// The resources, and the number of changes that they include.
    fn read_list(&self, requests: &Requests<'_>) -> Result<(usize, Vec<Line>), Error> {
        let text = get(requests, &self.list)?;
        let mut lines = text.lines();
        let at = lines.next().and_then(|line| line.parse().ok()).ok_or_else(|| odd(&self.list))?;
        let mut all: Vec<&str> = lines.collect();
        if all.pop() != Some("end") {
            return Err(odd(&self.list));
        }
        let read: Option<Vec<_>> = all.into_iter().map(|line| Line::read(line, None)).collect();
        Ok((at, read.ok_or_else(|| odd(&self.list))?))
    }

    fn read_changes(&self, requests: &Requests<'_>) -> Result<Vec<Line>, Error> {
        let read = |line: &str| match line.split_once(' ')? {
            ("new", rest) => Line::read(rest, Some(Kind::Create)),
            ("add", rest) => Line::read(rest, Some(Kind::Add)),
            ("put", rest) => Line::read(rest, Some(Kind::Update)),
            ("deprecated", rest) => Line::read(rest, Some(Kind::Deprecate)),
            ("removed", rest) => Line::read(rest, Some(Kind::Remove)),
            ("gone", rest) => Line::read(rest, Some(Kind::Delete)),
            _ => None,
        };
        let text = get(requests, &self.changes)?;
        text.lines().map(read).collect::<Option<_>>().ok_or_else(|| odd(&self.changes))
    }

    fn read_dump(&self, requests: &Requests<'_>) -> Result<Dump, Error> {
        let read = |line: &str| {
            let (url, length) = line.split_once(' ')?;
            Some(ListedPackage {
                url: url.to_owned(),
                length: Some(length.parse().ok()?),
                ..ListedPackage::default()
            })
        };
        let text = get(requests, &self.dump)?;
        let packages =
            text.lines().map(read).collect::<Option<_>>().ok_or_else(|| odd(&self.dump))?;
        Ok(Dump { packages, packaged: Packaged::Snapshot, at: None, latest: None, is_plan: false })
    }
}

impl Reader for Text {
    fn find(&mut self, finding: &mut Finding<'_, '_>) -> Result<Start, Error> {
        let url = &finding.options.url;
        let folder = url.strip_suffix("list.txt").unwrap_or(url);
        self.list = format!("{folder}list.txt");
        self.changes = format!("{folder}changes.txt");
        self.dump = format!("{folder}dump.txt");
        let first = self.list.clone();
        Ok(Start { first, uri_space: None, has_list: true, is_found_anew: false })
    }

    fn keep(&self, _: &Mirror) -> Result<(), Error> {
        Ok(())
    }

    fn sets(&mut self, _: &Requests<'_>, options: &SyncOptions) -> Result<Vec<SourceSet>, Error> {
        Ok(vec![SourceSet { name: "all".to_owned(), url: options.url.clone() }])
    }

    fn offers(&self, _: Option<&Mirror>, _: &SyncOptions) -> Result<Offers, Error> {
        let (whole, changes) = (Whole::Snapshot, Some(self.changes.clone()));
        Ok(Offers { whole, changes, ..Offers::default() })
    }

    fn snapshot(&mut self, walk: &mut Walk<'_, '_>) -> Result<Snapshot, Error> {
        let (included, lines) = self.read_list(walk.requests)?;
        walk.begin_snapshot(&self.list)?;
        walk.begin_document(&self.list);
        lines.iter().try_for_each(|line| walk.resource(&line.listed(&self.list), None, None))?;
        walk.end_document(&self.list)?;
        Ok(Snapshot {
            lists_all: true,
            bookmark: Some(Bookmark { document: included.to_string(), ..Bookmark::default() }),
            ..Snapshot::default()
        })
    }

    fn changes(&mut self, walk: &mut Walk<'_, '_>) -> Result<(), Error> {
        let changes = self.read_changes(walk.requests)?;
        let bookmark = walk.position().bookmark.as_ref();
        let known = bookmark.and_then(|it| it.document.parse().ok()).unwrap_or(0);
        if changes.len() < known {
            walk.walked.went_back = Some("there are fewer changes than before".to_owned());
            return Ok(());
        }
        // The number of lines is the place: no change read before is listed again.
        walk.walked.end = Some(Timestamp::MAX);
        walk.walked.is_unchanged = changes.len() == known;
        walk.begin_changes(&self.changes, None, None);
        changes[known..].iter().try_for_each(|line| walk.change(&line.listed(&self.changes)))?;
        let document = changes.len().to_string();
        walk.walked.bookmark = Some(Bookmark { document, ..Bookmark::default() });
        Ok(())
    }

    fn packages(&mut self) -> Option<&mut dyn Packages> {
        Some(self)
    }
}

impl Packages for Text {
    fn offered(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        _: Option<Timestamp>,
    ) -> Result<Vec<Offered>, Error> {
        Ok(vec![Offered { url: self.dump.clone(), dump: self.read_dump(run.requests) }])
    }

    fn manifest(
        &self,
        _: &Requests<'_>,
        package: &Package,
        url: &str,
        _: Packaged,
    ) -> Result<Manifest, Error> {
        let Found::Member(index) = package.find("index.txt") else { return Err(odd(url)) };
        let (mut bytes, mut manifest) = (Vec::new(), Manifest::new(package));
        manifest.name(index);
        let range = package
            .read_into(package.member(index), &mut bytes, &mut Vec::new())
            .map_err(|_| odd(url))?;
        for line in std::str::from_utf8(&bytes[range]).map_err(|_| odd(url))?.lines() {
            let (uri, path) = line.split_once(' ').ok_or_else(|| odd(url))?;
            manifest.add(package, &listed(url, uri, Vec::new()), Some(path));
        }
        manifest.finish(package);
        Ok(manifest)
    }
}
