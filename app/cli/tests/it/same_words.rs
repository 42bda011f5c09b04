//! The same document through `validate`, `explore` and `sync`: what one refuses, all refuse, in the same
//! words.

use crate::world::abreast;
use abreast_testkit::{http, run};
use serde_json::Value;
use std::io::{Cursor, Write as _};
use std::process::Output;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const URLSET: &str = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\">";
const INDEX: &str = "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\">";
const MD: &str = "<rs:md capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"/>";
const A: &str = "<url><loc>{B}/a</loc><rs:md length=\"1\"/></url>";

/// A package with one resource.
fn package(base: &str) -> Vec<u8> {
    let manifest = format!(
        "{URLSET}<rs:md capability=\"resourcedump-manifest\" at=\"2026-01-01T00:00:00Z\"/>\
         <url><loc>{base}/a</loc><rs:md length=\"1\" path=\"/a\"/></url></urlset>"
    );
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in [("manifest.xml", manifest.as_bytes()), ("a", b"a")] {
        zip.start_file(name, SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The outputs of the three commands for `/list.xml`.
struct Outputs {
    validate: String,
    explore: String,
    sync: String,
    is_synced: bool,
}

impl Outputs {
    /// All of them, for messages.
    fn all(&self, what: &str) -> String {
        let Self { validate, explore, sync, .. } = self;
        format!("== {what}\n-- validate\n{validate}\n-- explore\n{explore}\n-- sync\n{sync}")
    }
}

fn all(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

fn outputs(list: String, status: &'static str, of_resource: &'static str) -> Outputs {
    let server = http::Server::new(move |request, stream| {
        let base = format!("http://{}", request.header("host").unwrap_or_default());
        let headers = "Content-Type: application/xml\r\nETag: \"1\"\r\nRetry-After: 7200\r\n";
        match request.path() {
            "/list.xml" => {
                http::send(stream, status, headers, list.replace("{B}", &base).as_bytes())
            }
            "/one.xml" => {
                let one = format!("{URLSET}{MD}{A}</urlset>").replace("{B}", &base);
                http::send(stream, "200 OK", headers, one.as_bytes())
            }
            "/changes.xml" => {
                let changes = format!(
                    "{URLSET}<rs:md capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"/><url><loc>{{B}}/a</loc><rs:md change=\"created\" datetime=\"2026-01-02T00:00:00Z\"/></url></urlset>"
                );
                http::send(stream, "200 OK", headers, changes.replace("{B}", &base).as_bytes())
            }
            "/dump.xml" => {
                let dump = format!(
                    "{URLSET}<rs:md capability=\"resourcedump\" at=\"2026-01-01T00:00:00Z\"/><url><loc>{{B}}/p.zip</loc></url></urlset>"
                );
                http::send(stream, "200 OK", headers, dump.replace("{B}", &base).as_bytes())
            }
            "/p.zip" => http::send(stream, "200 OK", "", &package(&base)),
            "/a" => http::send(stream, of_resource, "", b"a"),
            _ => http::send(stream, "404 Not Found", "", b""),
        }
    });
    outputs_at(&server)
}

fn outputs_at(server: &http::Server) -> Outputs {
    let (url, copy) = (server.url("/list.xml"), tempfile::tempdir().unwrap());
    let validate = run(abreast().args(["validate", &url, "--retries", "0"]));
    let explore = run(abreast().args(["explore", &url, "--json", "--retries", "0"]));
    let sync = run(abreast().args(["sync", &url, "--retries", "0"]).arg(copy.path().join("copy")));
    Outputs {
        validate: all(&validate),
        explore: all(&explore),
        is_synced: sync.status.success(),
        sync: all(&sync),
    }
}

/// The problem of the list that `explore` shows.
fn problem(explore: &str) -> Option<String> {
    let lines = explore.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut lists =
        lines.filter(|line| line["url"].as_str().is_some_and(|url| url.ends_with("/list.xml")));
    lists.next()?["problem"].as_str().map(str::to_owned)
}

#[test]
fn what_one_command_refuses_all_refuse_in_the_same_words() {
    let resource = |md: &str| format!("<url><loc>{{B}}/a</loc>{md}</url>");
    let list = |content: &str| format!("{URLSET}{content}</urlset>");
    for (content, words) in [
        (format!("{A}{MD}"), "`rs:md`"),
        (format!("{MD}{MD}{A}"), "`rs:md`"),
        (MD.to_owned() + &resource("<rs:md length=\"99999999999999999999\"/>"), "length"),
        (MD.to_owned() + &resource("<rs:md length=\"-1\"/>"), "length"),
        (MD.to_owned() + &resource("<lastmod>yesterday</lastmod>"), "yesterday"),
        (MD.to_owned() + &resource("<rs:md/><rs:md/>"), "`rs:md`"),
        (MD.to_owned() + &resource("<loc>{B}/b</loc>"), "`loc`"),
        (MD.to_owned() + "<url><lastmod>2026-01-01</lastmod></url>", "`loc`"),
        (format!("<rs:md capability=\"resource list\" at=\"2026\"/>{A}"), "resource list"),
        (format!("{MD}<url>{A}</url>"), "`url`"),
        (MD.to_owned() + &resource("<rs:md change=\"gone\"/>"), "gone"),
    ] {
        let outputs = outputs(list(&content), "200 OK", "200 OK");
        let (validate, explore, sync) = (&outputs.validate, &outputs.explore, &outputs.sync);
        let all = format!(
            "== {content}\n-- validate\n{validate}\n-- explore\n{explore}\n-- sync\n{sync}"
        );
        let problem = problem(explore).unwrap_or_else(|| panic!("no problem: {all}"));
        assert!(problem.contains(words), "{problem}: {all}");
        let message = problem.split_once(": ").map_or(&*problem, |(_, message)| message);
        assert!(!outputs.is_synced && sync.contains(&problem), "{problem}: {all}");
        assert!(validate.contains(message), "{message}: {all}");
    }
}

#[test]
fn a_uri_that_cannot_be_used_is_named_alike() {
    for (uri, fault) in [
        ("http:///x", "has no host"),
        ("http://[zz]/x", "has a host that is not a name or an address"),
        ("http://h:99999/x", "has a port that is not a number up to 65535"),
    ] {
        let list = format!("{URLSET}{MD}{A}<url><loc>{uri}</loc></url></urlset>");
        let outputs = outputs(list, "200 OK", "200 OK");
        let (validate, explore, sync) = (&outputs.validate, &outputs.explore, &outputs.sync);
        let all =
            format!("== {uri}\n-- validate\n{validate}\n-- explore\n{explore}\n-- sync\n{sync}");
        assert!(validate.contains(fault), "{all}");
        assert!(problem(explore).is_some_and(|problem| problem.ends_with(fault)), "{all}");
        assert!(!outputs.is_synced && sync.contains(fault), "{all}");
        assert!(!sync.contains("--allow-host"), "{all}");
    }
}

#[test]
fn what_copies_read_once_is_a_warning() {
    const CHANGES: &str = "<rs:md capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"/>";
    const DUMP: &str = "<rs:md capability=\"resourcedump\" at=\"2026-01-01T00:00:00Z\"/>";
    let one = |path: &str| format!("<sitemap><loc>{{B}}{path}</loc></sitemap>");
    let package = "<url><loc>{B}/p.zip</loc></url>";
    for (list, words) in [
        (format!("{INDEX}{CHANGES}{0}{0}</sitemapindex>", one("/changes.xml")), "more than once"),
        (
            format!("{INDEX}{CHANGES}{}{}</sitemapindex>", one("/changes.xml"), one("/list.xml")),
            "names itself",
        ),
        (format!("{INDEX}{DUMP}{0}{0}</sitemapindex>", one("/dump.xml")), "more than once"),
        (
            format!("{INDEX}{DUMP}{}{}</sitemapindex>", one("/dump.xml"), one("/list.xml")),
            "names itself",
        ),
        (format!("{URLSET}{DUMP}{package}{package}</urlset>"), "more than once"),
    ] {
        let outputs = outputs(list.clone(), "200 OK", "200 OK");
        let (validate, explore, sync) = (&outputs.validate, &outputs.explore, &outputs.sync);
        let all =
            format!("== {list}\n-- validate\n{validate}\n-- explore\n{explore}\n-- sync\n{sync}");
        assert_eq!(problem(explore), None, "{all}");
        assert!(outputs.is_synced, "{all}");
        let is_warning = |line: &str| line.contains("warning") && line.contains(words);
        assert!(validate.lines().any(is_warning), "{all}");
    }
}

#[test]
fn answers_and_indexes_are_judged_alike() {
    let list = format!("{URLSET}{MD}{A}</urlset>");
    let one = "<sitemap><loc>{B}/one.xml</loc></sitemap>";
    let twice = format!("{INDEX}{MD}{one}{one}</sitemapindex>");
    let changes =
        format!("{INDEX}{MD}{one}<sitemap><loc>{{B}}/changes.xml</loc></sitemap></sitemapindex>");
    let itself = format!("{INDEX}{MD}<sitemap><loc>{{B}}/list.xml</loc></sitemap></sitemapindex>");
    for (list, status, of_resource, words, of_explore, is_synced) in [
        (&list, "200 OK", "200 OK", "Resource List", "Resource List", true),
        (
            &list,
            "203 Non-Authoritative Information",
            "203 Non-Authoritative Information",
            "Resource List",
            "Resource List",
            true,
        ),
        (
            &list,
            "202 Accepted",
            "200 OK",
            "still being made (202)",
            "still being made (202)",
            false,
        ),
        (&list, "200 OK", "202 Accepted", "still being made (202)", "Resource List", false),
        (
            &list,
            "201 Created",
            "200 OK",
            "the server answered 201",
            "the server answered 201",
            false,
        ),
        (
            &twice,
            "200 OK",
            "200 OK",
            "/one.xml is named more than once",
            "/one.xml is named more than once",
            false,
        ),
        (
            &changes,
            "200 OK",
            "200 OK",
            "/changes.xml is a Change List, not a Resource List",
            "/changes.xml is a Change List, not a Resource List",
            false,
        ),
        (&itself, "200 OK", "200 OK", "names itself", "names itself", false),
    ] {
        let outputs = outputs(list.clone(), status, of_resource);
        let (validate, explore, sync) = (&outputs.validate, &outputs.explore, &outputs.sync);
        let all = format!(
            "== {status} {list}\n-- validate\n{validate}\n-- explore\n{explore}\n-- sync\n{sync}"
        );
        // Other rules of a Source are broken, since it is one list only.
        let refused =
            ["copies refuse", "RS-10.1-available", "cannot be read", "more than once", "itself"];
        assert!(!is_synced || !refused.iter().any(|word| validate.contains(word)), "{all}");
        assert!(validate.contains(words), "{all}");
        assert!(explore.contains(of_explore), "{all}");
        assert_eq!(outputs.is_synced, is_synced, "{all}");
        assert!(is_synced || sync.contains(words), "{all}");
    }
}

/// The outputs of the commands for documents whose media type and bytes a test chooses.
fn outputs_of(pages: Vec<(&'static str, &'static str, Vec<u8>)>) -> Outputs {
    let server = http::Server::new(move |request, stream| {
        let base = format!("http://{}", request.header("host").unwrap_or_default());
        let found = pages.iter().find(|(path, ..)| *path == request.path());
        let Some((_, headers, body)) = found else {
            return http::send(stream, "404 Not Found", "", b"");
        };
        let headers = format!("{}\r\nETag: \"1\"\r\n", headers.replace("{B}", &base));
        let body = replaced(body, "{B}".as_bytes(), base.as_bytes());
        let body = replaced(&body, &utf_16("{B}"), &utf_16(&base));
        http::send(stream, "200 OK", &headers, &body)
    });
    outputs_at(&server)
}

/// Bytes with others in place of a pattern.
fn replaced(body: &[u8], pattern: &[u8], other: &[u8]) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), body);
    while let Some(at) = rest.windows(pattern.len()).position(|window| window == pattern) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(other);
        rest = &rest[at + pattern.len()..];
    }
    out.extend_from_slice(rest);
    out
}

