//! Parts of both demonstrations: the Source, the copy that follows it, and the comparison.

use crate::command::serve::Running;
use crate::config::{File, ServeConfig, SetFile};
use crate::program::signals::Signals;
use crate::program::terminal::line;
use abreast_core::start_thread;
use abreast_destination::{AuditOptions, Event, Silent, SyncOptions};
use abreast_webtypes::count;
use anyhow::{Context as _, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a change may take until it is in the copy; it usually takes a second.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause between polls of the copy. Longer than [`PATIENCE`], so that only pushed changes arrive in
/// time.
const POLLS: Duration = Duration::from_secs(60);

/// A folder of the demonstration that does not exist yet.
pub(super) fn new_folder(place: &Path, name: &str) -> Result<PathBuf> {
    let folder = place.join(name);
    ensure!(
        !folder.exists(),
        "`{}` holds an earlier demo (help: remove it, or name another --dir)",
        place.display()
    );
    Ok(folder)
}

/// Publishes one set on a free port.
pub(super) fn serve(set: SetFile) -> Result<Running> {
    let file = File { listen: Some("127.0.0.1:0".into()), set: vec![set], ..File::default() };
    Running::start(ServeConfig::check(file)?)
}

/// The Destination, which follows the Source in a separate thread.
pub(super) struct Follower {
    cancel: Arc<AtomicBool>,
    /// Whether the event stream of the Source is open.
    is_pushed: Arc<AtomicBool>,
    thread: JoinHandle<Result<abreast_destination::Summary, abreast_destination::Error>>,
}

impl Follower {
    pub(super) fn start(mut options: SyncOptions) -> Result<Self> {
        options.interval = POLLS;
        let (cancel, is_pushed) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (cancel_flag, push_flag) = (Arc::clone(&cancel), Arc::clone(&is_pushed));
        let thread = start_thread("follower", move || {
            let observer = |event: &Event<'_>| match event {
                Event::Error(problem) => {
                    line(&format!("   ! {}: {} [{}]", problem.uri, problem.message, problem.code));
                }
                Event::Notice(notice) if notice.code == "push.events" => {
                    push_flag.store(true, Ordering::Relaxed);
                }
                _ => (),
            };
            abreast_destination::follow(&options, &observer, &cancel_flag)
        })?;
        Ok(Self { cancel, is_pushed, thread })
    }

    /// Waits until the copy is as expected, and changes are pushed; returns the seconds it took.
    pub(super) fn wait_until(&self, is_equal: impl Fn() -> Result<bool>) -> Result<f64> {
        let start = Instant::now();
        loop {
            if self.is_pushed.load(Ordering::Relaxed) && is_equal()? {
                return Ok(start.elapsed().as_secs_f64());
            }
            ensure!(
                start.elapsed() < PATIENCE,
                "the copy was not equal after {} s",
                PATIENCE.as_secs()
            );
            ensure!(!self.thread.is_finished(), "the following run ended early");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn stop(self) -> Result<()> {
        self.cancel.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) if error.exit_code() == abreast_destination::ExitCode::Cancelled => {
                Ok(())
            }
            Ok(Err(error)) => Err(error).context("while following"),
            Err(_) => bail!("the following thread panicked"),
        }
    }
}

/// Copies once.
pub(super) fn sync(options: &SyncOptions) -> Result<abreast_destination::Summary> {
    let summary = abreast_destination::sync(options, &Silent, &AtomicBool::new(false))?;
    ensure!(summary.exit_code == 0, "`{}` was not copied completely", options.url);
    Ok(summary)
}

/// Compares the digest of everything in a copy with the Source, and returns the number of
/// resources in words.
pub(super) fn audit(mut sync: SyncOptions, thing: &str) -> Result<String> {
    sync.connections = 4;
    let options = AuditOptions { sync, full: true };
    let report = abreast_destination::audit(&options, &Silent, &AtomicBool::new(false))?;
    if report.exit_code != 0 {
        bail!(
            "the copy differs: {} different, {} missing, {} extra",
            report.updated,
            report.missing,
            report.extra
        );
    }
    Ok(count(report.same, thing))
}

/// With `--keep`, waits for a signal; then ends the demonstration.
pub(super) fn end(
    source: Running,
    follower: Follower,
    kept: Option<&[String]>,
    next: &str,
) -> Result<()> {
    if let Some(kept) = kept {
        let signals = Signals::listen()?;
        line("");
        line("Left running. Change a file in the first folder, and watch the second:");
        for place in kept {
            line(&format!("   {place}"));
        }
        line("Ctrl-C ends it.");
        signals.wait_to_stop();
    }
    follower.stop()?;
    source.stop();
    line(&format!("Done. Next:  {next}"));
    Ok(())
}
