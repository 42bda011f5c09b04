use super::*;
use crate::deliver::pace::Pace;
use crate::deliver::pace::Pace::{New, Quick, Silent, Slow};
use abreast_testkit::Random;

const MS: fn(u64) -> Duration = Duration::from_millis;

fn lanes(all: usize, per_host: usize) -> Lanes<u32> {
    Lanes::new(LaneOptions {
        all,
        new: all,
        per_host,
        breaker_failures: 3,
        ..LaneOptions::default()
    })
}

fn push(lanes: &mut Lanes<u32>, url: &str, item: u32, pace: Pace, now: Instant) {
    lanes.push(lanes.name_of(url), item, pace, Duration::from_secs(1), now);
}

fn all_next(lanes: &mut Lanes<u32>, now: Instant) -> Vec<Exchange<u32>> {
    std::iter::from_fn(|| lanes.next(now, None)).collect()
}

fn items(flights: &[Exchange<u32>]) -> Vec<u32> {
    flights.iter().map(|exchange| exchange.item).collect()
}

#[test]
fn hosts_take_turns_and_have_a_few_places_each() {
    let (mut lanes, now) = (lanes(100, 2), Instant::now());
    for item in 0..5 {
        push(&mut lanes, "http://a:1/x", item, Quick, now);
    }
    push(&mut lanes, "http://b", 10, Quick, now);
    let flights = all_next(&mut lanes, now);
    assert_eq!(items(&flights), [0, 10, 1]);
    lanes.finish(&flights[0], ExchangeEnd::Answered, now);
    assert_eq!(items(&all_next(&mut lanes, now)), [2]);
    assert_eq!(lanes.load(), Load { ready: 2, flying: 3, slow: 0, broken: 0 });
}

#[test]
fn ports_of_a_host_share_its_places_and_take_turns() {
    let (mut lanes, now) = (lanes(100, 3), Instant::now());
    for item in 0..5 {
        push(&mut lanes, "http://a:1/", item, New, now);
    }
    push(&mut lanes, "http://a:2/", 10, New, now);
    push(&mut lanes, "https://A:3/", 20, New, now);
    assert_eq!(items(&all_next(&mut lanes, now)), [0, 10, 20]);
}

#[test]
fn a_delivery_that_hangs_makes_room() {
    let (mut lanes, now) = (lanes(100, 2), Instant::now());
    for item in 0..5 {
        push(&mut lanes, "http://a", item, Quick, now);
    }
    let hanging = all_next(&mut lanes, now);
    let due = lanes.due().unwrap();
    assert!(due > now && due <= now + MS(250));
    lanes.tick(due);
    assert_eq!(items(&all_next(&mut lanes, due)), [2, 3]);
    assert_eq!(lanes.load().slow, 2);
    lanes.finish(&hanging[0], ExchangeEnd::Silent, due);
    assert_eq!((lanes.load().slow, lanes.load().flying), (1, 3));
}

#[test]
fn nobody_leaves_a_place_that_nobody_waits_for() {
    let (mut lanes, now) = (lanes(3, 2), Instant::now());
    for (item, host) in ["http://a", "http://b"].iter().enumerate() {
        push(&mut lanes, host, item as u32, Quick, now);
    }
    assert_eq!((all_next(&mut lanes, now).len(), lanes.due()), (2, None));
    // One waits for a place of its host: others keep theirs.
    for item in 10..13 {
        push(&mut lanes, "http://c", item, New, now);
    }
    all_next(&mut lanes, now);
    let later = now + MS(300);
    lanes.tick(later);
    assert_eq!((items(&all_next(&mut lanes, later)), lanes.load().slow), (vec![12], 1));
}

#[test]
fn places_of_all_are_given_up_too() {
    let (mut lanes, now) = (lanes(3, 2), Instant::now());
    for (item, host) in ["http://a", "http://b", "http://c", "http://d"].iter().enumerate() {
        push(&mut lanes, host, item as u32, Quick, now);
    }
    assert_eq!(all_next(&mut lanes, now).len(), 3);
    let later = now + MS(300);
    assert!(lanes.due().unwrap() <= later);
    lanes.tick(later);
    assert_eq!(items(&all_next(&mut lanes, later)), [3]);
}

