//! A folder, a store, and a publisher of the folder and the store.

use abreast_core::{
    ChangeLog, Clock, KeyRange, Kind, NewSet, PageRule, Position, SetId, ShardRule, SystemClock,
};
use abreast_folder::Folder;
use abreast_source::dump::{DumpOptions, DumpSet, Dumps, SetDumps};
use abreast_source::publish::{Body, PublishedSet, Publisher, SourceUrls};
use abreast_source::{IngestOptions, OpenKept, Representations, ScanOptions, ScanReport, scan};
use abreast_store::SqliteOptions;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub(crate) struct World {
    pub(crate) temporary: tempfile::TempDir,
    pub(crate) folder: PathBuf,
    pub(crate) log: Arc<dyn ChangeLog>,
    pub(crate) set: SetId,
}

pub(crate) const BASE: &str = "https://example.org/";

impl World {
    pub(crate) fn new() -> Self {
        Self::with(PageRule::default(), 40_000)
    }

    pub(crate) fn with(page_rule: PageRule, shard: u64) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path().join("folder");
        std::fs::create_dir(&folder).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let log = SqliteOptions::default()
            .with_shard_rule(ShardRule { resources: shard, bytes: 36_000_000 })
            .open(&temporary.path().join("source.db"), clock)
            .unwrap();
        let log: Arc<dyn ChangeLog> = Arc::new(log);
        let set = log
            .open_set(&NewSet { slug: "set".into(), page_rule, ..NewSet::default() })
            .unwrap()
            .id;
        Self { temporary, folder, log, set }
    }

    /// A world with a complete base: the log records changes from then on.
    pub(crate) fn begun() -> Self {
        let world = Self::new();
        world.log.complete_import(world.set).unwrap();
        world
    }

    pub(crate) fn write(&self, path: &str, content: &str) {
        let path = self.folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    pub(crate) fn scan_with(&self, change: impl FnOnce(&mut ScanOptions)) -> ScanReport {
        let ingest = IngestOptions { settle: Duration::ZERO, ..IngestOptions::default() };
        let mut options = ScanOptions { ingest, ..ScanOptions::default() };
        change(&mut options);
        let folder = Folder::open(&self.folder).unwrap();
        scan(&folder, b"", &*self.log, self.set, &options, &AtomicBool::new(false)).unwrap()
    }

    pub(crate) fn scan(&self) -> ScanReport {
        self.scan_with(|_| ())
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        self.log
            .scan(self.set, &KeyRange::default(), &mut |resource| {
                keys.push(resource.key.clone());
                ControlFlow::Continue(())
            })
            .unwrap();
        keys
    }

    /// The changes in the log as `kind key`, oldest first.
    pub(crate) fn changes(&self) -> Vec<String> {
        let mut changes = Vec::new();
        self.log
            .read(self.set, Position(0), &mut |record| {
                let kind = match record.kind {
                    Kind::Create => "created",
                    Kind::Update => "updated",
                    Kind::Delete => "deleted",
                    _ => "other",
                };
                changes.push(format!("{kind} {}", record.key));
                ControlFlow::Continue(())
            })
            .unwrap();
        changes
    }

    /// Key and digest of each resource in the table.
    pub(crate) fn table(&self) -> BTreeMap<String, String> {
        let mut table = BTreeMap::new();
        self.log
            .scan(self.set, &KeyRange::default(), &mut |resource| {
                table.insert(resource.key.clone(), resource.state.digests.to_string());
                ControlFlow::Continue(())
            })
            .unwrap();
        table
    }

    /// The set with the bytes of its folder, as a server publishes it.
    pub(crate) fn published(&self) -> PublishedSet {
        let representations =
            Representations::of_folder(Folder::open(&self.folder).unwrap(), Arc::default());
        PublishedSet {
            representations,
            ..PublishedSet::new(self.set, "set", SourceUrls::new(BASE).set("set"))
        }
    }

    pub(crate) fn publisher(&self) -> Publisher {
        self.publisher_of(self.published())
    }

    pub(crate) fn publisher_of(&self, set: PublishedSet) -> Publisher {
        let folder = self.temporary.path().join("documents");
        Publisher::new(Arc::clone(&self.log), SourceUrls::new(BASE), [set], folder).unwrap()
    }

    /// The dumps of the set. No dump is made before the shared part is started.
    pub(crate) fn dumps(
        &self,
        options: DumpOptions,
        kept: Option<OpenKept>,
    ) -> (Arc<Dumps>, Arc<SetDumps>) {
        let PublishedSet { id, slug, urls, representations, .. } = self.published();
        let dumps = Dumps::new(Arc::clone(&self.log), self.temporary.path().join("dumps"), None);
        let representations = representations.with_kept(kept);
        let of_set = dumps.open_set(DumpSet { id, slug, urls, representations, options }).unwrap();
        (dumps, of_set)
    }
}

pub(crate) fn bytes(publisher: &Publisher, path: &str) -> Vec<u8> {
    body(publisher.document(path).unwrap().plain())
}

pub(crate) fn body(body: &Body) -> Vec<u8> {
    match body {
        Body::Memory(bytes) => bytes.to_vec(),
        Body::File(file) => std::fs::read(file.path()).unwrap(),
    }
}
