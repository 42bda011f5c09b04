//! Circles and endless pages: changes that were read are applied, the run reports the missing
//! changes, and later runs neither read everything again nor forget that changes are missing.

use super::history::{Endless, Target, Toward};
use super::table::{EMM_ON, Row, check, row};
use super::world::{Checked, World};
use std::time::Duration;

pub(super) const CIRCLES: &[Row] = &[
    row("calm: changes are followed", calm),
    row("calm: deletions have no mark", unmarked),
    row("circle: a page leads to itself", |it| hides(it, To::Itself)),
    row("circle: a page leads to one read before", |it| hides(it, To::Read)),
    row("circle: a page leads to the start", |it| hides(it, To::Start)),
    row("circle: a later page leads to itself", |it| hides_later(it, To::Itself)),
    row("circle: a later page leads to one read before", |it| hides_later(it, To::Read)),
    row("circle: a later page leads to the start", |it| hides_later(it, To::Start)),
    row("circle: the last page leads to itself", |it| at_end(it, To::Itself)),
    row("circle: the last page leads to one read before", |it| at_end(it, To::Read)),
    row("circle: the last page leads to the start", |it| at_end(it, To::Start)),
    row("circle: the newest page leads on to itself", |it| onward(it, To::Itself)),
    row("circle: the newest page leads on to an older one", |it| onward(it, To::Read)),
    row("circle: the newest page leads on to the start", |it| onward(it, To::Start)),
    row("circle: the index names itself", index_names_itself),
    row("circle: the entry point is its own newest page", entry_is_newest),
    row("circle: the entry point is its own oldest page", entry_is_oldest),
];

pub(super) const ENDLESS: &[Row] = &[
    row("endless: empty pages behind the oldest", empty_older),
    row("endless: pages of long ago behind the oldest", full_older),
    row("endless: empty pages after the newest", empty_newer),
];

/// Where a link leads that leads in a circle.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    Itself,
    /// A page that was read before.
    Read,
    Start,
}

impl To {
    fn target(self, page: i64, read: i64) -> Target {
        match self {
            Self::Itself => Target::Page(page),
            Self::Read => Target::Page(read),
            Self::Start => Target::Entry,
        }
    }
}

#[test]
fn circles_hide_nothing_silently() {
    check(CIRCLES);
}

#[test]
fn pages_without_end_are_left_in_time() {
    check(ENDLESS);
}

fn is_onward(world: &World) -> bool {
    world.column.name == EMM_ON
}

/// The direction in which pages are read.
fn toward(world: &World) -> Toward {
    if is_onward(world) { Toward::Newer } else { Toward::Older }
}

fn calm(world: &mut World) -> Checked {
    world.begin(5)?;
    world.rest()?;
    world.history.set(1);
    world.history.delete(2);
    world.history.set(2);
    world.history.delete(3);
    world.run()?.right()?.costs(3, 12)?;
    world.history.delete(0);
    world.run()?.right()?.costs(4, 10)?;
    world.rest()
}

fn unmarked(world: &mut World) -> Checked {
    world.history.marks_deletions = false;
    // An audit of SDShare reads no fragments.
    world.is_audit_blind = true;
    world.begin(5)?;
    world.history.delete(3);
    world.run()?.right()?;
    world.rest()
}

/// The middle one of three pages leads in a circle at the first run of the copy.
fn hides(world: &mut World, to: To) -> Checked {
    world.history.create(0..9);
    let read = if is_onward(world) { 0 } else { world.history.newest().number };
    let toward = toward(world);
    world.history.links.insert((1, toward), Some(to.target(1, read)));
    world.run()?;
    world.run()?.costs(0, 12)?;
    world.history.links.clear();
    world.heal()?;
    world.rest()
}

/// The middle one of three new pages leads in a circle.
fn hides_later(world: &mut World, to: To) -> Checked {
    world.begin(3)?;
    world.history.make_snapshot();
    world.history.create([4, 5]);
    world.history.set(0);
    world.history.delete(1);
    world.history.set(3);
    world.history.create([6, 2, 7, 8]);
    let newest = world.history.newest().number;
    let (page, read) = if is_onward(world) { (1, 0) } else { (newest - 1, newest) };
    let toward = toward(world);
    world.history.links.insert((page, toward), Some(to.target(page, read)));
    world.run()?;
    world.run()?.costs(0, 14)?;
    world.history.links.clear();
    world.heal()?;
    world.rest()
}

