//! Documents with faults are read where nothing can go wrong, which is reported, and are refused
//! otherwise.

use crate::copy::{Copy, Ran};
use abreast_destination::{MaxDelete, Tolerance};
use abreast_testkit::Random;
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::{BEGIN, document};
use abreast_testkit::pages::{Answer, Server};
use std::collections::BTreeMap;
use std::io::Write as _;

fn copy_of(url: impl Into<String>) -> Copy {
    let mut copy = Copy::of(url);
    copy.options.net.retries = 1;
    copy
}

fn tolerant(url: impl Into<String>, tolerance: Tolerance) -> Copy {
    let mut copy = copy_of(url);
    copy.options.tolerance = tolerance;
    copy
}

const RESOURCE_LIST: &str = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";

/// A server with two resources, and with their list at `/list.xml`, which the test makes.
fn served(list: impl FnOnce(&Server) -> Vec<u8>) -> Server {
    let server = Server::start();
    server.body("/d/a", "hello");
    server.body("/d/b", "hello");
    server.body("/list.xml", list(&server));
    server
}

fn entries(server: &Server) -> String {
    ["/d/a", "/d/b"]
        .iter()
        .map(|path| format!("<url><loc>{}</loc></url>", server.url(path)))
        .collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn unambiguous_faults_are_reported_and_refused_when_strict() {
    type List = fn(&Server) -> Vec<u8>;
    let cases: [(&str, List); 7] = [
        ("rs.no-md", |server| {
            format!(
                "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{}</urlset>",
                entries(server)
            )
            .into()
        }),
        ("rs.relative", |_| {
            document("urlset", RESOURCE_LIST, "<url><loc>/d/a</loc></url><url><loc>d/b</loc></url>")
                .into()
        }),
        ("rs.zone", |server| {
            document(
                "urlset",
                "capability=\"resourcelist\" at=\"2026-01-01T00:00:00\"",
                &entries(server),
            )
            .into()
        }),
        ("rs.hash-base64", |server| {
            let entry = |path| {
                format!(
                    "<url><loc>{}</loc><rs:md hash=\"md5:XUFAKrxLKna5cZ2REBfFkg==\"/></url>",
                    server.url(path)
                )
            };
            document("urlset", RESOURCE_LIST, &(entry("/d/a") + &entry("/d/b"))).into()
        }),
        ("rs.capability-case", |server| {
            document(
                "urlset",
                "capability=\"ResourceList\" at=\"2026-01-01T00:00:00Z\"",
                &entries(server),
            )
            .into()
        }),
        ("rs.prefix", |server| {
            document(
                "urlset",
                "rs:capability=\"resourcelist\" rs:at=\"2026-01-01T00:00:00Z\"",
                &entries(server),
            )
            .into()
        }),
        ("rs.gzip", |server| gzip(document("urlset", RESOURCE_LIST, &entries(server)).as_bytes())),
    ];
    for (code, list) in cases {
        let server = served(list);
        let copy = copy_of(server.url("/list.xml"));
        let ran = copy.try_run();
        assert_eq!(
            (ran.exit(), copy.paths()),
            (0, vec!["a".to_owned(), "b".to_owned()]),
            "{code} {:?}",
            ran.codes
        );
        assert!(ran.has(code), "{code} {:?}", ran.codes);
        assert_eq!(ran.count(code), 1, "reported once");
        let ran = tolerant(server.url("/list.xml"), Tolerance::Strict).try_run();
        assert_eq!((ran.exit(), ran.code()), (4, code));
    }
}

#[test]
fn an_index_with_the_wrong_root_is_followed_not_copied() {
    type Index = fn(&Server) -> String;
    let cases: [Index; 3] = [
        |server| {
            document(
                "urlset",
                RESOURCE_LIST,
                &format!("<sitemap><loc>{}</loc></sitemap>", server.url("/one.xml")),
            )
        },
        |server| {
            document(
                "sitemapindex",
                RESOURCE_LIST,
                &format!("<url><loc>{}</loc></url>", server.url("/one.xml")),
            )
        },
        |server| {
            let entry = format!(
                "<url><loc>{}</loc><rs:md capability=\"resourcelist\" at=\"{BEGIN}\"/></url>",
                server.url("/one.xml")
            );
            document("urlset", RESOURCE_LIST, &entry)
        },
    ];
    for index in cases {
        let server = served(|server| index(server).into());
        server.body("/one.xml", document("urlset", RESOURCE_LIST, &entries(&server)));
        let copy = copy_of(server.url("/list.xml"));
        let ran = copy.try_run();
        assert_eq!(
            (ran.exit(), copy.paths()),
            (0, vec!["a".to_owned(), "b".to_owned()]),
            "{:?}",
            ran.codes
        );
        assert!(ran.has("rs.root"), "{:?}", ran.codes);
    }
    // Some entries are lists and some are resources: it is unclear which would be deleted.
    let server = served(|server| {
        let list = format!(
            "<url><loc>{}</loc><rs:md capability=\"resourcelist\"/></url>",
            server.url("/one.xml")
        );
        document("urlset", RESOURCE_LIST, &(entries(server) + &list)).into()
    });
    assert_eq!(copy_of(server.url("/list.xml")).try_run().code(), "rs.root");
}

#[test]
fn a_plain_change_list_is_not_taken_for_a_resource_list() {
    let server = served(|server| {
        let entry =
            format!("<url><loc>{}</loc><rs:md change=\"updated\"/></url>", server.url("/d/a"));
        format!(
            "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
             xmlns:rs=\"http://www.openarchives.org/rs/terms/\">{entry}</urlset>"
        )
        .into()
    });
    for tolerance in [Tolerance::Usual, Tolerance::Lenient] {
        let ran = tolerant(server.url("/list.xml"), tolerance).try_run();
        assert_eq!((ran.exit(), ran.code()), (4, "rs.capability"));
    }
}

#[test]
fn skipped_entries_hold_deletions_back() {
    let server = served(|server| document("urlset", RESOURCE_LIST, &entries(server)).into());
    let copy = copy_of(server.url("/list.xml"));
    assert_eq!(copy.run().created, 2);
    let broken = format!(
        "<url><loc>{}</loc><lastmod>yesterday</lastmod></url><url><loc>{}</loc></url>",
        server.url("/d/a"),
        server.url("/d/c")
    );
    server.body("/d/c", "hello");
    server.body("/list.xml", document("urlset", RESOURCE_LIST, &broken));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.code()), (4, "rs.datetime"));
    let mut copy = copy;
    copy.options.tolerance = Tolerance::Lenient;
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().skipped, ran.summary().deleted),
        (3, 1, 0),
        "{:?}",
        ran.codes
    );
    assert!(ran.has("rs.entry"));
    assert_eq!(copy.paths(), ["a", "b", "c"]);
}

