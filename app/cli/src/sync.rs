//! `abreast sync` and `abreast audit`: flags into options, outcomes into exit codes.

use crate::args::{AuditArgs, MirrorArgs, SyncArgs};
use crate::report::Reporter;
use abreast_destination::{AuditOptions, SyncOptions};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn options(args: &MirrorArgs) -> SyncOptions {
    let mut options = SyncOptions::new(args.url.clone(), args.folder.clone());
    options.state.clone_from(&args.state);
    options.base.clone_from(&args.base);
    options.set.clone_from(&args.set);
    options.connections = usize::from(args.connections);
    options.allow_hosts.clone_from(&args.allow_host);
    options.allow_downgrade = args.allow_downgrade;
    options.net.extra_roots.clone_from(&args.ca_file);
    options.net.retries = args.retries;
    options
}

/// Becomes true at the first SIGTERM or SIGINT; a second one ends the process at once.
fn cancel_on_signal() -> Arc<AtomicBool> {
    let cancel = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&cancel);
    let listening = crate::signals::Signals::listen().and_then(|mut signals| {
        let listen = move || {
            signals.wait();
            told.store(true, Ordering::Relaxed);
            signals.wait();
            std::process::exit(130);
        };
        Ok(std::thread::Builder::new().name("signals".into()).spawn(listen)?)
    });
    if listening.is_err() {
        tracing::warn!("cannot listen for signals: Ctrl-C ends the program at once; the next run continues");
    }
    cancel
}

/// Runs `sync`.
pub(crate) fn run(args: &SyncArgs, verbose: u8) -> ExitCode {
    let mut options = options(&args.mirror);
    options.dry_run = args.dry_run;
    options.baseline = args.baseline;
    options.require_fixity = args.require_fixity;
    options.max_delete = args.max_delete.unwrap_or_default();
    options.immutable = args.immutable;
    options.backup_dir.clone_from(&args.backup_dir);
    options.interval = args.interval;
    crate::serve::raise_file_limit();
    let reporter = Reporter::new(args.mirror.json, args.mirror.quiet, args.dry_run || args.follow || verbose > 0);
    let cancel = cancel_on_signal();
    let result = if args.follow {
        abreast_destination::follow(&options, &reporter, &cancel)
    } else {
        abreast_destination::sync(&options, &reporter, &cancel)
    };
    reporter.finish();
    match result {
        Ok(summary) => ExitCode::from(summary.exit_code),
        Err(error) => {
            reporter.failed(&error);
            ExitCode::from(error.exit_code().number())
        }
    }
}

/// Runs `audit`.
pub(crate) fn audit(args: &AuditArgs) -> ExitCode {
    let options = AuditOptions { sync: options(&args.mirror), full: args.full };
    crate::serve::raise_file_limit();
    let reporter = Reporter::new(args.mirror.json, args.mirror.quiet, true);
    let result = abreast_destination::audit(&options, &reporter, &cancel_on_signal());
    reporter.finish();
    match result {
        Ok(report) => {
            if !args.mirror.json && !args.mirror.quiet {
                crate::terminal::line(&format!(
                    "{}: {} same, {} updated, {} missing, {} extra, {} unverified",
                    if report.exit_code == 0 { "equal" } else { "DIFFERENT" },
                    report.same,
                    report.updated,
                    report.missing,
                    report.extra,
                    report.unverified
                ));
            }
            ExitCode::from(report.exit_code)
        }
        Err(error) => {
            reporter.failed(&error);
            ExitCode::from(error.exit_code().number())
        }
    }
}
