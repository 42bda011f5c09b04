//! A second reader, for tests: plain text, a line for each resource or change. That a run, the deletion guard, an audit and
//! the sinks work with it shows that they know no protocol.
//!
//! `list.txt` begins with the number of the last change that it includes, has a line `URL TIME MD5` for each resource, and
//! ends with `end`. `changes.txt` has all changes, `put URL TIME MD5` or `gone URL TIME`. The cursor is a number of lines.
//! `dump.txt` has lines `URL LENGTH` of ZIP files, whose member `index.txt` has lines `URL MEMBER`.

use super::{Expecting, Reader, SourceSet, Start};
use crate::audit::audit_with;
use crate::error::{Error, ExitCode};
use crate::events::{Event, ItemAction, Mode, Observer, Silent, Summary};
use crate::options::{AuditOptions, SyncOptions};
use crate::package::archive::{Found, Package};
use crate::package::listing::{Dump, ListedPackage, Offered, Packaged};
use crate::package::manifest::Manifest;
use crate::plan::changes::{Followed, Seen};
use crate::plan::comparison::Baseline;
use crate::plan::listed::testing::listed;
use crate::plan::listed::{Change, Listed};
use crate::plan::planner::PlanContext;
use crate::requests::{Requests, net_error};
use crate::run::{Wake, sync_with};
use crate::sink::options::SinkOptions;
use crate::sink::warc::WarcOptions;
use abreast_net::Shared;
use abreast_store::mirror::Mirror;
use abreast_testkit::digest::md5_hex;
use abreast_testkit::pages::Server;
use abreast_testkit::zip::Zip;
use abreast_webtypes::{Digests, Timestamp};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

const CURSOR: &str = "text-cursor";
const BYTES_MAX: u64 = 1 << 20;

/// One line.
struct Line {
    url: String,
    time: Timestamp,
    digests: Digests,
    change: Option<Change>,
}

impl Line {
    fn read(text: &str, change: Option<Change>) -> Option<Self> {
        let mut words = text.split(' ');
        let (url, time) = (words.next()?.to_owned(), words.next()?.parse().ok()?);
        let mut digests = Digests::default();
        if let Some(md5) = words.next() {
            digests.parse_into(format!("md5:{md5}").as_bytes()).ok()?;
        }
        Some(Self { url, time: Timestamp::from_seconds(time), digests, change })
    }

