//! Storing a resource in the model of the transfer.

use super::world::note;
use crate::plan::planner::Planner;
use crate::report::error::Error;
use crate::request::verify::{Hasher, Verdict, judge};
use crate::sink::row_as_planned;
use abreast_store::mirror::Task;
use abreast_webtypes::Digests;
use std::collections::BTreeMap;

/// Stores the bytes of a resource if they have the listed digests.
pub(super) fn keep(
    planner: &Planner<'_>,
    task: &Task,
    bytes: Vec<u8>,
    kept: &mut BTreeMap<String, String>,
) -> Result<bool, Error> {
    let (item, length) = (&task.pending, bytes.len() as u64);
    let mut listed = Digests::default();
    listed.set_from_bytes(&item.digests);
    let mut hasher = Hasher::for_listed(&listed);
    hasher.update(&bytes);
    let got = hasher.finish();
    if judge(&listed, item.length, &got, length) == Verdict::Mismatch {
        return Ok(false);
    }
    let mut row = row_as_planned(task, length, planner.epoch);
    row.digests = got.to_bytes();
    planner.mirror.put_row(&row)?;
    planner.mirror.forget_pending(&item.uri)?;
    let text = String::from_utf8(bytes).unwrap();
    let version = text.split('"').nth(1).expect("a version");
    note(|| format!("{} is {version}", item.uri));
    kept.insert(item.uri.clone(), version.to_owned());
    Ok(true)
}
