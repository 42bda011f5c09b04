//! Written documents read back equal, wherever the input is cut.
#![allow(clippy::unwrap_used)]

mod any;

use abreast_resourcesync::v1_1::{
    Document, Entry, Error, Head, Limits, Parser, Root, Step, write_end, write_plain_entry,
    write_plain_head,
};
use any::{any_document, any_entry};
use proptest::collection::vec;
use proptest::prelude::*;

/// The head and the entries reported before the end or the error.
fn parse_in_chunks(bytes: &[u8], chunk: usize) -> (Option<Head>, Vec<Entry>, Option<Error>) {
    let mut parser = Parser::new(Limits::default());
    let mut chunks = bytes.chunks(chunk);
    let (mut entry, mut entries) = (Entry::default(), Vec::new());
    loop {
        match parser.next(&mut entry) {
            Ok(Step::NeedInput) => match chunks.next() {
                Some(chunk) => parser.feed(chunk),
                None => parser.finish(),
            },
            Ok(Step::Head) => {}
            Ok(Step::Entry) => entries.push(entry.clone()),
            Ok(Step::End) => return (parser.head().cloned(), entries, None),
            Err(error) => return (parser.head().cloned(), entries, Some(error)),
        }
    }
}

proptest! {
    #[test]
    fn written_documents_read_back_equal(document in any_document()) {
        let mut read = Document::from_slice(&document.to_bytes()).unwrap();
        for entry in &mut read.entries {
            prop_assert_ne!(entry.line, 0);
            entry.line = 0;
        }
        prop_assert_eq!(read, document);
    }

    #[test]
    fn cutting_the_input_changes_nothing(document in any_document(), chunk in 1_usize..100, damage in any::<(u16, u8, bool)>()) {
        let mut bytes = document.to_bytes();
        let at = usize::from(damage.0) % bytes.len();
        if damage.2 {
            bytes[at] = damage.1;
        } else if damage.1 < 128 {
            bytes.truncate(at);
        }
        prop_assert_eq!(parse_in_chunks(&bytes, bytes.len().max(1)), parse_in_chunks(&bytes, chunk));
    }

    #[test]
    fn a_cut_document_is_never_whole(document in any_document(), at in any::<u16>()) {
        let bytes = document.to_bytes();
        // The last byte is white space behind the root.
        let at = usize::from(at) % (bytes.len() - 1);
        let error = Document::from_slice(&bytes[..at]).unwrap_err();
        prop_assert_eq!(error.code(), "xml.eof");
    }

    #[test]
    fn plain_sitemap_has_only_locations_and_times(entries in vec(any_entry(), 0..3)) {
        let mut bytes = Vec::new();
        write_plain_head(&mut bytes, Root::UrlSet);
        for entry in &entries {
            write_plain_entry(&mut bytes, Root::UrlSet, entry);
        }
        write_end(&mut bytes, Root::UrlSet);
        prop_assert!(!String::from_utf8(bytes.clone()).unwrap().contains("xmlns:rs"));
        let read = Document::from_slice(&bytes).unwrap();
        prop_assert_eq!(&read.head, &Head::default());
        for (read, entry) in read.entries.iter().zip(&entries) {
            let expected = Entry { loc: entry.loc.clone(), lastmod: entry.lastmod, line: read.line, ..Entry::default() };
            prop_assert_eq!(read, &expected);
        }
    }
}
