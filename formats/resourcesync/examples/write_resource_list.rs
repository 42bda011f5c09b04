//! Writes a Resource List, and reads it back.
#![allow(clippy::print_stdout)]

use abreast_resourcesync::v1_1::{
    Capability, Document, Entry, Head, Ln, Root, write_end, write_entry, write_head,
};
use abreast_webtypes::{Digests, W3cDatetime, encode_segment};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let at = Some(W3cDatetime::parse(b"2026-01-03T09:00:00Z")?);
    let up = Ln {
        rel: "up".to_owned(),
        href: "https://example.org/capabilitylist.xml".to_owned(),
        ..Ln::default()
    };
    let mut list = Vec::new();
    write_head(
        &mut list,
        &Head {
            capability: Some(Capability::ResourceList),
            at,
            links: vec![up],
            ..Head::default()
        },
    );
    for (name, length) in [("a.pdf", 8_876), ("b c.pdf", 1_024)] {
        let mut digests = Digests::default();
        digests.parse_into(b"md5:5d41402abc4b2a76b9719d911017c592")?;
        let mut loc = "https://example.org/".to_owned();
        encode_segment(name.as_bytes(), &mut loc);
        write_entry(
            &mut list,
            Root::UrlSet,
            &Entry { loc, length: Some(length), digests, ..Entry::default() },
        );
    }
    write_end(&mut list, Root::UrlSet);
    println!("{}", String::from_utf8(list.clone())?);

    let read = Document::from_slice(&list)?;
    assert_eq!((read.entries.len(), read.entries[1].length), (2, Some(1_024)));
    Ok(())
}
