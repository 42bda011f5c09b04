//! Discovery and the choice of a set: from each kind of address, with each kind of answer, by
//! `sync` and by `audit`.

use crate::copy::{Copy, Ran};
use crate::source::Source;
use abreast_destination::{SyncOptions, source_sets};
use abreast_testkit::documents::{BEGIN, document};
use abreast_testkit::pages::{Answer, Server};
use std::sync::atomic::AtomicBool;

const WELL_KNOWN: &str = "/.well-known/resourcesync";
/// Addresses that lead to the Source as a whole.
const OF_THE_SOURCE: [&str; 5] =
    ["/", "/page.html", "/plain.html", WELL_KNOWN, "/index-of-descriptions.xml"];

/// A site with the sets `maps` and `papers`, a page, and plain Sitemaps of everything.
fn site() -> Server {
    let server = Server::start();
    let mut everything = String::new();
    let below = |text: String, up: &str| {
        text.replacen(
            "<rs:md",
            &format!("<rs:ln rel=\"up\" href=\"{}\"/><rs:md", server.url(up)),
            1,
        )
    };
    for set in ["maps", "papers"] {
        let (caps, list) =
            (format!("/{set}/capabilitylist.xml"), format!("/{set}/resourcelist.xml"));
        let entry = format!(
            "<url><loc>{}</loc><rs:md capability=\"resourcelist\"/></url>",
            server.url(&list)
        );
        server.body(
            &caps,
            below(document("urlset", "capability=\"capabilitylist\"", &entry), WELL_KNOWN),
        );
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
    server.body(
        "/index-of-descriptions.xml",
        document("sitemapindex", "capability=\"description\"", &parts),
    );
    let plain = format!(
        "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\">{everything}</urlset>"
    );
    server.body("/sitemap.xml", plain);
    server.body("/robots.txt", format!("User-agent: *\nSitemap: {}\n", server.url("/sitemap.xml")));
    server.body(
        "/page.html",
        format!(
            "<!DOCTYPE html><html><head><link rel=resourcesync href={WELL_KNOWN}></head></html>"
        ),
    );
    server.body("/plain.html", "<!DOCTYPE html><html><head><title>Welcome</title></head></html>");
    server.body("/about.txt", "a text");
    server.put("/", Answer::status(403));
    server
}

/// What one command came to: its exit code, and codes and texts of notices and of the error.
struct Outcome {
    exit: u8,
    codes: Vec<String>,
    text: String,
}

impl Outcome {
    fn of<T>(ran: Ran<T>, exit: impl FnOnce(&T) -> u8) -> Self {
        let mut outcome = Self { exit: 0, codes: ran.codes, text: String::new() };
        outcome.text.extend(ran.reported.into_iter().map(|reported| reported.message));
        match ran.result {
            Ok(done) => outcome.exit = exit(&done),
            Err(error) => {
                outcome.codes.push(error.code().to_owned());
                outcome.text.push_str(&error.to_string());
                outcome.exit = error.exit_code().number();
            }
        }
        outcome
    }
}

fn copy_of(url: String, set: Option<&str>) -> Copy {
    let mut copy = Copy::of(url);
    copy.options.set = set.map(str::to_owned);
    copy
}

fn synced(options: &SyncOptions) -> Outcome {
    Outcome::of(Ran::sync(options), |summary| summary.exit_code)
}

fn audited(options: &SyncOptions) -> Outcome {
    std::fs::create_dir_all(&options.folder).unwrap();
    Outcome::of(Ran::audit(options, false), |report| report.exit_code)
}

#[test]
fn the_set_that_is_named_is_copied_whatever_the_address() {
    let server = site();
    let also = ["/sitemap.xml", "/papers/resourcelist.xml", "/papers/capabilitylist.xml"];
    for path in OF_THE_SOURCE.into_iter().chain(also) {
        let url = server.url("/papers/capabilitylist.xml");
        for set in ["papers", url.as_str()] {
            let copy = copy_of(server.url(path), Some(set));
            let ran = synced(&copy.options);
            assert_eq!(
                (ran.exit, copy.paths()),
                (0, vec!["of-papers".to_owned()]),
                "{path} {set}: {}",
                ran.text
            );
            assert_eq!(audited(&copy.options).exit, 0, "{path} {set}");
            assert_eq!(synced(&copy.options).exit, 0, "{path} {set}");
        }
    }
}

#[test]
fn several_sets_and_no_choice_is_an_error_that_lists_them() {
    let server = site();
    for path in OF_THE_SOURCE {
        let copy = copy_of(server.url(path), None);
        for ran in [synced(&copy.options), audited(&copy.options)] {
            assert_eq!(
                (ran.exit, ran.codes.last().map(String::as_str)),
                (2, Some("discover.set")),
                "{path} {}",
                ran.text
            );
            for word in
                ["/maps/capabilitylist.xml", "/papers/capabilitylist.xml", "--set", "--all-sets"]
            {
                assert!(ran.text.contains(word), "{path}: {}", ran.text);
            }
            let given = format!("{} has 2 sets of resources", server.url(path));
            assert!(ran.text.contains(&given), "the address that was given is named: {}", ran.text);
        }
        assert!(copy.paths().is_empty(), "{path}");
    }
    // Each document of a set is a choice.
    for path in ["/papers/resourcelist.xml", "/papers/capabilitylist.xml"] {
        let copy = copy_of(server.url(path), None);
        assert_eq!(
            (synced(&copy.options).exit, copy.paths()),
            (0, vec!["of-papers".to_owned()]),
            "{path}"
        );
    }
}

#[test]
fn an_unknown_set_is_an_error_whatever_the_address() {
    let server = site();
    let also = ["/sitemap.xml", "/maps/resourcelist.xml", "/maps/capabilitylist.xml"];
    for path in OF_THE_SOURCE.into_iter().chain(also) {
        for set in ["paper", "http://elsewhere.example/papers/capabilitylist.xml"] {
            let copy = copy_of(server.url(path), Some(set));
            for ran in [synced(&copy.options), audited(&copy.options)] {
                assert_eq!(
                    (ran.exit, ran.codes.last().map(String::as_str)),
                    (2, Some("discover.set")),
                    "{path} {set}: {}",
                    ran.text
                );
                assert!(ran.text.contains("/papers/capabilitylist.xml"), "{path}: {}", ran.text);
            }
            assert!(copy.paths().is_empty(), "{path}");
        }
    }
    // A Source without sets does not have a set with any name.
    let alone = Server::start();
    alone.body("/list.xml", document("urlset", "capability=\"resourcelist\"", ""));
    for path in ["/list.xml", "/"] {
        alone.body("/sitemap.xml", alone.page("/list.xml"));
        let ran = synced(&copy_of(alone.url(path), Some("papers")).options);
        assert_eq!(
            (ran.exit, ran.codes.last().map(String::as_str)),
            (2, Some("discover.set")),
            "{path} {}",
            ran.text
        );
    }
}

#[test]
fn copies_of_one_root_keep_to_their_own_sets() {
    let server = site();
    let (maps, papers) =
        (copy_of(server.url("/"), Some("maps")), copy_of(server.url("/"), Some("papers")));
    assert_eq!((synced(&maps.options).exit, synced(&papers.options).exit), (0, 0));
    assert_eq!(
        (maps.paths(), papers.paths()),
        (vec!["of-maps".to_owned()], vec!["of-papers".to_owned()])
    );
    // If no set is chosen, the set of the existing copy is used; another set is refused.
    let mut again = SyncOptions { set: None, ..maps.options.clone() };
    let run = |options: &SyncOptions| [synced(options), audited(options)];
    assert_eq!(run(&again).map(|ran| ran.exit), [0, 0]);
    again.set = Some("papers".to_owned());
    for ran in run(&again) {
        assert_eq!(
            (ran.exit, ran.codes.last().map(String::as_str)),
            (2, Some("folder.source")),
            "{}",
            ran.text
        );
        assert!(ran.text.contains("/maps/") && ran.text.contains("/papers/"), "{}", ran.text);
    }
    assert_eq!(maps.paths(), ["of-maps"]);
}

#[test]
fn a_set_on_another_host_is_a_set_too() {
    let (server, other) = (site(), site());
    let sets: String =
        [server.url("/maps/capabilitylist.xml"), other.url("/papers/capabilitylist.xml")]
            .map(|list| {
                format!("<url><loc>{list}</loc><rs:md capability=\"capabilitylist\"/></url>")
            })
            .concat();
    server.body(WELL_KNOWN, document("urlset", "capability=\"description\"", &sets));
    let ran = synced(&copy_of(server.url("/"), None).options);
    assert_eq!(
        (ran.exit, ran.codes.last().map(String::as_str)),
        (2, Some("discover.set")),
        "{}",
        ran.text
    );
    let mut copy = copy_of(server.url("/"), Some("papers"));
    let ran = synced(&copy.options);
    assert_eq!(ran.codes.last().map(String::as_str), Some("uri.authority"), "{}", ran.text);
    assert!(ran.text.contains("--allow-host"), "{}", ran.text);
    copy.options.allow_hosts = vec![other.base.trim_start_matches("http://").to_owned()];
    assert_eq!((synced(&copy.options).exit, copy.paths()), (0, vec!["of-papers".to_owned()]));
}

#[test]
fn several_sitemaps_of_one_site_are_not_one_set() {
    let server = site();
    server.remove(WELL_KNOWN);
    server.body("/other.xml", server.page("/sitemap.xml"));
    let robots =
        format!("Sitemap: {}\nSitemap: {}\n", server.url("/sitemap.xml"), server.url("/other.xml"));
    server.body("/robots.txt", robots);
    let ran = synced(&copy_of(server.url("/"), None).options);
    assert_eq!(
        (ran.exit, ran.codes.last().map(String::as_str)),
        (2, Some("discover.set")),
        "{}",
        ran.text
    );
    assert!(ran.text.contains("/other.xml"), "{}", ran.text);
    assert_eq!(synced(&copy_of(server.url("/"), Some("other")).options).exit, 0);
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
                let copy = copy_of(server.url(path), set);
                server.take_log();
                let ran = synced(&copy.options);
                assert_eq!(
                    (ran.exit, ran.codes.as_slice()),
                    (exit, &["http.status".to_owned()][..]),
                    "{path} {status}"
                );
                let mut asked = vec![path.to_owned(); attempts];
                if matches!(status, 404 | 410) {
                    asked.extend(["/".to_owned(), WELL_KNOWN.to_owned()]);
                    let help =
                        format!("help: `abreast explore {}` lists the sets", server.url("/"));
                    assert!(ran.text.contains(&help), "{}", ran.text);
                }
                assert_eq!(server.take_log(), asked, "{status}: nothing else is asked");
                assert!(copy.paths().is_empty());
                assert_eq!(audited(&copy.options).exit, exit);
            }
        }
    }
    // A folder that is not there says nothing about the site; one below the given folder is asked.
    server.take_log();
    let ran = synced(&copy_of(server.url("/nope/"), Some("papers")).options);
    assert_eq!(
        (ran.exit, ran.codes.as_slice()),
        (4, &["http.status".to_owned()][..]),
        "{}",
        ran.text
    );
    assert_eq!(server.take_log(), ["/nope/", "/nope/.well-known/resourcesync", "/", WELL_KNOWN]);
    // A site without a Source is not recommended.
    let ran = synced(&copy_of(Server::start().url("/nope.xml"), None).options);
    assert!(
        ran.text.contains("help: check the address") && !ran.text.contains("abreast explore http"),
        "{}",
        ran.text
    );
}

