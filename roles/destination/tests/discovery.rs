//! Discovery and the choice of a set: from each kind of address, with each kind of answer, by `sync` and by `audit`.
#![allow(clippy::unwrap_used, clippy::panic, clippy::format_collect, reason = "tests may stop, and need not be fast")]

mod server;

use abreast_destination::{AuditOptions, Error, Event, Observer, SyncOptions, audit, source_sets, sync};
use server::{Answer, BEGIN, Server, document};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const WELL_KNOWN: &str = "/.well-known/resourcesync";
/// Addresses that lead to the Source as a whole.
const OF_THE_SOURCE: [&str; 5] = ["/", "/page.html", "/plain.html", WELL_KNOWN, "/index-of-descriptions.xml"];

/// A site with the sets `maps` and `papers`, a page, and plain Sitemaps of everything.
fn site() -> Server {
    let server = Server::start();
    let mut everything = String::new();
    let below = |text: String, up: &str| {
        text.replacen("<rs:md", &format!("<rs:ln rel=\"up\" href=\"{}\"/><rs:md", server.url(up)), 1)
    };
    for set in ["maps", "papers"] {
        let (caps, list) = (format!("/{set}/capabilitylist.xml"), format!("/{set}/resourcelist.xml"));
        let entry = format!("<url><loc>{}</loc><rs:md capability=\"resourcelist\"/></url>", server.url(&list));
        server.body(&caps, below(document("urlset", "capability=\"capabilitylist\"", &entry), WELL_KNOWN));
        let entry = format!("<url><loc>{}</loc></url>", server.url(&format!("/{set}/of-{set}")));
        let attributes = format!("capability=\"resourcelist\" at=\"{BEGIN}\"");
        server.body(&list, below(document("urlset", &attributes, &entry), &caps));
        server.body(&format!("/{set}/of-{set}"), set);
        everything.push_str(&entry);
    }
    let sets: String = ["maps", "papers"]
        .iter()
        .map(|set| {
            let list = server.url(&format!("/{set}/capabilitylist.xml"));
            format!("<url><loc>{list}</loc><rs:md capability=\"capabilitylist\"/></url>")
        })
        .collect();
    server.body(WELL_KNOWN, document("urlset", "capability=\"description\"", &sets));
    let parts = format!("<sitemap><loc>{}</loc></sitemap>", server.url(WELL_KNOWN));
    server.body("/index-of-descriptions.xml", document("sitemapindex", "capability=\"description\"", &parts));
    let plain = format!("<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{everything}</urlset>");
    server.body("/sitemap.xml", plain);
    server.body("/robots.txt", format!("User-agent: *\nSitemap: {}\n", server.url("/sitemap.xml")));
    server.body(
        "/page.html",
        format!("<!DOCTYPE html><html><head><link rel=resourcesync href={WELL_KNOWN}></head></html>"),
    );
    server.body("/plain.html", "<!DOCTYPE html><html><head><title>Welcome</title></head></html>");
    server.body("/about.txt", "a text");
    server.put("/", Answer::status(403));
    server
}

/// What one command came to: exit code, code and text of its error or notices.
struct Ran {
    exit: u8,
    codes: Vec<String>,
    text: String,
}

struct Copy {
    _place: tempfile::TempDir,
    options: SyncOptions,
}

impl Copy {
    fn of(url: String, set: Option<&str>) -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut options = SyncOptions::new(url, place.path().join("copy"));
        options.net.backoff_base = Duration::from_millis(1);
        options.net.retries = 2;
        options.ignore_robots = true;
        options.set = set.map(str::to_owned);
        Self { _place: place, options }
    }

    fn sync(&self) -> Ran {
        ran(|observer| sync(&self.options, observer, &AtomicBool::new(false)).map(|summary| summary.exit_code))
    }

    fn audit(&self) -> Ran {
        std::fs::create_dir_all(&self.options.folder).unwrap();
        let options = AuditOptions { sync: self.options.clone(), full: false };
        ran(|observer| audit(&options, observer, &AtomicBool::new(false)).map(|report| report.exit_code))
    }

    fn names(&self) -> Vec<String> {
        let Ok(entries) = Path::new(&self.options.folder).read_dir() else { return Vec::new() };
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.retain(|name| name != ".abreast");
        names.sort();
        names
    }
}

