//! Records of a WARC file as members of a package.

use crate::report::failure::Failure;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// What only a WARC file has.
#[derive(Debug)]
pub(super) struct Records {
    /// Hashes of record ids in ascending order, with the numbers of the members.
    pub(super) ids: Vec<(u64, u32)>,
    pub(super) manifest: Option<u32>,
}

/// The content of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// The complete resource.
    Whole,
    /// The complete resource with a content coding.
    Coded,
    /// No bytes: another record contains the resource.
    Revisit,
    /// A part of the resource.
    Cut,
    /// A response with an error or redirect status.
    Status(u16),
    /// The number of bytes differs from the head of the response.
    Length,
    /// The bytes differ from the digest in the record.
    Digest,
    /// Another record has the same URI and date.
    Ambiguous,
}

impl RecordKind {
    /// Checks that the record can be read. Otherwise the resource can be requested individually.
    pub(super) fn check(self) -> Result<(), Failure> {
        let (code, message) = match self {
            Self::Whole | Self::Coded => return Ok(()),
            Self::Revisit => ("dump.revisit", "its record is a revisit, without its bytes"),
            Self::Cut => ("dump.length", "its record has only a part of it"),
            Self::Length => {
                ("dump.length", "its record has another length than the answer in it states")
            }
            Self::Digest => ("dump.checksum", "its record has other bytes than its digest states"),
            Self::Ambiguous => {
                ("dump.duplicate", "several records of one time are of it, with different bytes")
            }
            Self::Status(status) => {
                let message = format!("its record is an answer with status {status}");
                return Err(Failure::new("dump.status", message));
            }
        };
        Err(Failure::new(code, message))
    }
}

/// Whether the file starts like a WARC file or a gzip file.
pub(super) fn begins_as_records(file: &File) -> io::Result<bool> {
    let mut begin = [0; 5];
    let count = file.read_at(&mut begin, 0)?;
    Ok(begin[..count].starts_with(&abreast_net::Unpacker::MAGIC) || begin == *b"WARC/")
}
