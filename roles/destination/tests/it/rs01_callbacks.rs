//! Sources of ResourceSync 0.1 that call back: a signed change set that continues is applied, and
//! everything else that comes to a callback is a reason to poll at most.

use crate::push::{Follower, at_usual_pace, files, get, listening, request};
use crate::rs01::from_now;
use crate::rs01_source::{OldSource, document, fixity};
use abreast_destination::Push;
use abreast_testkit::eventually;
use abreast_testkit::pages::Answer;
use abreast_websub::{
    CallbackRequest, Key, Method, Mode, SIGNATURE_HEADER, Secret, denied_url, verification_url,
};
use std::time::{Duration, Instant};

/// The protocol of Sources that verify; every other one is taken as in the specification.
const VERIFIED: &str = "urn:abreast:resourcesync-0.1:callback";
const PLAIN: &str = "http://source.example/protocol/callback";

fn calling(protocol: &str) -> OldSource {
    let mut source = OldSource::new();
    source.links = format!("<xhtml:link href=\"/subscribe\" rs:protocol=\"{protocol}\"/>\n");
    source.server.put("/subscribe", Answer::status(202));
    source.set("/d/first", "first");
    source.snapshot();
    source
}

/// The posted subscription forms, in order.
fn forms(source: &OldSource) -> Vec<String> {
    let posted = source.server.posted().into_iter();
    posted.filter(|(path, _)| path == "/subscribe").map(|(_, form)| form).collect()
}

fn form(source: &OldSource, number: usize) -> String {
    eventually("a callback is subscribed", || forms(source).len() > number);
    forms(source).swap_remove(number)
}

/// A subscription that was asked for: its callback and its secret.
struct Asked {
    callback: String,
    secret: Vec<u8>,
}

impl Asked {
    fn read(form: &str) -> Self {
        match CallbackRequest::parse(form.as_bytes()).unwrap() {
            CallbackRequest::Subscribe { callback, secret, .. } => {
                Self { callback, secret: secret.map_or_else(Vec::new, Secret::into_bytes) }
            }
            other @ CallbackRequest::Unsubscribe { .. } => panic!("{other:?}"),
        }
    }

    fn post(&self, body: &str) -> u16 {
        request("POST", &self.callback, &[], body.as_bytes()).0
    }

    fn post_signed(&self, secret: &[u8], body: &str) -> u16 {
        let signature = Key::new(Method::Sha256, secret).sign(body.as_bytes()).to_string();
        request("POST", &self.callback, &[(SIGNATURE_HEADER, &signature)], body.as_bytes()).0
    }

    fn verification(&self, mode: Mode, challenge: &str, lease: u64) -> String {
        let topic = "http://topics.example/of-the-source";
        verification_url(&self.callback, mode, topic, challenge, Some(lease))
    }
}

/// A copy whose subscription, by its number from 0, is confirmed.
fn confirmed(source: &OldSource, copy: &Follower, number: usize, lease: u64) -> Asked {
    let asked = Asked::read(&form(source, number));
    let runs = copy.runs();
    let url = asked.verification(Mode::Subscribe, "challenge", lease);
    assert_eq!(get(&url), (200, "challenge".to_owned()));
    if number == 0 {
        eventually("the change set is asked once more", || copy.runs() > runs);
    }
    asked
}

pub(crate) fn follows(source: &OldSource, copy: &Follower) {
    eventually("the copy follows", || files(&copy.folder) == source.kept);
}

/// The change set with one change after a time.
pub(crate) fn pushed(source: &OldSource, after: &str, path: &str) -> String {
    let (loc, now) = (source.server.url(path), source.now());
    let entry = match source.kept.get(path) {
        Some(body) => format!("<lastmod rs:type=\"updated\">{now}</lastmod>{}", fixity(body)),
        None => format!("<expires>{now}</expires>"),
    };
    let period =
        format!("<xhtml:meta name=\"DCTERMS.temporal\" content=\"start={after}; end={now}\"/>\n");
    let current = source.server.url("/c.xml");
    let link = format!(
        "<xhtml:link rel=\"current http://www.openarchives.org/rs/changeset\" href=\"{current}\"/>\n"
    );
    let inside = format!("{link}{period}<url><loc>{loc}</loc>{entry}</url>\n");
    document("urlset", "rs:type=\"changeset\"", &inside)
}

