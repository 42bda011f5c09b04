//! Removal of dumps that are too old or too many.

use super::dump_folder::{DumpFolder, retire_first};
use super::keeper::{SetDumps, lock};
use super::record::Dump;
use crate::made::discard;
use abreast_webtypes::Timestamp;
use std::collections::HashSet;
use std::time::Duration;

/// Replaced dumps that remain until downloads end, besides those to be kept: each is as large as
/// the set.
const MOST_REPLACED: usize = 4;
/// A package made on demand is kept so long.
const SINCE_AGE: Duration = Duration::from_secs(3_600);

impl SetDumps {
    /// Removes dumps that are too old or too many.
    pub(super) fn retire(&self) {
        let options = &self.set.options;
        let most = options.keep.max(1);
        let retired = retire_first(&self.resources, |dump_folder| {
            let (dumps, mut first) = (&dump_folder.dumps, 0);
            let now = self.log().now();
            while dumps.len() - first > most
                && (age(dumps[first + 1].end, now) >= options.grace
                    || dumps.len() - first > most + MOST_REPLACED)
            {
                first += 1;
            }
            first
        });
        let retired = retired.and_then(|()| {
            retire_first(&self.changes, |dump_folder| {
                surplus_changes(dump_folder, options.changes_size)
            })
        });
        let retired = retired.and_then(|()| {
            let Some(groups) = &self.groups else {
                self.retire_since();
                return Ok(());
            };
            let dumps = self.resources();
            let packages: HashSet<_> = dumps
                .iter()
                .flat_map(|dump| &dump.packages)
                .map(|package| &*package.stem)
                .collect();
            groups.retire(self.log().now(), SINCE_AGE, |stem| packages.contains(stem))
        });
        match retired {
            Err(error) if !error.is_of_another() => {
                tracing::warn!("cannot remove old dumps of the set `{}`: {error}", self.set.slug);
            }
            _ => {}
        }
    }

    /// Removes packages on demand that are too old.
    fn retire_since(&self) {
        let mut dump_folder = lock(&self.since);
        let root = dump_folder.root().to_owned();
        let old = |dump: &Dump| {
            let made = root.join(&dump.name).metadata().and_then(|folder| folder.modified());
            made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > SINCE_AGE))
        };
        while dump_folder.dumps.first().is_some_and(|dump| old(dump)) {
            dump_folder.remove_first(1);
        }
    }
}

/// Number of the first packages of changes above the total size, after dumps that were set aside.
fn surplus_changes(dump_folder: &DumpFolder, size: u64) -> usize {
    let mut bytes: u64 = dump_folder.dumps.iter().map(|dump| dump.bytes()).sum();
    // Dumps that were set aside are the oldest, and are removed first.
    let aside = dump_folder.aside().unwrap_or_default();
    bytes += aside.iter().map(|(_, bytes)| bytes).sum::<u64>();
    for (path, of_path) in aside {
        if bytes > size {
            bytes = bytes.saturating_sub(of_path);
            discard([path]);
        }
    }
    let mut first = 0;
    while dump_folder.dumps.len() - first > 1 && bytes > size {
        bytes -= dump_folder.dumps[first].bytes();
        first += 1;
    }
    first
}

/// Age of a time; zero if the clock is behind the time.
fn age(time: Timestamp, now: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(now.as_micros() - time.as_micros()).unwrap_or(0))
}
