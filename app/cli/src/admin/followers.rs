//! The copies that this process follows: what each does, and when it last succeeded.

use crate::admin::address::answer_at;
use crate::admin::socket::{self, OwnSocket};
use crate::config::admin::AdminConfig;
use abreast_core::Meter;
use abreast_destination::check::CopyPlace;
use abreast_destination::{Error, Event, Heartbeat, Observer, Summary, SyncOptions};
use abreast_maintenance::{Attention, CopyRun, CopyStatus, StatusReport, copy_status};
use abreast_server::{AdminServer, Metrics, Observed};
use abreast_webtypes::W3cDatetime;
use anyhow::{Context as _, Result};
use metrics::{counter, gauge, histogram};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time without a sign of work after which a follower counts as hung. A single step that shows none,
/// such as waiting until a disk has everything, takes less.
const HUNG_AFTER: Duration = Duration::from_secs(5 * 60);
/// Age of the last attempt that came to its end, up to which a follower is ready during a run.
const READY_AGE: Duration = Duration::from_secs(2 * 3_600);
/// Most copies in an answer to a probe.
const TOLD_MAX: usize = 100;

/// All copies that this process follows, and the server that reports them.
pub(crate) struct Followers {
    server: AdminServer,
    all: Arc<Mutex<Vec<Arc<Follower>>>>,
    metrics: Option<Arc<Metrics>>,
}

/// One copy that is followed.
struct Follower {
    job: Option<String>,
    set: Option<String>,
    source: String,
    place: CopyPlace,
    heartbeat: Heartbeat,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// The phase of the current run; `None` while the follower waits.
    phase: Option<String>,
    /// The end of the last attempt that came to its end.
    succeeded: Option<(Instant, SystemTime)>,
    /// The error of the last attempt.
    error: Option<String>,
    /// The follower of this copy ended.
    has_ended: bool,
    last: Option<Summary>,
    total: CopyRun,
}

/// A job: its copies, and the folder in which it has its socket.
pub(crate) struct FollowedJob {
    name: Option<String>,
    options: SyncOptions,
    all_sets: bool,
    socket: Mutex<Option<OwnSocket>>,
}

/// Passes the events of a followed copy on to `inner`.
pub(crate) struct Watched<'f, O> {
    inner: O,
    followers: &'f Followers,
    job: &'f FollowedJob,
    follower: Arc<Follower>,
}

/// The jobs in a report.
enum Jobs {
    All,
    /// The job with this name, or the copy without a job.
    One(Option<String>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Followers {
    /// Starts the thread that answers operators, and listens on these addresses.
    ///
    /// # Errors
    /// An address is in use, or the system starts no thread.
    pub(crate) fn start(addresses: &[AdminConfig]) -> Result<Self> {
        let server = AdminServer::start().context("cannot start the thread for operators")?;
        let metrics = Metrics::install().ok().map(Arc::new);
        let followers = Self { server, all: Arc::default(), metrics };
        for address in addresses {
            let address = answer_at(&followers.server, address, followers.observed(Jobs::All))?;
            // Standard output may be the copy.
            crate::program::terminal::warning(&format!("probes and metrics at http://{address}/"));
        }
        Ok(followers)
    }

    /// Reports on the copies of a job, or on every copy.
    fn observed(&self, job: Jobs) -> Arc<dyn Observed> {
        let (all, metrics) = (Arc::clone(&self.all), self.metrics.clone());
        Arc::new(ObservedFollowers { all, job, metrics })
    }

    /// Passes on the events of a copy that is followed.
    pub(crate) fn watch<'f, O>(
        &'f self,
        job: &'f FollowedJob,
        set: Option<&str>,
        inner: O,
    ) -> Watched<'f, O> {
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let folder = &absolute(&job.options.folder);
        let own = match &job.options.state {
            Some(state) => absolute(state),
            None => folder.join(abreast_destination::STATE_FOLDER),
        };
        let place = match (set, &job.options.state) {
            (None, _) => CopyPlace { folder: Some(folder.clone()), state: own },
            (Some(set), Some(state)) => {
                CopyPlace { folder: Some(folder.join(set)), state: absolute(state).join(set) }
            }
            (Some(set), None) => {
                let folder = folder.join(set);
                let state = folder.join(abreast_destination::STATE_FOLDER);
                CopyPlace { folder: Some(folder), state }
            }
        };
        let follower = Arc::new(Follower {
            job: job.name.clone(),
            set: set.map(str::to_owned),
            source: abreast_webtypes::without_login(&job.options.url).into_owned(),
            place,
            heartbeat: Heartbeat::default(),
            progress: Mutex::default(),
        });
        let mut all = lock(&self.all);
        // The follower of a set that ended is started again.
        all.retain(|other| {
            (&other.job, &other.set, &other.place.state)
                != (&follower.job, &follower.set, &follower.place.state)
        });
        all.push(Arc::clone(&follower));
        drop(all);
        if set.is_some() {
            self.open_socket(job);
        }
        Watched { inner, followers: self, job, follower }
    }

