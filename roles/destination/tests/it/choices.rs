//! What users of mirror tools choose: which resources, how much, how politely.

use crate::copy::{Copy, Ran};
use crate::source::Source;
use abreast_destination::{
    Event, ExitCode, Filter, Mode, Observer, Silent, Summary, SyncOptions, follow, sync,
    test_filter,
};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::{BEGIN, document};
use abreast_testkit::eventually;
use abreast_testkit::pages::{Answer, Server};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

fn copy_of(source: &Source) -> Copy {
    let mut copy = Copy::of(source.url());
    copy.options.net.retries = 1;
    copy
}

/// A run with filter rules, which later runs retain.
fn filtered(copy: &mut Copy, rules: &[&str]) -> Ran {
    copy.options.filter = Filter::new(rules.iter().copied()).unwrap();
    copy.try_run()
}

/// The exit code of a full audit.
fn audited(copy: &Copy) -> u8 {
    copy.audit(true).exit_code
}

/// The reports of a command, as lines of JSON, and its summary.
fn lines(
    options: &SyncOptions,
    command: impl Fn(
        &SyncOptions,
        &dyn Observer,
        &AtomicBool,
    ) -> Result<Summary, abreast_destination::Error>,
) -> (Summary, Vec<String>) {
    let lines = Mutex::new(Vec::new());
    let observer =
        |event: &Event<'_>| lines.lock().unwrap().push(serde_json::to_string(event).unwrap());
    let summary = command(options, &observer, &AtomicBool::new(false)).unwrap();
    (summary, lines.into_inner().unwrap())
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
    let mut copy = copy_of(&source);
    let ran = filtered(&mut copy, &["- *.tmp", "- /b.pdf"]);
    assert_eq!(ran.summary().exit_code, 0, "{:?}", ran.reported);
    assert_eq!((ran.summary().created, ran.summary().excluded), (2, 2));
    assert_eq!(copy.paths(), ["a.txt", "deep/c.txt"]);
    let log = source.server.take_log();
    assert!(!log.iter().any(|path| path.contains(".tmp") || path.contains(".pdf")), "{log:?}");
    assert_eq!(audited(&copy), 0, "an audit with the same filters finds the copy equal");

    // Somebody's own file in the place of an excluded one is not ours to touch.
    std::fs::write(copy.options.folder.join("b.pdf"), "mine").unwrap();
    source.set("/d/new.tmp", "x");
    source.set("/d/new.txt", "y");
    source.delete("/d/b.pdf");
    let ran = copy.try_run();
    assert_eq!(
        (ran.summary().mode, ran.summary().created, ran.summary().deleted),
        (Mode::Incremental, 1, 0)
    );
    assert_eq!(copy.texts()["b.pdf"], "mine");
    assert!(
        copy.paths().contains(&"new.txt".to_owned())
            && !copy.paths().contains(&"new.tmp".to_owned())
    );
}

#[test]
fn newly_included_resources_are_fetched_without_a_change() {
    let source = collection();
    let mut copy = copy_of(&source);
    filtered(&mut copy, &["- *.tmp", "- *.pdf"]);
    source.server.take_log();
    let ran = filtered(&mut copy, &["- *.tmp"]);
    assert_eq!(
        (ran.summary().mode, ran.summary().created),
        (Mode::Baseline, 1),
        "{:?}",
        ran.reported
    );
    assert_eq!(copy.paths(), ["a.txt", "b.pdf", "deep/c.txt"]);
    let ran = copy.try_run();
    assert_eq!(ran.summary().mode, Mode::Unchanged, "the same filter asks for no comparison");
    let ran = filtered(&mut copy, &[]);
    assert_eq!((ran.summary().mode, copy.paths().len()), (Mode::Baseline, 4));
}

