//! Snapshots of entities that several nodes share.

use crate::nodes::{Node, Shared, sent};
use crate::sdshare_entities::{A, Place, feed, filled, links, open};
use crate::world::BASE;
use abreast_sdshare::Relation;
use abreast_source::projection::FileError;
use abreast_source::projection::sdshare::{SdShare, SetSnapshots, SnapshotOptions};
use abreast_source::publish::{PublishedSet, Publisher, SourceUrls};
use abreast_testkit::eventually;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

const OPTIONS: SnapshotOptions =
    SnapshotOptions { every: Duration::ZERO, keep: 1, chunk_bytes: 100 };

/// A node of the Source with its own folder.
struct Source {
    snapshots: Arc<SetSnapshots>,
    publisher: Publisher,
    folder: PathBuf,
}

/// A file that a server sends: URL, tag, modification time and bytes.
type Sent = (String, String, SystemTime, Vec<u8>);

impl Source {
    fn start(place: &Place, node: &Node, name: &str) -> Self {
        let folder = place.temporary.path().join(name);
        let snapshots = SetSnapshots::open(
            Arc::clone(&place.log),
            place.set,
            place.representations(),
            folder.join("snapshots"),
            OPTIONS,
            Some(&node.set()),
        )
        .unwrap();
        let urls = SourceUrls::new(BASE);
        let set = PublishedSet {
            representations: place.representations(),
            ..PublishedSet::new(place.set, "set", urls.set("set").of_entities("http://id.example/"))
        };
        let set = set.with(Some(Arc::clone(&snapshots)));
        let publisher =
            Publisher::new(Arc::clone(&place.log), urls, [set], folder.join("documents")).unwrap();
        Self { snapshots, publisher: publisher.with_projection(SdShare::default()), folder }
    }

    /// URLs of the files of complete snapshots, and of their chunks.
    fn urls(&self) -> Vec<String> {
        let mut urls = Vec::new();
        for entry in feed(&self.publisher, &format!("{BASE}set/sdshare/snapshots")).entries {
            urls.extend(links(&entry, &Relation::Snapshot).into_iter().map(|(_, url)| url));
            let chunks = &links(&entry, &Relation::ChunkedSnapshot)[0].1;
            if self.publisher.document(chunks.strip_prefix(BASE).unwrap()).is_ok() {
                for chunk in feed(&self.publisher, chunks).entries {
                    let of_chunk = links(&chunk, &Relation::SnapshotComponent);
                    urls.extend(of_chunk.into_iter().map(|(_, url)| url));
                }
            }
        }
        urls
    }

    fn send(&self, urls: &[String]) -> Result<Vec<Sent>, FileError> {
        let send = |url: &String| {
            let (tag, modified, bytes) = sent(open(&self.publisher, url)?)?;
            Ok((url.clone(), tag, modified, bytes))
        };
        urls.iter().map(send).collect()
    }

    /// Waits for a complete snapshot of the present state.
    fn made(&self, place: &Place) -> Vec<Sent> {
        let name = || {
            let head = place.log.head(place.set).unwrap();
            format!("{}-{}", head.time.as_micros(), head.position)
        };
        let is_made = || {
            let urls = self.urls();
            urls.iter().any(|url| url.contains(&name())) && self.send(&urls).is_ok()
        };
        eventually("the snapshot is made", is_made);
        self.send(&self.urls()).unwrap()
    }

    fn local_files(&self) -> usize {
        let folders = fs::read_dir(self.folder.join("snapshots")).unwrap();
        let folders = folders.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
        // A folder may be removed meanwhile.
        folders.map(|folder| fs::read_dir(folder).map_or(0, Iterator::count)).sum()
    }
}

