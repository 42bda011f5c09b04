//! The contract of every sink: one sequence of changes, run with each of them.
#![allow(dead_code, clippy::unwrap_used, clippy::panic, reason = "a test's tool")]

pub(crate) mod kills;

use crate::server::{Source, document, md5_hex};
use abreast_destination::{
    AuditOptions, AuditReport, Error, Event, MaxDelete, Mode, SinkOptions, Summary, SyncOptions, WarcOptions, audit,
    sync,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A copy in a temporary folder.
pub(crate) struct Copy {
    _place: tempfile::TempDir,
    pub(crate) options: SyncOptions,
}

impl Copy {
    pub(crate) fn of(source: &Source, sink: impl FnOnce(&Path) -> SinkOptions) -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut options = SyncOptions::new(source.url(), place.path().join("copy"));
        options.net.backoff_base = Duration::from_millis(1);
        options.net.retries = 2;
        options.sink = sink(place.path());
        Self { _place: place, options }
    }

    pub(crate) fn try_run(&self) -> (Result<Summary, Error>, Vec<String>) {
        let codes = Mutex::new(Vec::new());
        let observer = |event: &Event<'_>| {
            if let Event::Error(problem) | Event::Notice(problem) = event {
                codes.lock().unwrap().push(problem.code.to_owned());
            }
        };
        let result = sync(&self.options, &observer, &AtomicBool::new(false));
        (result, codes.into_inner().unwrap())
    }

    pub(crate) fn run(&self) -> Summary {
        match self.try_run() {
            (Ok(summary), _) => summary,
            (Err(error), codes) => panic!("{error} {codes:?}"),
        }
    }

    pub(crate) fn audit(&self, full: bool) -> AuditReport {
        let options = AuditOptions { sync: self.options.clone(), full };
        audit(&options, &abreast_destination::Silent, &AtomicBool::new(false)).unwrap()
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.options.folder
    }
}

pub(crate) type Kept = BTreeMap<String, Vec<u8>>;

/// Path to bytes, for comparison with what the Source has.
pub(crate) type Reader = fn(&Copy, &Source) -> Kept;

/// What a failing test prints instead of all bytes.
fn seen(kept: &Kept) -> Vec<String> {
    kept.iter().map(|(path, body)| format!("{path} {} {}", body.len(), md5_hex(body))).collect()
}

/// Every file in the copy's folder.
pub(crate) fn files(copy: &Copy, _: &Source) -> Kept {
    let mut out = Kept::new();
    let mut waiting = vec![copy.folder().to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(&dir).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                if entry.file_name() != ".abreast" {
                    waiting.push(path);
                }
            } else {
                let name = path.strip_prefix(copy.folder()).unwrap().to_string_lossy().into_owned();
                out.insert(format!("/{name}"), std::fs::read(path).unwrap());
            }
        }
    }
    out
}

