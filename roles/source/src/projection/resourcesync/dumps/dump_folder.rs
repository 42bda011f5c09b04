//! Folder of complete dumps. A dump is made under a temporary name, made durable, and published in
//! one step.
//!
//! A dump is a folder. Its temporary name starts with [`MAKING`]; the last file in the folder is
//! the record of packages. When all files are durable, the folder is renamed. The next start after
//! a crash removes folders with temporary names or without a complete record. A dump is therefore
//! complete or not visible.

use super::record::{Dump, DumpKind, Package};
use crate::made::shared::{Item, SharedError, SharedFile, SharedGroup};
use crate::made::{MadeFile, Making, discard, remove, sweep, sync_folder};
use crate::publish::SetUrls;
use abreast_folder::{read_sealed, sealed};
use abreast_resourcesync::v1_1::Document;
use abreast_webtypes::Timestamp;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Begins the names of packages of changes that are kept and not published.
const ASIDE: &str = "aside-";
/// Dumps of one name that are kept aside at most.
const ASIDE_MAX: u32 = 100;
/// Begins the names of packages of changes.
pub(super) const CHANGES: &str = "changes-";
const RECORD: &str = "record.xml";
/// Extension of the digest of a file that is made of a package: a line as `sha256sum` writes it.
pub(super) const DIGEST: &str = "sha256";

/// Complete dumps of one kind, oldest first.
pub(super) struct DumpFolder {
    root: PathBuf,
    kind: DumpKind,
    /// Prefix of the names of dumps.
    prefix: &'static str,
    urls: SetUrls,
    pub(super) dumps: Vec<Arc<Dump>>,
    /// The dumps of all nodes, if several nodes share them; the folder has local copies.
    pub(super) shared: Option<Arc<SharedGroup>>,
    /// Number of the shared record from which the dumps were taken.
    pub(super) stamp: Option<u64>,
    /// Time when the newest shared dump was published.
    pub(super) published: Option<Timestamp>,
}

impl DumpFolder {
    /// Opens the folder; removes incomplete dumps and dumps for another public base.
    pub(super) fn open(
        root: PathBuf,
        kind: DumpKind,
        prefix: &'static str,
        urls: SetUrls,
    ) -> io::Result<Self> {
        fs::create_dir_all(&root)?;
        let mut dump_folder = Self {
            root,
            kind,
            prefix,
            urls,
            dumps: Vec::new(),
            shared: None,
            stamp: None,
            published: None,
        };
        let mut dumps = Vec::new();
        let is_own = |name: &str| name.starts_with(prefix);
        sweep(&dump_folder.root, is_own, |name| {
            let Some(dump) = dump_folder.read(name)? else {
                if prefix == CHANGES {
                    set_aside(&dump_folder.root, name)?;
                }
                return Ok(prefix == CHANGES);
            };
            sweep_beside(&dump_folder.root.join(name))?;
            dumps.push(Arc::new(dump));
            Ok(true)
        })?;
        dump_folder.dumps = dumps;
        dump_folder.dumps.sort_by(|one, two| {
            (one.begin, one.end, &one.name).cmp(&(two.begin, two.end, &two.name))
        });
        Ok(dump_folder)
    }

    /// The dumps of a group that several nodes share.
    pub(super) fn of_nodes(
        root: PathBuf,
        kind: DumpKind,
        prefix: &'static str,
        urls: SetUrls,
        shared: Arc<SharedGroup>,
    ) -> Self {
        let shared = Some(shared);
        let (dumps, stamp, published) = (Vec::new(), None, None);
        Self { root, kind, prefix, urls, dumps, shared, stamp, published }
    }

    /// Takes the dumps from the shared record, if the record has changed.
    fn follow(&mut self) {
        let Some(shared) = &self.shared else { return };
        let (stamp, record) = shared.known();
        if self.stamp == Some(stamp) {
            return;
        }
        let dump = |item: &Item| {
            let document = Document::from_slice(item.text.as_bytes()).ok()?;
            Dump::from_document(&item.name, self.kind, &self.urls, document).map(Arc::new)
        };
        self.dumps = record.items.iter().filter_map(dump).collect();
        if self.prefix == CHANGES {
            // Packages after a gap continue another Change Dump.
            let gap = self.dumps.windows(2).rposition(|two| two[0].end != two[1].begin);
            self.dumps.drain(..gap.map_or(0, |gap| gap + 1));
        }
        self.published = record.items.last().map(|item| Timestamp::from_micros(item.made));
        self.stamp = Some(stamp);
    }

