//! Copies of all sets of a Source, each in a separate folder.
//!
//! The record `sets.json` maps each set to its folder and persists between runs. A set therefore
//! never changes its folder, and the copies of sets that the Source no longer offers are known.
//! Each copy has its own database, like the copy of a single set; see decision 26 for the reasons.

mod error;
mod place;
mod record;

pub use error::SetsError;
pub use place::{copies_of_sets, lock_sets};

use crate::report::audited::AuditReport;
use crate::report::error::{Error, ExitCode};
use crate::report::events::{Event, Observer, Problem, Summary};
use crate::report::open_files::requests_of_copies;
use crate::report::options::{AuditOptions, SyncOptions};
use crate::run::audit::audit;
use crate::run::follow::follow;
use crate::run::sync::{sync, test_filter};
use abreast_core::{Meter, spawn_scoped};
use place::{open, place, states_elsewhere};
use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::{Duration, Instant};

/// How often the list of sets of a followed Source is requested.
const ASK_AGAIN: Duration = Duration::from_secs(600);
/// How often a stop is noticed in between.
const TICK: Duration = Duration::from_millis(100);

/// Makes the observers of a run: of each set, by the name of its folder, and without a name one for
/// the notices and the sum of all sets.
pub type SetObservers<'a, 'o> = &'a (dyn Fn(Option<&str>) -> Box<dyn Observer + 'o> + Sync);
/// A run of one set.
type Run = fn(&SyncOptions, &dyn Observer, &AtomicBool) -> Result<Summary, Error>;

/// Synchronises all sets of a Source one after the other, each in a folder below
/// [`SyncOptions::folder`], and returns the sum. The exit code is that of the first set that failed.
///
/// ```no_run
/// use abreast_destination::{Event, Observer, SyncOptions, sync_sets};
/// use std::sync::atomic::AtomicBool;
///
/// let options = SyncOptions::new("https://example.org/", "copies");
/// let observers = |set: Option<&str>| -> Box<dyn Observer> {
///     let set = set.unwrap_or("all sets").to_owned();
///     Box::new(move |event: &Event<'_>| {
///         if let Event::Error(problem) = event {
///             eprintln!("{set}: {}", problem.message);
///         }
///     })
/// };
/// let summary = sync_sets(&options, &observers, &AtomicBool::new(false))?;
/// println!("{} new resources, exit code {}", summary.created, summary.exit_code);
/// # Ok::<(), abreast_destination::SetsError>(())
/// ```
///
/// # Errors
/// The sets of the Source cannot be read, or the folder cannot contain their copies. An error of one
/// set is reported to its observer ([`Observer::ended`]), and the other sets are synchronised.
pub fn sync_sets(
    options: &SyncOptions,
    observers: SetObservers<'_, '_>,
    cancel: &AtomicBool,
) -> Result<Summary, SetsError> {
    run_sets(options, sync, observers, cancel)
}

/// Reports the effect of the filters on the resources of all sets, and changes nothing.
///
/// # Errors
/// The errors of [`sync_sets`].
pub fn test_filter_sets(
    options: &SyncOptions,
    observers: SetObservers<'_, '_>,
    cancel: &AtomicBool,
) -> Result<Summary, SetsError> {
    run_sets(options, test_filter, observers, cancel)
}

fn run_sets(
    options: &SyncOptions,
    run: Run,
    observers: SetObservers<'_, '_>,
    cancel: &AtomicBool,
) -> Result<Summary, SetsError> {
    let began = Instant::now();
    let whole = observers(None);
    let (_lock, copies) = open(options, &*whole, cancel)?;
    let mut total = Summary { dry_run: options.dry_run, ..Summary::default() };
    for (place, options) in &copies {
        let observer = observers(Some(&place.folder));
        let code = match ended(&*observer, run(options, &Parts(&*observer), cancel)) {
            Ok(summary) => {
                total.add(&summary);
                summary.exit_code
            }
            Err(code) => code,
        };
        if code != 0 {
            let message = format!("the set in {} ended with code {code}", place.folder);
            whole.event(&Event::Notice(Problem {
                code: "sets.failed",
                uri: &place.capability_list,
                message: &message,
            }));
        }
        total.exit_code = if total.exit_code == 0 { code } else { total.exit_code };
        if code == ExitCode::Cancelled.number() {
            break;
        }
    }
    total.seconds = began.elapsed().as_secs_f64();
    // A set that could not be synchronised at all is a failure of the whole.
    let is_counted = total.failed + total.skipped + total.held > 0;
    total.failed += u64::from(total.exit_code != 0 && !is_counted);
    whole.event(&Event::Summary(&total));
    whole.ended(None);
    Ok(total)
}

/// Passes the end of a run to the observer of the set. An error becomes its exit code.
fn ended<T>(observer: &dyn Observer, result: Result<T, Error>) -> Result<T, u8> {
    observer.ended(result.as_ref().err());
    result.map_err(|error| error.exit_code().number())
}

