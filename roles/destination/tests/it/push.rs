//! A copy that follows is notified of changes, by hubs and by event streams, and no notification
//! makes it differ from its Source.

use abreast_destination::{CallbackOptions, Error, Event, Push, SyncOptions, follow};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::document;
use abreast_testkit::http::unused_address;
use abreast_testkit::pages::{Answer, Server};
use abreast_testkit::{Random, eventually, eventually_ok};
use abreast_websub::{Key, Method, Mode, Request, Subscribe, denied_url, verification_url};
use abreast_webtypes::Timestamp;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A change every so many microseconds, none at a whole second.
const STEP: i64 = 1_357;
/// 2026-01-01
const BEGIN: i64 = 1_767_225_600_000_001;

/// A Source whose changes are notified as a test likes.
struct Source {
    server: Server,
    kept: BTreeMap<String, String>,
    /// Each change: its time, and its entry in lists and notifications.
    changes: Vec<(i64, String)>,
}

impl Source {
    fn new(topic: &str) -> Self {
        let server = Server::start();
        let entries = [
            ("resourcelist.xml", "<rs:md capability=\"resourcelist\"/>"),
            ("changelist.xml", "<rs:md capability=\"changelist\"/>"),
            (
                "topic",
                &format!("{topic}<rs:md capability=\"change-notification\"/>")
                    .replace("BASE", &server.base),
            ),
        ];
        let entries: String = entries
            .iter()
            .map(|(path, rest)| format!("<url><loc>{}/{path}</loc>{rest}</url>\n", server.base))
            .collect();
        server.body("/caps.xml", document("urlset", "capability=\"capabilitylist\"", &entries));
        let list = format!("capability=\"resourcelist\" at=\"{}\"", time(BEGIN));
        server.body("/resourcelist.xml", document("urlset", &list, ""));
        let mut source = Self { server, kept: BTreeMap::new(), changes: Vec::new() };
        source.set("/d/first", "first");
        source.publish();
        source
    }

    fn with_hub() -> Self {
        let source = Self::new("<rs:ln rel=\"hub\" href=\"BASE/hub\"/>");
        source.server.put("/hub", Answer::status(202));
        source
    }

    fn with_events() -> Self {
        let source = Self::new("");
        source.server.put("/topic", Answer::events());
        source
    }

    fn add(&mut self, rest: &str) {
        let at = BEGIN + (self.changes.len() as i64 + 1) * STEP;
        let entry = format!("<url>{}</url>\n", rest.replace("NOW", &time(at)));
        self.changes.push((at, entry));
    }

    fn set(&mut self, path: &str, body: &str) {
        let change = if self.kept.insert(path.to_owned(), body.to_owned()).is_some() {
            "updated"
        } else {
            "created"
        };
        self.server.body(path, body);
        let (url, digest, length) = (self.server.url(path), md5_hex(body.as_bytes()), body.len());
        self.add(&format!(
            "<loc>{url}</loc><rs:md change=\"{change}\" datetime=\"NOW\" hash=\"md5:{digest}\" length=\"{length}\"/>"
        ));
    }

    fn delete(&mut self, path: &str) {
        if self.kept.remove(path).is_some() {
            self.server.remove(path);
            self.add(&format!(
                "<loc>{}</loc><rs:md change=\"deleted\" datetime=\"NOW\"/>",
                self.server.url(path)
            ));
        }
    }

    /// When everything before that change, by number, had happened.
    fn before(&self, number: usize) -> String {
        time(number.checked_sub(1).map_or(BEGIN, |number| self.changes[number].0))
    }

    /// The Change List, with the newest thousand.
    fn publish(&self) {
        let begin = self.changes.len().saturating_sub(1_000);
        let entries: String =
            self.changes[begin..].iter().map(|(_, entry)| entry.as_str()).collect();
        let head = format!("capability=\"changelist\" from=\"{}\"", self.before(begin));
        self.server.body("/changelist.xml", document("urlset", &head, &entries));
    }

