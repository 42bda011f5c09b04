//! What is true of every parser for any input? Each function panics when it is not; fuzz targets call nothing else.

use abreast_resourcesync::v1_1::{Document, Entry, Error, Head, Limits, Parser, Step};
use abreast_webtypes::{Link, Precision, Timestamp, W3cDatetime, parse_link_header, write_link};

/// The head, the entries before the end or the error, and the error.
type Outcome = (Option<Head>, Vec<Entry>, Option<Error>);

/// Reads a document from pieces of that many bytes.
pub fn read_in_pieces(bytes: &[u8], piece: usize) -> Outcome {
    let mut parser = Parser::new(Limits::default());
    let mut pieces = bytes.chunks(piece.max(1));
    let (mut entry, mut entries) = (Entry::default(), Vec::new());
    loop {
        match parser.next(&mut entry) {
            Ok(Step::NeedInput) => match pieces.next() {
                Some(piece) => parser.feed(piece),
                None => parser.finish(),
            },
            Ok(Step::Head) => {}
            Ok(Step::Entry) => entries.push(entry.clone()),
            Ok(Step::End) => return (parser.head().cloned(), entries, None),
            Err(error) => return (parser.head().cloned(), entries, Some(error)),
        }
    }
}

/// A ResourceSync document reads the same however it is cut, and what is read can be written and read back equal.
pub fn sitemap(bytes: &[u8]) {
    let whole = read_in_pieces(bytes, usize::MAX);
    let piece = bytes.iter().fold(0_usize, |sum, byte| sum.wrapping_add(usize::from(*byte))) % 31 + 1;
    assert_eq!(read_in_pieces(bytes, piece), whole, "in pieces of {piece}");
    if bytes.len() < 1_000 {
        assert_eq!(read_in_pieces(bytes, 1), whole, "byte by byte");
    }
    let (Some(head), entries, None) = whole else { return };
    let mut document = Document { head, entries };
    if has_coarse_interval(&document) {
        return; // Written exactly, `until="2026"` would be its first instant, perhaps before `from`.
    }
    let mut again = Document::from_slice(&document.to_bytes()).unwrap_or_else(|error| panic!("{error}: {document:?}"));
    normalize(&mut document);
    normalize(&mut again);
    assert_eq!(again, document);
}

fn has_coarse_interval(document: &Document) -> bool {
    let head = &document.head;
    let of_entries = document.entries.iter().flat_map(|entry| [entry.at, entry.completed, entry.from, entry.until]);
    let times = [head.at, head.completed, head.from, head.until].into_iter().chain(of_entries);
    times.flatten().any(|time| time.precision < Precision::Second)
}

/// Forgets what writing does not keep: how precisely a time was written, digests nobody can compute, lines.
fn normalize(document: &mut Document) {
    fn exactly(time: &mut Option<W3cDatetime>) {
        if let Some(time) = time {
            time.precision = Precision::Fraction;
        }
    }
    let head = &mut document.head;
    head.lenient_capability = false;
    let times = [&mut head.at, &mut head.completed, &mut head.from, &mut head.until];
    times.into_iter().for_each(exactly);
    for entry in &mut document.entries {
        entry.line = 0;
        entry.digests.unknown.clear();
        let times = [&mut entry.at, &mut entry.completed, &mut entry.from, &mut entry.until];
        times.into_iter().chain([&mut entry.lastmod, &mut entry.datetime]).for_each(exactly);
    }
    let links = head.links.iter_mut().chain(document.entries.iter_mut().flat_map(|entry| &mut entry.links));
    for link in links {
        link.digests.unknown.clear();
        exactly(&mut link.modified);
    }
}

/// A datetime that is read names an instant that is written and read back equal.
pub fn w3c_datetime(bytes: &[u8]) {
    let Ok(read) = W3cDatetime::parse(bytes) else { return };
    assert!((Timestamp::MIN..=Timestamp::MAX).contains(&read.instant));
    let written = read.instant.to_string();
    assert_eq!(W3cDatetime::parse(written.as_bytes()).map(|again| again.instant), Ok(read.instant), "{written}");
}

/// Links that are read can be written, all in one field, and read back equal, unless a header cannot carry them.
pub fn link_header(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(mut links) = parse_link_header(text) else { return };
    links.retain(can_be_written);
    let mut written = String::new();
    for link in &links {
        write_link(&mut written, link);
        written.push_str(", ");
    }
    assert_eq!(parse_link_header(&written).as_ref(), Ok(&links), "{written}");
}

fn can_be_written(link: &Link) -> bool {
    let values = link.params.iter().map(|(_, value)| value).chain([&link.rel]);
    link.target.is_ascii() && !link.target.contains(['<', '"']) && values.into_iter().all(|value| value.is_ascii())
}
