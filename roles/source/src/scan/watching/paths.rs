//! What is to be done about a path that had an event.

use super::Watching;
use crate::links::{fingerprint_with, owner_of, same_as_seen};
use crate::names::keys::{key_of, too_long};
use crate::names::path_state::{PathState, inspect};
use crate::scan::full::{beneath, is_folder};
use crate::scan::guard::Lost;
use crate::scan::ingest::{IngestReport, Work};
use abreast_core::{Imported, LogError, State};
use abreast_folder::{Folder, Kind};
use abreast_webtypes::Link;
use std::ops::ControlFlow;

/// Work for the paths that had events.
#[derive(Default)]
pub(super) struct Pass {
    pub(super) work: Vec<Work>,
    pub(super) lost: Lost,
    pub(super) report: IngestReport,
    /// Whether deletions are held, so that a scan must judge further deletions.
    pub(super) holding: bool,
}

impl Watching {
    /// Returns the path that an event is about: for a sidecar, the path of its file.
    pub(super) fn subject(&self, path: Vec<u8>) -> Vec<u8> {
        let Some(owner) = owner_of(&path) else { return path };
        self.options.ingest.links.saw(path.rsplit(|byte| *byte == b'/').next().unwrap_or_default());
        owner
    }

    /// Returns the current links of a file.
    fn links_of(&self, folder: &Folder, path: &[u8]) -> Vec<Link> {
        let policy = &self.options.ingest.links;
        if !policy.active() {
            return Vec::new();
        }
        let found = policy.of(folder, path);
        if let Some(problem) = found.problem {
            tracing::warn!("{problem}");
        }
        found.links
    }

    /// Handles a file whose fingerprint is in the log: the file is not read, but its links may have
    /// changed.
    fn push_known(
        &self,
        folder: &Folder,
        key: &str,
        path: &[u8],
        work: &mut Vec<Work>,
    ) -> Result<bool, LogError> {
        let ingest = &self.options.ingest;
        // Without links and without writes of the API, no other writer could have recorded the
        // file.
        if !ingest.links.active() && ingest.writes.count() == 0 {
            return Ok(false);
        }
        let Some(known) = self.log.resource(self.set, key)? else { return Ok(false) };
        if ingest.contents.is_some() && known.state.content.is_none() {
            return Ok(false);
        }
        let Ok((_, stat)) = folder.open_file(path) else { return Ok(false) };
        let links = self.links_of(folder, path);
        let (same_file, same_links) = same_as_seen(&known.witness, &stat, &links);
        if same_file && !same_links {
            let witness = fingerprint_with(&stat, &links);
            let state = State { links, ..known.state };
            work.push(Work::Relink(Box::new(Imported { key: key.to_owned(), state, witness })));
        }
        Ok(same_file)
    }

    /// Determines the work for a path that had an event.
    pub(super) fn push_path(
        &self,
        folder: &Folder,
        path: &[u8],
        pass: &mut Pass,
    ) -> Result<(), LogError> {
        if let Some(why) = too_long(path) {
            pass.report.refused(path, &why);
            return Ok(());
        }
        let key = key_of(path);
        // The API may already have recorded the file.
        if self.options.ingest.links.depend_on_files() {
            pass.report.touched.push(key.clone());
        }
        let found = inspect(folder, path);
        if !matches!(found, PathState::Folder) {
            self.options.private.copies().sweep(folder, path);
        }
        match found {
            // A file that was replaced by a folder is not judged by the guard.
            PathState::Folder => pass.work.push(Work::Gone { key }),
            PathState::File(_) if is_folder(&*self.log, self.set, &key)? => {
                // First record the deletion of the resources in the folder that this file replaced.
                self.lose_beneath(&key, pass)?;
                pass.report.deferred.push(path.to_vec());
            }
            PathState::File(dir) => {
                if !self.push_known(folder, &key, path, &mut pass.work)? {
                    let links = self.links_of(folder, path);
                    pass.work.push(Work::Check { key, path: path.to_vec(), dir, links });
                }
            }
            found @ (PathState::LeftOut | PathState::Nothing) => {
                let is_left_out = matches!(found, PathState::LeftOut);
                match folder.hidden_folder(path, Kind::File).filter(|_| is_left_out) {
                    // Resources that were published before their folder became private.
                    Some(hidden) if !hidden.is_empty() => {
                        self.lose_beneath(&key_of(hidden), pass)?;
                    }
                    _ => self.lose_beneath(&key, pass)?,
                }
                pass.lost.add_known(&*self.log, self.set, vec![key])?;
            }
            PathState::Unreadable(error) => pass.report.problem(path, &error),
        }
        Ok(())
    }

    /// Adds all resources below a deleted folder to the deletions.
    fn lose_beneath(&self, key: &str, pass: &mut Pass) -> Result<(), LogError> {
        if pass.holding {
            return Ok(());
        }
        self.log.scan(self.set, &beneath(key), &mut |resource| {
            pass.lost.push(resource.key.clone());
            if pass.lost.too_many() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    }
}
