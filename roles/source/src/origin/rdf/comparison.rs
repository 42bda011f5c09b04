//! Compares a new complete state with the log's current one: a merge of two ordered streams.

use super::plan::{Fingerprint, Plan, PlanWriter};
use super::{RdfError, RdfOptions, RdfReport, RdfTarget};
use crate::guard::Held;
use crate::scan::Lost;
use abreast_core::{ContentId, KeyRange};
use abreast_statements::{BlankNodes, Describer, Groups, LineOrder, SortedStatements};
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// Resources read from the log at a time.
const PAGE: usize = 10_000;

/// What the log knows of an entity.
#[derive(Debug)]
pub(in crate::origin) struct Known {
    pub(in crate::origin) witness: Vec<u8>,
    pub(in crate::origin) content: Option<ContentId>,
}

/// Compares; records nothing.
///
/// # Errors
/// The statements are not sorted or wrong, or more would be deleted than is allowed without a
/// confirmation.
pub(super) fn compare<'s>(
    target: RdfTarget<'s>,
    statements: &'s SortedStatements,
) -> Result<(Plan, RdfReport), RdfError> {
    let mut merge = Merge {
        options: target.options,
        groups: statements.entities(),
        blanks: statements.blank_nodes()?,
        describer: Describer::new(statements.canonical_lines()),
        plan: PlanWriter::new(&target.options.sort.temporary)?,
        report: RdfReport::default(),
    };
    merge.groups.advance()?;
    let mut known = 0;
    let mut ordered = LineOrder::default();
    each_known(target, |key, resource| {
        known += 1;
        ordered.push(key, resource, |key, resource| merge.up_to(&key, &resource))
    })?;
    ordered.finish(|key, resource| merge.up_to(&key, &resource))?;
    while merge.groups.current().is_some() {
        merge.entity(None)?;
        merge.groups.advance()?;
    }
    let Merge { plan, mut report, blanks, describer, .. } = merge;
    (report.shared_blank_nodes, report.unreached_blank_nodes) = blanks.shared_and_unreached();
    report.unstable = describer.unstable();
    report.deleted = plan.deletions;
    let lost = Lost { count: report.deleted, ..Lost::default() };
    let held = Held::judge(&lost, known, known, report.entities == 0);
    if let Some(held) = held.filter(|_| !target.options.confirm_deletions) {
        return Err(RdfError::Deletions { held });
    }
    Ok((plan.finish()?, report))
}

/// Visits what the log knows, in the order of keys; no transaction is open while it is visited.
pub(in crate::origin) fn each_known(
    target: RdfTarget<'_>,
    mut visit: impl FnMut(String, Known) -> Result<(), RdfError>,
) -> Result<(), RdfError> {
    let mut range = KeyRange::default();
    loop {
        let mut page: Vec<(String, Known)> = Vec::with_capacity(PAGE);
        target.log.scan(target.set, &range, &mut |resource| {
            let known =
                Known { witness: resource.witness.clone(), content: resource.state.content };
            page.push((resource.key.clone(), known));
            if page.len() == PAGE { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        let more = page.len() == PAGE;
        if let Some((last, _)) = page.last() {
            range.start = format!("{last}\0");
        }
        for (key, known) in page {
            visit(key, known)?;
        }
        if !more {
            return Ok(());
        }
    }
}

struct Merge<'s> {
    options: &'s RdfOptions,
    groups: Groups<'s>,
    blanks: BlankNodes<'s>,
    describer: Describer,
    plan: PlanWriter,
    report: RdfReport,
}

impl Merge<'_> {
    /// Plans everything up to the entity with this key, which the log knows.
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

    /// Plans the current entity.
    fn entity(&mut self, known: Option<&Known>) -> Result<(), RdfError> {
        let Some(group) = self.groups.current() else { return Ok(()) };
        self.report.entities += 1;
        if self.report.entities.is_multiple_of(1_024) {
            self.options.sort.check_stop()?;
        }
        self.report.statements += group.statements;
        let fingerprint = fingerprint_of(self.describer.gather(&group, &mut self.blanks)?);
        // A description that was lost is read again.
        if known.is_some_and(|known| known.content.is_some() && known.witness == fingerprint) {
            self.report.unchanged += 1;
            return Ok(());
        }
        let lines = self.describer.canonical()?;
        match known {
            Some(known) if known.content == Some(abreast_contents::address_of(lines)) => {
                self.report.unchanged += 1;
                self.plan.refresh(group.iri, fingerprint)?;
            }
            Some(_) => {
                self.report.updated += 1;
                self.plan.put(group.iri, lines, fingerprint)?;
            }
            None => {
                self.report.created += 1;
                self.plan.put(group.iri, lines, fingerprint)?;
            }
        }
        Ok(())
    }
}

/// The beginning of their digest.
pub(in crate::origin) fn fingerprint_of(lines: &[u8]) -> Fingerprint {
    let mut fingerprint = Fingerprint::default();
    let digest = abreast_contents::address_of(lines);
    fingerprint.copy_from_slice(&digest.0[..size_of::<Fingerprint>()]);
    fingerprint
}
