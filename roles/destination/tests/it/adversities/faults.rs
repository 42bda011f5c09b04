//! Documents and entities that cannot be read, temporarily or permanently: other changes are
//! applied, and listed deletions are carried out.

use super::history::{History, Kind};
use super::served::Fault;
use super::table::{Row, check, row};
use super::world::{Checked, World};

const NOT_FOUND: Fault = Fault::Status(404);
const BROKEN: Fault = Fault::Status(500);

pub(super) const ENTITIES: &[Row] = &[
    row("fault of an entity: 404", |it| entity(it, NOT_FOUND)),
    row("fault of an entity: 500", |it| entity(it, BROKEN)),
    row("fault of an entity: garbage", |it| entity(it, Fault::Garbage)),
    row("fault of an entity: it leads to itself", |it| entity(it, Fault::Redirect)),
    row("fault of an entity: a challenge page", |it| entity(it, Fault::Challenge)),
    row("fault of an entity: a bot wall", |it| entity(it, Fault::Wall)),
    row("fault of an entity: another one in each run", others),
    row("fault of an entry: it names nothing", nameless),
];

pub(super) const DOCUMENTS: &[Row] = &[
    row("fault of a page: 404", |it| page(it, NOT_FOUND)),
    row("fault of a page: 500", |it| page(it, BROKEN)),
    row("fault of a page: garbage", |it| page(it, Fault::Garbage)),
    row("fault of a page: it leads to itself", |it| page(it, Fault::Redirect)),
    row("fault of a page: a challenge page", |it| page(it, Fault::Challenge)),
    row("fault of a page: a bot wall", |it| page(it, Fault::Wall)),
    row("fault of the list of pages: 404", |it| list(it, NOT_FOUND)),
    row("fault of the list of pages: 500", |it| list(it, BROKEN)),
    row("fault of the list of pages: garbage", |it| list(it, Fault::Garbage)),
    row("fault of the list of pages: it leads to itself", |it| list(it, Fault::Redirect)),
    row("fault of the list of pages: a challenge page", |it| list(it, Fault::Challenge)),
    row("fault of the list of pages: a bot wall", |it| list(it, Fault::Wall)),
    row("fault of the list of pages: a bot wall is reported, 200", |it| {
        walled(it, Fault::Challenge)
    }),
    row("fault of the list of pages: a bot wall is reported, 403", |it| walled(it, Fault::Wall)),
    row("fault of the list of all: 404", |it| snapshot(it, NOT_FOUND)),
    row("fault of the list of all: 500", |it| snapshot(it, BROKEN)),
    row("fault of the list of all: garbage", |it| snapshot(it, Fault::Garbage)),
    row("fault of the list of all: it leads to itself", |it| snapshot(it, Fault::Redirect)),
    row("fault of the list of all: a challenge page", |it| snapshot(it, Fault::Challenge)),
    row("fault of the list of all: a bot wall", |it| snapshot(it, Fault::Wall)),
    row("fault of the list of all: deletions are stated", stated),
    row("fault of the list of all: a comparison", comparison),
];

pub(super) const PASSING: &[Row] = &[
    row("passing fault: an entity, 500", |it| passing(it, BROKEN, Part::Entity)),
    row("passing fault: a page, 500", |it| passing(it, BROKEN, Part::Page)),
    row("passing fault: the list of pages, 500", |it| passing(it, BROKEN, Part::List)),
    row("passing fault: a page, garbage", |it| passing(it, Fault::Garbage, Part::Page)),
    row("passing fault: a page, 404", |it| passing(it, NOT_FOUND, Part::Page)),
];

pub(super) const ABORTED: &[Row] = &[
    row("aborted: the list of all, then another", aborted_list_of_all),
    row("aborted: the list of all in an audit", aborted_in_audit),
    row("aborted: a page, then another", aborted_page),
    row("aborted: the list of pages, then another", aborted_list),
];

#[test]
fn entities_that_fail_hold_nothing_else() {
    check(ENTITIES);
}

#[test]
fn documents_that_fail_are_read_again() {
    check(DOCUMENTS);
}

#[test]
fn faults_that_pass_leave_no_trace() {
    check(PASSING);
}

#[test]
fn aborted_transfers_are_not_mixed_with_other_versions() {
    check(ABORTED);
}

fn entity(world: &mut World, fault: Fault) -> Checked {
    world.begin(6)?;
    world.fault("/e/1", fault, None);
    world.history.set(1);
    world.history.set(2);
    world.history.delete(3);
    // Deletions wait once: the entity that fails may have been moved.
    world.run()?.named()?.follows(2)?;
    // Only that entity is requested again, and deletions are carried out.
    world.history.delete(4);
    world.run()?.named()?.lacks(3)?.lacks(4)?.costs(8, 14)?;
    world.run()?.named()?.costs(8, 14)?;
    world.repair();
    world.run()?.right()?;
    world.rest()
}

/// The list of pages is answered by a bot wall, which the run reports in these words.
fn walled(world: &mut World, fault: Fault) -> Checked {
    world.begin_listed(5)?;
    changed(world);
    world.fault(world.column.rendered.list(), fault, None);
    let ran = world.run()?.named()?;
    let is_reported = ran.reported.iter().any(|it| it.code == "http.challenge");
    if !is_reported {
        return Err(format!("expected http.challenge: {}", ran.describe()));
    }
    world.repair();
    world.run()?.right()?;
    world.rest()
}

