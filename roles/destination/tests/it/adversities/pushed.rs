//! The columns of pushed changes: a copy that follows its Source, and how changes are delivered to
//! it.

use super::history::{Change, History};
use super::rendering::Asked;
use super::{resourcesync, resourcesync_0_1};
use crate::copy::Reported;
use crate::push::{get, listening, request};
use abreast_destination::{Error, Event, Summary, SyncOptions, XmppOptions, follow};
use abreast_testkit::pages::{Answer, Server};
use abreast_testkit::xmpp::scripted::{Scripted, accept, event};
use abreast_testkit::xmpp::{DOMAIN, PASSWORD, SERVICE};
use abreast_websub::{
    CallbackRequest, Key, Method, Mode, Request, SIGNATURE_HEADER, Secret, verification_url,
};
use abreast_xmpp::Account;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most time for what surely comes, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);
/// So long nothing happens after the documents were read, if nothing more does.
const QUIET: Duration = Duration::from_millis(300);

/// How changes are pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    /// Notifications of 1.1, delivered by a hub.
    Hub,
    /// Notifications of 1.1 in an event stream.
    Events,
    /// Change sets of 0.1, published to a node of XMPP.
    Node,
    /// Change sets of 0.1, posted to a callback.
    Callback,
}

impl Push {
    /// The document of changes between two times.
    pub(crate) fn document(
        self,
        asked: &Asked<'_>,
        changes: &[Change],
        from: i64,
        until: i64,
    ) -> String {
        match self {
            Self::Hub | Self::Events => resourcesync::notification(asked, changes, from, until),
            Self::Node | Self::Callback => resourcesync_0_1::pushed(asked, changes, from, until),
        }
    }

    /// The documents of changes that were not pushed yet: one of all.
    pub(crate) fn of_unpushed(self, history: &History, base: &str) -> Option<String> {
        let until = history.unpushed.iter().map(|change| change.time).max()?;
        let asked = Asked { history, base, target: "" };
        let until = until.max(history.pushed_until);
        let text = self.document(&asked, &history.unpushed, history.pushed_until, until);
        Some(history.written(text))
    }
}

/// The reports of a copy that follows.
#[derive(Default)]
struct Seen {
    reported: Vec<Reported>,
    summaries: usize,
    last: Option<Summary>,
    /// Whether a run has started and not ended.
    is_busy: bool,
    /// An error was reported after the last end of a run: there was a run without an end.
    has_failed: bool,
    at: Option<Instant>,
    /// When a run ended last.
    ended: Option<Instant>,
}

/// What shows that nothing more follows from a delivery.
pub(crate) struct Settled<'w> {
    pub(crate) is_right: &'w dyn Fn() -> bool,
    /// When a document was requested last.
    pub(crate) requested: &'w dyn Fn() -> Option<Instant>,
}

/// A copy that follows until it is dropped.
pub(crate) struct Following {
    push: Push,
    server: Server,
    seen: Arc<Mutex<Seen>>,
    cancel: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Summary, Error>>>,
    service: Option<Scripted>,
    callback: String,
    secret: Vec<u8>,
    deliveries: usize,
}