/// Follows all sets of a Source in parallel until it is stopped, including sets that the Source
/// adds later, and returns the sum of their last runs. `shares` is the number of equal parts into
/// which the process divides its limit of open files; this call uses one part.
///
/// # Errors
/// The errors of [`sync_sets`]; too few files may be open for the sets.
pub fn follow_sets(
    options: &SyncOptions,
    shares: usize,
    observers: SetObservers<'_, '_>,
    cancel: &AtomicBool,
) -> Result<Summary, SetsError> {
    let whole = observers(None);
    let (_lock, mut copies) = open(options, &*whole, cancel)?;
    let mut requests = requests_of_copies(copies.len(), shares)?;
    let followed = |folder: &str, options: &SyncOptions| {
        let observer = observers(Some(folder));
        ended(&*observer, follow(options, &*observer, cancel)).unwrap_or_else(failure)
    };
    let result =
        |thread: ScopedJoinHandle<'_, Summary>| thread.join().unwrap_or_else(|_| failure(1));
    let ended = std::thread::scope(|scope| {
        let mut running: HashMap<String, ScopedJoinHandle<'_, Summary>> = HashMap::new();
        let mut ended: HashMap<String, Summary> = HashMap::new();
        loop {
            for (place, mut options) in copies.drain(..) {
                options.limit_requests(requests);
                if running.get(&place.folder).is_some_and(|thread| !thread.is_finished()) {
                    continue;
                }
                let folder = place.folder.clone();
                let work = tracing::error_span!("work", set = folder);
                let thread =
                    work.in_scope(|| spawn_scoped(scope, move || followed(&folder, &options)));
                if let Some(before) = running.insert(place.folder.clone(), thread) {
                    ended.insert(place.folder, result(before));
                }
            }
            let until = Instant::now() + ASK_AGAIN;
            let has_ended = || running.values().all(ScopedJoinHandle::is_finished);
            while Instant::now() < until && !cancel.load(Ordering::Relaxed) {
                std::thread::sleep(TICK);
                if has_ended() {
                    break;
                }
            }
            if cancel.load(Ordering::Relaxed) || has_ended() {
                break;
            }
            // A set whose follower ended is started again. A Source that does not respond is asked
            // in the next round.
            copies = place(options, &*whole, cancel).unwrap_or_default();
            match requests_of_copies(copies.len(), shares) {
                Ok(fitting) => requests = fitting,
                Err(error) => {
                    copies.retain(|(place, _)| running.contains_key(&place.folder));
                    whole.event(&Event::Notice(Problem {
                        code: "sets.files",
                        uri: &options.url,
                        message: &format!("new sets are not followed: {error}"),
                    }));
                }
            }
        }
        ended.extend(running.into_iter().map(|(folder, thread)| (folder, result(thread))));
        ended
    });
    whole.ended(None);
    let mut total = Summary::default();
    for summary in ended.values() {
        total.add(summary);
        total.exit_code = total.exit_code.max(summary.exit_code);
    }
    Ok(total)
}

/// The summary of a run that ended with an error.
fn failure(exit_code: u8) -> Summary {
    Summary { exit_code, ..Summary::default() }
}

/// Audits the copies of all sets of a Source, and returns the sum. A set without a copy is a
/// difference.
///
/// # Errors
/// The sets of the Source cannot be read, or the folder contains other copies. An error of one set
/// is reported to its observer ([`Observer::ended`]), and the other sets are audited.
pub fn audit_sets(
    options: &AuditOptions,
    observers: SetObservers<'_, '_>,
    cancel: &AtomicBool,
) -> Result<AuditReport, SetsError> {
    let began = Instant::now();
    let whole = observers(None);
    let mut total = AuditReport { full: options.full, ..AuditReport::default() };
    let mut sync = options.sync.clone();
    sync.state = states_elsewhere(&sync).or(sync.state);
    for (place, sync) in place(&sync, &*whole, cancel)? {
        if !is_dir(&sync.folder)? {
            let message = "this set has no copy yet\n  help: `abreast sync --all-sets` makes it";
            whole.event(&Event::Notice(Problem {
                code: "sets.missing",
                uri: &place.capability_list,
                message,
            }));
            total.exit_code = if total.exit_code == 0 { 1 } else { total.exit_code };
            total.missing_sets += 1;
            continue;
        }
        let observer = observers(Some(&place.folder));
        let options = AuditOptions { sync, full: options.full };
        let code = match ended(&*observer, audit(&options, &Parts(&*observer), cancel)) {
            Ok(report) => {
                total.add(&report);
                report.exit_code
            }
            Err(code) => code,
        };
        total.exit_code = if total.exit_code == 0 { code } else { total.exit_code };
        if code == ExitCode::Cancelled.number() {
            break;
        }
    }
    total.seconds = began.elapsed().as_secs_f64();
    whole.event(&Event::Audit(&total));
    whole.ended(None);
    Ok(total)
}

/// Whether a path is a folder. A path that this user may not read is an error.
fn is_dir(path: &Path) -> Result<bool, SetsError> {
    use std::io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    match std::fs::metadata(path) {
        Ok(found) => Ok(found.is_dir()),
        Err(cause) if matches!(cause.kind(), PermissionDenied | ReadOnlyFilesystem) => {
            Err(SetsError::Unreadable(path.to_owned(), cause))
        }
        Err(_) => Ok(false),
    }
}

/// Passes on the events for one set of several, except its outcome: the run reports one outcome for
/// all sets.
struct Parts<'a>(&'a dyn Observer);

impl Observer for Parts<'_> {
    fn event(&self, event: &Event<'_>) {
        if !matches!(event, Event::Summary(_) | Event::Audit(_)) {
            self.0.event(event);
        }
    }

    fn wants_items(&self) -> bool {
        self.0.wants_items()
    }

    fn meter(&self) -> Meter {
        self.0.meter()
    }
}