#[test]
fn a_text_that_is_not_a_page_leads_to_no_source() {
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
            let copy = copy_of(server.url(path), set);
            for ran in [synced(&copy.options), audited(&copy.options)] {
                assert_eq!(
                    (ran.exit, ran.codes.as_slice()),
                    (4, &["discover.nothing".to_owned()][..]),
                    "{}",
                    ran.text
                );
                for words in [
                    format!("{} is not a document of ResourceSync or", server.url(path)),
                    format!("help: `abreast explore {}` lists the sets", server.url("/")),
                ] {
                    assert!(ran.text.contains(&words), "{words} in {}", ran.text);
                }
            }
            assert!(copy.paths().is_empty(), "{path}");
        }
    }
    // A header explicitly links to the Source.
    let link = format!("<{WELL_KNOWN}>; rel=\"resourcesync\"");
    server.put("/about.txt", Answer::ok("a text").header("link", &link));
    assert_eq!(synced(&copy_of(server.url("/about.txt"), Some("maps")).options).exit, 0);
}

#[test]
fn a_renamed_set_is_an_error_that_names_explore() {
    let server = site();
    let copy = copy_of(server.url("/"), Some("papers"));
    assert_eq!(synced(&copy.options).exit, 0);
    for path in ["/papers/capabilitylist.xml", "/papers/resourcelist.xml"] {
        server.remove(path);
    }
    for ran in [synced(&copy.options), audited(&copy.options)] {
        assert_eq!(
            (ran.exit, ran.codes.as_slice()),
            (4, &["http.status".to_owned()][..]),
            "{}",
            ran.text
        );
        let help = format!("help: `abreast explore {}` lists the sets", server.url("/"));
        assert!(ran.text.contains(&help), "{}", ran.text);
    }
    assert_eq!(copy.paths(), ["of-papers"], "the copy is kept");
}

