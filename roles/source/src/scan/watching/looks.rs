//! Reading the paths with events, and the paths without reliable events.

use super::paths::Pass;
use super::{Ended, Round, Watching};
use crate::names::keys::{is_published_name, is_published_path, path_of};
use crate::names::path_state::{PathState, inspect};
use crate::scan::full::{ScanOptions, delete, walk};
use crate::scan::guard::Held;
use crate::scan::guard::Lost;
use crate::scan::hash::Reading;
use crate::scan::ingest::{IngestReport, MAX_NOTED, ingest_now};
use crate::scan::options::IngestOptions;
use crate::scan::pending::INSTANT;
use abreast_folder::Folder;
use std::time::{Duration, Instant};

impl Round<'_> {
    /// Examines paths without reliable events.
    pub(super) fn examine(&mut self) -> Result<(), Ended> {
        let begun = Instant::now();
        let ready = self.unsure.take_readable(&self.folder, self.events.as_mut());
        let IngestOptions { rest, settle, .. } = &self.watching.options.ingest;
        let changed = self.unsure.changed(&self.folder, rest, *settle);
        self.pending.defer(changed);
        // The time for reading changed files is useful, and does not count towards the share.
        self.unsure.examined(begun.elapsed());
        if !ready.is_empty() {
            self.watching.check_root(&self.root, &self.folder)?;
            self.look_at(ready, true)?;
        }
        Ok(())
    }

    /// Reads paths of files and folders. The deletion of missing resources is recorded, unless the
    /// guard holds it.
    pub(super) fn look_at(&mut self, mut ready: Vec<Vec<u8>>, again: bool) -> Result<(), Ended> {
        let Watching { log, set, options, aliases, .. } = self.watching;
        let (log, set) = (&**log, *set);
        // If symbolic links lead to a file, it is also published under the paths of the links.
        let others: Vec<_> = ready.iter().flat_map(|path| aliases.of(path)).collect();
        ready.extend(others);
        ready.sort_unstable();
        ready.dedup();
        let before = self.judged_size()?;
        let writes = options.ingest.writes.count();
        let mut pass = Pass { holding: self.hold.is_some(), ..Pass::default() };
        for path in ready.iter().filter(|path| is_published_path(path)) {
            if self.watching.stopping() {
                return Err(Ended::Stopped);
            }
            self.watching.push_path(&self.folder, path, &mut pass)?;
        }
        let Pass { work, mut lost, mut report, .. } = pass;
        // The paths had no events for the debounce time, or no process has them open. An event of
        // this moment may not have been read yet, and a file is empty for an instant when it is
        // written again. Therefore new events are read before anything is recorded.
        let settle = options.debounce.min(INSTANT);
        let ingest = IngestOptions { settle, ..options.ingest.clone() };
        let Self { events, pending, watching, .. } = self;
        let reading = Reading {
            stop: &watching.stop,
            aside: Some(self.aside.files()),
            asks_writers: false,
            empty: options.ingest.settle,
        };
        report.add(ingest_now(log, set, &ingest, reading, writes, work, || {
            if let Some(events) = events {
                events
                    .read(Duration::ZERO, |path, hint| pending.note(watching.subject(path), hint));
            }
            |path: &[u8]| pending.contains(path)
        })?);
        lost.add_known(log, set, std::mem::take(&mut report.gone))?;
        if options.follow_links {
            aliases.add(
                ready
                    .iter()
                    .filter_map(|path| Some((path.clone(), link_target(&self.folder, path)?))),
            );
        }
        self.look_into_folders(&ready, &mut lost, &mut report)?;
        self.judge(lost, before, &mut report)?;
        // Other resources link to these only if they exist. The links found by a full scan are
        // already correct.
        let mut touched = std::mem::take(&mut report.touched);
        // The number of such resources exceeds the limit of the report.
        self.scan_soon |= touched.len() >= MAX_NOTED;
        touched.sort_unstable();
        touched.dedup();
        for target in touched {
            let sources = options.ingest.links.sources_of(log, set, &target)?;
            self.pending.defer(sources.iter().map(|key| path_of(key)).collect());
        }
        self.take_over(report, again);
        self.note_size()
    }

    /// Scans the paths that are folders.
    fn look_into_folders(
        &mut self,
        ready: &[Vec<u8>],
        lost: &mut Lost,
        report: &mut IngestReport,
    ) -> Result<(), Ended> {
        let Watching { log, set, options, aliases, stop, .. } = self.watching;
        let mut scan_options = None;
        let mut scanned: Option<&[u8]> = None;
        for path in ready {
            // The paths are sorted, so paths below a scanned folder follow it directly.
            let beneath = scanned.is_some_and(|outer| {
                path.len() > outer.len() && path.starts_with(outer) && path[outer.len()] == b'/'
            });
            if beneath || !is_published_path(path) {
                continue;
            }
            match inspect(&self.folder, path) {
                PathState::Folder => {}
                // The path may have been a folder a moment ago.
                PathState::Unreadable(error) => {
                    report.problem(path, &error);
                    continue;
                }
                PathState::File(_) | PathState::LeftOut | PathState::Nothing => continue,
            }
            scanned = Some(path);
            let scan_options = scan_options.get_or_insert_with(|| ScanOptions {
                ingest: options.ingest.clone(),
                held: self.pending.written(),
                ..ScanOptions::default()
            });
            let reading = Reading {
                stop,
                aside: Some(self.aside.files()),
                asks_writers: true,
                empty: Duration::ZERO,
            };
            let mut found = walk(&self.folder, path, &**log, *set, scan_options, reading)?;
            options.private.copies().sweep(&self.folder, path);
            aliases.add(found.aliases);
            lost.add(found.lost);
            found.ingest.deferred.append(&mut found.replaced);
            report.add(found.ingest);
        }
        Ok(())
    }

    /// Records the deletion of missing resources, or holds it.
    fn judge(&mut self, lost: Lost, before: u64, report: &mut IngestReport) -> Result<(), Ended> {
        let Watching { log, set, options, stop, .. } = self.watching;
        // While deletions are held, scans judge all deletions.
        if lost.count == 0 || self.hold.is_some() {
            return Ok(());
        }
        if lost.too_many() {
            self.scan_soon = true;
            return Ok(());
        }
        let resources = log.head(*set)?.resources;
        if !options.hold_deletions.is_zero()
            && let Some(held) = Held::judge(&lost, resources, before, self.is_emptied())
        {
            self.hold(held, lost.first, Duration::ZERO);
            return Ok(());
        }
        let reading = Reading {
            stop,
            aside: Some(self.aside.files()),
            asks_writers: false,
            empty: Duration::ZERO,
        };
        report.add(delete(&self.folder, &**log, *set, &options.ingest, reading, lost.keys)?);
        Ok(())
    }

    /// Whether the folder does not contain any published file.
    fn is_emptied(&self) -> bool {
        let entries = self.folder.root().entries();
        entries.is_ok_and(|mut entries| {
            !entries.any(|entry| entry.is_ok_and(|entry| is_published_name(&entry.name)))
        })
    }

    /// Adds the unfinished work of a report to the queues.
    pub(super) fn take_over(&mut self, mut report: IngestReport, again: bool) {
        self.unsure.add(&mut report, false);
        self.pending.defer(std::mem::take(&mut report.deferred));
        self.aside.read(
            &self.folder,
            &self.watching.options.ingest,
            std::mem::take(&mut report.large),
        );
        if !again {
            report_problems(&report);
        }
    }
}

/// Returns the target of a path that is a followed symbolic link.
fn link_target(folder: &Folder, path: &[u8]) -> Option<Vec<u8>> {
    let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&b""[..], path),
    };
    let dir =
        folder.dir(parent.split(|byte| *byte == b'/').filter(|name| !name.is_empty())).ok()?;
    dir.link_target(name)
}

fn report_problems(report: &IngestReport) {
    for problem in &report.problems {
        tracing::warn!("{problem}");
    }
    let more = report.problem_count - report.problems.len() as u64;
    if more > 0 {
        tracing::warn!("more files that could not be read: {more}");
    }
}
