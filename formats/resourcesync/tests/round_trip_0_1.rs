//! Written documents of 0.1 read back equal, without a finding, wherever the input is cut.
#![allow(clippy::unwrap_used)]

mod any;

use abreast_resourcesync::v0_1::{
    CHANGE_SET, Change, Document, Entry, Error, Head, Limits, Link, Meta, Parser, Root, Step,
    Tolerance,
};
use abreast_webtypes::{Timestamp, W3cDatetime};
use any::{FIRST_MICROS, any_datetime, any_digests, any_length, any_uri, any_value, datetime};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

fn any_link() -> impl Strategy<Value = Link> {
    let names = (of(any_value()), of(any_value()), of(any_uri()), of(any_value()));
    (any_uri(), any_uri(), any::<bool>(), names).prop_map(
        |(rel, href, related, (title, media_type, protocol, pubsub_node))| {
            let related = related || protocol.is_none();
            let rel = if related { rel } else { String::new() };
            Link { rel, href, title, media_type, protocol, pubsub_node }
        },
    )
}

fn any_meta() -> impl Strategy<Value = Meta> {
    ("DC\\.[a-z]{1,9}", any_value()).prop_map(|(name, content)| Meta { name, content })
}

/// Entries of a change set, or of a list.
fn any_entry(change_set: bool) -> impl Strategy<Value = Entry> {
    let changes = vec![Change::Created, Change::Updated, Change::Deleted];
    let texts = (of(any_value()), of(any_value()), of("[!-.0-~é][!-~é]{0,20}"));
    let related = (vec(any_link(), 0..3), vec(any_meta(), 0..3));
    let more = (of(any_length()), any_digests(), of(any_uri()));
    (any_uri(), select(changes), of(any_datetime()), datetime_of_change(), texts, related, more)
        .prop_map(move |(loc, change, time, at, texts, (links, metas), more)| Entry {
            loc,
            protocol: more.2,
            change: change_set.then_some(change),
            time: if change_set { Some(at) } else { time },
            digests: more.1,
            size: more.0,
            media_type: texts.0,
            encoding: texts.1,
            path: texts.2,
            links,
            metas,
            line: 0,
        })
}

/// Not later than any document below.
fn datetime_of_change() -> impl Strategy<Value = W3cDatetime> {
    (FIRST_MICROS..=1_500_000_000_000_000).prop_map(datetime)
}

fn any_document() -> impl Strategy<Value = Document> {
    let modified = (1_500_000_000_000_000..=Timestamp::MAX.as_micros()).prop_map(datetime);
    (any::<(bool, bool)>(), of(modified), vec(any_link(), 0..3), vec(any_meta(), 0..3))
        .prop_flat_map(|((index, change_set), modified, links, metas)| {
            let change_set = change_set && !index;
            let root = if index { Root::SitemapIndex } else { Root::UrlSet };
            let head = Head { root, change_set, modified, links, metas };
            vec(any_entry(change_set), 0..5)
                .prop_map(move |entries| Document { head: head.clone(), entries })
        })
}

/// What was reported before the end or the error, and the codes of findings.
type Outcome = (Option<Head>, Vec<Entry>, Vec<&'static str>, Option<Error>);

fn parse_in_chunks(bytes: &[u8], chunk: usize, tolerance: Tolerance) -> Outcome {
    let mut parser = Parser::with_tolerance(Limits::default(), tolerance);
    let mut chunks = bytes.chunks(chunk);
    let (mut entry, mut entries) = (Entry::default(), Vec::new());
    let error = loop {
        match parser.next(&mut entry) {
            Ok(Step::NeedInput) => match chunks.next() {
                Some(chunk) => parser.feed(chunk),
                None => parser.finish(),
            },
            Ok(Step::Head) => {}
            Ok(Step::Entry) => entries.push(entry.clone()),
            Ok(Step::End) => break None,
            Err(error) => break Some(error),
        }
    };
    let findings = parser.findings().iter().map(|finding| finding.code).collect();
    (parser.head().cloned(), entries, findings, error)
}

proptest! {
    #[test]
    fn written_documents_read_back_equal(document in any_document()) {
        let bytes = document.to_bytes();
        let (head, mut entries, findings, error) = parse_in_chunks(&bytes, 4_096, Tolerance::Strict);
        prop_assert_eq!((findings, error), (Vec::new(), None));
        for entry in &mut entries {
            prop_assert_ne!(entry.line, 0);
            entry.line = 0;
        }
        prop_assert_eq!(Document { head: head.unwrap(), entries }, document);
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
        for tolerance in [Tolerance::Strict, Tolerance::Usual, Tolerance::Lenient] {
            prop_assert_eq!(
                parse_in_chunks(&bytes, bytes.len().max(1), tolerance),
                parse_in_chunks(&bytes, chunk, tolerance)
            );
        }
    }

    #[test]
    fn a_cut_document_is_never_whole(document in any_document(), at in any::<u16>()) {
        let bytes = document.to_bytes();
        // The last byte is white space behind the root.
        let at = usize::from(at) % (bytes.len() - 1);
        for tolerance in [Tolerance::Strict, Tolerance::Usual, Tolerance::Lenient] {
            let (.., error) = parse_in_chunks(&bytes[..at], 4_096, tolerance);
            prop_assert_eq!(error.map(|error| error.code()), Some("xml.eof"));
        }
    }

    /// A change set that is taken for a Sitemap would delete whatever is not in it, and a Sitemap with attributes of 0.1 lists
    /// addresses of other protocols, or changes.
    #[test]
    fn change_sets_are_not_documents_of_1_1(document in any_document()) {
        let read = abreast_resourcesync::v1_1::Document::from_slice(&document.to_bytes());
        let has_mark = document.entries.iter().any(|entry| {
            entry.protocol.is_some()
                || matches!(entry.change, Some(Change::Created | Change::Updated))
        });
        prop_assert_eq!(read.is_err(), document.head.change_set || has_mark);
        let is_set = document.head.links.iter().any(|link| link.has_rel(CHANGE_SET));
        prop_assert!(!is_set);
    }
}