/// Waits until something holds; whether it does.
fn wait_for(most: Duration, holds: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < most {
        if holds() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    holds()
}

impl Following {
    /// Starts to follow, and subscribes.
    pub(crate) fn start(push: Push, server: &Server, options: &SyncOptions) -> Self {
        let mut options = options.clone();
        // Missing changes are requested again after growing pauses, of which this is the longest.
        // Otherwise, the documents are read ten times less often.
        options.interval = Duration::from_secs(2);
        options.poll_pause = Duration::from_millis(20);
        let mut service = None;
        match push {
            Push::Hub | Push::Callback => listening(&mut options),
            Push::Events => {}
            Push::Node => {
                let started = Scripted::start(accept);
                let mut account = Account::new(&format!("reader@{DOMAIN}"), PASSWORD).unwrap();
                account.server = Some(started.address());
                options.xmpp = Some(XmppOptions { account, node: None });
                service = Some(started);
            }
        }
        for path in ["/hub", "/subscribe"] {
            server.put(path, Answer::status(202));
        }
        let before = server.posted().len();
        let seen = Arc::<Mutex<Seen>>::default();
        let cancel = Arc::new(AtomicBool::new(false));
        let (their_seen, their_cancel) = (Arc::clone(&seen), Arc::clone(&cancel));
        let thread = std::thread::spawn(move || {
            let observer = |event: &Event<'_>| {
                let mut seen = their_seen.lock().unwrap();
                seen.at = Some(Instant::now());
                match event {
                    Event::Error(problem) | Event::Notice(problem) => {
                        if matches!(event, Event::Error(_)) {
                            (seen.has_failed, seen.ended) = (true, seen.at);
                        }
                        seen.reported.push(Reported {
                            code: problem.code.to_owned(),
                            uri: problem.uri.to_owned(),
                            message: problem.message.to_owned(),
                        });
                    }
                    Event::Summary(summary) => {
                        seen.summaries += 1;
                        seen.last = Some((*summary).clone());
                        (seen.is_busy, seen.has_failed, seen.ended) = (false, false, seen.at);
                    }
                    _ => seen.is_busy = true,
                }
            };
            follow(&options, &observer, &their_cancel)
        });
        let (callback, secret) = (String::new(), Vec::new());
        let server = server.clone();
        let thread = Some(thread);
        let mut following =
            Self { push, server, seen, cancel, thread, service, callback, secret, deliveries: 0 };
        following.join(before);
        following
    }

    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn runs(&self) -> usize {
        self.seen.lock().unwrap().summaries
    }

    fn has_reported(&self, code: &str) -> bool {
        self.seen.lock().unwrap().reported.iter().any(|reported| reported.code == code)
    }

    /// The form of the last requested subscription, after the first `before` forms.
    fn form(&self, path: &str, before: usize) -> Option<String> {
        let mut posted = self.server.posted().into_iter().skip(before);
        posted.rfind(|(to, _)| to == path).map(|it| it.1)
    }

    /// Subscribes, and waits for the run that follows from it.
    fn join(&mut self, before: usize) {
        let is_asked =
            |path: &str| self.form(path, before).is_some() && self.runs() > 0 || self.has_ended();
        match self.push {
            Push::Hub => {
                wait_for(PATIENCE, || is_asked("/hub"));
                let Some(form) = self.form("/hub", before) else { return };
                let Ok(Request::Subscribe(asked)) = Request::parse(form.as_bytes()) else { return };
                self.secret = asked.secret.as_ref().unwrap().as_bytes().to_vec();
                self.callback.clone_from(&asked.callback);
                self.verify(&asked.topic);
            }
            Push::Callback => {
                wait_for(PATIENCE, || is_asked("/subscribe"));
                let Some(form) = self.form("/subscribe", before) else { return };
                let Ok(CallbackRequest::Subscribe { callback, secret, .. }) =
                    CallbackRequest::parse(form.as_bytes())
                else {
                    return;
                };
                self.callback = callback;
                self.secret = secret.map_or_else(Vec::new, Secret::into_bytes);
                self.verify("http://topics.example/of-the-source");
            }
            Push::Events => {
                wait_for(PATIENCE, || {
                    !self.server.streams().is_empty() && self.runs() > 1 || self.has_ended()
                });
            }
            Push::Node => {
                wait_for(PATIENCE, || {
                    self.has_reported("push.xmpp") && self.runs() > 1 || self.has_ended()
                });
            }
        }
        wait_for(PATIENCE, || !self.seen.lock().unwrap().is_busy || self.has_ended());
    }

    fn verify(&self, topic: &str) {
        let runs = self.runs();
        let url = verification_url(&self.callback, Mode::Subscribe, topic, "yes", Some(3_600));
        get(&url);
        wait_for(PATIENCE, || self.runs() > runs || self.has_ended());
    }

    /// Pushes a document, and waits until the copy is right, or has read the documents and is still
    /// not.
    pub(crate) fn deliver(&mut self, document: &str, settled: &Settled<'_>) {
        let begun = Instant::now();
        self.deliveries += 1;
        let runs = self.runs();
        match self.push {
            Push::Hub | Push::Callback => {
                let name =
                    if self.push == Push::Hub { "X-Hub-Signature" } else { SIGNATURE_HEADER };
                let key = Key::new(Method::Sha256, &self.secret);
                let signature = key.sign(document.as_bytes()).to_string();
                let headers = [("content-type", "application/xml"), (name, &*signature)];
                if !self.callback.is_empty() && !self.has_ended() {
                    request("POST", &self.callback, &headers, document.as_bytes());
                }
            }
            Push::Events => {
                let (mut out, id) = (Vec::new(), self.deliveries.to_string());
                let body = document.as_bytes();
                abreast_websub::write_event(&mut out, &id, "application/xml", body);
                self.server.send(&out);
            }
            Push::Node => {
                let payload = document.split_once("?>").map_or(document, |it| it.1);
                let id = self.deliveries.to_string();
                if let Some(service) = &self.service {
                    service.send(&event(SERVICE, "papers", &id, payload));
                }
            }
        }
        self.settle((begun, runs), settled);
    }

    fn settle(&self, (begun, runs): (Instant, usize), settled: &Settled<'_>) {
        wait_for(PATIENCE, || {
            let requested = (settled.requested)().filter(|at| *at > begun);
            let (is_idle, has_read) = {
                let seen = self.seen.lock().unwrap();
                let has_read = requested.is_some_and(|at| seen.ended.is_some_and(|end| end > at));
                let is_quiet = seen.at.is_none_or(|at| at.elapsed() > QUIET);
                (!seen.is_busy, has_read && is_quiet)
            };
            let has_run = self.runs() > runs;
            self.has_ended() || is_idle && (has_read || has_run && (settled.is_right)())
        });
    }

    /// The reports since the last call, and the exit code; `None` if no run ended.
    pub(crate) fn take(&mut self) -> (Vec<Reported>, Option<u8>) {
        let mut reported = std::mem::take(&mut self.seen.lock().unwrap().reported);
        if self.has_ended()
            && let Some(thread) = self.thread.take()
            && let Err(error) = thread.join().unwrap()
        {
            let (code, message) = (error.code().to_owned(), error.to_string());
            reported.push(Reported { code, uri: String::new(), message });
            return (reported, Some(error.exit_code().number()));
        }
        let last = self.seen.lock().unwrap().last.clone();
        let has_failed = self.seen.lock().unwrap().has_failed;
        let exit = if has_failed { Some(5) } else { last.as_ref().map(|last| last.exit_code) };
        (reported, exit)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.thread.is_none()
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        // Nobody answers to the end of a subscription, which is waited for otherwise.
        for path in ["/hub", "/subscribe"] {
            self.server.remove(path);
        }
        self.server.cut();
        self.cancel.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
