//! Validates a site from one URL: here a server on this machine that publishes one document.
#![allow(clippy::print_stdout)]

use abreast_testkit::http::{Server, send};
use abreast_validator::{Options, text, validate};
use std::sync::atomic::AtomicBool;

fn main() {
    let site = Server::new(|request, stream| {
        if request.target() != "/capabilitylist.xml" {
            return send(stream, "404 Not Found", "", b"");
        }
        let base = format!("http://{}", request.header("host").unwrap_or_default());
        let document = format!(
            "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
             xmlns:rs=\"http://www.openarchives.org/rs/terms/\"><rs:md capability=\"capabilitylist\"/>\
             <url><loc>{base}/list.xml</loc><rs:md capability=\"resourcelist\"/></url></urlset>"
        );
        send(stream, "200 OK", "Content-Type: application/xml\r\n", document.as_bytes())
    });
    let options = Options::new(vec![site.url("/capabilitylist.xml")]);
    let report = validate(&options, &AtomicBool::new(false));
    // The Resource List that it names is missing.
    print!("{}", text(&report));
    assert!(!report.findings.is_empty());
}