    /// The notification of changes `from..until`, by number.
    fn notification(&self, from: usize, until: usize) -> String {
        let (begin, end) = (self.before(from), self.before(until));
        let head = format!("capability=\"change-notification\" from=\"{begin}\" until=\"{end}\"");
        let entries: String =
            self.changes[from..until].iter().map(|(_, entry)| entry.as_str()).collect();
        document("urlset", &head, &entries)
    }

    /// The notification of the last change.
    fn last(&self) -> String {
        self.notification(self.changes.len() - 1, self.changes.len())
    }

    fn forms(&self, path: &str) -> Vec<Request> {
        let posted = self.server.posted().into_iter().filter(|(to, _)| to == path);
        posted.map(|(_, form)| Request::parse(form.as_bytes()).unwrap()).collect()
    }

    /// The subscriptions asked for so far.
    fn subscriptions(&self, path: &str) -> Vec<Subscribe> {
        let is_subscription =
            |form| if let Request::Subscribe(asked) = form { Some(asked) } else { None };
        self.forms(path).into_iter().filter_map(is_subscription).collect()
    }

    /// Waits for a subscription to be asked for, by its number from 0.
    fn subscription(&self, path: &str, number: usize) -> Subscribe {
        eventually("a subscription is asked for", || self.subscriptions(path).len() > number);
        self.subscriptions(path).swap_remove(number)
    }
}

fn time(micros: i64) -> String {
    Timestamp::from_micros(micros).to_string()
}

fn event(id: usize, notification: &str) -> Vec<u8> {
    let mut out = Vec::new();
    abreast_websub::write_event(
        &mut out,
        &id.to_string(),
        "application/xml",
        notification.as_bytes(),
    );
    out
}

/// A copy that follows until it is dropped.
pub(crate) struct Follower {
    _place: tempfile::TempDir,
    pub(crate) folder: PathBuf,
    told: Arc<Mutex<Vec<String>>>,
    runs: Arc<Mutex<usize>>,
    /// Whether a run has started and not ended.
    busy: Arc<AtomicBool>,
    cancel: Arc<AtomicBool>,
    thread: Option<JoinHandle<Option<Error>>>,
}

impl Follower {
    /// Polls are so rare that only polls after notifications matter.
    fn start(source: &Source, change: impl FnOnce(&mut SyncOptions)) -> Self {
        Self::at(&source.server, "/caps.xml", change)
    }

    /// The same at an address of a server.
    pub(crate) fn at(server: &Server, path: &str, change: impl FnOnce(&mut SyncOptions)) -> Self {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("copy");
        let mut options = SyncOptions::new(server.url(path), &folder);
        options.net.backoff_base = Duration::from_millis(1);
        options.net.retries = 1;
        options.ignore_robots = true;
        options.base = Some(server.url("/"));
        options.interval = Duration::from_secs(600);
        options.poll_pause = Duration::from_millis(20);
        change(&mut options);
        let (told, runs) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<usize>>::default());
        let (cancel, busy) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let their_busy = Arc::clone(&busy);
        let (their_told, their_runs, their_cancel) =
            (Arc::clone(&told), Arc::clone(&runs), Arc::clone(&cancel));
        let thread = std::thread::spawn(move || {
            let observer = |event: &Event<'_>| match event {
                Event::Error(problem) | Event::Notice(problem) => {
                    their_told
                        .lock()
                        .unwrap()
                        .push(format!("{} {}", problem.code, problem.message));
                }
                Event::Summary(_) => {
                    *their_runs.lock().unwrap() += 1;
                    their_busy.store(false, Ordering::Relaxed);
                }
                _ => their_busy.store(true, Ordering::Relaxed),
            };
            follow(&options, &observer, &their_cancel).err()
        });
        Self { _place: place, folder, told, runs, busy, cancel, thread: Some(thread) }
    }

    fn with_callback(source: &Source) -> Self {
        Self::start(source, listening)
    }

    pub(crate) fn has_told(&self, code: &str) -> bool {
        self.count(code) > 0
    }

    /// How often it reported this.
    pub(crate) fn count(&self, code: &str) -> usize {
        self.told.lock().unwrap().iter().filter(|told| told.starts_with(code)).count()
    }

    pub(crate) fn runs(&self) -> usize {
        *self.runs.lock().unwrap()
    }

    /// Waits until the copy is as the Source, and the run that made it so has ended; one that
    /// failed says no end.
    fn follows(&self, source: &Source) {
        eventually_ok("the copy follows", || {
            if files(&self.folder) == wanted(source) {
                Ok(())
            } else {
                Err(format!("{:?}", self.told.lock().unwrap()))
            }
        });
        let begun = Instant::now();
        while self.busy.load(Ordering::Relaxed) && begun.elapsed() < Duration::from_secs(2) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until a subscription, by its number from 0, was confirmed and the lists were asked
    /// once after it.
    fn confirm(&self, source: &Source, number: usize, lease: u64) -> Subscribe {
        let asked = source.subscription("/hub", number);
        let runs = self.runs();
        let url = verification_url(
            &asked.callback,
            Mode::Subscribe,
            &asked.topic,
            "challenge",
            Some(lease),
        );
        assert_eq!(get(&url), (200, "challenge".to_owned()));
        if number == 0 {
            eventually("the lists are asked once more", || self.runs() > runs);
        }
        asked
    }

    pub(crate) fn stop(mut self) -> Option<Error> {
        self.cancel.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// With the least pause between polls that is the default.
pub(crate) fn at_usual_pace(options: &mut SyncOptions) {
    options.poll_pause = SyncOptions::new("", "").poll_pause;
}

/// With a callback on this machine.
pub(crate) fn listening(options: &mut SyncOptions) {
    let listen = unused_address().to_string();
    options.callback = Some(CallbackOptions { url: format!("http://{listen}/in"), listen });
}

pub(crate) fn files(folder: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder.join("d")).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if !name.starts_with('.')
            && let Ok(text) = std::fs::read_to_string(entry.path())
        {
            found.insert(format!("/d/{name}"), text);
        }
    }
    found
}

