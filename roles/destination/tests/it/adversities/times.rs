//! Times: in the future, coarse, equal, out of order, and of changes that are published late.

use super::history::{
    BEGIN, Change, Clock, DAY, FUTURE, HOUR, History, Kind, MINUTE, Precision, SECOND,
};
use super::table::{EMM_ON, Row, check, row};
use super::world::{Checked, World};
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) const FUTURES: &[Row] = &[
    row("future: one change, with Date", |it| one_in_future(it, Clock::Right)),
    row("future: one change, without Date", |it| one_in_future(it, Clock::None)),
    row("future: all times, with Date", |it| all_in_future(it, Clock::Stopped(BEGIN + 30 * DAY))),
    row("future: all times, without Date", |it| all_in_future(it, Clock::None)),
    row("future: a clock that is corrected, with Date", |it| corrected(it, true)),
    row("future: a clock that is corrected, without Date", |it| corrected(it, false)),
    row("future: the list of all, without Date", list_in_future),
];

pub(super) const COARSE: &[Row] = &[
    row("coarse: changes in days", |it| coarse(it, Precision::Day, Precision::Full)),
    row("coarse: changes in minutes", |it| coarse(it, Precision::Minute, Precision::Full)),
    row("coarse: changes in seconds", |it| coarse(it, Precision::Second, Precision::Full)),
    row("coarse: spans in days", |it| coarse(it, Precision::Full, Precision::Day)),
    row("coarse: spans in half seconds", |it| coarse(it, Precision::Full, Precision::Half)),
    row("coarse: all in days", |it| coarse(it, Precision::Day, Precision::Day)),
    row("coarse: all in minutes", |it| coarse(it, Precision::Minute, Precision::Minute)),
];

pub(super) const EQUAL: &[Row] = &[
    row("equal: two on one page, fine", |it| equal(it, Place::Page, true)),
    row("equal: two on one page, whole second", |it| equal(it, Place::Page, false)),
    row("equal: over a border of pages, fine", |it| equal(it, Place::Border, true)),
    row("equal: over a border of pages, whole second", |it| equal(it, Place::Border, false)),
    row("equal: over two runs, fine", |it| equal(it, Place::Runs, true)),
    row("equal: over two runs, whole second", |it| equal(it, Place::Runs, false)),
    row("equal: over runs and pages, fine", |it| equal(it, Place::RunsAndPages, true)),
    row("equal: over runs and pages, whole second", |it| equal(it, Place::RunsAndPages, false)),
    row("equal: other entities in the next run", others_at_one_time),
];

pub(super) const ORDER: &[Row] = &[
    row("order: pages are reversed", |it| order(it, |changes| changes.reverse())),
    row("order: pages are shuffled", |it| order(it, |changes| changes.rotate_left(1))),
    row("late: a change comes before others in time", |it| late(it, false)),
    row("late: a deletion comes before others in time", |it| late(it, true)),
    row("late: changes are older than a list of all without them", late_for_list),
];

#[test]
fn times_in_the_future_hide_nothing() {
    check(FUTURES);
}

#[test]
fn coarse_times_hide_nothing() {
    check(COARSE);
}

#[test]
fn changes_of_one_time_are_all_applied() {
    check(EQUAL);
}

#[test]
fn changes_out_of_order_are_applied() {
    check(ORDER);
}

fn one_in_future(world: &mut World, clock: Clock) -> Checked {
    world.history.clock = clock;
    world.begin(4)?;
    world.history.set_at(1, FUTURE + 5);
    world.history.set(2);
    world.run()?.right()?;
    world.run()?.right()?.costs(2, 10)?;
    world.history.set(3);
    world.history.delete(2);
    world.history.create([5]);
    world.run()?.right()?;
    world.history.delete(0);
    world.history.set(5);
    world.run()?.right()?;
    world.run()?.right()?.costs(2, 10).map(drop)
}

fn all_in_future(world: &mut World, clock: Clock) -> Checked {
    world.history.clock = clock;
    world.history.now = FUTURE;
    // The first entity has this time too: a Source's clock that jumped is in
    // `a clock that is corrected`.
    world.history.pages[0].changes[0].time = FUTURE;
    world.history.make_snapshot();
    world.begin(4)?;
    world.history.set(1);
    world.history.delete(2);
    world.run()?.right()?;
    world.history.set(1);
    world.history.create([2, 6]);
    world.history.delete(0);
    world.run()?.right()?;
    // The clock of the copy never gets there: changes are read again, but not the entities.
    world.run()?.right()?.costs(5, 12).map(drop)
}

/// All times of the Source's clock are in 2099, and right again later. Then nothing shows whether
/// changes were missed.
fn corrected(world: &mut World, has_date: bool) -> Checked {
    world.history.now = FUTURE;
    world.history.clock = if has_date { Clock::Right } else { Clock::None };
    world.history.make_snapshot();
    world.begin(4)?;
    world.history.set(1);
    world.run()?.right()?;
    world.is_audit_blind = true;
    world.may_go_back = true;
    world.history.close();
    // A response without `Date` is right if its times agree with our clock.
    let now = if has_date { BEGIN + DAY } else { own_clock() - 10 * MINUTE };
    world.history.now = now;
    world.history.newest_mut().from = now;
    world.history.pushed_until = now;
    world.history.set(2);
    world.history.delete(3);
    world.history.create([7]);
    world.run()?;
    world.history.make_snapshot();
    world.run()?;
    world.compare()?.right()?;
    // The time of its creation is later.
    world.history.delete(0);
    world.run()?.right().map(drop)
}

fn own_clock() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_micros()).unwrap()
}

