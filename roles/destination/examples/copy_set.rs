//! Copies a set into a folder, and copies it again: here from a server on this machine.
#![allow(clippy::print_stdout)]

use abreast_destination::{Event, SyncOptions, sync};
use abreast_testkit::http::{Server, send};
use std::sync::atomic::AtomicBool;

const NAMESPACES: &str = "xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\"";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let source = Server::new(|request, stream| {
        let base = format!("http://{}", request.header("host").unwrap_or_default());
        let body = match request.target() {
            "/list.xml" => format!(
                "<urlset {NAMESPACES}><rs:md capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"/>\
                 <url><loc>{base}/papers/a.txt</loc><rs:md length=\"5\"/></url></urlset>"
            ),
            "/papers/a.txt" => "hello".to_owned(),
            _ => return send(stream, "404 Not Found", "", b""),
        };
        send(stream, "200 OK", "", body.as_bytes())
    });
    let folder = tempfile::tempdir()?;
    let copy = folder.path().join("copy");
    let options = SyncOptions::new(source.url("/list.xml"), &copy);
    let observer = |event: &Event<'_>| {
        if let Event::Error(problem) | Event::Notice(problem) = event {
            println!("{}: {}", problem.uri, problem.message);
        }
    };
    for expected in [1, 0] {
        let summary = sync(&options, &observer, &AtomicBool::new(false))?;
        println!(
            "{} new, {} updated, {} deleted",
            summary.created, summary.updated, summary.deleted
        );
        assert_eq!(summary.created, expected);
    }
    Ok(())
}