#[test]
fn a_skipped_change_is_reported_until_it_can_be_read() {
    let server = served(|server| document("urlset", RESOURCE_LIST, &entries(server)).into());
    let copy = tolerant(caps(&server, ""), Tolerance::Lenient);
    with_changes(&server, &format!("from=\"{BEGIN}\""), "");
    assert_eq!(copy.try_run().exit(), 0);
    let a = change(&server, "/d/a", "new a", "2026-01-01T00:00:02Z");
    let b = change(&server, "/d/b", "new b", "2026-01-01T00:00:03Z");
    let broken = a.replace("length=\"5\"", "length=\"five\"");
    with_changes(&server, &format!("from=\"{BEGIN}\""), &(broken + &b));
    for _ in 0..2 {
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.summary().skipped), (3, 1), "{:?}", ran.codes);
        let kept = |name| std::fs::read_to_string(copy.options.folder.join(name)).unwrap();
        assert_eq!((kept("a").as_str(), kept("b").as_str()), ("hello", "new b"));
    }
    // The Source corrects its list: the change is older than others that were applied.
    with_changes(&server, &format!("from=\"{BEGIN}\""), &(a + &b));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().updated), (0, 1), "{:?}", ran.codes);
    assert_eq!(std::fs::read_to_string(copy.options.folder.join("a")).unwrap(), "new a");
}