/// Only the list of all resources has a time in 2099. Our own clock is used for responses without
/// `Date`, so the other times are in the present.
fn list_in_future(world: &mut World) -> Checked {
    world.history.clock = Clock::None;
    world.history.now = own_clock() - 10 * MINUTE;
    world.history.create(0..4);
    world.history.make_snapshot();
    world.history.snapshot.at = FUTURE;
    world.run()?.right()?;
    world.history.set(1);
    world.history.delete(2);
    world.run()?.right()?;
    world.history.create([5]);
    world.run()?.right().map(drop)
}

fn coarse(world: &mut World, changes: Precision, spans: Precision) -> Checked {
    (world.history.precision, world.history.spans) = (changes, spans);
    // The first days show in which direction pages and feeds go.
    for entity in [7, 8] {
        world.history.wait(DAY);
        world.history.set(entity);
    }
    world.history.wait(12 * HOUR);
    world.history.close();
    world.history.newest_mut().from = world.history.now;
    world.history.make_snapshot();
    world.history.create(0..4);
    world.run()?.right()?;
    world.history.set(1);
    world.history.delete(2);
    world.history.create([5]);
    world.run()?.right()?;
    world.history.set(1);
    world.history.create([2]);
    world.history.delete(5);
    world.run()?.right()?;
    world.history.wait(2 * DAY);
    world.history.set(3);
    world.history.set(1);
    world.run()?.right()?;
    world.run()?.right()?.costs(2, 10).map(drop)
}

/// Where the second change of an entity is that has the time of the first one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Page,
    Border,
    Runs,
    RunsAndPages,
}

fn equal(world: &mut World, place: Place, is_fine: bool) -> Checked {
    world.history.page_size = 4;
    world.begin(4)?;
    world.history.wait(HOUR);
    let whole = world.history.now / SECOND * SECOND;
    let time = if is_fine { whole + 123_456 } else { whole };
    world.history.now = whole + SECOND;
    let is_over_runs = matches!(place, Place::Runs | Place::RunsAndPages);
    let second = |world: &mut World| {
        if matches!(place, Place::Border | Place::RunsAndPages) {
            world.history.close();
        }
        world.history.set_at(0, time);
        world.history.delete_at(1, time);
        world.history.set_at(2, time);
    };
    world.history.page_size = 9;
    world.history.set_at(0, time);
    world.history.set_at(1, time);
    world.history.delete_at(2, time);
    if is_over_runs {
        world.run()?.right()?;
        second(world);
    } else {
        second(world);
    }
    world.run()?.right()?;
    world.history.wait(HOUR);
    world.history.set(3);
    world.run()?.right()?;
    world.rest()
}

/// Many entities change at the same time, and are not all listed at once.
fn others_at_one_time(world: &mut World) -> Checked {
    world.begin(3)?;
    world.history.wait(HOUR);
    let time = world.history.now + 5;
    world.history.wait(SECOND);
    for entities in [3..5, 5..9, 9..10] {
        entities.for_each(|entity| world.history.set_at(entity, time));
        world.run()?.right()?;
    }
    world.history.delete_at(3, time);
    world.run()?.right()?;
    world.history.wait(HOUR);
    world.history.set(3);
    world.run()?.right()?;
    world.rest()
}

fn order(world: &mut World, change: fn(&mut Vec<Change>)) -> Checked {
    world.history.create(0..4);
    let mix = |world: &mut World| {
        let mixed = world.history.clone();
        for page in &mut world.history.pages {
            change(&mut page.changes);
        }
        mixed
    };
    for entity in 0..3 {
        let ordered = mix(world);
        world.run()?.right()?;
        world.history = History::with_pages_of(&world.history, &ordered);
        world.history.set(entity);
        world.history.set(entity);
        world.history.delete(entity + 1);
        world.history.set(entity + 1);
        world.history.delete(3);
        world.history.set(3);
    }
    mix(world);
    world.run()?.right()?;
    world.rest()
}

/// A change is listed after others although its time is before theirs.
fn late(world: &mut World, is_deletion: bool) -> Checked {
    world.history.page_size = 9;
    world.begin(4)?;
    world.history.set(1);
    world.history.set(2);
    world.run()?.right()?;
    for entity in [3, 0] {
        let time = world.history.now - 5 * SECOND;
        let kind = if is_deletion { Kind::Deleted } else { Kind::Updated };
        let change = world.history.apply(entity, kind, time);
        world.history.unpushed.push(change.clone());
        let place = world.history.newest().changes.len() - 1;
        world.history.newest_mut().changes.insert(place, change);
        world.run()?.right()?;
    }
    world.history.set(1);
    world.run()?.right()?;
    let entities = usize::from(world.column.name == EMM_ON);
    world.run()?.right()?.costs(entities, 8).map(drop)
}

/// If the list decides, the run reports the contradiction.
fn late_for_list(world: &mut World) -> Checked {
    world.history.page_size = 9;
    world.begin(4)?;
    world.history.set(1);
    world.history.make_snapshot();
    let time = world.history.now - 2 * SECOND;
    world.history.set(2);
    world.run()?.right()?;
    world.compare()?.right()?;
    for (entity, kind) in [(3, Kind::Updated), (0, Kind::Deleted), (7, Kind::Created)] {
        let change = world.history.apply(entity, kind, time);
        world.history.unpushed.push(change.clone());
        let place = world.history.newest().changes.len() - 1;
        world.history.newest_mut().changes.insert(place, change);
    }
    world.is_audit_blind = true;
    world.run()?;
    world.history.set(2);
    world.run()?;
    world.is_audit_blind = false;
    world.history.make_snapshot();
    world.run()?.right()?;
    world.history.set(1);
    world.run()?.right()?;
    world.rest()
}
