//! The contract of [`ContentStore`].

use super::Named;
use crate::ContentId;
use crate::contents::{ContentStore, Error, ErrorKind, PinnedContent, address_of};
use std::collections::BTreeSet;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::ControlFlow;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

/// How a test makes stores of contents.
pub trait ContentStores {
    /// A new and empty store.
    fn create(&mut self) -> Arc<dyn ContentStore>;

    /// Closes the newest store and opens it again, as after a crash.
    fn reopen(&mut self, store: Arc<dyn ContentStore>) -> Arc<dyn ContentStore>;

    /// Another node that uses the newest store at the same time; `None` if only one process can.
    fn share(&mut self) -> Option<Arc<dyn ContentStore>>;

    /// Changes the last byte of a content in the newest store.
    fn damage(&mut self, id: &ContentId);

    /// Waits until contents that were put before are older than the grace time.
    fn pass_grace(&mut self);

    /// An open file with these bytes. Its offset is not its start.
    fn file(&mut self, bytes: &[u8]) -> OwnedFd;
}

/// Checks every promise of [`ContentStore`].
///
/// # Panics
/// When one is broken.
pub fn content_store_contract(stores: &mut dyn ContentStores) {
    for (promise, check) in PROMISES {
        let guard = Named(promise);
        check(stores);
        std::mem::forget(guard);
    }
}

type Check = fn(&mut dyn ContentStores);

const PROMISES: &[(&str, Check)] = &[
    ("equal bytes are stored once, however they come", equal_bytes_are_stored_once),
    ("a put that fails leaves nothing", failed_puts_leave_nothing),
    ("synced contents survive a crash", synced_contents_survive),
    ("a missing content is an error of its kind", missing_contents_are_errors),
    ("a content is read from any offset", contents_are_read_from_any_offset),
    ("pinned and needed contents stay, others are removed", unneeded_contents_are_removed),
    ("a content that is put or held again stays on all nodes", renewed_contents_stay),
    ("damaged bytes are noticed", damaged_bytes_are_noticed),
    ("a damaged small content is replaced by the next put", damaged_contents_are_replaced),
    ("contents are visited by their first byte, in order", contents_are_visited_in_order),
    ("nodes and threads put and remove the same bytes without loss", the_same_bytes_at_once),
];

/// Lengths of small contents and of large ones, around the limits of stores.
const LENGTHS: [usize; 6] = [0, 1, 65_536, 65_537, 300_000, (9 << 20) + 1];

fn bytes_of(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|place| ((place + seed) % 251) as u8).collect()
}

fn read(store: &dyn ContentStore, id: &ContentId) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut content = store.open_read(id).expect("it is stored");
    content.read_to_end(&mut bytes).expect("it can be read");
    assert_eq!(content.length(), bytes.len() as u64);
    bytes
}

fn all(store: &dyn ContentStore) -> BTreeSet<ContentId> {
    let mut all = BTreeSet::new();
    for first in 0..=255 {
        let mut last = None;
        let mut visit = |id: ContentId| {
            assert!(id.as_bytes()[0] == first && last < Some(id), "{id} is in its place");
            last = Some(id);
            all.insert(id);
            ControlFlow::Continue(())
        };
        store.visit(first, &mut visit).expect("contents can be listed");
    }
    all
}

fn kind<T>(result: Result<T, Error>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

#[expect(clippy::unnecessary_wraps, reason = "the type of the callback")]
fn unseen(_: &[u8]) -> io::Result<()> {
    Ok(())
}

fn equal_bytes_are_stored_once(stores: &mut dyn ContentStores) {
    let store = stores.create();
    let mut expected = BTreeSet::new();
    for length in LENGTHS {
        let bytes = bytes_of(length, 1);
        let one = store.put_bytes(&bytes).expect("bytes can be put");
        let two = store.put_reader(&mut bytes.as_slice(), length as u64).expect("a reader too");
        let mut seen = Vec::new();
        let mut see = |part: &[u8]| {
            seen.extend_from_slice(part);
            Ok(())
        };
        let file = stores.file(&bytes);
        let three = store.put_file(file.as_fd(), u64::MAX, &mut see).expect("and a file");
        assert_eq!(one.id(), address_of(&bytes));
        for pin in [&one, &two, &three] {
            assert_eq!((pin.id(), pin.length()), (one.id(), length as u64));
        }
        assert!(seen == bytes, "all bytes are shown once");
        store.sync().expect("contents become durable");
        assert!(read(&*store, &one.id()) == bytes, "{length} bytes");
        assert_eq!(store.length(&one.id()).expect("it can be asked"), Some(length as u64));
        assert!(store.is_whole(&one.id()).expect("it can be read"));
        expected.insert(one.id());
    }
    assert_eq!(all(&*store), expected);
}

fn failed_puts_leave_nothing(stores: &mut dyn ContentStores) {
    /// Fails after some bytes.
    struct Broken(u64);
    impl io::Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::other("on purpose"));
            }
            let read = buffer.len().min(self.0 as usize);
            self.0 -= read as u64;
            Ok(read)
        }
    }
    let store = stores.create();
    for length in LENGTHS {
        assert_eq!(
            kind(store.put_reader(&mut Broken(length as u64), u64::MAX)),
            Some(ErrorKind::Input),
            "{length} bytes"
        );
        if length == 0 {
            continue;
        }
        let (bytes, less) = (bytes_of(length, 2), length as u64 - 1);
        let file = stores.file(&bytes);
        let too_long = Some(ErrorKind::TooLong);
        assert_eq!(kind(store.put_reader(&mut bytes.as_slice(), less)), too_long);
        assert_eq!(kind(store.put_file(file.as_fd(), less, &mut unseen)), too_long);
        let mut stop = |_: &[u8]| Err(io::Error::other("stopped"));
        assert_eq!(kind(store.put_file(file.as_fd(), u64::MAX, &mut stop)), Some(ErrorKind::Input));
        assert!(!store.contains(&address_of(&bytes)).expect("it can be asked"));
    }
    assert_eq!(all(&*store), BTreeSet::new());
    let _ = store.put_reader(&mut &b"1234"[..], 4).expect("exactly the limit is allowed");
}