    /// Listens on the socket of a job, if it does not yet. The run of the job holds the lock of the
    /// folder.
    fn open_socket(&self, job: &FollowedJob) {
        let mut socket = lock(&job.socket);
        if socket.is_some() {
            return;
        }
        let folder = job.state_folder();
        let opened = socket::listen(&folder, socket::FOLLOWER).and_then(|(listener, own)| {
            self.server.answer_on(listener, self.observed(Jobs::One(job.name.clone())))?;
            Ok(own)
        });
        match opened {
            Ok(own) => *socket = Some(own),
            Err(error) => tracing::debug!(
                "cannot report the status on a socket in {}: {error}",
                folder.display()
            ),
        }
    }
}

impl FollowedJob {
    pub(crate) fn new(name: Option<String>, options: SyncOptions, all_sets: bool) -> Self {
        Self { name, options, all_sets, socket: Mutex::default() }
    }

    /// The folder that is common to the databases of the job's copies.
    fn state_folder(&self) -> PathBuf {
        match &self.options.state {
            Some(state) => state.clone(),
            None if self.all_sets && !self.options.sink.is_local() => self.options.folder.clone(),
            None => self.options.folder.join(abreast_destination::STATE_FOLDER),
        }
    }
}

impl<O> AsRef<O> for Watched<'_, O> {
    fn as_ref(&self) -> &O {
        &self.inner
    }
}

impl<O: Observer> Observer for Watched<'_, O> {
    fn event(&self, event: &Event<'_>) {
        self.follower.heartbeat.beat();
        match event {
            Event::Status(status) => {
                let mut progress = lock(&self.follower.progress);
                if progress.phase.as_deref() != Some(status.phase) {
                    progress.phase = Some(status.phase.to_owned());
                    drop(progress);
                    // The plan is stored now, so the folder of the database remains.
                    if status.phase == "fetching" {
                        self.followers.open_socket(self.job);
                    }
                }
            }
            Event::Summary(summary) => self.follower.add(summary),
            _ => {}
        }
        self.inner.event(event);
    }

    fn wants_items(&self) -> bool {
        self.inner.wants_items()
    }

    fn ended(&self, error: Option<&Error>) {
        let mut progress = lock(&self.follower.progress);
        (progress.has_ended, progress.phase) = (true, None);
        progress.error = error.map(Error::to_string);
        drop(progress);
        self.inner.ended(error);
    }

    fn attempted(&self, error: Option<&Error>) {
        self.follower.attempted(error);
        self.followers.open_socket(self.job);
        self.inner.attempted(error);
    }

    fn meter(&self) -> Meter {
        self.inner.meter()
    }

    fn heartbeat(&self) -> Option<Heartbeat> {
        Some(self.follower.heartbeat.clone())
    }
}

