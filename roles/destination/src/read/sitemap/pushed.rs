//! Changes that were pushed and continue from the cursor of the copy: they are applied like those of
//! a document that lists changes, and none is requested.

use super::document::is_zoneless;
use crate::alternates::Changed;
use crate::clock::now;
use crate::error::Error;
use crate::plan::planner::PlanContext;
use abreast_resourcesync::sitemap::{Limits, Parser, Step, Tolerance, Version};
use abreast_webtypes::Timestamp;

/// What is pushed may have times that our own clock has not reached by this, microseconds.
pub(crate) const CLOCK_MICROS: i64 = 60_000_000;

/// Where a pushed document stands beside the copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// All of it is known.
    Old,
    /// It continues from the cursor.
    Next,
    /// Others are missing before it, or that cannot be decided.
    Apart,
}

/// Reads a pushed document, and the time until which it has changes; or why it cannot be used.
type Read<'a, T> = &'a dyn Fn(&[u8]) -> Result<(Timestamp, T), String>;

/// Plans all of them; `false` when that cannot be.
type Plan<'a, T> = &'a dyn Fn(&mut PlanContext<'_, '_>, Vec<T>) -> Result<bool, Error>;

/// Plans what was pushed; `false` when `document`, which lists the changes, has to be requested.
/// `announced` is the time up to which changes are known to be missing.
pub(crate) fn plan_pushed<T>(
    run: &mut PlanContext<'_, '_>,
    document: &str,
    announced: &mut Option<Timestamp>,
    read: Read<'_, T>,
    plan: Plan<'_, T>,
) -> Result<bool, Error> {
    if run.planner.notifications.is_empty() {
        return Ok(false);
    }
    let (mut pushed, mut whole) = (Vec::new(), true);
    for bytes in std::mem::take(&mut run.planner.notifications) {
        match read(&bytes) {
            Ok((until, one)) if until <= now().plus_micros(CLOCK_MICROS) => {
                *announced = (*announced).max(Some(until));
                pushed.push(one);
            }
            // One with times in the future is not used.
            Ok(_) => whole = false,
            Err(why) => {
                whole = false;
                let message = format!("{why}; the changes are requested");
                run.report.notice("notification.unusable", document, &message);
            }
        }
    }
    if !whole {
        return Ok(false);
    }
    run.report.begin_phase("reading");
    run.planner.changed = Changed::default();
    run.planner.begin(run.report)?;
    run.planner.mirror.clear_scratch()?;
    let planned = plan(run, pushed);
    match &planned {
        Ok(true) => {
            run.planner.commit()?;
            *announced = None;
        }
        _ => run.planner.abandon(run.report)?,
    }
    run.planner.mirror.clear_scratch()?;
    planned
}

/// Reads a pushed document, strictly: for anything odd the changes are requested.
pub(crate) fn read_strictly<V: Version>(
    bytes: &[u8],
    name: &str,
) -> Result<(V::Head, Vec<V::Entry>), String> {
    let mut parser = Parser::<V>::with_tolerance(Limits::default(), Tolerance::Usual);
    parser.feed(bytes);
    parser.finish();
    let (mut entry, mut entries) = (V::Entry::default(), Vec::new());
    loop {
        let step = parser.next(&mut entry);
        match step.map_err(|fault| format!("{name} cannot be read: {fault}"))? {
            Step::NeedInput | Step::End => break,
            Step::Head => {}
            Step::Entry => entries.push(std::mem::take(&mut entry)),
        }
    }
    let Some(head) = parser.head() else { return Err(odd(name, "it is empty")) };
    if parser.skipped() > 0 || is_zoneless(parser.findings()) {
        let what = "it has entries that cannot be understood, or times without a zone";
        return Err(odd(name, what));
    }
    Ok((head.clone(), entries))
}

/// Why a pushed document is not used.
pub(crate) fn odd(name: &str, what: &str) -> String {
    format!("{name} is not as it should be: {what}")
}
