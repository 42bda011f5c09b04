//! What failed is tried again, given up at last, and can be had again.

use crate::bed::{TOPIC, options, subscribed};
use crate::server::{Delivery as _, Got, Reply, Server};
use abreast_core::Offset;
use abreast_testkit::eventually_some;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

#[test]
fn a_pause_that_is_asked_for_is_kept() {
    let count = AtomicUsize::new(0);
    let server = Server::confirming(move |_| match count.fetch_add(1, SeqCst) {
        0 => Reply::Full(503, vec![("Retry-After", "1".to_owned())], Vec::new()),
        _ => Reply::Status(204),
    });
    let (bed, target) = subscribed(options(), &server, "");
    bed.say("x");
    server.wait_deliveries(1);
    let begin = Instant::now();
    server.wait_deliveries(2);
    // Without the header it would have been 20 ms at most.
    assert!(begin.elapsed() > Duration::from_millis(800), "{:?}", begin.elapsed());
    let attempts = eventually_some("both attempts", || {
        let attempts = bed.hub.attempts(target.id).unwrap();
        (attempts.len() == 2).then_some(attempts)
    });
    assert_eq!(
        (attempts[0].status, attempts[0].error.clone(), attempts[0].number),
        (Some(204), None, 2)
    );
    assert_eq!(attempts[1].status, Some(503));
}

#[test]
fn whatever_fails_is_tried_again() {
    let count = AtomicUsize::new(0);
    let server = Server::confirming(move |_| match count.fetch_add(1, SeqCst) {
        0 => Reply::Status(404),
        1 => Reply::Status(500),
        2 => Reply::Raw(Vec::new()),
        3 => Reply::Raw(b"nonsense".to_vec()),
        4 => Reply::Hang,
        _ => Reply::Status(204),
    });
    let mut quick = options();
    quick.sending.total = Duration::from_millis(100);
    let (bed, _) = subscribed(quick, &server, "");
    bed.say("x");
    let got = server.wait_deliveries(6);
    assert!(got.iter().all(|got| got.text() == "x"));
    eventually_some("success", || (bed.hub.metrics().delivered == 1).then_some(()));
}

#[test]
fn a_notification_is_given_up_and_the_subscription_stays() {
    let up = Arc::new(AtomicBool::new(false));
    let is_up = up.clone();
    let server =
        Server::confirming(move |_| Reply::Status(if is_up.load(SeqCst) { 204 } else { 500 }));
    let mut impatient = options();
    impatient.retries.give_up = Duration::from_millis(150);
    let (bed, target) = subscribed(impatient, &server, "");
    bed.say("1");
    let letters = |count: usize| {
        eventually_some("dead letters", || {
            let letters = bed.hub.dead_letters(target.id, Offset(0), 10).unwrap();
            (letters.iter().map(|letter| letter.letters).sum::<u64>() == count as u64)
                .then_some(letters)
        })
    };
    let dead = letters(1);
    assert_eq!((dead[0].first, dead[0].last), (Offset(1), Offset(1)));
    assert!(dead[0].error.contains("500"), "{}", dead[0].error);
    let attempts = server.deliveries().len();
    assert!(attempts > 1);
    // What comes next is tried again, and given up in its own time.
    bed.say("2");
    server.wait("the next", |seen| seen.iter().any(|got| got.is_delivery() && got.text() == "2"));
    letters(2);
    // The subscription is there: when the subscriber is back it gets what is new.
    up.store(true, SeqCst);
    bed.say("3");
    server.wait("the third", |seen| seen.iter().any(|got| got.is_delivery() && got.text() == "3"));
    eventually_some("success", || (bed.hub.metrics().delivered == 1).then_some(()));
    // And what was given up can be had again.
    let before = server.deliveries().len();
    assert_eq!(bed.hub.replay(target.id, Offset(0)).unwrap().unwrap().cursor, Offset(0));
    let got = server.wait_deliveries(before + 3);
    let texts: Vec<_> = got[before..].iter().map(Got::text).collect();
    assert_eq!(texts, ["1", "2", "3"]);
    eventually_some("the cursor", || {
        (bed.hub.store().target(target.id).unwrap().unwrap().cursor == Offset(3)).then_some(())
    });
}

#[test]
fn a_replay_does_not_wait_for_what_is_under_way() {
    let hang = AtomicBool::new(true);
    let server =
        Server::confirming(
            move |_| if hang.swap(false, SeqCst) { Reply::Hang } else { Reply::Status(204) },
        );
    let mut slow = options();
    slow.sending.total = Duration::from_secs(300);
    let (bed, target) = subscribed(slow, &server, "");
    bed.say("1");
    server.wait_deliveries(1);
    bed.hub.replay(target.id, Offset(0)).unwrap();
    assert_eq!(server.wait_deliveries(2)[1].text(), "1");
    bed.say("2");
    assert_eq!(server.wait_deliveries(3)[2].text(), "2");
}

#[test]
fn an_origin_that_cannot_be_connected_to_is_left_alone() {
    // No connection is kept.
    let server = Server::new(|got| {
        let challenge = got.query()["hub.challenge"].clone();
        Reply::Raw(format!("HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n{challenge}").into_bytes())
    });
    let mut careful = options();
    careful.lanes.breaker_failures = 3;
    careful.lanes.breaker_pause = Duration::from_secs(300);
    careful.retries.most = Duration::from_millis(20);
    let (bed, _) = subscribed(careful, &server, "");
    drop(server);
    bed.say("x");
    eventually_some("the pause", || (bed.hub.metrics().broken_origins == 1).then_some(()));
    let failed = bed.hub.metrics().failed;
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!((bed.hub.metrics().failed, failed), (3, 3));
    assert!(
        bed.target(
            TOPIC,
            &bed.hub.targets(None, abreast_core::hub::TargetId(0), 1).unwrap()[0].address
        )
        .is_some()
    );
}
