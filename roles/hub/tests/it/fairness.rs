//! Slow recipients delay only themselves: deliveries, repeats, verifications and topics to be
//! fetched.

use crate::bed::{Bed, TOPIC, options};
use crate::server::{Delivery as _, Reply, Server, confirm, encode};
use abreast_core::hub::TargetId;
use abreast_hub::{Client, HubRequest, Publisher};
use abreast_testkit::eventually_some;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Far longer than anything here takes, and shorter than a receiver that hangs keeps its
/// connection.
const SOON: Duration = Duration::from_secs(8);

/// Deliveries to `/h…` hang, the first of each text to `/f…` fails.
fn receiver() -> Server {
    let seen = Mutex::new(HashMap::new());
    Server::confirming(move |got| match got.path().as_bytes().get(1) {
        Some(b'h') => Reply::Hang,
        Some(b'f') => {
            let mut seen = seen.lock().unwrap();
            let count = seen.entry((got.path().to_owned(), got.text())).or_insert(0);
            *count += 1;
            Reply::Status(if *count == 1 { 503 } else { 204 })
        }
        _ => Reply::Status(204),
    })
}

/// A hub with few places and receivers of which most hang; each answers on its own port, or all on
/// one.
fn crowd(hanging: usize, own_ports: bool) {
    let mut few = options();
    few.sending.total = Duration::from_secs(60);
    few.lanes.all = 8;
    few.lanes.new = 8;
    few.lanes.slow = 8;
    few.lanes.silent = 8;
    few.lanes.aside = 16;
    let bed = Bed::new(few);
    let good = receiver();
    let bad: Vec<Server> = (0..if own_ports { hanging } else { 0 }).map(|_| receiver()).collect();
    for number in 0..hanging {
        let server = bad.get(number).unwrap_or(&good);
        bed.subscribe(TOPIC, &server.url(&format!("/h{number}")), "");
    }
    for number in 0..5 {
        bed.subscribe(TOPIC, &good.url(&format!("/g{number}")), "");
        bed.subscribe(TOPIC, &good.url(&format!("/f{number}")), "");
    }
    for text in ["one", "two", "three"] {
        let begun = Instant::now();
        bed.say(text);
        good.wait("all who answer", |seen| {
            // Those that fail once get each notification twice.
            let got = seen.iter().filter(|got| {
                got.is_delivery() && got.text() == text && !got.path().starts_with("/h")
            });
            got.count() == 15
        });
        assert!(begun.elapsed() < SOON, "{text} took {:?}", begun.elapsed());
    }
}

#[test]
fn hanging_receivers_on_one_port_delay_nobody() {
    crowd(60, false);
}

#[test]
fn hanging_receivers_on_own_ports_delay_nobody() {
    crowd(40, true);
}

#[test]
fn slow_receiver_gets_notifications_beside_hanging_ones() {
    let mut few = options();
    few.lanes.slow = 2;
    few.lanes.silent = 2;
    few.lanes.aside = 4;
    few.lanes.slow_after = Duration::from_millis(50);
    few.lanes.patience = Duration::from_millis(100);
    few.sending.total = Duration::from_secs(2);
    let bed = Bed::new(few);
    let server = Server::confirming(|got| {
        if got.path().starts_with("/h") {
            return Reply::Hang;
        }
        std::thread::sleep(Duration::from_millis(300));
        Reply::Status(204)
    });
    for number in 0..20 {
        bed.subscribe(TOPIC, &server.url(&format!("/h{number}")), "");
    }
    let slow = bed.subscribe(TOPIC, &server.url("/slow"), "");
    for text in ["one", "two"] {
        bed.say(text);
    }
    eventually_some("both", || {
        let target = bed.hub.target(TargetId(slow.id.0)).unwrap().unwrap();
        (target.cursor.0 == 2).then_some(())
    });
}

#[test]
fn silent_callbacks_delay_no_other_verification() {
    let silent: Vec<Server> = (0..20)
        .map(|_| {
            Server::new(|got| if got.path().starts_with("/h") { Reply::Hang } else { confirm(got) })
        })
        .collect();
    let mut few = options();
    few.verification.all = 8;
    few.sending.total = Duration::from_secs(60);
    let bed = Bed::new(few);
    for number in 0..300 {
        let callback = silent[number % silent.len()].url(&format!("/h{number}"));
        assert_eq!(bed.ask("subscribe", TOPIC, &callback, "").status, 202);
    }
    let begun = Instant::now();
    let honest = Server::willing();
    bed.subscribe(TOPIC, &honest.url("/c"), "");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

/// Says that a topic changed.
fn changed(bed: &Bed, topic: &str, publisher: Publisher, client: &str) -> u16 {
    let answer = bed.post(HubRequest {
        content_type: "application/x-www-form-urlencoded".to_owned(),
        links: Vec::new(),
        body: format!("hub.mode=publish&hub.url={}", encode(topic)).into(),
        client: Client::direct(client.parse().unwrap()).as_publisher(publisher),
    });
    answer.status
}

#[test]
fn topics_that_do_not_exist_delay_no_others() {
    let mut open = options();
    open.open = true;
    open.sending.total = Duration::from_secs(60);
    let bed = Bed::new(open);
    let server = Server::new(|got| match got.path().as_bytes()[1] {
        b'h' => Reply::Hang,
        b'n' => Reply::Status(404),
        _ => Reply::Status(200),
    });
    for number in 0..150 {
        let kind = if number % 2 == 0 { 'n' } else { 'h' };
        let topic = server.url(&format!("/{kind}{number}"));
        assert_eq!(changed(&bed, &topic, Publisher::Anonymous, "192.0.2.1"), 202);
    }
    let begun = Instant::now();
    for (number, publisher) in [Publisher::Anonymous, Publisher::Token].into_iter().enumerate() {
        let path = format!("/t{number}");
        assert_eq!(changed(&bed, &server.url(&path), publisher, "192.0.2.2"), 202);
        server.wait("the honest", |seen| seen.iter().any(|got| got.path() == path));
    }
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
}

#[test]
fn a_client_has_its_share_of_the_topics_that_wait() {
    let mut open = options();
    open.open = true;
    open.sending.total = Duration::from_secs(60);
    let bed = Bed::new(open);
    let server = Server::new(|_| Reply::Hang);
    let forms: Vec<String> = (0..1_200).map(|number| server.url(&format!("/h{number}"))).collect();
    // A hundred topics in one form.
    let mut statuses = Vec::new();
    for part in forms.chunks(100) {
        let body = part
            .iter()
            .fold("hub.mode=publish".to_owned(), |form, url| form + "&hub.url=" + &encode(url));
        statuses.push(bed.form(&body).status);
    }
    assert_eq!(statuses.iter().filter(|status| **status == 202).count(), 10, "{statuses:?}");
    assert_eq!(statuses.last(), Some(&429));
    let elsewhere = Server::willing();
    assert_eq!(changed(&bed, &elsewhere.url("/t"), Publisher::Anonymous, "192.0.2.2"), 202);
    assert_eq!(changed(&bed, &server.url("/more"), Publisher::Token, "127.0.0.1"), 202);
    elsewhere.wait("the honest", |seen| !seen.is_empty());
}