impl Follower {
    fn labels(&self) -> [(&'static str, String); 2] {
        [
            ("job", self.job.clone().unwrap_or_default()),
            ("set", self.set.clone().unwrap_or_default()),
        ]
    }

    fn attempted(&self, error: Option<&Error>) {
        let mut progress = lock(&self.progress);
        progress.phase = None;
        progress.error = error.map(Error::to_string);
        if error.is_none() {
            progress.succeeded = Some((Instant::now(), SystemTime::now()));
        }
        drop(progress);
        let result = if error.is_none() { "success" } else { "failure" };
        let [job, set] = self.labels();
        let labels = [job, set, ("result", result.to_owned())];
        counter!("abreast_copy_attempts_total", &labels).increment(1);
    }

    fn add(&self, summary: &Summary) {
        let changes = summary.created + summary.updated + summary.deleted;
        let mut progress = lock(&self.progress);
        let total = &mut progress.total;
        total.exit_code = summary.exit_code;
        total.milliseconds += (summary.seconds * 1e3) as u64;
        total.changes += changes;
        total.bytes += summary.bytes;
        total.requests += summary.requests;
        total.retries += summary.retries;
        progress.last = Some(summary.clone());
        drop(progress);
        let labels = self.labels();
        counter!("abreast_copy_changes_applied_total", &labels).increment(changes);
        counter!("abreast_copy_received_bytes_total", &labels).increment(summary.bytes);
        counter!("abreast_copy_requests_total", &labels).increment(summary.requests);
        counter!("abreast_copy_retries_total", &labels).increment(summary.retries);
        histogram!("abreast_copy_run_seconds", &labels).record(summary.seconds);
        if changes > 0 {
            gauge!("abreast_copy_last_change_time_seconds", &labels)
                .set(seconds(SystemTime::now()));
        }
    }

    /// Sets the gauges of the copy.
    fn measure(&self) {
        let progress = lock(&self.progress);
        let labels = self.labels();
        gauge!("abreast_copy_last_sign_age_seconds", &labels)
            .set(self.heartbeat.age().as_secs_f64());
        if let Some((_, at)) = progress.succeeded {
            gauge!("abreast_copy_last_success_time_seconds", &labels).set(seconds(at));
        }
        let Some(last) = &progress.last else { return };
        let is_complete =
            progress.error.is_none() && last.failed + last.skipped + last.held + last.untried == 0;
        if is_complete {
            gauge!("abreast_copy_complete_time_seconds", &labels)
                .set(progress.succeeded.map_or(0.0, |(_, at)| seconds(at)));
        }
        gauge!("abreast_copy_complete", &labels).set(f64::from(u8::from(is_complete)));
        gauge!("abreast_copy_pending", &labels).set((last.untried + last.failed) as f64);
        gauge!("abreast_copy_failed", &labels).set((last.failed + last.skipped) as f64);
        gauge!("abreast_copy_held_deletions", &labels).set(last.held as f64);
        let cursor = last.cursor.as_ref().and_then(|text| W3cDatetime::parse(text.as_bytes()).ok());
        if let Some(cursor) = cursor {
            gauge!("abreast_copy_cursor_time_seconds", &labels)
                .set(cursor.instant.as_micros() as f64 / 1e6);
        }
    }

    /// Why the follower does not show that it works.
    fn hangs(&self) -> Option<String> {
        let (age, has_ended) = (self.heartbeat.age(), lock(&self.progress).has_ended);
        (age > HUNG_AFTER && !has_ended).then(|| {
            format!(
                "has shown no sign of work for {} s (the limit is {} s)",
                age.as_secs(),
                HUNG_AFTER.as_secs()
            )
        })
    }

    /// A text for people, as an error if the copy is not ready.
    fn state(&self) -> Result<String, String> {
        if let Some(hangs) = self.hangs() {
            return Err(hangs);
        }
        let progress = lock(&self.progress);
        let phase = progress.phase.as_deref();
        let age = progress.succeeded.map(|(at, _)| at.elapsed());
        match (&progress.error, age, phase) {
            (Some(error), _, _) => {
                let error = error.split_whitespace().collect::<Vec<_>>().join(" ");
                let what =
                    if progress.has_ended { "has ended" } else { "has failed, and is tried again" };
                Err(format!("{what}: {error}"))
            }
            (None, None, phase) => {
                Err(format!("has not been complete yet; it is {}", phase.unwrap_or("starting")))
            }
            (None, Some(age), Some(phase)) if age > READY_AGE => Err(format!(
                "is {phase} since the last attempt ended {} s ago (the limit is {} s)",
                age.as_secs(),
                READY_AGE.as_secs()
            )),
            (None, Some(age), phase) => {
                let what = match (progress.has_ended, phase) {
                    (true, _) => "has ended",
                    (false, Some(phase)) => phase,
                    (false, None) => "following",
                };
                let mut text = format!("is {what}; last success {} s ago", age.as_secs());
                for (count, what) in progress.last.iter().flat_map(|last| {
                    [(last.failed + last.skipped, "failed"), (last.held, "deletions held back")]
                }) {
                    if count > 0 {
                        let _ = write!(text, "; {count} {what}");
                    }
                }
                Ok(text)
            }
        }
    }

    fn name(&self) -> String {
        match (&self.job, &self.set) {
            (Some(job), Some(set)) => format!("job `{job}`, set `{set}`"),
            (Some(job), None) => format!("job `{job}`"),
            (None, Some(set)) => format!("set `{set}`"),
            (None, None) => "the copy".to_owned(),
        }
    }

    fn status(&self) -> CopyStatus {
        let mut status = copy_status(&self.place).unwrap_or_else(|error| {
            let shown = self.place.shown_folder().display().to_string();
            let help = format!("abreast check {shown}");
            CopyStatus {
                attention: vec![Attention::new(error.text(), help)],
                place: shown,
                ..CopyStatus::default()
            }
        });
        (status.job, status.set) = (self.job.clone(), self.set.clone());
        (status.source, status.process) = (Some(self.source.clone()), Some(std::process::id()));
        let hangs = self.hangs();
        let progress = lock(&self.progress);
        status.since_start = Some(progress.total.clone());
        status.phase.clone_from(&progress.phase);
        let state = match (&hangs, progress.has_ended, &progress.phase) {
            (Some(_), _, _) => "hung",
            (None, true, _) => "ended",
            (None, false, Some(_)) => "running",
            (None, false, None) => "following",
        };
        state.clone_into(&mut status.state);
        if let Some(hangs) = hangs {
            status.attention.push(Attention::new(hangs, "restart the process"));
        }
        if let Some(error) = &progress.error
            && status.attention.is_empty()
        {
            let message = error.split_whitespace().collect::<Vec<_>>().join(" ");
            let help =
                "it is tried again by itself; `abreast doctor URL` tests the way to the Source";
            status.attention.push(Attention::new(message, help));
        }
        status
    }
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// The copies of a job, or of all jobs.
struct ObservedFollowers {
    all: Arc<Mutex<Vec<Arc<Follower>>>>,
    job: Jobs,
    metrics: Option<Arc<Metrics>>,
}

impl ObservedFollowers {
    fn each(&self) -> Vec<Arc<Follower>> {
        let all = lock(&self.all);
        let is_own = |one: &&Arc<Follower>| match &self.job {
            Jobs::All => true,
            Jobs::One(name) => one.job == *name,
        };
        all.iter().filter(is_own).cloned().collect()
    }

    /// A line for each copy, unready copies first; an error if any is not ready.
    fn told(&self, state: impl Fn(&Follower) -> Result<String, String>) -> Result<String, String> {
        let (mut good, mut bad) = (Vec::new(), Vec::new());
        for one in self.each() {
            match state(&one) {
                Ok(text) => good.push(format!("{} {text}", one.name())),
                Err(text) => bad.push(format!("{} {text}", one.name())),
            }
        }
        let (is_good, total) = (bad.is_empty(), bad.len() + good.len());
        bad.extend(good);
        bad.truncate(TOLD_MAX);
        if total > TOLD_MAX {
            bad.push(format!("and {} more", total - TOLD_MAX));
        }
        let text = bad.into_iter().fold(String::new(), |text, line| text + &line + "\n");
        match (is_good, total) {
            (_, 0) => Err("not ready\nno copy has begun yet\n".to_owned()),
            (true, _) => Ok(format!("ready\n{text}")),
            (false, _) => Err(format!("not ready\n{text}")),
        }
    }
}

impl Observed for ObservedFollowers {
    fn live(&self) -> Result<String, String> {
        let hung: Vec<String> = self
            .each()
            .iter()
            .filter_map(|one| Some(format!("{} {}\n", one.name(), one.hangs()?)))
            .take(TOLD_MAX)
            .collect();
        if hung.is_empty() { Ok("alive\n".to_owned()) } else { Err(hung.concat()) }
    }

    fn ready(&self) -> Result<String, String> {
        self.told(Follower::state)
    }

    fn metrics(&self) -> String {
        self.each().iter().for_each(|one| one.measure());
        self.metrics.as_ref().map_or_else(String::new, |metrics| metrics.render())
    }

    fn status(&self) -> String {
        let mut report = crate::admin::ask::new_report();
        report.copies = self.each().iter().map(|one| one.status()).collect();
        report_text(report)
    }
}

/// A report as JSON.
pub(crate) fn report_text(mut report: StatusReport) -> String {
    report.finish();
    serde_json::to_string(&report).unwrap_or_default()
}
