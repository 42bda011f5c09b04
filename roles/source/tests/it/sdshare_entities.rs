//! SDShare feeds of a set of entities: fragments in each syntax, snapshots and their chunks.

use crate::world::BASE;
use abreast_contents::Contents;
use abreast_core::contents::ContentStore as _;
use abreast_core::{
    Beginning, Change, ChangeLog, Description, NewSet, SetId, State, SystemClock, append,
};
use abreast_rdf::{DescriptionLimits, Entities, ReadOptions, Syntax, canonical};
use abreast_sdshare::{Document, Entry, FeedKind, Limits, Relation, with_since};
use abreast_source::projection::sdshare::{
    SdShare, SetSnapshots, SnapshotOptions, check_snapshots, remove_damaged_snapshots,
};
use abreast_source::projection::{FileContent, FileError, PublishedFile};
use abreast_source::publish::{Body, PublishError, PublishedSet, Publisher, SourceUrls};
use abreast_source::{OpenKept, Representations};
use abreast_store::SqliteLog;
use abreast_testkit::eventually;
use abreast_webtypes::{Label, Timestamp};
use oxrdf::{Triple, TripleRef};
use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Descriptions by entity, in canonical N-Triples.
type Graph = BTreeMap<String, String>;

pub(crate) struct Place {
    pub(crate) temporary: tempfile::TempDir,
    pub(crate) log: Arc<dyn ChangeLog>,
    pub(crate) set: SetId,
    contents: Contents,
    /// A test locks the gate to delay all reading.
    pub(crate) gate: Arc<Mutex<()>>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let log: Arc<dyn ChangeLog> =
            Arc::new(SqliteLog::temporary(Arc::new(SystemClock)).unwrap());
        let new = NewSet { slug: "set".into(), beginning: Beginning::Log, ..NewSet::default() };
        let set = log.open_set(&new).unwrap().id;
        let contents = Contents::open(&temporary.path().join("contents")).unwrap();
        Self { temporary, log, set, contents, gate: Arc::default() }
    }

    /// Records the description of an entity.
    pub(crate) fn put(&self, iri: &str, lines: &str) {
        let triples = triples(Syntax::NTriples, lines.as_bytes());
        let lines = canonical(triples.iter().map(Triple::as_ref)).lines;
        let kept = self.contents.put_bytes(&lines).unwrap();
        let labels = vec![Label::plain(format!("The {}", iri.rsplit('/').next().unwrap()))];
        let state = State {
            modified: Timestamp::from_seconds(lines.len() as i64),
            length: Some(lines.len() as u64),
            media_type: Some("application/n-triples".to_owned()),
            description: Some(Box::new(Description { labels, ..Description::default() })),
            content: Some(kept.id()),
            ..State::default()
        };
        append(&*self.log, self.set, vec![Change::put(iri, state)]).unwrap();
    }

    pub(crate) fn delete(&self, iri: &str) {
        append(&*self.log, self.set, vec![Change::delete(iri)]).unwrap();
    }

    pub(crate) fn representations(&self) -> Representations {
        let (contents, gate) = (self.contents.clone(), Arc::clone(&self.gate));
        let open: OpenKept = Arc::new(move |id| {
            drop(gate.lock());
            contents.open_read(id).map_err(Into::into)
        });
        Representations::elsewhere().with_kept(Some(open))
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.temporary.path().join("snapshots")
    }

    pub(crate) fn snapshots(&self, options: SnapshotOptions) -> Arc<SetSnapshots> {
        let log = Arc::clone(&self.log);
        SetSnapshots::open(log, self.set, self.representations(), self.folder(), options, None)
            .unwrap()
    }

    pub(crate) fn publisher(&self, snapshots: Option<Arc<SetSnapshots>>) -> Publisher {
        let urls = SourceUrls::new(BASE);
        let set = PublishedSet {
            representations: self.representations(),
            ..PublishedSet::new(self.set, "set", urls.set("set").of_entities("http://id.example/"))
        };
        let set = set.with(snapshots);
        let folder = self.temporary.path().join("documents");
        Publisher::new(Arc::clone(&self.log), urls, [set], folder)
            .unwrap()
            .with_projection(SdShare::default())
    }
}