fn ran(command: impl FnOnce(&dyn Observer) -> Result<u8, Error>) -> Ran {
    let told = Mutex::new((Vec::new(), String::new()));
    let result = command(&|event: &Event<'_>| {
        if let Event::Error(problem) | Event::Notice(problem) = event {
            let mut told = told.lock().unwrap();
            told.0.push(problem.code.to_owned());
            told.1.push_str(problem.message);
        }
    });
    let (mut codes, mut text) = told.into_inner().unwrap();
    let exit = match result {
        Ok(exit) => exit,
        Err(error) => {
            codes.push(error.code().to_owned());
            text.push_str(&error.to_string());
            error.exit_code().number()
        }
    };
    Ran { exit, codes, text }
}

#[test]
fn the_set_that_is_named_is_copied_whatever_the_address() {
    let server = site();
    let also = ["/sitemap.xml", "/papers/resourcelist.xml", "/papers/capabilitylist.xml"];
    for path in OF_THE_SOURCE.into_iter().chain(also) {
        let url = server.url("/papers/capabilitylist.xml");
        for set in ["papers", url.as_str()] {
            let copy = Copy::of(server.url(path), Some(set));
            let ran = copy.sync();
            assert_eq!((ran.exit, copy.names()), (0, vec!["of-papers".to_owned()]), "{path} {set}: {}", ran.text);
            assert_eq!(copy.audit().exit, 0, "{path} {set}");
            assert_eq!(copy.sync().exit, 0, "{path} {set}");
        }
    }
}

#[test]
fn several_sets_and_no_choice_is_an_error_that_lists_them() {
    let server = site();
    for path in OF_THE_SOURCE {
        let copy = Copy::of(server.url(path), None);
        for ran in [copy.sync(), copy.audit()] {
            assert_eq!(
                (ran.exit, ran.codes.last().map(String::as_str)),
                (2, Some("discover.set")),
                "{path} {}",
                ran.text
            );
            for word in ["/maps/capabilitylist.xml", "/papers/capabilitylist.xml", "--set", "--all-sets"] {
                assert!(ran.text.contains(word), "{path}: {}", ran.text);
            }
            let given = format!("{} has 2 sets of resources", server.url(path));
            assert!(ran.text.contains(&given), "the address that was given is named: {}", ran.text);
        }
        assert!(copy.names().is_empty(), "{path}");
    }
    // Each document of one set is a choice.
    for path in ["/papers/resourcelist.xml", "/papers/capabilitylist.xml"] {
        let copy = Copy::of(server.url(path), None);
        assert_eq!((copy.sync().exit, copy.names()), (0, vec!["of-papers".to_owned()]), "{path}");
    }
}

#[test]
fn an_unknown_set_is_an_error_whatever_the_address() {
    let server = site();
    let also = ["/sitemap.xml", "/maps/resourcelist.xml", "/maps/capabilitylist.xml"];
    for path in OF_THE_SOURCE.into_iter().chain(also) {
        for set in ["paper", "http://elsewhere.example/papers/capabilitylist.xml"] {
            let copy = Copy::of(server.url(path), Some(set));
            for ran in [copy.sync(), copy.audit()] {
                assert_eq!(
                    (ran.exit, ran.codes.last().map(String::as_str)),
                    (2, Some("discover.set")),
                    "{path} {set}: {}",
                    ran.text
                );
                assert!(ran.text.contains("/papers/capabilitylist.xml"), "{path}: {}", ran.text);
            }
            assert!(copy.names().is_empty(), "{path}");
        }
    }
    // A Source without sets has none of any name.
    let alone = Server::start();
    alone.body("/list.xml", document("urlset", "capability=\"resourcelist\"", ""));
    for path in ["/list.xml", "/"] {
        alone.body("/sitemap.xml", alone.page("/list.xml"));
        let ran = Copy::of(alone.url(path), Some("papers")).sync();
        assert_eq!((ran.exit, ran.codes.last().map(String::as_str)), (2, Some("discover.set")), "{path} {}", ran.text);
    }
}

