//! The count of resources created since the copy was last without deletions beyond the limit: they
//! are no part of the size by which deletions are judged.
//!
//! The count grows in the transactions that keep the resources, so a killed run loses nothing of it.
//! A run that ends without deletions beyond the limit begins it again.

use crate::copy::key;
use crate::report::error::Error;
use abreast_store::mirror::Mirror;

/// The count so far.
pub(crate) fn count(mirror: &Mirror) -> Result<u64, Error> {
    Ok(noted(mirror)?.unwrap_or(0))
}

/// Adds resources to the count, in the transaction that keeps them.
pub(crate) fn add(mirror: &Mirror, new: u64) -> Result<(), Error> {
    if new > 0 {
        mirror.add_to_meta(key::CREATED, new)?;
    }
    Ok(())
}

/// Begins the count again: all resources are part of the copy.
pub(crate) fn restart(mirror: &Mirror) -> Result<(), Error> {
    Ok(mirror.set_meta(key::CREATED, Some("0"))?)
}

/// Before a run plans anything. The count stays while deletions wait, and after a killed run, unless
/// that was the first: there was no copy before it.
pub(crate) fn begin(mirror: &Mirror) -> Result<(), Error> {
    let noted = noted(mirror)?;
    if noted == Some(0) {
        return Ok(());
    }
    let finished = mirror.meta(key::FINISHED)?;
    let is_ended = finished.is_none() || finished == mirror.meta(key::EPOCH)?;
    match (noted, mirror.count_deletes()?) {
        (Some(_), 0) if is_ended => restart(mirror),
        (None, 0) => restart(mirror),
        // Older versions did not count. As many as are to be deleted may have been created since.
        (None, waiting) => Ok(mirror.set_meta(key::CREATED, Some(&waiting.to_string()))?),
        _ => Ok(()),
    }
}

fn noted(mirror: &Mirror) -> Result<Option<u64>, Error> {
    Ok(mirror.meta(key::CREATED)?.and_then(|text| text.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_store::mirror::{Pending, PendingAction};

    /// A copy of a run with these marks, `created` resources since, and deletions that wait.
    fn begun(created: Option<&str>, epochs: [Option<&str>; 2], deletions: usize) -> u64 {
        let mirror = Mirror::scratch().unwrap();
        mirror.set_meta(key::CREATED, created).unwrap();
        mirror.set_meta(key::EPOCH, epochs[0]).unwrap();
        mirror.set_meta(key::FINISHED, epochs[1]).unwrap();
        for number in 0..deletions {
            let (uri, action) = (format!("http://h/{number}"), PendingAction::Delete);
            mirror.put_pending(&Pending { uri, action, ..Pending::default() }).unwrap();
        }
        begin(&mirror).unwrap();
        add(&mirror, 3).unwrap();
        count(&mirror).unwrap() - 3
    }

    #[test]
    fn the_count_lasts_as_long_as_deletions_or_a_killed_run() {
        let (ended, killed, first) = ([Some("4"); 2], [Some("5"), Some("4")], [Some("1"), None]);
        for (created, epochs, deletions, expected) in [
            (Some("7"), ended, 2, 7),
            (Some("7"), ended, 0, 0),
            (Some("7"), killed, 0, 7),
            (Some("7"), first, 0, 0),
            (Some("7"), first, 2, 7),
            (Some("0"), killed, 2, 0),
            (None, ended, 2, 2),
            (None, ended, 0, 0),
            (None, [None; 2], 0, 0),
        ] {
            assert_eq!(
                begun(created, epochs, deletions),
                expected,
                "{created:?} {epochs:?} {deletions}"
            );
        }
    }
}