fn triples(syntax: Syntax, bytes: &[u8]) -> Vec<Triple> {
    let mut triples = Vec::new();
    abreast_rdf::read(syntax, bytes, &ReadOptions::default(), &mut |quad| {
        triples.push(Triple::from(TripleRef::from(quad)));
        ControlFlow::Continue(())
    })
    .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)));
    triples
}

fn graph(syntax: Syntax, bytes: &[u8]) -> Graph {
    let triples = triples(syntax, bytes);
    Entities::new(triples.iter().map(Triple::as_ref))
        .descriptions(DescriptionLimits::default())
        .map(|described| {
            let described = described.unwrap();
            (described.entity, String::from_utf8(described.canonical.lines).unwrap())
        })
        .collect()
}

pub(crate) fn feed(publisher: &Publisher, url: &str) -> Document {
    let path = url.strip_prefix(BASE).unwrap();
    let document = match path.split_once('?') {
        Some((path, query)) => publisher.queried(path, query),
        None => publisher.document(path),
    };
    let document = document.unwrap();
    let Body::Memory(bytes) = document.plain() else { panic!("a short feed") };
    let read = Document::from_slice(bytes, url, Limits::default()).unwrap();
    assert_eq!(read.findings, [], "{}", String::from_utf8_lossy(bytes));
    read
}

fn fragments(publisher: &Publisher) -> Document {
    feed(publisher, &format!("{BASE}set/sdshare/fragments"))
}

pub(crate) fn open(publisher: &Publisher, url: &str) -> Result<PublishedFile, FileError> {
    let path = url.strip_prefix(BASE).unwrap();
    assert!(publisher.is_file(path), "{path}");
    publisher.file(path, None)
}

pub(crate) fn bytes(file: PublishedFile) -> Vec<u8> {
    let plain = content(file.content);
    if let Some(packed) = file.gzip {
        let (packed, mut bytes) = (content(packed), Vec::new());
        flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, plain);
    }
    plain
}

fn content(content: FileContent) -> Vec<u8> {
    let mut bytes = Vec::new();
    match content {
        FileContent::Made { body: Body::Memory(bytes), .. } => return bytes.to_vec(),
        FileContent::Made { .. } => panic!("few bytes are in memory"),
        FileContent::File(mut file) => {
            file.read_to_end(&mut bytes).unwrap();
        }
        FileContent::Stored { .. } => panic!("contents are on this machine"),
        FileContent::Shared { .. } => panic!("files are on this machine"),
        FileContent::Part { mut file, start, length } => {
            file.seek(SeekFrom::Start(start)).unwrap();
            file.take(length).read_to_end(&mut bytes).unwrap();
        }
    }
    bytes
}

fn syntax_of(media_type: &str) -> Syntax {
    Syntax::of_sdshare_media_type(media_type).unwrap()
}

pub(crate) fn links(entry: &Entry, relation: &Relation) -> Vec<(String, String)> {
    entry.targets(relation).map(|link| (link.essence(), link.href.clone())).collect()
}

pub(crate) const A: &str = "http://id.example/a";
const B: &str = "http://id.example/b/c";
const C: &str = "https://other.example/ü?x=1&y#z";

pub(crate) fn filled() -> Place {
    let place = Place::new();
    let blank = "<http://p.example/has> _:x .\n_:x <http://p.example/name> \"n é €\\n😀\"@en";
    place.put(A, &format!("<{A}> <http://p.example/knows> <{B}> .\n<{A}> {blank} .\n"));
    place.put(B, &format!("<{B}> {blank} .\n<{B}> <http://p.example/1> \"no name for XML\" .\n"));
    place.put(C, &format!("<{C}> {blank} .\n<{C}> <http://p.example/loop> _:l .\n_:l <http://p.example/loop> _:l .\n"));
    place
}

/// The descriptions that the set publishes.
fn state(place: &Place) -> Graph {
    let publisher = place.publisher(None);
    let mut state = Graph::new();
    for entry in fragments(&publisher).entries {
        let (_, url) = links(&entry, &Relation::Fragment)
            .into_iter()
            .find(|(essence, _)| essence == "application/n-triples")
            .unwrap();
        state.extend(graph(Syntax::NTriples, &bytes(open(&publisher, &url).unwrap())));
    }
    state
}

