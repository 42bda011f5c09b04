//! `abreast sync` and `abreast audit`: flags into options, outcomes into exit codes.

use crate::admin::followers::{FollowedJob, Followers};
use crate::command::jobs::{self, Job, SECRETS};
use crate::command::places::Place;
use crate::command::status::{Publication, Repeated};
use crate::config::File;
use crate::config::admin::AdminConfig;
use crate::config::faults::Fault;
use crate::config::sync_args::{AuditArgs, MirrorArgs, SyncArgs};
use crate::program::errors::SecretForSeveral;
use crate::program::errors::UsageError;
use crate::program::logging::print_error;
use crate::program::report::Reporter;
use crate::program::report::failed;
use crate::program::signals::cancel_on_signal;
use crate::store::all_sets;
use abreast_core::spawn_scoped;
use abreast_destination::{
    AuditOptions, AuditReport, Error, Observer, Summary, SyncOptions, audit_sets, follow_sets,
    requests_of_copies, sync_sets, test_filter_sets,
};
use abreast_net::Budget;
use abreast_rdf::Contexts;
use abreast_webtypes::Origin;
use anyhow::{Result, bail};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

/// `file` is the given configuration file, if any; `limits` apply to the whole process.
fn options(args: &MirrorArgs, file: Option<&Path>, limits: &Limits<'_>) -> Result<SyncOptions> {
    let [url, folder] = args.places.as_slice() else {
        bail!(UsageError(
            "expected the Source's URL and the folder (help: abreast sync URL FOLDER)".to_owned()
        ));
    };
    crate::values::address::check_source(url)?;
    let mut net = abreast_net::Options::default();
    let url = args.access.apply(url, &mut net)?;
    net.retries = args.retries;
    net.bandwidth.clone_from(&args.pace.bwlimit);
    net.request_interval = args.pace.rate.unwrap_or_default();
    let budget = limits.budget.clone();
    net.budget = Some(if limits.is_of_file("bwlimit") {
        budget.with_bandwidth(net.bandwidth.clone())
    } else {
        budget
    });
    let mut options = SyncOptions::new(url, folder);
    options.net = net;
    options.state.clone_from(&args.state);
    // A file may contain both published folders and copies.
    if let Some(Ok(file)) = file.map(File::read) {
        options.published = file.set.into_iter().map(|set| set.folder).collect();
        options.published.retain(|folder| !folder.as_os_str().is_empty());
    }
    args.target.apply(folder, file, &mut options)?;
    if options.sink.is_stream() && !args.access.is_check {
        crate::program::redirected::refuse_published_output(&options.published)?;
    }
    if let Some(url) = options.sink.service_url_mut() {
        *url = args.access.apply_to_endpoint(url, &mut options.net)?;
    }
    options.base.clone_from(&args.base);
    options.set.clone_from(&args.set);
    if let Some(connections) = args.connections.map(usize::from) {
        (options.connections, options.streams) = (connections, connections);
    }
    options.allow_hosts.clone_from(&args.allow_host);
    options.allow_downgrade = args.allow_downgrade;
    let bundled = if options.sink.is_of_statements() {
        Contexts::bundled()
    } else {
        Contexts::of_protocols()
    };
    options.contexts = crate::values::json_ld::contexts(bundled, &args.context);
    options.leave_out_invalid = args.leave_out_invalid;
    if !args.replaced_by.is_empty() {
        options.replaced_by.clone_from(&args.replaced_by);
    }
    options.filter = args.filter.filter.clone();
    options.uris.clone_from(&args.filter.uris);
    options.categories.clone_from(&args.filter.categories);
    args.reading.apply(&mut options);
    options.ignore_robots = args.pace.ignore_robots;
    Ok(options)
}

