//! Properties of every parser for any input. Each function panics when one does not hold; fuzz
//! targets call nothing else.

use abreast_resourcesync::v1_1::{Document, Entry, Error, Head, Limits, Parser, Step};
use abreast_warc::{
    Capture, CountingReader, END, Head as WarcHead, Kind, Member, Original, Packing, ReadError,
    Record, read_record, skip_http_head, surt, timestamp14,
};
use abreast_webtypes::{Link, Precision, Timestamp, W3cDatetime, parse_link_header, write_link};
use std::io::{BufRead, BufReader, Read as _};

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

/// A ResourceSync document reads the same however it is cut, and what is read can be written and
/// read back equal.
pub fn sitemap(bytes: &[u8]) {
    let whole = read_in_pieces(bytes, usize::MAX);
    let piece =
        bytes.iter().fold(0_usize, |sum, byte| sum.wrapping_add(usize::from(*byte))) % 31 + 1;
    assert_eq!(read_in_pieces(bytes, piece), whole, "in pieces of {piece}");
    if bytes.len() < 1_000 {
        assert_eq!(read_in_pieces(bytes, 1), whole, "byte by byte");
    }
    let (Some(head), entries, None) = whole else { return };
    let mut document = Document { head, entries };
    if has_coarse_interval(&document) {
        return; // Written exactly, `until="2026"` would be its first instant, perhaps before `from`.
    }
    let mut again = Document::from_slice(&document.to_bytes())
        .unwrap_or_else(|error| panic!("{error}: {document:?}"));
    normalize(&mut document);
    normalize(&mut again);
    assert_eq!(again, document);
}

fn has_coarse_interval(document: &Document) -> bool {
    let head = &document.head;
    let of_entries = document
        .entries
        .iter()
        .flat_map(|entry| [entry.at, entry.completed, entry.from, entry.until]);
    let times = [head.at, head.completed, head.from, head.until].into_iter().chain(of_entries);
    times.flatten().any(|time| time.precision < Precision::Second)
}

/// Forgets what writing does not keep: how precisely a time was written, digests nobody can
/// compute, lines.
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
    let links =
        head.links.iter_mut().chain(document.entries.iter_mut().flat_map(|entry| &mut entry.links));
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
    assert_eq!(
        W3cDatetime::parse(written.as_bytes()).map(|again| again.instant),
        Ok(read.instant),
        "{written}"
    );
}

/// Links that are read can be written, all in one field, and read back equal, unless a header
/// cannot carry them.
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
    link.target.is_ascii()
        && !link.target.contains(['<', '"'])
        && values.into_iter().all(|value| value.is_ascii())
}

/// WARC records read the same however they come, and one that is written is read as it was.
///
/// The bytes are an archive; and each piece of them between zero bytes is a record that is packed
/// first, for nobody guesses a checksum.
pub fn warc(bytes: &[u8]) {
    check_archive(bytes);
    let mut packed = Vec::new();
    for piece in bytes.split(|byte| *byte == 0) {
        packed.extend(pack(&[piece], Packing::Stored));
    }
    check_archive(&packed);
    if let Ok(text) = std::str::from_utf8(bytes) {
        check_record(text);
    }
}

/// The fields of a record, the head of the answer in it, and its block.
type Found = (WarcHead, Vec<u8>, Vec<u8>);
/// Each record and where it ends; and whether reading came to the end.
type Archive = (Vec<(Found, u64)>, bool);

fn check_archive(bytes: &[u8]) {
    let whole = read_archive(bytes);
    for capacity in [1, 7] {
        assert_eq!(
            read_archive(BufReader::with_capacity(capacity, bytes)),
            whole,
            "{capacity} bytes at a time"
        );
    }
    let mut last = 0;
    for (_, end) in &whole.0 {
        assert!(*end > last && *end <= bytes.len() as u64);
        last = *end;
    }
}

fn read_archive(input: impl BufRead) -> Archive {
    let mut input = CountingReader::new(input);
    let mut records = Vec::new();
    loop {
        match read_one(&mut input) {
            Ok(Some(found)) => records.push((found, input.taken)),
            Ok(None) => return (records, true),
            // Which of several faults is seen first depends on how much was unpacked at once.
            Err(_) => return (records, false),
        }
    }
}

fn read_one(input: &mut impl BufRead) -> Result<Option<Found>, ReadError> {
    let Some(mut read) = read_record(input)? else { return Ok(None) };
    let of_http = matches!(read.head.kind(), Some(Kind::Response | Kind::Revisit));
    let http = if of_http { skip_http_head(&mut read.block)? } else { Vec::new() };
    let (left, mut block) = (read.block.left(), Vec::new());
    read.block.read_to_end(&mut block)?;
    assert_eq!(block.len() as u64, left);
    Ok(Some((read.head, http, block)))
}

fn pack(parts: &[&[u8]], packing: Packing) -> Vec<u8> {
    let mut member = Member::begin(Vec::new(), packing).expect("memory takes everything");
    for part in parts {
        member.add(part).expect("memory takes everything");
    }
    member.finish().expect("memory takes everything")
}

/// The lines are a URI, a media type, a digest, and behind them a block.
fn check_record(text: &str) {
    let mut lines = text.splitn(4, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (uri, mime, digest, block) = (line(), line(), line(), line().as_bytes());
    let date = Timestamp::from_micros(1_767_225_600_000_000 + i64::from(text.len() as u32));
    for (kind, packing) in
        [(Kind::Resource, Packing::Stored), (Kind::Metadata, Packing::Deflate(1))]
    {
        let mut head = Vec::new();
        let record = Record {
            target: Some(uri),
            content_type: mime,
            payload_digest: Some(digest),
            original: (kind == Kind::Metadata).then_some(Original { target: uri, date }),
            ..Record::new(kind, [7; 16], date)
        };
        record.write_head(&mut head, block.len() as u64);
        let packed = pack(&[&head, block, END], packing);
        let (records, end) = read_archive(packed.as_slice());
        assert_eq!((records.len(), end), (1, true), "{}", String::from_utf8_lossy(&head));
        let ((read, _, bytes), length) = &records[0];
        assert_eq!(
            (read.kind(), bytes.as_slice(), *length),
            (Some(kind), block, packed.len() as u64)
        );
        let shown =
            |text: &str| text.replace(|c: char| c.is_ascii_control(), " ").trim().to_owned();
        assert_eq!(read.field("WARC-Payload-Digest"), Some(shown(digest).as_str()));
        assert_eq!(read.field("Content-Type"), Some(shown(mime).as_str()));
        assert_eq!(read.field("WARC-Date"), Some(date.to_string().as_str()));
        if uri.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>')) {
            assert_eq!(read.target(), Some(uri));
        }
    }
    let capture = Capture {
        uri,
        date,
        mime,
        status: Some(200),
        digest,
        length: 1,
        offset: 2,
        filename: "x.warc.gz",
    };
    let mut line = Vec::new();
    capture.write_line(&mut line);
    let line = String::from_utf8(line).expect("a line is text");
    assert_eq!(line.find('\n'), Some(line.len() - 1), "{line}");
    let mut fields = line.splitn(3, ' ');
    assert_eq!(fields.next(), Some(surt(uri).as_str()), "{line}");
    assert_eq!(fields.next(), Some(timestamp14(date).as_str()), "{line}");
    let json: serde_json::Value =
        serde_json::from_str(fields.next().unwrap_or_default()).expect("JSON");
    assert_eq!((json["url"].as_str(), json["mime"].as_str()), (Some(uri), Some(mime)));
}
