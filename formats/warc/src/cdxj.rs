//! One line of a CDXJ index: key, instant, and the location of the record as JSON.

use crate::record::{write_number, write_timestamp14};
use crate::surt::surt;
use abreast_webtypes::Timestamp;

/// One record as an index knows it.
#[derive(Clone, Copy, Debug)]
pub struct Capture<'a> {
    /// URI of the resource, as fetched.
    pub uri: &'a str,
    /// Time in `WARC-Date` of the record.
    pub date: Timestamp,
    /// Media type without parameters; `warc/revisit` for a revisit.
    pub mime: &'a str,
    /// Status of the answer, where there was one.
    pub status: Option<u16>,
    /// Digest in `WARC-Payload-Digest` of the record.
    pub digest: &'a str,
    /// Length of the gzip member.
    pub length: u64,
    /// Start of the record in its file, in bytes.
    pub offset: u64,
    /// Name of the WARC file with the record.
    pub filename: &'a str,
}

impl Capture<'_> {
    /// Appends the line, with its end. Sorted by their bytes, lines are in the order indexes want.
    /// All values are strings, as indexers write them.
    ///
    /// # Examples
    /// ```
    /// use abreast_warc::Capture;
    /// use abreast_webtypes::Timestamp;
    ///
    /// let capture = Capture {
    ///     uri: "https://www.museum.example/objects/7",
    ///     date: Timestamp::from_seconds(1_772_355_600),
    ///     mime: "text/html",
    ///     status: Some(200),
    ///     digest: "sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ",
    ///     length: 1_204,
    ///     offset: 40_960,
    ///     filename: "museum-2026-03.warc.gz",
    /// };
    /// let mut line = Vec::new();
    /// capture.write_line(&mut line);
    /// assert!(line.starts_with(b"example,museum)/objects/7 20260301090000 {\"url\":"));
    /// ```
    pub fn write_line(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(surt(self.uri).as_bytes());
        out.push(b' ');
        write_timestamp14(out, self.date);
        out.extend_from_slice(b" {\"url\":");
        write_json(out, self.uri);
        out.extend_from_slice(b",\"mime\":");
        write_json(out, self.mime);
        if let Some(status) = self.status {
            out.extend_from_slice(b",\"status\":\"");
            write_number(out, u64::from(status));
            out.push(b'"');
        }
        out.extend_from_slice(b",\"digest\":");
        write_json(out, self.digest.strip_prefix("sha1:").unwrap_or(self.digest));
        out.extend_from_slice(b",\"length\":\"");
        write_number(out, self.length);
        out.extend_from_slice(b"\",\"offset\":\"");
        write_number(out, self.offset);
        out.extend_from_slice(b"\",\"filename\":");
        write_json(out, self.filename);
        out.extend_from_slice(b"}\n");
    }
}

fn write_json(out: &mut Vec<u8>, text: &str) {
    if text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\') {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        return;
    }
    // Writing to memory, and JSON can represent any text.
    let _ = serde_json::to_writer(out, text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_has_the_location_of_the_record() {
        let capture = Capture {
            uri: "http://h.example/A\"",
            date: Timestamp::from_seconds(1_767_225_600),
            mime: "text/plain",
            status: Some(200),
            digest: "sha1:ABC",
            length: 10,
            offset: 20,
            filename: "x.warc.gz",
        };
        let mut out = Vec::new();
        capture.write_line(&mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "example,h)/a\" 20260101000000 {\"url\":\"http://h.example/A\\\"\",\"mime\":\"text/plain\",\"status\":\"200\",\
             \"digest\":\"ABC\",\"length\":\"10\",\"offset\":\"20\",\"filename\":\"x.warc.gz\"}\n"
        );
    }
}
