//! Properties of documents of ResourceSync 0.1 for any input.

use abreast_resourcesync::v0_1::{
    Document, Entry, Error, Finding, Head, Limits, Parser, SPEC_MAX_ENTRIES, Step, Tolerance,
};
use abreast_webtypes::{Precision, W3cDatetime};

const TOLERANCES: [Tolerance; 3] = [Tolerance::Strict, Tolerance::Usual, Tolerance::Lenient];

/// What was reported before the end or the error, and the error.
type Outcome = (Option<Head>, Vec<Entry>, Vec<Finding>, Option<Error>);

fn read_in_pieces(bytes: &[u8], piece: usize, tolerance: Tolerance) -> Outcome {
    let mut parser = Parser::with_tolerance(Limits::default(), tolerance);
    let mut pieces = bytes.chunks(piece.max(1));
    let (mut entry, mut entries) = (Entry::default(), Vec::new());
    let error = loop {
        match parser.next(&mut entry) {
            Ok(Step::NeedInput) => match pieces.next() {
                Some(piece) => parser.feed(piece),
                None => parser.finish(),
            },
            Ok(Step::Head) => {}
            Ok(Step::Entry) => entries.push(entry.clone()),
            Ok(Step::End) => break None,
            Err(error) => break Some(error),
        }
    };
    (parser.head().cloned(), entries, parser.findings().to_vec(), error)
}

/// A document reads the same however it is cut; what a reader accepts, more lenient ones accept
/// with the same content; what is read can be written, and the strict reader reads that back equal;
/// a change set is no document of 1.1.
pub fn document(bytes: &[u8]) {
    let piece =
        bytes.iter().fold(0_usize, |sum, byte| sum.wrapping_add(usize::from(*byte))) % 31 + 1;
    let outcomes = TOLERANCES.map(|tolerance| {
        let whole = read_in_pieces(bytes, usize::MAX, tolerance);
        assert_eq!(read_in_pieces(bytes, piece, tolerance), whole, "in pieces of {piece}");
        if bytes.len() < 1_000 {
            assert_eq!(read_in_pieces(bytes, 1, tolerance), whole, "byte by byte");
        }
        for finding in &whole.2 {
            assert!(finding.message.len() < 1_000 && finding.count > 0, "{finding:?}");
        }
        whole
    });
    let [strict, usual, lenient] = &outcomes;
    assert!(strict.2.is_empty());
    if strict.3.is_none() {
        assert_eq!(strict, usual);
    }
    if usual.3.is_none() {
        let has_repairs = lenient.2.iter().any(|finding| finding.code == "rs.text");
        assert!(has_repairs || usual == lenient);
    }
    let (Some(head), entries, findings, None) = lenient else { return };
    if head.change_set && !findings.iter().any(|finding| finding.code == "rs.type-missing") {
        assert!(abreast_resourcesync::v1_1::Document::from_slice(bytes).is_err());
    }
    check_written(Document { head: head.clone(), entries: entries.clone() });
}

fn check_written(mut document: Document) {
    normalize(&mut document);
    let bytes = document.to_bytes();
    let (head, entries, _, error) = read_in_pieces(&bytes, usize::MAX, Tolerance::Usual);
    assert_eq!(error, None, "{document:?}");
    let mut again = Document { head: head.unwrap_or_default(), entries };
    normalize(&mut again);
    assert_eq!(again, document);
    let is_future = |entry: &Entry| match (entry.time, document.head.modified) {
        (Some(time), Some(modified)) => time.instant > modified.instant,
        _ => false,
    };
    if document.entries.len() as u64 <= SPEC_MAX_ENTRIES && !document.entries.iter().any(is_future)
    {
        let (.., error) = read_in_pieces(&bytes, usize::MAX, Tolerance::Strict);
        assert_eq!(error, None, "{document:?}");
    }
}

/// Forgets what writing does not keep: how precisely a time was written, digests that 0.1 does not
/// name, lines.
fn normalize(document: &mut Document) {
    fn exactly(time: &mut Option<W3cDatetime>) {
        if let Some(time) = time {
            time.precision = Precision::Fraction;
        }
    }
    exactly(&mut document.head.modified);
    for entry in &mut document.entries {
        entry.line = 0;
        entry.digests.unknown.clear();
        entry.digests.sha512 = None;
        exactly(&mut entry.time);
    }
}