#[test]
fn a_signed_change_set_that_continues_is_applied_at_once() {
    let mut source = calling(VERIFIED);
    let copy = Follower::at(&source.server, "/s.xml", listening);
    let asked = confirmed(&source, &copy, 0, 3_600);
    assert_eq!(asked.secret.len(), 64, "256 random bits");
    follows(&source, &copy);
    source.server.take_log();
    for number in 0..3 {
        let after = source.now();
        if number == 2 {
            source.delete("/d/pushed");
        } else {
            source.set("/d/pushed", &format!("number {number}"));
        }
        let body = pushed(&source, &after, "/d/pushed");
        assert_eq!(asked.post_signed(&asked.secret, &body), 202);
        follows(&source, &copy);
        // A repeat changes nothing.
        assert_eq!(asked.post_signed(&asked.secret, &body), 202);
    }
    let log = source.server.take_log();
    assert!(!log.iter().any(|path| path == "/c.xml"), "{log:?}");
    // Stopping ends the subscription.
    let stopped = std::thread::spawn(move || copy.stop());
    let end = form(&source, 1);
    let callback = asked.callback.clone();
    assert_eq!(
        CallbackRequest::parse(end.as_bytes()),
        Ok(CallbackRequest::Unsubscribe { callback })
    );
    let _ = std::panic::catch_unwind(|| get(&asked.verification(Mode::Unsubscribe, "end", 0)));
    assert!(stopped.join().unwrap().is_none());
}

#[test]
fn a_pushed_deletion_that_our_clock_has_not_reached_is_applied() {
    let mut source = calling(VERIFIED);
    let copy = Follower::at(&source.server, "/s.xml", listening);
    let asked = confirmed(&source, &copy, 0, 3_600);
    follows(&source, &copy);
    let after = source.now();
    source.kept.remove("/d/first");
    source.kept.insert("/d/new".to_owned(), "new".to_owned());
    source.server.body("/d/new", "new");
    let body = pushed(&source, &after, "/d/first");
    let (soon, later) = (from_now(30_000_000).0, from_now(30_100_000).0);
    let both = format!(
        "<expires>{soon}</expires></url>\n<url><loc>{}</loc><lastmod rs:type=\"updated\">{later}</lastmod>",
        source.server.url("/d/new")
    );
    let body = body.replace(&format!("<expires>{after}</expires>"), &both);
    // Only the pushed change set contains the change.
    source.server.put("/c.xml", Answer::status(503));
    assert_eq!(asked.post_signed(&asked.secret, &body), 202);
    follows(&source, &copy);
}

#[test]
fn what_was_pushed_and_is_gone_hides_no_later_change() {
    let mut source = calling(VERIFIED);
    let copy = Follower::at(&source.server, "/s.xml", listening);
    let asked = confirmed(&source, &copy, 0, 3_600);
    follows(&source, &copy);
    let after = source.now();
    source.wait(1);
    source.kept.insert("/d/lost".to_owned(), "lost".to_owned());
    source.server.body("/d/lost", "lost");
    let body = pushed(&source, &after, "/d/lost");
    assert_eq!(asked.post_signed(&asked.secret, &body), 202);
    follows(&source, &copy);
    // The Source was restored, and has changed since.
    source.kept.remove("/d/lost");
    source.wait(3);
    source.set("/d/later", "later");
    source.wait(1);
    source.snapshot();
    assert_eq!(asked.post(&body), 202);
    follows(&source, &copy);
    assert!(copy.has_told("gap"));
}

#[test]
fn a_pushed_change_has_the_categories_of_the_sitemap() {
    let mut source = calling(VERIFIED);
    let wanted = "<xhtml:meta name=\"DC.subject\" content=\"A\"/>".to_owned();
    source.more.insert("/d/first".to_owned(), wanted);
    source.snapshot();
    let copy = Follower::at(&source.server, "/s.xml", |options| {
        listening(options);
        options.categories = vec!["A".to_owned()];
    });
    let asked = confirmed(&source, &copy, 0, 3_600);
    follows(&source, &copy);
    let after = source.now();
    source.set("/d/first", "second");
    let body = pushed(&source, &after, "/d/first");
    // Only the pushed change set contains the change.
    source.server.put("/c.xml", Answer::status(503));
    assert_eq!(asked.post_signed(&asked.secret, &body), 202);
    follows(&source, &copy);
}