/// The runs to perform, from the arguments or from the jobs in a configuration file, each with its fault, if any.
fn wanted<A: Args + FromArgMatches + Clone + HasMirror>(
    args: &A,
    mirror: &MirrorArgs,
    given: &ArgMatches,
) -> Result<Vec<(Option<Job>, Result<A>)>> {
    // Ignore a file from the environment if the arguments are a URL and a folder.
    let by_environment = given.value_source("config") == Some(ValueSource::EnvVariable);
    let is_place = |text: &String| text.contains("://");
    let file = mirror
        .config
        .as_ref()
        .filter(|_| !(by_environment && mirror.places.first().is_some_and(is_place)));
    let Some(file) = file else { return Ok(vec![(None, Ok(args.clone()))]) };
    let command = jobs::command::<A>();
    let chosen = jobs::choose(
        jobs::read::<A>(file, &command, given, problems)?,
        &mirror.places,
        mirror.all,
    )?;
    // Check all jobs before the first job starts.
    let args = |job: Job| {
        let args = job.args(&command, given).map(|mut args: A| {
            args.mirror_mut().access.ignores_environment = job.has_own_login(given);
            args
        });
        (Some(job), args)
    };
    Ok(chosen.into_iter().map(args).collect())
}

/// The faults of a job's options, in addition to the faults of its keys and values: files, and options that do not fit together.
/// Keys with faults are removed first, so that all faults are found at once. No command of the job is run.
pub(crate) fn problems(
    job: &Job,
    command: &Command,
    given: &ArgMatches,
    file: &File,
) -> Vec<Fault> {
    let (mut rest, mut faults) = (job.clone(), Vec::new());
    let path = file.origins.path().filter(|_| file.origins.faults().is_empty());
    for fault in job.faults::<SyncArgs>(command, given) {
        // Nothing else can be checked if a URL or folder is missing.
        let Some(key) = rest.key_of(&fault).filter(|key| !jobs::PLACES.contains(&key.as_str()))
        else {
            return faults;
        };
        rest = rest.without(&key);
    }
    while let Ok(mut args) = rest.unchecked_args::<SyncArgs>(command, given) {
        args.mirror.access.ignores_environment = rest.has_own_login(given);
        args.mirror.access.is_check = true;
        args.notifications.account.is_check = true;
        let limits = Limits::new(given, &args.mirror);
        let Err(error) = sync_options(&args, path, &limits) else { break };
        let (fault, key) = rest.fault_of(command, &error);
        faults.extend(fault);
        let Some(key) = key else { break };
        rest = rest.without(&key);
    }
    faults
}

