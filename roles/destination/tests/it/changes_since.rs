//! Many changes are requested in one package that the Source makes of what changed since a time.

use crate::copy::{Copy, Ran};
use crate::dump_source::{DumpSource, packages, resources, stopped_within};
use abreast_destination::{Dumps, Mode};
use abreast_testkit::documents::{BEGIN, document};
use abreast_testkit::pages::Answer;
use abreast_testkit::zip::Zip;
use std::sync::Mutex;

/// A Source of which everything changed since it was copied, and that makes packages of changes
/// when it is asked to.
struct Changed {
    source: DumpSource,
    copy: Copy,
    /// What there is now.
    all: Vec<(String, String)>,
}

/// Where the package is: just before the first change.
const SINCE: &str = "/since?time=2026-01-01T00%3A00%3A00.999999Z";

impl Changed {
    fn new(count: usize) -> Self {
        let mut source = DumpSource::new();
        let all = resources(count);
        source.serve(&all);
        source.list(&all);
        source.offer("changelist", "/changelist.xml", "urlset", &format!("from=\"{BEGIN}\""), "");
        let copy = Copy::of(source.url());
        assert_eq!(copy.try_run().exit(), 0);
        let again = |(path, body): &(String, String)| (path.clone(), format!("{body} again"));
        let all: Vec<_> = all.iter().map(again).collect();
        source.serve(&all);
        let link = source.server.url("/since");
        source.links = format!("<rs:ln rel=\"urn:abreast:rel:changes-since\" href=\"{link}\"/>");
        let listed: String = all
            .iter()
            .enumerate()
            .map(|(number, _)| Self::entry(&source, &all, number, ""))
            .collect();
        source.offer(
            "changelist",
            "/changelist.xml",
            "urlset",
            &format!("from=\"{BEGIN}\""),
            &listed,
        );
        source.server.take_log();
        Self { source, copy, all }
    }

    fn entry(source: &DumpSource, all: &[(String, String)], number: usize, more: &str) -> String {
        let (path, body) = &all[number];
        let change = format!(
            "change=\"updated\" datetime=\"2026-01-01T00:{:02}:{:02}Z\" {more}",
            number / 60,
            number % 60 + 1
        );
        source.entry(path, body, &change)
    }

    /// The package, with `member` in the place of the first one's bytes.
    fn package(&self, member: &str) -> Vec<u8> {
        let (mut manifested, mut zip) = (String::new(), Zip::new());
        for (number, (_, body)) in self.all.iter().enumerate() {
            manifested.push_str(&Self::entry(
                &self.source,
                &self.all,
                number,
                &format!("path=\"/{number}\""),
            ));
            zip.add(
                &number.to_string(),
                if number == 0 { member.as_bytes() } else { body.as_bytes() },
            );
        }
        let attributes = format!("capability=\"changedump-manifest\" from=\"{BEGIN}\"");
        zip.add("manifest.xml", document("urlset", &attributes, &manifested).as_bytes());
        zip.finish()
    }

    fn whole_package(&self) -> Vec<u8> {
        self.package(&self.all[0].1)
    }

    /// The same in a package that the Change Dump lists.
    fn offer_change_dump(&mut self) {
        self.source.server.body("/changes.zip", self.whole_package());
        let entry = format!("<url><loc>{}</loc></url>", self.source.server.url("/changes.zip"));
        self.source.offer(
            "changedump",
            "/changedump.xml",
            "urlset",
            &format!("from=\"{BEGIN}\""),
            &entry,
        );
    }

    /// How often the package was asked for, and how many resources by themselves.
    fn asked(&self) -> (usize, usize) {
        let log = self.source.server.take_log();
        let count = |start: &str| log.iter().filter(|path| path.starts_with(start)).count();
        assert_eq!(count("/since"), count(SINCE), "{log:?}");
        (count("/since"), count("/d/"))
    }

    fn assert_copied(&self, ran: &Ran) {
        assert_eq!((ran.exit(), ran.summary().mode), (0, Mode::Incremental), "{:?}", ran.reported);
        for (path, body) in &self.all {
            assert_eq!(
                self.copy.read(path.strip_prefix("/d/").unwrap()).as_ref(),
                Some(body),
                "{path} {:?}",
                ran.reported
            );
        }
        assert_eq!(packages(&self.copy), 0);
    }
}

#[test]
fn many_changes_are_requested_in_one_package_since_the_first() {
    let mut changed = Changed::new(60);
    changed.offer_change_dump();
    let package = changed.whole_package();
    changed
        .source
        .server
        .handler(move |path, _| (path == SINCE).then(|| Answer::ok(package.clone())));
    let ran = changed.copy.try_run();
    changed.assert_copied(&ran);
    assert_eq!(
        changed.source.server.take_log(),
        ["/changelist.xml", "/caps.xml", SINCE],
        "{:?}",
        ran.reported
    );
    assert!(ran.reported.is_empty(), "{:?}", ran.reported);
}

#[test]
fn few_changes_are_fetched_one_by_one_unless_the_user_decides() {
    for (count, dumps, since) in
        [(31, Dumps::Auto, 0), (60, Dumps::Never, 0), (3, Dumps::Always, 1), (60, Dumps::Always, 1)]
    {
        let mut changed = Changed::new(count);
        changed.source.server.body(SINCE, changed.whole_package());
        changed.copy.options.dumps = dumps;
        let ran = changed.copy.try_run();
        changed.assert_copied(&ran);
        assert_eq!(
            changed.asked(),
            (since, if since == 0 { count } else { 0 }),
            "{count} {dumps:?}"
        );
    }
}

