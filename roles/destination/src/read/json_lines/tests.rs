//! Copies of feeds of JSON Lines, through whole runs against a server.
#![cfg(test)]

use super::PROTOCOL;
use crate::read::choice::Choice;
use crate::read::protocol::Protocol;
use crate::read::resourcesync;
use crate::report::error::Error;
use crate::report::events::{Event, ItemAction, Mode, Summary};
use crate::report::options::{AuditOptions, SyncOptions};
use crate::run::audit::audit_with;
use crate::run::sync::{Wake, sync_with};
use abreast_net::Shared;
use abreast_testkit::digest::md5_hex;
use abreast_testkit::pages::{Answer, Server};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

const PROTOCOLS: &[Protocol] = &[PROTOCOL, resourcesync::PROTOCOL];
/// Versions on a page.
const PAGE: usize = 2;

/// A Source with a feed, and its copy.
struct Pair {
    server: Server,
    options: SyncOptions,
    _place: tempfile::TempDir,
    /// Every version: its second, its name, and its text.
    log: Vec<(u32, &'static str, Option<String>)>,
    /// Versions that are not in the feed any more.
    pruned: usize,
    codes: Mutex<Vec<String>>,
}

fn at(second: u32) -> String {
    format!("2026-01-01T00:00:{second:02}.5Z")
}

impl Pair {
    fn new() -> Self {
        let (server, place) = (Server::start(), tempfile::tempdir().unwrap());
        let url = server.url("/feed.jsonl");
        let mut options = SyncOptions::new(url, place.path().join("copy"));
        options.ignore_robots = true;
        options.net.backoff_base = std::time::Duration::from_millis(1);
        options.net.retries = 1;
        let (log, codes) = (Vec::new(), Mutex::default());
        Self { server, options, _place: place, log, pruned: 0, codes }
    }

    /// A copy of two resources, one of which was deleted and came back.
    fn copied() -> Self {
        let mut pair = Self::new();
        for (name, text) in [("a", Some("1")), ("b", Some("1")), ("b", None), ("b", Some("2"))] {
            pair.version(name, text);
        }
        pair.dump();
        assert_eq!((counts(&pair.sync()), pair.codes()), ([2, 0, 0, 0], vec![]));
        pair
    }

    /// A new version a second after the last one.
    fn version(&mut self, name: &'static str, text: Option<&str>) {
        let second = self.log.last().map_or(1, |(second, ..)| second + 1);
        self.version_at(second, name, text);
    }

    fn version_at(&mut self, second: u32, name: &'static str, text: Option<&str>) {
        let path = format!("/{name}");
        match text {
            Some(text) => self.server.body(&path, text),
            None => self.server.remove(&path),
        }
        self.log.push((second, name, text.map(str::to_owned)));
        self.publish();
    }

    fn line(&(second, name, ref text): &(u32, &str, Option<String>)) -> String {
        let time = at(second);
        match text {
            Some(text) => {
                let digest = md5_hex(text.as_bytes());
                format!("{{\"id\":\"{name}\",\"time\":\"{time}\",\"digest\":\"md5:{digest}\"}}\n")
            }
            None => format!("{{\"id\":\"{name}\",\"time\":\"{time}\",\"deleted\":true}}\n"),
        }
    }

    /// Makes the pages: `feed.jsonl`, then `page-N.jsonl` up to `page-0.jsonl`.
    fn publish(&self) {
        let pages: Vec<_> = self.log[self.pruned..].chunks(PAGE).collect();
        for (number, page) in pages.iter().enumerate() {
            let more = match number {
                // Right after the last version that is not there.
                0 if self.pruned > 0 => format!(",\"from\":\"{}\"", at(self.log[self.pruned].0)),
                0 => String::new(),
                _ => format!(",\"older\":\"page-{}.jsonl\"", number - 1),
            };
            let lines: String = page.iter().rev().map(Self::line).collect();
            let text = format!("{{\"feed\":1,\"dump\":\"dump.jsonl\"{more}}}\n{lines}");
            self.server.body(&format!("/page-{number}.jsonl"), text.as_str());
            self.server.body("/feed.jsonl", text);
        }
    }