fn synced_contents_survive(stores: &mut dyn ContentStores) {
    let mut store = stores.create();
    let mut expected = BTreeSet::new();
    for round in 0..3 {
        for length in LENGTHS {
            let pin = store.put_bytes(&bytes_of(length, round)).expect("bytes can be put");
            expected.insert(pin.id());
        }
        store.sync().expect("contents become durable");
        store = stores.reopen(store);
        assert_eq!(all(&*store), expected);
    }
    for id in &expected {
        assert!(store.is_whole(id).expect("it can be read"));
    }
}

fn missing_contents_are_errors(stores: &mut dyn ContentStores) {
    let store = stores.create();
    let id = address_of(b"missing");
    assert_eq!(kind(store.open_read(&id)), Some(ErrorKind::NotFound));
    assert_eq!(store.length(&id).expect("it can be asked"), None);
    assert!(store.hold(&id).expect("it can be asked").is_none());
    assert!(!store.is_whole(&id).expect("it can be asked"));
    assert!(!store.contains(&id).expect("it can be asked"));
    assert!(!store.remove(&id).expect("it can be asked"));
    store.sync().expect("nothing is durable at once");
}

fn contents_are_read_from_any_offset(stores: &mut dyn ContentStores) {
    let store = stores.create();
    for length in LENGTHS {
        let bytes = bytes_of(length, 3);
        let pin = store.put_bytes(&bytes).expect("bytes can be put");
        let mut content = store.open_read(&pin.id()).expect("it is stored");
        let source = content.clone().into_source();
        let offsets = [0, 1, length / 2, length.saturating_sub(3), length / 3, length];
        for offset in offsets.into_iter().filter(|offset| *offset <= length) {
            let rest = &bytes[offset..];
            content.seek(SeekFrom::Start(offset as u64)).expect("it has offsets");
            let mut part = vec![0; rest.len().min(1_000)];
            content.read_exact(&mut part).expect("the bytes are there");
            assert!(part == rest[..part.len()], "{offset} of {length}");
            let mut at = vec![0; 70_000];
            let read = source.read_at(offset as u64, &mut at).expect("it has offsets");
            assert!(at[..read] == rest[..read], "{offset} of {length}");
            assert_eq!(read == 0, rest.is_empty());
        }
        content.seek(SeekFrom::End(7)).expect("an offset may be behind the end");
        assert_eq!(content.read(&mut [0; 9]).expect("the end is no error"), 0);
    }
}

fn unneeded_contents_are_removed(stores: &mut dyn ContentStores) {
    let store = stores.create();
    for length in [1, 300_000] {
        let bytes = bytes_of(length, 4);
        let pin = store.put_bytes(&bytes).expect("bytes can be put");
        store.sync().expect("contents become durable");
        let id = pin.id();
        let held = store.hold(&id).expect("it can be held").expect("it is stored");
        assert_eq!((held.id(), held.length()), (id, length as u64));
        drop(pin);
        stores.pass_grace();
        assert!(!store.remove(&id).expect("it can be asked"), "still pinned");
        let mut ask = || panic!("a pin is known without asking");
        assert!(!store.remove_unless(&id, &mut ask).expect("it can be asked"));
        let clone = held.clone();
        drop(held);
        assert!(!store.remove(&id).expect("it can be asked"), "the clone pins it");
        drop(clone);
        assert!(!store.remove_unless(&id, &mut || true).expect("it can be asked"), "needed");
        assert!(store.contains(&id).expect("it can be asked"));
        assert!(store.remove(&id).expect("it can be removed"));
        assert!(!store.remove(&id).expect("it can be asked"), "nothing is left");
        assert_eq!(kind(store.open_read(&id)), Some(ErrorKind::NotFound));
        let again = store.put_bytes(&bytes).expect("it can be put again");
        store.sync().expect("contents become durable");
        assert!(read(&*store, &again.id()) == bytes);
    }
}

