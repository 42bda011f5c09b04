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
        (&twice, "200 OK", "200 OK", "/one.xml more than once", "/one.xml more than once", false),
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
