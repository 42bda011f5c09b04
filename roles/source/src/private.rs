//! Folders in a published folder that are never published: stores, backups, states of copies, and copies of
//! this Source itself, which would feed themselves.
//!
//! They are recognised by what is in them. The folder of a copy is published unless it is a copy of this Source.

use abreast_folder::{Dir, Hiding, Stat};
use abreast_webtypes::visible;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Databases of a Source, a hub and a copy.
const DATABASES: [(&str, &str); 3] =
    [("source.db", "a store"), ("hub.db", "a store"), ("mirror.db", "the state of a copy")];
/// Other names that only our folders have.
const NAMES: [(&str, &str); 2] = [
    (".abreast-backup", "where a copy keeps replaced files"),
    (".abreast-restoring", "a store that is being restored"),
];
/// Names the Source of a copy, in the copy's state folder.
const COPY_OF: &str = ".abreast/copy-of";
const COPY_OF_BYTES_MAX: u64 = 32 << 10;
/// The first table of each database of ours, found in the begin of the file.
const FIRST_TABLE: &[u8] = b"schema_version";
const DATABASE_BYTES_READ: u64 = 64 << 10;
const SQLITE: &[u8] = b"SQLite format 3\0";
/// Folders remembered at most.
const REMEMBERED_MAX: usize = 16_384;
/// A folder that changed less long ago than this is examined again: its time may not show a second change.
const RECENT: Duration = Duration::from_secs(2);

/// What is never published of a folder: see [`Private::reason`].
#[derive(Clone, Debug, Default)]
pub struct Private {
    /// The addresses of this Source.
    own: Arc<[String]>,
}

impl Private {
    /// For a Source with these base URLs.
    pub fn new(own: impl IntoIterator<Item = String>) -> Self {
        let own = own.into_iter().map(|url| with_slash(&url)).collect();
        Self { own }
    }

    /// What a folder is that is never published in another one; `None` for any other folder.
    pub fn reason(&self, folder: &Path) -> Option<&'static str> {
        store_in(folder).or_else(|| self.is_copy(folder).then_some("a copy of this Source itself"))
    }

    fn is_copy(&self, folder: &Path) -> bool {
        let Ok(file) = File::open(folder.join(COPY_OF)) else { return false };
        let mut text = String::new();
        let read = file.take(COPY_OF_BYTES_MAX).read_to_string(&mut text);
        let is_own = |line: &str| {
            let url = with_slash(line.trim());
            self.own.iter().any(|own| url.starts_with(own.as_str()))
        };
        read.is_ok() && text.lines().any(is_own)
    }

    /// The rule for what is in a published folder.
    pub(crate) fn hiding(&self) -> Hiding {
        let folders = Folders { private: self.clone(), known: Mutex::default() };
        Hiding::new(move |dir, is_root| folders.hides(dir, is_root))
    }
}

/// What kind of store a folder is, or state of a copy; `None` for any other folder.
pub fn store_in(folder: &Path) -> Option<&'static str> {
    let database = DATABASES.into_iter().find(|(name, _)| is_database(folder, name));
    let named = || NAMES.into_iter().find(|(name, _)| folder.join(name).symlink_metadata().is_ok());
    let contents = || {
        let has = |name: &&str| folder.join(name).symlink_metadata().is_ok();
        ["packed", "tmp", "lock"].iter().all(has).then_some("kept contents")
    };
    let states = || {
        let has = |name: &&str| folder.join(name).is_file();
        ["sets.lock", "sets.json"].iter().all(has).then_some("the state of copies")
    };
    let backups = || has_backups(folder).then_some("a folder of backups");
    database.or_else(named).map(|(_, what)| what).or_else(contents).or_else(states).or_else(backups)
}

/// Whether a folder has the lock of backups, and one of them: complete, or being made.
fn has_backups(folder: &Path) -> bool {
    let is_backup = |name: &str, path: &Path| {
        name.starts_with("making-") || path.join("manifest.json").symlink_metadata().is_ok()
    };
    folder.join("backup.lock").is_file()
        && fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
            let name = entry.file_name();
            entry.path().is_dir() && is_backup(&name.to_string_lossy(), &entry.path())
        })
}

fn is_database(folder: &Path, name: &str) -> bool {
    let path = folder.join(name);
    let Ok(facts) = fs::metadata(&path) else { return false };
    if !facts.is_file() {
        return false;
    }
    // A new one has its tables, or its locks, beside it.
    let beside = |end: &str| folder.join(format!("{name}{end}")).is_file();
    if beside("-wal") || beside(".lock") || folder.join("source.lock").is_file() {
        return true;
    }
    let mut begin = Vec::new();
    let read =
        File::open(&path).and_then(|file| file.take(DATABASE_BYTES_READ).read_to_end(&mut begin));
    match read {
        // Only its owner may read it: not what somebody publishes.
        Err(error) => error.kind() == io::ErrorKind::PermissionDenied,
        Ok(_) => begin.starts_with(SQLITE) && memchr::memmem::find(&begin, FIRST_TABLE).is_some(),
    }
}

fn with_slash(url: &str) -> String {
    format!("{}/", url.trim_end_matches('/'))
}

/// A folder and its state folder at one time: another state than this may be another answer.
type Stamp = [Option<(i64, i64)>; 2];

const fn stamp_of(facts: &Stat) -> (i64, i64) {
    (facts.mtime_ns, facts.ctime_ns)
}

/// The folders of a published one, as they were examined last.
struct Folders {
    private: Private,
    known: Mutex<Known>,
}

