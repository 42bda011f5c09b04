//! Is it cheaper to take packages than to ask for each resource?
//!
//! Asking costs a round trip for each resource, as many at a time as there are connections, and the bytes wanted.
//! Packages cost a round trip each and all of their bytes, wanted or not. Both are put in seconds, with the shortest
//! round trip and the speed seen while this run read the lists.

use super::listing::{Dump, ListedPackage};
use super::{Chosen, Packaged, Packages};
use crate::error::{Error, ExitCode};
use crate::noticed::Pace;
use crate::options::Dumps;
use crate::read::resourcesync::discover::{Entrance, discover_again};
use crate::session::Session;
use abreast_store::mirror::PendingCounts;
use std::time::Duration;

/// Fewer resources than this are never worth a look at the dumps.
pub(super) const WORTH_A_LOOK: u64 = 32;
/// What a request costs beside its round trip.
const REQUEST_SECONDS: f64 = 0.000_1;
/// When nothing was measured.
const ROUND_TRIP: Duration = Duration::from_millis(20);
const BYTES_PER_SECOND: f64 = 10_000_000.0;
/// What a resource of unknown length counts.
pub(super) const UNKNOWN_BYTES: u64 = 16 << 10;

/// What there is to compare.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) resources: u64,
    pub(super) bytes: u64,
    pub(super) connections: u64,
}

impl Wanted {
    pub(super) fn seconds(self, pace: Pace) -> f64 {
        let round_trip = pace.round_trip.unwrap_or(ROUND_TRIP).as_secs_f64();
        let at_a_time = self.connections.clamp(1, self.resources.max(1)) as f64;
        self.resources as f64 * (round_trip + REQUEST_SECONDS) / at_a_time + self.bytes as f64 / rate(pace)
    }
}

fn rate(pace: Pace) -> f64 {
    pace.bytes_per_second().unwrap_or(BYTES_PER_SECOND)
}

/// What packages cost; `None` when the length of one is not known.
pub(super) fn package_seconds(lengths: impl Iterator<Item = Option<u64>>, pace: Pace) -> Option<f64> {
    let round_trip = pace.round_trip.unwrap_or(ROUND_TRIP).as_secs_f64();
    lengths.map(|length| length.map(|bytes| round_trip + bytes as f64 / rate(pace))).sum()
}

impl Session<'_> {
    /// What the Capability List names now, read once in a run at most, and only when what is looked for is not known.
    pub(super) fn newest_entrance(&mut self, known: &Entrance, wants_changes_since: bool) -> Result<Entrance, Error> {
        if let Some(read) = &self.packages.entrance {
            return Ok(read.clone());
        }
        let Some(read) = discover_again(self, known, wants_changes_since)? else { return Ok(known.clone()) };
        self.packages.entrance = Some(read.clone());
        Ok(read)
    }

    /// The packages to take resources out of before the rest is asked for, if any.
    pub(super) fn choose_packages(
        &mut self,
        entrance: &Entrance,
        counts: PendingCounts,
    ) -> Result<Option<Chosen>, Error> {
        let Packages { since, planned, .. } = &mut self.packages;
        if let Some(planned) = planned.take() {
            return Ok(Some(planned));
        }
        let since = *since;
        let dumps = self.options.dumps;
        if dumps == Dumps::Never || dumps == Dumps::Auto && counts.fetches < WORTH_A_LOOK {
            return Ok(None);
        }
        let entrance = &self.newest_entrance(entrance, false)?;
        let pace = self.requests.care.pace();
        let wanted = Wanted {
            resources: counts.fetches,
            bytes: if counts.bytes > 0 { counts.bytes } else { counts.fetches * UNKNOWN_BYTES },
            connections: self.options.connections.max(1) as u64,
        };
        let mut best: Option<(f64, Chosen)> = None;
        let changes = entrance.change_dump.as_ref().filter(|_| since.is_some());
        for (url, packaged) in changes
            .map(|url| (url, Packaged::Changes))
            .into_iter()
            .chain(entrance.resource_dump.as_ref().map(|url| (url, Packaged::Snapshot)))
        {
            let found = match self.read_dump(url, packaged, None) {
                Ok(Some(dump)) => Self::usable(dump, packaged, since),
                Ok(None) => continue,
                Err(error) => Err(error),
            };
            match found {
                Ok(chosen) if chosen.packages.is_empty() => {}
                Ok(chosen) => {
                    let lengths = chosen.packages.iter().map(|package| self.to_come(package));
                    let seconds = package_seconds(lengths, pace);
                    let seconds = if dumps == Dumps::Always { seconds.or(Some(f64::MAX)) } else { seconds };
                    if let Some(seconds) = seconds
                        && best.as_ref().is_none_or(|(least, _)| seconds < *least)
                    {
                        best = Some((seconds, chosen));
                    }
                }
                Err(error) if matches!(error.exit_code(), ExitCode::Cancelled | ExitCode::Io) => return Err(error),
                Err(error) => {
                    let message = format!("{error}\n  resources are asked for one by one");
                    self.report.notice(error.code(), url, &message);
                }
            }
        }
        let asking = wanted.seconds(pace);
        let chosen = best.filter(|(seconds, _)| dumps == Dumps::Always || *seconds < asking);
        tracing::debug!(?pace, asking, packages = chosen.as_ref().map(|(seconds, _)| *seconds), "packages or not");
        Ok(chosen.map(|(_, chosen)| chosen))
    }

    /// The packages of a dump that may have something wanted in them.
    fn usable(dump: Dump, packaged: Packaged, since: Option<abreast_webtypes::Timestamp>) -> Result<Chosen, Error> {
        let since = since.filter(|_| packaged == Packaged::Changes);
        let packages: Vec<ListedPackage> = dump
            .packages
            .into_iter()
            .filter(|package| since.is_none_or(|since| package.until.is_none_or(|until| until >= since)))
            .collect();
        packages.iter().try_for_each(ListedPackage::check_format)?;
        let at = dump.begins.filter(|_| packaged == Packaged::Snapshot);
        Ok(Chosen { packages, packaged, at, is_plan: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(resources: u64, bytes: u64) -> Wanted {
        Wanted { resources, bytes, connections: 8 }
    }

    #[test]
    fn many_small_resources_are_cheaper_in_a_package_and_few_are_not() {
        let pace = Pace::default();
        let package = package_seconds([Some(65_000_000)].into_iter(), pace).unwrap();
        assert!(wanted(20_000, 62_000_000).seconds(pace) > package);
        assert!(wanted(100, 310_000).seconds(pace) < package);
        // One that is mostly here already.
        assert!(wanted(100, 310_000).seconds(pace) > package_seconds([Some(0)].into_iter(), pace).unwrap());
        assert_eq!(package_seconds([Some(1), None].into_iter(), pace), None);
    }
}