/// Runs `sync`.
pub(crate) fn run(args: &SyncArgs, given: &ArgMatches, verbose: u8) -> Result<ExitCode> {
    let jobs = wanted(args, &args.mirror, given)?;
    let has_node = matches!(
        given.value_source("xmpp"),
        Some(ValueSource::CommandLine | ValueSource::EnvVariable)
    );
    if has_node && jobs.len() > 1 {
        bail!(UsageError(format!(
            "`--xmpp` names the node of one copy, and {} jobs are to run (help: name one job, or set `xmpp` in each \
             `[[mirror]]`)",
            jobs.len()
        )));
    }
    let several = jobs.len() > 1;
    let limits = Limits::new(given, &args.mirror);
    let jobs = with_options(jobs, given, |args_of: &SyncArgs| {
        sync_options(args_of, args.mirror.config.as_deref(), &limits)
    })?;
    refuse_common_publications(&jobs)?;
    crate::program::open_files::raise_limit();
    let follows = |job: &Result<ReadyJob<SyncOptions, SyncArgs>, u8>| {
        job.as_ref().is_ok_and(|(_, _, args)| args.follow)
    };
    let parts = jobs.iter().filter(|job| follows(job)).count();
    let followers = followers_of(&jobs)?;
    let cancel = cancel_on_signal();
    let carry_out = |job: &Result<ReadyJob<SyncOptions, SyncArgs>, u8>| -> u8 {
        let (name, options, args) = match job {
            Ok(job) => job,
            Err(code) => return *code,
        };
        let work = name.as_ref().map(|name| tracing::error_span!("work", job = name));
        let _entered = work.as_ref().map(tracing::Span::enter);
        let mut options = limits.begin(options);
        if args.follow && !args.mirror.all_sets {
            match requests_of_copies(1, parts) {
                Ok(fitting) => options.limit_requests(fitting),
                Err(error) => return print_error(&UsageError(error.to_string()).into()),
            }
        }
        if let Some(on_change) = &mut options.on_change {
            on_change.job.clone_from(name);
        }
        let options = &options;
        let items = args.dry_run || args.follow || args.test_filter || verbose > 0;
        let job = name.as_deref().filter(|_| several);
        let stream = options.sink.is_stream();
        let quiet = args.mirror.quiet || stream;
        let reporter = |set: Option<&str>| {
            let (json, job) = (args.mirror.json && !stream, label(job, set));
            let progress = args.mirror.progress.begin_job(quiet, json, job.as_deref());
            let reporter = Reporter::new(json, quiet, items && !stream, progress);
            let reporter = reporter.for_job(job.as_deref());
            let reporter = if args.follow { reporter.waiting() } else { reporter };
            if args.follow && verbose == 0 { reporter.following() } else { reporter }
        };
        let followed = FollowedJob::new(name.clone(), options.clone(), args.mirror.all_sets);
        let followers = followers.as_ref().filter(|_| args.follow);
        if !args.mirror.all_sets {
            return match followers {
                Some(all) => {
                    run_one(options, args, &all.watch(&followed, None, reporter(None)), &cancel)
                }
                None => run_one(options, args, &reporter(None), &cancel),
            };
        }
        let plain = all_sets::observers(&reporter);
        let observers = |set: Option<&str>| -> Box<dyn Observer + '_> {
            match (followers, set) {
                (Some(all), Some(_)) => Box::new(all.watch(&followed, set, reporter(set))),
                _ => plain(set),
            }
        };
        let ran = if args.test_filter {
            test_filter_sets(options, &observers, &cancel)
        } else if args.follow {
            follow_sets(options, parts, &observers, &cancel)
        } else {
            sync_sets(options, &observers, &cancel)
        };
        match ran {
            Ok(summary) => summary.exit_code,
            Err(error) => all_sets::report(error, &reporter(None)),
        }
    };
    let work = |job: &Result<ReadyJob<SyncOptions, SyncArgs>, u8>| -> u8 {
        let mut publication = job.as_ref().ok().and_then(publication);
        let repeated = publication.take_if(|_| follows(job)).map(Publication::repeat);
        let code = carry_out(job);
        drop::<Option<Repeated>>(repeated);
        if let Some(publication) = &mut publication {
            publication.write();
        }
        code
    };
    // Jobs that follow run in parallel. At the same time, all other jobs run one after the other.
    let codes = std::thread::scope(|scope| {
        let mut codes = vec![0; jobs.len()];
        let (following, others): (Vec<_>, Vec<_>) =
            jobs.iter().zip(&mut codes).partition(|(job, _)| several && follows(job));
        let running: Vec<_> = following
            .into_iter()
            .map(|(job, code)| (code, spawn_scoped(scope, || work(job))))
            .collect();
        for (job, code) in others {
            *code = work(job);
            if *code == 130 {
                break;
            }
        }
        for (code, job) in running {
            *code = job.join().unwrap_or(1);
        }
        codes
    });
    Ok(ExitCode::from(codes.into_iter().find(|code| *code != 0).unwrap_or(0)))
}

/// The folder for the public status of a job, if one is configured.
fn publication((name, options, args): &ReadyJob<SyncOptions, SyncArgs>) -> Option<Publication> {
    let folder = args.publish.publish_status.clone()?;
    let state = options.state.as_ref().unwrap_or(&options.folder);
    Some(Publication::new(Place::of_copy(state.clone(), name.clone()), folder))
}

/// Refuses two jobs with one folder for their public status, since each would replace the files of the other.
fn refuse_common_publications(jobs: &[Result<ReadyJob<SyncOptions, SyncArgs>, u8>]) -> Result<()> {
    let mut folders = std::collections::BTreeMap::new();
    for (name, _, args) in jobs.iter().flatten() {
        let Some(folder) = &args.publish.publish_status else { continue };
        let name = name.as_deref().unwrap_or_default();
        if let Some(other) = folders.insert(folder, name) {
            bail!(UsageError(format!(
                "the jobs `{other}` and `{name}` publish their status in `{}`, and each would replace the files of the other (help: a folder \
                 for each, or `abreast status --publish` for all)",
                folder.display()
            )));
        }
    }
    Ok(())
}

