//! Lists of all resources that are older than what the copy has, or newer than the changes.

use super::outcome::Outcome;
use super::table::{OLD, Row, check};
use super::world::{Checked, World};

pub(super) const ROWS: &[Row] = &[
    Row { name: "older list: compared, all changes listed", run: compared },
    Row { name: "older list: after a gap with a loss", run: |it| after_gap(it, true) },
    Row { name: "older list: after a gap without a loss", run: |it| after_gap(it, false) },
    Row { name: "older list: all documents are of a cache", run: cached },
    Row { name: "older list: compared with documents of a cache", run: compared_with_cached },
    Row { name: "older list: it is older than the first page", run: before_pages },
    Row { name: "newer list: pages are of a cache", run: newer_list },
];

#[test]
fn older_lists_of_all_undo_nothing() {
    check(ROWS);
}

fn change(world: &mut World) {
    world.history.set(1);
    world.history.delete(2);
    world.history.create([6]);
}

fn compared(world: &mut World) -> Checked {
    world.begin(5)?;
    world.history.make_snapshot();
    change(world);
    world.run()?.right()?;
    world.copy.options.baseline = true;
    world.run()?.right()?;
    world.run()?.right()?;
    world.copy.options.baseline = false;
    world.rest()
}

/// The pages begin after what the copy knows, and the list of all is older than what it has.
fn after_gap(world: &mut World, has_loss: bool) -> Checked {
    world.begin(5)?;
    world.history.make_snapshot();
    change(world);
    world.run()?.right()?;
    world.history.close();
    world.history.wait(5);
    world.history.newest_mut().from = world.history.now;
    if has_loss {
        world.history.create([7]);
        world.history.set(0);
        world.history.delete(4);
        world.history.close();
    }
    world.history.prune();
    world.history.set(3);
    world.is_audit_blind = true;
    world.run()?;
    world.history.set(3);
    world.run()?;
    world.history.make_snapshot();
    world.is_audit_blind = false;
    world.run()?.right()?;
    world.rest()
}

fn cached(world: &mut World) -> Checked {
    world.begin(5)?;
    world.history.make_snapshot();
    let old = world.history.clone();
    change(world);
    world.run()?.right()?;
    // As the documents of a server that was restored.
    world.are_documents_wrong = true;
    world.serve_old(old);
    world.run()?;
    world.run()?;
    world.are_documents_kept = false;
    world.history.set(3);
    world.history.delete(6);
    world.run()?;
    world.are_documents_wrong = false;
    world.forget();
    world.heal()?;
    world.rest()
}

fn compared_with_cached(world: &mut World) -> Checked {
    world.begin(5)?;
    world.history.make_snapshot();
    let old = world.history.clone();
    change(world);
    world.run()?.right()?;
    world.are_documents_wrong = true;
    world.serve_old(old);
    world.copy.options.baseline = true;
    world.run()?;
    world.copy.options.baseline = false;
    world.are_documents_kept = false;
    world.run()?;
    world.are_documents_wrong = false;
    world.forget();
    world.heal()?;
    world.history.set(3);
    world.history.delete(6);
    world.run()?.right()?;
    world.rest()
}

/// Changes between the list of all and the first page are known from the next list of all.
fn before_pages(world: &mut World) -> Checked {
    world.history.create(0..4);
    world.history.make_snapshot();
    change(world);
    world.history.close();
    world.history.prune();
    world.history.set(3);
    world.run()?;
    world.run()?;
    world.history.make_snapshot();
    world.run()?.right()?;
    world.history.set(0);
    world.run()?.right()?;
    world.rest()
}

/// The list of all is of now, and the pages are of before.
fn newer_list(world: &mut World) -> Checked {
    world.history.create(0..4);
    let mut old = world.history.clone();
    change(world);
    world.history.make_snapshot();
    old.snapshot = world.history.snapshot.clone();
    world.serve_old(old);
    // Changes of 0.1 are replayed from an hour before: what was deleted since then is asked for.
    let is_replayed = world.column.name == OLD;
    world.is_audit_blind = is_replayed;
    let right = |ran: Outcome| if is_replayed { ran.equal() } else { ran.right() };
    right(world.run()?)?;
    world.copy.options.baseline = true;
    right(world.run()?)?;
    world.copy.options.baseline = false;
    world.are_documents_kept = false;
    world.history.set(3);
    world.run()?.right()?;
    world.rest()
}
