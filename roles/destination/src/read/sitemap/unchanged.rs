//! Whether a snapshot is as it was read, by asking for each of its documents.

use super::document::is_unchanged;
use super::walk::{Found, LISTS_MAX, Lists};
use crate::read::walk::Walk;
use crate::report::error::Error;
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

/// Whether each document is as it was read: without changes the way to find that nothing has changed. Of the documents
/// `indexes` were indexes; each is read for its members.
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
        // Named twice, it is not as it was.
        if !asked.insert(url) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Adds the lists that an index names, if anything wanted may be in them; `false` when one of them
/// was not read before, or they are more than a walk reads.
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
