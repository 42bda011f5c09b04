//! A second reader, for tests: plain text, a line for each resource or change. That a run, the
//! deletion guard, an audit and the sinks work with it shows that they know no protocol.
//!
//! `list.txt` begins with the number of the last change that it includes, has a line `URL TIME MD5`
//! for each resource, and ends with `end`. `changes.txt` has all changes: `new`, `add` or `put URL
//! TIME MD5`, `deprecated URL TIME [MD5]`, `removed` or `gone URL TIME`. The cursor is a number of
//! lines. `dump.txt` has lines `URL LENGTH` of ZIP files, whose member `index.txt` has lines `URL
//! MEMBER`.
//!
//! A line may end with any of `href=URL`, `accept=TYPE`, `by=URL` (a replacement), `length=NUMBER`
//! and `patch=URL|TYPE|LENGTH|MD5 BEFORE|MD5 AFTER`, whose last three may be empty.

mod tests;

use super::choice::{AnswerHead, Protocol};
use super::{Expecting, Reader, SourceSet, Start};
use crate::error::{Error, ExitCode};
use crate::events::{Mode, Observer};
use crate::options::SyncOptions;
use crate::package::archive::{Found, Package};
use crate::package::listing::{Dump, ListedPackage, Offered, Packaged};
use crate::package::manifest::Manifest;
use crate::plan::changes::{Followed, Seen};
use crate::plan::comparison::Baseline;
use crate::plan::listed::testing::{NO_DIGESTS, listed};
use crate::plan::listed::{Listed, Patch};
use crate::plan::planner::PlanContext;
use crate::requests::{Begun, Requests, net_error};
use abreast_core::Kind;
use abreast_store::mirror::Mirror;
use abreast_webtypes::{Digests, Timestamp};

/// Known by its first line, which is a number.
pub(super) const PROTOCOL: Protocol = Protocol {
    name: "text",
    recognises: is_list,
    reader: || Box::<Text>::default(),
    at_site: None,
};

fn is_list(head: &AnswerHead<'_>) -> bool {
    let first = head.bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    !first.is_empty() && first.iter().all(u8::is_ascii_digit)
}

const CURSOR: &str = "text-cursor";
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
            changed: self.change.map(|_| self.time),
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
    fn start(&mut self, options: &SyncOptions) -> Start {
        let folder = options.url.strip_suffix("list.txt").unwrap_or(&options.url);
        self.list = format!("{folder}list.txt");
        self.changes = format!("{folder}changes.txt");
        self.dump = format!("{folder}dump.txt");
        Start { first: self.list.clone(), uri_space: None, has_list: true }
    }

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

    fn plan_changes(&self, run: &mut PlanContext<'_, '_>, known: usize) -> Result<Followed, Error> {
        let changes = self.read_changes(run.requests)?;
        if changes.len() < known {
            return Ok(Followed::Gap("there are fewer changes than before".to_owned()));
        }
        if changes.len() == known {
            return Ok(Followed::Unchanged);
        }
        run.plan_noted(&mut |run| {
            let (mut seen, mut reading) = (Seen::default(), run.reading_changes(&self.changes));
            for line in &changes[known..] {
                run.note_change(
                    &line.listed(&self.changes),
                    Timestamp::MIN,
                    &mut seen,
                    &mut reading,
                )?;
            }
            run.plan_coming()?;
            run.keep_common(&mut seen)?;
            run.planner.mirror.set_meta(CURSOR, Some(&changes.len().to_string()))?;
            Ok(Followed::Planned)
        })
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
        Ok(Dump { packages, packaged: Packaged::Snapshot, at: None, date: None, is_plan: false })
    }

    fn cursor(mirror: &Mirror) -> Result<Option<usize>, Error> {
        Ok(mirror.meta(CURSOR)?.and_then(|text| text.parse().ok()))
    }
}

impl Reader for Text {
    fn find(&mut self, run: &mut PlanContext<'_, '_>) -> Result<Start, Error> {
        Ok(self.start(run.planner.options))
    }

    fn sets(&mut self, _: &Requests<'_>, options: &SyncOptions) -> Result<Vec<SourceSet>, Error> {
        Ok(vec![SourceSet { name: "all".to_owned(), url: options.url.clone() }])
    }

    fn find_read_only(
        &mut self,
        _: &Requests<'_>,
        options: &SyncOptions,
        _: Option<&Mirror>,
        _: &dyn Observer,
    ) -> Result<Start, Error> {
        Ok(self.start(options))
    }

    fn each_resource(
        &self,
        requests: &Requests<'_>,
        _: &SyncOptions,
        each: &mut dyn FnMut(&Listed<'_>),
    ) -> Result<(), Error> {
        self.read_list(requests)?.1.iter().for_each(|line| each(&line.listed(&self.list)));
        Ok(())
    }

    fn expect(
        &self,
        requests: &Requests<'_>,
        _: &SyncOptions,
        to: &mut dyn Expecting,
    ) -> Result<(), Error> {
        let (at, lines) = self.read_list(requests)?;
        lines.iter().try_for_each(|line| to.listed(&line.listed(&self.list)))?;
        let changes = self.read_changes(requests)?;
        let new = changes.get(at..).unwrap_or_default();
        new.iter()
            .try_for_each(|line| to.changed(&line.listed(&self.changes), line.time.as_micros()))
    }

    fn plan(&mut self, run: &mut PlanContext<'_, '_>) -> Result<(), Error> {
        if !run.planner.options.baseline
            && let Some(known) = Self::cursor(run.planner.mirror)?
            && !matches!(self.plan_changes(run, known)?, Followed::Gap(_))
        {
            run.report.summary.mode = Mode::Incremental;
            return Ok(());
        }
        let mut at = 0;
        run.plan_snapshot(&self.list, &mut |run| {
            let (included, lines) = self.read_list(run.requests)?;
            let mut comparison = run.begin_comparison(&self.list)?;
            comparison.begin_document();
            for line in &lines {
                comparison.entry(run, &line.listed(&self.list))?;
            }
            run.refuse_elsewhere(&self.list, &comparison)?;
            run.conclude(&self.list, &mut comparison, true)?;
            run.planner.mirror.set_meta(CURSOR, Some(&included.to_string()))?;
            at = included;
            Ok(Some(Baseline { unchanged: false, whole: true, at: None }))
        })?;
        self.plan_changes(run, at)?;
        Ok(())
    }

    fn packages(
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

    fn plan_again(&mut self, run: &mut PlanContext<'_, '_>) -> Result<bool, Error> {
        let Some(known) = Self::cursor(run.planner.mirror)? else { return Ok(false) };
        Ok(self.plan_changes(run, known)? == Followed::Planned)
    }

    fn position(&self, mirror: &Mirror) -> Result<Option<String>, Error> {
        Ok(Self::cursor(mirror)?.map(|lines| format!("line {lines}")))
    }
}
