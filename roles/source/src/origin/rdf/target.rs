//! The set into which RDF is read, and how.

use crate::origin::rdf::description::DescriptionOptions;
use crate::scan::options::DigestPolicy;
use crate::scan::rest::Rest;
use abreast_contents::Contents;
use abreast_contents::View;
use abreast_core::ChangeLog;
use abreast_core::SetId;
use abreast_statements::SortOptions;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The media type of an entity's bytes.
pub const MEDIA_TYPE: &str = "application/n-triples";

/// How RDF is read into a set.
#[derive(Clone, Debug)]
pub struct RdfOptions {
    /// The digests to publish.
    pub digests: DigestPolicy,
    /// What is taken from descriptions.
    pub descriptions: DescriptionOptions,
    /// How statements are sorted.
    pub sort: SortOptions,
    /// Record deletions however many there are.
    pub confirm_deletions: bool,
    /// Where the guard holds deletions: record the rest. Otherwise nothing is recorded.
    pub record_rest: bool,
    /// The most entities that the set had lately, by which deletions are judged; 0: what it has now.
    pub peak: u64,
    /// How long a watch holds deletions that are more than the guard allows ([`crate::Deletions`]);
    /// zero for not at all.
    pub hold_deletions: Duration,
    /// The beginning of the IRIs that blank nodes get which are the object of several subjects, or
    /// of none; `None`: they have copies, and are not published.
    pub skolemize: Option<String>,
    /// Relative IRIs in a file are resolved against this and the path of the file below its folder.
    /// Ends in `/`. `None`: relative IRIs are errors.
    pub base: Option<String>,
    /// Compare, and record nothing.
    pub dry_run: bool,
    /// What is known of files that may be written.
    pub rest: Arc<Rest>,
}

impl RdfOptions {
    /// Defaults, with a folder for temporary files.
    pub fn new(temporary: impl Into<PathBuf>) -> Self {
        Self {
            digests: DigestPolicy::Md5,
            descriptions: DescriptionOptions::default(),
            sort: SortOptions::new(temporary),
            confirm_deletions: false,
            record_rest: false,
            peak: 0,
            hold_deletions: crate::scan::guard::HOLD,
            skolemize: None,
            base: None,
            dry_run: false,
            rest: Arc::default(),
        }
    }
}

/// The set into which RDF is read.
#[derive(Clone, Copy)]
pub struct RdfTarget<'a> {
    /// The log.
    pub log: &'a dyn ChangeLog,
    /// The set, whose history begins in its log.
    pub set: SetId,
    /// Where descriptions are kept.
    pub contents: &'a Contents,
    /// Where the present ones are read instead, in a dry run that may write nothing there.
    pub kept: Option<&'a View>,
    /// How it is read.
    pub options: &'a RdfOptions,
}
