//! Dumps that several nodes share.

use crate::nodes::{Node, Shared, sent};
use crate::world::{BASE, World, bytes};
use abreast_core::PageRule;
use abreast_resourcesync::v1_1::Document;
use abreast_source::dump::{DumpOptions, DumpSet, Dumper, Dumps, SetDumps};
use abreast_source::projection::resourcesync_0_1::ResourceSync01;
use abreast_source::projection::{FileError, PublishedFile};
use abreast_source::publish::{PublishedSet, Publisher, SourceUrls};
use abreast_testkit::eventually;
use std::fs;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A node of the Source with its own folder.
struct Source {
    dumps: Arc<SetDumps>,
    publisher: Publisher,
    dumper: Option<Dumper>,
    folder: PathBuf,
}

impl Drop for Source {
    fn drop(&mut self) {
        self.dumps.stop();
        self.dumper.take().unwrap().stop();
    }
}

fn options() -> DumpOptions {
    DumpOptions {
        every: Duration::ZERO,
        // A package for each resource.
        part_size: 190,
        grace: Duration::ZERO,
        keep: 1,
        changes: true,
        patience: Duration::from_secs(1),
        ..DumpOptions::default()
    }
}

/// Tag, modification time and bytes of a file, as a server sends them.
type Sent = (String, SystemTime, Vec<u8>);

impl Source {
    fn start(world: &World, node: &Node, name: &str) -> Self {
        Self::start_with(world, node, name, options())
    }

    fn start_with(world: &World, node: &Node, name: &str, options: DumpOptions) -> Self {
        let folder = world.temporary.path().join(name);
        let set = world.published();
        let PublishedSet { id, slug, urls, representations, .. } = world.published();
        let shared = Dumps::new(Arc::clone(&world.log), folder.join("dumps"), Some(node.files()));
        let of_set = DumpSet { id, slug, urls, representations, options };
        let dumps = shared.open_set(of_set).unwrap();
        let set = set.with(Some(Arc::clone(&dumps)));
        let publisher = Publisher::new(
            Arc::clone(&world.log),
            SourceUrls::new(BASE),
            [set],
            folder.join("documents"),
        );
        let publisher = publisher.unwrap().with_projection(ResourceSync01::default());
        let dumper = Some(shared.start([Arc::clone(&dumps)]).unwrap());
        Self { dumps, publisher, dumper, folder }
    }

    fn read(&self, path: &str) -> Document {
        Document::from_slice(&bytes(&self.publisher, path)).unwrap()
    }

    fn file(&self, path: &str) -> Result<PublishedFile, FileError> {
        self.publisher.file(path, None)
    }

    /// All packages and manifests to which a document links, by path.
    fn send(&self, document: &str) -> Result<Vec<(String, Sent)>, FileError> {
        let mut all = Vec::new();
        for entry in self.read(document).entries {
            let urls = entry.links.iter().map(|link| &link.href).chain([&entry.loc]);
            for path in urls.filter_map(|url| url.strip_prefix(BASE)) {
                all.push((path.to_owned(), sent(self.file(path)?)?));
            }
        }
        Ok(all)
    }

    /// Waits until a package of changes ends with the last change.
    fn changes_are_dumped(&self, world: &World) {
        eventually("all changes are in packages", || {
            let head = world.log.head(world.set).unwrap();
            self.dumps.changes().last().is_some_and(|dump| dump.end == head.time)
        });
    }

    /// URIs of all changes in the packages, which follow each other without a gap.
    fn changed(&self) -> Vec<String> {
        let dumps = self.dumps.changes();
        assert!(dumps.windows(2).all(|two| two[0].end == two[1].begin), "{dumps:?}");
        let mut changed = Vec::new();
        for (path, (_, _, bytes)) in self.send("set/changedump.xml").unwrap() {
            if path.strip_suffix(".zip").is_some() {
                let mut zip = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
                let manifest = std::io::read_to_string(zip.by_name("manifest.xml").unwrap());
                let manifest = Document::from_slice(manifest.unwrap().as_bytes()).unwrap();
                changed.extend(manifest.entries.into_iter().map(|entry| entry.loc));
            }
        }
        changed
    }
}

