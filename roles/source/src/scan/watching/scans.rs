//! Scans of the whole folder, and the deletions that a scan holds.

use super::paths::Pass;
use super::{Ended, Hold, PATIENCE, RETRY, Round, SHARE, TICK, Watching};
use crate::scan::full::{ScanOptions, ScanReport, scan_reading};
use crate::scan::guard::{Deletions, Held};
use crate::scan::hash::Reading;
use crate::scan::ingest::{IngestReport, ingest_now};
use crate::scan::options::IngestOptions;
use crate::scan::status::WatchState;
use abreast_core::{Clock as _, SystemClock};
use std::thread;
use std::time::{Duration, Instant};

impl Round<'_> {
    /// Runs the scan at the start, which imports the base of a new set.
    pub(super) fn first_scan(&mut self) -> Result<(), Ended> {
        let Watching { log, set, options, .. } = self.watching;
        let head = log.head(*set)?;
        let importing = head.takes_base();
        self.is_first = options.initial_changes && head.is_first();
        let mut report = self.full_scan(false, false)?;
        if importing || self.is_first {
            // Recently written files also belong to the base, after they come to rest.
            let until = Instant::now() + PATIENCE;
            let mut deferred = std::mem::take(&mut report.ingest.deferred);
            while !deferred.is_empty() && Instant::now() < until && !self.watching.stopping() {
                thread::sleep(self.watching.options.ingest.settle.min(TICK));
                deferred = self.import(&deferred)?;
            }
            if self.watching.stopping() {
                return Err(Ended::Stopped);
            }
            log.complete_import(*set)?;
            self.is_first = false;
            // The base is complete, but the import only counted files at rest.
            self.peak.note(Instant::now(), log.head(*set)?.resources);
            if report.gone > 0 {
                // After an interrupted import, files of the earlier import may have been deleted.
                deferred.extend(self.full_scan(false, false)?.ingest.deferred);
            }
            report.ingest.deferred = deferred;
        }
        self.pending.defer(report.ingest.deferred);
        Ok(())
    }

    /// Adds files to the base. Returns the paths of files that are not at rest.
    fn import(&mut self, paths: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, Ended> {
        let Watching { log, set, options, .. } = self.watching;
        let writes = options.ingest.writes.count();
        let mut pass = Pass { holding: true, ..Pass::default() };
        for path in paths {
            self.watching.push_path(&self.folder, path, &mut pass)?;
        }
        let reading = Reading {
            stop: &self.watching.stop,
            aside: None,
            asks_writers: true,
            empty: Duration::ZERO,
        };
        let ingest = IngestOptions { first: self.is_first, ..options.ingest.clone() };
        let mut report =
            ingest_now(&**log, *set, &ingest, reading, writes, pass.work, || |_: &[u8]| false)?;
        pass.report.add(report);
        report = pass.report;
        let deferred = std::mem::take(&mut report.deferred);
        self.take_over(report, false);
        Ok(deferred)
    }

    /// Returns the rule for the deletions of the next scan.
    fn deletions(&mut self) -> Result<Deletions, Ended> {
        let Watching { options, status, .. } = self.watching;
        let now = Instant::now();
        let over =
            self.hold.as_ref().is_some_and(|hold| now >= hold.since + options.hold_deletions);
        if over {
            tracing::warn!(
                folder = %self.root.display(),
                "deletions were held for {} s and are recorded now", options.hold_deletions.as_secs()
            );
        }
        if status.take_confirmed() || over || options.hold_deletions.is_zero() {
            self.peak.forget(now);
            return Ok(Deletions::Confirmed);
        }
        let peak = match &self.hold {
            Some(hold) => hold.before,
            None => self.judged_size()?,
        };
        Ok(Deletions::Guarded { peak })
    }

    /// Returns the size of the set to which deletions are compared.
    pub(super) fn judged_size(&mut self) -> Result<u64, Ended> {
        let head = self.watching.log.head(self.watching.set)?;
        Ok(self.peak.judged(Instant::now(), head.resources))
    }

    /// Records the size of the set, unless a deletion is not yet recorded in the log.
    pub(super) fn note_size(&mut self) -> Result<(), Ended> {
        if self.hold.is_none() && !self.scan_soon && !self.pending.has_removed() {
            let head = self.watching.log.head(self.watching.set)?;
            self.peak.note(Instant::now(), head.resources);
        }
        Ok(())
    }

    pub(super) fn full_scan(&mut self, read_all: bool, asked: bool) -> Result<ScanReport, Ended> {
        let Watching { log, set, options, status, .. } = self.watching;
        status.set(WatchState::Scanning);
        let importing = log.head(*set)?.takes_base();
        let (held, deletions) = (self.pending.written(), self.deletions()?);
        let ingest = IngestOptions { first: self.is_first, ..options.ingest.clone() };
        let scan_options = ScanOptions { ingest, read_all, held, deletions };
        // The base must be complete, so large files of the base are not left to other threads.
        let aside = (!importing && !self.is_first).then_some(self.aside.files());
        let reading =
            Reading { stop: &self.watching.stop, aside, asks_writers: true, empty: Duration::ZERO };
        let begun = Instant::now();
        self.unsure.forget();
        let mut report = scan_reading(&self.folder, b"", &**log, *set, &scan_options, reading)?;
        options.private.copies().sweep(&self.folder, b"");
        self.watching.aliases.replace(std::mem::take(&mut report.aliases));
        self.unsure.scanned(begun.elapsed());
        let IngestReport { problem_count, problems, .. } = &report.ingest;
        status.scanned(SystemClock.now(), *problem_count, problems.clone());
        // The scans that only repeat that deletions are held would fill the log, but an operator who
        // requested a scan waits for its line.
        let is_repeated =
            !asked && self.hold.is_some() && report.held.is_some() && report.ingest.recorded == 0;
        match report.held {
            Some(held) => {
                let names = std::mem::take(&mut report.held_names);
                self.hold(held, names, begun.elapsed());
            }
            None => self.release(report.gone == 0),
        }
        if !is_repeated {
            tracing::info!(
                folder = %self.folder.path().display(),
                files = report.files,
                recorded = report.ingest.recorded,
                gone = report.gone,
                links_not_followed = report.links,
                seconds = begun.elapsed().as_secs_f64(),
                "scanned"
            );
        }
        metrics::counter!("abreast_source_scans_total").increment(1);
        self.unsure.add(&mut report.ingest, true);
        let deferred = std::mem::take(&mut report.ingest.deferred);
        self.take_over(std::mem::take(&mut report.ingest), false);
        report.ingest.deferred = deferred;
        self.note_size()?;
        Ok(report)
    }

    /// Holds deletions until they are confirmed, the files are back, or the time is over.
    pub(super) fn hold(&mut self, held: Held, names: Vec<String>, scan_took: Duration) {
        let now = Instant::now();
        let next_scan =
            now + RETRY.max(scan_took * SHARE).min(self.watching.options.hold_deletions);
        if self.hold.is_none() {
            tracing::error!(
                folder = %self.root.display(),
                "{held} (help: if {}, restart with `--confirm-deletions`, or see docs/publishing.md for confirming it while \
                 the server runs)",
                held.if_intended()
            );
        }
        let (since, before) =
            self.hold.as_ref().map_or((now, held.of), |hold| (hold.since, hold.before));
        self.hold = Some(Hold { since, next_scan, before });
        self.watching.status.set_held(Some(held), names);
    }

    fn release(&mut self, are_files_back: bool) {
        if self.hold.take().is_some() {
            let folder = self.root.display();
            if are_files_back {
                tracing::info!(%folder, "the files whose deletion was held are there again");
            } else {
                tracing::info!(
                    %folder,
                    "deletions are not held any more; the files that are still missing are recorded as deleted"
                );
            }
        }
        self.watching.status.set_held(None, Vec::new());
    }
}