/// In each run another entity cannot be fetched for the first time: deletions wait for three runs.
fn others(world: &mut World) -> Checked {
    world.begin(6)?;
    for round in 0..5 {
        let entity = 10 + round;
        world.fault(&format!("/e/{entity}"), NOT_FOUND, None);
        world.history.create([entity]);
        world.history.delete(round);
        let ran = world.run()?.named()?;
        if round > 2 {
            (0..round - 2).try_fold(ran, super::outcome::Outcome::lacks)?;
        }
    }
    world.repair();
    world.run()?.right()?;
    world.rest()
}

/// A change does not contain its entity; later it does.
fn nameless(world: &mut World) -> Checked {
    world.begin(5)?;
    world.history.set(2);
    let id = world.history.set_oddly(1, Kind::Nameless);
    world.history.delete(3);
    world.run()?.named()?;
    world.run()?.named()?.costs(4, 20)?;
    world.history.delete(4);
    world.run()?.named()?;
    world.history.correct(id);
    world.history.set(0);
    world.heal()?;
    world.rest()
}

fn changed(world: &mut World) {
    world.history.set(1);
    world.history.delete(2);
    world.history.create([7]);
    world.history.set(0);
    world.history.delete(3);
    world.history.create([8, 9]);
}

fn page(world: &mut World, fault: Fault) -> Checked {
    world.begin_listed(5)?;
    changed(world);
    let middle = world.history.newest().number - 1;
    world.fault(&world.page_path(middle), fault, None);
    world.run()?;
    world.run()?.costs(7, 20)?;
    world.repair();
    world.heal()?;
    world.history.delete(9);
    world.run()?.right()?;
    world.rest()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Entity,
    Page,
    List,
}

/// One answer is a fault. A failure of the server at a document is retried; after any other one the next run is right.
fn passing(world: &mut World, fault: Fault, part: Part) -> Checked {
    world.begin_listed(5)?;
    for _ in 0..2 {
        changed(world);
        let path = match part {
            Part::Entity => "/e/1".to_owned(),
            Part::Page => world.page_path(world.history.newest().number - 1),
            Part::List => world.column.rendered.list().to_owned(),
        };
        world.fault(&path, fault, Some(1));
        let ran = world.run()?;
        if fault == BROKEN && part != Part::Entity {
            ran.right()?;
        }
        world.history.set(0);
        world.run()?.right()?;
    }
    world.rest()
}

fn list(world: &mut World, fault: Fault) -> Checked {
    world.begin_listed(5)?;
    changed(world);
    world.fault(world.column.rendered.list(), fault, None);
    world.run()?.named()?;
    world.run()?.named()?.costs(4, 20)?;
    world.repair();
    world.run()?.right()?;
    world.history.delete(9);
    world.run()?.right()?;
    world.rest()
}

/// The list of all resources cannot be read in the first run.
fn snapshot(world: &mut World, fault: Fault) -> Checked {
    world.history.create(0..4);
    world.history.make_snapshot();
    world.history.close();
    world.history.prune();
    world.history.set(1);
    world.fault(world.column.rendered.snapshot().unwrap(), fault, None);
    world.run()?.named()?;
    world.history.delete(2);
    world.run()?.named()?.costs(4, 20)?;
    world.repair();
    // If documents do not specify the start of the pages, there may be changes in between.
    world.heal()?;
    world.rest()
}

/// The pages contain all changes. Their deletions are facts, independent of the list of all
/// resources.
fn stated(world: &mut World) -> Checked {
    world.history.create(0..6);
    world.fault(world.column.rendered.snapshot().unwrap(), NOT_FOUND, None);
    world.run()?;
    for entity in [2, 3] {
        world.history.delete(entity);
        world.history.set(entity + 2);
        world.run()?.lacks(entity)?.costs(3, 20)?;
    }
    world.repair();
    world.run()?.right()?;
    world.rest()
}

/// The list of all cannot be read for a comparison.
fn comparison(world: &mut World) -> Checked {
    world.begin_listed(5)?;
    world.history.set(1);
    world.fault(world.column.rendered.snapshot().unwrap(), NOT_FOUND, None);
    world.compare()?.named()?;
    world.history.delete(2);
    world.run()?;
    world.repair();
    world.run()?.right()?;
    world.rest()
}

/// There is another list of all, with other entities. Returns the history before.
fn list_anew(world: &mut World) -> History {
    let before = world.history.clone();
    world.history.delete(0);
    world.history.delete(2);
    world.history.set(3);
    world.history.create([10]);
    world.history.make_snapshot();
    before
}

fn aborted_list_of_all(world: &mut World) -> Checked {
    world.history.create(0..9);
    world.history.make_snapshot();
    let before = list_anew(world);
    world.abort(world.column.rendered.snapshot().unwrap(), before);
    world.run()?.right()?;
    world.rest()
}

fn aborted_in_audit(world: &mut World) -> Checked {
    world.history.create(0..9);
    world.history.make_snapshot();
    world.run()?.right()?;
    let before = list_anew(world);
    let ran = world.run()?.right()?;
    world.abort(world.column.rendered.snapshot().unwrap(), before);
    world.audit(&ran);
    Ok(())
}

fn aborted_page(world: &mut World) -> Checked {
    world.history.page_size = 20;
    world.begin(3)?;
    let mut before = world.history.clone();
    before.create(20..25);
    // The new version of the page has other changes instead.
    world.history.create(8..12);
    world.history.delete(1);
    let newest = world.page_path(world.history.newest().number);
    world.abort(&newest, before);
    world.run()?.right()?;
    world.rest()
}

fn aborted_list(world: &mut World) -> Checked {
    world.begin(6)?;
    world.history.set(2);
    let before = world.history.clone();
    world.history.create(8..12);
    world.history.delete(1);
    world.abort(world.column.rendered.list(), before);
    world.run()?.right()?;
    world.rest()
}
