//! Versions whose bytes are in a store behind a network.

use crate::world::World;
use abreast_contents::Contents;
use abreast_core::ContentId;
use abreast_core::contents::{
    Content, ContentSource, ContentStore, Error, ErrorKind, PinnedContent,
};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A folder that is used as a store behind a network is.
#[derive(Debug)]
struct Remote {
    contents: Contents,
    network: Arc<Network>,
}

#[derive(Debug, Default)]
struct Network {
    transferred: AtomicU64,
    is_down: AtomicBool,
}

impl Network {
    fn check(&self) -> Result<(), Error> {
        let is_down = self.is_down.load(Ordering::SeqCst);
        if is_down { Err(Error::new(ErrorKind::Busy, "out of reach")) } else { Ok(()) }
    }
}

#[derive(Debug)]
struct RemoteSource {
    source: Arc<dyn ContentSource>,
    network: Arc<Network>,
}

impl ContentSource for RemoteSource {
    fn length(&self) -> u64 {
        self.source.length()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.network.check()?;
        let read = self.source.read_at(offset, buffer)?;
        self.network.transferred.fetch_add(read as u64, Ordering::SeqCst);
        Ok(read)
    }
}

impl ContentStore for Remote {
    fn put_bytes(&self, bytes: &[u8]) -> Result<PinnedContent, Error> {
        self.network.check()?;
        self.contents.put_bytes(bytes)
    }

    fn put_reader(&self, reader: &mut dyn Read, limit: u64) -> Result<PinnedContent, Error> {
        self.network.check()?;
        self.contents.put_reader(reader, limit)
    }

    fn put_file(
        &self,
        file: BorrowedFd<'_>,
        limit: u64,
        seen: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<PinnedContent, Error> {
        self.network.check()?;
        self.contents.put_file(file, limit, seen)
    }

    fn hold(&self, id: &ContentId) -> Result<Option<PinnedContent>, Error> {
        self.contents.hold(id)
    }

    fn sync(&self) -> Result<(), Error> {
        self.contents.sync()
    }

    fn open_read(&self, id: &ContentId) -> Result<Content, Error> {
        self.network.check()?;
        let source = self.contents.open_read(id)?.into_source();
        Ok(Content::new(Arc::new(RemoteSource { source, network: Arc::clone(&self.network) })))
    }

    fn length(&self, id: &ContentId) -> Result<Option<u64>, Error> {
        self.contents.length(id)
    }

    fn remove_unless(
        &self,
        id: &ContentId,
        needed: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Error> {
        self.contents.remove_unless(id, needed)
    }

    fn visit(
        &self,
        first: u8,
        visit: &mut dyn FnMut(ContentId) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.contents.visit(first, visit)
    }
}

#[test]
fn a_version_is_sent_from_a_remote_store_in_ranges() {
    let mut world = World::new();
    world.log.keep_versions(world.set, true).unwrap();
    let contents = Contents::open(&world.temporary.path().join("contents")).unwrap();
    let network = Arc::<Network>::default();
    world.contents = Some(Arc::new(Remote { contents, network: Arc::clone(&network) }));
    let bytes: Vec<u8> = (0..5_000_000_u32).map(|number| (number % 251) as u8).collect();
    world.write("large", &bytes);
    world.publish();
    let served = world.serve();
    let version = served.get("/timegate/https://example.org/set/r/large").header("location");
    let version = version.strip_prefix("https://example.org").unwrap().to_owned();

    let whole = served.get(&version);
    assert_eq!((whole.status, whole.header("content-length").as_str()), (200, "5000000"));
    assert!(whole.body == bytes, "several chunks make the whole");
    network.transferred.store(0, Ordering::SeqCst);
    let ranged = served.ask("GET", &version, &[("Range", "bytes=4000000-4000999")]);
    assert_eq!(ranged.status, 206);
    assert!(ranged.body == bytes[4_000_000..4_001_000]);
    assert_eq!(network.transferred.load(Ordering::SeqCst), 1_000, "only the range is read");
    let ranges = served.ask("GET", &version, &[("Range", "bytes=0-9,4999990-")]);
    assert_eq!(ranges.status, 206);
    assert!(ranges.body.windows(10).any(|part| part == &bytes[4_999_990..]));
    assert_eq!(network.transferred.load(Ordering::SeqCst), 1_020);
    assert_eq!(served.ask("HEAD", &version, &[]).header("content-length"), "5000000");

    network.is_down.store(true, Ordering::SeqCst);
    let busy = served.get(&version);
    assert_eq!((busy.status, busy.header("retry-after").as_str()), (503, "5"));
    network.is_down.store(false, Ordering::SeqCst);
    assert!(served.get(&version).body == bytes);
}
