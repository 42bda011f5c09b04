//! The plan where a Source has dumps and no lists: their manifests are read as the lists [rs-core §11, §13].

use super::cursor;
use super::document::at_earliest;
use super::manifest::read_manifest;
use crate::error::{Error, ExitCode};
use crate::events::Mode;
use crate::package::archive::Package;
use crate::package::listing::{Dump, ListedPackage, unusable};
use crate::package::{Chosen, Packaged};
use crate::plan::changes::{Followed, Seen};
use crate::plan::comparison::Baseline;
use crate::session::Session;
use crate::state::key;
use abreast_webtypes::Timestamp;
use std::fs::File;

/// A package with its file, when it could be had.
type Had = (ListedPackage, Option<File>);

impl Session<'_> {
    /// Plans what makes the copy equal to a Resource Dump.
    pub(crate) fn plan_resource_dump(&mut self, url: &str, has_changes: bool) -> Result<Baseline, Error> {
        self.report.begin_phase("reading");
        self.refuse_dry_run(url)?;
        let known = if has_changes || self.options.baseline || self.selection.has_changed() {
            None
        } else {
            self.mirror.document(url)?
        };
        let Some(mut dump) = self.read_dump(url, Packaged::Snapshot, known.as_ref())? else {
            return Ok(Baseline { unchanged: true, whole: true, at: None });
        };
        self.report.summary.mode = Mode::Baseline;
        self.check_kept()?;
        let mut first_error = None;
        let had = self.have_packages(std::mem::take(&mut dump.packages), &mut first_error)?;
        self.begin()?;
        let planned = self.read_resource_manifests(url, &dump, &had, first_error);
        self.tell_noticed();
        match planned {
            Ok(baseline) => {
                self.commit()?;
                self.mirror.clear_scratch()?;
                let packages = had.into_iter().filter(|(_, file)| file.is_some()).map(|(package, _)| package).collect();
                let packaged = Packaged::Snapshot;
                self.packages.planned = Some(Chosen { packages, packaged, at: baseline.at, is_plan: true });
                Ok(baseline)
            }
            Err(error) => {
                self.abandon()?;
                Err(error)
            }
        }
    }

    fn refuse_dry_run(&self, url: &str) -> Result<(), Error> {
        if !self.options.dry_run {
            return Ok(());
        }
        let message = format!("{url} is all there is, and its packages must be fetched to see what is in them");
        Err(Error::new("dump.dry-run", ExitCode::Usage, message).with_help("run without `--dry-run`"))
    }

    /// Fetches packages. What cannot be had is told and counted; the first such error is kept.
    fn have_packages(
        &mut self,
        packages: Vec<ListedPackage>,
        first_error: &mut Option<Error>,
    ) -> Result<Vec<Had>, Error> {
        let mut had = Vec::with_capacity(packages.len());
        for package in packages {
            self.check_cancelled()?;
            let file = match self.download(&package) {
                Ok(file) => Some(file),
                Err(error) if matches!(error.exit_code(), ExitCode::Cancelled | ExitCode::Io) => return Err(error),
                Err(error) => {
                    self.package_failed(&package, error, first_error);
                    None
                }
            };
            had.push((package, file));
        }
        Ok(had)
    }

    fn package_failed(&mut self, package: &ListedPackage, error: Error, first_error: &mut Option<Error>) {
        if first_error.is_some() {
            self.report.list_failed(error.code(), &package.url, &error.to_string());
        } else {
            // Told when it is known whether there is anything else.
            self.report.summary.failed += 1;
            self.report.new_failures += 1;
            *first_error = Some(error);
        }
    }

    fn read_resource_manifests(
        &mut self,
        url: &str,
        dump: &Dump,
        had: &[Had],
        mut first_error: Option<Error>,
    ) -> Result<Baseline, Error> {
        let mut comparison = self.begin_comparison(url)?;
        let care = self.requests.care.clone();
        let (mut read, mut at, mut partial) = (0, None, false);
        for (package, file) in had {
            let Some(file) = file else { continue };
            comparison.begin_document();
            let manifest = try_clone(file).and_then(Package::open).map_err(|error| unusable(package, &error)).and_then(
                |archive| {
                    read_manifest(&archive, &package.url, Packaged::Snapshot, &care, &mut |_, listed| {
                        self.check_cancelled()?;
                        comparison.entry(self, listed)
                    })
                },
            );
            match manifest.and_then(|manifest| self.refuse_elsewhere(&package.url, &comparison).map(|()| manifest)) {
                Ok(manifest) => {
                    read += 1;
                    partial |= self.report.left_out(&package.url, manifest.skipped);
                    at = at.into_iter().chain(manifest.at).min();
                }
                Err(error) if matches!(error.exit_code(), ExitCode::Cancelled | ExitCode::Io) => return Err(error),
                Err(error) => {
                    self.discard_package(package);
                    self.package_failed(package, error, &mut first_error);
                }
            }
        }
        let whole = first_error.is_none() && !partial;
        if let Some(error) = first_error {
            if read == 0 {
                self.report.summary.failed = 0;
                return Err(error);
            }
            self.report.problem(error.code(), url, &error.to_string());
        }
        let at = match at.or(dump.begins) {
            Some(at) => Some(self.not_after(url, "at", at, dump.date)),
            None => dump.date,
        };
        self.conclude(url, &mut comparison, whole)?;
        self.keep_snapshot(whole, at)?;
        if let (Some(at), Some(_)) = (at, self.mirror.meta(key::CHANGE_DUMP)?) {
            // What changed since is read again from the Change Dump.
            self.mirror.spare_newer(at.as_micros())?;
        }
        if whole {
            self.mirror.set_document(url, &dump.validators)?;
        }
        Ok(Baseline { unchanged: false, whole, at })
    }

    /// Plans what changed since the cursor, out of a Change Dump. With `skip_gap`, a dump that begins later is read from
    /// its beginning, and the gap is reported.
    pub(crate) fn plan_change_dump(&mut self, url: &str, cursor: Timestamp, skip_gap: bool) -> Result<Followed, Error> {
        self.report.begin_phase("reading");
        self.refuse_dry_run(url)?;
        self.packages.since = Some(cursor);
        let known = self.mirror.document(url)?;
        let Some(mut dump) = self.read_dump(url, Packaged::Changes, known.as_ref())? else {
            return Ok(Followed::Unchanged);
        };
        let earliest = dump.begins.into_iter().chain(dump.packages.iter().filter_map(|package| package.from)).min();
        let mut cursor = cursor;
        if let Some(earliest) = earliest.filter(|earliest| *earliest > cursor) {
            let why = format!("the Change Dump begins at {earliest}, after {cursor}, up to which the copy is known");
            if !skip_gap {
                return Ok(Followed::Gap(why));
            }
            let message = format!("{why}; changes in between are known from the next Resource Dump only");
            self.report.notice("gap", url, &message);
            cursor = earliest;
            cursor::set(&self.mirror, Some(cursor))?;
        }
        let mut packages = std::mem::take(&mut dump.packages);
        packages.retain(|package| package.until.is_none_or(|until| until >= cursor));
        if packages.iter().all(|package| package.from.is_some()) {
            packages.sort_by_key(|package| package.from);
        }
        let mut first_error = None;
        let had = self.have_packages(packages, &mut first_error)?;
        if let Some(error) = first_error {
            // Without one of them changes would be missed.
            return Err(error);
        }
        self.begin()?;
        let planned = self.read_change_manifests(url, &dump, &had, cursor);
        self.tell_noticed();
        if let Err(error) = planned {
            self.abandon()?;
            return Err(error);
        }
        self.commit()?;
        self.mirror.clear_scratch()?;
        let mut packages: Vec<ListedPackage> = had.into_iter().map(|(package, _)| package).collect();
        // The newest first: without a digest an older one could be taken for what changed last.
        packages.reverse();
        let packaged = Packaged::Changes;
        self.packages.planned = Some(Chosen { packages, packaged, at: None, is_plan: true });
        Ok(Followed::Planned)
    }

    fn read_change_manifests(&mut self, url: &str, dump: &Dump, had: &[Had], cursor: Timestamp) -> Result<(), Error> {
        self.mirror.clear_scratch()?;
        let care = self.requests.care.clone();
        let mut seen = Seen::default();
        for (package, file) in had {
            let Some(file) = file else { continue };
            let archive = try_clone(file).and_then(Package::open).map_err(|error| unusable(package, &error))?;
            let mut reading = self.reading_changes(&package.url);
            let manifest = read_manifest(&archive, &package.url, Packaged::Changes, &care, &mut |span, listed| {
                seen.begin_whole_list(span);
                self.note_change(listed, cursor, &mut seen, &mut reading)
            })
            .inspect_err(|_| self.discard_package(package))?;
            seen.newest = seen.newest.max(reading.newest.map(|newest| at_earliest(manifest.zoneless, newest)));
            seen.left_out |= self.report.left_out(&package.url, manifest.skipped);
        }
        self.plan_coming()?;
        self.keep_common(&mut seen)?;
        if seen.left_out {
            // What was left out may be any change: the next run looks at all of them again.
            return Ok(());
        }
        if let Some(newest) = seen.newest.max(dump.until).filter(|newest| *newest >= cursor) {
            let newest = self.not_after(url, "datetime", newest, dump.date);
            cursor::set(&self.mirror, Some(newest.max(cursor)))?;
        }
        Ok(self.mirror.set_document(url, &dump.validators)?)
    }
}

fn try_clone(file: &File) -> Result<File, Error> {
    file.try_clone().map_err(|cause| Error::new("io", ExitCode::Io, "cannot read a package").with_cause(cause))
}