#[test]
fn a_root_without_a_page_leads_to_the_source_with_a_notice() {
    let server = site();
    for status in [200, 403, 404] {
        server.put("/", Answer::status(status));
        let copy = copy_of(server.url("/"), Some("maps"));
        let ran = synced(&copy.options);
        assert_eq!(
            (ran.exit, ran.codes.as_slice()),
            (0, &["discover.found".to_owned()][..]),
            "{status} {}",
            ran.text
        );
        assert!(ran.text.contains("/maps/capabilitylist.xml"), "{}", ran.text);
    }
    for path in ["/page.html", "/plain.html", "/sitemap.xml"] {
        let ran = synced(&copy_of(server.url(path), Some("maps")).options);
        assert_eq!((ran.exit, ran.codes[0].as_str()), (0, "discover.found"), "{path} {}", ran.text);
    }
    // The document itself leads nowhere else.
    for path in [WELL_KNOWN, "/maps/capabilitylist.xml", "/maps/resourcelist.xml"] {
        assert!(
            synced(&copy_of(server.url(path), Some("maps")).options).codes.is_empty(),
            "{path}"
        );
    }
    for (status, exit) in [(401, 12), (500, 5), (503, 5)] {
        server.put("/", Answer::status(status));
        assert_eq!(synced(&copy_of(server.url("/"), Some("maps")).options).exit, exit, "{status}");
    }
}

