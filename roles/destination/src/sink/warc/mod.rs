//! The packed copy: WARC files that archives preserve and replay programs read, append-only.
//!
//! `archive/` contains the segments, and `indexes/` contains their CDXJ index, a collection for
//! pywb. Records in the archive are permanent. The database has the position of each resource's
//! newest record, and the valid length of each segment. The next run removes bytes that a killed
//! run wrote after this length. The deletion of a resource is a metadata record.

mod adopt;
mod index;
mod kept;
mod kind;
mod segments;
pub(crate) mod spelling;

use super::outcome::Outcome;
use super::{Body, Deleted, Deleting, Prepared, Sink, SinkWriter, Storing};
use crate::copy::names::JOURNAL;
use crate::copy::partial::Partials;
use crate::copy::state_folder::StateFolder;
use crate::report::clock::now;
use crate::report::error::{Error, ExitCode};
use crate::report::failure::Failure;
use crate::report::sinks::{ARCHIVE, INDEXES, WarcOptions};
use crate::request::verify::Hasher;
use crate::sink::warc::spelling::{spelled, write_error};
use abreast_folder::Dir;
use abreast_store::mirror::{Mirror, Row, Segment, Task};
use abreast_warc::{Capture, END, Kind, Member, Original, Packing, Record};
use abreast_webtypes::{Digests, Timestamp};
use segments::{Located, Segments};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Key of the number of resources that the archive already contained when the database was created.
const ADOPTED: &str = "warc-adopted";
/// Length in bytes from which on bodies are compared with archived ones; a reference to a smaller
/// body saves nothing.
const REVISIT_BYTES_MIN: u64 = 256;
/// Length in bytes above which a body gets a separate segment, so that other connections need not
/// wait.
const OWN_SEGMENT_BYTES: u64 = 64 << 20;
/// Number of bytes that are read from a large body at a time.
const BLOCK_BYTES: usize = 256 << 10;
/// Number of items whose records become durable together.
const BATCH_ITEMS: u64 = 5_000;

/// A packed copy as a sink.
#[derive(Debug)]
pub(crate) struct WarcSink {
    segments: Segments,
    index: index::Index,
    partials: Partials,
    spill: Dir,
    options: WarcOptions,
    epoch: i64,
}

impl WarcSink {
    /// Number of resources that were found in the archive when the database was created; `None`
    /// before that.
    pub(crate) fn adopted(mirror: &Mirror) -> Result<Option<u64>, Error> {
        Ok(mirror.meta(ADOPTED)?.map(|count| count.parse().unwrap_or(0)))
    }

    /// Opens the copy in `folder`, and removes bytes that were never recorded.
    pub(crate) fn open(
        folder: &Path,
        state: &StateFolder,
        mirror: &Mirror,
        options: &WarcOptions,
        epoch: i64,
        source: &str,
    ) -> Result<Self, Error> {
        let unusable = |path: &Path, cause: std::io::Error| {
            Error::new("io", ExitCode::Io, format!("cannot use {}: {cause}", path.display()))
                .with_cause(cause)
        };
        let (archive, indexes) = (folder.join(ARCHIVE), folder.join(INDEXES));
        for path in [&archive, &indexes] {
            std::fs::create_dir_all(path).map_err(|cause| unusable(path, cause))?;
        }
        let index = index::Index::open(indexes.clone(), state.path().join(JOURNAL), mirror)
            .map_err(|cause| unusable(&indexes, cause))?;
        if mirror.meta(ADOPTED)?.is_none() {
            mirror.begin()?;
            let adopted = index.clear().and_then(|()| {
                adopt::adopt(&archive, mirror, &mut |lines| index.journal(lines, mirror))
            });
            let count = adopted.map_err(|cause| unusable(&archive, cause))?;
            mirror.set_meta(ADOPTED, Some(&count.to_string()))?;
            mirror.commit()?;
        }
        let segments = Segments::open(&archive, mirror, options, source)?;
        let (partials, spill) = super::spill_folder(state)?;
        Ok(Self { segments, index, partials, spill, options: options.clone(), epoch })
    }
}