/// A job with its name, its options and its arguments.
type ReadyJob<O, A> = (Option<String>, O, A);

/// The options of the jobs. A job whose options cannot be used is reported and left out, if there
/// are others; its exit code stands in its place.
fn with_options<A: Args + HasMirror, O>(
    jobs: Vec<(Option<Job>, Result<A>)>,
    given: &ArgMatches,
    options: impl Fn(&A) -> Result<O>,
) -> Result<Vec<Result<ReadyJob<O, A>, u8>>> {
    let secret = SECRETS.iter().find(|id| given.value_source(id) == Some(ValueSource::CommandLine));
    if let Some(secret) = secret {
        let url = |args: &A| args.mirror().places.first().and_then(|url| Origin::of(url));
        let origins: Vec<Origin> =
            jobs.iter().filter_map(|(_, args)| url(args.as_ref().ok()?)).collect();
        crate::config::access::refuse_several(
            &format!("--{}", secret.replace('_', "-")),
            &origins,
        )?;
    }
    let several = jobs.len() > 1;
    let command = jobs::command::<A>();
    let ready = |(job, args): (Option<Job>, Result<A>)| {
        let made = args.and_then(|args| match options(&args) {
            Ok(options) => Ok((options, args)),
            // Nothing may be sent by any job.
            Err(error) if error.is::<SecretForSeveral>() => Err(error),
            Err(error) => Err(match &job {
                Some(job) => job.refuse(&command, error),
                None => error,
            }),
        });
        match (made, job) {
            (Ok((options, args)), job) => Ok(Ok((job.map(|job| job.name), options, args))),
            (Err(error), Some(job)) if several && !error.is::<SecretForSeveral>() => {
                Ok(Err(print_error(&error.context(format!("job `{}` is left out", job.name)))))
            }
            (Err(error), _) => Err(error),
        }
    };
    jobs.into_iter().map(ready).collect()
}

/// The limits that all jobs of the process have together: those given by flag or in the environment.
struct Limits<'a> {
    budget: Budget,
    given: &'a ArgMatches,
}

impl<'a> Limits<'a> {
    fn new(given: &'a ArgMatches, mirror: &MirrorArgs) -> Self {
        Self { budget: Budget::new(mirror.pace.bwlimit.clone()), given }
    }

    /// Whether a limit can be of the file alone: then each job has its own.
    fn is_of_file(&self, id: &str) -> bool {
        let source = self.given.value_source(id);
        !matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable))
    }

    /// The options of a job that starts now. Limits from the job's table (`max_bytes`, `max_time`) apply to the job alone.
    fn begin(&self, options: &SyncOptions) -> SyncOptions {
        let mut options = options.clone();
        for (id, own) in [
            ("max_bytes", Budget::with_own_bytes as fn(Budget) -> Budget),
            ("max_time", Budget::with_own_time),
        ] {
            if self.is_of_file(id) {
                options.net.budget = options.net.budget.map(own);
            }
        }
        options
    }
}

/// Arguments with a Source and a copy.
trait HasMirror {
    fn mirror(&self) -> &MirrorArgs;
    fn mirror_mut(&mut self) -> &mut MirrorArgs;
}

impl HasMirror for SyncArgs {
    fn mirror(&self) -> &MirrorArgs {
        &self.mirror
    }

    fn mirror_mut(&mut self) -> &mut MirrorArgs {
        &mut self.mirror
    }
}

impl HasMirror for AuditArgs {
    fn mirror(&self) -> &MirrorArgs {
        &self.mirror
    }

    fn mirror_mut(&mut self) -> &mut MirrorArgs {
        &mut self.mirror
    }
}