#[test]
fn a_broken_document_on_the_way_is_an_error() {
    let whole =
        |capability: &str| document("urlset", &format!("capability=\"{capability}\""), "<url>");
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
            let copy = copy_of(server.url(path), Some("papers"));
            let ran = synced(&copy.options);
            assert_eq!(ran.exit, exit, "{place} {path} {:?} {}", ran.codes, ran.text);
            assert!(copy.paths().is_empty(), "{place} {path}");
        }
    }
    // Without its Capability List, a Resource List would never be followed, so an existing one is
    // required.
    let foreign =
        whole("capabilitylist").replace("openarchives.org/rs/terms/", "openarchives.org/rs/terms");
    for (answer, exit) in [
        (Answer::status(503), 5),
        (Answer::ok(cut("capabilitylist")), 4),
        (Answer::ok(foreign), 4),
        (Answer::ok("a text"), 0),
        (Answer::status(403), 0),
        (Answer::status(404), 0),
    ] {
        let server = site();
        server.put("/papers/capabilitylist.xml", answer);
        let ran = synced(&copy_of(server.url("/papers/resourcelist.xml"), None).options);
        assert_eq!(ran.exit, exit, "{:?} {}", ran.codes, ran.text);
    }
}

#[test]
fn each_cause_has_its_own_message() {
    let bare = Server::start();
    bare.body(
        "/",
        "<!DOCTYPE html><html><head><title>Welcome</title></head><body>hello</body></html>",
    );
    bare.body(
        "/oai",
        "<?xml version=\"1.0\"?>\n<OAI-PMH xmlns=\"http://www.openarchives.org/OAI/2.0/\"><error/></OAI-PMH>",
    );
    bare.body("/news", "<?xml version=\"1.0\"?>\n<rss version=\"2.0\"><channel/></rss>");
    bare.body("/broken.html", "<html><head><link rel=resourcesync href=/gone.xml></head></html>");
    bare.body("/useless.html", "<html><head><link rel=resourcesync href=/></head></html>");
    for (path, code, word) in [
        ("/", "discover.page", "web page"),
        ("/oai", "discover.oai-pmh", "OAI-PMH"),
        ("/news", "discover.nothing", "RSS"),
        ("/broken.html", "http.status", "/gone.xml"),
        ("/useless.html", "discover.nothing", "links to no ResourceSync document"),
    ] {
        let copy = copy_of(bare.url(path), None);
        for ran in [synced(&copy.options), audited(&copy.options)] {
            assert_eq!(
                (ran.exit, ran.codes.last().map(String::as_str)),
                (4, Some(code)),
                "{path}: {}",
                ran.text
            );
            assert!(ran.text.contains(word), "{path}: {}", ran.text);
        }
    }
    for url in ["papers.example.org", "ftp://papers.example.org/", "file:///etc", ""] {
        let copy = copy_of(url.to_owned(), None);
        let ran = synced(&copy.options);
        assert_eq!((ran.exit, ran.codes.as_slice()), (2, &["usage.url".to_owned()][..]), "{url}");
        assert!(
            !copy.options.folder.exists(),
            "{url}: nothing is made for an address that is none"
        );
    }
}

