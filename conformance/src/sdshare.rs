//! Properties of the reader and writer of SDShare feeds for any input. Each function panics when
//! one does not hold; fuzz targets call nothing else.

use abreast_sdshare::{
    CODES, Document, Entry, Error, Feed, Finding, Limits, MAX_FINDINGS_OF_A_CODE, Parser, Relation,
    STAMP_LENGTH, Step, parse_since, since_in_query, stamp, with_since, write_end, write_entry,
    write_feed,
};

const BASE: &str = "http://example.org/a/feed?x=1";

/// The feed, its entries before the end or the error, the findings, and the error.
type Outcome = (Feed, Vec<Entry>, Vec<Finding>, Option<Error>);

fn read_in_pieces(bytes: &[u8], piece: usize) -> Outcome {
    let mut parser = Parser::new(BASE, Limits::default());
    let mut pieces = bytes.chunks(piece.max(1));
    let (mut entry, mut entries) = (Entry::default(), Vec::new());
    let error = loop {
        match parser.next(&mut entry) {
            Ok(Step::NeedInput) => match pieces.next() {
                Some(piece) => parser.feed(piece),
                None => parser.finish(),
            },
            Ok(Step::Entry) => entries.push(entry.clone()),
            Ok(Step::End) => break None,
            Err(error) => break Some(error),
        }
    };
    let (feed, findings) = parser.into_parts();
    (feed, entries, findings, error)
}

/// A feed reads the same however it is cut; what is read can be written and read back equal; links
/// lead somewhere, and messages are short.
pub fn feed(bytes: &[u8]) {
    let whole = read_in_pieces(bytes, usize::MAX);
    let piece =
        bytes.iter().fold(0_usize, |sum, byte| sum.wrapping_add(usize::from(*byte))) % 31 + 1;
    assert_eq!(read_in_pieces(bytes, piece), whole, "in pieces of {piece}");
    if bytes.len() < 1_000 {
        assert_eq!(read_in_pieces(bytes, 1), whole, "byte by byte");
    }
    let (feed, entries, findings, error) = whole;
    for finding in &findings {
        assert!(CODES.iter().any(|(code, _)| *code == finding.code), "{finding:?}");
        assert!(finding.line > 0 && finding.message.len() < 600, "{finding:?}");
        let same = findings.iter().filter(|other| other.code == finding.code).count() as u64;
        assert!(same <= MAX_FINDINGS_OF_A_CODE);
    }
    for link in feed.links.iter().chain(entries.iter().flat_map(|entry| &entry.links)) {
        assert!(link.href.contains(':'), "{link:?}");
    }
    if error.is_some() {
        return;
    }
    let mut written = Vec::new();
    write_feed(&mut written, &feed);
    for entry in &entries {
        write_entry(&mut written, entry);
    }
    write_end(&mut written);
    let again = Document::from_slice(&written, BASE, Limits::default());
    let again = again.unwrap_or_else(|error| panic!("{error}: {feed:?}"));
    let head =
        Feed { updated: feed.updated.or(Some(abreast_webtypes::Timestamp::default())), ..feed };
    assert_eq!(again.feed, head);
    let plain = |entry: &Entry| Entry {
        line: 0,
        updated: entry.updated.or(Some(abreast_webtypes::Timestamp::default())),
        links: entry
            .links
            .iter()
            .filter(|link| link.relation != Relation::Alternate)
            .cloned()
            .collect(),
        ..entry.clone()
    };
    assert_eq!(
        again.entries.iter().map(plain).collect::<Vec<_>>(),
        entries.iter().map(plain).collect::<Vec<_>>()
    );
    for (entry, again) in entries.iter().zip(&again.entries) {
        assert_eq!(entry.kind(), again.kind());
        // One alternate for each type and language, at most one more than was read for each link.
        assert!(again.links.len() <= entry.links.len() * 2);
    }
}

/// What a client adds to an address, a server reads; any query is answered with a time, with none,
/// or with a short message. The first line is a query, the rest an address.
pub fn since(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (query, address) = text.split_once('\n').unwrap_or((&text, &text));
    match since_in_query(query) {
        Ok(Some(time)) => {
            assert_eq!(stamp(time).len(), STAMP_LENGTH);
            assert_eq!(parse_since(&stamp(time)), Ok(Some(time)));
            let url = with_since(address, time);
            assert!(!url.contains('#'));
            let read = url.split_once('?').map(|(_, query)| since_in_query(query));
            assert_eq!(read, Some(Ok(Some(time))), "{url}");
        }
        Ok(None) => {}
        Err(error) => assert!(error.to_string().len() < 1_000),
    }
}