#[test]
fn what_is_not_signed_as_agreed_is_a_hint_and_nothing_else() {
    let mut source = calling(VERIFIED);
    let copy = Follower::at(&source.server, "/s.xml", listening);
    let asked = confirmed(&source, &copy, 0, 3_600);
    follows(&source, &copy);
    let (after, before) = (source.now(), source.kept.clone());
    // A forged deletion, and content that is nowhere.
    source.wait(1);
    source.kept.clear();
    let forged = pushed(&source, &after, "/d/first");
    source.kept.clone_from(&before);
    for number in 0..3 {
        let runs = copy.runs();
        let status = match number {
            0 => asked.post(&forged),
            1 => asked.post_signed(b"another secret", &forged),
            _ => request("POST", &asked.callback, &[(SIGNATURE_HEADER, "md5=0")], b"<a/>").0,
        };
        assert_eq!(status, 202);
        eventually("the change set is asked", || copy.runs() > runs);
        assert_eq!(files(&copy.folder), before);
    }
    assert!(copy.has_told("push.signature"));
    // The content of the Source is found in this way.
    source.set("/d/new", "new");
    assert_eq!(asked.post(&forged), 202);
    follows(&source, &copy);
}

#[test]
fn change_sets_of_another_set_are_not_applied() {
    let mut source = calling(VERIFIED);
    let copy = Follower::at(&source.server, "/s.xml", listening);
    let asked = confirmed(&source, &copy, 0, 3_600);
    follows(&source, &copy);
    let (after, before) = (source.now(), source.kept.clone());
    source.wait(1);
    source.kept.clear();
    let forged = pushed(&source, &after, "/d/first");
    source.kept.clone_from(&before);
    for other in ["/other.xml", ""] {
        let body = forged.replace(&source.server.url("/c.xml"), &source.server.url(other));
        assert_ne!(body, forged);
        let runs = copy.runs();
        assert_eq!(asked.post_signed(&asked.secret, &body), 202);
        eventually("the change set is asked", || copy.runs() > runs);
        assert_eq!(files(&copy.folder), before);
    }
    assert!(copy.has_told("notification.unusable"));
}

#[test]
fn signed_documents_that_are_odd_are_asked_for() {
    let mut source = calling(VERIFIED);
    let copy = Follower::at(&source.server, "/s.xml", listening);
    let asked = confirmed(&source, &copy, 0, 3_600);
    follows(&source, &copy);
    let bomb =
        "<!DOCTYPE a [<!ENTITY b \"bbbbbbbb\"><!ENTITY c \"&b;&b;&b;&b;\">]><urlset>&c;</urlset>";
    let empty = document("urlset", "rs:type=\"changeset\"", "");
    let elsewhere = "<url><loc>http://10.0.0.1/x</loc><lastmod rs:type=\"created\">2026-01-20T00:00:00.5Z</lastmod></url>";
    let elsewhere = document("urlset", "rs:type=\"changeset\"", elsewhere);
    let cut = pushed(&source, "2026-01-01", "/d/first");
    let bodies = ["", "<urlset", "{}", bomb, &empty, &elsewhere, &cut[..cut.len() - 20]];
    for (number, body) in bodies.into_iter().enumerate() {
        let path = format!("/d/{number}");
        source.set(&path, "new");
        assert_eq!(asked.post_signed(&asked.secret, body), 202);
        follows(&source, &copy);
    }
    let large = vec![b' '; (8 << 20) + 1];
    assert_eq!(request("POST", &asked.callback, &[], &large).0, 413);
    let wrong = Asked { callback: asked.callback.replace("/in/", "/in/0"), secret: Vec::new() };
    assert_eq!(wrong.post("<urlset/>"), 410);
    assert_eq!(get(&wrong.verification(Mode::Subscribe, "c", 60)).0, 404);
}

#[test]
fn only_what_was_asked_for_is_confirmed_to_a_source() {
    let source = calling(VERIFIED);
    let copy = Follower::at(&source.server, "/s.xml", listening);
    let asked = Asked::read(&form(&source, 0));
    assert_eq!(get(&asked.verification(Mode::Unsubscribe, "a", 60)).0, 404);
    assert_eq!(get(&asked.callback).0, 404);
    assert_eq!(asked.post("<urlset/>"), 410, "nothing is delivered before that");
    assert_eq!(get(&asked.verification(Mode::Subscribe, "b", 60)), (200, "b".to_owned()));
    assert_eq!(get(&asked.verification(Mode::Subscribe, "c", 60)).0, 404);
    assert_eq!(get(&denied_url(&asked.callback, "http://t/", Some("closed"))).0, 200);
    eventually("it is reported", || copy.has_told("push.broken the hub"));
}