#[test]
fn an_unknown_capability_affects_only_its_own_entry() {
    let server = served(|server| document("urlset", RESOURCE_LIST, &entries(server)).into());
    let caps = format!(
        "<url><loc>{}</loc><rs:md capability=\"holograms\"/></url><url><loc>{}</loc><rs:md capability=\"resourcelist\"/></url>",
        server.url("/holograms.xml"),
        server.url("/list.xml")
    );
    server.body("/caps.xml", document("urlset", "capability=\"capabilitylist\"", &caps));
    let copy = copy_of(server.url("/caps.xml"));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), copy.paths().len()), (0, 2), "{:?}", ran.codes);
    assert!(ran.has("rs.capability-unknown"));
}

/// A Source whose Change List has the given attributes and entries.
fn with_changes(server: &Server, attributes: &str, changes: &str) {
    server.body(
        "/changes.xml",
        document("urlset", &format!("capability=\"changelist\" {attributes}"), changes),
    );
}

fn caps(server: &Server, more: &str) -> String {
    let caps = format!(
        "<url><loc>{}</loc><rs:md capability=\"resourcelist\"/></url><url><loc>{}</loc><rs:md capability=\"changelist\"/></url>{more}",
        server.url("/list.xml"),
        server.url("/changes.xml"),
    );
    server.body("/caps.xml", document("urlset", "capability=\"capabilitylist\"", &caps));
    server.url("/caps.xml")
}

fn change(server: &Server, path: &str, body: &str, datetime: &str) -> String {
    server.body(path, body);
    format!(
        "<url><loc>{}</loc><rs:md change=\"updated\" datetime=\"{datetime}\" hash=\"md5:{}\" length=\"{}\"/></url>",
        server.url(path),
        md5_hex(body.as_bytes()),
        body.len()
    )
}

#[test]
fn times_without_zone_lose_no_change_when_the_clock_is_set_back() {
    let server = served(|server| document("urlset", RESOURCE_LIST, &entries(server)).into());
    let copy = copy_of(caps(&server, ""));
    let first = change(&server, "/d/a", "first", "2026-10-25T02:30:00");
    with_changes(&server, "from=\"2026-01-01T00:00:00\"", &first);
    assert_eq!(copy.try_run().exit(), 0);
    // Summer time ends: half an hour later it is earlier.
    let second = change(&server, "/d/b", "second", "2026-10-25T02:00:00");
    with_changes(&server, "from=\"2026-01-01T00:00:00\"", &(first + &second));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().updated), (0, 1), "{:?}", ran.codes);
    assert!(ran.has("rs.zone"));
    assert_eq!(std::fs::read_to_string(copy.options.folder.join("b")).unwrap(), "second");
}

#[test]
fn a_hundred_changes_within_one_second_are_all_applied() {
    let server = served(|server| document("urlset", RESOURCE_LIST, &entries(server)).into());
    let copy = copy_of(caps(&server, ""));
    with_changes(&server, &format!("from=\"{BEGIN}\""), "");
    assert_eq!(copy.try_run().exit(), 0);
    let mut changes = String::new();
    for number in 0..100 {
        // Digests are missing, so that only the time could distinguish the changes.
        let path = format!("/d/{}", number % 7);
        server.body(&path, format!("version {number}"));
        changes.push_str(&format!(
            "<url><loc>{}</loc><rs:md change=\"updated\" datetime=\"2026-01-01T00:00:05Z\"/></url>",
            server.url(&path)
        ));
        with_changes(&server, &format!("from=\"{BEGIN}\""), &changes);
        if number % 10 == 9 {
            assert_eq!(copy.try_run().exit(), 0);
            let kept = std::fs::read_to_string(copy.options.folder.join((number % 7).to_string()))
                .unwrap();
            assert_eq!(kept, format!("version {number}"));
        }
    }
}

