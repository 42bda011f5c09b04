//! Writes the lines of a CDXJ index, in the order that replay programs expect.
#![allow(clippy::print_stdout)]

use abreast_warc::{Capture, surt};
use abreast_webtypes::Timestamp;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut lines = Vec::new();
    for (uri, offset) in [("https://example.org/b.txt", 0), ("https://www.example.org/a.txt", 612)]
    {
        let capture = Capture {
            uri,
            date: Timestamp::from_seconds(1_767_225_600),
            mime: "text/plain",
            status: Some(200),
            digest: "sha1:QEZQ7RGZDZMBKRUWEXAMPLE234567ABC",
            length: 612,
            offset,
            filename: "copy-00000.warc.gz",
        };
        let mut line = Vec::new();
        capture.write_line(&mut line);
        lines.push(String::from_utf8(line)?);
    }
    // An index is sorted by the bytes of its lines.
    lines.sort();
    print!("{}", lines.concat());
    assert!(lines[0].starts_with(&surt("https://www.example.org/a.txt")));
    Ok(())
}