fn utf_16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn latin_1(text: &str) -> Vec<u8> {
    text.chars().map(|character| u8::try_from(u32::from(character)).unwrap()).collect()
}

const XML: &str = "Content-Type: application/xml";
const MODIFIED: &str = "<x:meta xmlns:x=\"http://www.w3.org/1999/xhtml\" name=\"DCTERMS.modified\" content=\"2026-01-01T00:00:00Z\"/>";

#[test]
fn the_charset_of_the_answer_counts_for_all() {
    let documents = [
        format!("{URLSET}<!-- \u{e9} -->{MD}{A}</urlset>"),
        format!("{URLSET}<!-- \u{e9} --><url><loc>{{B}}/a</loc></url></urlset>"),
        format!("{URLSET}<!-- \u{e9} -->{MODIFIED}<url><loc>{{B}}/a</loc></url></urlset>"),
        "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>\u{e9}</title></feed>".to_owned(),
    ];
    for document in documents {
        for (headers, is_read) in [
            ("Content-Type: application/xml; charset=ISO-8859-1", true),
            ("Content-Type: application/xml", false),
        ] {
            let outputs = outputs_of(vec![
                ("/list.xml", headers, latin_1(&document)),
                ("/a", "Content-Type: text/plain", b"a".to_vec()),
            ]);
            let all = outputs.all(&document);
            for output in [&outputs.validate, &outputs.explore, &outputs.sync] {
                assert_eq!(!output.contains("0xe9 is not UTF-8 here"), is_read, "{headers} {all}");
            }
        }
    }
}