    /// Text of the record of a dump.
    pub(super) fn record_of(&self, dump: &Dump) -> Vec<u8> {
        dump.to_document(self.kind, &self.urls).to_bytes()
    }

    /// Reads a dump; `None` if it is incomplete or damaged. An I/O error does not mean damage.
    fn read(&self, name: &str) -> io::Result<Option<Dump>> {
        let folder = self.root.join(name);
        let record = match read_sealed(&folder.join(RECORD)) {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) =>
            {
                return Ok(None);
            }
            record => record?,
        };
        let document = Document::from_slice(&record).ok();
        let dump = document
            .and_then(|document| Dump::from_document(name, self.kind, &self.urls, document));
        let Some(dump) = dump else { return Ok(None) };
        let whole = dump.packages.iter().all(|package| {
            let length =
                folder.join(format!("{}.zip", package.stem)).metadata().map(|file| file.len());
            length.is_ok_and(|length| length == package.length)
                && folder.join(format!("{}.xml", package.stem)).is_file()
        });
        Ok(whole.then_some(dump))
    }

    /// Unused name for a dump with this time.
    pub(super) fn name(&self, mut time: Timestamp) -> String {
        // The record may list dumps that this node does not publish, such as dumps of another base.
        let record = self.shared.as_ref().map(|shared| shared.known().1);
        let is_listed = |name: &str| record.as_ref().is_some_and(|it| it.item(name).is_some());
        loop {
            let name = format!("{}{}", self.prefix, compact(time));
            let is_free = |name: &str| {
                !self.root.join(name).exists()
                    && self.dumps.iter().all(|dump| dump.name != name)
                    && !is_listed(name)
            };
            if is_free(&name) && is_free(&format!("{ASIDE}{name}")) {
                return name;
            }
            time = time.next();
        }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Writes the record of a dump whose packages are durable, and publishes the dump.
    pub(super) fn announce(&mut self, making: Making, dump: Dump) -> io::Result<Arc<Dump>> {
        let folder = making.path(&dump.name);
        let record = sealed(self.record_of(&dump));
        MadeFile::write_whole(&folder.join(RECORD), &record)?;
        sync_folder(&folder)?;
        making.publish(&dump.name)?;
        let dump = Arc::new(dump);
        self.dumps.push(Arc::clone(&dump));
        Ok(dump)
    }

    /// Path of the file `STEM.zip` or `STEM.xml`, if a complete dump has the file.
    pub(super) fn file(&self, name: &str) -> Option<PathBuf> {
        self.known_file(name).map(|(path, _)| path)
    }

    /// Like [`Self::file`], with the SHA-256 of the manifest.
    pub(super) fn known_file(&self, name: &str) -> Option<(PathBuf, Option<[u8; 32]>)> {
        let (dump, package) = self.package(name)?;
        Some((self.root.join(&dump.name).join(name), package.manifest))
    }

    /// Dump and package to which a file name belongs.
    fn package(&self, name: &str) -> Option<(&Dump, &Package)> {
        let (stem, _) = name.rsplit_once('.')?;
        let (dump, _) = stem.rsplit_once('-')?;
        let dump = self.dumps.iter().rev().find(|known| known.name == dump)?;
        let package = dump.packages.iter().find(|package| package.stem == stem)?;
        Some((dump, package))
    }

    /// The shared file `STEM.zip` or `STEM.xml`, if a complete dump has the file.
    pub(super) fn shared_file(&self, name: &str) -> Option<SharedFile> {
        let (dump, _) = self.package(name)?;
        self.shared.as_ref()?.known().1.item(&dump.name)?.file(name).cloned()
    }

    /// Sets aside the dumps before the last gap, which exists because a dump between them was
    /// damaged.
    pub(super) fn set_aside_before_gap(&mut self) -> io::Result<()> {
        let gap = self.dumps.windows(2).rposition(|two| two[0].end != two[1].begin);
        if let Some(gap) = gap {
            tracing::warn!(
                "the Change Dump in `{}` begins after {}, where a package is lost",
                self.root.display(),
                self.dumps[gap].end
            );
            for dump in self.dumps.drain(..=gap).collect::<Vec<_>>() {
                set_aside(&self.root, &dump.name)?;
            }
        }
        Ok(())
    }

    /// Dumps that were set aside, with their sizes in bytes, oldest first.
    pub(super) fn aside(&self) -> io::Result<Vec<(PathBuf, u64)>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            if entry.file_name().to_string_lossy().starts_with(ASIDE) {
                let mut bytes = 0;
                for file in fs::read_dir(entry.path())? {
                    bytes += file?.metadata()?.len();
                }
                found.push((entry.path(), bytes));
            }
        }
        found.sort();
        Ok(found)
    }

    /// Removes the first dumps and their files. A file that is being sent remains readable.
    pub(super) fn remove_first(&mut self, count: usize) {
        for dump in self.dumps.drain(..count.min(self.dumps.len())) {
            // A dump without a record counts as incomplete.
            let folder = self.root.join(&dump.name);
            discard([folder.join(RECORD), folder]);
        }
    }
}