/// Device and inode of a folder.
type Number = (u64, u64);

#[derive(Default)]
struct Known {
    folders: HashMap<Number, (Stamp, bool)>,
    /// Hidden folders that the log has.
    reported: HashSet<Number>,
}

impl Folders {
    fn hides(&self, dir: &Dir, is_root: bool) -> bool {
        let Ok(own) = dir.own_stat() else { return false };
        // The root is what is published, also where it is a copy.
        let state = if is_root { None } else { dir.stat(b".abreast").ok() };
        let (number, stamp) =
            ((own.device, own.inode), [Some(stamp_of(&own)), state.as_ref().map(stamp_of)]);
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().folders.get(&number).copied();
        if let Some((_, is_private)) = known.filter(|(known, _)| *known == stamp) {
            return is_private;
        }
        let Some(folder) = dir.path() else { return false };
        let reason = if is_root { store_in(&folder) } else { self.private.reason(&folder) };
        let mut known = lock();
        if let Some(what) = reason
            && known.reported.len() < REMEMBERED_MAX
            && known.reported.insert(number)
        {
            let folder = folder.to_string_lossy();
            tracing::warn!("`{}` is {what}, which is not published", visible(&folder));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let is_recent = |facts: &Stat| {
            let changed = u64::try_from(facts.mtime_ns.max(facts.ctime_ns)).unwrap_or_default();
            Duration::from_nanos(changed) + RECENT > now
        };
        if is_recent(&own) || state.as_ref().is_some_and(is_recent) {
            known.folders.remove(&number);
        } else {
            if known.folders.len() >= REMEMBERED_MAX {
                known.folders.clear();
            }
            known.folders.insert(number, (stamp, reason.is_some()));
        }
        reason.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_folder::Kind;

    fn write(place: &Path, name: &str, bytes: &[u8]) {
        let path = place.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    #[test]
    fn stores_are_known_by_what_is_in_them() {
        let database = [SQLITE, b"... CREATE TABLE schema_version"].concat();
        for (name, bytes, is_private) in [
            ("source.db", &database[..], true),
            ("hub.db", &database, true),
            ("mirror.db", &database, true),
            (".abreast-backup", b"", true),
            // Of somebody else.
            ("source.db", b"", false),
            ("backup.lock", b"", false),
            ("sets.lock", b"", false),
            ("source.db", SQLITE, false),
            ("source.db", b"text", false),
            ("other.db", &database, false),
            ("tokens.json", b"{}", false),
        ] {
            let place = tempfile::tempdir().unwrap();
            write(place.path(), &format!("a/b/{name}"), bytes);
            write(place.path(), "a/c", b"");
            let folders = Private::default().hiding();
            let folder = abreast_folder::Folder::open(place.path()).unwrap().hiding(folders);
            let expected = is_private.then_some(&b"a/b"[..]);
            assert_eq!(folder.hidden_folder(b"a/b/x", Kind::File), expected, "{name}");
            assert_eq!(folder.hidden_folder(b"a/b", Kind::Folder), expected, "{name}");
            assert_eq!(folder.selecting_all().selects(b"a/b/x", Kind::File), !is_private, "{name}");
        }
    }

    #[test]
    fn common_names_are_private_only_with_what_else_a_store_has() {
        for (names, is_private) in [
            (&["source.db", "source.lock"][..], true),
            (&["backup.lock", "20260101T000000.000000Z/manifest.json"], true),
            (&["backup.lock", "making-20260101T000000.000000Z/x"], true),
            (&["backup.lock", "a/x"], false),
            (&["sets.lock", "sets.json"], true),
            (&["manifest.json", "lock"], false),
        ] {
            let place = tempfile::tempdir().unwrap();
            for name in names {
                write(place.path(), name, b"");
            }
            assert_eq!(store_in(place.path()).is_some(), is_private, "{names:?}");
        }
    }

    #[test]
    fn a_copy_is_private_only_in_its_own_source() {
        let private = Private::new(["https://papers.example.org".to_owned()]);
        for (text, is_private) in [
            ("https://papers.example.org", true),
            ("http://127.0.0.1/\nhttps://papers.example.org/set/capabilitylist.xml\n", true),
            ("https://papers.example.org.example.net/", false),
            ("https://other.example/", false),
        ] {
            let place = tempfile::tempdir().unwrap();
            write(place.path(), "copy/.abreast/copy-of", text.as_bytes());
            let folder = abreast_folder::Folder::open(place.path()).unwrap();
            let folder = folder.hiding(private.hiding());
            assert_eq!(!folder.selects(b"copy/a", Kind::File), is_private, "{text}");
            // Of the published folder itself it does not matter.
            let folder = abreast_folder::Folder::open(place.path().join("copy")).unwrap();
            let folder = folder.hiding(private.hiding());
            assert!(folder.selects(b"a", Kind::File));
        }
    }

    #[test]
    fn a_folder_that_becomes_a_store_is_noticed_at_once() {
        let place = tempfile::tempdir().unwrap();
        write(place.path(), "a/x", b"");
        write(place.path(), "a/source.lock", b"");
        let folder = abreast_folder::Folder::open(place.path()).unwrap();
        let folder = folder.hiding(Private::default().hiding());
        for _ in 0..100 {
            assert!(folder.selects(b"a/x", Kind::File));
            write(place.path(), "a/source.db", b"");
            assert!(!folder.selects(b"a/x", Kind::File));
            fs::remove_file(place.path().join("a/source.db")).unwrap();
        }
    }
}
