//! Subscribers of a test: HTTP servers that answer correctly, with an error, late, too early or not
//! at all, and check each delivery when it arrives.

use abreast_testkit::Random;
use abreast_testkit::http::{Request, Server, send};
use abreast_websub::{Key, Method};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Addresses that subscribers are at: each is an origin of its own for the hub.
const LISTENERS: usize = 8;
/// A subscriber takes a delivery at least at this attempt, so that pauses between attempts stay
/// short.
const FAILS: u32 = 2;
/// A repeat is explained by the hub not having recorded for so long. Recording takes a tenth of a
/// second, and longer when the disk is slow.
const UNRECORDED: Duration = Duration::from_secs(5);

/// A subscription: where deliveries of one topic go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subscription {
    pub(crate) number: usize,
    pub(crate) topic: usize,
}

impl Subscription {
    /// Every third one is signed.
    pub(crate) fn secret(self) -> Option<String> {
        self.number.is_multiple_of(3).then(|| format!("secret-{}", self.number))
    }

    fn path(self) -> String {
        format!("/s/{}/{}", self.topic, self.number)
    }

    fn of_path(path: &str) -> Option<Self> {
        let mut parts = path.strip_prefix("/s/")?.split('?').next()?.split('/');
        let topic = parts.next()?.parse().ok()?;
        Some(Self { number: parts.next()?.parse().ok()?, topic })
    }
}

/// What a subscriber saw last, and since when it has what.
struct Seen {
    first: u64,
    offset: u64,
    taken: bool,
    life: u64,
    /// The furthest that was taken.
    furthest: u64,
    /// When each was taken the last time, the last few.
    taken_at: BTreeMap<u64, Instant>,
    fails: u32,
}

#[derive(Default)]
struct Found {
    seen: HashMap<usize, Seen>,
    /// What is at each place of each topic's log.
    messages: BTreeMap<(usize, u64), String>,
    wrong: Vec<String>,
    deliveries: u64,
    repeats: u64,
    failed: u64,
}

/// All subscribers of a test.
pub(crate) struct Receiver {
    servers: Vec<Server>,
    shared: Arc<Shared>,
}

struct Shared {
    found: Mutex<Found>,
    random: Mutex<Random>,
    /// Connections that have recorded a request and not answered it.
    recorded: AtomicUsize,
    /// Counts the starts of the hub.
    life: AtomicU64,
    kills: Mutex<Vec<Instant>>,
    flaky: AtomicBool,
}

/// What a subscriber does with a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Take,
    TakeLate(u64),
    Error,
    /// The connection ends with no answer, at once or after so many milliseconds.
    NoAnswer(u64),
}

impl Receiver {
    pub(crate) fn start(seed: u64) -> Self {
        let shared = Arc::new(Shared::new(seed));
        let listen = |_| {
            let shared = Arc::clone(&shared);
            Server::raw(move |stream| {
                let mut stream = BufReader::new(stream);
                while shared.exchange(&mut stream).is_some() {}
            })
        };
        let servers = (0..LISTENERS).map(listen).collect();
        Self { servers, shared }
    }

    pub(crate) fn callback(&self, subscription: Subscription) -> String {
        self.servers[subscription.number % LISTENERS].url(&subscription.path())
    }

    /// To be called when the hub was killed: returns when everything that it sent is recorded,
    /// before another one starts.
    pub(crate) fn after_kill(&self) {
        for server in &self.servers {
            // The receiver accepts connections in order, so the hub's connections come before this one.
            let mut stream = TcpStream::connect(server.address()).unwrap();
            stream.write_all(b"GET /last HTTP/1.1\r\n\r\n").unwrap();
            let _ = stream.read_to_end(&mut Vec::new());
        }
        // In this order: a connection that records its request in between is not counted as one
        // that reads.
        while self.servers.iter().map(Server::open).sum::<usize>()
            > self.shared.recorded.load(SeqCst)
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.shared.begin_life();
    }

    /// From now on every delivery is taken.
    pub(crate) fn be_good(&self) {
        self.shared.flaky.store(false, SeqCst);
    }

    /// How far a subscription has come without a gap; `None` before its first delivery.
    pub(crate) fn taken(&self, subscription: Subscription) -> Option<u64> {
        self.shared.lock().seen.get(&subscription.number).map(|seen| seen.furthest)
    }

    /// The first number a subscription got.
    pub(crate) fn first(&self, subscription: Subscription) -> Option<u64> {
        self.shared.lock().seen.get(&subscription.number).map(|seen| seen.first)
    }

    /// What was at each place of each topic.
    pub(crate) fn messages(&self) -> BTreeMap<(usize, u64), String> {
        self.shared.lock().messages.clone()
    }

    /// What should not have been, the first few.
    pub(crate) fn wrong(&self) -> Vec<String> {
        self.shared.lock().wrong.iter().take(10).cloned().collect()
    }

    /// Numbers of deliveries: all, repetitions of accepted deliveries, and failed ones.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        let found = self.shared.lock();
        (found.deliveries, found.repeats, found.failed)
    }
}

impl Shared {
    fn new(seed: u64) -> Self {
        Self {
            found: Mutex::default(),
            random: Mutex::new(Random::new(seed)),
            recorded: AtomicUsize::new(0),
            life: AtomicU64::new(0),
            kills: Mutex::default(),
            flaky: AtomicBool::new(true),
        }
    }