fn sync_options(args: &SyncArgs, file: Option<&Path>, limits: &Limits<'_>) -> Result<SyncOptions> {
    let mut options = options(&args.mirror, file, limits)?;
    options.dry_run = args.dry_run;
    options.baseline = args.baseline;
    options.full = args.full;
    options.require_fixity = args.require_fixity;
    options.max_delete = args.max_delete.unwrap_or_default();
    options.delete_excluded = args.delete_excluded;
    options.immutable = args.immutable;
    options.moved = args.moved;
    options.republish |= args.republish;
    options.backup_dir.clone_from(&args.backup_dir);
    options.interval = args.interval;
    options.max_bytes = args.max_bytes;
    options.max_time = args.max_time;
    args.offer.apply(&mut options);
    args.on_change.apply(&mut options);
    if args.notifications.account.xmpp_jid.is_some() && !args.follow {
        bail!(UsageError("`--xmpp-jid` is for copies that follow (help: add --follow)".to_owned()));
    }
    args.notifications.apply(&mut options)?;
    args.admin.check()?;
    Ok(options)
}

/// The options for a run of `sync` without a configuration file.
pub(crate) fn options_of_sync(args: &SyncArgs, given: &ArgMatches) -> Result<SyncOptions> {
    sync_options(args, None, &Limits::new(given, &args.mirror))
}

/// The options for a run of `audit` without a configuration file.
pub(crate) fn options_of_audit(args: &AuditArgs, given: &ArgMatches) -> Result<AuditOptions> {
    let sync = options(&args.mirror, None, &Limits::new(given, &args.mirror))?;
    Ok(AuditOptions { sync, full: args.full })
}

/// The name of a job, or of a set in the job, for reports.
fn label(job: Option<&str>, set: Option<&str>) -> Option<String> {
    match (job, set) {
        (Some(job), Some(set)) => Some(format!("{job}/{set}")),
        (one, other) => one.or(other).map(str::to_owned),
    }
}

fn run_with(
    options: &SyncOptions,
    args: &SyncArgs,
    observer: &dyn Observer,
    cancel: &AtomicBool,
) -> Result<Summary, Error> {
    if args.test_filter {
        abreast_destination::test_filter(options, observer, cancel)
    } else if args.follow {
        abreast_destination::follow(options, observer, cancel)
    } else {
        abreast_destination::sync(options, observer, cancel)
    }
}

fn run_one<O: Observer + AsRef<Reporter>>(
    options: &SyncOptions,
    args: &SyncArgs,
    observer: &O,
    cancel: &AtomicBool,
) -> u8 {
    let result = run_with(options, args, observer, cancel);
    let reporter = observer.as_ref();
    reporter.finish();
    match result {
        Ok(summary) => summary.exit_code,
        Err(error) => failed(reporter, &error),
    }
}

/// The report on the jobs that follow, if any does.
fn followers_of(jobs: &[Result<ReadyJob<SyncOptions, SyncArgs>, u8>]) -> Result<Option<Followers>> {
    let following = || jobs.iter().flatten().filter(|(_, _, args)| args.follow);
    let mut addresses: Vec<AdminConfig> = Vec::new();
    for (_, _, args) in following() {
        if let Some(address) = args.admin.check()?
            && !addresses.contains(&address)
        {
            addresses.push(address);
        }
    }
    if following().next().is_none() {
        return Ok(None);
    }
    Followers::start(&addresses).map(Some)
}

/// Help for the differences that an audit found: the commands that make the copy equal again.
fn repair_of(report: &AuditReport, places: &str) -> Vec<String> {
    let mut help = Vec::new();
    if report.exit_code == 0 {
        return help;
    }
    if report.missing + report.updated > 0 {
        let full = if report.full { " --full" } else { "" };
        help.push(format!(
            "`abreast sync {places} --baseline{full}`, with the same options, restores missing and different resources"
        ));
    }
    if report.missing_sets > 0 {
        help.push(format!("`abreast sync {places}` copies the sets that have no copy yet"));
    }
    if report.extra > 0 {
        help.extend([
            format!("extra files that the Source has deleted: `abreast sync {places}` removes them (except for change feeds, which may list changes only)"),
            "extra files that a killed run left: `abreast repair` removes them".to_owned(),
            "all other extra files are your own: keep them, or move them out of the folder".to_owned(),
        ]);
    }
    help
}