#[test]
fn what_is_read_otherwise_is_reported_alike() {
    let entry =
        |inside: &str| format!("{URLSET}{MD}<url><loc>{{B}}/a</loc>{inside}</url></urlset>");
    let text = "text between elements: \"rs:ln/>\"";
    let mut rows = vec![
        (entry("<rs:md length=\"1\">rs:ln/></rs:md>"), text),
        (entry("rs:ln/>"), text),
        (
            format!(
                "{URLSET}<rs:md capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\">rs:ln/></rs:md>{A}</urlset>"
            ),
            text,
        ),
        (
            format!(
                "{URLSET}{MD}<rs:ln rel=\"describedby\" href=\"{{B}}/x\">rs:ln/></rs:ln>{A}</urlset>"
            ),
            text,
        ),
        (
            entry("<rs:md hash=\"md5:12\"/>"),
            "\"md5:12\" of `hash` has 2 hex digits; a digest of md5 has 32",
        ),
        (
            format!("{URLSET}{MD}<url><loc>\u{a0}{{B}}/a\u{feff}</loc></url></urlset>"),
            "`loc` has white space around it",
        ),
        (
            format!("{URLSET}{MODIFIED}<url><loc>\u{a0}{{B}}/a</loc></url></urlset>"),
            "`loc` has white space around it",
        ),
    ];
    for nothing in ["null", "-", "Z", "NULL", "n/a", "--", "+00:00"] {
        let lastmod = format!("<lastmod>{nothing}</lastmod>");
        let words: &str =
            Box::leak(format!("`lastmod` is \"{nothing}\", without a date; ignored").into());
        rows.push((entry(&lastmod), words));
        rows.push((
            format!("{URLSET}{MODIFIED}<url><loc>{{B}}/a</loc>{lastmod}</url></urlset>"),
            words,
        ));
    }
    for (list, words) in rows {
        let outputs = outputs(list.clone(), "200 OK", "200 OK");
        let all = outputs.all(&list);
        assert_eq!(problem(&outputs.explore), None, "{all}");
        assert!(outputs.is_synced, "{all}");
        assert!(outputs.validate.contains(words) && outputs.sync.contains(words), "{words} {all}");
    }
}