#[test]
fn after_a_long_absence_changes_are_read_from_the_archive() {
    let server = served(|server| document("urlset", RESOURCE_LIST, &entries(server)).into());
    let archive = format!(
        "<url><loc>{}</loc><rs:md capability=\"changelist-archive\"/></url>",
        server.url("/archive.xml")
    );
    let copy = copy_of(caps(&server, &archive));
    with_changes(&server, &format!("from=\"{BEGIN}\""), "");
    assert_eq!(copy.try_run().exit(), 0);
    // A month later: the current list starts after the last known change.
    let list = |path: &str, from: &str, until: &str, entries: &str| {
        let attributes = format!("capability=\"changelist\" from=\"{from}\" until=\"{until}\"");
        server.body(path, document("urlset", &attributes, entries));
        format!(
            "<url><loc>{}</loc><rs:md from=\"{from}\" until=\"{until}\"/></url>",
            server.url(path)
        )
    };
    let (begin, second, third) = (BEGIN, "2026-01-11T00:00:00Z", "2026-01-21T00:00:00Z");
    let listed = [
        list("/old-0.xml", "2025-12-01T00:00:00Z", "2025-12-31T00:00:00Z", ""),
        list(
            "/old-1.xml",
            begin,
            second,
            &change(&server, "/d/a", "changed in the first", "2026-01-05T00:00:00Z"),
        ),
        list(
            "/old-2.xml",
            second,
            third,
            &change(&server, "/d/c", "changed in the second", "2026-01-15T00:00:00Z"),
        ),
    ];
    server.body(
        "/archive.xml",
        document("urlset", "capability=\"changelist-archive\"", &listed.concat()),
    );
    let now = change(&server, "/d/b", "changed now", "2026-01-25T00:00:00Z");
    with_changes(&server, &format!("from=\"{third}\""), &now);
    server.take_log();
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().created, ran.summary().updated),
        (0, 1, 2),
        "{:?}",
        ran.codes
    );
    assert!(ran.has("changes.archive") && !ran.has("gap"), "{:?}", ran.codes);
    let asked = server.take_log();
    assert!(
        !asked.contains(&"/list.xml".to_owned()) && !asked.contains(&"/old-0.xml".to_owned()),
        "{asked:?}"
    );
    assert_eq!(
        std::fs::read_to_string(copy.options.folder.join("c")).unwrap(),
        "changed in the second"
    );
    // From here on the open list alone is asked.
    server.take_log();
    assert_eq!(copy.run().requests, 1);
    assert_eq!(server.take_log(), ["/changes.xml"]);
}

#[test]
fn lists_that_name_their_predecessor_are_read_backwards() {
    let server = served(|server| document("urlset", RESOURCE_LIST, &entries(server)).into());
    let copy = copy_of(caps(&server, ""));
    with_changes(&server, &format!("from=\"{BEGIN}\""), "");
    assert_eq!(copy.try_run().exit(), 0);
    let chained = |path: &str, from: &str, before: &str, entries: &str| {
        let text =
            document("urlset", &format!("capability=\"changelist\" from=\"{from}\""), entries);
        let link = format!("<rs:ln rel=\"prev\" href=\"{before}\"/>\n<rs:md");
        server.body(path, text.replacen("<rs:md", &link, 1));
    };
    let old = change(&server, "/d/a", "older", "2026-01-05T00:00:00Z");
    // The list starts before the second of the Resource List.
    chained("/old.xml", "2025-12-31T23:59:59Z", "/older.xml", &old);
    let middle = change(&server, "/d/b", "middle", "2026-01-15T00:00:00Z");
    chained("/middle.xml", "2026-01-11T00:00:00Z", "old.xml", &middle);
    let new = change(&server, "/d/c", "newest", "2026-01-25T00:00:00Z");
    chained("/changes.xml", "2026-01-21T00:00:00Z", "/middle.xml", &new);
    server.take_log();
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().created, ran.summary().updated),
        (0, 1, 2),
        "{:?}",
        ran.codes
    );
    assert!(!ran.has("gap"));
    let asked = server.take_log();
    assert!(
        !asked.contains(&"/older.xml".to_owned()) && !asked.contains(&"/list.xml".to_owned()),
        "{asked:?}"
    );
}