#[test]
fn each_pace_has_places_of_its_own() {
    let mut lanes =
        Lanes::new(LaneOptions { all: 1, new: 1, slow: 1, silent: 1, ..LaneOptions::default() });
    let now = Instant::now();
    for (round, pace) in
        [Silent, Slow, New, Quick, Silent, Slow, New, Quick].into_iter().enumerate()
    {
        push(&mut lanes, "http://a", round as u32, pace, now);
    }
    assert_eq!(items(&all_next(&mut lanes, now)), [3, 2, 1, 0]);
}

#[test]
fn pace_follows_from_how_the_last_exchange_ended() {
    use ExchangeEnd::{Answered, Silent as Unanswered};
    for (before, took, contact, after) in [
        (New, 3, Answered, Quick),
        (New, 3, Unanswered, Quick),
        (Quick, 300, Answered, Slow),
        (Quick, 30_000, Unanswered, Slow),
        (Slow, 30_000, Unanswered, Silent),
        (Silent, 300, Answered, Slow),
        (Silent, 3, Answered, Quick),
    ] {
        let (mut lanes, now) = (lanes(1, 1), Instant::now());
        push(&mut lanes, "http://a", 1, before, now);
        let exchange = lanes.next(now, None).unwrap();
        assert_eq!(
            lanes.finish(&exchange, contact, now + MS(took)),
            after,
            "{before:?} {took} {contact:?}"
        );
    }
}

#[test]
fn recipients_cut_off_soon_are_not_fast() {
    for before in [New, Quick, Slow] {
        let options = LaneOptions { all: 1, new: 1, slow: 1, aside: 0, ..LaneOptions::default() };
        let (mut lanes, mut now) = (Lanes::new(options), Instant::now());
        // Its host answers fast, so exchanges with it keep others waiting for 20 ms only.
        push(&mut lanes, "http://a", 0, Quick, now);
        let exchange = lanes.next(now, None).unwrap();
        lanes.finish(&exchange, ExchangeEnd::Answered, now + MS(1));
        for item in [1, 2] {
            lanes.push(lanes.name_of("http://a"), item, before, MS(20), now);
        }
        let cut = Arc::default();
        let exchange = lanes.next(now, Some(&cut)).unwrap();
        now += MS(20);
        lanes.tick(now);
        assert!(is_cut(&cut, &exchange));
        let after = if before == Slow { Silent } else { Slow };
        assert_eq!(lanes.finish(&exchange, ExchangeEnd::Silent, now), after, "{before:?}");
    }
}

#[test]
fn new_recipients_do_not_take_the_room_aside_of_fast_ones() {
    let mut lanes = Lanes::new(LaneOptions { all: 1, new: 1, aside: 4, ..LaneOptions::default() });
    let mut now = Instant::now();
    for item in 0..3 {
        push(&mut lanes, "http://a", item, New, now);
        push(&mut lanes, "http://a", 10 + item, Quick, now);
    }
    let mut begun = Vec::new();
    for _ in 0..2 {
        for expected in [Quick, New] {
            let cut = Arc::default();
            let exchange = lanes.next(now, Some(&cut)).unwrap();
            assert_eq!(exchange.pace, expected);
            begun.push((exchange, cut));
        }
        now += MS(300);
        lanes.tick(now);
    }
    let cut: Vec<_> = begun.iter().map(|(exchange, cut)| is_cut(cut, exchange)).collect();
    assert_eq!(cut, [false, false, true, true], "one of each for this host");
}

/// Whether a runner's exchange is cut off within a moment.
fn is_cut(cut: &Arc<CancelSignal>, exchange: &Exchange<u32>) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async { cut.unless(exchange, tokio::time::sleep(MS(20))).await.is_none() })
}