    fn begin_life(&self) {
        self.kills.lock().unwrap().push(Instant::now());
        self.life.fetch_add(1, SeqCst);
    }

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
        let subscription = Subscription::of_path(path)?;
        let fate = self.record(subscription, &request, self.fate());
        self.recorded.fetch_add(1, SeqCst);
        match fate {
            Fate::TakeLate(pause) | Fate::NoAnswer(pause) => {
                std::thread::sleep(Duration::from_millis(pause));
            }
            Fate::Take | Fate::Error => {}
        }
        // A client that has the answer may send the next request, which is waited for.
        self.recorded.fetch_sub(1, SeqCst);
        let answer: &[u8] = match fate {
            Fate::Take => b"HTTP/1.1 204 No Content\r\n\r\n",
            Fate::TakeLate(_) => b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
            Fate::Error => b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\nouch",
            Fate::NoAnswer(_) => return None,
        };
        stream.get_mut().write_all(answer).ok()
    }

    /// Checks a delivery, and returns how the receiver reacts.
    fn record(&self, subscription: Subscription, request: &Request, fate: Fate) -> Fate {
        let (life, now) = (self.life.load(SeqCst), Instant::now());
        let message = request.text().trim_end().to_owned();
        let Found { seen, messages, wrong, deliveries, repeats, failed } = &mut *self.lock();
        let mut say = |what: String| wrong.push(format!("{subscription:?}, life {life}: {what}"));
        let Some(offset) =
            request.header("abreast-offset").and_then(|offset| offset.parse::<u64>().ok())
        else {
            say("a delivery without a number".to_owned());
            return Fate::Error;
        };
        let signature = subscription
            .secret()
            .map(|secret| Key::new(Method::Sha256, secret.as_bytes()).sign(&request.body));
        if request.header("x-hub-signature").map(str::to_owned)
            != signature.map(|signature| signature.to_string())
        {
            say(format!("{offset} is not signed as it should be"));
        }
        let before =
            messages.entry((subscription.topic, offset)).or_insert_with(|| message.clone());
        if *before != message {
            say(format!("{offset} was `{before}` and is `{message}`"));
        }
        *deliveries += 1;
        let seen = seen.entry(subscription.number).or_insert_with(|| Seen {
            first: offset,
            offset,
            taken: false,
            life,
            furthest: offset - 1,
            taken_at: BTreeMap::new(),
            fails: 0,
        });
        let next = seen.offset + u64::from(seen.taken);
        if offset > next || offset < seen.first || offset < seen.offset && life == seen.life {
            let after = if seen.taken { "taken" } else { "not taken" };
            say(format!(
                "{offset} came after {} of life {}, which was {after}",
                seen.offset, seen.life
            ));
        }
        if offset <= seen.furthest {
            *repeats += 1;
            if let Some(taken_at) = seen.taken_at.get(&offset) {
                let kill = self.kills.lock().unwrap().iter().copied().find(|kill| kill > taken_at);
                match kill {
                    Some(kill) if kill.duration_since(*taken_at) < UNRECORDED => {}
                    _ => say(format!(
                        "{offset} is repeated though it was taken and no kill came soon after"
                    )),
                }
            }
        }
        let taken = matches!(fate, Fate::Take | Fate::TakeLate(_)) || seen.fails >= FAILS;
        let fate = match fate {
            Fate::Error | Fate::NoAnswer(_) if taken => Fate::Take,
            fate => fate,
        };
        seen.offset = offset;
        seen.life = life;
        seen.taken = taken;
        if taken {
            seen.fails = 0;
            seen.furthest = seen.furthest.max(offset);
            seen.taken_at.insert(offset, now);
            if seen.taken_at.len() > 1_000 {
                seen.taken_at.pop_first();
            }
        } else {
            seen.fails += 1;
            *failed += 1;
        }
        fate
    }

    fn fate(&self) -> Fate {
        if !self.flaky.load(SeqCst) {
            return Fate::Take;
        }
        let mut random = self.random.lock().unwrap();
        match random.below(100) {
            0..3 => Fate::Error,
            3..5 => Fate::NoAnswer(0),
            5 => Fate::NoAnswer(random.below(1_500)),
            6..10 => Fate::TakeLate(random.below(300)),
            _ => Fate::Take,
        }
    }
}

#[test]
fn a_receiver_notices_what_no_hub_may_do() {
    use Fate::{Error, Take};
    const KILL: (u64, Fate) = (0, Take);
    const FIRST: [(u64, Fate); 2] = [(1, Take), (2, Take)];
    let wrong_after = |then: &[(u64, Fate)]| {
        let shared = Shared::new(1);
        for (offset, fate) in FIRST.iter().chain(then) {
            if (*offset, *fate) == KILL {
                shared.begin_life();
                continue;
            }
            let body = offset.to_string();
            let head = format!(
                "POST / HTTP/1.1\r\nabreast-offset: {body}\r\ncontent-length: {}\r\n",
                body.len()
            );
            let request = Request::read(&mut format!("{head}\r\n{body}").as_bytes()).unwrap();
            let subscription = Subscription { number: 1, topic: 0 };
            shared.record(subscription, &request, *fate);
        }
        !shared.lock().wrong.is_empty()
    };
    for right in [
        &[(3, Take)][..],
        &[(3, Error), (3, Take), (4, Take)],
        &[KILL, (1, Take), (2, Error), (2, Take), (3, Take)],
        &[KILL, (1, Take), KILL, (2, Take), KILL, (3, Take)],
    ] {
        assert!(!wrong_after(right));
    }
    for wrong in [
        &[(4, Take)][..],
        &[(2, Take)],
        &[(3, Error), (4, Take)],
        &[KILL, (4, Take)],
        &[KILL, (1, Take), (3, Take)],
        &[KILL, (1, Error), (2, Take)],
        &[(3, Take), (1, Take)],
    ] {
        assert!(wrong_after(wrong));
    }
}
