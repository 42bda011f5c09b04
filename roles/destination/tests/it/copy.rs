//! A copy in a temporary folder, and the reports of its runs.

use crate::source::Source;
use abreast_destination::{
    AuditOptions, AuditReport, Error, Event, ItemAction, Observer, Silent, SinkOptions, Summary,
    SyncOptions, audit, sync,
};
use abreast_testkit::pages::Server;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// An error or a notice.
#[derive(Clone, Debug)]
pub(crate) struct Reported {
    pub(crate) code: String,
    pub(crate) uri: String,
    pub(crate) message: String,
}

/// A resource that is reported because something is done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub(crate) action: ItemAction,
    pub(crate) uri: String,
    pub(crate) path: String,
}

/// A run or an audit: its outcome and its reports, in their order.
pub(crate) struct Ran<T = Summary> {
    pub(crate) result: Result<T, Error>,
    pub(crate) reported: Vec<Reported>,
    /// The codes of `reported`.
    pub(crate) codes: Vec<String>,
    /// All that are not unchanged.
    pub(crate) items: Vec<Item>,
}

impl<T> Ran<T> {
    pub(crate) fn of(command: impl FnOnce(&dyn Observer) -> Result<T, Error>) -> Self {
        let seen = Mutex::new((Vec::new(), Vec::new()));
        let result = command(&|event: &Event<'_>| match event {
            Event::Error(problem) | Event::Notice(problem) => {
                seen.lock().unwrap().0.push(Reported {
                    code: problem.code.to_owned(),
                    uri: problem.uri.to_owned(),
                    message: problem.message.to_owned(),
                });
            }
            Event::Item(item) if item.action != ItemAction::Unchanged => {
                seen.lock().unwrap().1.push(Item {
                    action: item.action,
                    uri: item.uri.to_owned(),
                    path: item.path.to_owned(),
                });
            }
            _ => {}
        });
        let (reported, items) = seen.into_inner().unwrap();
        let codes = reported.iter().map(|problem: &Reported| problem.code.clone()).collect();
        Self { result, reported, codes, items }
    }

    /// The code of the error that ended it, or nothing.
    pub(crate) fn code(&self) -> &str {
        self.result.as_ref().map_or_else(Error::code, |_| "")
    }

    pub(crate) fn has(&self, code: &str) -> bool {
        self.count(code) > 0
    }

    pub(crate) fn count(&self, code: &str) -> usize {
        self.codes.iter().filter(|reported| *reported == code).count()
    }

    /// Code and URI of each report.
    pub(crate) fn codes_and_uris(&self) -> Vec<(String, String)> {
        self.reported.iter().map(|problem| (problem.code.clone(), problem.uri.clone())).collect()
    }

    /// The URIs of resources with which that was done.
    pub(crate) fn uris(&self, action: ItemAction) -> Vec<&str> {
        self.items
            .iter()
            .filter(|item| item.action == action)
            .map(|item| item.uri.as_str())
            .collect()
    }
}

impl Ran {
    /// A run.
    pub(crate) fn sync(options: &SyncOptions) -> Self {
        Self::of(|observer| sync(options, observer, &AtomicBool::new(false)))
    }

    pub(crate) fn summary(&self) -> &Summary {
        self.result.as_ref().unwrap_or_else(|error| panic!("{error} {:?}", self.reported))
    }

    pub(crate) fn exit(&self) -> u8 {
        self.result
            .as_ref()
            .map_or_else(|error| error.exit_code().number(), |summary| summary.exit_code)
    }
}

impl Ran<AuditReport> {
    /// An audit.
    pub(crate) fn audit(options: &SyncOptions, full: bool) -> Self {
        let options = AuditOptions { sync: options.clone(), full };
        Self::of(|observer| audit(&options, observer, &AtomicBool::new(false)))
    }
}

/// A copy in a folder of a temporary place; its requests are retried twice, after a millisecond.
pub(crate) struct Copy {
    pub(crate) place: tempfile::TempDir,
    pub(crate) options: SyncOptions,
}

impl Copy {
    /// A copy that ignores robots.txt, which is one request less to count.
    pub(crate) fn of(url: impl Into<String>) -> Self {
        Self::at(tempfile::tempdir().unwrap(), url)
    }

    /// As [`Copy::of`], in this place.
    pub(crate) fn at(place: tempfile::TempDir, url: impl Into<String>) -> Self {
        let mut options = SyncOptions::new(url, place.path().join("copy"));
        options.net.backoff_base = Duration::from_millis(1);
        options.net.retries = 2;
        options.ignore_robots = true;
        Self { place, options }
    }

    /// A copy in a sink, which may be in the temporary place; robots.txt is obeyed.
    pub(crate) fn kept_in(source: &Source, sink: impl FnOnce(&Path) -> SinkOptions) -> Self {
        let mut copy = Self::of(source.url());
        copy.options.ignore_robots = false;
        copy.options.sink = sink(copy.place.path());
        copy
    }

    /// Lets resources come from another server too.
    pub(crate) fn allowing(mut self, server: &Server) -> Self {
        self.options.allow_hosts.push(server.base.trim_start_matches("http://").to_owned());
        self
    }

    pub(crate) fn try_run(&self) -> Ran {
        Ran::sync(&self.options)
    }

    /// A run that ends without an error; resources that it could not copy are in its summary.
    pub(crate) fn run(&self) -> Summary {
        let ran = self.try_run();
        ran.summary();
        ran.result.unwrap()
    }

    /// An audit; a receiver of pushed statements is compared only by the database.
    pub(crate) fn audit(&self, full: bool) -> AuditReport {
        let full = full && !matches!(self.options.sink, SinkOptions::Push(_));
        let options = AuditOptions { sync: self.options.clone(), full };
        audit(&options, &Silent, &AtomicBool::new(false)).unwrap()
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.options.folder
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.folder().join(path)).ok()
    }

    /// The text of each file.
    pub(crate) fn texts(&self) -> BTreeMap<String, String> {
        files(self.folder())
            .into_iter()
            .map(|(path, bytes)| (path, String::from_utf8_lossy(&bytes).into()))
            .collect()
    }

    /// The path of each file.
    pub(crate) fn paths(&self) -> Vec<String> {
        files(self.folder()).into_keys().collect()
    }
}

/// Every file of an existing folder, including hidden ones, without the state: path and bytes.
/// `(special)` stands for everything that is not a regular file.
pub(crate) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in std::fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                if path != folder.join(".abreast") {
                    waiting.push(path);
                }
                continue;
            }
            let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
            let bytes =
                if kind.is_file() { std::fs::read(&path).unwrap() } else { b"(special)".to_vec() };
            found.insert(name, bytes);
        }
    }
    found
}