/// What every sink owes: equal to its Source after each run, cheap when nothing has changed, verified or not at all,
/// and nothing deleted beyond the limit.
pub(crate) fn contract(sink: fn(&Path) -> SinkOptions, reader: Reader) {
    let mut source = Source::new();
    let large = "0123456789abcdef".repeat(200_000);
    let text = "the same bytes under two names. ".repeat(20);
    for (path, body) in
        [("/a.txt", "one"), ("/dir/b.txt", &text), ("/dir/c.txt", &text), ("/empty", ""), ("/large.bin", &large)]
    {
        source.set(path, body);
    }
    source.snapshot();
    let copy = Copy::of(&source, sink);
    let first = copy.run();
    assert_eq!((first.mode, first.created, first.exit_code), (Mode::Baseline, 5, 0));
    assert_eq!(seen(&reader(&copy, &source)), seen(&source.kept));
    assert_eq!(copy.audit(false).exit_code, 0);
    assert_eq!((copy.audit(true).exit_code, copy.audit(true).same), (0, 5));

    source.server.take_log();
    let second = copy.run();
    assert_eq!((second.created, second.updated, second.deleted), (0, 0, 0));
    assert!(source.server.take_log().len() <= 2);

    source.set("/a.txt", "two");
    source.set("/new.txt", "new");
    source.delete("/dir/b.txt");
    let third = copy.run();
    assert_eq!((third.mode, third.created, third.updated, third.deleted), (Mode::Incremental, 1, 1, 1));
    assert_eq!(seen(&reader(&copy, &source)), seen(&source.kept));
    assert_eq!(copy.audit(true).exit_code, 0);

    // Back under its old name, with the bytes of another.
    source.set("/dir/b.txt", &text);
    assert_eq!(copy.run().created, 1);
    assert_eq!(seen(&reader(&copy, &source)), seen(&source.kept));

    // Bytes that are not as listed are never kept; the old ones are.
    source.set("/a.txt", "three");
    source.server.body("/a.txt", "other");
    let (result, codes) = copy.try_run();
    assert_eq!(result.unwrap().exit_code, 3);
    assert!(codes.contains(&"fixity.mismatch".to_owned()), "{codes:?}");
    assert_eq!(reader(&copy, &source).get("/a.txt").unwrap(), b"two");
    let report = copy.audit(true);
    assert_eq!((report.updated, report.missing, report.extra, report.exit_code), (1, 0, 0, 1));
    source.server.body("/a.txt", "three");
    assert_eq!(copy.run().exit_code, 0);

    // Beyond the limit nothing is deleted.
    source.delete("/a.txt");
    source.delete("/dir/c.txt");
    let mut held = Copy { _place: tempfile::tempdir().unwrap(), options: copy.options.clone() };
    held.options.max_delete = MaxDelete::Count(1);
    let summary = held.run();
    assert_eq!((summary.deleted, summary.held, summary.exit_code), (0, 2, 7));
    assert_eq!(reader(&copy, &source).len(), source.kept.len() + 2);
    assert_eq!(copy.run().deleted, 2);
    assert_eq!(seen(&reader(&copy, &source)), seen(&source.kept));

    // A comparison with the whole list finds nothing to do.
    source.snapshot();
    held.options.max_delete = MaxDelete::Default;
    held.options.baseline = true;
    let compared = held.run();
    assert_eq!((compared.created, compared.updated, compared.deleted), (0, 0, 0));
    assert_eq!(seen(&reader(&copy, &source)), seen(&source.kept));

    // Unlisted digests: the server's word that nothing changed is taken, and the same bytes are not kept twice.
    let entry = format!("<url><loc>{}</loc></url>\n", source.server.url("/plain.txt"));
    source.server.body("/plain.txt", "plain");
    let attributes = format!("capability=\"resourcelist\" at=\"{}\"", source.now());
    source.server.body("/resourcelist.xml", document("urlset", &attributes, &entry));
    held.options.max_delete = MaxDelete::Percent(100.0);
    assert_eq!(held.run().unverified, 1);
    let before = reader(&copy, &source);
    let again = held.run();
    assert_eq!((again.created, again.updated, again.unchanged), (0, 0, 1));
    assert_eq!(seen(&reader(&copy, &source)), seen(&before));

    // A dry run changes nothing.
    source.set("/dry.txt", "dry");
    held.options.baseline = false;
    held.options.dry_run = true;
    held.run();
    assert_eq!(seen(&reader(&copy, &source)), seen(&before));

    let other = if held.options.sink == SinkOptions::Folder {
        SinkOptions::Warc(WarcOptions::default())
    } else {
        SinkOptions::Folder
    };
    held.options.sink = other;
    held.options.dry_run = false;
    let (result, _) = held.try_run();
    assert_eq!(result.unwrap_err().code(), "sink.kind");
}

/// A Source with some files.
pub(crate) fn some(count: usize) -> Source {
    let mut source = Source::new();
    for number in 0..count {
        source.set(&format!("/f{number:03}"), &format!("file {number} {}", "x".repeat(number)));
    }
    source.snapshot();
    source
}
