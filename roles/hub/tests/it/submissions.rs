//! Other hubs: those that are configured and no others, each once, and visibly when they do not
//! accept.

use crate::bed::{Bed, TOPIC, options};
use crate::server::{Got, Reply, Server};
use abreast_core::hub::TargetKind;
use abreast_hub::{SubmissionKind, keep_submissions};
use abreast_testkit::eventually_some;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

fn submissions(bed: &Bed) -> Vec<(TargetKind, String)> {
    let all = bed.hub.targets(None, abreast_core::hub::TargetId(0), 100).unwrap();
    all.into_iter().map(|target| (target.kind, target.address)).collect()
}

#[test]
fn a_hub_that_is_no_longer_configured_gets_nothing() {
    let (gone, kept) = (Server::willing(), Server::willing());
    let bed = Bed::new(options());
    for server in [&gone, &kept] {
        bed.hub.submit_to(TOPIC, &server.url("/hub"), SubmissionKind::Fat).unwrap();
    }
    bed.say("one");
    gone.wait_deliveries(1);
    kept.wait_deliveries(1);
    let hubs = [(kept.url("/hub"), SubmissionKind::Fat)];
    let bed = bed.restart_with(|store| keep_submissions(store, &hubs).unwrap());
    assert_eq!(submissions(&bed), [(TargetKind::FatSubmission, kept.url("/hub"))]);
    bed.say("two");
    kept.wait_deliveries(2);
    assert_eq!(gone.deliveries().len(), 1);
}

#[test]
fn another_way_to_submit_replaces_the_one_before() {
    let accepts = Arc::new(AtomicBool::new(true));
    let is_accepted = accepts.clone();
    let server =
        Server::new(move |_| Reply::Status(if is_accepted.load(SeqCst) { 202 } else { 503 }));
    let hubs = [server.url("/hub")];
    let bed = Bed::new(options());
    bed.hub.submit_to(TOPIC, &hubs[0], SubmissionKind::Fat).unwrap();
    bed.say("one");
    server.wait_deliveries(1);
    eventually_some("it is taken", || (bed.hub.metrics().delivered == 1).then_some(()));
    accepts.store(false, SeqCst);
    bed.say("two");
    server.wait_deliveries(2);
    // What was not accepted yet is submitted in the new way.
    let bed = bed.restart_with(|store| {
        accepts.store(true, SeqCst);
        keep_submissions(store, &[(hubs[0].clone(), SubmissionKind::Form)]).unwrap();
    });
    bed.hub.submit_to(TOPIC, &hubs[0], SubmissionKind::Form).unwrap();
    assert_eq!(submissions(&bed), [(TargetKind::FormSubmission, hubs[0].clone())]);
    let is_form = |got: &Got| got.text().starts_with("hub.mode=publish");
    server.wait("the form", |seen| seen.iter().any(is_form));
    eventually_some("it is taken", || (bed.hub.metrics().delivered == 1).then_some(()));
    let before = server.deliveries().len();
    bed.say("three");
    let got = server.wait_deliveries(before + 1);
    assert!(got[before..].iter().all(is_form), "{got:?}");
}

#[test]
fn a_removed_topic_is_submitted_until_its_last_notification() {
    let server = Server::willing();
    let (bed, hub) = (Bed::new(options()), server.url("/hub"));
    let (last, other) =
        ("http://example.org/gone/notify/framework", "http://example.org/gone/notify/change");
    for topic in [TOPIC, last, other] {
        bed.hub.submit_to(topic, &hub, SubmissionKind::Fat).unwrap();
    }
    let set = |url: &str| HashSet::from([url.to_owned()]);
    bed.hub.release_submissions(&set(TOPIC), &set(last)).unwrap();
    assert_eq!(submissions(&bed).len(), 2);
    assert_eq!(bed.publish(last, "application/xml", b"deleted").status, 200);
    assert_eq!(server.wait_deliveries(1)[0].text(), "deleted");
    eventually_some("its end", || (submissions(&bed).len() == 1).then_some(()));
    bed.say("goes on");
    assert_eq!(server.wait_deliveries(2)[1].text(), "goes on");
}

#[test]
fn a_hub_that_refuses_is_shown_until_it_accepts() {
    let accepts = Arc::new(AtomicBool::new(false));
    let is_accepted = accepts.clone();
    let server =
        Server::new(move |_| Reply::Status(if is_accepted.load(SeqCst) { 202 } else { 403 }));
    let bed = Bed::new(options());
    let target = bed.hub.submit_to(TOPIC, &server.url("/hub"), SubmissionKind::Fat).unwrap();
    assert_eq!(bed.hub.metrics().failing_hubs, 0);
    bed.say("one");
    let failing = eventually_some("it is shown", || {
        bed.hub.failing_hubs().pop().filter(|hub| hub.status.is_some())
    });
    assert_eq!((failing.target, failing.status, failing.refuses()), (target, Some(403), true));
    let shown = failing.to_string();
    for part in
        [&server.url("/hub"), TOPIC, "403", "remove it from `hub.hubs`", "abreast hub attempts"]
    {
        assert!(shown.contains(part), "{part} in {shown}");
    }
    assert_eq!(bed.hub.metrics().failing_hubs, 1);
    accepts.store(true, SeqCst);
    eventually_some("it is no longer shown", || bed.hub.failing_hubs().is_empty().then_some(()));
}

#[test]
fn a_hub_and_a_webhook_can_have_the_same_address() {
    let server = Server::willing();
    let kinds = [SubmissionKind::Fat, SubmissionKind::Webhook];
    let both = kinds.map(|kind| (server.url("/in"), kind));
    let mut bed = Bed::new(options());
    let ids = both.clone().map(|(url, kind)| bed.hub.submit_to(TOPIC, &url, kind).unwrap());
    // Also in the other order of the configuration.
    for both in [both.clone(), [both[1].clone(), both[0].clone()]] {
        bed = bed.restart_with(|store| keep_submissions(store, &both).unwrap());
        let all = bed.hub.targets(None, abreast_core::hub::TargetId(0), 100).unwrap();
        assert_eq!(all.iter().map(|target| target.id).collect::<Vec<_>>(), ids);
    }
}

#[test]
fn a_refused_private_hub_names_the_setting() {
    let mut public = options();
    public.private_callbacks = false;
    let (bed, other) = (Bed::new(public), Server::willing());
    bed.hub.submit_to(TOPIC, &other.url("/hub"), SubmissionKind::Fat).unwrap();
    bed.say("one");
    let target = bed.hub.targets(None, abreast_core::hub::TargetId(0), 1).unwrap().remove(0);
    let attempt =
        eventually_some("an attempt", || bed.hub.attempts(target.id).unwrap().into_iter().next());
    let error = attempt.error.unwrap();
    assert!(error.contains("private_callbacks = true"), "{error}");
    assert!(other.seen().is_empty());
}