fn renewed_contents_stay(stores: &mut dyn ContentStores) {
    let store = stores.create();
    let Some(other) = stores.share() else { return };
    let contents = [bytes_of(1, 5), bytes_of(300_000, 5), bytes_of(9 << 20, 5)];
    let put = |bytes: &Vec<u8>| store.put_bytes(bytes).expect("bytes can be put");
    let pins: Vec<PinnedContent> = contents.iter().map(put).collect();
    for pin in &pins {
        assert!(!other.remove(&pin.id()).expect("it can be asked"), "it is young");
    }
    stores.pass_grace();
    let (held, dropped) = (pins[0].id(), pins[1].id());
    let _held = store.hold(&held).expect("it can be held").expect("it is stored");
    let _again = put(&contents[2]);
    assert!(!other.remove(&held).expect("it can be asked"), "it was held");
    assert!(!other.remove(&pins[2].id()).expect("it can be asked"), "it was put again");
    // A pin alone does not reach the other node.
    assert!(other.remove(&dropped).expect("it can be removed"));
    for id in [held, pins[2].id()] {
        assert!(other.is_whole(&id).expect("it can be read"));
    }
    stores.pass_grace();
    let _held = store.hold(&pins[2].id()).expect("it can be held").expect("it is stored");
    let _again = put(&contents[0]);
    for id in [held, pins[2].id()] {
        assert!(!other.remove(&id).expect("it can be asked"), "the other way round");
        assert!(other.is_whole(&id).expect("it can be read"));
    }
    store.sync().expect("nothing is removed now");
    assert_eq!(all(&*other), BTreeSet::from([held, pins[2].id()]));
}

fn damaged_bytes_are_noticed(stores: &mut dyn ContentStores) {
    let store = stores.create();
    for length in LENGTHS.into_iter().filter(|length| *length > 0) {
        let pin = store.put_bytes(&bytes_of(length, 6)).expect("bytes can be put");
        store.sync().expect("contents become durable");
        stores.damage(&pin.id());
        assert!(!store.is_whole(&pin.id()).expect("it can be read"), "{length} bytes");
        let mut bytes = Vec::new();
        let read = store.open_read(&pin.id()).and_then(|mut content| {
            content.read_to_end(&mut bytes).map_err(|error| Error::of_read(&pin.id(), error))
        });
        assert_eq!(kind(read), Some(ErrorKind::Damaged), "{length} bytes");
        assert!(bytes.len() < length, "the last bytes are not passed on");
    }
}

fn damaged_contents_are_replaced(stores: &mut dyn ContentStores) {
    let store = stores.create();
    for length in [1, 1_000, 65_536] {
        let bytes = bytes_of(length, 7);
        let pin = store.put_bytes(&bytes).expect("bytes can be put");
        store.sync().expect("contents become durable");
        stores.damage(&pin.id());
        let _again = store.put_bytes(&bytes).expect("it can be put again");
        store.sync().expect("contents become durable");
        assert!(read(&*store, &pin.id()) == bytes);
    }
}

fn contents_are_visited_in_order(stores: &mut dyn ContentStores) {
    let store = stores.create();
    let put = |number: u32| store.put_bytes(&number.to_le_bytes()).expect("bytes can be put");
    let pins: Vec<PinnedContent> = (0..600).map(put).collect();
    let expected: BTreeSet<ContentId> = pins.iter().map(PinnedContent::id).collect();
    assert_eq!(all(&*store), expected);
    let first = pins[0].id().as_bytes()[0];
    let mut visited = 0;
    let mut stop = |_| {
        visited += 1;
        ControlFlow::Break(())
    };
    store.visit(first, &mut stop).expect("contents can be listed");
    assert_eq!(visited, 1, "the visitor ends the visit");
}

fn the_same_bytes_at_once(stores: &mut dyn ContentStores) {
    let store = stores.create();
    let other = stores.share().unwrap_or_else(|| Arc::clone(&store));
    std::thread::scope(|scope| {
        for node in [&store, &other, &store, &other] {
            scope.spawn(move || {
                for round in 0..12 {
                    let bytes = bytes_of([2_000, 70_000, 300_000][round % 3], round % 4);
                    let pin = node.put_bytes(&bytes).expect("bytes can be put");
                    node.sync().expect("contents become durable");
                    assert!(read(&**node, &pin.id()) == bytes, "round {round}");
                    let id = pin.id();
                    drop(pin);
                    node.remove(&id).expect("it can be asked");
                }
            });
        }
    });
}