/// Removes the rows of records after the first `whole` bytes of a segment. Planned resources are
/// then fetched again.
///
/// # Errors
/// The database or the index cannot be written.
pub(crate) fn forget_beyond(
    folder: &Path,
    state: &Path,
    mirror: &Mirror,
    (segment, whole): (&Segment, u64),
) -> Result<(), Error> {
    let indexes = folder.join(INDEXES);
    std::fs::create_dir_all(&indexes)
        .and_then(|()| index::Index::open(indexes, state.join(JOURNAL), mirror))
        .and_then(|index| index.forget(&segment.name, whole, mirror))
        .map_err(write_error)?;
    mirror.cut_segment(segment.number, whole)?;
    if whole > 0 {
        // Earlier records belong to earlier versions, and remain in the archive.
        mirror.put_segment(&Segment { length: whole, ..segment.clone() })?;
    }
    Ok(())
}

impl Sink for WarcSink {
    fn writer(self: Arc<Self>) -> Box<dyn SinkWriter> {
        Box::new(WarcWriter {
            sink: self,
            head: Vec::new(),
            answer: Vec::new(),
            member: Vec::new(),
        })
    }

    fn partials(&self) -> &Partials {
        &self.partials
    }

    fn shown(&self, uri: &str, _leaf: bool) -> String {
        uri.to_owned()
    }

    fn wants_head(&self) -> bool {
        true
    }

    fn batch_items(&self) -> u64 {
        BATCH_ITEMS
    }

    fn stores_later(&self) -> bool {
        true
    }

    fn settle(&self, mirror: &Mirror) -> Result<Vec<(String, Failure)>, Error> {
        let lines = self.segments.settle(mirror)?;
        self.index.journal(&lines, mirror).map_err(write_error)?;
        Ok(Vec::new())
    }

    fn sweep(&self, uri: &str) {
        let _ = self.spill.unlink(&crate::copy::names::temporary_name(uri));
    }

    fn finish(&self, mirror: &Mirror) -> Result<(), Error> {
        self.index.merge(mirror).map_err(write_error)
    }
}

/// The writer of a connection.
struct WarcWriter {
    sink: Arc<WarcSink>,
    /// Head of the record being made.
    head: Vec<u8>,
    /// Head of the response in the record.
    answer: Vec<u8>,
    /// The record being made, as packed.
    member: Vec<u8>,
}

impl SinkWriter for WarcWriter {
    fn prepare(&mut self, task: &Task, listed: &Digests) -> Result<Prepared, Failure> {
        if let Some(row) = &task.row
            && super::is_right(task, row, listed)
        {
            return Ok(Prepared::Done(Outcome::Right { row: super::with_time(task, row.clone()) }));
        }
        Ok(Prepared::Wanted { dir: self.sink.spill.clone(), conditional: task.row.is_some() })
    }

    fn still_right(&mut self, task: &Task) -> Result<Row, Failure> {
        Ok(super::with_time(task, task.row.clone().unwrap_or_default()))
    }

    fn store<'a>(&'a mut self, task: &'a Task, body: Body<'a>) -> Storing<'a> {
        Box::pin(std::future::ready(self.store_now(task, body)))
    }

    fn delete<'a>(&'a mut self, tasks: &'a [Task]) -> Deleting<'a> {
        let delete = |task: &Task| {
            if task.row.is_none() {
                return Ok(Deleted::default());
            }
            self.append_deletion(task)?;
            Ok(Deleted { gone: true, notices: Vec::new() })
        };
        super::until_fatal(tasks, delete)
    }
}

impl WarcWriter {
    fn store_now(&mut self, task: &Task, mut body: Body<'_>) -> Result<Outcome, Failure> {
        let row = body.row(task, self.sink.epoch);
        // If no digest is listed, only the bytes show that nothing has changed. A second record is
        // not written.
        if let Some(kept) = task
            .row
            .as_ref()
            .filter(|kept| kept.length == row.length && kept.digests == row.digests)
        {
            return Ok(Outcome::Right {
                row: Row { etag: row.etag, ..super::with_time(task, kept.clone()) },
            });
        }
        while !self.append(task, &mut body, &row)? {}
        Ok(Outcome::Stored { created: task.row.is_none(), row, notices: body.notices })
    }

