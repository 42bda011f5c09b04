//! Whether a snapshot is as it was read, by asking for each of its documents.

use crate::error::Error;
use crate::plan::planner::PlanContext;
use abreast_store::mirror::Document;
use std::collections::{HashSet, VecDeque};

/// Most indexes that are kept. A snapshot of more is compared each time.
const INDEXES_MAX: usize = 1_000;
/// Kept instead of more.
const TOO_MANY: &str = "-";

/// The indexes of a snapshot as they are kept: a line each.
pub(crate) fn kept_indexes(indexes: &[String]) -> Option<String> {
    match indexes.len() {
        0 => None,
        count if count > INDEXES_MAX => Some(TOO_MANY.to_owned()),
        _ => Some(indexes.join("\n")),
    }
}

/// Whether each document is as it was read: without changes the way to find that nothing has
/// changed. Each index is asked for its members, which those of [`kept_indexes`] are.
pub(crate) fn is_all_unchanged(
    run: &PlanContext<'_, '_>,
    top: &str,
    indexes: Option<&str>,
    is_unchanged: &dyn Fn(&str, &Document) -> Result<bool, Error>,
    members: &dyn Fn(&str) -> Result<Vec<String>, Error>,
) -> Result<bool, Error> {
    let mirror = run.planner.mirror;
    let Some(known) = mirror.document(top)? else { return Ok(false) };
    if !is_unchanged(top, &known)? {
        return Ok(false);
    }
    let Some(indexes) = indexes else { return Ok(true) };
    let indexes: HashSet<&str> = indexes.lines().collect();
    if !indexes.contains(top) {
        return Ok(false);
    }
    let (mut waiting, mut asked) = (VecDeque::from(members(top)?), HashSet::new());
    while let Some(url) = waiting.pop_front() {
        run.requests.check_cancelled()?;
        let Some(known) = mirror.document(&url)? else { return Ok(false) };
        if !is_unchanged(&url, &known).unwrap_or(false) {
            return Ok(false);
        }
        if indexes.contains(url.as_str()) {
            waiting.extend(members(&url)?);
        }
        // Named twice, it is not as it was.
        if !asked.insert(url) {
            return Ok(false);
        }
    }
    Ok(true)
}