#[test]
fn the_later_list_of_one_second_counts_when_read_backwards() {
    let server = served(|server| document("urlset", RESOURCE_LIST, &entries(server)).into());
    let copy = copy_of(caps(&server, ""));
    with_changes(&server, &format!("from=\"{BEGIN}\""), "");
    assert_eq!(copy.try_run().exit(), 0);
    // Deleted and recreated within the second in which one list ended and the next started.
    let second = "2026-01-21T00:00:00Z";
    let gone = format!(
        "<url><loc>{}</loc><rs:md change=\"deleted\" datetime=\"{second}\"/></url>",
        server.url("/d/b")
    );
    let old = document(
        "urlset",
        &format!("capability=\"changelist\" from=\"{BEGIN}\" until=\"{second}\""),
        &gone,
    );
    server.body("/old.xml", old);
    let new = document(
        "urlset",
        &format!("capability=\"changelist\" from=\"{second}\""),
        &change(&server, "/d/b", "back", second),
    );
    server.body(
        "/changes.xml",
        new.replacen("<rs:md", "<rs:ln rel=\"prev\" href=\"/old.xml\"/>\n<rs:md", 1),
    );
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().updated, ran.summary().deleted),
        (0, 1, 0),
        "{:?}",
        ran.codes
    );
    assert_eq!(std::fs::read_to_string(copy.options.folder.join("b")).unwrap(), "back");
}

#[test]
fn without_archive_a_long_absence_ends_in_a_new_baseline() {
    let server = served(|server| document("urlset", RESOURCE_LIST, &entries(server)).into());
    let copy = copy_of(caps(&server, ""));
    with_changes(&server, &format!("from=\"{BEGIN}\""), "");
    assert_eq!(copy.try_run().exit(), 0);
    let now = change(&server, "/d/b", "changed now", "2026-01-25T00:00:00Z");
    with_changes(&server, "from=\"2026-01-21T00:00:00Z\"", &now);
    let list = format!("<url><loc>{}</loc></url>", server.url("/d/b"));
    server.body(
        "/list.xml",
        document("urlset", "capability=\"resourcelist\" at=\"2026-01-22T00:00:00Z\"", &list),
    );
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().updated, ran.summary().deleted),
        (0, 1, 1),
        "{:?}",
        ran.codes
    );
    assert!(ran.has("gap"));
}

#[test]
fn a_chain_that_leads_nowhere_ends() {
    let server = served(|server| document("urlset", RESOURCE_LIST, &entries(server)).into());
    let copy = copy_of(caps(&server, ""));
    with_changes(&server, &format!("from=\"{BEGIN}\""), "");
    assert_eq!(copy.try_run().exit(), 0);
    // Every list links to a previous one that claims to start at the same time.
    let list = document("urlset", "capability=\"changelist\" from=\"2026-01-21T00:00:00Z\"", "");
    server.handler(move |path, number| {
        (path.starts_with("/changes.xml")).then(|| {
            let link = format!("<rs:ln rel=\"prev\" href=\"/changes.xml?{number}\"/>\n<rs:md");
            Answer::ok(list.replacen("<rs:md", &link, 1))
        })
    });
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 3, "{:?}", ran.codes);
    assert!(ran.has("gap"));
    assert!(server.take_log().len() < 20);
}

#[test]
fn the_later_of_a_deletion_and_a_creation_in_one_list_counts() {
    let server = served(|server| document("urlset", RESOURCE_LIST, &entries(server)).into());
    let copy = copy_of(caps(&server, ""));
    let deleted = |path: &str, time: &str| {
        format!(
            "<url><loc>{}</loc><rs:md change=\"deleted\" datetime=\"{time}\"/></url>",
            server.url(path)
        )
    };
    with_changes(&server, &format!("from=\"{BEGIN}\""), "");
    assert_eq!(copy.try_run().exit(), 0);
    let changes = deleted("/d/a", "2026-01-01T00:00:01Z")
        + &change(&server, "/d/a", "again", "2026-01-01T00:00:02Z")
        + &change(&server, "/d/c", "short-lived", "2026-01-01T00:00:01Z")
        + &deleted("/d/c", "2026-01-01T00:00:02Z")
        // The order of the list decides within the same second.
        + &change(&server, "/d/b", "not for long", "2026-01-01T00:00:03Z")
        + &deleted("/d/b", "2026-01-01T00:00:03Z");
    with_changes(&server, &format!("from=\"{BEGIN}\""), &changes);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), copy.paths()), (0, vec!["a".to_owned()]), "{:?}", ran.codes);
    assert_eq!(std::fs::read_to_string(copy.options.folder.join("a")).unwrap(), "again");
}

