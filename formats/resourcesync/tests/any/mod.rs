//! Any values and documents of 1.1, as they can be written.
#![allow(dead_code, reason = "each test uses some of it")]

use abreast_resourcesync::v1_1::{Capability, Change, Document, Entry, Head, Ln, Root};
use abreast_webtypes::{Digests, Precision, Timestamp, W3cDatetime};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

/// The first instant of the year 1: a `lastmod` in the year 0000 is a text of a database for no date.
pub(crate) const FIRST_MICROS: i64 = Timestamp::MIN.as_micros() + 366 * 86_400 * 1_000_000;

/// Written times are complete; their precision says whether a fraction was needed.
pub(crate) fn datetime(micros: i64) -> W3cDatetime {
    let instant = Timestamp::from_micros(micros);
    let whole = instant.as_micros() % 1_000_000 == 0;
    W3cDatetime { instant, precision: if whole { Precision::Second } else { Precision::Fraction } }
}

pub(crate) fn any_datetime() -> impl Strategy<Value = W3cDatetime> {
    let micros = FIRST_MICROS..=Timestamp::MAX.as_micros();
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

pub(crate) fn any_digests() -> impl Strategy<Value = Digests> {
    (any::<Option<[u8; 16]>>(), any::<Option<[u8; 20]>>(), any::<Option<[u8; 32]>>())
        .prop_map(|(md5, sha1, sha256)| Digests { md5, sha1, sha256, ..Digests::default() })
}

/// Text without what XML cannot carry and white space that is cut off.
pub(crate) fn any_value() -> impl Strategy<Value = String> {
    "[!-~éß€\u{1f600}]([ -~é\u{a0}\u{fffd}]{0,20}[!-~é])?"
}

pub(crate) fn any_uri() -> impl Strategy<Value = String> {
    prop_oneof!["http://example\\.org/[!-~é]{0,40}", "[!-~]{1,10}"]
}

/// A number of bytes that a resource can have.
pub(crate) fn any_length() -> impl Strategy<Value = u64> {
    0..=i64::MAX as u64
}

fn any_link() -> impl Strategy<Value = Ln> {
    let numbers = (of(1_u32..=999_999), of(any_length()));
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

pub(crate) fn any_entry() -> impl Strategy<Value = Entry> {
    let times = (any_span(), any_span(), of(any_datetime()), of(any_datetime()));
    let kinds =
        (of(any_capability()), of(select(vec![Change::Created, Change::Updated, Change::Deleted])));
    let texts = (of(any_value()), of(any_value()), of(any_value()));
    (any_uri(), times, kinds, texts, of(any_length()), any_digests(), vec(any_link(), 0..3))
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

pub(crate) fn any_document() -> impl Strategy<Value = Document> {
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
    (head, vec(any_entry(), 0..5)).prop_map(|(head, mut entries)| {
        use Capability::{ChangeDumpManifest, ChangeList, ResourceDumpManifest, ResourceList};
        for entry in &mut entries {
            match head.capability {
                Some(ChangeList | ChangeDumpManifest) => {
                    entry.change.get_or_insert(Change::Updated);
                }
                Some(ResourceList | ResourceDumpManifest) => {
                    entry.change = entry.change.filter(|change| *change != Change::Deleted);
                }
                _ => {}
            }
        }
        Document { head, entries }
    })
}
