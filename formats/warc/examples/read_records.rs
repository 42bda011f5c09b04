//! Writes a WARC file in memory, and lists its records with their offsets.
#![allow(clippy::print_stdout)]

use abreast_warc::{END, Kind, Member, Packing, Record, read_record};
use abreast_webtypes::Timestamp;
use std::io::Read as _;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut file = Vec::new();
    for (number, text) in ["first", "second"].into_iter().enumerate() {
        let target = format!("https://example.org/{number}.txt");
        let record = Record {
            content_type: "text/plain",
            target: Some(&target),
            ..Record::new(
                Kind::Resource,
                [number as u8; 16],
                Timestamp::from_seconds(1_767_225_600),
            )
        };
        let mut head = Vec::new();
        record.write_head(&mut head, text.len() as u64);
        println!("record {number} begins at {}", file.len());
        // Each record is a gzip member of its own, so it can be read from its offset alone.
        let mut member = Member::begin(&mut file, Packing::Stored)?;
        for part in [&head[..], text.as_bytes(), END] {
            member.add(part)?;
        }
        member.finish()?;
    }

    let mut input = file.as_slice();
    let mut found = Vec::new();
    while let Some(mut record) = read_record(&mut input)? {
        let mut text = String::new();
        record.block.read_to_string(&mut text)?;
        println!("{}: {text}", record.head.target().unwrap_or("no target"));
        found.push(text);
        record.block.finish()?;
    }
    assert_eq!(found, ["first", "second"]);
    Ok(())
}