    fn listed<'a>(&'a self, document: &'a str) -> Listed<'a> {
        Listed {
            uri: &self.url,
            document,
            modified: Some(self.time.as_micros()),
            modified_is_change: false,
            length: None,
            media_type: None,
            digests: &self.digests,
            change: self.change,
            changed: self.change.map(|_| self.time),
            links: Vec::new(),
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
    let mut body = Vec::new();
    let fetched = requests.run(requests.client.fetch_to(&requests.request(url), &mut body, BYTES_MAX))?;
    fetched.map_err(net_error)?;
    String::from_utf8(body).map_err(|_| odd(url))
}

impl Text {
    fn start(&mut self, options: &SyncOptions) -> Start {
        self.list = format!("{}list.txt", options.url);
        self.changes = format!("{}changes.txt", options.url);
        self.dump = format!("{}dump.txt", options.url);
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
            ("put", rest) => Line::read(rest, Some(Change::Put)),
            ("gone", rest) => Line::read(rest, Some(Change::Deleted)),
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
                run.note_change(&line.listed(&self.changes), Timestamp::MIN, &mut seen, &mut reading)?;
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
            Some(ListedPackage { url: url.to_owned(), length: Some(length.parse().ok()?), ..ListedPackage::default() })
        };
        let text = get(requests, &self.dump)?;
        let packages = text.lines().map(read).collect::<Option<_>>().ok_or_else(|| odd(&self.dump))?;
        Ok(Dump { packages, packaged: Packaged::Snapshot, at: None, is_plan: false })
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

    fn expect(&self, requests: &Requests<'_>, _: &SyncOptions, to: &mut dyn Expecting) -> Result<(), Error> {
        let (at, lines) = self.read_list(requests)?;
        lines.iter().try_for_each(|line| to.listed(&line.listed(&self.list)))?;
        let changes = self.read_changes(requests)?;
        let new = changes.get(at..).unwrap_or_default();
        new.iter().try_for_each(|line| to.changed(&line.listed(&self.changes), line.time.as_micros()))
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

    fn packages(&mut self, run: &mut PlanContext<'_, '_>, _: Option<Timestamp>) -> Result<Vec<Offered>, Error> {
        Ok(vec![Offered { url: self.dump.clone(), dump: self.read_dump(run.requests) }])
    }

    fn manifest(&self, _: &Requests<'_>, package: &Package, url: &str, _: Packaged) -> Result<Manifest, Error> {
        let Found::Member(index) = package.find("index.txt") else { return Err(odd(url)) };
        let (mut bytes, mut manifest) = (Vec::new(), Manifest::new(package));
        manifest.name(index);
        let range = package.read_into(package.member(index), &mut bytes, &mut Vec::new()).map_err(|_| odd(url))?;
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

/// A Source of that protocol, and one copy of it.
struct Pair {
    server: Server,
    options: SyncOptions,
}

impl Pair {
    fn new(place: &Path, name: &str, sink: SinkOptions) -> Self {
        let server = Server::start();
        let options = SyncOptions { sink, ignore_robots: true, ..SyncOptions::new(server.url("/"), place.join(name)) };
        let pair = Self { server, options };
        pair.changes(&[]);
        pair
    }

    /// Serves a resource and gives its line.
    fn resource(&self, name: &str, body: &str) -> String {
        self.server.body(&format!("/d/{name}"), body);
        format!("{} 1700000000 {}", self.server.url(&format!("/d/{name}")), md5_hex(body.as_bytes()))
    }

    fn list(&self, at: usize, lines: &[String]) {
        self.server.body("/list.txt", format!("{at}\n{}\nend\n", lines.join("\n")));
    }

    fn changes(&self, lines: &[String]) {
        self.server.body("/changes.txt", lines.iter().map(|line| line.clone() + "\n").collect::<String>());
    }

    fn sync(&self) -> Result<Summary, Error> {
        let (cancel, shared) = (AtomicBool::new(false), Shared::new(self.options.net_options()));
        let mut reader = Text::default();
        let (robots, wake) = (Arc::default(), Wake::default());
        sync_with(&self.options, &Silent, &cancel, &shared, &robots, wake, &mut reader).map(|ran| ran.summary)
    }

    /// The differences that an audit of all bytes finds.
    fn differences(&self) -> Vec<(String, ItemAction)> {
        let found = Mutex::new(Vec::new());
        let observer = |event: &Event<'_>| {
            if let Event::Item(item) = event {
                found.lock().unwrap().push((item.path.to_owned(), item.action));
            }
        };
        let options = AuditOptions { sync: self.options.clone(), full: true };
        audit_with(&options, &observer, &AtomicBool::new(false), &mut Text::default()).unwrap();
        found.into_inner().unwrap()
    }
}

fn sinks() -> [(&'static str, SinkOptions); 2] {
    [("folder", SinkOptions::Folder), ("warc", SinkOptions::Warc(WarcOptions::default()))]
}

fn counts(summary: &Summary) -> [u64; 4] {
    [summary.created, summary.updated, summary.deleted, summary.failed]
}

#[test]
fn another_protocol_is_copied_followed_and_audited() {
    let place = tempfile::tempdir().unwrap();
    for (name, sink) in sinks() {
        let pair = Pair::new(place.path(), name, sink);
        let lines: Vec<_> = ["a", "b", "c"].iter().map(|name| pair.resource(name, "old")).collect();
        pair.list(0, &lines);
        let first = pair.sync().unwrap();
        assert_eq!((counts(&first), first.mode), ([3, 0, 0, 0], Mode::Baseline), "{name}");
        assert_eq!(pair.differences(), [], "{name}");

        let gone = format!("gone {} 1700000003", pair.server.url("/d/c"));
        let (new, other) = (pair.resource("b", "new"), pair.resource("e", "more"));
        pair.changes(&[format!("put {new}"), format!("put {other}"), gone]);
        pair.server.remove("/d/c");
        assert_eq!(pair.differences().len(), 3, "{name}: the audit knows of the changes");
        let second = pair.sync().unwrap();
        assert_eq!((counts(&second), second.mode), ([1, 1, 1, 0], Mode::Incremental), "{name}");
        assert_eq!(second.cursor.as_deref(), Some("line 3"));
        assert_eq!(pair.differences(), [], "{name}");

        pair.server.take_log();
        assert_eq!(counts(&pair.sync().unwrap()), [0, 0, 0, 0], "{name}");
        assert_eq!(pair.server.take_log(), ["/changes.txt"], "{name}: one request");
    }
}

#[test]
fn another_protocol_deletes_no_more_than_is_allowed() {
    let place = tempfile::tempdir().unwrap();
    for (name, sink) in sinks() {
        let mut pair = Pair::new(place.path(), name, sink);
        let lines: Vec<_> = (0..20).map(|number| pair.resource(&format!("r{number}"), "old")).collect();
        pair.list(0, &lines);
        pair.sync().unwrap();
        pair.options.baseline = true;

        let whole = pair.server.page("/list.txt");
        pair.server.body("/list.txt", &whole[..whole.len() / 2]);
        assert_eq!(pair.sync().unwrap_err().code(), "text.line", "{name}");
        pair.list(0, &[]);
        assert_eq!(pair.sync().unwrap_err().code(), "text.line", "{name}: an empty line is none");
        pair.list(0, &lines[..4]);
        let held = pair.sync().unwrap();
        assert_eq!((held.deleted, held.held, held.delete_limit), (0, 16, true), "{name}");
        pair.list(0, &lines);
        assert_eq!(counts(&pair.sync().unwrap()), [0, 0, 0, 0], "{name}: nothing was deleted");
        pair.list(0, &lines[..19]);
        assert_eq!(counts(&pair.sync().unwrap()), [0, 0, 1, 0], "{name}");
    }
}

#[test]
fn changes_that_are_missing_lead_to_a_comparison() {
    let place = tempfile::tempdir().unwrap();
    let pair = Pair::new(place.path(), "copy", SinkOptions::Folder);
    let lines = [pair.resource("a", "one"), pair.resource("b", "two")];
    pair.list(0, &lines[..1]);
    pair.changes(&[format!("put {}", lines[1])]);
    let first = pair.sync().unwrap();
    assert_eq!((counts(&first), first.cursor.as_deref()), ([2, 0, 0, 0], Some("line 1")));
    // The log of the Source began again.
    pair.list(0, &lines);
    pair.changes(&[]);
    let again = pair.sync().unwrap();
    assert_eq!((counts(&again), again.mode, again.cursor.as_deref()), ([0, 0, 0, 0], Mode::Baseline, Some("line 0")));
}

#[test]
fn packages_of_another_protocol_are_chosen_by_their_cost() {
    let place = tempfile::tempdir().unwrap();
    for (name, sink) in sinks() {
        let pair = Pair::new(place.path(), name, sink);
        let (mut zip, mut index, mut lines) = (Zip::new(), Vec::new(), Vec::new());
        for number in 0..40 {
            let member = format!("r{number}");
            lines.push(pair.resource(&member, &member));
            index.push(format!("{} {member}", pair.server.url(&format!("/d/{member}"))));
            zip.add(&member, member.as_bytes());
        }
        zip.add("index.txt", index.join("\n").as_bytes());
        let package = zip.finish();
        pair.server.body("/dump.txt", format!("{} {}\n", pair.server.url("/all.zip"), package.len()));
        pair.server.body("/all.zip", package);
        pair.list(0, &lines);
        assert_eq!(counts(&pair.sync().unwrap()), [40, 0, 0, 0], "{name}");
        let requests = pair.server.take_log();
        assert_eq!(requests, ["/list.txt", "/changes.txt", "/dump.txt", "/all.zip"], "{name}: no resource by itself");
        assert_eq!(pair.differences(), [], "{name}");
        pair.server.take_log();

        // A few are requested by themselves, and the dump is not even read.
        let changes: Vec<_> =
            (0..3).map(|number| format!("put {}", pair.resource(&format!("r{number}"), "new"))).collect();
        pair.changes(&changes);
        assert_eq!(counts(&pair.sync().unwrap()), [0, 3, 0, 0], "{name}");
        let requests = pair.server.take_log();
        assert!(requests.iter().all(|path| path != "/dump.txt" && path != "/all.zip"), "{name}: {requests:?}");
    }
}
