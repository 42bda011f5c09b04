//! Written records read back equal, and truncated ones are reported.
#![allow(clippy::unwrap_used, reason = "tests may stop")]

use abreast_warc::{
    CountingReader, END, Kind, Member, Packing, ReadError, Record, read_record, skip_http_head,
};
use abreast_webtypes::Timestamp;
use proptest::prelude::*;
use std::io::Read as _;

fn record(uri: &str, block: &[u8], packing: Packing) -> Vec<u8> {
    let record = Record {
        target: Some(uri),
        content_type: "application/http; msgtype=response",
        ..Record::new(Kind::Response, [1; 16], Timestamp::from_seconds(0))
    };
    let mut head = Vec::new();
    record.write_head(&mut head, block.len() as u64);
    let mut member = Member::begin(Vec::new(), packing).unwrap();
    for part in [&head, block, END] {
        member.add(part).unwrap();
    }
    member.finish().unwrap()
}

/// Where a record begins, its target and its block.
type Found = (u64, String, Vec<u8>);

/// Targets and blocks of whole records, with where each begins; and how it ended.
fn read_all(bytes: &[u8]) -> (Vec<Found>, Result<(), ReadError>) {
    let mut input = CountingReader::new(bytes);
    let mut records = Vec::new();
    loop {
        let begin = input.taken;
        let (target, block) = match read_record(&mut input) {
            Ok(None) => return (records, Ok(())),
            Err(error) => return (records, Err(error)),
            Ok(Some(mut read)) => {
                let mut block = Vec::new();
                if let Err(error) = read.block.read_to_end(&mut block) {
                    return (records, Err(error.into()));
                }
                (read.head.target().unwrap_or_default().to_owned(), block)
            }
        };
        records.push((begin, target, block));
    }
}

#[test]
fn an_answers_body_follows_its_head() {
    let bytes = record("http://h/a", b"HTTP/1.1 200 OK\r\na: b\r\n\r\nhello", Packing::Stored);
    let mut input = bytes.as_slice();
    let mut read = read_record(&mut input).unwrap().unwrap();
    assert_eq!(read.head.kind(), Some(Kind::Response));
    assert_eq!(skip_http_head(&mut read.block).unwrap(), b"HTTP/1.1 200 OK\r\na: b\r\n\r\n");
    let mut body = String::new();
    read.block.read_to_string(&mut body).unwrap();
    assert_eq!(body, "hello");
    assert!(read_record(&mut input).unwrap().is_none());
}

#[test]
fn changed_byte_is_reported() {
    let whole = record("http://h/a", b"hello, hello, hello", Packing::Stored);
    for at in 10..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        let (records, end) = read_all(&bytes);
        assert!(
            end.is_err() || records.len() != 1 || records[0].2 != b"hello, hello, hello",
            "byte {at}"
        );
    }
}

#[test]
fn a_head_without_end_is_refused() {
    let mut member = Member::begin(Vec::new(), Packing::Deflate(9)).unwrap();
    member.add(b"WARC/1.1\r\n").unwrap();
    member.add(&vec![b'a'; 2 << 20]).unwrap();
    let bytes = member.finish().unwrap();
    assert!(matches!(read_all(&bytes).1, Err(ReadError::Syntax(_))));
}

proptest! {
    #[test]
    fn records_are_read_back_and_truncation_is_reported(
        blocks in proptest::collection::vec((any::<u16>(), proptest::collection::vec(any::<u8>(), 0..200)), 1..6),
        deflate in any::<bool>(),
        cut in any::<proptest::sample::Index>(),
    ) {
        let packing = if deflate { Packing::Deflate(1) } else { Packing::Stored };
        let (mut bytes, mut begins) = (Vec::new(), Vec::new());
        for (number, block) in &blocks {
            begins.push(bytes.len() as u64);
            bytes.extend(record(&format!("http://h/{number}"), block, packing));
        }
        let (records, end) = read_all(&bytes);
        prop_assert!(end.is_ok());
        prop_assert_eq!(records.len(), blocks.len());
        for ((begin, target, block), (expected, (number, original))) in records.iter().zip(begins.iter().zip(&blocks)) {
            prop_assert_eq!(begin, expected);
            prop_assert_eq!(target, &format!("http://h/{number}"));
            prop_assert_eq!(block, original);
        }
        // Cut anywhere: every whole record is read, and the torn one is told unless the cut is
        // between two.
        let cut = cut.index(bytes.len());
        let (read, end) = read_all(&bytes[..cut]);
        let whole = begins.iter().skip(1).chain([&(bytes.len() as u64)]).filter(|end| **end <= cut as u64).count();
        prop_assert_eq!(read.len(), whole);
        prop_assert_eq!(end.is_ok(), cut == 0 || begins.contains(&(cut as u64)));
    }
}
