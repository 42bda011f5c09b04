//! A Source under adversity and its copy: runs, and the rules for each run.

use super::Column;
use super::history::{History, Versions};
use super::outcome::Outcome;
use super::pushed::{Following, Push, Settled};
use super::rendering::{kept, prepare};
use super::served::{Fault, Published, serve};
use super::table::EMM_ON;
use crate::copy::{Copy, Ran, Reported};
use abreast_destination::{AuditOptions, audit, sync};
use abreast_testkit::pages::Server;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Duration after which a run is stopped, and has failed.
const TIME_MAX: Duration = Duration::from_secs(60);
/// Maximum number of requests of a run, unless a row sets another number.
const REQUESTS_MAX: usize = 80;

/// The outcome of a row, or of a step; the text describes the error.
pub(crate) type Checked = Result<(), String>;

pub(crate) struct World {
    pub(crate) column: &'static Column,
    pub(crate) history: History,
    pub(crate) copy: Copy,
    server: Server,
    /// At other addresses.
    others: Vec<Server>,
    published: Arc<Mutex<Published>>,
    following: Option<Following>,
    /// The last content of the copy.
    had: Versions,
    /// The content of the copy at the last audit.
    seen: Option<Versions>,
    /// Entities that were removed from the copy.
    removed: BTreeSet<usize>,
    runs: usize,
    pub(crate) requests_max: usize,
    /// The Source went back: the copy may do so.
    pub(crate) may_go_back: bool,
    /// The documents of the last publication stay, as in a cache.
    pub(crate) are_documents_kept: bool,
    /// Documents do not show all that the Source has, so an audit may end, or find differences.
    pub(crate) is_audit_blind: bool,
    /// Whether documents show an earlier version as the present one, without evidence of the
    /// difference.
    pub(crate) are_documents_wrong: bool,
    /// Runs that are still audited.
    audits_left: usize,
    /// The errors of the audits so far.
    pub(crate) audited: Checked,
}

impl World {
    pub(crate) fn new(column: &'static Column) -> Self {
        let history = History::new();
        let published = Arc::new(Mutex::new(Published {
            documents: history.clone(),
            versions: history.clone(),
            faults: BTreeMap::new(),
            before: None,
            requested: None,
            left: REQUESTS_MAX,
            cancel: Arc::default(),
        }));
        let server = serve(column, &published);
        let place = abreast_testkit::folder::in_memory();
        let mut copy = Copy::at(place, server.url("/start"));
        prepare(column.rendered.form(), &server.base, &mut copy.options);
        (copy.options.connections, copy.options.threads) = (2, Some(1));
        Self {
            column,
            history,
            copy,
            server,
            others: Vec::new(),
            published,
            following: None,
            had: Versions::new(),
            seen: None,
            removed: BTreeSet::new(),
            runs: 0,
            requests_max: REQUESTS_MAX,
            may_go_back: false,
            are_documents_kept: false,
            is_audit_blind: false,
            are_documents_wrong: false,
            audits_left: 2,
            audited: Ok(()),
        }
    }

    pub(crate) fn push(&self) -> Option<Push> {
        self.column.push
    }

    /// Makes a path respond with a fault, the given number of times or always.
    pub(crate) fn fault(&self, path: &str, fault: Fault, times: Option<usize>) {
        self.published.lock().unwrap().faults.insert(path.to_owned(), (fault, times));
    }

    /// Lets all paths answer as they should.
    pub(crate) fn repair(&self) {
        self.published.lock().unwrap().faults.clear();
    }

    /// The path of a page of changes.
    pub(crate) fn page_path(&self, number: i64) -> String {
        let newest = self.column.rendered.newest();
        match newest.filter(|_| number == self.history.newest().number && !self.history.is_loose) {
            Some(path) => path.to_owned(),
            None => format!("/p/{number}"),
        }
    }

    /// The next transfer of a document, as it was before, ends in the middle.
    pub(crate) fn abort(&self, path: &str, before: History) {
        self.fault(path, Fault::Cut, Some(1));
        self.published.lock().unwrap().before = Some((path.to_owned(), before));
    }

    /// Serves older documents, as a cache would.
    pub(crate) fn serve_old(&mut self, old: History) {
        self.are_documents_kept = true;
        self.published.lock().unwrap().documents = old;
    }

    /// Serves the history.
    fn publish(&self) {
        let mut published = self.published.lock().unwrap();
        if !self.are_documents_kept {
            published.documents = self.history.clone();
        }
        published.versions = self.history.clone();
    }

    fn kept(&self) -> Result<Versions, String> {
        kept(self.column.rendered.form(), &self.copy.options.folder)
    }