/// Dumps of a folder, or of the shared record that was read last.
pub(super) fn current(dump_folder: &Mutex<DumpFolder>) -> MutexGuard<'_, DumpFolder> {
    let mut dump_folder = dump_folder.lock().unwrap_or_else(PoisonError::into_inner);
    dump_folder.follow();
    dump_folder
}

/// Removes the number of first dumps that `count` returns.
pub(super) fn retire_first(
    dump_folder: &Mutex<DumpFolder>,
    count: impl FnOnce(&DumpFolder) -> usize,
) -> Result<(), SharedError> {
    let mut locked = current(dump_folder);
    let count = count(&locked).min(locked.dumps.len());
    let Some(shared) = locked.shared.clone() else {
        locked.remove_first(count);
        return Ok(());
    };
    let old: BTreeSet<_> = locked.dumps.iter().take(count).map(|dump| dump.name.clone()).collect();
    // Requests do not wait for the store.
    drop(locked);
    if old.is_empty() { Ok(()) } else { shared.withdraw(|item| old.contains(&item.name)) }
}

/// Renames a dump so that it is stored but not published, because other copies of its changes may
/// not exist.
pub(super) fn set_aside(root: &Path, name: &str) -> io::Result<()> {
    let places = (1..=ASIDE_MAX).map(|number| match number {
        1 => root.join(format!("{ASIDE}{name}")),
        _ => root.join(format!("{ASIDE}{name}-{number}")),
    });
    let Some(aside) = places.into_iter().find(|place| place.symlink_metadata().is_err()) else {
        return Err(io::Error::other(format!(
            "the damaged dump `{name}` cannot be set aside: `{}` has {ASIDE_MAX} of this name \
             (help: move those that begin with `{ASIDE}` to another folder)",
            root.display()
        )));
    };
    tracing::warn!(
        "the dump `{name}` is damaged, or before a damaged one, and not published: it is kept as `{}`",
        aside.display()
    );
    fs::rename(root.join(name), aside)?;
    sync_folder(root)
}

/// Removes leftovers of a crash in the folder of a dump.
fn sweep_beside(folder: &Path) -> io::Result<()> {
    let is_digest = |path: &Path| path.extension().is_some_and(|end| end == DIGEST);
    sweep(
        folder,
        |_| true,
        |name| {
            let path = folder.join(name);
            Ok(!is_digest(&path) || path.with_extension("").is_file())
        },
    )
}

/// Removes a dump, its record first: a dump without a record counts as incomplete.
pub(super) fn remove_folder(folder: &Path) -> io::Result<()> {
    remove(&folder.join(RECORD))?;
    remove(folder)
}

/// Time in the basic format, which is valid in file names and in URLs.
pub(super) fn compact(time: Timestamp) -> String {
    let (seconds, micros) = (time.as_seconds(), time.as_micros().rem_euclid(1_000_000));
    let whole = Timestamp::from_seconds(seconds).to_string().replace(['-', ':'], "");
    format!("{}.{micros:06}Z", whole.trim_end_matches('Z'))
}

#[cfg(test)]
mod tests {
    use super::super::check::repair_dumps;
    use super::super::record::Package;
    use super::*;
    use crate::publish::SourceUrls;
    use abreast_webtypes::Digests;

    fn open(root: &Path) -> DumpFolder {
        let urls = SourceUrls::new("http://example.org/").set("set");
        DumpFolder::open(root.to_owned(), DumpKind::Resources, "resources-", urls).unwrap()
    }

    fn put(dump_folder: &mut DumpFolder, seconds: i64) -> Arc<Dump> {
        let name = dump_folder.name(Timestamp::from_seconds(seconds));
        let mut making = Making::begin(dump_folder.root());
        let folder = making.folder(&name).unwrap();
        let stem = format!("{name}-1");
        fs::write(folder.join(format!("{stem}.zip")), "zip").unwrap();
        fs::write(folder.join(format!("{stem}.xml")), "xml").unwrap();
        assert_eq!(
            dump_folder.file(&format!("{stem}.zip")),
            None,
            "nothing is shown before it is complete"
        );
        let (begin, end) = (Timestamp::from_seconds(seconds), Timestamp::from_seconds(seconds + 1));
        let packages = vec![Package {
            stem,
            length: 3,
            digests: Digests::default(),
            manifest: None,
            begin,
            end,
            parts: None,
        }];
        dump_folder.announce(making, Dump { name, begin, end, packages }).unwrap()
    }