    fn now(&self) -> BTreeMap<&'static str, String> {
        let mut now = BTreeMap::new();
        for (_, name, text) in &self.log {
            match text {
                Some(text) => now.insert(*name, text.clone()),
                None => now.remove(name),
            };
        }
        now
    }

    fn dump(&self) {
        let now = self.now();
        let newest = |(name, text): (&&str, &String)| {
            let is_it = |version: &&(u32, &str, Option<String>)| {
                version.1 == *name && version.2.as_ref() == Some(text)
            };
            Self::line(self.log.iter().rfind(is_it).unwrap())
        };
        let (lines, count): (String, _) = (now.iter().map(newest).collect(), now.len());
        let at = at(self.log.last().unwrap().0);
        let text = format!("{{\"full\":1,\"at\":\"{at}\",\"count\":{count}}}\n{lines}");
        self.server.body("/dump.jsonl", text);
    }

    /// Replaces something in a document.
    fn edit(&self, path: &str, from: &str, to: &str) {
        let text = String::from_utf8(self.server.page(path)).unwrap();
        assert!(text.contains(from), "{text}");
        self.server.body(path, text.replacen(from, to, 1));
    }

    fn try_sync(&self, notifications: &[String]) -> Result<Summary, Error> {
        let (cancel, shared) = (AtomicBool::new(false), Shared::new(self.options.net_options()));
        let notifications = notifications.iter().map(|text| text.clone().into()).collect();
        let (robots, wake) = (Arc::default(), Wake { notifications, ..Wake::default() });
        let codes = Mutex::new(Vec::new());
        let observer = |event: &Event<'_>| {
            if let Event::Error(problem) | Event::Notice(problem) = event {
                codes.lock().unwrap().push(problem.code.to_owned());
            }
        };
        let mut choice = Choice::of(PROTOCOLS);
        let ran = sync_with(&self.options, &observer, &cancel, &shared, &robots, wake, &mut choice);
        *self.codes.lock().unwrap() = codes.into_inner().unwrap();
        ran.map(|ran| ran.summary)
    }

    fn sync(&self) -> Summary {
        self.try_sync(&[]).unwrap()
    }

    fn codes(&self) -> Vec<String> {
        self.codes.lock().unwrap().clone()
    }

    fn copy(&self) -> BTreeMap<String, String> {
        let entries = std::fs::read_dir(&self.options.folder).unwrap().flatten();
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        let read = |entry: std::fs::DirEntry| {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            (entry.file_name().into_string().unwrap(), text)
        };
        files.map(read).collect()
    }

    /// The copy equals the Source, and an audit finds no difference.
    fn is_right(&self) {
        let now: BTreeMap<_, _> =
            self.now().into_iter().map(|(name, text)| (name.to_owned(), text)).collect();
        assert_eq!(self.copy(), now);
        let found = Mutex::new(Vec::new());
        let observer = |event: &Event<'_>| {
            if let Event::Item(item) = event
                && item.action != ItemAction::Unchanged
            {
                found.lock().unwrap().push((item.path.to_owned(), item.action));
            }
        };
        let options = AuditOptions { sync: self.options.clone(), full: true };
        let mut choice = Choice::of(PROTOCOLS);
        audit_with(&options, &observer, &AtomicBool::new(false), &mut choice).unwrap();
        assert_eq!(found.into_inner().unwrap(), []);
    }
}

fn counts(summary: &Summary) -> [u64; 4] {
    [summary.created, summary.updated, summary.deleted, summary.failed]
}

