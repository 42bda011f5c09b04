//! Subscribers of several nodes: they answer correctly, with an error or not at all, and check that
//! no notification is skipped.

use abreast_testkit::Random;
use abreast_testkit::http::{Request, Server, send};
use abreast_websub::{Key, Method};
use std::collections::BTreeMap;
use std::io::{BufReader, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Addresses of the subscribers: each is an origin of its own for the hub.
const LISTENERS: usize = 8;
/// A subscriber takes a delivery at least at this attempt, so that pauses between attempts stay
/// short.
const FAILS: u32 = 2;

/// What the subscribers counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) deliveries: u64,
    /// Deliveries of what was taken before.
    pub(crate) repeats: u64,
    pub(crate) failed: u64,
    /// The longest time without any delivery.
    pub(crate) silence: Duration,
}

#[derive(Clone, Copy, Default)]
struct Seen {
    /// The last offset up to which all were taken, after the first.
    furthest: Option<u64>,
    fails: u32,
}

struct Found {
    seen: Vec<Seen>,
    messages: BTreeMap<(usize, u64), String>,
    wrong: Vec<String>,
    counts: Counts,
    last: Instant,
}

/// All subscribers of a test; each has one topic.
pub(crate) struct Subscribers {
    servers: Vec<Server>,
    topics: usize,
    shared: Arc<Shared>,
}

struct Shared {
    topics: usize,
    found: Mutex<Found>,
    random: Mutex<Random>,
    flaky: AtomicBool,
}

impl Subscribers {
    pub(crate) fn start(count: usize, topics: usize, seed: u64) -> Self {
        let found = Found {
            seen: vec![Seen::default(); count],
            messages: BTreeMap::new(),
            wrong: Vec::new(),
            counts: Counts::default(),
            last: Instant::now(),
        };
        let shared = Arc::new(Shared {
            topics,
            found: Mutex::new(found),
            random: Mutex::new(Random::new(seed)),
            flaky: AtomicBool::new(true),
        });
        let listen = |_| {
            let shared = Arc::clone(&shared);
            Server::raw(move |stream| {
                let mut stream = BufReader::new(stream);
                while shared.exchange(&mut stream).is_some() {}
            })
        };
        Self { servers: (0..LISTENERS).map(listen).collect(), topics, shared }
    }

    pub(crate) fn len(&self) -> usize {
        self.shared.lock().seen.len()
    }

    pub(crate) fn callback(&self, number: usize) -> String {
        self.servers[number % LISTENERS].url(&format!("/s/{number}"))
    }

    /// From now on every delivery is taken.
    pub(crate) fn be_good(&self) {
        self.shared.flaky.store(false, SeqCst);
    }

    /// How far the slowest of all has come; `None` before everybody has something.
    pub(crate) fn slowest(&self) -> Option<u64> {
        self.shared.lock().seen.iter().map(|seen| seen.furthest).min().flatten()
    }

    /// How far the slowest subscriber of a topic has come.
    pub(crate) fn slowest_of(&self, topic: usize) -> u64 {
        let found = self.shared.lock();
        let of_topic = found.seen.iter().skip(topic).step_by(self.topics);
        of_topic.map(|seen| seen.furthest.unwrap_or(0)).min().unwrap_or(0)
    }

    /// Whether a subscriber lacks this many of the notifications that others received.
    pub(crate) fn is_behind(&self, by: u64) -> bool {
        let found = self.shared.lock();
        let mut last = vec![0; self.topics];
        for (topic, offset) in found.messages.keys() {
            last[*topic] = last[*topic].max(*offset);
        }
        found.seen.iter().enumerate().any(|(number, seen)| {
            seen.furthest.is_some_and(|furthest| furthest + by <= last[number % self.topics])
        })
    }

    pub(crate) fn messages(&self) -> BTreeMap<(usize, u64), String> {
        self.shared.lock().messages.clone()
    }

    /// What should not have been, the first few.
    pub(crate) fn wrong(&self) -> Vec<String> {
        self.shared.lock().wrong.iter().take(1_000).cloned().collect()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.shared.lock().counts
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap()
    }

    /// One request and its answer; `None` ends the connection.
    fn exchange(&self, stream: &mut BufReader<TcpStream>) -> Option<()> {
        let request = Request::read(stream)?;
        let path = request.target();
        if request.method() != "POST" {
            let (_, challenge) = path.split_once("hub.challenge=")?;
            let challenge = challenge.split('&').next()?;
            return send(stream.get_mut(), "200 OK", "", challenge.as_bytes()).then_some(());
        }
        let number: usize = path.strip_prefix("/s/")?.split('?').next()?.parse().ok()?;
        // Of a hundred deliveries, five get an error and five no answer.
        let chance = self.random.lock().unwrap().below(100);
        let chance = if self.flaky.load(SeqCst) { chance } else { 100 };
        let is_taken = self.record(number, &request, chance >= 10);
        let answer: &[u8] = if is_taken {
            b"HTTP/1.1 204 No Content\r\n\r\n"
        } else if chance < 5 {
            b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\nouch"
        } else {
            return None;
        };
        stream.get_mut().write_all(answer).ok()
    }

    /// Checks a delivery; returns whether the subscriber takes it.
    fn record(&self, number: usize, request: &Request, wants: bool) -> bool {
        let topic = number % self.topics;
        let message = request.text().trim_end().to_owned();
        let Found { seen, messages, wrong, counts, last } = &mut *self.lock();
        let mut say = |what: String| wrong.push(format!("subscriber {number}: {what}"));
        let offset = request.header("abreast-offset").and_then(|text| text.parse::<u64>().ok());
        let Some(offset) = offset else {
            say("a delivery without a number".to_owned());
            return false;
        };
        let signature = Key::new(Method::Sha256, b"hidden").sign(&request.body).to_string();
        if request.header("x-hub-signature") != Some(&*signature) {
            say(format!("{offset} is not signed as it should be"));
        }
        let before = messages.entry((topic, offset)).or_insert_with(|| message.clone());
        if *before != message {
            say(format!("{offset} was `{before}` and is `{message}`"));
        }
        counts.deliveries += 1;
        counts.silence = counts.silence.max(last.elapsed());
        *last = Instant::now();
        let seen = &mut seen[number];
        // The first one is where the subscription started.
        let next = seen.furthest.map_or(offset, |furthest| furthest + 1);
        if offset > next {
            say(format!("{offset} came before {next}"));
        }
        counts.repeats += u64::from(offset < next);
        if !wants && seen.fails < FAILS {
            seen.fails += 1;
            counts.failed += 1;
            return false;
        }
        seen.fails = 0;
        seen.furthest = Some(offset.max(next - 1));
        true
    }
}
