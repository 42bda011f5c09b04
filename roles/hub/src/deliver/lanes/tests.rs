use super::*;

fn lanes(all: usize, per_origin: usize) -> Lanes<u32> {
    Lanes::new(LaneOptions { all, per_origin, late: 4, breaker_failures: 3, ..LaneOptions::default() })
}

fn all_next(lanes: &mut Lanes<u32>, now: Instant) -> Vec<Flight<u32>> {
    std::iter::from_fn(|| lanes.next(now)).collect()
}

fn items(flights: &[Flight<u32>]) -> Vec<u32> {
    flights.iter().map(|flight| flight.item).collect()
}

#[test]
fn origins_take_turns_and_have_a_few_places_each() {
    let (mut lanes, now) = (lanes(100, 2), Instant::now());
    for item in 0..5 {
        lanes.push("a", item, false, now);
    }
    lanes.push("b", 10, false, now);
    let flights = all_next(&mut lanes, now);
    assert_eq!(items(&flights), [0, 10, 1]);
    lanes.finish(&flights[0], Contact::Answered, now);
    assert_eq!(items(&all_next(&mut lanes, now)), [2]);
    assert_eq!(lanes.load(), Load { ready: 2, flying: 3, slow: 0, broken: 0 });
}

#[test]
fn whoever_hangs_makes_room() {
    let (mut lanes, now) = (lanes(100, 2), Instant::now());
    for item in 0..5 {
        lanes.push("a", item, false, now);
    }
    let hanging = all_next(&mut lanes, now);
    let due = lanes.due().unwrap();
    assert!(due > now && due <= now + Duration::from_millis(250));
    lanes.tick(due);
    assert_eq!(items(&all_next(&mut lanes, due)), [2, 3]);
    assert_eq!(lanes.load().slow, 2);
    lanes.finish(&hanging[0], Contact::Silent, due);
    assert_eq!((lanes.load().slow, lanes.load().flying), (1, 3));
}

#[test]
fn places_of_all_are_given_up_too() {
    let (mut lanes, now) = (lanes(3, 2), Instant::now());
    for (item, origin) in ["a", "b", "c", "d"].iter().enumerate() {
        lanes.push(origin, item as u32, false, now);
    }
    assert_eq!(all_next(&mut lanes, now).len(), 3);
    let later = now + Duration::from_millis(300);
    assert!(lanes.due().unwrap() <= later);
    lanes.tick(later);
    assert_eq!(items(&all_next(&mut lanes, later)), [3]);
}

#[test]
fn repeated_attempts_have_places_apart() {
    let (mut lanes, now) = (lanes(2, 2), Instant::now());
    for item in 0..9 {
        lanes.push(["a", "b", "c"][item as usize % 3], item, true, now);
    }
    assert_eq!(items(&all_next(&mut lanes, now)), [0, 1, 2], "one to an origin");
    lanes.push("a", 100, false, now);
    assert_eq!(items(&all_next(&mut lanes, now)), [100]);
}

#[test]
fn an_origin_without_connections_is_left_alone_and_then_tried_with_one() {
    let (mut lanes, now) = (lanes(100, 3), Instant::now());
    for item in 0..9 {
        lanes.push("a", item, false, now);
    }
    for flight in all_next(&mut lanes, now) {
        lanes.finish(&flight, Contact::Unreachable, now);
    }
    assert!(all_next(&mut lanes, now).is_empty());
    assert_eq!(lanes.load().broken, 1);
    let (later, probe) = wait(&mut lanes);
    assert_eq!((later, probe.len()), (now + Duration::from_secs(30), 1));
    lanes.finish(&probe[0], Contact::Unreachable, later);
    assert!(all_next(&mut lanes, later).is_empty());
    let (later, probe) = wait(&mut lanes);
    assert_eq!((later, probe.len()), (now + Duration::from_secs(60), 1));
    lanes.finish(&probe[0], Contact::Answered, later);
    assert_eq!(all_next(&mut lanes, later).len(), 3);
    assert_eq!(lanes.load().broken, 0);
}

/// Lets time pass until something may begin.
fn wait(lanes: &mut Lanes<u32>) -> (Instant, Vec<Flight<u32>>) {
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
            lanes.push(&format!("{round} {item}"), item, false, now);
        }
        let mut seen = 0;
        while let Some(flight) = lanes.next(now) {
            lanes.finish(&flight, Contact::Answered, now);
            seen += 1;
        }
        assert_eq!(seen, 20_000);
    }
    assert!(lanes.by_key.len() <= 60_000 && lanes.origins.len() <= 60_000, "{}", lanes.origins.len());
}

#[test]
fn whatever_happens_everything_gets_its_turn_once() {
    let mut lanes = lanes(5, 2);
    let (mut now, mut state, mut seen, mut flying) = (Instant::now(), 1_u64, Vec::new(), Vec::new());
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for item in 0..2_000 {
        let origin = format!("o{}", random(7));
        lanes.push(&origin, item, random(4) == 0, now);
        while let Some(flight) = lanes.next(now) {
            flying.push(flight);
        }
        if random(3) > 0 && !flying.is_empty() {
            let flight = flying.swap_remove(random(flying.len() as u64) as usize);
            seen.push(flight.item);
            let contact = [Contact::Answered, Contact::Unreachable, Contact::Silent][random(3) as usize];
            lanes.finish(&flight, contact, now);
        }
        now += Duration::from_millis(random(30));
        lanes.tick(now);
    }
    for _ in 0..200_000 {
        while let Some(flight) = lanes.next(now) {
            flying.push(flight);
        }
        let Some(flight) = flying.pop() else {
            match lanes.due() {
                Some(due) => now = due,
                None => break,
            }
            lanes.tick(now);
            continue;
        };
        seen.push(flight.item);
        lanes.finish(&flight, Contact::Answered, now);
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..2_000).collect::<Vec<_>>());
    assert_eq!(lanes.load(), Load::default());
}
