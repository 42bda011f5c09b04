//! Archived Resource Lists that several nodes share.

use crate::nodes::{Node, Shared};
use crate::world::{BASE, World};
use abreast_core::contents::made::MadeFile;
use abreast_core::contents::{ErrorKind, address_of};
use abreast_core::{Change, PageRule, State, append};
use abreast_resourcesync::v1_1::Document;
use abreast_source::archive::{Archive, ArchiveError, ArchiveRule, take};
use abreast_source::publish::{PublishError, Publisher, SourceUrls};
use abreast_source::{SharedSet, remove_made_files, rename_made_files};
use abreast_testkit::eventually;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// A node of the Source with its own folder.
struct Source {
    publisher: Publisher,
    folder: PathBuf,
}

/// Documents by path.
type Documents = Vec<(String, Vec<u8>)>;

impl Source {
    fn start(world: &World, node: &Node, name: &str) -> Self {
        Self::with(world, &node.set(), name)
    }

    /// A Source whose archived lists are those of a set, whatever its name.
    fn with(world: &World, set: &SharedSet, name: &str) -> Self {
        let folder = world.temporary.path().join(name);
        let rule = ArchiveRule { every: Duration::ZERO, keep: 2 };
        let archive = Archive::open(folder.join("archive"), rule, Some(set)).unwrap();
        let publisher = Publisher::new(
            Arc::clone(&world.log),
            SourceUrls::new(BASE),
            [world.published().with(Some(Arc::new(archive)))],
            folder.join("documents"),
        );
        Self { publisher: publisher.unwrap(), folder }
    }

    fn take(&self) -> Result<bool, ArchiveError> {
        let log = &**self.publisher.log();
        take(log, &self.publisher.sets()[0], &AtomicBool::new(false))
    }

    fn numbers(&self) -> Vec<u64> {
        let copies = self.publisher.sets()[0].archive().unwrap().snapshots();
        copies.iter().map(|copy| copy.number).collect()
    }

    /// The archived lists and their parts.
    fn documents(&self) -> Result<Documents, PublishError> {
        let mut all = Vec::new();
        let archive = self.publisher.bytes("set/resourcelist-archive.xml")?;
        let mut open = vec![Document::from_slice(&archive).unwrap()];
        while let Some(document) = open.pop() {
            for entry in document.entries {
                let path = entry.loc.strip_prefix(BASE).unwrap().to_owned();
                if path.contains("/archived/") {
                    let bytes = self.publisher.bytes(&path)?;
                    open.push(Document::from_slice(&bytes).unwrap());
                    all.push((path, bytes));
                }
            }
        }
        Ok(all)
    }
}

fn put(world: &World, keys: impl IntoIterator<Item = u32>, length: u64) {
    let state = State { length: Some(length), ..State::default() };
    let changes = keys.into_iter().map(|key| Change::put(format!("k{key:02}"), state.clone()));
    append(&*world.log, world.set, changes.collect()).unwrap();
}

/// A set in several shards, of which each has a part in an archived list.
fn world() -> World {
    let world = World::with(PageRule::default(), 10);
    world.log.complete_import(world.set).unwrap();
    put(&world, 0..40, 1);
    world
}

#[test]
fn archived_lists_of_one_node_are_served_by_all_and_continued() {
    let (world, bucket) = (world(), Shared::default());
    let maker = bucket.node(true);
    let other = bucket.node_with(false, |options| options.grace = Duration::ZERO);
    let one = Source::start(&world, &maker, "one");
    let two = Source::start(&world, &other, "two");
    assert!(one.take().unwrap() && !one.take().unwrap());
    put(&world, [0], 2);
    assert!(!two.take().unwrap(), "it does not have the turn");
    assert!(one.take().unwrap());
    eventually("the other node lists both", || two.numbers() == [1, 2]);
    let made = one.documents().unwrap();
    assert!(made.len() > 6, "lists and parts: {}", made.len());
    assert_eq!(two.documents().unwrap(), made);
    let fetches = bucket.fetches();
    assert_eq!(two.documents().unwrap(), made);
    assert_eq!(bucket.fetches(), fetches);

    let folder = one.folder.clone();
    drop((one, maker));
    fs::remove_dir_all(folder).unwrap();
    assert_eq!(two.documents().unwrap(), made);
    other.give_turn(true);
    put(&world, [39], 2);
    assert!(two.take().unwrap());
    assert_eq!(two.numbers(), [2, 3]);
    let after = two.documents().unwrap();
    let common = |of: &Documents| of.iter().filter(|one| made.contains(one)).count();
    assert!(common(&after) > 4, "the second list and unchanged parts stay");
    let mut paths: Vec<_> = after.iter().map(|(path, _)| path).collect();
    paths.sort();
    paths.dedup();
    eventually("replaced files are removed", || bucket.count() == paths.len());
    let third = bucket.node(false);
    assert_eq!(Source::start(&world, &third, "three").documents().unwrap(), after);
}