#[test]
fn exchange_without_reserve_slot_is_cut_off() {
    let mut lanes = Lanes::new(LaneOptions { all: 1, aside: 4, ..LaneOptions::default() });
    let mut now = Instant::now();
    let mut begun = Vec::new();
    for item in 0..3 {
        push(&mut lanes, "http://a", item, Quick, now);
    }
    for item in 0..3 {
        let cut = Arc::default();
        let exchange = lanes.next(now, Some(&cut)).unwrap();
        assert_eq!(exchange.item, item);
        begun.push((exchange, cut));
        now += MS(300);
        lanes.tick(now);
    }
    let cut: Vec<_> = begun.iter().map(|(exchange, cut)| is_cut(cut, exchange)).collect();
    assert_eq!(
        cut,
        [false, true, false],
        "one of four places aside is for this host; nobody waits for the last"
    );
    for (exchange, _) in &begun {
        lanes.finish(exchange, ExchangeEnd::Silent, now);
    }
    assert_eq!(lanes.load(), Load::default());
}

#[test]
fn slow_recipients_keep_their_slots_until_others_wait() {
    let mut lanes = Lanes::new(LaneOptions { slow: 1, ..LaneOptions::default() });
    let now = Instant::now();
    push(&mut lanes, "http://a", 0, Slow, now);
    let cut = Arc::default();
    let exchange = lanes.next(now, Some(&cut)).unwrap();
    let later = now + Duration::from_secs(20);
    lanes.tick(later);
    assert!(!is_cut(&cut, &exchange));
    push(&mut lanes, "http://b", 1, Slow, later);
    lanes.tick(later);
    assert!(is_cut(&cut, &exchange));
    assert_eq!(items(&all_next(&mut lanes, later)), [1]);
}

#[test]
fn a_cut_that_comes_too_late_does_not_end_the_next_exchange() {
    let (mut lanes, now) = (lanes(2, 2), Instant::now());
    push(&mut lanes, "http://a", 0, Quick, now);
    push(&mut lanes, "http://a", 1, Quick, now);
    let cut = Arc::default();
    let first = lanes.next(now, Some(&cut)).unwrap();
    cut.cut(first.number);
    lanes.finish(&first, ExchangeEnd::Answered, now);
    let second = lanes.next(now, Some(&cut)).unwrap();
    assert!(!is_cut(&cut, &second));
}

#[test]
fn unreachable_origin_is_paused_then_tried_once() {
    let (mut lanes, now) = (lanes(100, 3), Instant::now());
    for item in 0..9 {
        push(&mut lanes, "http://a", item, Quick, now);
    }
    for exchange in all_next(&mut lanes, now) {
        lanes.finish(&exchange, ExchangeEnd::Unreachable, now);
    }
    assert!(all_next(&mut lanes, now).is_empty());
    assert_eq!(lanes.load().broken, 1);
    // Another port of its host is not concerned.
    push(&mut lanes, "http://a:8080", 100, Quick, now);
    let other = all_next(&mut lanes, now);
    assert_eq!(items(&other), [100]);
    lanes.finish(&other[0], ExchangeEnd::Answered, now);
    let (later, probe) = wait(&mut lanes);
    assert_eq!((later, probe.len()), (now + Duration::from_secs(30), 1));
    lanes.finish(&probe[0], ExchangeEnd::Unreachable, later);
    assert!(all_next(&mut lanes, later).is_empty());
    let (later, probe) = wait(&mut lanes);
    assert_eq!((later, probe.len()), (now + Duration::from_secs(60), 1));
    lanes.finish(&probe[0], ExchangeEnd::Answered, later);
    assert_eq!(all_next(&mut lanes, later).len(), 3);
    assert_eq!(lanes.load().broken, 0);
}

/// Lets time pass until something may begin.
fn wait(lanes: &mut Lanes<u32>) -> (Instant, Vec<Exchange<u32>>) {
    loop {
        let due = lanes.due().unwrap();
        lanes.tick(due);
        let flights = all_next(lanes, due);
        if !flights.is_empty() {
            return (due, flights);
        }
    }
}