#[test]
fn copies_of_one_root_keep_to_their_own_sets() {
    let server = site();
    let (maps, papers) = (Copy::of(server.url("/"), Some("maps")), Copy::of(server.url("/"), Some("papers")));
    assert_eq!((maps.sync().exit, papers.sync().exit), (0, 0));
    assert_eq!((maps.names(), papers.names()), (vec!["of-maps".to_owned()], vec!["of-papers".to_owned()]));
    // Without a choice the set is the one that the copy was begun with; another is refused.
    let mut again = SyncOptions { set: None, ..maps.options.clone() };
    let run = |options: &SyncOptions| {
        let copy = AuditOptions { sync: options.clone(), full: false };
        let cancel = AtomicBool::new(false);
        [
            ran(|observer| sync(options, observer, &cancel).map(|summary| summary.exit_code)),
            ran(|observer| audit(&copy, observer, &cancel).map(|report| report.exit_code)),
        ]
    };
    assert_eq!(run(&again).map(|ran| ran.exit), [0, 0]);
    again.set = Some("papers".to_owned());
    for ran in run(&again) {
        assert_eq!((ran.exit, ran.codes.last().map(String::as_str)), (2, Some("folder.source")), "{}", ran.text);
        assert!(ran.text.contains("/maps/") && ran.text.contains("/papers/"), "{}", ran.text);
    }
    assert_eq!(maps.names(), ["of-maps"]);
}

#[test]
fn a_set_on_another_host_is_a_set_too() {
    let (server, other) = (site(), site());
    let sets: String = [server.url("/maps/capabilitylist.xml"), other.url("/papers/capabilitylist.xml")]
        .map(|list| format!("<url><loc>{list}</loc><rs:md capability=\"capabilitylist\"/></url>"))
        .concat();
    server.body(WELL_KNOWN, document("urlset", "capability=\"description\"", &sets));
    let ran = Copy::of(server.url("/"), None).sync();
    assert_eq!((ran.exit, ran.codes.last().map(String::as_str)), (2, Some("discover.set")), "{}", ran.text);
    let mut copy = Copy::of(server.url("/"), Some("papers"));
    let ran = copy.sync();
    assert_eq!(ran.codes.last().map(String::as_str), Some("uri.authority"), "{}", ran.text);
    assert!(ran.text.contains("--allow-host"), "{}", ran.text);
    copy.options.allow_hosts = vec![other.base.trim_start_matches("http://").to_owned()];
    assert_eq!((copy.sync().exit, copy.names()), (0, vec!["of-papers".to_owned()]));
}

#[test]
fn several_sitemaps_of_one_site_are_not_one_set() {
    let server = site();
    server.remove(WELL_KNOWN);
    server.body("/other.xml", server.page("/sitemap.xml"));
    let robots = format!("Sitemap: {}\nSitemap: {}\n", server.url("/sitemap.xml"), server.url("/other.xml"));
    server.body("/robots.txt", robots);
    let ran = Copy::of(server.url("/"), None).sync();
    assert_eq!((ran.exit, ran.codes.last().map(String::as_str)), (2, Some("discover.set")), "{}", ran.text);
    assert!(ran.text.contains("/other.xml"), "{}", ran.text);
    assert_eq!(Copy::of(server.url("/"), Some("other")).sync().exit, 0);
}

#[test]
fn an_address_that_does_not_answer_is_an_error() {
    let server = site();
    for (status, exit, attempts) in [
        (404, 4, 1),
        (410, 4, 1),
        (401, 12, 1),
        (403, 12, 1),
        (400, 4, 1),
        (500, 5, 3),
        (502, 5, 3),
        (503, 5, 3),
        (504, 5, 3),
    ] {
        for path in ["/nope.xml", "/papers/capabilitylst.xml", "/page-that-was"] {
            for set in [None, Some("papers")] {
                server.put(path, Answer::status(status));
                let copy = Copy::of(server.url(path), set);
                server.take_log();
                let ran = copy.sync();
                assert_eq!(
                    (ran.exit, ran.codes.as_slice()),
                    (exit, &["http.status".to_owned()][..]),
                    "{path} {status}"
                );
                let mut asked = vec![path.to_owned(); attempts];
                if matches!(status, 404 | 410) {
                    asked.extend(["/".to_owned(), WELL_KNOWN.to_owned()]);
                    let help = format!("help: `abreast explore {}` lists the sets", server.url("/"));
                    assert!(ran.text.contains(&help), "{}", ran.text);
                }
                assert_eq!(server.take_log(), asked, "{status}: nothing else is asked");
                assert!(copy.names().is_empty());
                assert_eq!(copy.audit().exit, exit);
            }
        }
    }
    // A folder that is not there says nothing about the site; one below the given folder is asked.
    server.take_log();
    let ran = Copy::of(server.url("/nope/"), Some("papers")).sync();
    assert_eq!((ran.exit, ran.codes.as_slice()), (4, &["http.status".to_owned()][..]), "{}", ran.text);
    assert_eq!(server.take_log(), ["/nope/", "/nope/.well-known/resourcesync", "/", WELL_KNOWN]);
    // A site that has no Source is not recommended.
    let ran = Copy::of(Server::start().url("/nope.xml"), None).sync();
    assert!(ran.text.contains("help: check the address") && !ran.text.contains("abreast explore http"), "{}", ran.text);
}