#[test]
fn a_snapshot_of_one_node_is_served_by_all_and_continued() {
    let (place, bucket) = (filled(), Shared::default());
    let maker = bucket.node(true);
    let other = bucket.node_with(false, |options| options.grace = Duration::ZERO);
    let one = Source::start(&place, &maker, "one");
    let two = Source::start(&place, &other, "two");
    two.snapshots.begin();
    let first = one.made(&place);
    assert!(first.len() > 4, "forms and chunks: {}", first.len());
    eventually("the other node lists the snapshot", || two.urls() == one.urls());
    assert_eq!(two.send(&two.urls()).unwrap(), first);
    let fetches = bucket.fetches();
    assert_eq!(two.send(&two.urls()).unwrap(), first);
    assert_eq!(bucket.fetches(), fetches, "each file is fetched once");

    one.snapshots.stop();
    let folder = one.folder.clone();
    drop((one, maker));
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(two.send(&two.urls()).unwrap(), first);
    place.put(A, "<http://id.example/a> <http://p.example/p> \"later\" .\n");
    assert_eq!(two.send(&two.urls()).unwrap(), first, "it does not have the turn");
    other.give_turn(true);
    let second = two.made(&place);
    assert_ne!(second, first);
    assert!(matches!(open(&two.publisher, &first[0].0), Err(FileError::NotFound(_))));
    let files = two.local_files();
    eventually("replaced files are removed from the bucket", || bucket.count() == files);
    let three = Source::start(&place, &bucket.node(false), "one");
    assert_eq!(three.send(&three.urls()).unwrap(), second);
    two.snapshots.stop();
}

#[test]
fn a_request_of_a_node_without_the_turn_reaches_the_maker() {
    let (place, bucket) = (filled(), Shared::default());
    let (maker, other) = (bucket.node(true), bucket.node(false));
    let one = Source::start(&place, &maker, "one");
    let two = Source::start(&place, &other, "two");
    eventually("the other node has a snapshot", || !two.urls().is_empty());
    place.put(A, "<http://id.example/a> <http://p.example/p> \"later\" .\n");
    let second = two.made(&place);
    assert_eq!(one.send(&one.urls()).unwrap(), second);
    one.snapshots.stop();
}

#[test]
fn two_makers_at_once_publish_one_snapshot() {
    let (place, bucket) = (filled(), Shared::default());
    let nodes = [bucket.node(true), bucket.node(true)];
    let [one, two] =
        [(0, "one"), (1, "two")].map(|(number, name)| Source::start(&place, &nodes[number], name));
    let gate = place.gate.lock().unwrap();
    one.snapshots.begin();
    two.snapshots.begin();
    eventually("both make files", || one.local_files() > 0 && two.local_files() > 0);
    drop(gate);
    let made = one.made(&place);
    assert_eq!(two.made(&place), made);
    one.snapshots.stop();
    two.snapshots.stop();
    let files = one.local_files();
    assert_eq!((bucket.count(), two.local_files()), (files, files));
}

#[test]
fn a_maker_that_loses_its_turn_removes_its_files() {
    let (place, bucket) = (filled(), Shared::default());
    let maker = bucket.node(true);
    let one = Source::start(&place, &maker, "one");
    let gate = place.gate.lock().unwrap();
    one.snapshots.begin();
    eventually("files are made", || one.local_files() > 0);
    maker.give_turn(false);
    drop(gate);
    eventually("no file is left", || one.local_files() == 0);
    one.snapshots.stop();
    assert_eq!((bucket.count(), one.urls().len()), (0, 0));
}

#[test]
fn local_snapshots_are_served_while_the_bucket_is_away() {
    let (place, bucket) = (filled(), Shared::default());
    let (maker, other) = (bucket.node(true), bucket.node(false));
    let one = Source::start(&place, &maker, "one");
    let two = Source::start(&place, &other, "two");
    one.snapshots.begin();
    let made = one.made(&place);
    one.snapshots.stop();
    eventually("the other node lists the snapshot", || two.urls() == one.urls());
    two.send(&two.urls()[..1]).unwrap();
    bucket.set_away(true);
    assert_eq!(one.send(&one.urls()).unwrap(), made);
    // The first file and its compressed form are local; RDF/XML is not.
    two.send(&two.urls()[..1]).unwrap();
    let refused = two.send(&made.iter().map(|(url, ..)| url.clone()).collect::<Vec<_>>());
    assert!(matches!(refused, Ok(_) | Err(FileError::Later { seconds: 5, .. })), "{refused:?}");
    // A node that starts now serves its local copies; a node without copies asks to retry.
    drop(two);
    let nodes = [bucket.node(false), bucket.node(false)];
    let two = Source::start(&place, &nodes[0], "two");
    assert_eq!(two.send(&two.urls()[..1]).unwrap()[..], made[..1]);
    let three = Source::start(&place, &nodes[1], "three");
    let refused = three.send(&[made[0].0.clone()]);
    assert!(matches!(refused, Err(FileError::Later { .. })), "{refused:?}");
    bucket.set_away(false);
    eventually("all files are served again", || {
        three.urls() == one.urls() && three.send(&three.urls()).is_ok_and(|sent| sent == made)
    });
}
