//! Speed of reading and writing a list, beside quick-xml's own namespace reader over the same
//! bytes.
//!
//! `cargo run --release -p abreast-resourcesync --example read_speed [entries] [rounds]`
//! Rounds are interleaved, so that a busy machine slows all of them; medians are shown.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use abreast_resourcesync::v1_1::{
    Capability, Entry, Head, Limits, Parser, Reader, Root, Step, write_end, write_entry, write_head,
};
use abreast_webtypes::{Algorithm, W3cDatetime};
use quick_xml::NsReader;
use quick_xml::events::Event;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A list with `lastmod`, `hash`, `length` and `type`, some 230 bytes an entry.
fn list(entries: u32) -> Vec<u8> {
    let at = W3cDatetime::parse(b"2026-01-03T09:00:00Z").ok();
    let mut out = Vec::new();
    write_head(
        &mut out,
        &Head { capability: Some(Capability::ResourceList), at, ..Head::default() },
    );
    for number in 0..entries {
        write_entry(&mut out, Root::UrlSet, &entry(number));
    }
    write_end(&mut out, Root::UrlSet);
    out
}

fn entry(number: u32) -> Entry {
    let mut entry = Entry {
        loc: format!("http://example.org/collection/resources/{number:08}/metadata.xml"),
        lastmod: W3cDatetime::parse(b"2026-01-02T13:05:09Z").ok(),
        length: Some(u64::from(number) * 7),
        media_type: Some("application/xml".to_owned()),
        ..Entry::default()
    };
    let scattered = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    entry.digests.set(Algorithm::Md5, &[scattered, scattered].concat());
    entry
}

fn namespace_reader(bytes: &[u8]) -> u64 {
    let mut reader = NsReader::from_reader(bytes);
    let mut entries = 0;
    loop {
        match reader.read_resolved_event().unwrap() {
            (_, Event::Start(start)) => entries += u64::from(start.local_name().as_ref() == "url"),
            (_, Event::Eof) => return entries,
            _ => {}
        }
    }
}

fn parser(bytes: &[u8]) -> u64 {
    let mut parser = Parser::new(Limits::default());
    let mut chunks = bytes.chunks(64 * 1_024);
    let mut entry = Entry::default();
    loop {
        match parser.next(&mut entry).unwrap() {
            Step::NeedInput => match chunks.next() {
                Some(chunk) => parser.feed(chunk),
                None => parser.finish(),
            },
            Step::Entry => drop(black_box(&entry)),
            Step::Head => {}
            Step::End => return parser.entries(),
        }
    }
}

fn reader(bytes: &[u8]) -> u64 {
    let mut reader = Reader::new(bytes);
    let (mut entry, mut entries) = (Entry::default(), 0);
    while reader.next(&mut entry).unwrap() {
        black_box(&entry);
        entries += 1;
    }
    entries
}

fn writer(entries: &[Entry], out: &mut Vec<u8>) -> u64 {
    out.clear();
    for entry in entries {
        write_entry(out, Root::UrlSet, entry);
    }
    entries.len() as u64
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u32>().unwrap());
    let count = arguments.next().unwrap_or(50_000);
    let rounds = arguments.next().unwrap_or(21);
    let bytes = list(count);
    let entries: Vec<_> = (0..count).map(entry).collect();
    let mut out = Vec::with_capacity(bytes.len());
    let mut times: [Vec<Duration>; 4] = Default::default();
    for _ in 0..rounds {
        let mut time = |number: usize, work: &mut dyn FnMut() -> u64| {
            let start = Instant::now();
            assert_eq!(work(), u64::from(count));
            times[number].push(start.elapsed());
        };
        time(0, &mut || namespace_reader(&bytes));
        time(1, &mut || parser(&bytes));
        time(2, &mut || reader(&bytes));
        time(3, &mut || writer(&entries, &mut out));
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort();
        times[times.len() / 2].as_secs_f64()
    };
    let [base, others @ ..] = times.each_mut().map(median);
    let megabytes = bytes.len() as f64 / 1e6;
    println!("{count} entries, {megabytes:.1} MB, {rounds} rounds");
    println!("quick-xml NsReader: {:.0} MB/s", megabytes / base);
    for (name, time) in ["Parser", "Reader", "write_entry"].into_iter().zip(others) {
        println!(
            "{name}: {:.0} MB/s, {:.2} x NsReader, {:.2} us/entry",
            megabytes / time,
            base / time,
            time * 1e6 / f64::from(count)
        );
    }
}