#[test]
fn newly_excluded_files_are_kept_unless_deletion_is_requested() {
    let mut source = collection();
    let mut copy = copy_of(&source);
    copy.try_run();
    let ran = filtered(&mut copy, &["- deep/"]);
    assert!(ran.has("filter.kept"), "{:?}", ran.reported);
    assert_eq!((ran.summary().deleted, copy.paths().len()), (0, 4));

    // Changes and deletions at the Source do not affect excluded resources.
    source.set("/d/deep/c.txt", "changed");
    source.delete("/d/deep/d.tmp");
    let ran = copy.try_run();
    assert_eq!((ran.summary().updated, ran.summary().deleted), (0, 0), "{:?}", ran.reported);
    source.snapshot();
    copy.options.baseline = true;
    let ran = copy.try_run();
    assert_eq!(
        (ran.summary().updated, ran.summary().deleted, copy.paths().len()),
        (0, 0, 4),
        "{:?}",
        ran.reported
    );
    assert!(!ran.has("filter.kept"), "told once");
    copy.options.baseline = false;

    copy.options.delete_excluded = true;
    let ran = copy.try_run();
    assert_eq!(ran.summary().deleted, 2, "{:?}", ran.reported);
    assert_eq!(copy.paths(), ["a.txt", "b.pdf"]);
    copy.options.delete_excluded = false;
    let ran = filtered(&mut copy, &[]);
    assert_eq!((ran.summary().created, ran.summary().exit_code), (1, 0));
    assert_eq!(copy.texts()["deep/c.txt"], "changed");
}

#[test]
fn excluded_files_that_are_included_again_are_updated() {
    let mut source = collection();
    let mut copy = copy_of(&source);
    copy.try_run();
    filtered(&mut copy, &["- deep/"]);
    source.set("/d/deep/c.txt", "changed");
    source.delete("/d/deep/d.tmp");
    source.snapshot();
    let ran = filtered(&mut copy, &[]);
    assert_eq!((ran.summary().updated, ran.summary().deleted), (1, 1), "{:?}", ran.reported);
    assert_eq!(copy.texts()["deep/c.txt"], "changed");
    assert_eq!(audited(&copy), 0);
}

#[test]
fn deleting_excluded_files_obeys_the_deletion_limit() {
    let source = collection();
    let mut copy = copy_of(&source);
    copy.try_run();
    copy.options.delete_excluded = true;
    copy.options.max_delete = abreast_destination::MaxDelete::Count(1);
    let ran = filtered(&mut copy, &["- *.txt"]);
    assert_eq!((ran.summary().exit_code, ran.summary().deleted), (7, 0), "{:?}", ran.reported);
    // Held back, and then not wanted any more.
    copy.options.delete_excluded = false;
    copy.options.max_delete = abreast_destination::MaxDelete::Default;
    assert_eq!((copy.run().deleted, copy.paths().len()), (0, 4));
}

#[test]
fn a_resource_that_grows_beyond_the_size_limit_is_kept_as_it_is() {
    let mut source = collection();
    let mut copy = copy_of(&source);
    copy.options.filter = Filter::default().sized(None, Some(20));
    copy.try_run();
    source.set("/d/a.txt", "more than twenty bytes by now");
    source.set("/d/b.pdf", "small");
    let ran = copy.try_run();
    assert_eq!((ran.summary().updated, ran.summary().excluded), (1, 1), "{:?}", ran.reported);
    assert_eq!(copy.texts()["a.txt"], "/d/a.txt");
    source.set("/d/a.txt", "small again");
    assert_eq!(copy.run().updated, 1);
    assert_eq!(copy.texts()["a.txt"], "small again");
}

