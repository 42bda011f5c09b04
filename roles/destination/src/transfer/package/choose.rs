//! The cost rule: packages, or a request for each resource.
//!
//! Requests cost a round trip for each resource, as many in parallel as a host may get, and
//! the required bytes. Packages cost a round trip each, the time of their creation, and all of
//! their bytes, required or not. Both are estimated in seconds, with the shortest round trip and
//! the speed that were measured while this run read the lists.

use crate::plan::planner::PlanContext;
use crate::plan::volume::UNKNOWN_BYTES;
use crate::read::driver::Driver;
use crate::report::error::{Error, ExitCode};
use crate::report::options::Dumps;
use crate::request::diagnostics::Pace;
use crate::request::package::listing::{Dump, ListedPackage, Offered, Packaged};
use abreast_store::mirror::PendingCounts;
use abreast_webtypes::Timestamp;
use std::time::Duration;

/// Minimum number of resources for which the dumps are read.
const RESOURCES_MIN: u64 = 32;
/// The cost of a request in addition to its round trip, in seconds.
const REQUEST_SECONDS: f64 = 0.000_1;
/// The assumed values if nothing was measured.
const ROUND_TRIP: Duration = Duration::from_millis(20);
const BYTES_PER_SECOND: f64 = 10_000_000.0;

/// The work for which the costs of packages and requests are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) resources: u64,
    pub(super) bytes: u64,
    /// Number of requests in parallel.
    parallel: u64,
    dumps: Dumps,
}

impl Wanted {
    /// `bytes` is 0 if no length is known.
    pub(super) fn new(run: &PlanContext<'_, '_>, resources: u64, bytes: u64) -> Self {
        let options = run.planner.options;
        let bytes = if bytes > 0 { bytes } else { resources * UNKNOWN_BYTES };
        Self { resources, bytes, parallel: run.requests.parallel(options), dumps: options.dumps }
    }

    /// Whether packages are to be considered at all.
    pub(super) fn is_worth_packages(self) -> bool {
        match self.dumps {
            Dumps::Never => false,
            Dumps::Auto => self.resources >= RESOURCES_MIN,
            Dumps::Always => self.resources > 0,
        }
    }

    /// The cost of packages if they are used: if it is less than the cost of requests, or if the
    /// user always wants packages.
    pub(super) fn better(self, packages: Option<f64>, pace: Pace) -> Option<f64> {
        match self.dumps {
            Dumps::Never => None,
            Dumps::Auto => packages.filter(|packages| *packages < self.seconds(pace)),
            Dumps::Always => packages.or(Some(f64::MAX)),
        }
    }

    /// The cost of a request for each.
    fn seconds(self, pace: Pace) -> f64 {
        let round_trip = pace.round_trip.unwrap_or(ROUND_TRIP).as_secs_f64();
        let at_a_time = self.parallel.clamp(1, self.resources.max(1)) as f64;
        self.resources as f64 * (round_trip + REQUEST_SECONDS) / at_a_time
            + self.bytes as f64 / rate(pace)
    }
}

fn rate(pace: Pace) -> f64 {
    pace.bytes_per_second().unwrap_or(BYTES_PER_SECOND)
}

/// The cost of a package of which `bytes` are to be received; `None` if the number is not known.
pub(super) fn package_seconds(
    package: &ListedPackage,
    to_come: Option<u64>,
    pace: Pace,
) -> Option<f64> {
    let round_trip = pace.round_trip.unwrap_or(ROUND_TRIP).as_secs_f64();
    let making = package.made.map_or(0.0, |made| made.seconds);
    to_come.map(|bytes| round_trip + making + bytes as f64 / rate(pace))
}

