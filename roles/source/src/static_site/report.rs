//! Result of a build, and the reasons why a build fails.

use crate::publish::PublishError;
use abreast_core::LogError;
use std::io;
use thiserror::Error;

/// Problems reported one by one; the rest is counted.
pub(super) const MAX_PROBLEMS: usize = 100;
/// Characters of a long name in a problem.
pub(super) const SHOWN: usize = 200;

/// Result of a build, with counts of files.
#[derive(Debug, Default)]
pub struct SiteReport {
    /// Number of documents that were created or rewritten.
    pub written: u64,
    /// Number of documents that did not change.
    pub unchanged: u64,
    /// Number of files that were removed because they are no longer published.
    pub removed: u64,
    /// Number of resources that were copied.
    pub copied: u64,
    /// Resources whose copies cannot have the digest in the lists, with the reason; at most 100.
    pub problems: Vec<String>,
    /// Number of all problems, including problems after the first 100.
    pub problem_count: u64,
    /// Notices for the user that are not problems.
    pub notices: Vec<String>,
}

impl SiteReport {
    pub(crate) fn problem(&mut self, problem: String) {
        self.problem_count += 1;
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }

    /// Adds the problem of a resource that cannot be copied.
    pub(crate) fn left_out(&mut self, key: &str, why: &str) {
        let shown: String = key.chars().take(SHOWN).collect();
        let rest = if shown.len() < key.len() { "…" } else { "" };
        self.problem(format!(
            "`{shown}{rest}` is not in the site, although the lists name it: {why}"
        ));
    }
}

/// Reason why a site could not be written. Existing files are complete, and as consistent as before
/// the build.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SiteError {
    /// Files with the paths of documents exist that an earlier build did not write. No file was
    /// changed.
    #[error("these files were not written by an earlier build, and are not replaced: {} (help: move them away, or choose another folder)", .0.join(", "))]
    Foreign(Vec<String>),
    /// Another build is writing to the folder.
    #[error("another build is writing to `{0}`")]
    Locked(String),
    /// The record of written files is damaged.
    #[error(
        "cannot read the record of earlier builds, {0} (help: if you move it away, the next build refuses to replace the documents; remove those too)"
    )]
    Record(String),
    /// A folder of the site could not be read or changed.
    #[error(transparent)]
    Folder(#[from] abreast_folder::Error),
    /// A file could not be read or written.
    #[error("cannot write `{0}`")]
    Write(String, #[source] io::Error),
    /// A document could not be rendered.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The caller stopped the build.
    #[error("stopped before the site was complete; the next build continues")]
    Stopped,
}