    /// The Source has another address from now on. Returns the one from before.
    pub(crate) fn go_to(&mut self, url: Option<String>) -> String {
        let url = url.unwrap_or_else(|| {
            let server = serve(self.column, &self.published);
            let url = server.url("/start");
            self.others.push(server);
            url
        });
        std::mem::replace(&mut self.copy.options.url, url)
    }

    /// Stops following, so that the folder and its state can be changed.
    pub(crate) fn stop(&mut self) {
        self.following = None;
    }

    /// The copy was changed from outside: its previous content does not count.
    pub(crate) fn forget(&mut self) {
        self.had.clear();
        self.removed.clear();
    }

    /// Publishes the history, and brings the copy up to date.
    pub(crate) fn run(&mut self) -> Result<Outcome, String> {
        self.publish();
        self.runs += 1;
        self.server.take_log();
        let (reported, exit) = match self.push() {
            Some(push) => self.follow(push)?,
            None => self.sync()?,
        };
        let is_watched = std::env::var_os("ABREAST_TEST_CELL").is_some();
        let outcome = Outcome {
            run: self.runs,
            exit,
            reported,
            kept: self.kept()?,
            truth: self.history.versions.clone(),
            requests: self.server.take_log(),
        };
        if is_watched {
            eprintln!("{}: {}", self.column.name, outcome.describe());
            outcome.reported.iter().for_each(|it| eprintln!("  {}: {}", it.code, it.message));
            outcome.requests.iter().for_each(|request| eprintln!("  {request}"));
        }
        self.check(&outcome)?;
        self.had.clone_from(&outcome.kept);
        // After a run that changed nothing, an audit would find the same.
        let is_new = self.seen.as_ref() != Some(&outcome.kept);
        if self.push().is_none() && is_new && self.audits_left > 0 {
            self.audits_left -= 1;
            self.audit(&outcome);
        }
        self.seen = Some(outcome.kept.clone());
        Ok(outcome)
    }

    /// Carries out a run or an audit; stops it when it takes too long, or sends too many requests.
    fn limited<T>(&self, what: &str, work: impl FnOnce(&AtomicBool) -> T) -> Result<T, String> {
        let cancel = {
            let mut published = self.published.lock().unwrap();
            published.left = self.requests_max;
            published.cancel.store(false, Ordering::Relaxed);
            Arc::clone(&published.cancel)
        };
        let (done, ended) = channel::<()>();
        let watched = Arc::clone(&cancel);
        let watch = std::thread::spawn(move || {
            if ended.recv_timeout(TIME_MAX) == Err(RecvTimeoutError::Timeout) {
                watched.store(true, Ordering::Relaxed);
            }
        });
        let result = work(&cancel);
        drop(done);
        watch.join().unwrap();
        if cancel.load(Ordering::Relaxed) {
            let requests = self.server.take_log().len();
            return Err(format!("{what} {} does not end, after {requests} requests", self.runs));
        }
        Ok(result)
    }

    fn sync(&mut self) -> Result<(Vec<Reported>, u8), String> {
        let options = self.copy.options.clone();
        let mut ran =
            self.limited("run", |cancel| Ran::of(|observer| sync(&options, observer, cancel)))?;
        if let Err(error) = &ran.result {
            let (code, message) = (error.code().to_owned(), error.to_string());
            ran.reported.push(Reported { code, uri: options.url, message });
        }
        let exit = ran.exit();
        Ok((ran.reported, exit))
    }

    fn follow(&mut self, push: Push) -> Result<(Vec<Reported>, u8), String> {
        let document = push.of_unpushed(&self.history, &self.server.base);
        let was_started = self.following.as_ref().is_some_and(|it| !it.is_over());
        if !was_started {
            self.following = None;
            self.following = Some(Following::start(push, &self.server, &self.copy.options));
        }
        let (form, folder) = (self.column.rendered.form(), self.copy.options.folder.clone());
        let truth = self.history.versions.clone();
        let is_right = || kept(form, &folder).is_ok_and(|kept| kept == truth);
        let published = Arc::clone(&self.published);
        let requested = || published.lock().unwrap().requested;
        let settled = Settled { is_right: &is_right, requested: &requested };
        let following = self.following.as_mut().unwrap();
        match document {
            Some(document) if was_started => following.deliver(&document, &settled),
            // A document that cannot be used is a reason to poll.
            None if was_started => following.deliver("<urlset/>", &settled),
            _ => {}
        }
        self.history.pushed_until = self
            .history
            .unpushed
            .iter()
            .map(|it| it.time)
            .fold(self.history.pushed_until, i64::max);
        self.history.unpushed.clear();
        let (reported, exit) = following.take();
        let exit = exit.ok_or_else(|| format!("run {} has no end: {reported:?}", self.runs))?;
        Ok((reported, exit))
    }

