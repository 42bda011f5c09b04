//! A hub is killed repeatedly at random while publishers publish and subscribers give any answer.
//! Every subscriber receives all accepted notifications in order; only deliveries that were not yet
//! recorded are repeated.
//!
//! Each subscriber looks at each delivery (`receiver.rs`): after one that was taken comes the next
//! one, after one that was not taken comes the same one, and only after a kill an earlier one, from
//! which it goes on again without a gap.

mod receiver;

use crate::world::{Source, abreast};
use abreast_testkit::{Random, kills, number, run, seed};
use receiver::{Receiver, Subscription};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Kills, publishers and subscribers, and how many when others are asked for by ABREAST_TEST_KILLS.
const KILLS: u64 = 25;
const PUBLISHERS: [usize; 2] = [8, 50];
const SUBSCRIBERS: [usize; 2] = [30, 200];
const TOPICS: usize = 3;
/// Publishers pause while a subscriber is so far behind.
const BEHIND: u64 = 200;
/// How long everything may take to come to rest at the end.
const PATIENCE: Duration = Duration::from_secs(180);

#[test]
fn accepted_notifications_arrive_in_order_over_random_kills() {
    let many = usize::from(number("ABREAST_TEST_KILLS").is_some_and(|kills| kills > 100));
    let (kills, seed) = (kills(KILLS), seed(1));
    let mut random = Random::new(seed);
    let temporary = tempfile::tempdir().unwrap();
    let config = configure(temporary.path());
    let token = token(temporary.path());
    let mut source = Source::start_config(&config);
    let hub = Arc::new(Hub { address: source.address.clone(), token });
    let receiver = Arc::new(Receiver::start(seed));

    let mut subscriptions: Vec<_> = (0..SUBSCRIBERS[many])
        .map(|number| Subscription { number, topic: number % TOPICS })
        .collect();
    let subscribe = |subscription| hub.subscribe(subscription, &receiver.callback(subscription));
    for subscription in &subscriptions {
        assert_eq!(subscribe(*subscription), Some(202), "{subscription:?}");
    }
    // A subscription counts from the moment its callback was asked: something is said until
    // everybody heard it.
    within(PATIENCE, "everybody heard something", || {
        for topic in 0..TOPICS {
            assert!(matches!(hub.publish(topic, "hello"), Some(Ok(_))));
        }
        std::thread::sleep(Duration::from_millis(20));
        subscriptions.iter().all(|subscription| receiver.taken(*subscription).is_some())
    });

    let accepted = Arc::new(Mutex::new(BTreeMap::new()));
    let stop = Arc::new(AtomicBool::new(false));
    let first = subscriptions.clone();
    let publishers: Vec<JoinHandle<()>> = (0..PUBLISHERS[many])
        .map(|publisher| {
            let (hub, receiver, accepted, stop) =
                (hub.clone(), receiver.clone(), accepted.clone(), stop.clone());
            let listeners: Vec<_> =
                first.iter().copied().filter(|one| one.topic == publisher % TOPICS).collect();
            std::thread::spawn(move || {
                let topic = publisher % TOPICS;
                let (mut number, mut last) = (0, 0_u64);
                while !stop.load(SeqCst) {
                    let slowest =
                        listeners.iter().filter_map(|one| receiver.taken(*one)).min().unwrap_or(0);
                    if last.saturating_sub(slowest) > BEHIND {
                        std::thread::sleep(Duration::from_millis(10));
                        continue;
                    }
                    let message = format!("{publisher}/{number}");
                    if let Some(Ok(offset)) = hub.publish(topic, &message) {
                        accepted.lock().unwrap().insert((topic, offset), message);
                        last = offset;
                    } else {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    // One that was not answered is not said again: it may have been heard.
                    number += 1;
                }
            })
        })
        .collect();

    let (begun, mut done) = (Instant::now(), 0);
    while done < kills {
        let life = if random.below(40) == 39 { 8_000 } else { random.below(350) };
        std::thread::sleep(Duration::from_millis(life));
        // Somebody new, or a renewal, a moment before.
        let new = Subscription {
            number: subscriptions.len(),
            topic: random.below(TOPICS as u64) as usize,
        };
        let one = match random.below(3) {
            0 => Some(new),
            1 => Some(subscriptions[random.below(subscriptions.len() as u64) as usize]),
            _ => None,
        };
        if let Some(one) = one
            && subscribe(one) == Some(202)
            && one == new
        {
            subscriptions.push(new);
        }
        let port = source.port();
        source.kill();
        receiver.after_kill();
        done += 1;
        while random.below(4) == 0 {
            Source::kill_config_at_start(&config, port, Duration::from_millis(random.below(250)));
            receiver.after_kill();
            done += 1;
        }
        source = Source::start_config_at(&config, port);
        assert_eq!(receiver.wrong(), Vec::<String>::new());
    }
    let took = begun.elapsed().as_secs();
    stop.store(true, SeqCst);
    for publisher in publishers {
        publisher.join().unwrap();
    }

    // Everybody takes what comes, and has everything.
    receiver.be_good();
    let mut accepted = accepted.lock().unwrap().clone();
    let mut last = [0; TOPICS];
    for (topic, last) in last.iter_mut().enumerate() {
        *last = hub.publish(topic, "the last").unwrap().unwrap();
        accepted.insert((topic, *last), "the last".to_owned());
    }
    within(PATIENCE, "everybody has the last", || {
        assert_eq!(receiver.wrong(), Vec::<String>::new());
        subscriptions.iter().all(|one| receiver.taken(*one) >= Some(last[one.topic]))
    });
    let (deliveries, repeats, failed) = receiver.counts();
    println!(
        "{done} kills in {took} s: {} notifications accepted of {} recorded, {} subscriptions, {deliveries} deliveries, of \
         these {failed} not taken and {repeats} repeated",
        accepted.len(),
        last.iter().sum::<u64>(),
        subscriptions.len()
    );
    assert!(accepted.len() > PUBLISHERS[many] && failed > 0);
    check_messages(&receiver.messages(), &accepted);
    for one in &first {
        assert!(
            receiver.first(*one).unwrap()
                <= *accepted
                    .keys()
                    .find(|(topic, _)| *topic == one.topic)
                    .map(|(_, offset)| offset)
                    .unwrap()
        );
    }

    // What is recorded at a stop is not repeated.
    let port = source.port();
    assert_eq!(source.stop(), Some(0));
    receiver.after_kill();
    let source = Source::start_config_at(&config, port);
    for (topic, last) in last.iter_mut().enumerate() {
        *last = hub.publish(topic, "one more").unwrap().unwrap();
    }
    within(PATIENCE, "everybody has one more", || {
        subscriptions.iter().all(|one| receiver.taken(*one) >= Some(last[one.topic]))
    });
    assert_eq!(receiver.counts().1, repeats, "nothing is repeated after a stop");
    assert_eq!(receiver.wrong(), Vec::<String>::new());
    assert_eq!(source.stop(), Some(0));
}

/// Checks that every accepted message was delivered, that no message occurs twice, and that the
/// messages of each publisher are in order.
fn check_messages(
    delivered: &BTreeMap<(usize, u64), String>,
    accepted: &BTreeMap<(usize, u64), String>,
) {
    for (place, message) in accepted {
        assert_eq!(delivered.get(place), Some(message), "{place:?} was accepted");
    }
    let (mut known, mut furthest) = (BTreeSet::new(), BTreeMap::new());
    for ((topic, offset), message) in delivered {
        let Some((publisher, number)) = message.split_once('/') else { continue };
        assert!(known.insert(message), "{message} is there twice");
        let number: u64 = number.parse().unwrap();
        let before = furthest.insert(publisher, number);
        assert!(
            before < Some(number),
            "{message} at {offset} of topic {topic} comes after {before:?}"
        );
    }
}

fn within(time: Duration, what: &str, mut so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < time, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A set with nothing in it, beside a hub for other topics.
fn configure(place: &Path) -> String {
    let (data, folder) = (place.join("data"), place.join("folder"));
    std::fs::create_dir_all(&folder).unwrap();
    let config = place.join("abreast.toml");
    let text = format!(
        "data = {:?}\n[api]\nwrite = true\n[hub]\nallow_topics = [\"http://example.org/\"]\n\
         [[set]]\nname = \"set\"\nfolder = {:?}\n",
        data.display().to_string(),
        folder.display().to_string()
    );
    std::fs::write(&config, text).unwrap();
    config.to_str().unwrap().to_owned()
}

fn token(place: &Path) -> String {
    std::fs::create_dir_all(place.join("data")).unwrap();
    let made = run(abreast()
        .args(["token", "create", "--name", "publisher", "--scope", "write", "--data"])
        .arg(place.join("data")));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    String::from_utf8(made.stdout).unwrap().trim().to_owned()
}

/// The hub, as others see it.
struct Hub {
    address: String,
    token: String,
}

impl Hub {
    /// The answer's status; `None` when there was none.
    fn subscribe(&self, subscription: Subscription, callback: &str) -> Option<u16> {
        let topic = topic_url(subscription.topic);
        let secret =
            subscription.secret().map(|secret| format!("&hub.secret={secret}")).unwrap_or_default();
        let form = format!("hub.mode=subscribe&hub.topic={topic}&hub.callback={callback}{secret}");
        let headers = "Content-Type: application/x-www-form-urlencoded\r\n";
        self.post(headers, &form).map(|(status, _)| status)
    }

    /// The number of a notification that was accepted, or the status of another answer; `None` when
    /// there was none.
    fn publish(&self, topic: usize, message: &str) -> Option<Result<u64, u16>> {
        let headers = format!(
            "Content-Type: text/plain\r\nAuthorization: Bearer {}\r\nLink: <{}>; rel=\"self\"\r\n",
            self.token,
            topic_url(topic)
        );
        let (status, head) = self.post(&headers, message)?;
        if status != 200 {
            return Some(Err(status));
        }
        let number = head.lines().find_map(|line| {
            line.to_ascii_lowercase().strip_prefix("abreast-offset:")?.trim().parse().ok()
        });
        Some(Ok(number.expect("an accepted notification has a number")))
    }

    fn post(&self, headers: &str, body: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
        let length = body.len();
        write!(
            stream,
            "POST /hub HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}",
            self.address
        )
        .ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, _) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, head.to_owned()))
    }
}

fn topic_url(topic: usize) -> String {
    format!("http://example.org/{topic}")
}
