//! Lists of all resources that are older than the copy, or newer than the changes.

use super::history::{HOUR, History};
use super::outcome::Outcome;
use super::table::{OLD, Row, check, row};
use super::world::{Checked, World};

pub(super) const ROWS: &[Row] = &[
    row("older list: compared, all changes listed", compared),
    row("older list: after a gap with a loss", |it| after_gap(it, true)),
    row("older list: after a gap without a loss", |it| after_gap(it, false)),
    row("older list: of the time of a change, after a gap", of_the_same_time),
    row("older list: all documents are of a cache", cached),
    row("older list: compared with documents of a cache", compared_with_cached),
    row("older list: after a restored backup and changes since", since_restored),
    row("older list: restored again, before what the first restore lost is known", restored_again),
    row("older list: it is older than the first page", before_pages),
    row("newer list: pages are of a cache", newer_list),
];

#[test]
fn older_lists_of_all_undo_nothing() {
    check(ROWS);
}

fn compared(world: &mut World) -> Checked {
    world.begin_changed()?;
    world.compare()?.right()?;
    world.compare()?.right()?;
    world.rest()
}

/// The pages start after the last known change, and the list of all resources is older than the
/// copy.
fn after_gap(world: &mut World, has_loss: bool) -> Checked {
    world.begin_changed()?;
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

/// A resource was created after the list of all was made, and at the same time.
fn of_the_same_time(world: &mut World) -> Checked {
    world.begin_changed()?;
    world.history.make_snapshot();
    world.history.set_at(8, world.history.now);
    world.run()?.right()?;
    world.history.close();
    world.history.wait(5);
    world.history.newest_mut().from = world.history.now;
    world.history.prune();
    world.history.set(3);
    world.is_audit_blind = true;
    world.run()?;
    world.history.make_snapshot();
    world.is_audit_blind = false;
    world.run()?.right()?;
    world.rest()
}

fn cached(world: &mut World) -> Checked {
    let old = world.begin_changed()?;
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
    let old = world.begin_changed()?;
    world.are_documents_wrong = true;
    world.serve_old(old);
    world.compare()?;
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

/// A server was restored, the pages do not show the lost changes, and the copy has followed later
/// changes.
fn since_restored(world: &mut World) -> Checked {
    let backup = world.begin_changed()?;
    let lost = std::mem::replace(&mut world.history, backup);
    world.history.go_on_from(&lost);
    let begin_again = |world: &mut World| {
        world.history.close();
        world.history.wait(5);
        world.history.newest_mut().from = world.history.now;
        world.history.prune();
    };
    // The pages start after the list of all resources, and lack changes that the copy has.
    begin_again(world);
    world.history.now = lost.now + HOUR;
    world.history.set(3);
    (world.may_go_back, world.is_audit_blind) = (true, true);
    world.run()?;
    let listed = world.history.snapshot.clone();
    world.history.make_snapshot();
    let older = std::mem::replace(&mut world.history.snapshot, listed);
    world.history.set(0);
    world.history.delete(4);
    world.run()?;
    // The list shows the lost changes, and lacks changes since its creation; the pages lack them
    // too.
    world.may_go_back = false;
    begin_again(world);
    world.history.set(1);
    world.history.snapshot = older;
    world.run()?;
    world.history.make_snapshot();
    world.is_audit_blind = false;
    world.run()?.right()?;
    world.rest()
}

/// The server is restored twice, and the pages never show the lost changes.
fn restored_again(world: &mut World) -> Checked {
    let backup = world.begin_changed()?;
    let restore = |world: &mut World, backup: History| {
        let lost = std::mem::replace(&mut world.history, backup);
        world.history.go_on_from(&lost);
        world.history.now = lost.now + HOUR;
        world.history.close();
        world.history.wait(5);
        world.history.newest_mut().from = world.history.now;
        world.history.prune();
        world.history.set(3);
    };
    (world.may_go_back, world.is_audit_blind) = (true, true);
    restore(world, backup);
    world.run()?;
    let backup = world.history.clone();
    world.history.set(0);
    world.history.delete(4);
    world.history.create([8]);
    world.run()?;
    restore(world, backup);
    world.run()?;
    world.forget();
    world.history.make_snapshot();
    world.run()?;
    world.is_audit_blind = false;
    world.history.set(1);
    world.run()?.right()?;
    world.may_go_back = false;
    world.rest()
}

/// Changes between the list of all and the first page are known from the next list of all.
fn before_pages(world: &mut World) -> Checked {
    world.history.create(0..4);
    world.history.make_snapshot();
    world.history.change();
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
    world.history.change();
    world.history.make_snapshot();
    old.snapshot = world.history.snapshot.clone();
    world.serve_old(old);
    // Changes of 0.1 are replayed from an hour before: resources that were deleted since then are
    // requested.
    let is_replayed = world.column.name == OLD;
    world.is_audit_blind = is_replayed;
    let right = |ran: Outcome| if is_replayed { ran.equal() } else { ran.right() };
    right(world.run()?)?;
    right(world.compare()?)?;
    world.are_documents_kept = false;
    world.history.set(3);
    world.run()?.right()?;
    world.rest()
}