/// The arguments that name Source and copy, without credentials.
fn given_as(job: Option<&str>, config: Option<&Path>, mirror: &MirrorArgs) -> String {
    let mut words = match (job, config) {
        (Some(job), Some(config)) => {
            vec!["--config".to_owned(), config.display().to_string(), job.to_owned()]
        }
        _ if mirror.places.iter().any(|place| place.contains('@')) => {
            vec!["URL".to_owned(), "FOLDER".to_owned()]
        }
        _ => mirror.places.clone(),
    };
    if job.is_none() && mirror.all_sets {
        words.push("--all-sets".to_owned());
    }
    if let Some(state) = &mirror.state {
        words.extend(["--state".to_owned(), state.display().to_string()]);
    }
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// A word as a shell takes it.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,~".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Runs `audit`.
pub(crate) fn audit(args: &AuditArgs, given: &ArgMatches) -> Result<ExitCode> {
    let jobs = wanted(args, &args.mirror, given)?;
    let several = jobs.len() > 1;
    let limits = Limits::new(given, &args.mirror);
    let jobs = with_options(jobs, given, |job: &AuditArgs| {
        let sync = options(&job.mirror, args.mirror.config.as_deref(), &limits)?;
        Ok(AuditOptions { sync, full: job.full })
    })?;
    crate::program::open_files::raise_limit();
    let cancel = cancel_on_signal();
    let mut first = 0;
    let config = args.mirror.config.as_deref();
    for job in &jobs {
        let (name, options, args) = match job {
            Ok(job) => job,
            Err(code) => {
                first = if first == 0 { *code } else { first };
                continue;
            }
        };
        let job = name.as_deref().filter(|_| several);
        let reporter = |set: Option<&str>| {
            let (json, quiet, job) = (args.mirror.json, args.mirror.quiet, label(job, set));
            let progress = args.mirror.progress.begin_job(quiet, json, job.as_deref());
            Reporter::new(json, quiet, true, progress).for_job(job.as_deref())
        };
        let whole = reporter(None);
        let result = if args.mirror.all_sets {
            audit_sets(options, &all_sets::observers(&reporter), &cancel)
                .map_err(|error| all_sets::report(error, &whole))
        } else {
            let result = abreast_destination::audit(options, &whole, &cancel);
            whole.finish();
            match result {
                Ok(report) => Ok(report),
                Err(error) => Err(failed(&whole, &error)),
            }
        };
        let code = match result {
            Ok(report) => {
                if matches!(report.exit_code, 0 | 1 | 3) && !args.mirror.json && !args.mirror.quiet
                {
                    whole.print_line(&in_words(&report));
                    let places = given_as(name.as_deref(), config, &args.mirror);
                    for help in repair_of(&report, &places) {
                        whole.print_line(&format!("  help: {help}"));
                    }
                }
                report.exit_code
            }
            Err(code) => code,
        };
        first = if first == 0 { code } else { first };
        if code == 130 {
            break;
        }
    }
    Ok(ExitCode::from(first))
}

/// An audit in one line.
fn in_words(report: &AuditReport) -> String {
    let mut more = String::new();
    let held_since = report.held_since.iter().map(|since| format!(" since {since}"));
    let held = format!("deletions waiting{}", held_since.collect::<String>());
    for (count, what) in [
        (report.unknown, "not shown by the documents"),
        (report.conflicts, "under another name"),
        (report.missing_sets, "sets without a copy"),
        (report.held, &held),
    ] {
        if count > 0 {
            let _ = write!(more, ", {count} {what}");
        }
    }
    format!(
        "{}: {} same, {} different, {} missing, {} extra, {} unverified{more}",
        match report.exit_code {
            0 => "equal",
            3 => "no difference found, but not all could be compared",
            _ => "DIFFERENT",
        },
        report.same,
        report.updated,
        report.missing,
        report.extra,
        report.unverified
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_way_to_repair_a_copy_is_a_line_of_its_own() {
        let report = AuditReport { missing: 1, extra: 2, exit_code: 1, ..AuditReport::default() };
        let help = repair_of(&report, "URL FOLDER");
        assert_eq!(help.len(), 4);
        assert!(help.iter().all(|line| !line.contains('\n')), "{help:?}");
        assert_eq!(repair_of(&AuditReport::default(), "URL FOLDER"), [""; 0]);
    }
}