#[test]
fn digests_of_version_0_1_are_verified() {
    let list = |digest: &str, server: &Server| {
        format!(
            "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
             xmlns:rs=\"http://www.openarchives.org/rs/terms/\"><url><loc>{}</loc>\
             <rs:fixity type=\"md5\">{digest}</rs:fixity><rs:size>5</rs:size></url></urlset>",
            server.url("/d/a")
        )
    };
    let server = served(|server| list("XUFAKrxLKna5cZ2REBfFkg==", server).into());
    let mut copy = copy_of(server.url("/list.xml"));
    copy.options.require_fixity = true;
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().unverified, copy.paths().len()),
        (0, 0, 1),
        "{:?}",
        ran.codes
    );
    server.body("/list.xml", list("AAAAAAAAAAAAAAAAAAAAAA==", &server));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.has("fixity.mismatch")), (3, true));
}

/// Random changes without `datetime`, and the remaining resources after each.
struct Undated {
    random: Random,
    bodies: BTreeMap<String, String>,
}

impl Undated {
    /// Entries for so many changes; their `lastmod` says nothing about their order, and may be
    /// missing.
    fn changes(&mut self, server: &Server, count: u64) -> String {
        let mut entries = String::new();
        for _ in 0..count {
            let path = format!("/d/{}", self.random.below(4));
            let lastmod = match self.random.below(3) {
                0 => String::new(),
                _ => format!("<lastmod>202{}-03-01T00:00:00Z</lastmod>", self.random.below(6)),
            };
            let md = if self.random.below(3) == 0 {
                self.bodies.remove(&path);
                server.remove(&path);
                "change=\"deleted\"".to_owned()
            } else {
                let body = format!("version {}", self.random.below(1_000_000));
                let change = if self.bodies.contains_key(&path) { "updated" } else { "created" };
                let hash = format!(" hash=\"md5:{}\"", md5_hex(body.as_bytes()));
                server.body(&path, body.as_str());
                let with_hash = self.random.below(2) == 0;
                self.bodies.insert(path.clone(), body);
                format!("change=\"{change}\"{}", if with_hash { &hash } else { "" })
            };
            entries.push_str(&format!(
                "<url><loc>{}</loc>{lastmod}<rs:md {md}/></url>\n",
                server.url(&path)
            ));
        }
        entries
    }

    fn assert_copied(&self, copy: &Copy, what: &str) {
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{what} {:?}", ran.codes);
        let kept: Vec<_> = copy
            .paths()
            .into_iter()
            .map(|name| {
                let body = std::fs::read_to_string(copy.options.folder.join(&name)).unwrap();
                (format!("/d/{name}"), body)
            })
            .collect();
        assert_eq!(kept, self.bodies.clone().into_iter().collect::<Vec<_>>(), "{what}");
    }

    fn assert_audited(copy: &Copy, what: &str) {
        let report = copy.audit(true);
        assert_eq!(report.exit_code, 0, "{what} {report:?}");
    }
}

/// A Source of two resources whose copy is made, before any change.
fn undated(seed: u64) -> (Server, Copy, Undated) {
    let server = Server::start();
    let mut changes = Undated { random: Random::new(seed), bodies: BTreeMap::new() };
    for path in ["/d/0", "/d/1"] {
        server.body(path, "hello");
        changes.bodies.insert(path.to_owned(), "hello".to_owned());
    }
    let listed: String = changes
        .bodies
        .keys()
        .map(|path| format!("<url><loc>{}</loc></url>", server.url(path)))
        .collect();
    server.body("/list.xml", document("urlset", RESOURCE_LIST, &listed));
    with_changes(&server, &format!("from=\"{BEGIN}\""), "");
    let mut copy = copy_of(caps(&server, ""));
    copy.options.max_delete = MaxDelete::Percent(100.0);
    copy.options.base = Some(server.url("/d/"));
    changes.assert_copied(&copy, "baseline");
    (server, copy, changes)
}

