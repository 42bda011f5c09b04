//! The test whether a snapshot has changed, by a conditional request for each of its documents.

use super::document::is_unchanged;
use super::walk::{Found, LISTS_MAX, Lists};
use crate::read::walk::Walk;
use crate::report::error::Error;
use std::collections::{HashSet, VecDeque};

/// Maximum number of stored indexes. A snapshot with more indexes is always read again.
const INDEXES_MAX: usize = 1_000;
/// The text that is stored if there are too many indexes.
const TOO_MANY: &str = "-";

/// The indexes of a snapshot as text for the database: one URL for each line.
pub(crate) fn kept_indexes(indexes: &[String]) -> Option<String> {
    match indexes.len() {
        0 => None,
        count if count > INDEXES_MAX => Some(TOO_MANY.to_owned()),
        _ => Some(indexes.join("\n")),
    }
}

/// Whether no document has changed since it was read; used if the Source does not list changes.
/// `indexes` are the documents that were indexes, and are read for their members.
pub(crate) fn is_all_unchanged<L: Lists>(
    walk: &Walk<'_, '_>,
    top: &str,
    indexes: &[String],
    lists: &mut L,
) -> Result<bool, Error> {
    let requests = walk.requests;
    let Some(known) = walk.document(top)? else { return Ok(false) };
    if !is_unchanged(requests, top, &known)? {
        return Ok(false);
    }
    if indexes.is_empty() {
        return Ok(true);
    }
    let indexes: HashSet<&str> = indexes.iter().map(String::as_str).collect();
    if !indexes.contains(top) {
        return Ok(false);
    }
    let (mut waiting, mut asked) = (VecDeque::new(), HashSet::new());
    if !add_members(walk, top, lists, &mut waiting)? {
        return Ok(false);
    }
    while let Some(url) = waiting.pop_front() {
        requests.check_cancelled()?;
        let Some(known) = walk.document(&url)? else { return Ok(false) };
        if !is_unchanged(requests, &url, &known).unwrap_or(false) {
            return Ok(false);
        }
        if indexes.contains(url.as_str()) && !add_members(walk, &url, lists, &mut waiting)? {
            return Ok(false);
        }
        // The list now occurs twice, so the snapshot has changed.
        if !asked.insert(url) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Adds the lists of an index that may contain required resources. Returns `false` if a list was
/// not read before, or if there are more lists than a walk may read.
fn add_members<L: Lists>(
    walk: &Walk<'_, '_>,
    index: &str,
    lists: &mut L,
    to: &mut VecDeque<String>,
) -> Result<bool, Error> {
    let mut is_known = true;
    let each = &mut |found: Found<'_>| {
        match found {
            Found::Member(member) if is_known && !member.is_other => {
                is_known = to.len() < LISTS_MAX && walk.document(&member.url)?.is_some();
                if is_known {
                    to.push_back(member.url);
                }
            }
            Found::Member(_) | Found::Resource(..) | Found::Deleted => {}
        }
        Ok(())
    };
    lists.read(walk.requests, index, each)?;
    Ok(is_known)
}