    /// Appends the record of a body. `false`: another connection appended the same body meanwhile,
    /// and a record that refers to that one is wanted.
    fn append(&mut self, task: &Task, body: &mut Body<'_>, row: &Row) -> Result<bool, Failure> {
        let uri = task.pending.uri.as_str();
        let date = body.received.unwrap_or_else(now);
        let digest = spelled(&body.digests);
        let of_http = !body.head.is_empty();
        let head = &mut self.answer;
        head.clear();
        if of_http {
            head.extend_from_slice(body.head);
            let _ = write!(head, "Content-Length: {}\r\n\r\n", body.length);
        }
        let original = if of_http && body.file.is_none() && body.length >= REVISIT_BYTES_MIN {
            self.sink.segments.original(&row.digests, body.length)
        } else {
            None
        };
        let block_length =
            if original.is_some() { head.len() as u64 } else { head.len() as u64 + body.length };
        let block_digest = match (of_http, original.is_some()) {
            // The block of a resource record is identical to its payload.
            (false, _) => digest.clone(),
            (true, false) if self.sink.options.block_digest && body.file.is_none() => {
                let mut hasher = Hasher::for_listed(&body.digests);
                hasher.update(head);
                hasher.update(body.bytes);
                spelled(&hasher.finish())
            }
            _ => None,
        };
        let media_type = body.media_type.as_deref().unwrap_or("application/octet-stream");
        let mime = media_type.split(';').next().unwrap_or_default().trim();
        let record = Record {
            target: Some(uri),
            content_type: if of_http { "application/http; msgtype=response" } else { media_type },
            payload_digest: digest.as_deref(),
            block_digest: block_digest.as_deref(),
            original: original
                .as_ref()
                .map(|original| Original { target: &original.uri, date: original.date }),
            ..Record::new(kind_of(of_http, original.is_some()), self.sink.segments.next_id(), date)
        };
        self.head.clear();
        record.write_head(&mut self.head, block_length);
        let capture = Capture {
            uri,
            date,
            mime: if original.is_some() { "warc/revisit" } else { mime },
            status: (of_http && original.is_none()).then_some(200),
            digest: digest.as_deref().unwrap_or("-"),
            length: 0,
            offset: 0,
            filename: "",
        };
        let packing = packing(&self.sink.options, mime, body.head);
        let reusable = of_http
            && body.file.is_none()
            && original.is_none()
            && body.length >= REVISIT_BYTES_MIN;
        let is_whole = original.is_none();
        let located = Located { original: original.map(|original| original.at), row, reusable };
        if let Some(file) = &mut body.file {
            let parts = [self.head.as_slice(), head.as_slice()];
            let own = body.length >= OWN_SEGMENT_BYTES;
            file.file.rewind()?;
            let mut write = |out: &mut dyn std::io::Write| -> std::io::Result<()> {
                let mut member = Member::begin(out, packing)?;
                for part in parts {
                    member.add(part)?;
                }
                let mut block = vec![0; BLOCK_BYTES];
                let mut left = body.length;
                while left > 0 {
                    let most = usize::try_from(left).unwrap_or(usize::MAX).min(BLOCK_BYTES);
                    let count = file.file.read(&mut block[..most])?;
                    if count == 0 {
                        return Err(std::io::ErrorKind::UnexpectedEof.into());
                    }
                    member.add(&block[..count])?;
                    left -= count as u64;
                }
                member.add(END)?;
                member.finish().map(|_| ())
            };
            self.sink.segments.append_large(&capture, &located, &mut write, own)?;
            Ok(true)
        } else {
            self.member.clear();
            let mut member = Member::begin(&mut self.member, packing)?;
            for part in [self.head.as_slice(), head.as_slice()] {
                member.add(part)?;
            }
            if is_whole {
                member.add(body.bytes)?;
            }
            member.add(END)?;
            member.finish()?;
            Ok(self.sink.segments.append(&capture, &self.member, &located)?)
        }
    }

