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

/// What a record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// The resource.
    Whole,
    /// The resource in a coding of its content.
    Coded,
    /// Nothing: its bytes are in another record.
    Revisit,
    /// A part of the resource.
    Cut,
    /// An answer with another status.
    Status(u16),
    /// Another number of bytes than the answer's head states.
    Length,
    /// Other bytes than its digest states.
    Digest,
    /// There is another of the same URI and date.
    Ambiguous,
}

impl RecordKind {
    /// Checks that it may be read. Without it a resource can be requested.
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

/// Whether a file begins as a WARC file does, or as a packed one.
pub(super) fn begins_as_records(file: &File) -> io::Result<bool> {
    let mut begin = [0; 5];
    let count = file.read_at(&mut begin, 0)?;
    Ok(begin[..count].starts_with(&abreast_net::Unpacker::MAGIC) || begin == *b"WARC/")
}