#[test]
fn a_feed_of_lines_is_copied_and_followed() {
    let mut pair = Pair::copied();
    pair.is_right();
    pair.server.take_log();
    let quiet = pair.sync();
    assert_eq!((counts(&quiet), quiet.mode, quiet.exit_code), ([0; 4], Mode::Incremental, 0));
    assert!(pair.server.take_log().len() <= 3);
    // Over several pages, with one resource deleted and another changed twice.
    for (name, text) in
        [("c", Some("1")), ("a", None), ("c", Some("2")), ("d", Some("1")), ("b", Some("3"))]
    {
        pair.version(name, text);
    }
    let followed = pair.sync();
    assert_eq!((counts(&followed), followed.mode), ([2, 1, 1, 0], Mode::Incremental));
    assert_eq!((followed.exit_code, pair.codes()), (0, vec![]));
    assert!(!pair.server.take_log().contains(&"/dump.jsonl".to_owned()));
    pair.is_right();
    // Several versions in one second, of which some were read.
    let second = pair.log.last().unwrap().0;
    pair.version_at(second, "d", Some("2"));
    pair.version_at(second, "b", None);
    assert_eq!(counts(&pair.sync()), [0, 1, 1, 0]);
    pair.is_right();
}

#[test]
fn a_feed_of_lines_that_lost_versions_is_compared() {
    let mut pair = Pair::copied();
    for (name, text) in [("a", None), ("c", Some("1")), ("d", Some("1")), ("e", Some("1"))] {
        pair.version(name, text);
    }
    // The deletion is in no page any more.
    pair.pruned = 6;
    pair.publish();
    pair.dump();
    let compared = pair.sync();
    assert_eq!((counts(&compared), compared.mode), ([3, 0, 1, 0], Mode::Baseline));
    assert_eq!((compared.exit_code, pair.codes()), (0, vec!["gap".to_owned()]));
    pair.is_right();
    // The server was restored, and lacks changes that the copy has seen.
    (pair.log, pair.pruned) = (pair.log[..4].to_vec(), 0);
    pair.version("f", Some("1"));
    pair.dump();
    pair.server.body("/a", "1");
    pair.options.max_delete = crate::report::options::MaxDelete::Percent(100.0);
    let restored = pair.sync();
    assert_eq!((restored.mode, restored.exit_code), (Mode::Baseline, 0), "{:?}", pair.codes());
    assert_eq!(pair.codes(), ["gap"]);
    pair.is_right();
}

#[test]
fn pages_of_lines_in_a_circle_are_reported_and_applied() {
    for (edit, code) in [
        ("feed.jsonl", "list.cycle"),
        ("page-3.jsonl", "list.cycle"),
        ("http://other.example/page.jsonl", "uri.authority"),
    ] {
        let mut pair = Pair::copied();
        pair.version("x", Some("1"));
        assert_eq!(pair.sync().created, 1);
        for (name, text) in
            [("a", None), ("c", Some("1")), ("d", Some("1")), ("c", None), ("e", Some("1"))]
        {
            pair.version(name, text);
        }
        // The creation of `x` and the deletion of `a` are on `page-2`.
        pair.edit("/page-3.jsonl", "page-2.jsonl", edit);
        // The known changes are compared with the dump, which is older than the changes before the
        // cut.
        for codes in [vec!["gap", code, "gap"], vec![code], vec![code]] {
            let cut = pair.sync();
            assert_eq!(pair.codes(), codes, "{edit}");
            assert_eq!((cut.exit_code, cut.deleted), (3, 0), "{edit}");
            assert_eq!(pair.copy().into_keys().collect::<String>(), "abdex", "{edit}");
        }
        if code == "list.cycle" {
            // A newer dump contains the changes that were not reached.
            pair.dump();
            let compared = pair.sync();
            assert_eq!((compared.exit_code, compared.deleted), (0, 1), "{:?}", pair.codes());
            pair.is_right();
            continue;
        }
        pair.publish();
        let whole = pair.sync();
        assert_eq!((whole.exit_code, whole.deleted, pair.codes()), (0, 1, vec![]), "{edit}");
        pair.is_right();
    }
}