#[test]
fn a_text_that_is_no_page_leads_nowhere() {
    let server = site();
    let texts = [
        ("/about.txt", "a text", "text/plain"),
        ("/livez", "ok\n", "text/plain"),
        ("/empty", "", "text/plain"),
        ("/metrics", "# HELP requests <html>\nrequests 1\n", "text/plain; version=0.0.4"),
        ("/api/v1/sets", "{\"sets\":[{\"title\":\"<html>\"}]}", "application/json"),
        ("/folder/", "[]", "application/json"),
    ];
    for (path, text, content_type) in texts {
        server.put(path, Answer::ok(text).header("content-type", content_type));
        for set in [None, Some("maps")] {
            let copy = Copy::of(server.url(path), set);
            for ran in [copy.sync(), copy.audit()] {
                assert_eq!((ran.exit, ran.codes.as_slice()), (4, &["discover.nothing".to_owned()][..]), "{}", ran.text);
                for words in [
                    format!("{} is not a ResourceSync document", server.url(path)),
                    format!("help: `abreast explore {}` lists the sets", server.url("/")),
                ] {
                    assert!(ran.text.contains(&words), "{words} in {}", ran.text);
                }
            }
            assert!(copy.names().is_empty(), "{path}");
        }
    }
    // A header names the Source explicitly.
    let link = format!("<{WELL_KNOWN}>; rel=\"resourcesync\"");
    server.put("/about.txt", Answer::ok("a text").header("link", &link));
    assert_eq!(Copy::of(server.url("/about.txt"), Some("maps")).sync().exit, 0);
}

#[test]
fn a_set_that_was_renamed_is_reported_with_the_way_to_the_others() {
    let server = site();
    let copy = Copy::of(server.url("/"), Some("papers"));
    assert_eq!(copy.sync().exit, 0);
    for path in ["/papers/capabilitylist.xml", "/papers/resourcelist.xml"] {
        server.remove(path);
    }
    for ran in [copy.sync(), copy.audit()] {
        assert_eq!((ran.exit, ran.codes.as_slice()), (4, &["http.status".to_owned()][..]), "{}", ran.text);
        let help = format!("help: `abreast explore {}` lists the sets", server.url("/"));
        assert!(ran.text.contains(&help), "{}", ran.text);
    }
    assert_eq!(copy.names(), ["of-papers"], "the copy is kept");
}

#[test]
fn a_root_without_a_page_leads_to_the_source_and_that_is_reported() {
    let server = site();
    for status in [200, 403, 404] {
        server.put("/", Answer::status(status));
        let copy = Copy::of(server.url("/"), Some("maps"));
        let ran = copy.sync();
        assert_eq!((ran.exit, ran.codes.as_slice()), (0, &["discover.found".to_owned()][..]), "{status} {}", ran.text);
        assert!(ran.text.contains("/maps/capabilitylist.xml"), "{}", ran.text);
    }
    for path in ["/page.html", "/plain.html", "/sitemap.xml"] {
        let ran = Copy::of(server.url(path), Some("maps")).sync();
        assert_eq!((ran.exit, ran.codes[0].as_str()), (0, "discover.found"), "{path} {}", ran.text);
    }
    // The document itself leads nowhere else.
    for path in [WELL_KNOWN, "/maps/capabilitylist.xml", "/maps/resourcelist.xml"] {
        assert!(Copy::of(server.url(path), Some("maps")).sync().codes.is_empty(), "{path}");
    }
    for (status, exit) in [(401, 12), (500, 5), (503, 5)] {
        server.put("/", Answer::status(status));
        assert_eq!(Copy::of(server.url("/"), Some("maps")).sync().exit, exit, "{status}");
    }
}

