//! The contract of [`MadeStore`].

use super::Named;
use crate::contents::made::{MADE_RECORD_MAX, MadeFile, MadeStore, RecordRead};
use crate::contents::{Error, ErrorKind, address_of};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// How a test makes stores of made files.
pub trait MadeStores {
    /// A new and empty store.
    fn create(&mut self) -> Arc<dyn MadeStore>;

    /// Another node that uses the newest store at the same time.
    fn share(&mut self) -> Arc<dyn MadeStore>;

    /// Changes the last byte of a file in the newest store.
    fn damage(&mut self, group: &str, name: &str);
}

/// Checks every promise of [`MadeStore`].
///
/// # Panics
/// When one is broken.
pub fn made_store_contract(stores: &mut dyn MadeStores) {
    for (promise, check) in PROMISES {
        let guard = Named(promise);
        check(stores);
        std::mem::forget(guard);
    }
}

type Check = fn(&mut dyn MadeStores);

const PROMISES: &[(&str, Check)] = &[
    ("a file is read as it was put, on every node", files_are_read_back),
    ("a put that fails leaves no file", failed_puts_leave_nothing),
    ("damaged bytes are noticed", damaged_bytes_are_noticed),
    ("a removed file is missing, and removed again", removed_files_are_missing),
    ("a record is read unless it is known", records_are_read),
    ("a record of another version is not replaced", other_versions_stay),
    ("one of several nodes replaces a record", one_node_replaces),
    ("groups are separate", groups_are_separate),
];

/// Lengths of files, around the limits of stores.
const LENGTHS: [usize; 4] = [0, 1, 70_000, (9 << 20) + 1];

fn file(name: &str, bytes: &[u8]) -> MadeFile {
    MadeFile { name: name.to_owned(), length: bytes.len() as u64, id: address_of(bytes) }
}

fn bytes_of(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place % 251) as u8).collect()
}

fn put(store: &dyn MadeStore, group: &str, name: &str, bytes: &[u8]) -> MadeFile {
    let file = file(name, bytes);
    store.put(group, &file, &mut { bytes }).expect("a file can be put");
    file
}

fn fetch(store: &dyn MadeStore, group: &str, file: &MadeFile) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    store.fetch(group, file, &mut bytes).map(|()| bytes)
}

fn kind<T>(result: Result<T, Error>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

fn names(store: &dyn MadeStore, group: &str) -> BTreeMap<String, Duration> {
    let mut names = BTreeMap::new();
    let mut visit = |name: &str, age| assert!(names.insert(name.to_owned(), age).is_none());
    store.visit(group, &mut visit).expect("files can be listed");
    names
}

fn files_are_read_back(stores: &mut dyn MadeStores) {
    let (one, two) = (stores.create(), stores.share());
    for length in LENGTHS {
        let bytes = bytes_of(length);
        let file = put(&*one, "dumps/set", &format!("ab12/file-{length}.zip"), &bytes);
        for node in [&one, &two] {
            assert!(fetch(&**node, "dumps/set", &file).expect("it is stored") == bytes, "{length}");
        }
    }
    let names = names(&*two, "dumps/set");
    assert_eq!(names.len(), LENGTHS.len());
    assert!(names.contains_key("ab12/file-1.zip"), "{names:?}");
    assert!(names.values().all(|age| *age < Duration::from_secs(600)), "{names:?}");
    let newer = put(&*two, "dumps/set", "ab12/file-1.zip", b"newer");
    assert_eq!(fetch(&*one, "dumps/set", &newer).expect("it is replaced"), b"newer");
}

fn failed_puts_leave_nothing(stores: &mut dyn MadeStores) {
    /// Fails after the bytes.
    struct Broken<'a>(&'a [u8]);
    impl std::io::Read for Broken<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(buffer) {
                Ok(0) => Err(std::io::Error::other("on purpose")),
                read => read,
            }
        }
    }
    let store = stores.create();
    for length in [5, (9 << 20) + 1] {
        let bytes = bytes_of(length);
        let file = file("ab/x", &bytes);
        let put = |reader: &mut dyn std::io::Read| kind(store.put("group", &file, reader));
        assert_eq!(put(&mut Broken(&bytes[1..])), Some(ErrorKind::Input), "{length}");
        assert_eq!(put(&mut &bytes[1..]), Some(ErrorKind::Input), "too short: {length}");
        let other = vec![7; length];
        assert_eq!(put(&mut other.as_slice()), Some(ErrorKind::Input), "another digest: {length}");
        let longer = [bytes.as_slice(), b"x"].concat();
        assert_eq!(put(&mut longer.as_slice()), Some(ErrorKind::Input), "too long: {length}");
        assert_eq!(kind(fetch(&*store, "group", &file)), Some(ErrorKind::NotFound));
    }
    assert!(names(&*store, "group").is_empty());
}

fn damaged_bytes_are_noticed(stores: &mut dyn MadeStores) {
    let store = stores.create();
    for length in [1, 70_000, (9 << 20) + 1] {
        let file = put(&*store, "group", "ab/x", &bytes_of(length));
        stores.damage("group", "ab/x");
        assert_eq!(kind(fetch(&*store, "group", &file)), Some(ErrorKind::Damaged), "{length}");
    }
    put(&*store, "group", "ab/x", b"other");
    let other = file("ab/x", b"of another length");
    assert_eq!(kind(fetch(&*store, "group", &other)), Some(ErrorKind::Damaged));
    assert_eq!(kind(fetch(&*store, "group", &file("ab/x", b""))), Some(ErrorKind::Damaged));
}

