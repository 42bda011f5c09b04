//! A dump as a WARC file: a record about the file, a record with the manifest, and for each
//! resource a record with the answer to a request [rs-0.1 §4.2].
//!
//! Each record is a separate gzip member, so that an index can list its offset. All records have
//! digests of the payload and of the block. `WARC-Target-URI` identifies the resource of a record.

use super::manifest::Manifest;
use crate::made::MadeFile;
use crate::projection::resourcesync::dumps::is_packed;
use crate::versions::http_date;
use abreast_resourcesync::v0_1::Entry;
use abreast_warc::{END, Kind, Member, Packing, Record};
use abreast_webtypes::Timestamp;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;
use zip::{CompressionMethod, ZipArchive};

/// Bytes read and written at a time.
const BUFFER: usize = 256 * 1024;
/// Compression level for resources that are compressed in the package.
const LEVEL: u8 = 6;

/// Writes a part of a package; `url` is the address of the dump.
pub(super) fn write(
    package: &Path,
    manifest: &Manifest<'_>,
    part: u64,
    url: &str,
    out: &mut MadeFile,
) -> io::Result<()> {
    let package = BufReader::with_capacity(BUFFER, File::open(package)?);
    let mut package = ZipArchive::new(package)?;
    let (time, document) = (manifest.time()?, manifest.document(part)?);
    let mut records = Records { out: BufWriter::with_capacity(BUFFER, out), url };
    records.begin(time, &document)?;
    let mut chunk = vec![0; BUFFER];
    manifest.of_part(part, &mut |entry, _| {
        let Some(path) = &entry.path else { return Ok(()) };
        let member = package.by_name(path)?;
        let (length, packed) = (member.size(), member.compression() != CompressionMethod::Stored);
        let date = entry.time.map_or(time, |time| time.instant);
        let head = http_head(entry, date, length);
        let (mut payload, mut block) = (Sha256::new(), Sha256::new_with_prefix(&head));
        each_chunk(member, &mut chunk, |bytes| {
            payload.update(bytes);
            block.update(bytes);
            Ok(())
        })?;
        let media_type = entry.media_type.as_deref().unwrap_or_default();
        let packing = if packed && entry.encoding.is_none() && !is_packed(media_type) {
            Packing::Deflate(LEVEL)
        } else {
            Packing::Stored
        };
        let record = Record {
            target: Some(&entry.loc),
            content_type: "application/http; msgtype=response",
            payload_digest: Some(&spelled(payload)),
            block_digest: Some(&spelled(block)),
            ..Record::new(Kind::Response, records.id(&entry.loc), date)
        };
        let mut record_head = Vec::new();
        record.write_head(&mut record_head, head.len() as u64 + length);
        let mut out = Member::begin(&mut records.out, packing)?;
        out.add(&record_head)?;
        out.add(&head)?;
        each_chunk(package.by_name(path)?, &mut chunk, |bytes| out.add(bytes))?;
        out.add(END)?;
        out.finish().map(|_| ())
    })?;
    records.out.flush()
}

/// The records of a dump.
struct Records<'a, W: Write> {
    out: BufWriter<W>,
    url: &'a str,
}

impl<W: Write> Records<'_, W> {
    /// Writes the records before the resources.
    fn begin(&mut self, time: Timestamp, manifest: &[u8]) -> io::Result<()> {
        let info = format!(
            "software: abreast/{}\r\nformat: WARC File Format 1.1\r\n\
             conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/\r\n",
            env!("CARGO_PKG_VERSION")
        );
        let filename = self.url.rsplit('/').next();
        self.add(
            &Record {
                content_type: "application/warc-fields",
                filename,
                ..Record::new(Kind::Warcinfo, self.id(""), time)
            },
            info.as_bytes(),
        )?;
        let target = format!("{}/manifest.xml", self.url);
        self.add(
            &Record {
                target: Some(&target),
                content_type: "application/xml",
                ..Record::new(Kind::Resource, self.id(&target), time)
            },
            manifest,
        )
    }

    fn add(&mut self, record: &Record<'_>, block: &[u8]) -> io::Result<()> {
        let digest = spelled(Sha256::new_with_prefix(block));
        let payload_digest = (record.kind == Kind::Resource).then_some(digest.as_str());
        let mut head = Vec::new();
        Record { payload_digest, block_digest: Some(&digest), ..*record }
            .write_head(&mut head, block.len() as u64);
        let mut member = Member::begin(&mut self.out, Packing::Deflate(LEVEL))?;
        for part in [&head, block, END] {
            member.add(part)?;
        }
        member.finish().map(|_| ())
    }

    /// Unique identifier of the record about a URI, the same each time the dump is made.
    fn id(&self, uri: &str) -> [u8; 16] {
        let hash = blake3::hash(format!("{} {uri}", self.url).as_bytes());
        let mut id = [0; 16];
        id.copy_from_slice(&hash.as_bytes()[..16]);
        id
    }
}

fn each_chunk(
    mut from: impl Read,
    chunk: &mut [u8],
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    loop {
        match from.read(chunk) {
            Ok(0) => return Ok(()),
            Ok(read) => take(&chunk[..read])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The HTTP head of an answer with the resource.
fn http_head(entry: &Entry, modified: Timestamp, length: u64) -> Vec<u8> {
    let mut head = "HTTP/1.1 200 OK\r\n".to_owned();
    let mut field = |name: &str, value: &str| {
        let value: String = value.chars().filter(|character| !character.is_control()).collect();
        let _ = write!(head, "{name}: {value}\r\n");
    };
    for (name, value) in
        [("Content-Type", &entry.media_type), ("Content-Encoding", &entry.encoding)]
    {
        if let Some(value) = value {
            field(name, value);
        }
    }
    field("Content-Length", &length.to_string());
    field("Last-Modified", &http_date(modified));
    head.push_str("\r\n");
    head.into_bytes()
}

/// A digest in the form that WARC files use.
fn spelled(hash: Sha256) -> String {
    let mut text = "sha256:".to_owned();
    for byte in hash.finalize() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