/// Adds a file to the set.
fn add(world: &World, name: &str) {
    world.write(name, &format!("content of {name}"));
    world.scan();
}

fn url(name: &str) -> String {
    format!("{BASE}set/r/{name}")
}

#[test]
fn dumps_of_one_node_are_served_by_all() {
    let (world, bucket) = (World::begun(), Shared::default());
    let (maker, other) = (bucket.node(true), bucket.node(false));
    add(&world, "a");
    add(&world, "b");
    let one = Source::start(&world, &maker, "one");
    let two = Source::start(&world, &other, "two");
    one.changes_are_dumped(&world);
    two.changes_are_dumped(&world);
    eventually("there is a Resource Dump", || two.dumps.newest_resources().is_some());
    for document in ["set/resourcedump.xml", "set/changedump.xml"] {
        let of_two = two.send(document).unwrap();
        assert!(of_two.len() >= 4, "{document}: two packages with manifests: {of_two:?}");
        assert_eq!(one.send(document).unwrap(), of_two, "{document}");
    }

    // Dumps of ResourceSync 0.1, made by the node to which the first request comes.
    let stem = two.dumps.newest_resources().unwrap().packages[0].stem.clone();
    for ending in ["zip", "warc.gz"] {
        let path = format!("set/v0.1/dump/{stem}-1.{ending}");
        let file = two.file(&path).unwrap();
        let digest = file.digest;
        let of_two = sent(file).unwrap();
        assert!(digest.is_some() && !of_two.2.is_empty());
        let files = bucket.count();
        let file = one.file(&path).unwrap();
        assert_eq!((file.digest, sent(file).unwrap()), (digest, of_two), "{path}");
        assert_eq!(bucket.count(), files, "it is made once");
    }

    // A package on demand.
    let query = Some("position=1");
    let file = two.publisher.file("set/changedump/since", query).unwrap();
    let (location, of_two) = (file.location.clone().unwrap(), sent(file).unwrap());
    assert_eq!(sent(one.file(location.strip_prefix(BASE).unwrap()).unwrap()).unwrap(), of_two);
    let file = one.publisher.file("set/changedump/since", query).unwrap();
    assert_eq!((file.location.clone().unwrap(), sent(file).unwrap()), (location, of_two));
    assert!(matches!(one.file("set/dump/resources-x-1.zip"), Err(FileError::NotFound(_))));
}

#[test]
fn another_maker_continues_the_change_dump() {
    let (world, bucket) = (World::begun(), Shared::default());
    let maker = bucket.node(true);
    let other = bucket.node_with(false, |options| options.grace = Duration::ZERO);
    let one = Source::start(&world, &maker, "one");
    let two = Source::start(&world, &other, "two");
    for name in ["a", "b"] {
        add(&world, name);
        one.changes_are_dumped(&world);
    }
    two.changes_are_dumped(&world);
    let before = two.send("set/resourcedump.xml").unwrap();
    let folder = one.folder.clone();
    drop((one, maker));
    fs::remove_dir_all(folder).unwrap();
    add(&world, "c");
    assert_eq!(two.send("set/resourcedump.xml").unwrap(), before);
    other.give_turn(true);
    two.changes_are_dumped(&world);
    add(&world, "d");
    two.changes_are_dumped(&world);
    assert_eq!(two.changed(), ["a", "b", "c", "d"].map(url));
    eventually("there is a new Resource Dump", || {
        two.dumps.newest_resources().is_some_and(|dump| dump.packages.len() == 4)
    });
    eventually("replaced dumps are removed", || {
        let shared = two.dumps.resources().iter().map(|dump| dump.packages.len()).sum::<usize>();
        bucket.count() == 2 * (shared + two.dumps.changes().len())
    });
    // A third node starts without files.
    let third = bucket.node(false);
    let three = Source::start(&world, &third, "three");
    assert_eq!(three.changed(), two.changed());
}