#[test]
fn origins_with_nothing_to_do_are_forgotten() {
    let (mut lanes, now) = (lanes(100, 2), Instant::now());
    for round in 0..5 {
        for item in 0..20_000 {
            push(&mut lanes, &format!("http://h{round}-{item}/"), item, New, now);
        }
        let mut seen = 0;
        while let Some(exchange) = lanes.next(now, None) {
            lanes.finish(&exchange, ExchangeEnd::Answered, now);
            seen += 1;
        }
        assert_eq!(seen, 20_000);
    }
    assert!(
        lanes.by_origin.len() <= 60_000 && lanes.origins.len() <= 60_000,
        "{}",
        lanes.origins.len()
    );
    assert_eq!(lanes.by_host.len(), lanes.hosts.len());
}

/// A network of recipients in simulated time: how long the deliveries of the others wait while many
/// hang.
struct Network {
    lanes: Lanes<u32>,
    now: Instant,
    paces: Vec<Pace>,
    flying: BinaryHeap<Reverse<(Instant, usize)>>,
    flights: Vec<(Exchange<u32>, Arc<CancelSignal>)>,
    /// Which of these ended.
    done: Vec<bool>,
    urls: Vec<String>,
    /// When each was pushed.
    pushed: Vec<Instant>,
    failed_once: Vec<bool>,
}

impl Network {
    const HEALTHY: u32 = 200;

    fn new(urls: Vec<String>) -> Self {
        let (now, recipients) = (Instant::now(), urls.len());
        Self {
            lanes: Lanes::new(LaneOptions::default()),
            now,
            paces: vec![New; recipients],
            flying: BinaryHeap::new(),
            flights: Vec::new(),
            done: Vec::new(),
            urls,
            pushed: vec![now; recipients],
            failed_once: vec![false; recipients],
        }
    }

    fn push(&mut self, item: u32) {
        let at = item as usize;
        self.pushed[at] = self.now;
        let to = self.lanes.name_of(&self.urls[at]);
        self.lanes.push(to, item, self.paces[at], Duration::from_secs(1), self.now);
    }

    fn begin(&mut self) {
        loop {
            let cut = Arc::default();
            let Some(exchange) = self.lanes.next(self.now, Some(&cut)) else { return };
            let takes = if exchange.item < Self::HEALTHY { MS(2) } else { Duration::from_secs(30) };
            self.flying.push(Reverse((self.now + takes, self.flights.len())));
            self.flights.push((exchange, cut));
            self.done.push(false);
        }
    }

    /// Runs until all of the healthy have theirs, of which a tenth fails once; the longest wait for
    /// any of it.
    fn run(&mut self) -> Duration {
        let (mut healthy, mut longest) = (Self::HEALTHY, Duration::ZERO);
        while healthy > 0 {
            self.begin();
            let end = self.flying.peek().map(|Reverse((due, _))| *due);
            self.now = [end, self.lanes.due()].into_iter().flatten().min().unwrap().max(self.now);
            self.lanes.tick(self.now);
            let cut: Vec<usize> = (0..self.flights.len())
                .filter(|at| !self.done[*at])
                .filter(|at| {
                    let (exchange, cut) = &self.flights[*at];
                    cut.lock().number == exchange.number
                })
                .collect();
            let mut ended = cut;
            while let Some(Reverse((due, at))) = self.flying.peek().copied()
                && due <= self.now
            {
                self.flying.pop();
                if !self.done[at] && !ended.contains(&at) {
                    ended.push(at);
                }
            }
            for at in ended {
                self.done[at] = true;
                let (exchange, now) = (self.flights[at].0, self.now);
                let is_healthy = exchange.item < Self::HEALTHY;
                let contact = if is_healthy { ExchangeEnd::Answered } else { ExchangeEnd::Silent };
                self.paces[exchange.item as usize] = self.lanes.finish(&exchange, contact, now);
                let failed = &mut self.failed_once[exchange.item as usize];
                *failed = exchange.item % 10 == 0 && !*failed;
                if is_healthy {
                    longest = longest.max(now - self.pushed[exchange.item as usize]);
                }
                if is_healthy && !*failed {
                    healthy -= 1;
                } else {
                    // Repeated at once, which is the worst.
                    self.push(exchange.item);
                }
            }
        }
        longest
    }
}