    fn append_deletion(&mut self, task: &Task) -> Result<(), Failure> {
        let uri = task.pending.uri.as_str();
        let mut block = b"change: deleted\r\n".to_vec();
        if let Some(changed) = task.pending.changed {
            let _ = write!(block, "datetime: {}\r\n", Timestamp::from_micros(changed));
        }
        let record = Record {
            target: Some(uri),
            content_type: "application/warc-fields",
            ..Record::new(Kind::Metadata, self.sink.segments.next_id(), now())
        };
        self.head.clear();
        record.write_head(&mut self.head, block.len() as u64);
        self.member.clear();
        let mut member = Member::begin(&mut self.member, Packing::Stored)?;
        for part in [self.head.as_slice(), &block, END] {
            member.add(part)?;
        }
        member.finish()?;
        self.sink.segments.append_deletion(uri, &self.member)?;
        Ok(())
    }
}

fn packing(options: &WarcOptions, mime: &str, head: &[u8]) -> Packing {
    let encoded =
        || head.windows(17).any(|window| window.eq_ignore_ascii_case(b"content-encoding:"));
    match options.compression {
        0 => Packing::Stored,
        _ if is_packed_type(mime) || encoded() => Packing::Stored,
        level => Packing::Deflate(level),
    }
}

const fn kind_of(of_http: bool, revisit: bool) -> Kind {
    match (of_http, revisit) {
        (true, true) => Kind::Revisit,
        (true, false) => Kind::Response,
        (false, _) => Kind::Resource,
    }
}

/// Types whose bytes are packed already.
fn is_packed_type(mime: &str) -> bool {
    let mime = mime.to_ascii_lowercase();
    let (family, kind) = mime.split_once('/').unwrap_or((&mime, ""));
    match family {
        "image" => !matches!(kind, "svg+xml" | "bmp" | "tiff" | "x-icon"),
        "audio" | "video" => true,
        "font" => kind.starts_with("woff"),
        "application" => {
            kind.ends_with("zip")
                || kind.ends_with("+gzip")
                || matches!(
                    kind,
                    "pdf"
                        | "zstd"
                        | "x-7z-compressed"
                        | "x-xz"
                        | "x-bzip2"
                        | "vnd.rar"
                        | "java-archive"
                )
                || kind.starts_with("vnd.openxmlformats")
                || kind.starts_with("vnd.oasis.opendocument")
        }
        _ => false,
    }
}

/// The place of the archive for a copy's folder.
pub(crate) fn archive_of(folder: &Path) -> PathBuf {
    folder.join(ARCHIVE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::warc::spelling::base32;
    use abreast_webtypes::Algorithm;

    #[test]
    fn digests_are_spelled_as_archives_do() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "MY======"),
            (b"fo", "MZXQ===="),
            (b"foo", "MZXW6==="),
            (b"foob", "MZXW6YQ="),
            (b"fooba", "MZXW6YTB"),
            (b"foobar", "MZXW6YTBOI======"),
        ] {
            assert_eq!(base32(bytes), text);
        }
        let mut digests = Digests::default();
        digests.set(Algorithm::Md5, &[0; 16]);
        assert_eq!(spelled(&digests).as_deref(), Some("md5:AAAAAAAAAAAAAAAAAAAAAAAAAA======"));
        digests.set(Algorithm::Sha256, &[0xab; 32]);
        assert_eq!(spelled(&digests), Some(format!("sha256:{}", "ab".repeat(32))));
    }

    #[test]
    fn packed_types_are_not_packed_again() {
        for mime in [
            "image/png",
            "application/zip",
            "application/x-gzip",
            "video/mp4",
            "application/pdf",
            "font/woff2",
        ] {
            assert!(is_packed_type(mime), "{mime}");
        }
        for mime in ["text/html", "image/svg+xml", "application/json", "application/rdf+xml", ""] {
            assert!(!is_packed_type(mime), "{mime}");
        }
    }
}