#[test]
fn changes_without_datetime_apply_in_document_order() {
    for seed in 0..25 {
        let (server, copy, mut changes) = undated(seed);
        let mut entries = String::new();
        for round in 0..3 {
            entries += &changes.changes(&server, 8);
            with_changes(&server, &format!("from=\"{BEGIN}\""), &entries);
            let what = format!("seed {seed}, round {round}\n{entries}");
            changes.assert_copied(&copy, &what);
            Undated::assert_audited(&copy, &what);
        }
    }
}

#[test]
fn lists_without_datetime_apply_in_the_order_of_their_spans() {
    for seed in 100..125 {
        let (server, copy, mut changes) = undated(seed);
        // In every other case, the index lists the newest list first; the copy may have polled the
        // previous open list.
        let backwards = seed % 2 == 1;
        if seed % 4 > 1 {
            server.body(
                "/changes.xml",
                document("urlset", &format!("capability=\"changelist\" from=\"{BEGIN}\""), ""),
            );
            changes.assert_copied(&copy, "polled");
        }
        let mut listed = Vec::new();
        for day in 1..4 {
            let span = format!(
                "from=\"2026-01-0{day}T00:00:00Z\" until=\"2026-01-0{}T00:00:00Z\"",
                day + 1
            );
            let path = format!("/changes{day}.xml");
            let entries = changes.changes(&server, 4);
            server.body(
                &path,
                document("urlset", &format!("capability=\"changelist\" {span}"), &entries),
            );
            listed.push(format!(
                "<sitemap><loc>{}</loc><rs:md {span}/></sitemap>",
                server.url(&path)
            ));
        }
        if backwards {
            listed.reverse();
        }
        let index = document("sitemapindex", "capability=\"changelist\"", &listed.concat());
        server.body("/changes.xml", index);
        changes.assert_copied(&copy, &format!("seed {seed}"));
        Undated::assert_audited(&copy, &format!("seed {seed}"));
    }
}

#[test]
fn lists_without_datetime_read_backwards_apply_oldest_first() {
    for seed in 200..225 {
        let (server, copy, mut changes) = undated(seed);
        for day in 0..4 {
            let from =
                if day == 0 { BEGIN.to_owned() } else { format!("2026-01-1{day}T00:00:00Z") };
            let entries = changes.changes(&server, 4);
            let text =
                document("urlset", &format!("capability=\"changelist\" from=\"{from}\""), &entries);
            let (path, before) = match day {
                0 => ("/changes0.xml".to_owned(), String::new()),
                3 => (
                    "/changes.xml".to_owned(),
                    "<rs:ln rel=\"prev\" href=\"/changes2.xml\"/>".to_owned(),
                ),
                _ => (
                    format!("/changes{day}.xml"),
                    format!("<rs:ln rel=\"prev\" href=\"/changes{}.xml\"/>", day - 1),
                ),
            };
            server.body(&path, text.replacen("<rs:md", &format!("{before}\n<rs:md"), 1));
        }
        changes.assert_copied(&copy, &format!("seed {seed}"));
    }
}

#[test]
fn a_closed_list_before_the_snapshot_deletes_nothing() {
    let server = served(|server| document("urlset", RESOURCE_LIST, &entries(server)).into());
    let gone = format!("<url><loc>{}</loc><rs:md change=\"deleted\"/></url>", server.url("/d/b"));
    with_changes(&server, "from=\"2025-12-01T00:00:00Z\" until=\"2025-12-31T00:00:00Z\"", &gone);
    let mut copy = copy_of(caps(&server, ""));
    copy.options.max_delete = MaxDelete::Percent(100.0);
    for _ in 0..2 {
        let ran = copy.try_run();
        assert_eq!((ran.exit(), copy.paths().len()), (0, 2), "{:?}", ran.codes);
    }
}

