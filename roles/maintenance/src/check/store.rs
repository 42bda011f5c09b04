//! Checks the folder of a Source's store.

use crate::check::contents::{ContentsCheck, Damaged};
use crate::place::{Context as _, Result, StoreRecord, holder_of};
use abreast_core::{Finding, Meter};
use abreast_source::archive::check_archives;
use abreast_source::notify::{check_notified, notified_path};
use abreast_source::origin::rdf::check_records_of_files;
use abreast_source::projection::sdshare::check_snapshots;
use abreast_source::publish::ServedSets;
use abreast_store::integrity::{Findings, check_log};
use abreast_webtypes::count;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// How the folder of a Source's store is checked.
pub(crate) struct StoreCheck<'c> {
    pub(crate) store: &'c Path,
    /// Selects the contents and files to read.
    pub(crate) wants: &'c dyn Fn(&str) -> bool,
    /// Further records in the folder.
    pub(crate) records: &'c [StoreRecord],
    pub(crate) cancel: &'c AtomicBool,
    pub(crate) meter: &'c Meter,
}

impl StoreCheck<'_> {
    /// Checks log and tables, stored contents, dumps and snapshots.
    pub(crate) fn run(
        &self,
        findings: &mut Findings,
        notes: &mut Vec<String>,
        damaged: Damaged<'_>,
    ) -> Result<()> {
        let StoreCheck { store, wants, records, cancel, meter } = *self;
        let unreadable = |findings: &Findings| -> u64 {
            ["store.damaged", "store.schema"]
                .iter()
                .filter_map(|code| findings.counts().get(code))
                .sum()
        };
        let unreadable_before = unreadable(findings);
        let sets = check_log(&store.join("source.db"), findings)?;
        for set in &sets {
            notes.push(format!(
                "set {}: {}, up to position {}",
                set.slug,
                count(set.resources, "resource"),
                set.position
            ));
        }
        let is_left_over = ServedSets::is_left_over(store);
        for set in sets.iter().filter(|set| is_left_over(&set.slug)) {
            let resources = count(set.resources, "resource");
            let message = format!(
                "the set was not configured when the store was served last; it has {resources}"
            );
            findings.note("store.set", set.slug.as_str(), message);
        }
        let is_served = holder_of(&store.join("source.lock")).is_some();
        if unreadable(findings) > unreadable_before {
            notes.push(
                "kept contents: not checked, since the rows that need them cannot be read"
                    .to_owned(),
            );
        } else {
            let counts =
                ContentsCheck { store, is_served, wants, cancel, meter }.run(findings, damaged)?;
            if counts.orphans > 0 {
                let message = format!("kept contents that no row needs: {}", counts.orphans);
                findings.note(
                    "contents.orphan",
                    store.join("contents").display().to_string(),
                    message,
                );
            }
            if counts.kept > 0 {
                notes.push(format!("kept contents: {}, {} read", counts.kept, counts.read));
            }
        }
        let packages = abreast_source::dump::check_dumps(
            &store.join("dumps"),
            wants("dumps"),
            &mut |finding| {
                // A server makes dumps all the time.
                if !(is_served && finding.rule == "dumps.unfinished") {
                    findings.add(finding.rule, finding.location, finding.message);
                }
            },
        )
        .context("cannot check the dumps")?;
        if packages > 0 {
            notes.push(format!("packages of dumps: {packages}"));
        }
        let snapshots =
            check_snapshots(&store.join("snapshots"), wants("snapshots"), &mut |finding| {
                findings.add(finding.rule, finding.location, finding.message);
            })
            .context("cannot check the snapshots")?;
        if snapshots > 0 {
            notes.push(format!("snapshots: {snapshots}"));
        }
        check_records(store, wants("archives"), records, findings, notes)
    }
}

/// Checks the small records of a store, and the files that the records describe.
fn check_records(
    store: &Path,
    read_archives: bool,
    records: &[StoreRecord],
    findings: &mut Findings,
    notes: &mut Vec<String>,
) -> Result<()> {
    let mut add = |finding: Finding| findings.add(finding.rule, finding.location, finding.message);
    let lists = check_archives(&store.join("archives"), read_archives, &mut add)
        .context("cannot check the archives")?;
    if lists > 0 {
        notes.push(format!("archived lists: {lists}"));
    }
    check_notified(&notified_path(store))
        .context("cannot check the record of notified documents")?
        .into_iter()
        .for_each(&mut add);
    for record in records {
        let name = record.name;
        match (record.check)(store) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                notes.push(format!("{name} were not checked: only their owner may read them"));
            }
            found => {
                found
                    .with_context(|| format!("cannot check {name}"))?
                    .into_iter()
                    .for_each(&mut add);
            }
        }
    }
    if abreast_source::static_site::is_site_record_damaged(store)
        .context("cannot check the record of earlier builds")?
    {
        let message = "the record of the files that earlier builds wrote is damaged";
        findings.add("site.record", store.join("book").display().to_string(), message);
    }
    let mut add = |finding: Finding| findings.add(finding.rule, finding.location, finding.message);
    ServedSets::check(store).into_iter().for_each(&mut add);
    check_records_of_files(store)?.into_iter().for_each(&mut add);
    Ok(())
}