#[test]
fn an_entity_is_a_fragment_in_every_syntax_that_can_carry_it() {
    let place = filled();
    let publisher = place.publisher(None);
    let feed = fragments(&publisher);
    assert_eq!(feed.kind(), Some(FeedKind::Fragments));
    let mut types = BTreeMap::new();
    for entry in &feed.entries {
        let iri = &entry.resources[0];
        assert_eq!(entry.title, format!("The {}", iri.rsplit('/').next().unwrap()));
        for (essence, url) in links(entry, &Relation::Fragment) {
            let file = open(&publisher, &url).unwrap();
            assert_eq!((file.content_type.as_ref(), file.negotiated), (essence.as_str(), true));
            let bytes = bytes(file);
            assert!(essence != "text/plain" || bytes.is_ascii());
            let read = graph(syntax_of(&essence), &bytes);
            let nt = publisher.file(
                &url.replace(BASE, "")
                    .replace("/ttl/", "/nt/")
                    .replace("/rdf/", "/nt/")
                    .replace("/txt/", "/nt/"),
                None,
            );
            let lines = String::from_utf8(self::bytes(nt.unwrap())).unwrap();
            assert_eq!(read, Graph::from([(iri.clone(), lines)]), "{url}");
            types.entry(iri.clone()).or_insert_with(Vec::new).push(essence);
        }
    }
    let all = ["application/rdf+xml", "application/n-triples", "text/plain", "text/turtle"];
    assert_eq!(
        (&types[A][..], &types[C][..]),
        (&all.map(String::from)[..], &all.map(String::from)[..])
    );
    assert_eq!(types[B], all[1..], "RDF/XML has no name for one of its predicates");
    let url = format!("{BASE}set/sdshare/fragment/rdf/b/c");
    assert!(matches!(open(&publisher, &url), Err(FileError::NotAcceptable(_))));
}

#[test]
fn a_deleted_entity_is_an_empty_document_in_every_syntax() {
    let place = filled();
    place.delete(B);
    let publisher = place.publisher(None);
    let feed = fragments(&publisher);
    let entry = feed.entries.last().unwrap();
    assert_eq!(entry.resources, [B]);
    let links = links(entry, &Relation::Fragment);
    assert_eq!(links.len(), 4);
    for (essence, url) in links {
        let file = open(&publisher, &url).unwrap();
        assert_eq!(file.content_type, essence);
        assert_eq!(triples(syntax_of(&essence), &bytes(file)), []);
    }
    assert_eq!(state(&place).into_keys().collect::<Vec<_>>(), [A, C]);
}

