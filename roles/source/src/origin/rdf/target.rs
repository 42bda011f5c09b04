//! Target set and options of reading RDF.

use crate::OpenKept;
use crate::scan::options::DigestPolicy;
use crate::scan::rest::Rest;
use abreast_core::contents::ContentStore;
use abreast_core::{ChangeLog, Finding, Lease, Meter, SetId, Severity};
use abreast_folder::read_sealed;
use abreast_statements::SortOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Media type of descriptions, which are the bytes of entities.
pub const MEDIA_TYPE: &str = "application/n-triples";

/// Options of reading RDF into a set.
#[derive(Clone, Debug)]
pub struct RdfOptions {
    /// Digests to publish for each description.
    pub digests: DigestPolicy,
    /// IRIs of the predicates of labels; empty for the usual ones.
    pub label_predicates: Vec<String>,
    /// Languages of labels, the best first.
    pub languages: Vec<String>,
    /// Memory and other options for sorting statements.
    pub sort: SortOptions,
    /// Whether to record deletions without the guard.
    pub confirm_deletions: bool,
    /// Whether to record other changes if the guard holds deletions. Otherwise nothing is recorded.
    pub record_rest: bool,
    /// Largest recent number of entities, to which deletions are compared; 0 for the current
    /// number.
    pub peak: u64,
    /// How long a watch holds deletions that exceed the limits of the guard ([`crate::Deletions`]);
    /// zero to record all deletions.
    pub hold_deletions: Duration,
    /// Prefix of the IRIs that replace blank nodes with several referring subjects or without any.
    /// `None`: the former are copied, and the latter are not published.
    pub skolemize: Option<String>,
    /// Base of relative IRIs, followed by the path of the file relative to the folder. Ends in `/`.
    /// `None`: relative IRIs are errors.
    pub base: Option<String>,
    /// Whether to compare only, without recording changes.
    pub dry_run: bool,
    /// Information about files that a process may be writing.
    pub rest: Arc<Rest>,
    /// Shows how many entities were compared.
    pub meter: Meter,
    /// The lease of a watch, if several nodes share the store.
    pub lease: Lease,
}

impl RdfOptions {
    /// Creates default options with this folder for temporary files.
    pub fn new(temporary: impl Into<PathBuf>) -> Self {
        Self {
            digests: DigestPolicy::Md5,
            label_predicates: Vec::new(),
            languages: Vec::new(),
            sort: SortOptions::new(temporary),
            confirm_deletions: false,
            record_rest: false,
            peak: 0,
            hold_deletions: crate::scan::guard::HOLD,
            skolemize: None,
            base: None,
            dry_run: false,
            rest: Arc::default(),
            meter: Meter::default(),
            lease: Lease::always(),
        }
    }

    /// Path of the record of the files that a set was last read from.
    pub fn record_of_files(&self, slug: &str) -> PathBuf {
        self.sort.temporary.join(format!("{slug}.read"))
    }
}

/// Checks the records of files in the folder of a store, of all sets.
///
/// # Errors
/// The folder cannot be listed.
pub fn check_records_of_files(store: &Path) -> io::Result<Vec<Finding>> {
    let entries = match std::fs::read_dir(store.join("temporary")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<io::Result<Vec<_>>>()?;
    paths.retain(|path| {
        path.extension().is_some_and(|ending| ending == "read")
            && read_sealed(path).is_err_and(|error| error.kind() == io::ErrorKind::InvalidData)
    });
    let message = "the record of the files that were read is damaged: they are read again";
    let damaged = paths.into_iter().map(|path| Finding {
        severity: Severity::Error,
        rule: "temporary.record",
        location: path.display().to_string(),
        message: message.to_owned(),
    });
    Ok(damaged.collect())
}

/// Set into which RDF is read, with its log and store.
#[derive(Clone, Copy)]
pub struct RdfTarget<'a> {
    /// Change log that contains the set.
    pub log: &'a dyn ChangeLog,
    /// Number of the set in the log.
    pub set: SetId,
    /// Store of the entities' descriptions.
    pub contents: &'a dyn ContentStore,
    /// Function that opens stored descriptions, for a dry run without write access to the store.
    pub kept: Option<&'a OpenKept>,
    /// Options of reading RDF into the set.
    pub options: &'a RdfOptions,
}
