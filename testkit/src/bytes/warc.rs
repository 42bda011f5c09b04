//! WARC files written byte by byte as other programs write them, also such as none should write.

use crate::bytes::digest::hex;
use sha2::{Digest as _, Sha256};
use std::io::Write as _;

/// A WARC file that is being written.
pub struct Warc {
    out: Vec<u8>,
    is_packed: bool,
    date: String,
    count: u32,
}

impl Default for Warc {
    fn default() -> Self {
        let date = "2026-01-01T00:00:00Z".to_owned();
        Self { out: Vec::new(), is_packed: true, date, count: 0 }
    }
}

impl Warc {
    /// A file whose records are gzip members.
    pub fn new() -> Self {
        Self::default()
    }

    /// A file whose records are not packed.
    pub fn plain() -> Self {
        Self { is_packed: false, ..Self::default() }
    }

    /// Gives the records added next this date.
    pub fn date(&mut self, date: &str) -> &mut Self {
        date.clone_into(&mut self.date);
        self
    }

    /// Adds the records that files begin with.
    pub fn info(&mut self) -> &mut Self {
        let fields =
            self.fields("warcinfo", "", "application/warc-fields", b"software: warcio/1.8.1\r\n");
        self.record(&fields, b"software: warcio/1.8.1\r\n")
    }

    /// Adds bytes that came another way than by HTTP.
    pub fn resource(&mut self, uri: &str, bytes: &[u8]) -> &mut Self {
        let fields = self.fields("resource", uri, "application/octet-stream", bytes);
        self.record(&fields, bytes)
    }

    /// Adds an answer; `head` is its status line and fields, each with its end.
    pub fn response(&mut self, uri: &str, head: &str, body: &[u8]) -> &mut Self {
        let block = [head.as_bytes(), b"\r\n", body].concat();
        let fields = self.fields("response", uri, "application/http; msgtype=response", &block);
        self.record(&fields, &block)
    }

    /// Adds an answer with the resource.
    pub fn ok(&mut self, uri: &str, body: &[u8]) -> &mut Self {
        let length = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n");
        self.response(uri, &head, body)
    }

    /// The id of the record added last, without brackets.
    pub fn last_id(&self) -> String {
        format!("urn:uuid:00000000-0000-4000-8000-{:012}", self.count)
    }

    /// The fields of a record, each with its end, but for its length.
    pub fn fields(&mut self, kind: &str, uri: &str, content_type: &str, block: &[u8]) -> String {
        self.count += 1;
        let target =
            if uri.is_empty() { String::new() } else { format!("WARC-Target-URI: {uri}\r\n") };
        format!(
            "WARC-Type: {kind}\r\nWARC-Record-ID: <{}>\r\n{target}WARC-Date: {}\r\n\
             WARC-Block-Digest: sha256:{}\r\nContent-Type: {content_type}\r\n",
            self.last_id(),
            self.date,
            hex(&Sha256::digest(block))
        )
    }

    /// Adds a record as it is.
    pub fn record(&mut self, fields: &str, block: &[u8]) -> &mut Self {
        self.record_as(fields, block, block.len())
    }

    /// Adds a record that states another length.
    pub fn record_as(&mut self, fields: &str, block: &[u8], length: usize) -> &mut Self {
        let head = format!("WARC/1.0\r\n{fields}Content-Length: {length}\r\n\r\n");
        let bytes = [head.as_bytes(), block, b"\r\n\r\n"].concat();
        if self.is_packed {
            let mut member =
                flate2::write::GzEncoder::new(&mut self.out, flate2::Compression::default());
            member.write_all(&bytes).unwrap();
            member.finish().unwrap();
        } else {
            self.out.extend_from_slice(&bytes);
        }
        self
    }

    /// The file.
    pub fn finish(&mut self) -> Vec<u8> {
        self.out.clone()
    }
}
