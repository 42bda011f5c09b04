//! List of the files in a folder, for comparison with the files of the last reading.

use crate::names::keys::is_published_name;
use crate::names::private::{OWN_COPY, is_mark};
use crate::origin::rdf::report::RdfReport;
use crate::origin::rdf::target::RdfOptions;
use crate::{Private, Rest};
use abreast_core::Head;
use abreast_folder::Stat;
use abreast_webtypes::visible;
use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Most files in a folder of RDF.
const MAX_FILES: usize = 1_000_000;
/// Most skipped files that are reported.
const MAX_SKIPPED: usize = 100;
/// Time without changes after which a file is at rest, if some processes are not visible.
const SETTLE: Duration = Duration::from_secs(1);
/// Time before the reading in which a changed file may change again without a new modification
/// time.
const SETTLED: Duration = Duration::from_millis(100);

/// Properties of a file that are compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seen {
    pub(super) path: PathBuf,
    size: u64,
    inode: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

/// Files in a folder and its subfolders.
#[derive(Default)]
pub(super) struct Listing {
    /// Files with descriptions, sorted by path.
    pub(super) files: Vec<Seen>,
    /// The first skipped files, sorted by path, with the reason.
    pub(super) skipped: BTreeMap<PathBuf, &'static str>,
    skipped_count: usize,
}

impl Listing {
    fn skip(&mut self, path: PathBuf, reason: &'static str) {
        self.skipped_count += 1;
        self.skipped.insert(path, reason);
        if self.skipped.len() > MAX_SKIPPED {
            self.skipped.pop_last();
        }
    }

    /// Logs the skipped files that an earlier listing did not contain.
    pub(super) fn warn(&self, before: &Self) {
        for (path, reason) in &self.skipped {
            if !before.skipped.contains_key(path) {
                let path = path.to_string_lossy();
                tracing::warn!("`{}` is not read: {reason}", visible(&path));
            }
        }
        let more = self.skipped_count - self.skipped.len();
        if more > 0 && self.skipped_count != before.skipped_count {
            tracing::warn!("more files that are not read: {more}");
        }
    }
}

/// Lists the files in a folder and its subfolders. Hidden names and private folders are skipped,
/// and symbolic links are not followed.
pub(super) fn list(folder: &Path, private: &Private) -> io::Result<Listing> {
    let mut listing = Listing::default();
    let (mut folders, mut hidden) = (vec![folder.to_owned()], HashSet::new());
    while let Some(next) = folders.pop() {
        let entries: Vec<_> = std::fs::read_dir(&next)?.collect::<io::Result<_>>()?;
        let is_marked = entries.iter().any(|entry| is_mark(entry.file_name().as_bytes()));
        if is_marked
            && next != folder
            && let Some(what) = private.reason(&next)
        {
            listing.skip(next, what);
            continue;
        }
        if is_marked {
            hidden.extend(private.own_parts(&next));
        }
        for entry in entries {
            if !is_published_name(entry.file_name().as_bytes()) {
                continue;
            }
            let kind = entry.file_type()?;
            let path = entry.path();
            if kind.is_dir() {
                if hidden.contains(&path) {
                    listing.skip(path, OWN_COPY);
                } else {
                    folders.push(path);
                }
            } else if kind.is_symlink() {
                listing.skip(path, "symbolic links are not followed");
            } else if !kind.is_file() {
                listing.skip(path, "it is not a regular file");
            } else if let Ok(None) = abreast_statements::syntax_of_file(&path) {
                let is_xml =
                    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("xml"));
                listing.skip(path, if is_xml { NOT_RDF } else { UNKNOWN });
            } else {
                let Ok(found) = entry.metadata() else { continue };
                listing.files.push(Seen {
                    path,
                    size: found.len(),
                    inode: found.ino(),
                    modified: (found.mtime(), found.mtime_nsec()),
                    changed: (found.ctime(), found.ctime_nsec()),
                });
                if listing.files.len() > MAX_FILES {
                    return Err(io::Error::other(format!("it has more than {MAX_FILES} files")));
                }
            }
        }
    }
    listing.files.sort_unstable();
    Ok(listing)
}

/// Returns the first file that a process may still be writing. Files that are in `read` are not
/// checked.
pub(super) fn unsettled<'f>(files: &'f [Seen], read: &[Seen], rest: &Rest) -> Option<&'f Path> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let is_unsettled = |seen: &&Seen| {
        read.binary_search(seen).is_err()
            // A file that cannot be opened is not a reason to wait.
            && File::open(&seen.path)
                .ok()
                .and_then(|file| Stat::of(&file).ok())
                .is_some_and(|stat| rest.is_unsettled(now, &stat, SETTLE))
    };
    files.iter().find(is_unsettled).map(|seen| seen.path.as_path())
}

const UNKNOWN: &str = "its name has no ending of a known syntax (help: .nt, .nq, .ttl, .trig, .rdf, .owl, .xml or .jsonld, \
    also with .gz, .bz2, .xz or .zst)";
const NOT_RDF: &str = "its root is not rdf:RDF (help: if it is RDF/XML, let its name end in .rdf)";

/// Whether each later change of a file would cause a new modification time.
pub(super) fn are_settled(files: &[Seen]) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    files.iter().all(|file| {
        let (seconds, nanoseconds) = file.changed;
        let changed = Duration::new(seconds.max(0) as u64, nanoseconds as u32);
        changed + SETTLED < now
    })
}

/// Formats the record of a reading: a digest of the files, and the numbers in the report.
pub(super) fn record(
    report: &RdfReport,
    files: &[Seen],
    options: &RdfOptions,
    head: &Head,
) -> Vec<u8> {
    let mut record = digest(files, options, head).to_vec();
    let RdfReport { shared_blank_nodes, unreached_blank_nodes, unstable, left_out, .. } = report;
    let invalid = &report.invalid_statements;
    for count in [shared_blank_nodes, unreached_blank_nodes, unstable, left_out, invalid] {
        record.extend(count.to_le_bytes());
    }
    record
}

/// Parses a record, and returns the report if the record is about these files.
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
        left_out: count(3)?,
        // Records of earlier program versions do not have this number.
        invalid_statements: count(4).unwrap_or_default(),
        ..RdfReport::default()
    })
}

/// Computes a digest of the files, the options and the state of the set after reading.
fn digest(files: &[Seen], options: &RdfOptions, head: &Head) -> [u8; 32] {
    let invalid = if options.sort.leave_out_invalid { " without invalid statements" } else { "" };
    let contexts = options.sort.contexts.fingerprint();
    let text = format!(
        "3{invalid} {contexts:x} {:?} {:?} {:?} {:?} {:?} {} {} {} {files:?}",
        options.digests,
        options.sort.graphs,
        options.skolemize,
        options.base,
        (&options.label_predicates, &options.languages),
        head.position.0,
        head.created,
        head.resources
    );
    abreast_core::contents::address_of(text.as_bytes()).0
}