#[test]
fn a_change_dump_that_begins_again_has_all_later_changes() {
    let rule = PageRule { changes: 2, ..PageRule::default() };
    let (world, bucket) = (World::with(rule, 40_000), Shared::default());
    world.log.complete_import(world.set).unwrap();
    let node = bucket.node(true);
    add(&world, "a");
    let source = Source::start(&world, &node, "one");
    source.changes_are_dumped(&world);
    node.give_turn(false);
    // The bytes between the first version and the third are nowhere.
    for content in ["second", "third version"] {
        world.write("a", content);
        world.scan();
    }
    for name in ["b", "c", "d", "e"] {
        add(&world, name);
    }
    node.give_turn(true);
    source.changes_are_dumped(&world);
    assert_eq!(source.changed(), ["a", "b", "c", "d", "e"].map(url));
}

#[test]
fn makers_at_once_publish_each_change_once() {
    let (world, bucket) = (World::begun(), Shared::default());
    let nodes = [bucket.node(true), bucket.node(true)];
    let one = Source::start(&world, &nodes[0], "one");
    let two = Source::start(&world, &nodes[1], "two");
    let names: Vec<_> = (0..6).map(|number| format!("file-{number}")).collect();
    for name in &names {
        add(&world, name);
        one.dumps.make_now();
        two.dumps.make_now();
        eventually("both nodes list the change", || {
            let head = world.log.head(world.set).unwrap();
            let is_last = |of: &Source| of.dumps.changes().last().map(|dump| dump.end);
            [is_last(&one), is_last(&two)] == [Some(head.time); 2]
        });
    }
    let expected: Vec<_> = names.iter().map(|name| url(name)).collect();
    assert_eq!(one.changed(), expected);
    assert_eq!(two.send("set/changedump.xml").unwrap(), one.send("set/changedump.xml").unwrap());
}

#[test]
fn a_request_of_a_node_without_the_turn_is_made() {
    let (world, bucket) = (World::begun(), Shared::default());
    let (maker, other) = (bucket.node(true), bucket.node(false));
    let on_request =
        DumpOptions { scheduled: false, every: Duration::from_secs(3_600), ..options() };
    add(&world, "a");
    let one = Source::start_with(&world, &maker, "one", on_request.clone());
    let two = Source::start_with(&world, &other, "two", on_request);
    two.dumps.ask();
    eventually("the maker makes it", || two.dumps.newest_resources().is_some());
    let first = two.dumps.newest_resources();
    assert_eq!(one.dumps.newest_resources(), first);
    add(&world, "b");
    two.dumps.make_now();
    eventually("the operator's request is carried out", || {
        let newest = two.dumps.newest_resources();
        newest != first && newest.is_some_and(|dump| dump.packages.len() == 2)
    });
}

#[test]
fn dumps_that_are_local_are_served_while_the_bucket_is_away() {
    let (world, bucket) = (World::begun(), Shared::default());
    let (maker, other) = (bucket.node(true), bucket.node(false));
    add(&world, "a");
    let one = Source::start(&world, &maker, "one");
    let two = Source::start(&world, &other, "two");
    one.changes_are_dumped(&world);
    two.changes_are_dumped(&world);
    eventually("there is a Resource Dump", || two.dumps.newest_resources().is_some());
    let made = one.send("set/resourcedump.xml").unwrap();
    bucket.set_away(true);
    assert_eq!(one.send("set/resourcedump.xml").unwrap(), made);
    assert_eq!(two.read("set/resourcedump.xml").entries.len(), 1, "lists are served");
    let refused = two.send("set/resourcedump.xml");
    assert!(matches!(refused, Err(FileError::Later { seconds: 5, .. })), "{refused:?}");
    let stem = &one.dumps.newest_resources().unwrap().packages[0].stem;
    let derived = format!("set/v0.1/dump/{stem}-1.zip");
    assert!(matches!(one.file(&derived), Err(FileError::Later { .. })));
    let since = one.publisher.file("set/changedump/since", Some("position=0"));
    assert!(matches!(since, Err(FileError::Later { .. })), "{since:?}");
    add(&world, "b");
    eventually("making fails", || one.dumps.failure_of_changes().is_some());
    bucket.set_away(false);
    one.dumps.make_now();
    two.changes_are_dumped(&world);
    assert_eq!(two.changed(), ["a", "b"].map(url));
    let stem = &two.dumps.changes()[0].packages[0].stem;
    assert!(two.file(&format!("set/dump/{stem}.zip")).is_ok());
}