/// The page that is read last leads in a circle: nothing is behind it that the list of all lacks.
fn at_end(world: &mut World, to: To) -> Checked {
    world.history.create(0..4);
    world.history.make_snapshot();
    world.history.create(4..8);
    let newest = world.history.newest().number;
    let (last, read) = if is_onward(world) { (newest, 0) } else { (0, newest) };
    let toward = toward(world);
    world.history.links.insert((last, toward), Some(to.target(last, read)));
    world.run()?.equal()?;
    world.run()?.equal()?.costs(0, 12)?;
    world.history.set(1);
    if is_onward(world) {
        world.history.links.clear();
        let newest = world.history.newest().number;
        world.history.links.insert((newest, toward), Some(to.target(newest, read)));
        return world.run()?.equal().map(drop);
    }
    // Known changes were reached before the circle.
    world.run()?.right()?.costs(3, 10).map(drop)
}

/// The newest page links to a page after it, which is a page that was already read.
fn onward(world: &mut World, to: To) -> Checked {
    world.history.create(0..8);
    let lead = |world: &mut World| {
        world.history.links.clear();
        let newest = world.history.newest().number;
        world.history.links.insert((newest, Toward::Newer), Some(to.target(newest, 0)));
    };
    lead(world);
    let right = |world: &mut World| {
        let ran = world.run()?.equal()?;
        // Where nothing leads back, there may be changes behind the circle.
        if is_onward(world) { ran.named() } else { ran.right() }
    };
    right(world)?;
    right(world)?.costs(0, 12)?;
    world.history.set(1);
    lead(world);
    right(world)?.costs(4, 12).map(drop)
}

fn index_names_itself(world: &mut World) -> Checked {
    world.history.index_names_itself = true;
    world.begin(6)?;
    world.rest()?;
    world.history.set(1);
    world.history.delete(2);
    world.run()?.right()?.costs(1, 12)?;
    world.rest()
}

fn entry_is_newest(world: &mut World) -> Checked {
    world.begin(4)?;
    world.history.set(1);
    world.history.delete(2);
    world.history.newest_link = Some(Target::Entry);
    world.run()?;
    world.run()?.costs(0, 12)?;
    world.history.newest_link = None;
    world.heal()?;
    world.rest()
}

fn entry_is_oldest(world: &mut World) -> Checked {
    world.history.oldest_link = Some(Target::Entry);
    world.history.create(0..5);
    world.run()?;
    world.history.set(1);
    world.run()?;
    world.history.oldest_link = None;
    world.heal()?;
    world.rest()
}

fn empty_older(world: &mut World) -> Checked {
    world.requests_max = 1_300;
    world.history.create(0..9);
    world.history.endless = Some(Endless::EmptyOlder);
    world.run()?.equal()?;
    world.history.set(1);
    world.run()?.equal()?.costs(3, 1_300)?;
    world.history.endless = None;
    world.heal()?;
    world.rest()
}

/// A time limit ends the run; the changes that were read until then are not lost.
fn full_older(world: &mut World) -> Checked {
    world.requests_max = 3_000;
    world.copy.options.max_time = Some(Duration::from_millis(300));
    world.is_audit_blind = true;
    world.history.lacks_snapshot = true;
    world.history.create(0..4);
    world.history.endless = Some(Endless::FullOlder);
    world.run()?;
    world.run()?;
    world.history.endless = None;
    world.copy.options.max_time = None;
    world.requests_max = 80;
    world.heal()?;
    world.rest()
}

fn empty_newer(world: &mut World) -> Checked {
    world.requests_max = 2_100;
    world.history.create(0..9);
    world.history.endless = Some(Endless::EmptyNewer);
    world.run()?.equal()?;
    world.history.set(1);
    world.run()?.equal()?.costs(3, 2_100)?;
    world.history.endless = None;
    world.heal()?;
    world.rest()
}