#[test]
fn hanging_recipients_do_not_delay_the_others() {
    type TargetIndex = fn(u32) -> String;
    let places: [(&str, TargetIndex); 3] = [
        ("one port", |_| "http://h:1/".to_owned()),
        ("one host", |item| format!("http://h:{item}/")),
        ("many hosts", |item| format!("http://h{item}/")),
    ];
    for (name, place) in places {
        let mut alone = Duration::ZERO;
        for hanging in [0, 10, 100, 1_000, 5_000] {
            let mut network = Network::new((0..Network::HEALTHY + hanging).map(place).collect());
            let mut worst = Duration::ZERO;
            for round in 0..5 {
                // Those who hang come first: they are in the way.
                for item in (0..Network::HEALTHY + if round == 0 { hanging } else { 0 }).rev() {
                    network.push(item);
                }
                let longest = network.run();
                // In the first round nobody is known.
                worst = worst.max(if round == 0 { Duration::ZERO } else { longest });
            }
            if hanging == 0 {
                alone = worst;
            }
            assert!(worst <= alone * 3 / 2, "{hanging} on {name}: {worst:?}, alone {alone:?}");
        }
    }
}

#[test]
fn hosts_that_never_answered_keep_others_waiting_for_less_time() {
    for hanging in [100, 1_000, 5_000] {
        let mut network =
            Network::new(vec!["http://h/".to_owned(); (Network::HEALTHY + hanging) as usize]);
        for item in (0..Network::HEALTHY + hanging).rev() {
            network.push(item);
        }
        let longest = network.run();
        // 20 ms for each eight that hang, and a second until that is so; with 250 ms each it would
        // be 156 s.
        let most = MS(20) * (hanging / 8) + MS(1_000);
        assert!(longest <= most, "{hanging}: {longest:?}");
    }
}

#[test]
fn whatever_happens_everything_gets_its_turn_once() {
    let mut lanes = lanes(5, 2);
    let (mut now, mut seen, mut flying) = (Instant::now(), Vec::new(), Vec::new());
    let mut random = Random::new(1);
    for item in 0..2_000 {
        let url = format!("http://o{}:{}", random.below(5), random.below(2));
        let pace = [New, Quick, Slow, Silent][random.below(4) as usize];
        lanes.push(lanes.name_of(&url), item, pace, MS(random.below(100)), now);
        while let Some(exchange) = lanes.next(now, None) {
            flying.push(exchange);
        }
        if random.below(3) > 0 && !flying.is_empty() {
            let exchange = flying.swap_remove(random.below(flying.len() as u64) as usize);
            seen.push(exchange.item);
            let contact = [ExchangeEnd::Answered, ExchangeEnd::Unreachable, ExchangeEnd::Silent]
                [random.below(3) as usize];
            lanes.finish(&exchange, contact, now);
        }
        now += MS(random.below(30));
        lanes.tick(now);
    }
    for _ in 0..200_000 {
        while let Some(exchange) = lanes.next(now, None) {
            flying.push(exchange);
        }
        let Some(exchange) = flying.pop() else {
            match lanes.due() {
                Some(due) => now = due,
                None => break,
            }
            lanes.tick(now);
            continue;
        };
        seen.push(exchange.item);
        lanes.finish(&exchange, ExchangeEnd::Answered, now);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..2_000).collect::<Vec<_>>());
    assert_eq!(lanes.load(), Load::default());
    assert!(lanes.slots.is_empty() && lanes.by_pace.iter().all(|lane| lane.overdue.is_empty()));
}
