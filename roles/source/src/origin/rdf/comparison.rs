//! Comparison of a new complete state with the current state in the log, as a merge of two sorted
//! streams.

use super::keyed_hash::KeyedHash;
use super::plan::{Fingerprint, Plan, PlanWriter};
use crate::origin::rdf::error::RdfError;
use crate::origin::rdf::report::RdfReport;
use crate::origin::rdf::target::{RdfOptions, RdfTarget};
use abreast_core::{ChangeLog, ContentId, KeyRange, LogError, SetId, spawn_scoped};
use abreast_statements::{BlankNodes, Describer, Error, Groups, LineOrder, SortedStatements};
use std::cmp::Ordering;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::mpsc::{SyncSender, sync_channel};

/// Resources in a page that is read from the log.
const PAGE: usize = 2_000;
/// Most pages that are read ahead of the comparison.
const PAGES_AHEAD: usize = 2;

/// Information about an entity in the log.
#[derive(Debug)]
pub(in crate::origin) struct Known {
    pub(in crate::origin) witness: Vec<u8>,
    pub(in crate::origin) content: Option<ContentId>,
}

/// Compares the states and returns a plan. Nothing is recorded.
///
/// # Errors
/// The statements are invalid or not sorted, or the guard does not allow the number of deletions.
pub(super) fn compare<'s>(
    target: RdfTarget<'s>,
    statements: &'s SortedStatements,
) -> Result<(Plan, RdfReport), RdfError> {
    let mut merge = Merge {
        options: target.options,
        groups: statements.entities()?,
        blanks: statements.blank_nodes()?,
        describer: Describer::new(statements),
        plan: PlanWriter::new(&target.options.sort.temporary)?,
        report: RdfReport::default(),
        key: KeyedHash::random()?,
    };
    target.options.meter.begin("comparing");
    merge.groups.advance()?;
    let known = each_known(target, |key, known| merge.up_to(key, known))?;
    while merge.groups.current().is_some() {
        merge.entity(None)?;
        merge.groups.advance()?;
    }
    let Merge { plan, mut report, blanks, describer, .. } = merge;
    (report.shared_blank_nodes, report.unreached_blank_nodes) = blanks.shared_and_unreached();
    report.unstable = describer.unstable();
    report.judge(plan.deletions(), known, target.options)?;
    Ok((plan.finish()?, report))
}

/// Visits the entities in the log in the order of lines, while a thread reads ahead. Returns the
/// number of entities.
pub(in crate::origin) fn each_known(
    target: RdfTarget<'_>,
    mut visit: impl FnMut(&str, &Known) -> Result<(), RdfError>,
) -> Result<u64, RdfError> {
    std::thread::scope(|scope| {
        let (sender, pages) = sync_channel(PAGES_AHEAD);
        let reader = spawn_scoped(scope, move || read_known(target.log, target.set, &sender));
        let mut count = 0;
        for page in pages {
            count += page.len() as u64;
            for (key, known) in &page {
                visit(key, known)?;
            }
        }
        reader.join().unwrap_or_else(|panic| resume_unwind(panic))?;
        Ok(count)
    })
}

/// Sends the entities in the log in the order of lines, until the receiver is dropped. No
/// transaction is open while the thread waits.
fn read_known(
    log: &dyn ChangeLog,
    set: SetId,
    sender: &SyncSender<Vec<(String, Known)>>,
) -> Result<(), LogError> {
    let (mut range, mut ordered) = (KeyRange::default(), LineOrder::default());
    loop {
        let (mut page, mut read, mut last) = (Vec::with_capacity(PAGE), 0, String::new());
        log.scan_witnesses(set, &range, &mut |seen| {
            let known = Known { witness: seen.witness.clone(), content: seen.content };
            let Ok(()) = ordered.push(seen.key.clone(), known, |key, known| {
                page.push((key, known));
                Ok::<_, Infallible>(())
            });
            read += 1;
            if read < PAGE {
                return ControlFlow::Continue(());
            }
            last.clone_from(&seen.key);
            ControlFlow::Break(())
        })?;
        let is_last = read < PAGE;
        if is_last {
            let Ok(()) = std::mem::take(&mut ordered).finish(|key, known| {
                page.push((key, known));
                Ok::<_, Infallible>(())
            });
        }
        if sender.send(page).is_err() || is_last {
            return Ok(());
        }
        last.push('\0');
        range.start = last;
    }
}

struct Merge<'s> {
    options: &'s RdfOptions,
    groups: Groups,
    blanks: BlankNodes<'s>,
    describer: Describer,
    plan: PlanWriter,
    report: RdfReport,
    /// Key for entities that do not have a fingerprint.
    key: KeyedHash,
}

impl Merge<'_> {
    /// Plans all entities up to the entity with this key, which is in the log.
    fn up_to(&mut self, key: &str, known: &Known) -> Result<(), RdfError> {
        while let Some(group) = self.groups.current() {
            match abreast_statements::compare(group.iri, key) {
                Ordering::Less => self.entity(None)?,
                Ordering::Equal => {
                    self.entity(Some(known))?;
                    self.groups.advance()?;
                    return Ok(());
                }
                Ordering::Greater => break,
            }
            self.groups.advance()?;
        }
        Ok(self.plan.delete(key)?)
    }

    /// Plans the changes of the current entity.
    fn entity(&mut self, known: Option<&Known>) -> Result<(), RdfError> {
        let Some(group) = self.groups.current() else { return Ok(()) };
        self.report.entities += 1;
        self.options.meter.add(1, 0);
        if self.report.entities.is_multiple_of(1_024) {
            self.options.sort.check_stop()?;
        }
        self.report.statements += group.statements;
        if let Err(why) = abreast_core::check_key(group.iri) {
            self.report.leave_out(&why);
            return Ok(());
        }
        let before = known.and_then(|known| KeyedHash::of_witness(&known.witness));
        let statements = match self.describer.gather(&group, &mut self.blanks) {
            Ok(statements) => statements,
            Err(Error::TooLarge(why)) => {
                self.report.leave_out(&why);
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        };
        let hash = before.unwrap_or(self.key).of(&statements);
        // A description whose stored bytes are missing is stored again.
        if known.is_some_and(|known| known.content.is_some() && before == Some(hash)) {
            self.report.unchanged += 1;
            return Ok(());
        }
        let lines = self.describer.canonical(statements)?;
        match known {
            Some(known) if known.content == Some(abreast_core::contents::address_of(&lines)) => {
                self.report.unchanged += 1;
                self.plan.refresh(group.iri, hash.0)?;
            }
            Some(_) => {
                self.report.updated += 1;
                self.plan.put(group.iri, &lines, hash.0)?;
            }
            None => {
                self.report.created += 1;
                self.plan.put(group.iri, &lines, hash.0)?;
            }
        }
        Ok(())
    }
}

/// Returns the first bytes of the digest of these lines.
pub(in crate::origin) fn fingerprint_of(lines: &[u8]) -> Fingerprint {
    let mut fingerprint = Fingerprint::default();
    let digest = abreast_core::contents::address_of(lines);
    fingerprint.copy_from_slice(&digest.0[..size_of::<Fingerprint>()]);
    fingerprint
}