fn removed_files_are_missing(stores: &mut dyn MadeStores) {
    let (one, two) = (stores.create(), stores.share());
    let file = put(&*one, "group", "ab/x", b"bytes");
    let left = put(&*one, "group", "ab/y", b"bytes");
    for _ in 0..2 {
        two.remove("group", "ab/x").expect("a file can be removed");
        assert_eq!(kind(fetch(&*one, "group", &file)), Some(ErrorKind::NotFound));
    }
    assert_eq!(kind(fetch(&*one, "group", &self::file("ab/z", b""))), Some(ErrorKind::NotFound));
    assert_eq!(fetch(&*one, "group", &left).expect("another file stays"), b"bytes");
    assert_eq!(names(&*one, "group").len(), 1);
}

fn replaced(store: &dyn MadeStore, record: &[u8], expected: Option<&str>) -> Option<String> {
    store.replace_record("group", record, expected).expect("a record can be replaced")
}

fn records_are_read(stores: &mut dyn MadeStores) {
    let (one, two) = (stores.create(), stores.share());
    let read = |known: Option<&str>| two.record("group", known).expect("a record can be read");
    assert_eq!(read(None), RecordRead::Missing);
    assert_eq!(read(Some("\"1\"")), RecordRead::Missing);
    let first = replaced(&*one, b"first", None).expect("there was none");
    let changed = |record: &[u8], version: &str| RecordRead::Changed {
        record: record.to_vec(),
        version: version.to_owned(),
    };
    assert_eq!(read(None), changed(b"first", &first));
    assert_eq!(read(Some(&first)), RecordRead::Same);
    let second = replaced(&*two, b"second", Some(&first)).expect("the version is the expected");
    assert_eq!(read(Some(&first)), changed(b"second", &second));
    assert_eq!(read(Some(&second)), RecordRead::Same);
    let long = vec![b' '; MADE_RECORD_MAX + 1];
    assert!(one.replace_record("group", &long, Some(&second)).is_err());
    assert_eq!(read(Some(&second)), RecordRead::Same);
    assert!(names(&*one, "group").is_empty(), "a record is not a file");
}

fn other_versions_stay(stores: &mut dyn MadeStores) {
    let (one, two) = (stores.create(), stores.share());
    assert_eq!(replaced(&*one, b"x", Some("\"1\"")), None, "there is no record");
    assert_eq!(one.record("group", None).expect("it can be read"), RecordRead::Missing);
    let first = replaced(&*one, b"first", None).expect("there was none");
    assert_eq!(replaced(&*two, b"x", None), None, "there is a record");
    let second = replaced(&*two, b"second", Some(&first)).expect("the version is the expected");
    assert_eq!(replaced(&*one, b"x", Some(&first)), None, "the version is replaced");
    assert_eq!(one.record("group", Some(&second)).expect("it can be read"), RecordRead::Same);
}

fn one_node_replaces(stores: &mut dyn MadeStores) {
    const NODES: usize = 4;
    const ROUNDS: usize = 15;
    let first = stores.create();
    let mut nodes: Vec<_> = (1..NODES).map(|_| stores.share()).collect();
    nodes.push(Arc::clone(&first));
    // Each node adds a byte in each round, after it has read the record.
    let add = |node: &Arc<dyn MadeStore>| loop {
        let (mut record, version) = match node.record("group", None).expect("it can be read") {
            RecordRead::Changed { record, version } => (record, Some(version)),
            _ => (Vec::new(), None),
        };
        record.push(b'x');
        match node.replace_record("group", &record, version.as_deref()) {
            Ok(Some(_)) => return,
            Ok(None) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::Busy, "{error}"),
        }
    };
    thread::scope(|scope| {
        for node in &nodes {
            scope.spawn(move || (0..ROUNDS).for_each(|_| add(node)));
        }
    });
    let RecordRead::Changed { record, .. } = first.record("group", None).expect("it can be read")
    else {
        panic!("there is a record");
    };
    assert_eq!(record.len(), NODES * ROUNDS, "no change is lost");
}

fn groups_are_separate(stores: &mut dyn MadeStores) {
    let store = stores.create();
    let groups = ["dumps/a", "dumps/ab", "dumps/a/changes", "snapshots/a"];
    for group in groups {
        put(&*store, group, &format!("ab/{}", group.replace('/', "-")), group.as_bytes());
        assert!(store.replace_record(group, group.as_bytes(), None).expect("it is new").is_some());
    }
    for group in groups {
        let expected = format!("ab/{}", group.replace('/', "-"));
        assert_eq!(names(&*store, group).into_keys().collect::<Vec<_>>(), [expected], "{group}");
        let RecordRead::Changed { record, .. } = store.record(group, None).expect("it can be read")
        else {
            panic!("{group} has a record");
        };
        assert_eq!(record, group.as_bytes());
    }
}
