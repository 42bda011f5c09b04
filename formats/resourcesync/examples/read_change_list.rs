//! Reads a Change List entry by entry, in constant memory.
#![allow(clippy::print_stdout)]

use abreast_resourcesync::v1_1::{Capability, Entry, ReadError, Reader};

const LIST: &[u8] = br#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
    xmlns:rs="http://www.openarchives.org/rs/terms/">
  <rs:md capability="changelist" from="2026-01-01T00:00:00Z"/>
  <url><loc>https://example.org/a.pdf</loc>
    <rs:md change="updated" datetime="2026-01-01T06:00:00Z" length="8876"/></url>
  <url><loc>https://example.org/b.pdf</loc>
    <rs:md change="deleted" datetime="2026-01-01T07:00:00Z"/></url>
</urlset>"#;

fn main() -> Result<(), ReadError> {
    // Any `Read` will do: a file, a pipe, the body of an answer.
    let mut reader = Reader::new(LIST);
    assert_eq!(reader.head()?.capability, Some(Capability::ChangeList));
    let (mut entry, mut count) = (Entry::default(), 0);
    while reader.next(&mut entry)? {
        let change = entry.change.map_or("unknown", |change| change.token());
        println!("line {}: {} {change}", entry.line, entry.loc);
        count += 1;
    }
    // Only now is it known that the list was complete.
    assert_eq!(count, 2);
    Ok(())
}