#[test]
fn all_sets_of_a_source_are_found_from_each_of_its_documents() {
    let server = site();
    let also = ["/sitemap.xml", "/papers/resourcelist.xml", "/maps/capabilitylist.xml"];
    for path in OF_THE_SOURCE.into_iter().chain(also) {
        let copy = copy_of(server.url(path), None);
        let found = source_sets(&copy.options, &AtomicBool::new(false)).unwrap();
        let found: Vec<_> = found.iter().map(|set| (set.name.as_str(), set.url.clone())).collect();
        let expected = ["maps", "papers"]
            .map(|name| (name, server.url(&format!("/{name}/capabilitylist.xml"))))
            .to_vec();
        assert_eq!(found, expected, "{path}");
    }
}

#[test]
fn lists_are_found_from_anywhere() {
    let mut source = Source::new();
    source.set("/d/a", "1");
    source.snapshot();
    let server = &source.server;
    let caps = server.url("/caps.xml");
    server.body(
        "/.well-known/resourcesync",
        document(
            "urlset",
            "capability=\"description\"",
            &format!("<url><loc>{caps}</loc><rs:md capability=\"capabilitylist\"/></url>"),
        ),
    );
    server.body(
        "/page.html",
        "<!DOCTYPE html><html><head><link rel=\"resourcesync\" href=\"/caps.xml\"></head></html>",
    );
    server.put("/linked", Answer::ok("text").header("Link", "</caps.xml>; rel=\"resourcesync\""));
    let up = format!("<rs:ln rel=\"up\" href=\"{caps}\"/>");
    server.body(
        "/list2.xml",
        document("urlset", "capability=\"resourcelist\"", "")
            .replace("<rs:md", &format!("{up}<rs:md")),
    );
    for path in
        ["/", "/caps.xml", "/.well-known/resourcesync", "/page.html", "/linked", "/list2.xml"]
    {
        let copy = Copy::of(server.url(path));
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{path} {:?} {}", ran.codes, ran.code());
        assert_eq!(copy.paths(), ["a"], "{path}");
        assert_eq!(copy.run().requests, 1, "{path}");
    }
}

