//! Resources from packages: in the order of `transfer/package/supply.rs`, with its decisions about
//! members, and a model of its storage.

use super::keep::keep;
use super::world::note;
use crate::plan::planner::PlanContext;
use crate::read::driver::Driver;
use crate::report::error::{Error, ExitCode};
use crate::report::options::Dumps;
use crate::transfer::package::choose::choose;
use crate::transfer::package::supply::Supply;
use abreast_store::mirror::PendingAction;
use abreast_testkit::providers::Provider;
use std::collections::BTreeMap;

/// Whether the user of a copy wants packages, in this run, where they are not needed.
pub(super) fn choice(provider: &mut Provider) -> Dumps {
    if provider.rendering.has_packages() && provider.clock() % 2 == 0 {
        Dumps::Always
    } else {
        Dumps::Auto
    }
}

/// Extracts planned resources from packages; the others remain planned.
pub(super) fn supply(
    reader: &mut Driver,
    run: &mut PlanContext<'_, '_>,
    kept: &mut BTreeMap<String, String>,
) -> Result<(), Error> {
    let counts = run.planner.mirror.pending_counts()?;
    let dump = if counts.fetches == 0 { None } else { choose(reader, run, counts)? };
    let Some(mut dump) = dump else { return Ok(()) };
    for package in &std::mem::take(&mut dump.packages) {
        let mirror = run.planner.mirror;
        if mirror.pending_counts()?.fetches == 0 {
            break;
        }
        let fetched = run.planner.downloads.fetch(run.requests, package);
        let opened =
            fetched.and_then(|file| Supply::open(reader, run.requests, &dump, (package, file)));
        let supply = match opened {
            Ok(supply) => supply,
            Err(error) if matches!(error.exit_code(), ExitCode::Cancelled | ExitCode::Io) => {
                return Err(error);
            }
            Err(error) => {
                note(|| error.to_string());
                dump.passed_over();
                continue;
            }
        };
        let mut tasks = Vec::new();
        mirror.fetches_after("", usize::MAX >> 1, &mut tasks)?;
        mirror.begin()?;
        for task in tasks.iter().filter(|task| task.pending.action == PendingAction::Fetch) {
            if let Some(bytes) = supply.bytes_for(task) {
                note(|| format!("out of {}:", package.url));
                keep(run.planner, task, bytes, kept)?;
            }
        }
        mirror.commit()?;
    }
    Ok(())
}