fn wanted(source: &Source) -> BTreeMap<String, String> {
    source.kept.clone()
}

/// A request on a separate connection.
pub(crate) fn request(
    method: &str,
    url: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> (u16, String) {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let mut head = format!(
        "{method} /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).unwrap();
    // Refused before it was read: the answer counts.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    (head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0), body.to_owned())
}

pub(crate) fn get(url: &str) -> (u16, String) {
    request("GET", url, &[], b"")
}

/// Delivers, signed with a secret.
fn deliver(asked: &Subscribe, secret: &[u8], body: &str) -> u16 {
    let signature = Key::new(Method::Sha256, secret).sign(body.as_bytes()).to_string();
    let headers = [("content-type", "application/xml"), ("X-Hub-Signature", signature.as_str())];
    request("POST", &asked.callback, &headers, body.as_bytes()).0
}

fn secret(asked: &Subscribe) -> &[u8] {
    asked.secret.as_ref().unwrap().as_bytes()
}

#[test]
fn a_hub_that_verifies_later_notifies_and_no_list_is_read() {
    let mut source = Source::with_hub();
    let copy = Follower::with_callback(&source);
    let asked = copy.confirm(&source, 0, 3_600);
    assert_eq!(asked.topic, source.server.url("/topic"));
    copy.follows(&source);
    source.server.take_log();
    for number in 0..3 {
        source.set("/d/told", &format!("told {number}"));
        source.set("/d/gone", "soon");
        source.delete("/d/gone");
        let from = source.changes.len() - 3;
        assert_eq!(
            deliver(&asked, secret(&asked), &source.notification(from, source.changes.len())),
            202
        );
        copy.follows(&source);
    }
    let log = source.server.take_log();
    assert!(!log.contains(&"/changelist.xml".to_owned()), "{log:?}");
    // Stopping ends the subscription.
    assert!(copy.stop().is_none());
    assert!(
        matches!(source.forms("/hub").last(), Some(Request::Unsubscribe(end)) if end.callback == asked.callback)
    );
}

#[test]
fn deliveries_that_are_not_signed_as_agreed_are_ignored() {
    let mut source = Source::with_hub();
    let copy = Follower::with_callback(&source);
    let asked = copy.confirm(&source, 0, 3_600);
    copy.follows(&source);
    let before = wanted(&source);
    source.delete("/d/first");
    let (runs, forged) = (copy.runs(), source.last());
    assert_eq!(deliver(&asked, b"another", &forged), 202);
    assert_eq!(request("POST", &asked.callback, &[], forged.as_bytes()).0, 202);
    let md5 = [("X-Hub-Signature", "md5=0123456789abcdef0123456789abcdef")];
    assert_eq!(request("POST", &asked.callback, &md5, forged.as_bytes()).0, 202);
    eventually("it is told", || copy.has_told("push.signature"));
    assert_eq!((copy.runs(), files(&copy.folder)), (runs, before));
    // Any method will do, in any letter case.
    for method in Method::ALL {
        source.set("/d/signed", method.name());
        let body = source.notification(
            if method == Method::Sha1 { 1 } else { source.changes.len() - 1 },
            source.changes.len(),
        );
        let signature = Key::new(method, secret(&asked)).sign(body.as_bytes()).to_string();
        let (name, hex) = signature.split_once('=').unwrap();
        let signature = format!("{name}={}", hex.to_uppercase());
        assert_eq!(
            request("POST", &asked.callback, &[("X-Hub-Signature", &signature)], body.as_bytes()).0,
            202
        );
        copy.follows(&source);
    }
}

#[test]
fn only_requested_subscriptions_are_confirmed() {
    let source = Source::with_hub();
    let copy = Follower::with_callback(&source);
    let asked = source.subscription("/hub", 0);
    let url = |mode, topic: &str, challenge| {
        verification_url(&asked.callback, mode, topic, challenge, Some(3_600))
    };
    let not_asked = [
        url(Mode::Subscribe, "http://example.org/another", "a"),
        url(Mode::Unsubscribe, &asked.topic, "a"),
        url(Mode::Subscribe, &asked.topic, "a").replace("/in/", "/in/0"),
        asked.callback.clone(),
        format!("{}?hub.mode=publish&hub.topic=a&hub.challenge=b", asked.callback),
        denied_url(&asked.callback, "http://example.org/another", None),
    ];
    for url in &not_asked {
        assert_eq!(get(url).0, 404, "{url}");
    }
    assert_eq!(get(&url(Mode::Subscribe, &asked.topic, "first")), (200, "first".to_owned()));
    // Who did not get the answer asks the same again; anything else was not asked for.
    assert_eq!(get(&url(Mode::Subscribe, &asked.topic, "first")).0, 200);
    assert_eq!(get(&url(Mode::Subscribe, &asked.topic, "second")).0, 404);
    assert_eq!(get(&url(Mode::Unsubscribe, &asked.topic, "third")).0, 404);
    assert_eq!(
        deliver(
            &Subscribe { callback: asked.callback.replace("/in/", "/in/0"), ..asked.clone() },
            b"a",
            "a"
        ),
        410
    );
    assert_eq!(request("PUT", &asked.callback, &[], b"").0, 405);
    let large = vec![b' '; (8 << 20) + 1];
    assert_eq!(request("POST", &asked.callback, &[], &large).0, 413);
    drop(copy);
}

#[test]
fn a_refused_subscription_is_requested_again_later() {
    let mut source = Source::with_hub();
    let copy = Follower::with_callback(&source);
    let first = source.subscription("/hub", 0);
    assert_eq!(get(&denied_url(&first.callback, &first.topic, Some("not now"))).0, 200);
    eventually("it is told", || copy.has_told("push.broken the hub"));
    assert_eq!(deliver(&first, secret(&first), "<a/>"), 410);
    let second = copy.confirm(&source, 1, 3_600);
    assert!(second.callback != first.callback && second.secret != first.secret);
    // Also one that was granted.
    assert_eq!(get(&denied_url(&second.callback, &second.topic, None)).0, 200);
    let third = copy.confirm(&source, 2, 3_600);
    source.set("/d/told", "told");
    copy.follows_by(&source, &third);
}

impl Follower {
    /// Waits until the copy is as the Source, telling the last change again and again: nothing says
    /// when the lists were asked after a renewal.
    fn follows_by(&self, source: &Source, asked: &Subscribe) {
        eventually("the copy follows", || {
            assert_eq!(deliver(asked, secret(asked), &source.last()), 202);
            files(&self.folder) == wanted(source)
        });
    }
}

#[test]
fn a_short_lease_is_renewed_before_it_ends() {
    let mut source = Source::with_hub();
    let copy = Follower::with_callback(&source);
    source.subscription("/hub", 0);
    // The lease starts at its confirmation, which is before the lists are requested again.
    let begun = Instant::now();
    let first = copy.confirm(&source, 0, 2);
    let second = source.subscription("/hub", 1);
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    assert_eq!(second.topic, first.topic);
    assert!(second.callback != first.callback && second.secret != first.secret);
    // The old one goes on until the new one is confirmed; or, if that took too long here, a third
    // is asked for.
    let newest = loop {
        let number = source.subscriptions("/hub").len() - 1;
        let asked = source.subscription("/hub", number);
        let url = verification_url(
            &asked.callback,
            Mode::Subscribe,
            &asked.topic,
            "challenge",
            Some(3_600),
        );
        if get(&url).0 == 200 {
            break asked;
        }
    };
    source.set("/d/told", "told");
    copy.follows_by(&source, &newest);
}

#[test]
fn a_hub_that_has_moved_is_followed() {
    for status in [307, 308] {
        let mut source = Source::with_hub();
        source.server.put("/hub", Answer::status(status).header("location", "/elsewhere/hub?a=b"));
        source.server.put("/elsewhere/hub?a=b", Answer::status(202));
        let copy = Follower::with_callback(&source);
        let asked = source.subscription("/elsewhere/hub?a=b", 0);
        let url =
            verification_url(&asked.callback, Mode::Subscribe, &asked.topic, "challenge", None);
        assert_eq!(get(&url).0, 200);
        source.set("/d/told", "told");
        copy.follows_by(&source, &asked);
        assert!(copy.stop().is_none());
        let forms = source.forms("/elsewhere/hub?a=b");
        assert!(matches!(forms.last(), Some(Request::Unsubscribe(_))), "{forms:?}");
    }
    // Not in circles.
    let source = Source::with_hub();
    source.server.put("/hub", Answer::status(307).header("location", "/hub"));
    let copy = Follower::with_callback(&source);
    eventually("it is given up", || copy.has_told("push.broken more than 3 redirects"));
}

#[test]
fn the_second_hub_is_asked_when_the_first_fails() {
    let mut source = Source::new(
        "<rs:ln rel=\"hub\" href=\"BASE/down\"/><rs:ln rel=\"hub\" href=\"BASE/hub\"/>",
    );
    source.server.put("/down", Answer::status(503));
    source.server.put("/hub", Answer::status(202));
    let copy = Follower::with_callback(&source);
    let asked = copy.confirm(&source, 0, 3_600);
    assert!(copy.has_told("push.broken the hub"));
    source.set("/d/told", "told");
    copy.follows_by(&source, &asked);
}

#[test]
fn a_topic_that_has_moved_names_its_hub_itself() {
    let mut source = Source::new("");
    let links =
        format!("<{0}/hub>; rel=\"hub\", <{0}/moved?self=yes>; rel=\"self\"", source.server.base);
    source.server.put("/topic", Answer::status(302).header("location", "/moved"));
    source.server.put("/moved", Answer::ok("").header("link", &links));
    source.server.put("/hub", Answer::status(202));
    let copy = Follower::with_callback(&source);
    let asked = copy.confirm(&source, 0, 3_600);
    assert_eq!(asked.topic, source.server.url("/moved?self=yes"));
    source.set("/d/told", "told");
    copy.follows_by(&source, &asked);
}

#[test]
fn an_event_stream_notifies_and_resumes_where_it_was_cut() {
    let mut source = Source::with_events();
    let copy = Follower::start(&source, |_| {});
    copy.streams(&source, &[""], 2);
    source.server.take_log();
    source.set("/d/told", "told");
    source.server.send(&event(7, &source.last()));
    copy.follows(&source);
    // Anything odd, and anything that comes too late, makes the lists be asked; they are right.
    for number in 0..4 {
        let log = source.server.take_log();
        assert!(number > 0 || !log.contains(&"/changelist.xml".to_owned()), "{log:?}");
        source.set("/d/lost", &format!("nobody tells {number}"));
        source.set("/d/told", &format!("told {number}"));
        source.publish();
        let told = match number {
            0 => source.last(),
            1 => source.last().replace("</urlset>", ""),
            2 => source.last().replace("change-notification", "framework-notification"),
            _ => source.last().replace(" from=", " at="),
        };
        source.server.send(&event(8 + number, &told));
        copy.follows(&source);
        assert!(source.server.take_log().contains(&"/changelist.xml".to_owned()));
    }
    let runs = copy.runs();
    source.server.cut();
    copy.streams(&source, &["11"], runs + 1);
    source.set("/d/told", "after");
    source.server.send(&event(12, &source.last()));
    copy.follows(&source);
    // A comment is ignored, and an incomplete event is not waited for.
    let runs = copy.runs();
    source.server.send(b": still here\n\n");
    source.server.send(b"data: <urlset");
    source.server.cut();
    copy.streams(&source, &["12"], runs + 1);
}

#[test]
fn events_without_content_cause_one_poll_a_second() {
    let mut source = Source::with_events();
    let copy = Follower::start(&source, at_usual_pace);
    copy.streams(&source, &[""], 2);
    source.server.take_log();
    let begun = Instant::now();
    let mut number = 0;
    let looks = |source: &Source| {
        source.server.take_log().iter().filter(|path| *path == "/changelist.xml").count()
    };
    while begun.elapsed() < Duration::from_secs(4) {
        number += 1;
        let body = match number % 4 {
            0 => String::new(),
            1 => "<urlset/>".to_owned(),
            2 => "changed".to_owned(),
            _ => source.last().replace(" from=", " at="),
        };
        source.server.send(&event(number, &body));
        std::thread::sleep(Duration::from_millis(2));
    }
    let most = begun.elapsed().as_secs() as usize + 2;
    let looked = looks(&source);
    assert!((1..=most).contains(&looked), "{looked} looks for {number} events, at most {most}");
    // What fits is applied without a look, and without waiting for the next one; what does not is
    // found by the next one.
    source.set("/d/told", "told");
    source.publish();
    source.server.send(&event(number + 1, &source.last()));
    copy.follows(&source);
    source.set("/d/lost", "not told");
    source.publish();
    source.server.send(&event(number + 2, ""));
    copy.follows(&source);
}

impl Follower {
    /// Waits until streams are open after these events, and that many runs came to an end.
    fn streams(&self, source: &Source, after: &[&str], runs: usize) {
        eventually("the stream is asked for", || source.server.streams() == after);
        eventually(&format!("the lists are asked: {:?}", self.told), || self.runs() >= runs);
    }
}

#[test]
fn lists_that_come_later_than_notifications_undo_nothing() {
    let mut source = Source::with_events();
    let copy = Follower::start(&source, |_| {});
    copy.streams(&source, &[""], 2);
    let old = source.server.page("/changelist.xml");
    source.set("/d/told", "told");
    source.server.send(&event(1, &source.last()));
    copy.follows(&source);
    // As from a cache: another response, which lacks the change.
    source.server.put("/changelist.xml", Answer::ok(old).header("etag", "\"cached\""));
    source.server.take_log();
    let mut log = Vec::new();
    // The run that asks for the second time shows that the first one ended.
    for number in 1..=2 {
        source.server.send(&event(number + 1, "odd"));
        eventually("the lists are asked", || {
            log.extend(source.server.take_log());
            log.iter().filter(|path| *path == "/changelist.xml").count() >= number
        });
    }
    assert!(!log.contains(&"/resourcelist.xml".to_owned()), "{log:?}");
    assert_eq!((files(&copy.folder), copy.has_told("gap")), (wanted(&source), false));
    source.set("/d/more", "more");
    source.publish();
    source.server.send(&event(4, "odd"));
    copy.follows(&source);
}

#[test]
fn a_hub_that_cannot_call_back_is_named_as_the_reason_to_poll() {
    let source = Source::with_hub();
    source.server.body("/topic", "");
    let copy = Follower::start(&source, |options| options.interval = Duration::from_millis(50));
    eventually("it is told", || copy.has_told("push.none"));
    assert!(copy.told.lock().unwrap().iter().any(|told| told.contains("--callback-listen")));
}

#[test]
fn a_source_without_notifications_is_polled() {
    let mut source = Source::new("");
    source.server.body("/topic", "");
    let copy = Follower::start(&source, |options| options.interval = Duration::from_millis(50));
    eventually("it is told", || copy.has_told("push.none"));
    source.set("/d/polled", "polled");
    source.publish();
    copy.follows(&source);
    // Who wants none asks for none.
    source.server.take_log();
    let quiet = Follower::start(&source, |options| {
        (options.push, options.interval) = (Push::Off, Duration::from_millis(50));
    });
    quiet.follows(&source);
    eventually("it polls", || quiet.runs() > 2);
    assert!(!quiet.has_told("push"));
    // A callback without an address is refused before anything is asked.
    let wrong = Follower::start(&source, |options| options.push = Push::Callback);
    eventually("it ends", || wrong.thread.as_ref().unwrap().is_finished());
    assert_eq!(wrong.stop().unwrap().code(), "callback.url");
}

#[test]
fn notifications_in_any_order_and_number_give_the_same_copy() {
    const CHANGES: usize = 10_000;
    const TOGETHER: usize = 20;
    let mut random = Random::new(0x2545_f491_4f6c_dd1d);
    let mut source = Source::with_events();
    let copy = Follower::start(&source, |options| {
        options.dumps = abreast_destination::Dumps::Never;
        options.max_delete = abreast_destination::MaxDelete::Percent(100.0);
    });
    copy.streams(&source, &[""], 2);
    let (mut told, mut id, mut whole) = (Vec::new(), 0, 0);
    while source.changes.len() < CHANGES {
        let (mut window, mut last_lost) = (Vec::new(), false);
        for _ in 0..10 {
            let from = source.changes.len();
            while source.changes.len() < from + TOGETHER {
                let path = format!("/d/{}", random.below(60));
                match random.below(3) {
                    0 => source.delete(&path),
                    _ => source
                        .set(&path, &format!("{} {}", source.changes.len(), random.below(1_000))),
                }
            }
            let notification = source.notification(from, source.changes.len());
            told.push(notification.clone());
            // In every second window, two of five notifications are lost; all others arrive three
            // times, among old ones.
            last_lost = told.len() / 10 % 2 == 0 && random.below(5) < 2;
            if !last_lost {
                window.extend([notification.clone(), notification.clone(), notification]);
            }
            window.push(random.of(&told).clone());
        }
        source.publish();
        for at in (1..window.len()).rev() {
            window.swap(at, random.index(at + 1));
        }
        let runs = copy.runs();
        source.server.take_log();
        // All at once.
        let mut all = Vec::new();
        for notification in window {
            id += 1;
            all.extend(event(id, &notification));
        }
        source.server.send(&all);
        if last_lost {
            eventually("something is done about it", || copy.runs() > runs);
        } else {
            copy.follows(&source);
            whole += usize::from(!source.server.take_log().contains(&"/changelist.xml".to_owned()));
        }
    }
    eprintln!("{whole} of {} windows without a list", CHANGES / TOGETHER / 10);
    // The last one is not lost.
    source.set("/d/last", "last");
    source.publish();
    source.server.send(&event(id + 1, &source.last()));
    copy.follows(&source);
    // All notifications again, in random order: no deleted resource returns.
    for at in (1..told.len()).rev() {
        told.swap(at, random.index(at + 1));
    }
    for (number, notification) in told.iter().enumerate() {
        source.server.send(&event(id + 2 + number, notification));
    }
    source.set("/d/last", "the very last");
    source.publish();
    source.server.send(&event(id + 2 + told.len(), &source.last()));
    copy.follows(&source);
    eventually("the copy rests", || {
        let runs = copy.runs();
        std::thread::sleep(Duration::from_millis(300));
        copy.runs() == runs
    });
    assert_eq!(files(&copy.folder), wanted(&source));
}
