//! The files of a folder, as they are compared with those that were read last.

use super::{RdfOptions, RdfReport};
use crate::names::is_published_name;
use abreast_core::Head;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Most files of a folder.
const MAX_FILES: usize = 1_000_000;
/// A file that was changed less than this before it was read may change again without another time.
const SETTLED: Duration = Duration::from_millis(100);

/// What is compared of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seen {
    pub(super) path: PathBuf,
    size: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// The files with descriptions beneath a folder, in the order of their paths. Hidden names are left
/// out, and links are not followed.
pub(super) fn list(folder: &Path) -> io::Result<Vec<Seen>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next)? {
            let entry = entry?;
            if !is_published_name(entry.file_name().as_bytes()) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file()
                && abreast_rdf::Syntax::of_file_name(&entry.file_name().to_string_lossy()).is_some()
            {
                let Ok(found) = entry.metadata() else { continue };
                files.push(Seen {
                    path: entry.path(),
                    size: found.len(),
                    inode: found.ino(),
                    modified: (found.mtime(), found.mtime_nsec()),
                    changed: (found.ctime(), found.ctime_nsec()),
                });
                if files.len() > MAX_FILES {
                    return Err(io::Error::other(format!("it has more than {MAX_FILES} files")));
                }
            }
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Whether no file could have been changed later without another time.
pub(super) fn are_settled(files: &[Seen]) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    files.iter().all(|file| {
        let (seconds, nanoseconds) = file.changed;
        let changed = Duration::new(seconds.max(0) as u64, nanoseconds as u32);
        changed + SETTLED < now
    })
}

/// What is kept of files that were read: a digest, and what was found in them.
pub(super) fn record(
    report: &RdfReport,
    files: &[Seen],
    options: &RdfOptions,
    head: &Head,
) -> Vec<u8> {
    let mut record = digest(files, options, head).to_vec();
    for count in [report.shared_blank_nodes, report.unreached_blank_nodes, report.unstable] {
        record.extend(count.to_le_bytes());
    }
    record
}

/// What was found in these files, if the record is of them.
pub(super) fn parse(
    record: &[u8],
    files: &[Seen],
    options: &RdfOptions,
    head: &Head,
) -> Option<RdfReport> {
    let counts = record.strip_prefix(&digest(files, options, head))?;
    let count = |place: usize| {
        let bytes = counts.get(place * 8..place * 8 + 8)?;
        Some(u64::from_le_bytes(bytes.try_into().ok()?))
    };
    Some(RdfReport {
        entities: head.resources,
        unchanged: head.resources,
        shared_blank_nodes: count(0)?,
        unreached_blank_nodes: count(1)?,
        unstable: count(2)?,
        ..RdfReport::default()
    })
}

/// A digest of the files, of how they are read and of what the set was after that.
fn digest(files: &[Seen], options: &RdfOptions, head: &Head) -> [u8; 32] {
    let text = format!(
        "1 {:?} {:?} {:?} {:?} {} {} {} {files:?}",
        options.digests,
        options.sort.graphs,
        options.skolemize,
        options.descriptions,
        head.position.0,
        head.created,
        head.resources
    );
    abreast_contents::address_of(text.as_bytes()).0
}