#[test]
fn what_is_broken_on_the_way_is_not_passed_over() {
    let whole = |capability: &str| document("urlset", &format!("capability=\"{capability}\""), "<url>");
    let cut = |capability: &str| whole(capability).replace("</urlset>", "");
    for (place, answer, exit) in [
        (WELL_KNOWN, Answer::status(503), 5),
        (WELL_KNOWN, Answer::status(401), 12),
        (WELL_KNOWN, Answer::ok(cut("description")), 4),
        ("/papers/capabilitylist.xml", Answer::status(404), 4),
        ("/papers/capabilitylist.xml", Answer::status(500), 5),
        ("/papers/capabilitylist.xml", Answer::ok(cut("capabilitylist")), 4),
        ("/papers/capabilitylist.xml", Answer::ok("a text"), 4),
    ] {
        let server = site();
        server.put(place, answer.clone());
        for path in ["/", "/page.html", "/plain.html"] {
            let copy = Copy::of(server.url(path), Some("papers"));
            let ran = copy.sync();
            assert_eq!(ran.exit, exit, "{place} {path} {:?} {}", ran.codes, ran.text);
            assert!(copy.names().is_empty(), "{place} {path}");
        }
    }
    // Without its Capability List a Resource List would never be followed; it is waited for.
    let server = site();
    server.put("/papers/capabilitylist.xml", Answer::status(503));
    assert_eq!(Copy::of(server.url("/papers/resourcelist.xml"), None).sync().exit, 5);
    server.remove("/papers/capabilitylist.xml");
    assert_eq!(Copy::of(server.url("/papers/resourcelist.xml"), None).sync().exit, 0);
}

#[test]
fn each_cause_has_its_own_words() {
    let bare = Server::start();
    bare.body("/", "<!DOCTYPE html><html><head><title>Welcome</title></head><body>hello</body></html>");
    bare.body(
        "/oai",
        "<?xml version=\"1.0\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><error/></OAI-PMH>",
    );
    bare.body("/broken.html", "<html><head><link rel=resourcesync href=/gone.xml></head></html>");
    bare.body("/useless.html", "<html><head><link rel=resourcesync href=/></head></html>");
    for (path, code, word) in [
        ("/", "discover.page", "web page"),
        ("/oai", "discover.oai-pmh", "OAI-PMH"),
        ("/broken.html", "http.status", "/gone.xml"),
        ("/useless.html", "discover.nothing", "links to no ResourceSync document"),
    ] {
        let copy = Copy::of(bare.url(path), None);
        for ran in [copy.sync(), copy.audit()] {
            assert_eq!((ran.exit, ran.codes.last().map(String::as_str)), (4, Some(code)), "{path}: {}", ran.text);
            assert!(ran.text.contains(word), "{path}: {}", ran.text);
        }
    }
    for url in ["papers.example.org", "ftp://papers.example.org/", "file:///etc", ""] {
        let copy = Copy::of(url.to_owned(), None);
        let ran = copy.sync();
        assert_eq!((ran.exit, ran.codes.as_slice()), (2, &["usage.url".to_owned()][..]), "{url}");
        assert!(!copy.options.folder.exists(), "{url}: nothing is made for an address that is none");
    }
}

#[test]
fn all_sets_of_a_source_are_found_from_each_of_its_documents() {
    let server = site();
    let also = ["/sitemap.xml", "/papers/resourcelist.xml", "/maps/capabilitylist.xml"];
    for path in OF_THE_SOURCE.into_iter().chain(also) {
        let copy = Copy::of(server.url(path), None);
        let found = source_sets(&copy.options, &AtomicBool::new(false)).unwrap();
        let found: Vec<_> = found.iter().map(|set| (set.name.as_str(), set.url.clone())).collect();
        let expected =
            ["maps", "papers"].map(|name| (name, server.url(&format!("/{name}/capabilitylist.xml")))).to_vec();
        assert_eq!(found, expected, "{path}");
    }
}