#[test]
fn a_snapshot_and_its_chunks_are_the_whole_set() {
    let place = filled();
    let options = SnapshotOptions { chunk_bytes: 1, ..SnapshotOptions::default() };
    let snapshots = place.snapshots(options);
    let publisher = place.publisher(Some(Arc::clone(&snapshots)));
    let url = format!("{BASE}set/sdshare/snapshots");

    // While a snapshot is made, the feed lists its time; the files are available later.
    let gate = place.gate.lock().unwrap();
    let making = feed(&publisher, &url);
    let [entry] = &making.entries[..] else { panic!("{:?}", making.entries) };
    let taken = place.log.head(place.set).unwrap().time;
    assert_eq!((making.kind(), entry.updated), (Some(FeedKind::Snapshots), Some(taken)));
    for (_, url) in links(entry, &Relation::Snapshot) {
        assert!(matches!(open(&publisher, &url), Err(FileError::Making { .. })), "{url}");
    }
    let chunks = links(entry, &Relation::ChunkedSnapshot)[0].1.clone();
    let document = |url: &str| publisher.document(url.strip_prefix(BASE).unwrap());
    assert!(matches!(document(&chunks), Err(PublishError::Making)));
    drop(gate);

    eventually("the snapshot is complete", || document(&chunks).is_ok());
    let entry = feed(&publisher, &url).entries.remove(0);
    assert_eq!(entry.updated, Some(taken));
    let forms = links(&entry, &Relation::Snapshot);
    let types: Vec<_> = forms.iter().map(|(essence, _)| essence.as_str()).collect();
    // RDF/XML cannot express one of the descriptions.
    assert_eq!(types, ["application/n-triples", "text/plain", "text/turtle"]);
    let expected = state(&place);
    for (essence, url) in &forms {
        let bytes = bytes(open(&publisher, url).unwrap());
        assert!(bytes.is_ascii());
        assert_eq!(graph(syntax_of(essence), &bytes), expected, "{url}");
    }
    let chunks = feed(&publisher, &chunks);
    assert_eq!((chunks.kind(), chunks.entries.len()), (Some(FeedKind::ChunkedSnapshot), 3));
    let mut parts = (Vec::new(), Graph::new());
    for chunk in &chunks.entries {
        assert_eq!(chunk.updated, Some(taken));
        let components = links(chunk, &Relation::SnapshotComponent);
        assert_eq!(components.len(), 3);
        let bytes = bytes(open(&publisher, &components[0].1).unwrap());
        let part = graph(Syntax::NTriples, &bytes);
        assert_eq!(part.len(), 1, "no description is divided");
        parts.0.extend(bytes);
        parts.1.extend(part);
    }
    assert_eq!(parts.0, bytes(open(&publisher, &forms[0].1).unwrap()));
    assert_eq!(parts.1, expected);
    for name in ["1-1.nt", "1-1/1.nt"] {
        assert!(matches!(open(&publisher, &format!("{url}/{name}")), Err(FileError::NotFound(_))));
    }
    snapshots.stop();
}

#[test]
fn a_snapshot_in_rdf_xml_is_offered_when_that_can_carry_it() {
    let place = filled();
    place.delete(B);
    let snapshots = place.snapshots(SnapshotOptions::default());
    let publisher = place.publisher(Some(Arc::clone(&snapshots)));
    let url = format!("{BASE}set/sdshare/snapshots");
    eventually("it is listed", || {
        let feed = feed(&publisher, &url);
        feed.entries.iter().any(|entry| links(entry, &Relation::Snapshot).len() == 4)
    });
    let entry = feed(&publisher, &url).entries.remove(0);
    let (essence, url) = links(&entry, &Relation::Snapshot).remove(0);
    assert_eq!(essence, "application/rdf+xml");
    let bytes = bytes(open(&publisher, &url).unwrap());
    assert_eq!(graph(Syntax::RdfXml, &bytes), state(&place));
    snapshots.stop();
}

#[test]
fn what_changes_while_a_snapshot_is_made_comes_as_fragments() {
    let place = filled();
    let snapshots = place.snapshots(SnapshotOptions::default());
    let publisher = place.publisher(Some(Arc::clone(&snapshots)));
    let url = format!("{BASE}set/sdshare/snapshots");
    let gate = place.gate.lock().unwrap();
    let entry = feed(&publisher, &url).entries.remove(0);
    place.put(A, &format!("<{A}> <http://p.example/new> \"new\" .\n"));
    place.delete(C);
    place.put("http://id.example/d", "<http://id.example/d> <http://p.example/p> \"d\" .\n");
    drop(gate);
    let (_, file) = links(&entry, &Relation::Snapshot).remove(0);
    eventually("the snapshot is complete", || open(&publisher, &file).is_ok());
    let mut copy = graph(Syntax::NTriples, &bytes(open(&publisher, &file).unwrap()));
    let since = with_since(&format!("{BASE}set/sdshare/fragments"), entry.updated.unwrap());
    for entry in feed(&publisher, &since).entries {
        copy.remove(&entry.resources[0]);
        let (essence, url) = links(&entry, &Relation::Fragment).pop().unwrap();
        copy.extend(graph(syntax_of(&essence), &bytes(open(&publisher, &url).unwrap())));
    }
    assert_eq!(copy, state(&place));
    snapshots.stop();
}

