//! Changes of unknown types, updates without evidence, deletions of many resources, and pushed
//! changes.

use super::history::{BEGIN, Kind};
use super::table::{Row, check, row};
use super::world::{Checked, World};
use abreast_destination::MaxDelete;

pub(super) const OTHERS: &[Row] = &[
    row("types: all changes are of unknown types", unknown_types),
    row("types: one change is of an unknown type", one_unknown),
    row("types: all entries are for other protocols", foreign),
    row("types: a misspelt namespace", |it| misspelt(it, misspell)),
    row("lengths: beyond 2^63", |it| misspelt(it, lengthen)),
    row("unsigned: an update with the same last modification", unsigned),
    row("much: all is deleted, by changes", |it| much(it, false)),
    row("much: all is deleted, by a comparison", |it| much(it, true)),
];

pub(super) const PUSHED: &[Row] = &[
    row("pushed: then older documents of a cache", then_older),
    row("pushed: then a comparison with older documents", then_compared),
    row("pushed: a notification is lost", lost),
    row("pushed: a notification is repeated", repeated),
];

#[test]
fn unusual_changes_are_applied_or_named() {
    check(OTHERS);
}

#[test]
fn pushed_changes_are_never_lost() {
    check(PUSHED);
}

fn unknown_types(world: &mut World) -> Checked {
    world.history.create(0..4);
    let known = world.history.clone();
    for page in &mut world.history.pages {
        page.changes.iter_mut().for_each(|change| change.kind = Kind::Unknown);
    }
    world.history.unpushed.iter_mut().for_each(|change| change.kind = Kind::Unknown);
    world.run()?;
    world.run()?;
    world.history = known;
    world.history.set(1);
    world.run()?.right()?;
    world.rest()
}

fn one_unknown(world: &mut World) -> Checked {
    world.begin(4)?;
    let id = world.history.set_oddly(1, Kind::Unknown);
    world.history.set(2);
    world.run()?;
    world.run()?;
    world.history.set(1);
    world.history.delete(3);
    world.run()?;
    world.history.correct(id);
    world.history.set(0);
    world.heal()?;
    world.rest()
}

/// Namespaces without their last character.
fn misspell(text: String) -> String {
    let names = ["http://www.openarchives.org/rs/terms/", "http://www.sdshare.org/2012/core/"];
    names.iter().fold(text, |text, name| {
        let with_quote = format!("{name}\"");
        text.replace(&with_quote, &format!("{}\"", &name[..name.len() - 1]))
    })
}

/// Lengths of 2^63 - 1 bytes, the sum of which no number of 64 bits has.
fn lengthen(text: String) -> String {
    let most = i64::MAX.to_string();
    let replace = |text: String, begin: &str, end: char| {
        let mut parts = text.split(begin);
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |all, part| {
            let rest = part.find(end).map_or("", |at| &part[at..]);
            all + begin + &most + rest
        })
    };
    replace(replace(text, " length=\"", '"'), "<rs:size>", '<')
}

/// Documents are altered so that they cannot be used, and are right again later.
fn misspelt(world: &mut World, altered: fn(String) -> String) -> Checked {
    world.begin(5)?;
    world.history.altered = Some(altered);
    world.history.set(1);
    world.history.delete(2);
    world.history.create([6, 7]);
    world.run()?;
    world.run()?;
    world.compare()?;
    world.history.altered = None;
    world.history.set(3);
    world.history.make_snapshot();
    // Documents that are closed are not read again without need.
    world.compare()?.right()?;
    world.rest()
}

fn foreign(world: &mut World) -> Checked {
    world.history.create(0..4);
    world.history.make_snapshot();
    world.history.is_foreign = true;
    world.run()?;
    world.run()?;
    world.history.is_foreign = false;
    world.history.set(1);
    world.history.make_snapshot();
    world.run()?.right()?;
    world.rest()
}

/// An update is announced without a digest, with the last modification of the stored version.
fn unsigned(world: &mut World) -> Checked {
    world.history.has_digests = false;
    world.history.lastmod = Some(BEGIN);
    world.begin(4)?;
    for _ in 0..2 {
        world.history.set(1);
        world.history.set(2);
        world.run()?.right()?.costs(4, 10)?;
    }
    world.rest()
}

/// All entities are replaced by others.
fn much(world: &mut World, is_compared: bool) -> Checked {
    world.requests_max = 200;
    world.history.page_size = 10;
    world.history.create(0..20);
    world.history.make_snapshot();
    world.run()?.right()?;
    world.stop();
    (0..20).for_each(|entity| world.history.delete(entity));
    world.history.create(20..40);
    world.history.make_snapshot();
    world.copy.options.baseline = is_compared;
    for _ in 0..3 {
        let ran = world.run()?;
        if ran.exit != 7 || ran.kept.len() != 41 {
            return Err(format!("expected that all deletions are held: {}", ran.describe()));
        }
    }
    world.stop();
    world.copy.options.max_delete = MaxDelete::Percent(100.0);
    world.run()?.right()?;
    world.copy.options.baseline = false;
    world.stop();
    world.rest()
}

/// The pushed changes are newer than the documents, which come from a cache.
fn push_newer(world: &mut World) -> Checked {
    world.begin(4)?;
    world.serve_old(world.history.clone());
    world.history.set(1);
    world.history.create([5]);
    world.run()?.equal().map(drop)
}

fn then_older(world: &mut World) -> Checked {
    push_newer(world)?;
    // The documents are requested, and do not contain the change.
    world.run()?.equal()?;
    world.history.set(2);
    world.run()?.equal()?;
    world.are_documents_kept = false;
    world.history.delete(3);
    world.run()?.right()?;
    world.rest()
}

/// The copy is compared with the documents of the cache.
fn then_compared(world: &mut World) -> Checked {
    push_newer(world)?;
    world.compare()?.equal()?;
    world.history.set(2);
    // The pushed change does not continue from the documents: they are polled until they contain
    // the change.
    world.are_documents_wrong = true;
    world.run()?;
    world.are_documents_wrong = false;
    world.are_documents_kept = false;
    world.history.delete(3);
    world.run()?.right()?;
    world.rest()
}

fn lost(world: &mut World) -> Checked {
    world.begin(4)?;
    for round in 0..2 {
        world.history.set(1);
        world.history.delete(round + 2);
        let until = world.history.now;
        world.history.unpushed.clear();
        world.history.pushed_until = until;
        world.history.set(0);
        world.run()?.right()?;
    }
    world.rest()
}

fn repeated(world: &mut World) -> Checked {
    world.begin(4)?;
    for round in 0..2 {
        let from = world.history.pushed_until;
        world.history.set(1);
        world.history.delete(round + 2);
        let changes = world.history.unpushed.clone();
        world.run()?.right()?;
        // The same again, with more.
        world.history.set(0);
        let newer = std::mem::replace(&mut world.history.unpushed, changes);
        world.history.unpushed.extend(newer);
        world.history.pushed_until = from;
        world.run()?.right()?;
    }
    world.rest()
}