#[test]
fn dry_runs_and_filter_tests_show_decisions_and_change_nothing() {
    let source = collection();
    let mut copy = copy_of(&source);
    copy.options.filter = Filter::new(["+ *.txt"]).unwrap().only();
    let (summary, reported) = lines(&copy.options, test_filter);
    assert_eq!((summary.selected, summary.excluded), (2, 2));
    let line = reported.iter().find(|line| line.contains("d.tmp")).unwrap();
    for part in [
        r#""type":"filter""#,
        r#""path":"deep/d.tmp""#,
        r#""taken":false"#,
        r#""rule":"no rule takes it""#,
    ] {
        assert!(line.contains(part), "{line}");
    }
    assert!(reported.iter().any(|line| line.contains(r#""taken":true,"rule":"+ *.txt""#)));
    assert!(!copy.folder().exists());

    copy.options.dry_run = true;
    let (summary, reported) = lines(&copy.options, sync);
    assert_eq!((summary.created, summary.excluded), (2, 2));
    assert!(reported.iter().any(|line| line.contains(r#""taken":false"#)));
    assert!(!copy.folder().exists());
}

#[test]
fn a_run_stops_at_its_limit_of_bytes_and_the_next_one_continues() {
    let mut source = Source::new();
    for number in 0..200 {
        source.set(&format!("/d/{number:03}"), &"x".repeat(10_000));
    }
    source.snapshot();
    let mut copy = copy_of(&source);
    copy.options.max_bytes = Some(700_000);
    copy.options.limit_requests(2);
    let ran = copy.try_run();
    let got = copy.paths().len();
    assert_eq!(ran.summary().exit_code, ExitCode::Limit.number(), "{:?}", ran.reported.last());
    assert!(ran.has("limit.bytes"));
    assert!((1..200).contains(&got), "{got}");
    assert!(ran.summary().bytes < 1_900_000, "{}", ran.summary().bytes);
    let whole = copy_of(&source);
    let bytes = whole.run().bytes;
    copy.options.max_bytes = None;
    assert_eq!((copy.run().exit_code, copy.paths().len()), (0, 200));
    let mut exact = copy_of(&source);
    exact.options.max_bytes = Some(bytes - 100);
    exact.options.limit_requests(1);
    let ran = exact.try_run();
    assert_eq!(
        (ran.summary().exit_code, exact.paths().len()),
        (0, 200),
        "reached with the last one: nothing is left"
    );
    // Also when it is reached while nobody knows yet that the last one is done.
    exact.options.folder = exact.options.folder.join("../another");
    let observer = |event: &Event<'_>| match event {
        Event::Item(item) if item.uri.ends_with("/d/198") => {
            std::thread::sleep(Duration::from_millis(300));
        }
        _ => {}
    };
    let summary = sync(&exact.options, &observer, &AtomicBool::new(false)).unwrap();
    assert_eq!((summary.exit_code, exact.paths().len()), (0, 200));
}

#[test]
fn no_more_is_received_than_a_run_may_receive() {
    // Many large ones, and one; both come in less time than there is between two checks.
    for (count, length) in [(100, 1 << 20), (1, 64 << 20)] {
        let mut source = Source::new();
        for number in 0..count {
            source.set(&format!("/d/{number:03}"), &"x".repeat(length));
        }
        source.snapshot();
        let mut copy = copy_of(&source);
        copy.options.max_bytes = Some(1 << 20);
        let ran = copy.try_run();
        assert_eq!(ran.summary().exit_code, ExitCode::Limit.number(), "{:?}", ran.reported.last());
        assert!(ran.has("limit.bytes"));
        let received = ran.summary().bytes;
        assert!(received < (1 << 20) + (128 << 10), "{count} of {length}: {received}");
        // If there is no limit, the next run continues.
        copy.options.max_bytes = None;
        assert_eq!((copy.run().exit_code, copy.paths().len()), (0, count));
    }
}

#[test]
fn small_limits_of_bytes_make_progress_in_each_run() {
    const MIB: u64 = 1 << 20;
    // Resources, their length, the limit, connections; the resources that each run completes at least.
    for (count, length, limit, connections, each) in
        [(20, MIB, 3 * MIB, 8, 2), (6, 300_000, 650_000, 6, 2), (4, 4 * MIB, 9 * MIB, 8, 2)]
    {
        let mut source = Source::new();
        for number in 0..count {
            source.set(&format!("/d/{number:03}"), &"x".repeat(length as usize));
        }
        source.snapshot();
        let mut copy = copy_of(&source);
        copy.options.max_bytes = Some(limit);
        copy.options.connections = connections;
        let mut done = 0;
        for run in 0..=count * length / limit + count {
            let ran = copy.try_run();
            let summary = ran.summary();
            let now = copy.paths().len();
            let about = format!("{count} of {length}, run {run}: {done} to {now}, {summary:?}");
            assert!(summary.bytes < limit + (128 << 10), "{about}");
            if summary.exit_code == 0 {
                break;
            }
            assert!(summary.exit_code == 8 && ran.has("limit.bytes"), "{about}");
            assert!(now >= (done + each).min(count as usize - 1), "{about}");
            done = now;
        }
        assert_eq!(copy.paths().len(), count as usize);
    }
    // A resource that no run with this limit can receive does not stop the smaller ones.
    let mut source = Source::new();
    source.set("/a", &"x".repeat(2_000_000));
    source.set("/b", "small");
    source.snapshot();
    let mut copy = copy_of(&source);
    copy.options.max_bytes = Some(1_000_000);
    let ran = copy.try_run();
    assert_eq!((ran.summary().exit_code, copy.paths().len()), (8, 1));
    let about = ran.reported.iter().find(|reported| reported.code == "limit.bytes").unwrap();
    let message = &about.message;
    assert!(message.contains("2000000 bytes") && message.contains("help: allow"), "{message}");
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
    let mut copy = copy_of(&source);
    copy.options.max_time = Some(Duration::from_millis(400));
    let began = Instant::now();
    let ran = copy.try_run();
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(ran.summary().exit_code, 8);
    assert!(ran.has("limit.time"), "{:?}", ran.reported);
    copy.options.url = source.server.url("/slow.xml");
    copy.options.folder = copy.options.folder.join("../other");
    assert_eq!(
        copy.try_run().result.unwrap_err().code(),
        "limit.time",
        "also while a document is awaited"
    );
    assert!(began.elapsed() < Duration::from_secs(15));
}

#[test]
fn robots_txt_is_read_once_and_obeyed_for_resources() {
    let source = collection();
    source.server.body(
        "/robots.txt",
        "User-agent: *\nDisallow: /d/deep/\nDisallow: /*.xml\nCrawl-delay: 0.05\n",
    );
    let mut copy = copy_of(&source);
    copy.options.ignore_robots = false;
    let ran = copy.try_run();
    assert_eq!(
        (ran.summary().exit_code, ran.summary().created, ran.summary().skipped),
        (3, 2, 2),
        "{:?}",
        ran.reported
    );
    assert!(ran.has("robots.disallow"));
    assert_eq!(copy.paths(), ["a.txt", "b.pdf"]);
    let log = source.server.take_log();
    assert_eq!(log.iter().filter(|path| *path == "/robots.txt").count(), 1, "{log:?}");
    assert!(!log.iter().any(|path| path.starts_with("/d/deep")));
    copy.options.ignore_robots = true;
    assert_eq!((copy.run().exit_code, copy.paths().len()), (0, 4));
}

#[test]
fn a_mirror_whose_robots_txt_disallows_us_is_not_asked() {
    let mirror = Server::start();
    mirror.body("/d/a", "hello");
    let source = Source::new();
    let entry = format!(
        "<url><loc>{}</loc><rs:md hash=\"md5:{}\" length=\"5\"/><rs:ln rel=\"duplicate\" href=\"{}\" pri=\"1\"/></url>\n",
        source.server.url("/d/a"),
        md5_hex(b"hello"),
        mirror.url("/d/a"),
    );
    let attributes = format!("capability=\"resourcelist\" at=\"{BEGIN}\"");
    source.server.body("/resourcelist.xml", document("urlset", &attributes, &entry));
    source.server.body("/d/a", "hello");
    mirror.body("/robots.txt", "User-agent: abreast\nDisallow: /\n");
    let mut copy = copy_of(&source);
    copy.options.ignore_robots = false;
    copy.options.allow_hosts = vec!["127.0.0.1".to_owned()];
    assert_eq!(copy.run().created, 1);
    let log = mirror.take_log();
    assert_eq!(log, ["/robots.txt"]);
    assert!(source.server.take_log().contains(&"/d/a".to_owned()));
}

#[test]
fn following_reads_robots_txt_once_not_with_each_change() {
    let mut source = collection();
    let mut copy = copy_of(&source);
    copy.options.ignore_robots = false;
    copy.options.interval = Duration::from_millis(10);
    let cancel = AtomicBool::new(false);
    let (options, folder) = (&copy.options, copy.options.folder.clone());
    std::thread::scope(|scope| {
        let following = scope.spawn(|| follow(options, &Silent, &cancel));
        for number in 0..3 {
            source.set(&format!("/d/new{number}"), "new");
            eventually("the copy follows", || folder.join(format!("new{number}")).exists());
        }
        cancel.store(true, SeqCst);
        following.join().unwrap().unwrap();
    });
    assert!(copy.paths().contains(&"new2".to_owned()));
    let asked = source.server.take_log().iter().filter(|path| *path == "/robots.txt").count();
    assert_eq!(asked, 1);
}

#[test]
fn a_host_whose_robots_txt_fails_is_not_visited_in_this_run() {
    let source = collection();
    source.server.put("/robots.txt", Answer::status(503));
    let mut copy = copy_of(&source);
    copy.options.ignore_robots = false;
    let ran = copy.try_run();
    assert!(ran.has("robots.unreachable"), "{:?}", ran.reported);
    assert_eq!((ran.summary().failed, copy.paths().len()), (4, 0));
    for status in [404, 401] {
        source.server.put("/robots.txt", Answer::status(status));
        copy.options.folder = copy.options.folder.join(format!("../{status}"));
        assert_eq!(copy.run().created, 4, "no robots.txt, no rules");
    }
}

#[test]
fn a_list_that_is_fresh_is_not_polled_before_its_time() {
    let mut source = collection();
    source.set("/d/e.txt", "e");
    let copy = copy_of(&source);
    copy.try_run();
    let body = {
        let changes = source.changes.clone();
        document("urlset", &format!("capability=\"changelist\" from=\"{BEGIN}\""), &changes)
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

#[test]
fn a_list_that_was_closed_does_not_delay_the_next_poll() {
    let mut source = collection();
    source.set("/d/e.txt", "e");
    let copy = copy_of(&source);
    copy.try_run();
    copy.try_run();
    let server = source.server.clone();
    let list = |md: &str, entries: &str| {
        document("urlset", &format!("capability=\"changelist\" {md}"), entries)
    };
    let (closed, next) = ("2026-01-01T00:30:00Z", "2026-01-01T00:40:00Z");
    let change = |path: &str, at: &str| {
        server.body(path, path);
        let change = format!(" change=\"created\" datetime=\"{at}\"");
        source.entry(path, path.as_bytes(), &change)
    };
    // According to its headers, the document never changes.
    let link = format!("<rs:ln rel=\"index\" href=\"{}\"/>", server.url("/changes.xml"));
    let one = list(&format!("from=\"{BEGIN}\" until=\"{closed}\""), &source.changes)
        .replace("<rs:md cap", &format!("{link}<rs:md cap"));
    let one = Answer::ok(one).header("cache-control", "public, max-age=31536000, immutable");
    server.put("/changelist.xml", one);
    let index = format!(
        "<sitemap><loc>{0}/changelist.xml</loc><rs:md from=\"{BEGIN}\" until=\"{closed}\"/></sitemap>\
         <sitemap><loc>{0}/changes-2.xml</loc><rs:md from=\"{closed}\"/></sitemap>",
        server.base
    );
    let index =
        document("sitemapindex", &format!("capability=\"changelist\" from=\"{BEGIN}\""), &index);
    server.body("/changes.xml", index);
    let mut entries = change("/d/next.txt", next);
    server.body("/changes-2.xml", list(&format!("from=\"{closed}\""), &entries));
    let mut options = copy.options.clone();
    options.interval = Duration::from_millis(20);
    let cancel = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let following = scope.spawn(|| follow(&options, &Silent, &cancel));
        eventually("the next list is read", || copy.paths().contains(&"next.txt".to_owned()));
        entries += &change("/d/later.txt", "2026-01-01T00:50:00Z");
        server.body("/changes-2.xml", list(&format!("from=\"{closed}\""), &entries));
        eventually("it is polled again", || copy.paths().contains(&"later.txt".to_owned()));
        cancel.store(true, SeqCst);
        following.join().unwrap().unwrap();
    });
}