    /// The rules of every run.
    fn check(&mut self, outcome: &Outcome) -> Checked {
        let (kept, truth) = (&outcome.kept, &outcome.truth);
        let wrong = |what: &str| Err(format!("{what}: {}", outcome.describe()));
        if self.are_documents_wrong {
            return Ok(());
        }
        for (entity, version) in &self.had {
            match kept.get(entity) {
                Some(now) if now < version && !self.may_go_back => {
                    return wrong(&format!("entity {entity} went back from {version} to {now}"));
                }
                None if truth.contains_key(entity) => {
                    return wrong(&format!("entity {entity} was deleted"));
                }
                None => _ = self.removed.insert(*entity),
                Some(_) => {}
            }
        }
        for entity in &self.removed {
            if kept.contains_key(entity) && !truth.contains_key(entity) {
                return wrong(&format!("entity {entity} came back"));
            }
        }
        if outcome.exit == 0 && kept != truth {
            return wrong("it is \"in sync\" and differs");
        }
        if outcome.exit != 0 && outcome.reported.is_empty() {
            return wrong("nothing names what is missing");
        }
        if outcome.requests.len() > self.requests_max {
            return wrong(&format!("{} requests", outcome.requests.len()));
        }
        Ok(())
    }

    /// An audit says that the copy is equal if it is, and otherwise not.
    fn check_audit(&self, outcome: &Outcome) -> Checked {
        let options = AuditOptions { sync: self.copy.options.clone(), full: true };
        let ran = self.limited("the audit after run", |cancel| {
            Ran::of(|observer| audit(&options, observer, cancel))
        })?;
        let requests = self.server.take_log().len();
        let is_right = outcome.is_equal();
        let has_faults = self.is_audit_blind || !self.published.lock().unwrap().faults.is_empty();
        match &ran.result {
            _ if self.are_documents_wrong => Ok(()),
            Ok(report) if report.exit_code == 0 && !is_right => {
                Err(format!("the audit finds no difference: {}", outcome.describe()))
            }
            // The audit may report the problems of the run, without a difference.
            Ok(report)
                if report.exit_code != 0
                    && is_right
                    && !self.is_audit_blind
                    && (outcome.exit == 0 || !ran.items.is_empty()) =>
            {
                let items: Vec<_> = ran.items.iter().map(|it| (it.action, &it.path)).collect();
                Err(format!("the audit of a right copy finds {items:?}: {}", outcome.describe()))
            }
            Err(error) if is_right && outcome.exit == 0 && !has_faults => {
                let code = error.code();
                Err(format!("the audit of a right copy ends with {code}: {}", outcome.describe()))
            }
            _ if requests > self.requests_max => Err(format!("an audit has {requests} requests")),
            _ => Ok(()),
        }
    }

    /// One more audit of a copy.
    pub(crate) fn audit(&mut self, outcome: &Outcome) {
        if self.audited.is_ok() {
            self.audited = self.check_audit(outcome);
        }
    }

    /// One more run of a copy that is right changes nothing and costs little.
    pub(crate) fn rest(&mut self) -> Checked {
        // If pages do not link back, the whole feed is read.
        let documents = if self.column.name == EMM_ON { 24 } else { 8 };
        self.run()?.right()?.costs(0, documents).map(drop)
    }

    /// Hidden documents are shown again. If an older list of all resources was used meanwhile, the
    /// next list shows the missed changes.
    pub(crate) fn heal(&mut self) -> Checked {
        if self.column.rendered.snapshot().is_some() {
            self.run()?;
            self.history.make_snapshot();
        }
        self.run()?.right().map(drop)
    }

    /// A first run of a Source with some entities, which have changed in several pages.
    pub(crate) fn begin(&mut self, entities: usize) -> Result<Outcome, String> {
        self.history.create(0..entities);
        self.seen = Some(self.history.versions.clone());
        self.run()?.right()
    }

    /// The same; then there is a new list of all.
    pub(crate) fn begin_listed(&mut self, entities: usize) -> Checked {
        self.begin(entities)?;
        self.history.make_snapshot();
        Ok(())
    }

    /// The same; then there are changes, which the copy has. Returns the history without them.
    pub(crate) fn begin_changed(&mut self) -> Result<History, String> {
        self.begin_listed(5)?;
        let before = self.history.clone();
        self.history.change();
        self.run()?.right()?;
        Ok(before)
    }

    /// A run that compares the copy with the list of all.
    pub(crate) fn compare(&mut self) -> Result<Outcome, String> {
        // A copy that follows has this option from its start.
        self.stop();
        self.copy.options.baseline = true;
        let compared = self.run();
        self.copy.options.baseline = false;
        self.stop();
        compared
    }
}