#[test]
fn robots_and_plain_sitemaps_are_enough() {
    let server = Server::start();
    let plain = format!(
        "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>{}</loc></url></urlset>",
        server.url("/a")
    );
    server.body("/some.xml", plain);
    server.body("/a", "1");
    // A comment, a byte order mark, the old line end of Macintosh, and the same line twice.
    let some = server.url("/some.xml");
    for robots in [
        format!("User-agent: *\nSitemap: {some}\n"),
        format!("\u{feff}Sitemap: {some} # all\rSITEMAP: /some.xml\rUser-agent: *\r"),
    ] {
        server.body("/robots.txt", robots.clone());
        let copy = Copy::of(server.url("/"));
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{robots:?} {:?} {}", ran.codes, ran.code());
        assert_eq!(copy.paths(), ["a"]);
    }
}

#[test]
fn links_with_bytes_beyond_ascii_or_folded_lines_lead_on() {
    let server = site();
    for field in [
        &b"Link: </maps/capabilitylist.xml>; rel=\"resourcesync\"; title=\"caf\xc3\xa9\""[..],
        b"Link: </\xe9>; rel=\"resourcesync\", </maps/capabilitylist.xml>; rel=\"resourcesync\"; title=\"\xe9\"",
        b"Link: </never>; rel=\"next\r\nLink: </maps/capabilitylist.xml>;\r\n\trel=resourcesync",
    ] {
        let head = [b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n", field, b"\r\n"].concat();
        server.put("/about.txt", Answer::raw([&head[..], b"Content-Length: 1\r\n\r\nx"].concat()));
        let ran = synced(&copy_of(server.url("/about.txt"), None).options);
        assert_eq!(ran.exit, 0, "{} {}", field.escape_ascii(), ran.text);
    }
}

#[test]
fn sitemaps_are_read_in_the_encoding_they_are_in() {
    let server = Server::start();
    server.body("/caf%C3%A9", "1");
    let document = |declaration: &str| {
        let url = server.url("/caf\u{e9}");
        format!(
            "{declaration}<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"><url><loc>{url}</loc></url></urlset>"
        )
    };
    let latin = |text: String| {
        text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect::<Vec<_>>()
    };
    let utf_16 = |to_bytes: fn(u16) -> [u8; 2]| {
        let text = document("\u{feff}<?xml version='1.0' encoding='UTF-16'?>");
        text.encode_utf16().flat_map(to_bytes).collect::<Vec<_>>()
    };
    for (media_type, bytes) in [
        ("application/xml", utf_16(u16::to_be_bytes)),
        ("application/xml", utf_16(u16::to_le_bytes)),
        ("application/xml", latin(document("<?xml version='1.0' encoding='ISO-8859-1'?>"))),
        ("text/xml", latin(document("<?xml version='1.0' encoding='windows-1252'?>"))),
        ("text/xml; charset=ISO-8859-1", latin(document(""))),
        ("text/xml; charset=ISO-8859-1", document("").into_bytes()),
    ] {
        server.put("/s.xml", Answer::ok(&*bytes).header("Content-Type", media_type));
        let copy = Copy::of(server.url("/s.xml"));
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{media_type} {:?} {}", ran.reported, bytes.escape_ascii());
        assert_eq!(copy.paths(), ["%_caf%C3%A9"], "{media_type}");
    }
}

#[test]
fn a_resource_leads_to_its_source_whatever_it_is() {
    let server = site();
    let gzip = |bytes: &[u8]| {
        let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut out, bytes).unwrap();
        out.finish().unwrap()
    };
    let rdf =
        b"<?xml version='1.0'?><r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#'/>";
    let svg = b"<svg xmlns='http://www.w3.org/2000/svg'/>";
    let oai = b"<OAI-PMH xmlns='http://www.openarchives.org/OAI/2.0/'/>";
    let turtle = b"<http://h/a> a <http://h/B> .";
    let (packed, warc) = (gzip(rdf), gzip(b"WARC/1.1\r\nWARC-Type: warcinfo\r\n"));
    for bytes in [
        &rdf[..],
        svg,
        oai,
        turtle,
        b"<rss version='2.0'/>",
        b"PK\x03\x04 and so on",
        b"\xff\xfe<\0a\0/\0>\0",
        b"{\"@id\": \"http://h/a\"}",
        &packed,
        &warc,
    ] {
        let link = "</maps/capabilitylist.xml>; rel=\"resourcesync\"";
        server.put("/a", Answer::ok(bytes).header("Link", link));
        let ran = synced(&copy_of(server.url("/a"), None).options);
        assert_eq!(ran.exit, 0, "{} {}", bytes.escape_ascii(), ran.text);
    }
    // Documents are themselves.
    let sitemap = server.page("/sitemap.xml");
    for bytes in [gzip(&sitemap), sitemap] {
        let link = "</nothing>; rel=\"resourcesync\"";
        server.put("/some.xml", Answer::ok(bytes).header("Link", link));
        let ran = synced(&copy_of(server.url("/some.xml"), None).options);
        assert_eq!(ran.exit, 0, "{}", ran.text);
    }
}