#[test]
fn a_callback_is_renewed_before_its_lease_ends() {
    let mut source = calling(VERIFIED);
    let copy = Follower::at(&source.server, "/s.xml", listening);
    let first = confirmed(&source, &copy, 0, 2);
    follows(&source, &copy);
    let second = Asked::read(&form(&source, 1));
    assert!(second.callback != first.callback && second.secret != first.secret);
    let newest = loop {
        let subscribes = |form: &&String| !form.contains("mode=");
        let all = forms(&source);
        let asked = Asked::read(all.iter().rfind(subscribes).unwrap());
        if get(&asked.verification(Mode::Subscribe, "again", 3_600)).0 == 200 {
            break asked;
        }
    };
    source.set("/d/new", "new");
    assert_eq!(newest.post("<urlset/>"), 202);
    follows(&source, &copy);
}

#[test]
fn a_source_of_2012_gets_its_form_and_gives_hints() {
    let mut source = calling(PLAIN);
    let copy = Follower::at(&source.server, "/s.xml", listening);
    let asked = form(&source, 0);
    let parameters: Vec<_> = asked.split('&').collect();
    assert!(matches!(&parameters[..], [one] if one.starts_with("callbackURI=http")), "{asked}");
    let asked = Asked::read(&asked);
    eventually("it is reported", || copy.has_told("push.callback"));
    follows(&source, &copy);
    // The content of the notification is ignored in all cases.
    let before = source.kept.clone();
    let (after, now) = (source.now(), source.kept.clone());
    source.wait(1);
    source.kept.clear();
    let forged = pushed(&source, &after, "/d/first");
    source.kept = now;
    for body in ["", "changed", &forged] {
        let runs = copy.runs();
        assert_eq!(asked.post(body), 202);
        eventually("the change set is asked", || copy.runs() > runs);
        assert_eq!(files(&copy.folder), before);
    }
    source.set("/d/new", "new");
    assert_eq!(asked.post("<urlset/>"), 202);
    follows(&source, &copy);
    // A verification is answered although it is not expected.
    assert_eq!(get(&asked.verification(Mode::Subscribe, "c", 60)), (200, "c".to_owned()));
    assert!(copy.stop().is_none());
    assert_eq!(forms(&source).len(), 1, "it knows no other request");
}

#[test]
fn a_flood_at_a_callback_causes_one_poll_a_second() {
    let source = calling(PLAIN);
    let copy = Follower::at(&source.server, "/s.xml", |options| {
        listening(options);
        at_usual_pace(options);
    });
    let asked = Asked::read(&form(&source, 0));
    follows(&source, &copy);
    source.server.take_log();
    let begun = Instant::now();
    let mut posted = 0;
    while begun.elapsed() < Duration::from_secs(3) {
        assert_eq!(asked.post("<urlset/>"), 202);
        posted += 1;
    }
    let most = begun.elapsed().as_secs() as usize + 2;
    let looked = source.server.take_log().iter().filter(|path| *path == "/c.xml").count();
    assert!((1..=most).contains(&looked), "{looked} looks for {posted} deliveries");
}

#[test]
fn a_refused_or_private_subscription_is_reported() {
    let source = calling(VERIFIED);
    source.server.put("/subscribe", Answer::status(403));
    let copy = Follower::at(&source.server, "/s.xml", listening);
    eventually("it is reported", || copy.has_told("push.broken the hub"));
    // The subscription is requested again, even if nothing else is offered.
    let refused = forms(&source).len();
    source.server.put("/subscribe", Answer::status(202));
    eventually("it is requested again", || forms(&source).len() > refused);
    // An address in the reader's own network, which the Source chose.
    let mut source = OldSource::new();
    source.links =
        format!("<xhtml:link href=\"http://10.1.2.3/subscribe\" rs:protocol=\"{VERIFIED}\"/>\n");
    source.snapshot();
    let copy = Follower::at(&source.server, "/s.xml", listening);
    let told = "push.broken the hub http://10.1.2.3/subscribe has a private address\n  help: allow its host with --allow-host 10.1.2.3";
    eventually("it is refused", || copy.has_told(told));
}

#[test]
fn without_a_callback_the_copy_reports_why_it_polls() {
    let source = calling(VERIFIED);
    let copy = Follower::at(&source.server, "/s.xml", |_| {});
    eventually("it is reported", || copy.has_told("push.none"));
    let other = calling(VERIFIED);
    let quiet = Follower::at(&other.server, "/s.xml", |options| {
        listening(options);
        options.push = Push::Off;
    });
    follows(&other, &quiet);
    assert!(forms(&source).is_empty() && forms(&other).is_empty());
}
