//! The count of resources that were created since the due deletions were last within the
//! limit. These resources do not count in the size of the copy by which deletions are judged.
//!
//! The count is increased in the transactions that store the resources, so it remains correct after
//! a crash. A run that ends with the due deletions within the limit restarts the count.

use crate::copy::key;
use crate::report::error::Error;
use abreast_store::mirror::Mirror;

/// The number of resources so far.
pub(crate) fn count(mirror: &Mirror) -> Result<u64, Error> {
    Ok(noted(mirror)?.unwrap_or(0))
}

/// Adds resources to the count, in the transaction that stores them.
pub(crate) fn add(mirror: &Mirror, new: u64) -> Result<(), Error> {
    if new > 0 {
        mirror.add_to_meta(key::CREATED, new)?;
    }
    Ok(())
}

/// Restarts the count: all resources are part of the copy.
pub(crate) fn restart(mirror: &Mirror) -> Result<(), Error> {
    Ok(mirror.set_meta(key::CREATED, Some("0"))?)
}

/// Called before a run makes a plan. The count is retained while deletions are held, and after a
/// killed run, except the first run, before which there was no copy.
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