#[test]
fn a_source_of_several_sets_requires_a_choice() {
    let mut source = Source::new();
    source.set("/a", "1");
    source.snapshot();
    let server = &source.server;
    let caps = format!(
        "<url><loc>{0}/caps.xml</loc></url><url><loc>{0}/other/caps.xml</loc></url>",
        server.base
    );
    server.body("/description.xml", document("urlset", "capability=\"description\"", &caps));
    let mut copy = Copy::of(server.url("/description.xml"));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.code()), (2, "discover.set"));
    assert!(ran.result.unwrap_err().to_string().contains("/other/caps.xml"));
    copy.options.set = Some("caps.xml".to_owned());
    assert_eq!(copy.try_run().code(), "discover.set");
    copy.options.set = Some(server.url("/caps.xml"));
    assert_eq!(copy.try_run().exit(), 0);
    assert_eq!(copy.run().requests, 1);
}

#[test]
fn an_unsuccessful_discovery_reports_what_was_tried() {
    let server = Server::start();
    let text = || {
        let ran = Copy::of(server.url("/")).try_run();
        assert_eq!((ran.exit(), ran.code()), (4, "discover.nothing"));
        ran.result.unwrap_err().to_string()
    };
    let tried = text();
    for path in [
        "/.well-known/resourcesync",
        "/robots.txt",
        "/sitemap.xml",
        "/",
        "/.well-known/host-meta",
        "/.well-known/host-meta.json",
    ] {
        let line = format!("tried {}: the server answered 404", server.url(path));
        assert_eq!(tried.matches(&line).count(), 1, "{path} {tried}");
    }
    assert!(tried.contains("help:"), "{tried}");
    let json = |href: &str| format!("{{\"links\":[{{\"rel\":\"sitemap\",\"href\":\"{href}\"}}]}}");
    for (href, said) in [
        (
            "http://elsewhere.example/s.xml",
            "links to http://elsewhere.example/s.xml: not on the host",
        ),
        ("/.well-known/host-meta.json", "links to no document"),
    ] {
        server.body("/.well-known/host-meta.json", json(href));
        let tried = text();
        let line = format!("tried {}: it {said}", server.url("/.well-known/host-meta.json"));
        assert!(tried.contains(&line), "{tried}");
    }
    // The target of a link is read, and the error contains the link.
    server.body("/.well-known/host-meta.json", json("/text"));
    server.body("/text", "ok");
    let ran = Copy::of(server.url("/")).try_run();
    let text = ran.result.unwrap_err().to_string();
    assert!(text.contains("/.well-known/host-meta.json links to"), "{text}");
}