#[test]
fn archives_follow_a_renamed_set_and_end_with_a_removed_one() {
    let (world, bucket) = (world(), Shared::default());
    let store = bucket.store();
    // Left over from a set with the later name.
    let name = |number: u8| format!("0123456789abcde{number}/list-1.xml.gz");
    let leftover = |group: &str| {
        let file = MadeFile { name: name(1), length: 1, id: address_of(b"x") };
        store.put(group, &file, &mut &b"x"[..]).unwrap();
    };
    leftover("archives/new");
    let maker = bucket.node(true);
    let one = Source::start(&world, &maker, "one");
    assert!(one.take().unwrap());
    put(&world, [0], 2);
    assert!(one.take().unwrap());
    let made = one.documents().unwrap();
    drop((one, maker));
    let files = bucket.count() - 1;
    for group in ["snapshots/set", "dumps/set/resources", "dumps/set/changes"] {
        leftover(group);
    }

    bucket.set_away(true);
    assert_eq!(rename_made_files(&*store, ("set", "new")).unwrap_err().kind(), ErrorKind::Busy);
    bucket.set_away(false);
    // Also if it is repeated.
    for _ in 0..2 {
        rename_made_files(&*store, ("set", "new")).unwrap();
        assert_eq!(bucket.count(), files);
    }
    let node = bucket.node(true);
    let renamed = Source::with(&world, &node.files().of_set("new"), "two");
    assert_eq!(renamed.numbers(), [1, 2]);
    assert_eq!(renamed.documents().unwrap(), made);
    assert_eq!(Source::start(&world, &node, "three").numbers(), [0_u64; 0]);
    put(&world, [1], 2);
    assert!(renamed.take().unwrap());
    assert_eq!(renamed.numbers(), [2, 3]);
    drop((renamed, node));

    remove_made_files(&*store, "new").unwrap();
    assert_eq!(bucket.count(), 0);
    // A new set of this name does not list them, although copies are in the folder of the node.
    let node = bucket.node(true);
    let again = Source::with(&world, &node.files().of_set("new"), "two");
    assert_eq!(again.numbers(), [0_u64; 0]);
    assert!(again.take().unwrap());
    assert_eq!(again.numbers(), [1]);
}

#[test]
fn two_makers_at_once_archive_one_list() {
    let (world, bucket) = (world(), Shared::default());
    let nodes = [bucket.node(true), bucket.node(true)];
    let one = Source::start(&world, &nodes[0], "one");
    let two = Source::start(&world, &nodes[1], "two");
    for round in 1..=5 {
        put(&world, [round], 7);
        let taken = std::thread::scope(|scope| {
            let makers = [scope.spawn(|| one.take()), scope.spawn(|| two.take())];
            makers.map(|maker| maker.join().unwrap().unwrap())
        });
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{taken:?}");
        eventually("both list the copy", || {
            one.numbers().last() == Some(&u64::from(round)) && two.numbers() == one.numbers()
        });
    }
    assert_eq!(two.documents().unwrap(), one.documents().unwrap());
}

#[test]
fn a_list_whose_publication_was_not_answered_is_valid() {
    let (world, bucket) = (world(), Shared::default());
    let nodes = [bucket.node(true), bucket.node(false)];
    let one = Source::start(&world, &nodes[0], "one");
    let two = Source::start(&world, &nodes[1], "two");
    bucket.lose_answer();
    assert!(one.take().unwrap());
    let made = one.documents().unwrap();
    eventually("the other node lists it", || two.numbers() == [1]);
    assert_eq!(two.documents().unwrap(), made);
    put(&world, [0], 2);
    assert!(one.take().unwrap());
    assert_eq!(one.numbers(), [1, 2]);
}

#[test]
fn lists_without_a_copy_come_later_while_the_bucket_is_away() {
    let (world, bucket) = (world(), Shared::default());
    let nodes = [bucket.node(true), bucket.node(false), bucket.node(false)];
    let one = Source::start(&world, &nodes[0], "one");
    let two = Source::start(&world, &nodes[1], "two");
    assert!(one.take().unwrap());
    eventually("the other node lists it", || two.numbers() == [1]);
    bucket.set_away(true);
    let made = one.documents().unwrap();
    let is_later = |read: Result<_, PublishError>| {
        matches!(read, Err(PublishError::NotMade { seconds: 5, .. }))
    };
    assert!(is_later(two.documents().map(drop)));
    let three = Source::start(&world, &nodes[2], "three");
    assert!(three.numbers().is_empty(), "its record cannot be read yet");
    assert!(is_later(three.publisher.bytes(&made[0].0).map(drop)));
    put(&world, [0], 2);
    assert!(one.take().is_err());
    bucket.set_away(false);
    eventually("all lists are served again", || {
        three.documents().is_ok_and(|documents| documents == made)
    });
    assert!(one.take().unwrap());
    assert!(matches!(
        two.publisher.bytes("set/archived/resourcelist/9.xml"),
        Err(PublishError::NotFound)
    ));
}