/// The packages to take resources out of before the rest is requested, if any.
pub(crate) fn choose(
    reader: &mut Driver,
    run: &mut PlanContext<'_, '_>,
    counts: PendingCounts,
) -> Result<Option<Dump>, Error> {
    if let Some(made_from) = run.planner.made_from.take() {
        return Ok(Some(made_from));
    }
    let wanted = Wanted::new(run, counts.fetches, counts.bytes);
    if !wanted.is_worth_packages() {
        return Ok(None);
    }
    let since = run.planner.since;
    let requests = run.requests;
    let offers = requests.briefly(|| reader.offered(run, since))?;
    let (pace, downloads) = (run.requests.diagnostics.pace(), &run.planner.downloads);
    let mut best: Option<(f64, Dump)> = None;
    for Offered { url, dump } in offers {
        match dump.and_then(|dump| usable(dump, since)) {
            Ok(dump) if dump.packages.is_empty() => {}
            Ok(dump) => {
                let each = dump.packages.iter();
                let seconds = each
                    .map(|package| package_seconds(package, downloads.to_come(package), pace))
                    .sum();
                if let Some(seconds) = wanted.better(seconds, pace)
                    && best.as_ref().is_none_or(|(least, _)| seconds < *least)
                {
                    best = Some((seconds, dump));
                }
            }
            Err(error) if matches!(error.exit_code(), ExitCode::Cancelled | ExitCode::Io) => {
                return Err(error);
            }
            Err(error) => {
                let message = format!("{error}\n  resources are asked for one by one");
                run.report.notice(error.code(), &url, &message);
            }
        }
    }
    let packages = best.as_ref().map(|(seconds, _)| *seconds);
    tracing::debug!(?pace, requests = wanted.seconds(pace), packages, "packages or not");
    Ok(best.map(|(_, dump)| dump))
}

/// The packages of a dump that may contain required resources.
fn usable(mut dump: Dump, since: Option<Timestamp>) -> Result<Dump, Error> {
    if let (Some(since), Packaged::Changes) = (since, dump.packaged) {
        dump.packages.retain(|package| package.until.is_none_or(|until| until.last() >= since));
    }
    dump.packages.iter().try_for_each(ListedPackage::check_format)?;
    Ok(dump)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::package::listing::Made;

    fn wanted(resources: u64, bytes: u64) -> Wanted {
        Wanted { resources, bytes, parallel: 8, dumps: Dumps::Auto }
    }

    fn package(to_come: Option<u64>) -> Option<f64> {
        package_seconds(&ListedPackage::default(), to_come, Pace::default())
    }

    #[test]
    fn only_many_small_resources_are_cheaper_in_a_package() {
        let pace = Pace::default();
        let whole = package(Some(65_000_000));
        assert!(wanted(20_000, 62_000_000).better(whole, pace).is_some());
        assert!(wanted(100, 310_000).better(whole, pace).is_none());
        // A package that is already downloaded for the most part.
        assert!(wanted(100, 310_000).better(package(Some(0)), pace).is_some());
        assert_eq!(package(None), None);
        assert_eq!(wanted(20_000, 62_000_000).better(None, pace), None);
        let all: Option<f64> = [package(Some(1)), package(None)].into_iter().sum();
        assert_eq!(all, None);
    }

    #[test]
    fn the_choice_of_the_user_comes_before_the_cost() {
        let (pace, dear) = (Pace::default(), package(Some(65_000_000)));
        for (dumps, cost, is_taken) in [
            (Dumps::Always, dear, true),
            (Dumps::Always, None, true),
            (Dumps::Auto, dear, false),
            (Dumps::Never, package(Some(0)), false),
        ] {
            let wanted = Wanted { dumps, ..wanted(100, 310_000) };
            assert_eq!(wanted.better(cost, pace).is_some(), is_taken, "{dumps:?} {cost:?}");
        }
    }

    #[test]
    fn the_time_to_make_a_package_is_part_of_its_cost() {
        let made = |seconds| ListedPackage {
            made: Some(Made { bytes: 0, bytes_max: 0, seconds }),
            ..ListedPackage::default()
        };
        let cost = |seconds| package_seconds(&made(seconds), Some(0), Pace::default());
        assert!(wanted(100, 310_000).better(cost(0.1), Pace::default()).is_some());
        assert!(wanted(100, 310_000).better(cost(10.0), Pace::default()).is_none());
    }
}