#[test]
fn a_missing_package_of_changes_is_reported_once_and_replaced() {
    let large = vec![b'x'; 3 << 20];
    let answers = [
        ("http.status", Answer::status(404)),
        ("http.status", Answer::status(410)),
        ("http.status", Answer::status(413)),
        ("http.status", Answer::status(429).header("retry-after", "3600")),
        ("http.status", Answer::status(503)),
        ("http.status", Answer::status(503).header("retry-after", "60")),
        ("http.making", Answer::status(202)),
        ("dump.size", Answer::ok(large.clone())),
        ("dump.size", Answer::raw([b"HTTP/1.1 200 OK\r\n\r\n", large.as_slice()].concat())),
        ("dump.zip", Answer::ok("not a package")),
        ("dump.manifest", Answer::ok(Zip::new().add("../../escape", b"x").finish())),
    ];
    for (number, (code, answer)) in answers.into_iter().enumerate() {
        let mut changed = Changed::new(40);
        let has_change_dump = number % 2 == 0;
        if has_change_dump {
            changed.offer_change_dump();
        }
        changed.source.server.put(SINCE, answer);
        changed.copy.options.dumps = Dumps::Always;
        let ran = changed.copy.try_run();
        changed.assert_copied(&ran);
        assert_eq!(
            changed.asked(),
            (1, if has_change_dump { 0 } else { 40 }),
            "{number} {:?}",
            ran.reported
        );
        let url = changed.source.server.url(SINCE);
        assert_eq!(ran.codes_and_uris(), [(code.to_owned(), url)], "{number}");
    }
}

#[test]
fn wrong_members_of_a_change_package_are_requested_singly() {
    let mut changed = Changed::new(40);
    changed.source.server.body(SINCE, changed.package("of another time"));
    changed.copy.options.dumps = Dumps::Always;
    let ran = changed.copy.try_run();
    changed.assert_copied(&ran);
    assert_eq!((changed.asked(), ran.has("dump.version")), ((1, 1), true), "{:?}", ran.reported);
}

#[test]
fn a_package_still_being_made_is_waited_for_once() {
    let mut changed = Changed::new(40);
    let package = changed.whole_package();
    let busy = Answer::status(503).header("retry-after", "1");
    let asked = Mutex::new(0);
    changed.source.server.handler(move |path, _| {
        let mut asked = asked.lock().unwrap();
        *asked += usize::from(path == SINCE);
        (path == SINCE)
            .then(|| if *asked == 1 { busy.clone() } else { Answer::ok(package.clone()) })
    });
    changed.copy.options.dumps = Dumps::Always;
    let ran = changed.copy.try_run();
    changed.assert_copied(&ran);
    assert_eq!((changed.asked(), ran.reported.len()), ((2, 0), 0), "{:?}", ran.reported);
}

#[test]
fn a_stopped_run_goes_on_with_a_package_of_what_is_left() {
    let changed = || {
        let mut changed = Changed::new(600);
        let package = changed.whole_package();
        let since =
            move |path: &str| path.starts_with("/since").then(|| Answer::ok(package.clone()));
        changed.source.server.handler(move |path, _| since(path));
        changed.copy.options.dumps = Dumps::Always;
        changed
    };
    let changed = stopped_within((100, 600), changed, |changed| &changed.copy);
    assert_eq!(changed.asked(), (1, 0));
    let ran = changed.copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    let log = changed.source.server.take_log();
    // Since the first that is not here yet.
    assert_eq!(log.iter().filter(|path| path.starts_with("/since")).count(), 1, "{log:?}");
    assert!(log.iter().all(|path| path != SINCE && !path.starts_with("/d/")), "{log:?}");
    assert_eq!(changed.copy.read("4/0599.txt").as_deref(), Some("resource 599 again"));
    assert_eq!(packages(&changed.copy), 0);
}

#[test]
fn a_foreign_or_withdrawn_address_of_changes_is_not_asked() {
    let mut changed = Changed::new(40);
    changed.source.links =
        "<rs:ln rel=\"urn:abreast:rel:changes-since\" href=\"http://127.0.0.2:9/since\"/>".into();
    changed.offer_change_dump();
    changed.copy.options.dumps = Dumps::Always;
    let ran = changed.copy.try_run();
    changed.assert_copied(&ran);
    assert_eq!((changed.asked(), ran.reported.len()), ((0, 0), 0), "{:?}", ran.reported);

    let mut changed = Changed::new(40);
    changed.copy.options.dumps = Dumps::Always;
    let ran = changed.copy.try_run();
    assert_eq!((changed.asked(), ran.reported.len()), ((1, 40), 1), "{:?}", ran.reported);
    changed.source.links.clear();
    let (path, body) = (changed.all[7].0.clone(), "once more");
    changed.source.server.body(&path, body);
    let entry =
        changed.source.entry(&path, body, "change=\"updated\" datetime=\"2026-01-01T00:59:00Z\"");
    let old = Changed::entry(&changed.source, &changed.all, 39, "");
    changed.source.offer(
        "changelist",
        "/changelist.xml",
        "urlset",
        &format!("from=\"{BEGIN}\""),
        &(old + &entry),
    );
    changed.all[7].1 = body.to_owned();
    let ran = changed.copy.try_run();
    changed.assert_copied(&ran);
    assert_eq!((changed.asked(), ran.reported.len()), ((0, 1), 0), "{:?}", ran.reported);
}