#[test]
fn sets_of_0_1_are_judged_alike() {
    const OTHERS: &str = "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\
        <url><loc rs:protocol=\"http://www.openarchives.org/OAI/openarchivesprotocol.html\">{B}/oai</loc></url></urlset>";
    const ONLY_OTHERS: &str =
        "lists no resource, only addresses of other protocols, such as OAI-PMH: 1";
    const CHANGE_SET: &str = "http://www.openarchives.org/rs/changeset";
    let one = "<url><loc>{B}/a</loc><lastmod>2026-01-01T00:00:00Z</lastmod></url>";
    let change =
        "<url><loc>{B}/a</loc><lastmod rs:type=\"updated\">2026-01-02T00:00:00Z</lastmod></url>";
    let list = |inside: &str| format!("{URLSET}{MODIFIED}{inside}</urlset>");
    let index = |paths: [&str; 2]| {
        let entries = paths.map(|path| format!("<sitemap><loc>{{B}}{path}</loc></sitemap>"));
        format!("{INDEX}{MODIFIED}{}</sitemapindex>", entries.concat())
    };
    let linked = |path: &str| {
        let link = format!(
            "<x:link xmlns:x=\"http://www.w3.org/1999/xhtml\" rel=\"current {CHANGE_SET}\" href=\"{{B}}{path}\"/>"
        );
        list(&(link + one))
    };
    let others = OTHERS.to_owned();
    // An index that shows no version.
    let plain =
        |path: &str| format!("{INDEX}<sitemap><loc>{{B}}{path}</loc></sitemap></sitemapindex>");
    for (document, words, is_refused) in [
        (index(["/one.xml", "/one.xml"]), "/one.xml is named more than once", true),
        (index(["/one.xml", "/list.xml"]), "it names itself", true),
        (index(["/one.xml", "/set.xml"]), "/set.xml is not a Sitemap: it is a change set", true),
        (
            linked("/one.xml"),
            "/one.xml is not a change set: neither its root nor the entry in line 1 states that it is about changes",
            true,
        ),
        (linked("/untyped.xml"), "a change set without `rs:type`; read as a change set", false),
        (others, ONLY_OTHERS, true),
        (plain("/others.xml"), ONLY_OTHERS, true),
    ] {
        let typed = list(change).replace("<urlset", "<urlset rs:type=\"changeset\"");
        let outputs = outputs_of(vec![
            ("/list.xml", XML, document.clone().into_bytes()),
            ("/one.xml", XML, list(one).into_bytes()),
            ("/untyped.xml", XML, list(change).into_bytes()),
            ("/set.xml", XML, typed.into_bytes()),
            ("/others.xml", XML, OTHERS.as_bytes().to_vec()),
            ("/a", "Content-Type: text/plain", b"a".to_vec()),
        ]);
        let all = outputs.all(&document);
        assert!(outputs.validate.contains(words), "{words} {all}");
        assert_eq!(outputs.is_synced, !is_refused, "{all}");
        if is_refused {
            assert!(outputs.sync.contains(words), "{words} {all}");
        } else {
            let line = outputs.validate.lines().find(|line| line.contains(words));
            assert!(line.is_some_and(|line| line.contains("warning")), "{all}");
            assert!(outputs.explore.contains("ResourceSync 0.1 Change Set"), "{all}");
        }
        if document.contains("sitemapindex") || words == ONLY_OTHERS {
            assert!(problem(&outputs.explore).is_some_and(|it| it.ends_with(words)), "{all}");
        }
    }
}

