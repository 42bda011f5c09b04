//! Repairs stores and copies without guessing, and reports what Destinations will notice.

mod options;
mod report;
mod shared;
mod store;

pub use options::RepairOptions;
pub use report::RepairReport;
pub use shared::{SharedRepairOptions, repair_shared};

use crate::backup::refuse_backup;
use crate::check::of_set;
use crate::place::{Result, StateFolders, hold, in_use};
use abreast_destination::check::{repair_copy, repair_state};
use abreast_store::repair::repair_hub;
use std::sync::atomic::AtomicBool;
use store::repair_store;

/// Repairs the stores and copies in a folder, and passes a text about each step to `step`, also about the steps before a
/// failure.
///
/// # Errors
/// The folder has neither a store nor a copy, or is a backup; another process uses it; a step failed.
pub fn repair(
    options: &RepairOptions,
    step: &mut dyn FnMut(String),
    cancel: &AtomicBool,
) -> Result<RepairReport> {
    refuse_backup(&options.place.folder)?;
    let mut report = RepairReport { steps: 0, dry_run: options.dry_run };
    for (set, place) in &StateFolders::of(&options.place, &options.sets)? {
        let mut own = Vec::new();
        let done = repair_folder(options, place, &mut own, cancel);
        report.steps += own.len();
        for text in &own {
            step(of_set(set.as_deref(), text));
        }
        done?;
    }
    Ok(report)
}

fn repair_folder(
    options: &RepairOptions,
    place: &StateFolders,
    steps: &mut Vec<String>,
    cancel: &AtomicBool,
) -> Result<()> {
    let wants = options.read.selection();
    // Take the server's lock first: its error contains the server's process id.
    let _lock =
        place.store.as_ref().map(|store| hold(store, options.dry_run, "repair")).transpose()?;
    if let Some(store) = &place.store {
        repair_store(options, store, steps, &wants, cancel)?;
    }
    if let Some(hub) = &place.hub {
        let repaired = repair_hub(hub, options.dry_run)?;
        steps.extend(repaired.steps.into_iter().map(|step| format!("hub: {step}")));
    }
    if let Some(copy) = &place.copy {
        let lock = copy.lock_file();
        let _lock = if options.dry_run && !lock.as_ref().is_some_and(|lock| lock.exists()) {
            None
        } else {
            Some(
                copy.take()?
                    .ok_or_else(|| in_use(copy.shown_folder(), lock.as_deref(), "repair"))?,
            )
        };
        let salvaged = repair_state(copy, options.dry_run)?;
        let unreadable = options.dry_run && !salvaged.is_empty();
        steps.extend(salvaged);
        if !unreadable {
            steps.extend(repair_copy(copy, &wants, options.dry_run, cancel, &options.meter)?);
        }
    }
    Ok(())
}