#[test]
fn a_page_of_lines_that_is_missing_is_read_by_a_later_run() {
    let mut pair = Pair::copied();
    for (name, text) in [("a", None), ("c", Some("1")), ("d", Some("1")), ("c", Some("2"))] {
        pair.version(name, text);
    }
    pair.server.put("/page-2.jsonl", Answer::status(404));
    assert!(pair.try_sync(&[]).is_err());
    let whole = pair.server.page("/feed.jsonl");
    pair.server.put("/page-2.jsonl", Answer::cut(whole, 10));
    assert!(pair.try_sync(&[]).is_err());
    pair.publish();
    assert_eq!((counts(&pair.sync()), pair.codes()), ([2, 0, 1, 0], vec![]));
    pair.is_right();
}

#[test]
fn pushed_pages_of_lines_are_applied_where_they_continue() {
    let mut pair = Pair::copied();
    let last = |pair: &Pair| pair.log.last().unwrap().0;
    let pushed = |pair: &Pair, from: u32| {
        let lines: String =
            pair.log.iter().rev().filter(|(second, ..)| *second > from).map(Pair::line).collect();
        format!(
            "{{\"feed\":1,\"from\":\"{}\",\"until\":\"{}\"}}\n{lines}",
            at(from),
            at(last(pair))
        )
    };
    let from = last(&pair);
    pair.version("c", Some("1"));
    pair.version("a", None);
    let first = pushed(&pair, from);
    pair.server.take_log();
    let applied = pair.try_sync(std::slice::from_ref(&first)).unwrap();
    assert_eq!((counts(&applied), pair.codes()), ([1, 0, 1, 0], vec![]));
    assert_eq!(pair.server.take_log(), ["/feed.jsonl", "/c"]);
    pair.is_right();
    // The same again, and one that does not continue: a page in between was lost.
    pair.version("d", Some("1"));
    let from = last(&pair);
    pair.version("e", Some("1"));
    let second = pushed(&pair, from);
    assert_eq!(counts(&pair.try_sync(&[first, second]).unwrap()), [2, 0, 0, 0]);
    pair.is_right();
    // A notification that cannot be read is ignored.
    let from = last(&pair);
    pair.version("f", Some("1"));
    let torn = pushed(&pair, from).replace("\"id\"", "\"di\"");
    assert_eq!(counts(&pair.try_sync(&[torn]).unwrap()), [1, 0, 0, 0]);
    assert_eq!(pair.codes(), ["notification.unusable"]);
    pair.is_right();
}

#[test]
fn lines_that_are_no_versions_are_reported_and_delete_nothing() {
    let mut pair = Pair::copied();
    pair.options.baseline = true;
    let dump = String::from_utf8(pair.server.page("/dump.jsonl")).unwrap();
    // The last line is missing, or a line cannot be used.
    let (whole, _) = dump.trim_end().rsplit_once('\n').unwrap();
    pair.server.body("/dump.jsonl", whole);
    assert_eq!(pair.try_sync(&[]).unwrap_err().code(), "json-lines");
    pair.server.body("/dump.jsonl", dump.replace("\"id\":\"b\"", "\"id\":2"));
    assert_eq!((pair.sync().deleted, pair.copy().len()), (0, 2));
    pair.options.baseline = false;
    pair.dump();
    pair.version("c", Some("1"));
    pair.version("d", Some("1"));
    pair.edit("/feed.jsonl", "\"id\":\"d\"", "\"id\":4");
    for _ in 0..2 {
        assert_eq!((pair.sync().exit_code, pair.codes()), (3, vec!["list.unusable".to_owned()]));
        assert_eq!(pair.copy().len(), 3);
    }
    pair.publish();
    assert_eq!((pair.sync().created, pair.codes()), (1, vec![]));
    pair.is_right();
}