#[test]
fn a_resource_leads_to_its_source_whatever_it_is() {
    let gzip = {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(b"hello").unwrap();
        packed.finish().unwrap()
    };
    let (zip, note) = (
        package("http://h.example"),
        "{\"@context\":\"https://www.w3.org/ns/activitystreams\",\"id\":\"urn:x\",\"type\":\"Note\"}",
    );
    let atom = "<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>News</title><entry><id>urn:y</id>\
                <link href=\"http://h.example/a\"/></entry></feed>";
    let rdf = "<rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"/>";
    let resources: [(&str, &[u8]); 11] = [
        ("application/rdf+xml", rdf.as_bytes()),
        ("image/svg+xml", b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>"),
        ("application/gzip", &gzip),
        ("application/zip", &zip),
        ("text/turtle", b"<urn:x> a <urn:y> ."),
        ("application/ld+json", b"{\"@id\": \"urn:x\"}"),
        ("application/activity+json", note.as_bytes()),
        ("application/atom+xml", atom.as_bytes()),
        ("application/warc", b"WARC/1.1\r\nWARC-Type: warcinfo\r\n"),
        ("text/plain", b"hello"),
        ("text/plain", b""),
    ];
    for (media_type, body) in resources {
        let link = "Link: <{B}/one.xml>; rel=\"resourcesync\"";
        let headers: &str = Box::leak(format!("Content-Type: {media_type}\r\n{link}").into());
        let list = format!("{URLSET}{MD}{A}</urlset>");
        let outputs = outputs_of(vec![
            ("/list.xml", headers, body.to_vec()),
            ("/one.xml", XML, list.into_bytes()),
            ("/a", "Content-Type: text/plain", b"a".to_vec()),
        ]);
        let all = outputs.all(media_type);
        assert!(outputs.is_synced, "{all}");
        assert!(outputs.explore.contains("\"name\":\"Resource List\""), "{all}");
        assert!(outputs.explore.contains("\"name\":\"resource\""), "{all}");
        assert!(outputs.validate.contains("Resource List http"), "{all}");
        assert_eq!(problem(&outputs.explore), None, "{all}");
    }
    // Without the link it is named.
    let (json, activity) = ("application/json", "application/activity+json");
    let no_feed = ", and neither an OrderedCollection nor an OrderedCollectionPage";
    for (media_type, body, words, end) in [
        (
            "application/atom+xml",
            atom,
            "an Atom feed (\"News\") that is not of SDShare",
            ": no entry has a link of SDShare",
        ),
        (activity, note, "it is of the type Note", no_feed),
        (json, "[]", "it is a JSON array", no_feed),
        (json, "[{\"type\":\"OrderedCollection\"}]", "it is a JSON array", no_feed),
        (json, "\"x\"", "it is a JSON string", no_feed),
        (json, "-1", "it is a JSON number", no_feed),
        (json, "null", "it is JSON null", no_feed),
        (json, "true", "it is a JSON truth value", no_feed),
        (json, "{}", "it is JSON without `type`", no_feed),
    ] {
        let headers: &str = Box::leak(format!("Content-Type: {media_type}").into());
        let outputs = outputs_of(vec![("/list.xml", headers, body.as_bytes().to_vec())]);
        let (all, words) = (outputs.all(body), format!("{words}{end}"));
        assert!(!outputs.is_synced, "{all}");
        assert!(outputs.sync.contains(&words) && outputs.explore.contains(&words), "{words} {all}");
        if media_type != "application/atom+xml" {
            assert!(outputs.validate.contains(&words), "{words} {all}");
        }
    }
}

#[test]
fn texts_that_are_no_sitemap_are_named_alike() {
    const DOCTYPE: &str = "line 1, column 1: the document has a DOCTYPE, which is refused unread";
    const KOI8_R: &str = "line 1, column 1: the document declares the encoding `KOI8-R`";
    const PAGE: &str = "is a web page that leads to no ResourceSync document";
    let xml = "application/xml";
    for (list, name) in [
        (format!("{URLSET}{MD}{A}</urlset>"), "Resource List"),
        (format!("{URLSET}{MODIFIED}<url><loc>{{B}}/a</loc></url></urlset>"), "0.1 Sitemap"),
    ] {
        let html = "<html><head><title>x</title></head><body>hello</body></html>";
        let entity = "<!DOCTYPE urlset [<!ENTITY a \"b\">]>";
        for (media_type, body, refused) in [
            (xml, format!("<!DOCTYPE urlset>{list}").into_bytes(), Some(DOCTYPE)),
            (xml, format!("{entity}{list}").into_bytes(), Some(DOCTYPE)),
            (
                xml,
                format!("<?xml version=\"1.0\" encoding=\"KOI8-R\"?>{list}").into_bytes(),
                Some(KOI8_R),
            ),
            (xml, format!("<!DOCTYPE html>{html}").into_bytes(), Some(PAGE)),
            ("text/html", html.as_bytes().to_vec(), Some(PAGE)),
            ("application/xml; charset=utf-16le", utf_16(&list), None),
            ("application/xml; charset=UTF-16LE", utf_16(&list), None),
            // A text that is UTF-8 is read as such, whatever the header states.
            ("application/xml; charset=utf-16le", list.clone().into_bytes(), None),
            ("application/xml; charset=KOI8-R", list.clone().into_bytes(), None),
        ] {
            let headers: &str = Box::leak(format!("Content-Type: {media_type}").into());
            let outputs = outputs_of(vec![
                ("/list.xml", headers, body),
                ("/a", "Content-Type: text/plain", b"a".to_vec()),
            ]);
            let all = outputs.all(media_type);
            assert_eq!(outputs.is_synced, refused.is_none(), "{all}");
            if let Some(words) = refused {
                for output in [&outputs.validate, &outputs.explore, &outputs.sync] {
                    assert!(output.contains(words), "{words} {all}");
                }
            } else {
                let is_named = |output: &str| output.contains(name);
                assert!(is_named(&outputs.validate) && is_named(&outputs.explore), "{all}");
                assert_eq!(problem(&outputs.explore), None, "{all}");
            }
        }
    }
}