#[test]
fn a_snapshot_of_nothing_is_replaced_once_there_is_something() {
    let place = Place::new();
    let snapshots = place.snapshots(SnapshotOptions::default());
    let publisher = place.publisher(Some(Arc::clone(&snapshots)));
    let url = format!("{BASE}set/sdshare/snapshots");
    let newest = || {
        let entry = feed(&publisher, &url).entries.remove(0);
        let (_, file) = links(&entry, &Relation::Snapshot).pop().unwrap();
        open(&publisher, &file).ok().map(|file| graph(Syntax::Turtle, &bytes(file)).len())
    };
    eventually("it is complete", || newest() == Some(0));
    place.put(A, "<http://id.example/a> <http://p.example/p> \"a\" .\n");
    eventually("there is another", || newest() == Some(1));
    snapshots.stop();
}

#[test]
fn snapshots_are_kept_over_restarts_and_replaced_when_old() {
    let place = filled();
    let options =
        SnapshotOptions { every: std::time::Duration::ZERO, keep: 1, ..SnapshotOptions::default() };
    let url = format!("{BASE}set/sdshare/snapshots");
    let times = |snapshots: &Arc<SetSnapshots>| {
        let publisher = place.publisher(Some(Arc::clone(snapshots)));
        let entries = feed(&publisher, &url).entries;
        let complete = entries.iter().filter(|entry| {
            let file = &links(entry, &Relation::Snapshot)[0].1;
            open(&publisher, file).is_ok()
        });
        complete.map(|entry| entry.updated.unwrap()).collect::<Vec<_>>()
    };
    let snapshots = place.snapshots(options);
    let head = || place.log.head(place.set).unwrap().time;
    eventually("the first one is complete", || times(&snapshots) == [head()]);
    snapshots.stop();

    // Unfinished files of a killed process.
    let left = place.folder().join("making-17-4.nt");
    std::fs::write(&left, "half").unwrap();
    let alone = place.folder().join("17-4.nt");
    std::fs::write(&alone, "without a record").unwrap();
    let foreign = place.folder().join("notes.txt");
    std::fs::write(&foreign, "somebody's").unwrap();
    let snapshots = place.snapshots(SnapshotOptions { every: std::time::Duration::MAX, ..options });
    assert!(!left.exists() && !alone.exists() && foreign.exists());
    let first = head();
    assert_eq!(times(&snapshots), [first]);
    place.put(A, "<http://id.example/a> <http://p.example/p> \"later\" .\n");
    assert_eq!(times(&snapshots), [first], "it is not old enough");
    snapshots.stop();

    let snapshots = place.snapshots(options);
    eventually("a newer one has replaced it", || times(&snapshots) == [head()]);
    snapshots.stop();
    let files = || std::fs::read_dir(place.folder()).unwrap().count();
    eventually("the older one is removed", || files() == 4);
    // Damage is detected in each file.
    let folder = place.folder();
    let check = |read_data| {
        let mut rules = Vec::new();
        check_snapshots(folder.parent().unwrap(), read_data, &mut |found| rules.push(found.rule))
            .unwrap();
        rules
    };
    assert_eq!(check(true), [""; 0]);
    for extension in ["nt", "ntz", "json"] {
        let of = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == extension);
        let files = std::fs::read_dir(place.folder()).unwrap().map(|entry| entry.unwrap().path());
        let path = files.into_iter().find(of).unwrap();
        let kept = std::fs::read(&path).unwrap();
        let mut damaged = kept.clone();
        damaged[0] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        let expected = if extension == "json" { "snapshots.record" } else { "snapshots.digest" };
        assert_eq!(check(true), [expected], "{extension}");
        std::fs::write(&path, b"").unwrap();
        assert_eq!(check(false), ["snapshots.record"], "{extension}");
        assert_eq!(
            remove_damaged_snapshots(folder.parent().unwrap(), true, true).unwrap().len(),
            1
        );
        std::fs::write(&path, &kept).unwrap();
    }
    assert_eq!(remove_damaged_snapshots(folder.parent().unwrap(), true, false).unwrap().len(), 0);
    assert_eq!(check(true), [""; 0]);
    // A truncated file does not count as a snapshot.
    let names = || std::fs::read_dir(place.folder()).unwrap().map(|entry| entry.unwrap().path());
    let whole = names().find(|path| path.extension().is_some_and(|end| end == "nt")).unwrap();
    std::fs::write(&whole, "cut").unwrap();
    drop(place.snapshots(options));
    assert!(!whole.exists());
}
