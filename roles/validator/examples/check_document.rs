//! Checks the bytes of one document, with and without recommendations.
#![allow(clippy::print_stdout)]

use abreast_validator::{Mode, check_document, severity_word};

const LIST: &[u8] = br#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
    xmlns:rs="http://www.openarchives.org/rs/terms/">
  <rs:md capability="changelist" from="2026-01-01T00:00:00Z"/>
  <url><loc>https://example.org/a.pdf</loc>
    <rs:md change="modified" datetime="2026-01-01T07:00:00Z"/></url>
</urlset>"#;

fn main() {
    for mode in [Mode::Normal, Mode::Strict] {
        println!("{mode:?}:");
        let findings = check_document("changelist.xml", LIST, mode);
        for found in &findings {
            let severity = severity_word(found.severity);
            println!("  line {}: {severity} {}: {}", found.line, found.rule.id, found.message);
        }
        assert!(findings.iter().any(|found| found.rule.id == "RS-12.1-change-value"));
    }
}
