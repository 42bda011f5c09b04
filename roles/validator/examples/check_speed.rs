//! Time to check a document, beside reading it: `cargo run --release --example check_speed
//! [ENTRIES]`
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use abreast_resourcesync::v1_1::Document;
use abreast_validator::{Mode, check_document};
use std::fmt::Write as _;
use std::time::Instant;

fn main() {
    let entries: usize = std::env::args().nth(1).map_or(50_000, |text| text.parse().unwrap());
    let mut text = String::from(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" \
         xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\n  <rs:ln rel=\"up\" href=\"http://example.org/c.xml\"/>\n  \
         <rs:md at=\"2026-01-01T00:00:00Z\" capability=\"resourcelist\"/>\n",
    );
    for number in 0..entries {
        let _ = write!(
            text,
            "  <url>\n    <loc>http://example.org/collection/{:03}/resource-{number}.txt</loc>\n    \
             <lastmod>2025-12-01T00:00:00Z</lastmod>\n    <rs:md hash=\"md5:{number:032x}\" length=\"{number}\" \
             type=\"text/plain\"/>\n  </url>\n",
            number / 1_000
        );
    }
    text += "</urlset>\n";
    for round in 0..3 {
        let begun = Instant::now();
        let read = Document::from_slice(text.as_bytes()).unwrap().entries.len();
        let reading = begun.elapsed();
        let begun = Instant::now();
        let found = check_document("list", text.as_bytes(), Mode::Normal).len();
        let judging = begun.elapsed();
        println!(
            "round {round}: {read} entries, {} bytes: read in {reading:?}, judged in {judging:?} ({:.2} times), {found} found",
            text.len(),
            judging.as_secs_f64() / reading.as_secs_f64()
        );
    }
}
