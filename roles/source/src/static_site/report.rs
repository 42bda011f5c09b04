//! The result of a build, and the reasons why it fails.

use crate::publish::PublishError;
use abreast_core::LogError;
use std::io;
use thiserror::Error;

/// Problems reported one by one; the rest is counted.
pub(super) const MAX_PROBLEMS: usize = 100;
/// Characters of a long name in a problem.
pub(super) const SHOWN: usize = 200;

/// The result of a build.
#[derive(Debug, Default)]
pub struct SiteReport {
    /// Documents written or rewritten.
    pub written: u64,
    /// Documents that did not change.
    pub unchanged: u64,
    /// Files removed that no document names any more.
    pub removed: u64,
    /// Resources copied.
    pub copied: u64,
    /// Resources that could not be copied as the lists state them, with the reason.
    pub problems: Vec<String>,
    /// Their number, reported or not.
    pub problem_count: u64,
    /// Notices: worth knowing, and no problem.
    pub notices: Vec<String>,
}

impl SiteReport {
    pub(crate) fn problem(&mut self, problem: String) {
        self.problem_count += 1;
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }

    /// A resource that has no place in the site.
    pub(crate) fn left_out(&mut self, key: &str, why: &str) {
        let shown: String = key.chars().take(SHOWN).collect();
        let rest = if shown.len() < key.len() { "…" } else { "" };
        self.problem(format!(
            "`{shown}{rest}` is not in the site, although the lists name it: {why}"
        ));
    }
}

/// The reason why a site could not be written. Existing files are complete, and as consistent as
/// before.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SiteError {
    /// Files stand where documents belong, and were not written by an earlier build. Nothing was
    /// changed.
    #[error("these files were not written by an earlier build, and are not replaced: {} (help: move them away, or choose another folder)", .0.join(", "))]
    Foreign(Vec<String>),
    /// Another build writes there.
    #[error("another build is writing to `{0}`")]
    Locked(String),
    /// The record of what was written is damaged.
    #[error(
        "cannot read the record of earlier builds, {0} (help: if you move it away, the next build refuses to replace the documents; remove those too)"
    )]
    Record(String),
    /// A file could not be read or written.
    #[error(transparent)]
    Folder(#[from] abreast_folder::Error),
    /// A file could not be read or written.
    #[error("cannot write `{0}`")]
    Write(String, #[source] io::Error),
    /// A document could not be made.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// Stopped by its owner.
    #[error("stopped before the site was complete; the next build continues")]
    Stopped,
}
