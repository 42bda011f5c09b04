//! Users and passwords of URLs are in no message, report or log, however the URL is written.

use crate::world::abreast;
use abreast_testkit::http::{Server, send};
use abreast_testkit::run;
use std::fs;
use std::path::Path;

/// Spellings of a URL with a password that has `plan` in it; the host answers nothing.
const SPELLINGS: [&str; 16] = [
    "http://joe:planted@127.0.0.1:9/x",
    "HTTP://joe:planted@127.0.0.1:9/x",
    "http://joe:my planted@127.0.0.1:9/x",
    "http://joe:planted pass@127.0.0.1:9/x",
    "http://joe:planted\tpass@127.0.0.1:9/x",
    "http://joe:12 planted@127.0.0.1:9/x",
    "http://joe:planted@pass word@127.0.0.1:9/x",
    "http://joe:plan/ted@h:x/",
    "http://joe:plan`ted@h:x/",
    "http://joe:plan\"ted@h:x/",
    "http:/joe:planted@127.0.0.1:9/x",
    "http:joe:planted@127.0.0.1:9",
    "http:joe:my planted@127.0.0.1:9",
    "//joe:planted@127.0.0.1:9/x",
    "joe:planted@127.0.0.1:9/x",
    "joe:planted@h",
];

/// Everything that a command prints.
fn printed(words: &[String], format: &str, place: &Path) -> String {
    let mut command = abreast();
    command.args(words).env("ABREAST_LOG_FORMAT", format).current_dir(place);
    let output = run(&mut command);
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Options that are added to a command, and the format of its log.
const WAYS: [(&str, &str); 4] =
    [("", "text"), ("--json", "json"), ("-vv", "json"), ("-vv", "text")];

/// The command lines that print a login. Each is run in another way than the one before it.
fn leaks(commands: &[&[&str]], url: &str, place: &Path, way: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, words) in commands.iter().enumerate() {
        let (option, format) = WAYS[(number + way) % WAYS.len()];
        let mut words: Vec<String> = words.iter().map(|word| word.replace("URL", url)).collect();
        let has_json = ["sync", "audit", "explore", "import", "doctor"].contains(&&*words[0]);
        if !option.is_empty() && (has_json || option != "--json") {
            words.push(option.to_owned());
        }
        let text = printed(&words, format, place);
        if text.contains("plan") {
            wrong.push(format!("{words:?} ({format}):\n{text}"));
        }
    }
    wrong
}

#[test]
fn no_output_has_the_login_of_an_argument() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("papers")).unwrap();
    fs::write(place.path().join("lines"), "{\"uri\":\"http://h/a\"}\n").unwrap();
    let mut wrong = Vec::new();
    for (way, url) in SPELLINGS.into_iter().enumerate() {
        wrong.extend(leaks(
            &[
                &["sync", "URL", "copy", "--retries", "0"],
                &["sync", "http://127.0.0.1:9/", "copy", "--proxy", "URL", "--retries", "0"],
                &["sync", "http://127.0.0.1:9/", "sparql:URL", "--state", "s", "--retries", "0"],
                &["audit", "URL", "papers", "--retries", "0"],
                &["validate", "URL", "--retries", "0"],
                &["explore", "URL", "--retries", "0"],
                &["subscribe", "URL"],
                &["log", "papers", "--server", "URL"],
                &["import", "papers", "lines", "--server", "URL"],
                &["hub", "topics", "--server", "URL"],
                &["serve", "papers", "--listen", "nowhere", "--base-url", "URL"],
                &["serve", "papers", "--listen", "nowhere", "--hub", "URL"],
                &["hub", "--listen", "nowhere", "--base-url", "URL"],
                &["build", "papers", "--copy", "--out", "papers", "--base-url", "URL"],
                &["doctor", "URL"],
                &["config", "check", "URL"],
            ],
            url,
            place.path(),
            way,
        ));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_output_has_the_login_of_a_document() {
    let place = tempfile::tempdir().unwrap();
    let mut wrong = Vec::new();
    for (way, url) in SPELLINGS.into_iter().enumerate() {
        let server = Server::new(move |request, stream| {
            let host = request.header("host").unwrap_or_default();
            let loc = url.replace('"', "&quot;");
            let list = |capability: &str, body: &str| {
                format!(
                    "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\
                     <rs:md capability=\"{capability}\" at=\"2026-01-01T00:00:00Z\"/>{body}</urlset>"
                )
            };
            let body = match request.path() {
                "/list.xml" => list(
                    "resourcelist",
                    &format!(
                        "<url><loc>{loc}</loc><lastmod>2026-01-01</lastmod><rs:ln rel=\"describedby\" href=\"{loc}\"/></url>\
                         <url><loc>http://{host}/a</loc><rs:md length=\"many\"/><rs:ln rel=\"up\" href=\"{loc}\"/></url>\
                         <url><loc>{loc}</loc><rs:md type=\"{loc}\"/></url>"
                    ),
                ),
                "/capabilities.xml" => list(
                    "capabilitylist",
                    &format!(
                        "<rs:ln rel=\"up\" href=\"{loc}\"/><url><loc>http://{host}/list.xml</loc><rs:md capability=\"resourcelist\"/></url>\
                         <url><loc>{loc}</loc><rs:md capability=\"changelist\"/></url>"
                    ),
                ),
                "/feed" => format!(
                    "{{\"@context\":\"http://iiif.io/api/discovery/1/context.json\",\"id\":{0},\"type\":\"OrderedCollection\",\
                     \"last\":{{\"id\":{0},\"type\":\"OrderedCollectionPage\"}}}}",
                    serde_json::Value::from(url)
                ),
                "/a" => "a".to_owned(),
                _ => String::new(),
            };
            let status = if body.is_empty() { "404 Not Found" } else { "200 OK" };
            send(stream, status, "", body.as_bytes())
        });
        for (number, start) in ["list.xml", "capabilities.xml", "feed"].iter().enumerate() {
            let start = server.url(&format!("/{start}"));
            wrong.extend(leaks(
                &[
                    &["sync", "URL", "copy", "--retries", "0"],
                    &["sync", "URL", "copy", "--retries", "0", "--strict"],
                    &["sync", "URL", "other", "--retries", "0", "--lenient", "--dry-run"],
                    &["audit", "URL", "copy", "--retries", "0"],
                    &["explore", "URL", "--retries", "0"],
                    &["validate", "URL", "--retries", "0"],
                    &["validate", "URL", "--retries", "0", "--format", "json"],
                    &["validate", "URL", "--retries", "0", "--format", "html"],
                ],
                &start,
                place.path(),
                way + number,
            ));
            let _ = fs::remove_dir_all(place.path().join("copy"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
