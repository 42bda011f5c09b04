//! Written documents read back equal, wherever the input is cut.
#![allow(clippy::unwrap_used)]

use abreast_resourcesync::v1_1::{
    Capability, Change, Document, Entry, Error, Head, Limits, Ln, Parser, Root, Step, write_end,
    write_plain_entry, write_plain_head,
};
use abreast_webtypes::{Digests, Precision, Timestamp, W3cDatetime};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

/// Written times are complete; their precision says whether a fraction was needed.
fn datetime(micros: i64) -> W3cDatetime {
    let instant = Timestamp::from_micros(micros);
    let whole = instant.as_micros() % 1_000_000 == 0;
    W3cDatetime { instant, precision: if whole { Precision::Second } else { Precision::Fraction } }
}

fn any_datetime() -> impl Strategy<Value = W3cDatetime> {
    let micros = Timestamp::MIN.as_micros()..=Timestamp::MAX.as_micros();
    prop_oneof![
        micros.clone().prop_map(datetime),
        micros.prop_map(|micros| datetime(micros / 1_000_000 * 1_000_000))
    ]
}

/// Two instants in order, either of which may be absent.
fn any_span() -> impl Strategy<Value = (Option<W3cDatetime>, Option<W3cDatetime>)> {
    (of(any_datetime()), of(any_datetime())).prop_map(|(one, other)| match (one, other) {
        (Some(one), Some(other)) if other.instant < one.instant => (Some(other), Some(one)),
        span => span,
    })
}

fn any_digests() -> impl Strategy<Value = Digests> {
    (any::<Option<[u8; 16]>>(), any::<Option<[u8; 20]>>(), any::<Option<[u8; 32]>>())
        .prop_map(|(md5, sha1, sha256)| Digests { md5, sha1, sha256, ..Digests::default() })
}

/// Text without what XML cannot carry and white space that is cut off.
fn any_value() -> impl Strategy<Value = String> {
    "[!-~éß€\u{1f600}]([ -~é\u{a0}\u{fffd}]{0,20}[!-~é])?"
}

fn any_uri() -> impl Strategy<Value = String> {
    prop_oneof!["http://example\\.org/[!-~é]{0,40}", "[!-~]{1,10}"]
}

fn any_link() -> impl Strategy<Value = Ln> {
    let numbers = (of(1_u32..=999_999), of(any::<u64>()));
    (
        any_uri(),
        any_uri(),
        numbers,
        of(any_datetime()),
        any_digests(),
        (of(any_value()), of(any_value()), of(any_value())),
    )
        .prop_map(
            |(rel, href, (pri, length), modified, digests, (media_type, encoding, path))| Ln {
                rel,
                href,
                pri,
                modified,
                media_type,
                length,
                digests,
                encoding,
                path,
            },
        )
}

fn any_capability() -> impl Strategy<Value = Capability> {
    select(&Capability::ALL[..])
}

fn any_entry() -> impl Strategy<Value = Entry> {
    let times = (any_span(), any_span(), of(any_datetime()), of(any_datetime()));
    let kinds =
        (of(any_capability()), of(select(vec![Change::Created, Change::Updated, Change::Deleted])));
    let texts = (of(any_value()), of(any_value()), of(any_value()));
    (any_uri(), times, kinds, texts, of(any::<u64>()), any_digests(), vec(any_link(), 0..3))
        .prop_map(
            |(
                loc,
                ((at, completed), (from, until), lastmod, datetime),
                (capability, change),
                texts,
                length,
                digests,
                links,
            )| Entry {
                loc,
                lastmod,
                capability,
                at,
                completed,
                from,
                until,
                change,
                datetime,
                digests,
                length,
                media_type: texts.0,
                encoding: texts.1,
                path: texts.2,
                links,
                line: 0,
            },
        )
}

fn any_document() -> impl Strategy<Value = Document> {
    let head = (any::<bool>(), of(any_capability()), any_span(), any_span(), vec(any_link(), 0..3))
        .prop_map(|(index, capability, (at, completed), (from, until), links)| {
            let times = if capability.is_some() {
                (at, completed, from, until)
            } else {
                (None, None, None, None)
            };
            Head {
                root: if index { Root::SitemapIndex } else { Root::UrlSet },
                capability,
                at: times.0,
                completed: times.1,
                from: times.2,
                until: times.3,
                links,
                lenient_capability: false,
            }
        });
    (head, vec(any_entry(), 0..5)).prop_map(|(head, entries)| Document { head, entries })
}

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