/// A Source of indexes: of Resource Lists, and of Change Lists, each with a single document.
fn source_of_indexes(resources: &str, changes: &str) -> Server {
    let server = Server::start();
    let index = |capability: &str, url: &str| {
        let attributes = format!("capability='{capability}' at='{BEGIN}'").replace(
            "at=",
            match capability {
                "changelist" => "from=",
                _ => "at=",
            },
        );
        document("sitemapindex", &attributes, &format!("<sitemap><loc>{url}</loc></sitemap>"))
    };
    server.body("/list.xml", index("resourcelist", resources));
    server.body("/changes.xml", index("changelist", changes));
    let capability = |path: &str, capability: &str| {
        format!("<url><loc>{}</loc><rs:md capability='{capability}'/></url>", server.url(path))
    };
    let entries =
        capability("/list.xml", "resourcelist") + &capability("/changes.xml", "changelist");
    server.body("/caps.xml", document("urlset", "capability='capabilitylist'", &entries));
    server
}

#[test]
fn an_audit_reads_no_list_that_a_run_refuses() {
    let other = Server::start();
    let entry = format!("<url><loc>{}</loc></url>", other.url("/d/a"));
    let resources = document("urlset", &format!("capability='resourcelist' at='{BEGIN}'"), &entry);
    let changes = document("urlset", &format!("capability='changelist' from='{BEGIN}'"), "");
    other.body("/resources.xml", resources);
    other.body("/changes.xml", changes);
    let (listed, changed) = (other.url("/resources.xml"), other.url("/changes.xml"));
    for (resources, changes, is_allowed, code) in [
        (&listed, &changed, true, ""),
        (&listed, &changed, false, "uri.authority"),
        (&changed, &changed, true, "list.capability"),
        (&listed, &listed, true, "list.capability"),
    ] {
        let server = source_of_indexes(resources, changes);
        let mut copy = copy_of(server.url("/caps.xml"));
        if is_allowed {
            copy.options.allow_hosts.push(other.base.trim_start_matches("http://").to_owned());
        }
        std::fs::create_dir_all(&copy.options.folder).unwrap();
        other.take_log();
        assert_eq!(Ran::audit(&copy.options, false).code(), code, "{resources} {changes}");
        assert_eq!(other.take_log().is_empty(), !is_allowed, "{resources} {changes}");
    }
    // Changes alone are on the other host.
    let server = source_of_indexes("", &changed);
    server.body(
        "/part.xml",
        document("urlset", &format!("capability='resourcelist' at='{BEGIN}'"), ""),
    );
    let part = format!("<sitemap><loc>{}</loc></sitemap>", server.url("/part.xml"));
    server.body(
        "/list.xml",
        document("sitemapindex", &format!("capability='resourcelist' at='{BEGIN}'"), &part),
    );
    let copy = copy_of(server.url("/caps.xml"));
    std::fs::create_dir_all(&copy.options.folder).unwrap();
    other.take_log();
    assert_eq!(Ran::audit(&copy.options, false).code(), "uri.authority");
    assert!(other.take_log().is_empty());
}

#[test]
fn packed_documents_may_have_several_members_and_zeros() {
    let server = Server::start();
    let list = document("urlset", "capability=\"resourcelist\"", &entries(&server));
    server.body("/d/a", "one");
    server.body("/d/b", "two");
    let (first, second) = list.split_at(list.len() / 2);
    let packed = [gzip(first.as_bytes()), gzip(second.as_bytes()), vec![0; 512]].concat();
    server.body("/list.xml.gz", packed);
    let copy = Copy::of(server.url("/list.xml.gz"));
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?} {}", ran.reported, ran.code());
    let plain = Copy::of(server.url("/list.xml"));
    server.body("/list.xml", list);
    assert_eq!(plain.try_run().exit(), 0);
    assert!(!copy.paths().is_empty());
    assert_eq!(copy.texts(), plain.texts());
}
