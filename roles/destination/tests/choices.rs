//! What users of mirror tools choose: which resources, how much, how politely.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may stop")]

mod server;

use abreast_destination::{
    AuditOptions, Error, Event, ExitCode, Filter, Mode, Summary, SyncOptions, audit, follow, sync, test_filter,
};
use server::{Answer, Source};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// A run: its outcome, and all that was told as lines of JSON.
struct Ran {
    result: Result<Summary, Error>,
    told: Vec<String>,
}

impl Ran {
    fn summary(&self) -> &Summary {
        self.result.as_ref().unwrap_or_else(|error| panic!("{error} {:?}", self.told))
    }

    fn tells(&self, code: &str) -> bool {
        self.told.iter().any(|line| line.contains(&format!("\"code\":\"{code}\"")))
    }
}

fn run_with(
    options: &SyncOptions,
    work: impl Fn(&SyncOptions, &dyn abreast_destination::Observer, &AtomicBool) -> Result<Summary, Error>,
) -> Ran {
    let told = Mutex::new(Vec::new());
    let observer = |event: &Event<'_>| told.lock().unwrap().push(serde_json::to_string(event).unwrap());
    let result = work(options, &observer, &AtomicBool::new(false));
    Ran { result, told: told.into_inner().unwrap() }
}

struct Copy {
    _place: tempfile::TempDir,
    options: SyncOptions,
}

impl Copy {
    fn of(source: &Source) -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut options = SyncOptions::new(source.url(), place.path().join("copy"));
        options.net.backoff_base = Duration::from_millis(1);
        options.net.retries = 1;
        options.ignore_robots = true;
        Self { _place: place, options }
    }

    fn filtered(&mut self, rules: &[&str]) -> Ran {
        self.options.filter = Filter::new(rules.iter().copied()).unwrap();
        self.run()
    }

    fn run(&self) -> Ran {
        run_with(&self.options, sync)
    }

    fn paths(&self) -> Vec<String> {
        files(&self.options.folder).into_keys().collect()
    }

    fn audit(&self) -> u8 {
        let options = AuditOptions { sync: self.options.clone(), full: true };
        audit(&options, &abreast_destination::Silent, &AtomicBool::new(false)).unwrap().exit_code
    }
}

fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            if path == folder.join(".abreast") {
                continue;
            }
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                found.insert(name, std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

fn collection() -> Source {
    let mut source = Source::new();
    for path in ["/d/a.txt", "/d/b.pdf", "/d/deep/c.txt", "/d/deep/d.tmp"] {
        source.set(path, path);
    }
    source.snapshot();
    source
}

#[test]
fn excluded_resources_are_neither_fetched_nor_deleted() {
    let mut source = collection();
    let mut copy = Copy::of(&source);
    let ran = copy.filtered(&["- *.tmp", "- /b.pdf"]);
    assert_eq!(ran.summary().exit_code, 0, "{:?}", ran.told);
    assert_eq!((ran.summary().created, ran.summary().excluded), (2, 2));
    assert_eq!(copy.paths(), ["a.txt", "deep/c.txt"]);
    let log = source.server.take_log();
    assert!(!log.iter().any(|path| path.contains(".tmp") || path.contains(".pdf")), "{log:?}");
    assert_eq!(copy.audit(), 0, "an audit with the same filters finds the copy equal");

    // Somebody's own file in the place of an excluded one is not ours to touch.
    std::fs::write(copy.options.folder.join("b.pdf"), "mine").unwrap();
    source.set("/d/new.tmp", "x");
    source.set("/d/new.txt", "y");
    source.delete("/d/b.pdf");
    let ran = copy.run();
    assert_eq!((ran.summary().mode, ran.summary().created, ran.summary().deleted), (Mode::Incremental, 1, 0));
    assert_eq!(files(&copy.options.folder)["b.pdf"], "mine");
    assert!(copy.paths().contains(&"new.txt".to_owned()) && !copy.paths().contains(&"new.tmp".to_owned()));
}

#[test]
fn newly_included_resources_are_fetched_although_nothing_changed() {
    let source = collection();
    let mut copy = Copy::of(&source);
    copy.filtered(&["- *.tmp", "- *.pdf"]);
    source.server.take_log();
    let ran = copy.filtered(&["- *.tmp"]);
    assert_eq!((ran.summary().mode, ran.summary().created), (Mode::Baseline, 1), "{:?}", ran.told);
    assert_eq!(copy.paths(), ["a.txt", "b.pdf", "deep/c.txt"]);
    let ran = copy.run();
    assert_eq!(ran.summary().mode, Mode::Unchanged, "the same filter asks for no comparison");
    let ran = copy.filtered(&[]);
    assert_eq!((ran.summary().mode, copy.paths().len()), (Mode::Baseline, 4));
}

#[test]
fn newly_excluded_files_stay_untouched_until_their_deletion_is_asked_for() {
    let mut source = collection();
    let mut copy = Copy::of(&source);
    copy.run();
    let ran = copy.filtered(&["- deep/"]);
    assert!(ran.tells("filter.kept"), "{:?}", ran.told);
    assert_eq!((ran.summary().deleted, copy.paths().len()), (0, 4));

    // Changes and deletions at the Source do not reach what is excluded.
    source.set("/d/deep/c.txt", "changed");
    source.delete("/d/deep/d.tmp");
    let ran = copy.run();
    assert_eq!((ran.summary().updated, ran.summary().deleted), (0, 0), "{:?}", ran.told);
    source.snapshot();
    copy.options.baseline = true;
    let ran = copy.run();
    assert_eq!((ran.summary().updated, ran.summary().deleted, copy.paths().len()), (0, 0, 4), "{:?}", ran.told);
    assert!(!ran.tells("filter.kept"), "told once");
    copy.options.baseline = false;

    copy.options.delete_excluded = true;
    let ran = copy.run();
    assert_eq!(ran.summary().deleted, 2, "{:?}", ran.told);
    assert_eq!(copy.paths(), ["a.txt", "b.pdf"]);
    copy.options.delete_excluded = false;
    let ran = copy.filtered(&[]);
    assert_eq!((ran.summary().created, ran.summary().exit_code), (1, 0));
    assert_eq!(files(&copy.options.folder)["deep/c.txt"], "changed");
}

#[test]
fn files_kept_although_excluded_are_brought_up_to_date_when_included_again() {
    let mut source = collection();
    let mut copy = Copy::of(&source);
    copy.run();
    copy.filtered(&["- deep/"]);
    source.set("/d/deep/c.txt", "changed");
    source.delete("/d/deep/d.tmp");
    source.snapshot();
    let ran = copy.filtered(&[]);
    assert_eq!((ran.summary().updated, ran.summary().deleted), (1, 1), "{:?}", ran.told);
    assert_eq!(files(&copy.options.folder)["deep/c.txt"], "changed");
    assert_eq!(copy.audit(), 0);
}

#[test]
fn deleting_excluded_files_obeys_the_deletion_limit() {
    let source = collection();
    let mut copy = Copy::of(&source);
    copy.run();
    copy.options.delete_excluded = true;
    copy.options.max_delete = abreast_destination::MaxDelete::Count(1);
    let ran = copy.filtered(&["- *.txt"]);
    assert_eq!((ran.summary().exit_code, ran.summary().deleted), (7, 0), "{:?}", ran.told);
    // Held back, and then not wanted any more.
    copy.options.delete_excluded = false;
    copy.options.max_delete = abreast_destination::MaxDelete::Default;
    assert_eq!((copy.run().summary().deleted, copy.paths().len()), (0, 4));
}

#[test]
fn a_resource_that_grows_beyond_the_limit_is_left_alone() {
    let mut source = collection();
    let mut copy = Copy::of(&source);
    copy.options.filter = Filter::default().sized(None, Some(20));
    copy.run();
    source.set("/d/a.txt", "more than twenty bytes by now");
    source.set("/d/b.pdf", "small");
    let ran = copy.run();
    assert_eq!((ran.summary().updated, ran.summary().excluded), (1, 1), "{:?}", ran.told);
    assert_eq!(files(&copy.options.folder)["a.txt"], "/d/a.txt");
    source.set("/d/a.txt", "small again");
    assert_eq!(copy.run().summary().updated, 1);
    assert_eq!(files(&copy.options.folder)["a.txt"], "small again");
}

#[test]
fn a_dry_run_and_a_test_show_what_filters_do_and_change_nothing() {
    let source = collection();
    let mut copy = Copy::of(&source);
    copy.options.filter = Filter::new(["+ *.txt"]).unwrap().only();
    let ran = run_with(&copy.options, test_filter);
    assert_eq!((ran.summary().selected, ran.summary().excluded), (2, 2));
    let line = ran.told.iter().find(|line| line.contains("d.tmp")).unwrap();
    for part in [r#""type":"filter""#, r#""path":"deep/d.tmp""#, r#""taken":false"#, r#""rule":"no rule takes it""#] {
        assert!(line.contains(part), "{line}");
    }
    assert!(ran.told.iter().any(|line| line.contains(r#""taken":true,"rule":"+ *.txt""#)));
    assert!(!copy.options.folder.exists());

    copy.options.dry_run = true;
    let ran = copy.run();
    assert_eq!((ran.summary().created, ran.summary().excluded), (2, 2));
    assert!(ran.told.iter().any(|line| line.contains(r#""taken":false"#)));
    assert!(!copy.options.folder.exists());
}

#[test]
fn a_run_stops_at_its_limit_of_bytes_and_the_next_one_continues() {
    let mut source = Source::new();
    for number in 0..200 {
        source.set(&format!("/d/{number:03}"), &"x".repeat(10_000));
    }
    source.snapshot();
    let mut copy = Copy::of(&source);
    copy.options.max_bytes = Some(700_000);
    copy.options.connections = 2;
    let ran = copy.run();
    let got = copy.paths().len();
    assert_eq!(ran.summary().exit_code, ExitCode::Limit.number(), "{:?}", ran.told.last());
    assert!(ran.tells("limit.bytes"));
    assert!((1..200).contains(&got), "{got}");
    assert!(ran.summary().bytes < 1_900_000, "{}", ran.summary().bytes);
    let whole = Copy::of(&source);
    let bytes = whole.run().summary().bytes;
    copy.options.max_bytes = None;
    assert_eq!((copy.run().summary().exit_code, copy.paths().len()), (0, 200));
    let mut exact = Copy::of(&source);
    exact.options.max_bytes = Some(bytes - 100);
    exact.options.connections = 1;
    let ran = exact.run();
    assert_eq!((ran.summary().exit_code, exact.paths().len()), (0, 200), "reached with the last one: nothing is left");
    // Also when it is reached while nobody knows yet that the last one is done.
    exact.options.folder = exact.options.folder.join("../another");
    let observer = |event: &Event<'_>| match event {
        Event::Item(item) if item.uri.ends_with("/d/198") => std::thread::sleep(Duration::from_millis(300)),
        _ => {}
    };
    let summary = sync(&exact.options, &observer, &AtomicBool::new(false)).unwrap();
    assert_eq!((summary.exit_code, exact.paths().len()), (0, 200));
}

#[test]
fn a_run_stops_at_its_limit_of_time_whatever_it_waits_for() {
    let source = collection();
    source.server.handler(|path, _| {
        if path.contains(".txt") || path == "/slow.xml" {
            std::thread::sleep(Duration::from_secs(20));
        }
        None
    });
    let mut copy = Copy::of(&source);
    copy.options.max_time = Some(Duration::from_millis(400));
    let began = Instant::now();
    let ran = copy.run();
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(ran.summary().exit_code, 8);
    assert!(ran.tells("limit.time"), "{:?}", ran.told);
    copy.options.url = source.server.url("/slow.xml");
    copy.options.folder = copy.options.folder.join("../other");
    assert_eq!(copy.run().result.unwrap_err().code(), "limit.time", "also while a document is awaited");
    assert!(began.elapsed() < Duration::from_secs(15));
}

#[test]
fn robots_txt_is_asked_for_once_and_obeyed_for_resources() {
    let source = collection();
    source.server.body("/robots.txt", "User-agent: *\nDisallow: /d/deep/\nDisallow: /*.xml\nCrawl-delay: 0.05\n");
    let mut copy = Copy::of(&source);
    copy.options.ignore_robots = false;
    let ran = copy.run();
    assert_eq!((ran.summary().exit_code, ran.summary().created, ran.summary().skipped), (3, 2, 2), "{:?}", ran.told);
    assert!(ran.tells("robots.disallow"));
    assert_eq!(copy.paths(), ["a.txt", "b.pdf"]);
    let log = source.server.take_log();
    assert_eq!(log.iter().filter(|path| *path == "/robots.txt").count(), 1, "{log:?}");
    assert!(!log.iter().any(|path| path.starts_with("/d/deep")));
    copy.options.ignore_robots = true;
    assert_eq!((copy.run().summary().exit_code, copy.paths().len()), (0, 4));
}

#[test]
fn a_mirror_whose_robots_txt_does_not_want_us_is_not_asked() {
    let mirror = server::Server::start();
    mirror.body("/d/a", "hello");
    let source = Source::new();
    let entry = format!(
        "<url><loc>{}</loc><rs:md hash=\"md5:{}\" length=\"5\"/><rs:ln rel=\"duplicate\" href=\"{}\" pri=\"1\"/></url>\n",
        source.server.url("/d/a"),
        server::md5_hex(b"hello"),
        mirror.url("/d/a"),
    );
    let attributes = format!("capability=\"resourcelist\" at=\"{}\"", server::BEGIN);
    source.server.body("/resourcelist.xml", server::document("urlset", &attributes, &entry));
    source.server.body("/d/a", "hello");
    mirror.body("/robots.txt", "User-agent: abreast\nDisallow: /\n");
    let mut copy = Copy::of(&source);
    copy.options.ignore_robots = false;
    copy.options.allow_hosts = vec!["127.0.0.1".to_owned()];
    assert_eq!(copy.run().summary().created, 1);
    let log = mirror.take_log();
    assert_eq!(log, ["/robots.txt"]);
    assert!(source.server.take_log().contains(&"/d/a".to_owned()));
}

#[test]
fn following_asks_for_robots_txt_once_not_with_each_change() {
    let mut source = collection();
    let mut copy = Copy::of(&source);
    copy.options.ignore_robots = false;
    copy.options.interval = Duration::from_millis(10);
    let cancel = AtomicBool::new(false);
    let (options, folder) = (&copy.options, copy.options.folder.clone());
    std::thread::scope(|scope| {
        let following = scope.spawn(|| follow(options, &abreast_destination::Silent, &cancel));
        for number in 0..3 {
            source.set(&format!("/d/new{number}"), "new");
            let began = Instant::now();
            while !folder.join(format!("new{number}")).exists() && began.elapsed() < Duration::from_secs(20) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        cancel.store(true, SeqCst);
        following.join().unwrap().unwrap();
    });
    assert!(copy.paths().contains(&"new2".to_owned()));
    let asked = source.server.take_log().iter().filter(|path| *path == "/robots.txt").count();
    assert_eq!(asked, 1);
}

#[test]
fn a_host_that_cannot_say_what_its_robots_txt_asks_is_left_alone_for_now() {
    let source = collection();
    source.server.put("/robots.txt", Answer::status(503));
    let mut copy = Copy::of(&source);
    copy.options.ignore_robots = false;
    let ran = copy.run();
    assert!(ran.tells("robots.unreachable"), "{:?}", ran.told);
    assert_eq!((ran.summary().failed, copy.paths().len()), (4, 0));
    for status in [404, 401] {
        source.server.put("/robots.txt", Answer::status(status));
        copy.options.folder = copy.options.folder.join(format!("../{status}"));
        assert_eq!(copy.run().summary().created, 4, "no robots.txt, no rules");
    }
}

#[test]
fn a_list_that_is_fresh_is_not_polled_before_its_time() {
    let mut source = collection();
    source.set("/d/e.txt", "e");
    let copy = Copy::of(&source);
    copy.run();
    let body = {
        let changes = source.changes.clone();
        server::document("urlset", &format!("capability=\"changelist\" from=\"{}\"", server::BEGIN), &changes)
    };
    let polls = |max_age: &str, time: Duration| {
        let answer = Answer::ok(body.clone()).header("cache-control", max_age);
        source.server.put("/changelist.xml", answer);
        let mut options = copy.options.clone();
        options.interval = Duration::from_millis(20);
        let (cancel, polls) = (AtomicBool::new(false), AtomicUsize::new(0));
        let observer = |event: &Event<'_>| {
            if let Event::Summary(_) = event {
                polls.fetch_add(1, SeqCst);
            }
        };
        let began = Instant::now();
        std::thread::scope(|scope| {
            let following = scope.spawn(|| follow(&options, &observer, &cancel));
            while began.elapsed() < time && polls.load(SeqCst) < 3 {
                std::thread::sleep(Duration::from_millis(5));
            }
            cancel.store(true, SeqCst);
            following.join().unwrap().unwrap();
        });
        polls.load(SeqCst)
    };
    assert_eq!(polls("max-age=600", Duration::from_millis(700)), 1);
    assert!(polls("no-cache", Duration::from_secs(20)) >= 3);
}
