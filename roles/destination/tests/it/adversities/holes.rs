//! Changes that are missing in documents: holes, missing and overlapping pages, lists that restart
//! elsewhere, and pages with other boundaries.

use super::history::{BEGIN, History, Page};
use super::table::{OLD, Row, check, row};
use super::world::{Checked, World};

pub(super) const ROWS: &[Row] = &[
    row("hole: nothing names a page", |it| hole(it, false)),
    row("hole: nothing names a later page", |it| hole(it, true)),
    row("overlap: pages repeat changes", overlap),
    row("closed: a list without an index, list of all fresh", |it| closed(it, true)),
    row("closed: a list without an index, list of all old", |it| closed(it, false)),
    row("pruned: pages that were read are removed", pruned),
    row("pruned: pages are removed, list of all fresh", |it| lost(it, true)),
    row("pruned: pages are removed, list of all old", |it| lost(it, false)),
    row("rewritten: pages are cut in another way", cut_again),
    row("rewritten: the pages begin again at their address", begun_again),
];

#[test]
fn holes_and_rewritten_pages_hide_nothing() {
    check(ROWS);
}

/// A page in the middle is missing in the index; later a list of all resources helps.
fn hole(world: &mut World, is_later: bool) -> Checked {
    if is_later {
        world.begin_listed(3)?;
        world.history.create([3, 4, 1]);
    } else {
        world.history.create(0..3);
    }
    world.history.create([5]);
    world.history.delete(5);
    world.history.set(0);
    world.history.create([6, 7, 8]);
    let hidden = world.history.newest().number - 1;
    world.history.hide(hidden);
    world.run()?;
    world.run()?.costs(3, 14)?;
    world.history.make_snapshot();
    world.run()?.right()?;
    world.history.set(7);
    world.run()?.right()?;
    world.rest()
}

/// Each page also has changes of the previous page.
fn overlap(world: &mut World) -> Checked {
    world.history.create(0..5);
    for round in 0..3 {
        world.run()?.right()?;
        world.history.set(round);
        world.history.close();
        let before: Vec<_> = world.history.pages.iter().rev().nth(1).unwrap().changes.clone();
        let from = before[0].time - 1;
        let newest = world.history.newest_mut();
        newest.changes = before;
        newest.from = from;
        world.history.delete(round + 1);
        world.history.set(round + 1);
    }
    world.run()?.right()?;
    world.rest()
}

/// Only the entry point leads to the newest list.
fn closed(world: &mut World, is_fresh: bool) -> Checked {
    world.history.is_loose = true;
    world.history.page_size = 9;
    world.is_audit_blind = !is_fresh;
    world.begin(3)?;
    for round in 0..3 {
        world.history.close();
        world.history.set(round);
        world.history.create([10 + round]);
        world.history.delete(10 + round);
        if is_fresh {
            world.history.make_snapshot();
        }
        // Change sets of 0.1 do not specify their interval: if they lack a link back, only a list
        // shows all changes.
        if world.column.name == OLD && !is_fresh {
            world.heal()?;
        } else {
            world.run()?.right()?;
        }
    }
    world.rest()
}

/// Pages are removed that the copy has read.
fn pruned(world: &mut World) -> Checked {
    world.begin_listed(4)?;
    world.is_audit_blind = true;
    for round in 0..3 {
        world.history.close();
        world.history.prune();
        world.history.set(round);
        world.history.delete(3);
        world.history.set(3);
        world.run()?.equal()?;
    }
    // If pages do not specify their interval, only a list of all resources shows that nothing is
    // missing.
    world.history.make_snapshot();
    world.is_audit_blind = world.column.rendered.snapshot().is_none();
    world.run()?.right()?;
    world.rest()
}

/// Pages are removed before the copy has read them; the old list precedes the last known change.
fn lost(world: &mut World, is_fresh: bool) -> Checked {
    world.begin(4)?;
    world.history.close();
    world.history.create([5]);
    world.history.set(1);
    world.history.delete(2);
    world.history.close();
    world.history.prune();
    world.history.set(3);
    if !is_fresh {
        world.run()?;
        world.history.set(0);
        world.run()?;
    }
    world.history.make_snapshot();
    world.run()?.right()?;
    world.history.delete(1);
    world.run()?.right()?;
    world.rest()
}

/// The same changes are on other pages in each run.
fn cut_again(world: &mut World) -> Checked {
    world.history.create(0..7);
    for size in [3, 2, 5, 1] {
        cut(&mut world.history, size);
        world.run()?.right()?;
        world.history.set(size);
        world.history.delete(size - 1);
        world.history.set(size - 1);
    }
    cut(&mut world.history, 4);
    world.run()?.right()?;
    world.rest()
}

fn cut(history: &mut History, size: usize) {
    let mut changes: Vec<_> = history.pages.drain(..).flat_map(|page| page.changes).collect();
    changes.sort_by_key(|change| (change.time, change.id));
    history.page_size = size;
    history.pages.push(Page::new(0, BEGIN));
    let unpushed = std::mem::take(&mut history.unpushed);
    for change in changes {
        history.record(change);
    }
    history.unpushed = unpushed;
}

/// The list at the same address has only new changes, from the end of the previous list on.
fn begun_again(world: &mut World) -> Checked {
    world.begin(4)?;
    for round in 0..3 {
        world.history.close();
        world.history.prune();
        let newest = world.history.newest_mut();
        newest.number = 0;
        world.history.create([10 + round]);
        world.history.set(round);
        world.history.delete(10 + round);
        world.history.make_snapshot();
        world.is_audit_blind = world.column.rendered.snapshot().is_none();
        world.run()?.right()?;
    }
    world.rest()
}
