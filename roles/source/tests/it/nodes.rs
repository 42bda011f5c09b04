//! Nodes of one Source, with a bucket in memory that can be out of reach.

use abreast_core::contents::made::{MadeFile, MadeStore, RecordRead};
use abreast_core::contents::{Error, ErrorKind};
use abreast_objects::object_store::memory::InMemory;
use abreast_objects::{Bucket, BucketOptions, S3Made, S3MadeOptions};
use abreast_source::projection::{FileContent, FileError, PublishedFile};
use abreast_source::{SharedFiles, SharedOptions, SharedSet};
use std::io::{Read, Seek as _, SeekFrom, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// The bucket of all nodes.
#[derive(Clone, Default)]
pub(crate) struct Shared {
    memory: Arc<InMemory>,
    away: Arc<AtomicBool>,
    loses: Arc<AtomicBool>,
    fetches: Arc<AtomicUsize>,
}

/// A node: its connection to the bucket, and its turn.
pub(crate) struct Node {
    files: Arc<SharedFiles>,
    turn: Arc<AtomicBool>,
}

/// The store of a node, which fails while the bucket is away.
#[derive(Debug)]
struct Store {
    made: S3Made,
    away: Arc<AtomicBool>,
    /// Whether the answer to the next change of a record is lost.
    loses: Arc<AtomicBool>,
    fetches: Arc<AtomicUsize>,
}

impl Shared {
    pub(crate) fn node(&self, turn: bool) -> Node {
        self.node_with(turn, |_| {})
    }

    /// The bucket, as a process without a turn opens it.
    pub(crate) fn store(&self) -> Arc<dyn MadeStore> {
        let memory = Arc::clone(&self.memory);
        let made = S3Made::of(
            Bucket::of(memory, "prefix").unwrap(),
            S3MadeOptions::new(BucketOptions::default()),
        );
        let (away, loses) = (Arc::clone(&self.away), Arc::clone(&self.loses));
        let fetches = Arc::clone(&self.fetches);
        Arc::new(Store { made, away, loses, fetches })
    }

    pub(crate) fn node_with(&self, turn: bool, set: impl FnOnce(&mut SharedOptions)) -> Node {
        let turn = Arc::new(AtomicBool::new(turn));
        let of_node = Arc::clone(&turn);
        let mut options = SharedOptions::default();
        options.turn = Arc::new(move || of_node.load(Ordering::SeqCst));
        options.poll = Duration::from_millis(20);
        set(&mut options);
        let files = SharedFiles::start(self.store(), options).unwrap();
        Node { files, turn }
    }

    pub(crate) fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }

    /// Loses the answer to the next change of a record.
    pub(crate) fn lose_answer(&self) {
        self.loses.store(true, Ordering::SeqCst);
    }

    /// Number of fetched files until now.
    pub(crate) fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }

    /// Number of files in the bucket.
    pub(crate) fn count(&self) -> usize {
        use abreast_objects::object_store::ObjectStore as _;
        let all = self.memory.list_with_delimiter(None);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut folders = runtime.block_on(all).unwrap().common_prefixes;
        let mut files = 0;
        while let Some(folder) = folders.pop() {
            let all = runtime.block_on(self.memory.list_with_delimiter(Some(&folder))).unwrap();
            files +=
                all.objects.iter().filter(|one| one.location.filename() != Some("record")).count();
            folders.extend(all.common_prefixes);
        }
        files
    }
}

impl Node {
    pub(crate) fn set(&self) -> SharedSet {
        self.files.of_set("set")
    }

    pub(crate) fn files(&self) -> Arc<SharedFiles> {
        Arc::clone(&self.files)
    }

    pub(crate) fn give_turn(&self, turn: bool) {
        self.turn.store(turn, Ordering::SeqCst);
    }
}

impl Store {
    fn check(&self) -> Result<(), Error> {
        if self.away.load(Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Busy, "the bucket is away"));
        }
        Ok(())
    }
}

impl MadeStore for Store {
    fn record(&self, group: &str, known: Option<&str>) -> Result<RecordRead, Error> {
        self.check()?;
        self.made.record(group, known)
    }

    fn replace_record(
        &self,
        group: &str,
        record: &[u8],
        expected: Option<&str>,
    ) -> Result<Option<String>, Error> {
        self.check()?;
        let replaced = self.made.replace_record(group, record, expected)?;
        if self.loses.swap(false, Ordering::SeqCst) {
            return Err(Error::new(ErrorKind::Busy, "the answer was lost"));
        }
        Ok(replaced)
    }

    fn put(&self, group: &str, file: &MadeFile, reader: &mut dyn Read) -> Result<(), Error> {
        self.check()?;
        self.made.put(group, file, reader)
    }

    fn fetch(&self, group: &str, file: &MadeFile, to: &mut dyn Write) -> Result<(), Error> {
        self.check()?;
        self.fetches.fetch_add(1, Ordering::SeqCst);
        self.made.fetch(group, file, to)
    }

    fn remove(&self, group: &str, name: &str) -> Result<(), Error> {
        self.check()?;
        self.made.remove(group, name)
    }

    fn visit(&self, group: &str, visit: &mut dyn FnMut(&str, Duration)) -> Result<(), Error> {
        self.check()?;
        self.made.visit(group, visit)
    }
}

/// Entity tag, modification time and bytes of a shared file, as a server sends them. Its compressed form
/// is read, too.
pub(crate) fn sent(
    file: PublishedFile,
) -> Result<(String, std::time::SystemTime, Vec<u8>), FileError> {
    let FileContent::Shared { file: shared, start, length } = file.content else {
        panic!("the file is not shared");
    };
    if let Some(FileContent::Shared { file: compressed, .. }) = file.gzip {
        compressed.open()?;
    }
    let mut file = shared.open()?;
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(start)).unwrap();
    (&file).take(length).read_to_end(&mut bytes).unwrap();
    Ok((shared.tag(), file.metadata().unwrap().modified().unwrap(), bytes))
}