    #[test]
    fn what_is_complete_is_found_again_and_nothing_else() {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().join("dump_folder");
        let mut dump_folder = open(&root);
        let one = put(&mut dump_folder, 10);
        let two = put(&mut dump_folder, 10);
        assert_ne!(one.name, two.name, "no name is given twice");
        let torn = put(&mut dump_folder, 20);
        fs::write(root.join(&torn.name).join(format!("{}-1.zip", torn.name)), "zi").unwrap();
        let recordless = put(&mut dump_folder, 30);
        fs::remove_file(root.join(&recordless.name).join(RECORD)).unwrap();
        fs::create_dir(root.join("making-resources-x")).unwrap();
        let left = root.join(&one.name).join(format!("making-{}-1.v0.1-1.zip", one.name));
        fs::write(&left, "half").unwrap();
        fs::write(root.join("letter.txt"), "mine").unwrap();
        drop(dump_folder);
        let mut dump_folder = open(&root);
        assert_eq!(dump_folder.dumps, [Arc::clone(&one), two]);
        let mut names: Vec<_> = fs::read_dir(&root)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(!left.exists(), "a file of a whole dump that a crash left");
        assert!(dump_folder.file(&format!("{}-1.zip", one.name)).unwrap().is_file());
        assert!(dump_folder.file(&format!("{}-1.xml", one.name)).unwrap().is_file());
        for name in
            ["record.xml", "../x.zip", "resources-1.zip", &format!("{}-2.zip", one.name), ""]
        {
            assert_eq!(dump_folder.file(name), None, "{name}");
        }
        dump_folder.remove_first(1);
        assert_eq!(
            (dump_folder.dumps.len(), dump_folder.file(&format!("{}-1.zip", one.name))),
            (1, None)
        );
        assert!(!root.join(&one.name).exists());
    }

    #[test]
    fn packages_before_a_lost_one_are_set_aside() {
        let temporary = tempfile::tempdir().unwrap();
        let open = |root: &Path| {
            let urls = SourceUrls::new("http://example.org/").set("set");
            DumpFolder::open(root.to_owned(), DumpKind::Changes, CHANGES, urls).unwrap()
        };
        let mut dump_folder = open(temporary.path());
        let names = [10, 11, 12, 13].map(|seconds| put(&mut dump_folder, seconds).name.clone());
        dump_folder.set_aside_before_gap().unwrap();
        assert_eq!(dump_folder.dumps.len(), 4);
        let record = temporary.path().join(&names[1]).join(RECORD);
        let mut bytes = fs::read(&record).unwrap();
        bytes[90] ^= 1;
        fs::write(&record, bytes).unwrap();
        let mut dump_folder = open(temporary.path());
        assert_eq!(dump_folder.dumps.len(), 3, "the damaged one is no dump");
        dump_folder.set_aside_before_gap().unwrap();
        let left: Vec<_> = dump_folder.dumps.iter().map(|dump| &dump.name).collect();
        assert_eq!(left, [&names[2], &names[3]]);
        let aside = open(temporary.path()).aside().unwrap();
        let place = |name: &String| temporary.path().join(format!("{ASIDE}{name}"));
        let expected = [place(&names[0]), place(&names[1])];
        assert_eq!(aside.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>(), expected);
        assert!(aside.iter().all(|(_, bytes)| *bytes > 6), "packages, manifests and records");
        // A package with the same name exists already.
        fs::create_dir(temporary.path().join(&names[0])).unwrap();
        let aside = open(temporary.path()).aside().unwrap();
        assert_eq!(aside.len(), 3, "{aside:?}");
        assert!(place(&format!("{}-2", names[0])).is_dir());
        // A repair has the same result as a start.
        let store = tempfile::tempdir().unwrap();
        let kind = store.path().join("set/changes");
        fs::create_dir_all(kind.join(&names[0])).unwrap();
        fs::create_dir(kind.join(format!("{ASIDE}{}", names[0]))).unwrap();
        for (dry_run, count) in [(true, 1), (false, 1), (false, 0)] {
            let repaired = repair_dumps(store.path(), true, dry_run).unwrap();
            assert_eq!((repaired.aside.len(), repaired.removed.len()), (count, 0), "{dry_run}");
        }
        assert!(kind.join(format!("{ASIDE}{}-2", names[0])).is_dir());
    }
}
