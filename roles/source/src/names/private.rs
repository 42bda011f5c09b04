//! Folders in a published folder that are never published: stores, backups, state folders of
//! copies, and copies of this Source, which would otherwise publish its own resources again.
//!
//! Such a folder is recognized by its content. The folder of a copy is published unless it is a
//! copy of this Source.

use crate::names::copies::{Copies, Number};
use abreast_folder::{CopyOf, Dir, ErrorKind, Folder, Hiding, Kind, Stat};
use abreast_webtypes::visible;
use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Names of the databases of a Source, a hub and a copy, with a description for messages.
const DATABASES: [(&str, &str); 3] =
    [("source.db", "a store"), ("hub.db", "a store"), ("mirror.db", "the state of a copy")];
/// Further names that only folders of this program have.
const NAMES: [(&str, &str); 2] = [
    (".abreast-backup", "where a copy keeps replaced files"),
    (".abreast-restoring", "a store that is being restored"),
];
/// The state folder of a copy, and the file with the addresses of the copied Source.
const STATE: &[u8] = b".abreast";
const COPY_OF: &[u8] = b".abreast/copy-of";
/// Names of entries, at least one of which is in every private folder.
const MARKS: [&str; 9] = [
    DATABASES[0].0,
    DATABASES[1].0,
    DATABASES[2].0,
    NAMES[0].0,
    NAMES[1].0,
    "packed",
    "sets.lock",
    "backup.lock",
    ".abreast",
];
/// First table of each database, whose name is near the start of the file.
const FIRST_TABLE: &[u8] = b"schema_version";
const DATABASE_BYTES_READ: u64 = 64 << 10;
const SQLITE: &[u8] = b"SQLite format 3\0";
/// Most examined folders in memory, in two generations.
const REMEMBERED_MAX: usize = 16_384;
pub(crate) const OWN_COPY: &str = "a copy of this Source itself";
/// A folder that changed more recently is examined again, because a second change may not alter its
/// modification time.
const RECENT: Duration = Duration::from_secs(2);

/// Rules for folders that are never published: see [`Private::reason`].
#[derive(Clone, Debug, Default)]
pub struct Private {
    /// Addresses of this Source; a copy of one of these addresses is private.
    own: Arc<[String]>,
    /// Copies found in the folders that were opened with these rules.
    copies: Copies,
}

impl Private {
    /// Creates the rules for a Source with these base URLs.
    pub fn new(own: impl IntoIterator<Item = String>) -> Self {
        let own = own.into_iter().map(|url| with_slash(&url)).collect();
        Self { own, copies: Copies::default() }
    }

    /// Returns the copies found in the published folder.
    pub fn copies(&self) -> &Copies {
        &self.copies
    }

    /// Returns a description of a folder that must not be published; `None` for any other folder.
    pub fn reason(&self, folder: &Path) -> Option<&'static str> {
        Folder::open(folder).ok().and_then(|folder| self.reason_of(&folder.root()))
    }

    fn reason_of(&self, dir: &Dir) -> Option<&'static str> {
        let is_own_copy = || copy_in(dir).is_some_and(|copy| self.is_own(&copy));
        store_of(dir).or_else(|| is_own_copy().then_some(OWN_COPY))
    }

    fn is_own(&self, copy: &CopyOf) -> bool {
        let whole = copy.parts.iter().filter(|(path, _)| path.is_empty());
        let mut sources = copy.sources.iter().chain(whole.map(|(_, address)| address));
        sources.any(|source| self.has(source))
    }

    /// Whether a URL is an address of this Source.
    fn has(&self, url: &str) -> bool {
        let url = with_slash(url);
        self.own.iter().any(|own| url.starts_with(own.as_str()))
    }

    /// Returns the folders in a copy that are copies of this Source.
    pub(crate) fn own_parts(&self, folder: &Path) -> Vec<PathBuf> {
        let copy = Folder::open(folder).ok().and_then(|folder| copy_in(&folder.root()));
        let parts = copy.into_iter().flat_map(|copy| copy.parts);
        let own = parts.filter(|(path, address)| !path.is_empty() && self.has(address));
        own.map(|(path, _)| folder.join(OsStr::from_bytes(&path))).collect()
    }

    /// Returns the rule that hides private folders below this path of a published folder.
    pub(crate) fn hiding(&self, root: &Path) -> Hiding {
        let (private, root) = (self.clone(), root.to_owned());
        let folders = Folders { private, root, known: Mutex::default() };
        Hiding::new(&MARKS, move |dir, path, is_marked| folders.hides(dir, path, is_marked))
    }
}

/// Reads the record of a copy in its state folder.
fn copy_in(dir: &Dir) -> Option<CopyOf> {
    CopyOf::read(dir, COPY_OF).ok()
}

/// Whether a folder that contains this name, in any case, can be private. A folder without such a
/// name is not private.
pub(crate) fn is_mark(name: &[u8]) -> bool {
    MARKS.iter().any(|mark| mark.as_bytes().eq_ignore_ascii_case(name))
}

/// Returns the kind of store or copy state in a folder; `None` for any other folder.
pub fn store_in(folder: &Path) -> Option<&'static str> {
    Folder::open(folder).ok().and_then(|folder| store_of(&folder.root()))
}

fn store_of(dir: &Dir) -> Option<&'static str> {
    let has = |name: &str| dir.stat(name.as_bytes()).is_ok();
    let database = DATABASES.into_iter().find(|(name, _)| is_database(dir, name));
    let named = || NAMES.into_iter().find(|(name, _)| has(name));
    let contents = || ["packed", "tmp", "lock"].into_iter().all(has).then_some("kept contents");
    let states = || {
        let has = |name| has_file(dir, name);
        ["sets.lock", "sets.json"].into_iter().all(has).then_some("the state of copies")
    };
    let backups = || has_backups(dir).then_some("a folder of backups");
    database.or_else(named).map(|(_, what)| what).or_else(contents).or_else(states).or_else(backups)
}

/// Whether a folder contains the lock of backups and at least one backup, complete or incomplete. A
/// symbolic link with the name of a backup counts, because its target can be a backup outside the
/// folder.
fn has_backups(dir: &Dir) -> bool {
    let is_backup = |name: &[u8]| {
        name.starts_with(b"making-")
            || dir.dir(name).is_ok_and(|backup| backup.stat(b"manifest.json").is_ok())
    };
    has_file(dir, "backup.lock")
        && dir.entries().into_iter().flatten().flatten().any(|entry| match entry.kind {
            Kind::Folder => is_backup(&entry.name),
            Kind::Symlink => is_backup_name(&entry.name) || is_backup(&entry.name),
            _ => false,
        })
}

fn is_backup_name(name: &[u8]) -> bool {
    const FORM: &[u8] = b"00000000T000000.000000Z";
    let is_of = |(byte, form): (&u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        form => byte == form,
    };
    name.len() == FORM.len() && name.iter().zip(FORM).all(is_of)
}

/// Whether a regular file or symbolic link has this name; a link can lead to a file outside the
/// folder.
fn has_file(dir: &Dir, name: &str) -> bool {
    dir.stat(name.as_bytes()).is_ok_and(|stat| matches!(stat.kind, Kind::File | Kind::Symlink))
}

fn is_database(dir: &Dir, name: &str) -> bool {
    if !has_file(dir, name) {
        return false;
    }
    // A new database has its tables, or its locks, in separate files.
    if has_file(dir, &format!("{name}-wal"))
        || has_file(dir, &format!("{name}.lock"))
        || has_file(dir, "source.lock")
    {
        return true;
    }
    match dir.read_begin(name.as_bytes(), DATABASE_BYTES_READ) {
        // Users do not publish a file that only its owner can read.
        Err(error) => error.kind() == ErrorKind::Denied,
        Ok(begin) => {
            begin.starts_with(SQLITE) && memchr::memmem::find(&begin, FIRST_TABLE).is_some()
        }
    }
}

fn with_slash(url: &str) -> String {
    format!("{}/", url.trim_end_matches('/'))
}

/// Modification times of a folder and its state folder. The folder is examined again if a time
/// differs.
type Stamp = [Option<(i64, i64)>; 2];

const fn stamp_of(facts: &Stat) -> (i64, i64) {
    (facts.mtime_ns, facts.ctime_ns)
}

/// Results of the last examination of each folder below a published folder.
struct Folders {
    private: Private,
    root: PathBuf,
    known: Mutex<Known>,
}

/// Result of examining a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Private,
    /// A copy of another Source, which is published.
    Copy,
    Other,
}

#[derive(Default)]
struct Known {
    /// The most recently examined folders, and the generation before. When the younger generation
    /// is full, the older one is dropped.
    young: HashMap<Number, (Stamp, Answer)>,
    old: HashMap<Number, (Stamp, Answer)>,
    /// Hidden folders for which the log already contains a message.
    reported: HashSet<Number>,
}

impl Known {
    fn get(&mut self, number: Number) -> Option<(Stamp, Answer)> {
        self.young.get(&number).copied().or_else(|| {
            let known = self.old.remove(&number)?;
            self.insert(number, known);
            Some(known)
        })
    }

    fn insert(&mut self, number: Number, known: (Stamp, Answer)) {
        if self.young.len() >= REMEMBERED_MAX / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(number, known);
    }

    fn forget(&mut self, number: Number) {
        self.young.remove(&number);
        self.old.remove(&number);
    }
}

impl Folders {
    fn hides(&self, dir: &Dir, path: &[u8], is_marked: bool) -> bool {
        if self.private.copies.has_own_part(path) {
            return true;
        }
        if !is_marked {
            self.private.copies.set(path, None, |_| false);
            return false;
        }
        let Ok(own) = dir.own_stat() else { return false };
        // The published folder itself is always published, even if it is a copy.
        let is_root = path.is_empty();
        let state = dir.stat(STATE).ok();
        let (number, stamp) =
            ((own.device, own.inode), [Some(stamp_of(&own)), state.as_ref().map(stamp_of)]);
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(number);
        match known.filter(|(known, _)| *known == stamp) {
            Some((_, Answer::Private)) => return true,
            // After an outer folder was renamed, the copy has another path and is examined again.
            Some((_, Answer::Copy)) if self.private.copies.has(path, number) => return false,
            Some((_, Answer::Other)) => {
                self.private.copies.set(path, None, |_| false);
                return false;
            }
            _ => {}
        }
        let copy = state.as_ref().and_then(|_| copy_in(dir));
        let is_own_copy =
            || !is_root && copy.as_ref().is_some_and(|copy| self.private.is_own(copy));
        let reason = store_of(dir).or_else(|| is_own_copy().then_some(OWN_COPY));
        let published = copy.filter(|_| reason.is_none());
        let answer = match (&reason, &published) {
            (Some(_), _) => Answer::Private,
            (None, Some(_)) => Answer::Copy,
            (None, None) => Answer::Other,
        };
        let published = published.map(|copy| (number, copy));
        self.private.copies.set(path, published, |address| self.private.has(address));
        let mut known = lock();
        if let Some(what) = reason
            && known.reported.len() < REMEMBERED_MAX
            && known.reported.insert(number)
        {
            let folder = self.root.join(OsStr::from_bytes(path));
            let folder = folder.to_string_lossy();
            tracing::warn!("`{}` is {what}, which is not published", visible(&folder));
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let is_recent = |facts: &Stat| {
            let changed = u64::try_from(facts.mtime_ns.max(facts.ctime_ns)).unwrap_or_default();
            Duration::from_nanos(changed) + RECENT > now
        };
        if is_recent(&own) || state.as_ref().is_some_and(is_recent) {
            known.forget(number);
        } else {
            known.insert(number, (stamp, answer));
        }
        reason.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn opened(place: &Path, private: &Private) -> Folder {
        Folder::open(place).unwrap().hiding(private.hiding(place))
    }

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
            // Files of other programs with the same name.
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
            let folder = opened(place.path(), &Private::default());
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
    fn a_linked_backup_counts_as_one() {
        for (name, is_private) in [
            ("20260101T000000.000000Z", true),
            ("making-20260101T000000.000000Z", true),
            ("a", false),
        ] {
            let place = tempfile::tempdir().unwrap();
            write(place.path(), "there/manifest.json", b"");
            write(place.path(), "here/backup.lock", b"");
            std::os::unix::fs::symlink("../there", place.path().join("here").join(name)).unwrap();
            assert_eq!(store_in(&place.path().join("here")).is_some(), is_private, "{name}");
        }
    }

    #[test]
    fn names_that_stores_have_count_in_any_case() {
        assert!(is_mark(b"source.db") && is_mark(b"SOURCE.DB") && is_mark(b".Abreast"));
        assert!(!is_mark(b"source.dbx"));
    }

    #[test]
    fn a_copy_is_private_only_in_its_own_source() {
        let private = Private::new(["https://papers.example.org".to_owned()]);
        for (text, is_private) in [
            ("https://papers.example.org", true),
            ("http://127.0.0.1/\nhttps://papers.example.org/set/capabilitylist.xml\n", true),
            ("https://papers.example.org.example.net/", false),
            ("https://other.example/", false),
            ("https://other.example/\npart https://papers.example.org/ \n", true),
            ("https://other.example/\npart https://papers.example.org/ b\n", false),
        ] {
            let place = tempfile::tempdir().unwrap();
            write(place.path(), "copy/.abreast/copy-of", text.as_bytes());
            let folder = opened(place.path(), &private);
            assert_eq!(!folder.selects(b"copy/a", Kind::File), is_private, "{text}");
            // A copy is published if it is the published folder itself.
            let folder = opened(&place.path().join("copy"), &private);
            assert!(folder.selects(b"a", Kind::File));
        }
    }

    #[test]
    fn an_own_part_stays_hidden_when_folders_are_renamed() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let rename = |from: &str, to: &str| fs::rename(at(from), at(to)).unwrap();
        let record = |part: &str| format!("http://b/\nhttp://b/\npart http://h/ {part}\n");
        for (path, part) in [("o/1/copy", "x"), ("o/2/copy", "y")] {
            write(place.path(), &format!("{path}/.abreast/copy-of"), record(part).as_bytes());
        }
        // Recently changed folders are examined each time.
        std::thread::sleep(RECENT + Duration::from_millis(200));
        let private = Private::new(["http://h/".to_owned()]);
        let folder = opened(place.path(), &private);
        let hidden = || -> Vec<_> {
            let paths = ["o/1", "o/2", "q/1", "q/2"].map(|path| [("x", path), ("y", path)]);
            let paths = paths.into_iter().flatten();
            let paths = paths.map(|(part, path)| format!("{path}/copy/{part}"));
            paths
                .filter(|path| at(path.rsplit_once('/').unwrap().0).is_dir())
                .filter(|path| folder.hidden_folder(path.as_bytes(), Kind::Folder).is_some())
                .collect()
        };
        for path in ["o/1/copy/x", "o/2/copy/x", "o/1/copy/y", "o/2/copy/y"] {
            fs::create_dir(at(path)).unwrap();
        }
        std::thread::sleep(RECENT + Duration::from_millis(200));
        for _ in 0..2 {
            assert_eq!(hidden(), ["o/1/copy/x", "o/2/copy/y"]);
        }
        rename("o", "q");
        assert_eq!(hidden(), ["q/1/copy/x", "q/2/copy/y"]);
        // Two folders exchange their places.
        rename("q/1", "q/3");
        rename("q/2", "q/1");
        rename("q/3", "q/2");
        assert_eq!(hidden(), ["q/1/copy/y", "q/2/copy/x"]);
        // The copy was removed from memory in the meantime.
        rename("q", "o");
        private.copies().sweep(&folder, b"");
        rename("o", "q");
        assert_eq!(hidden(), ["q/1/copy/y", "q/2/copy/x"]);
    }

    #[test]
    fn a_folder_that_becomes_a_store_is_noticed_at_once() {
        let place = tempfile::tempdir().unwrap();
        write(place.path(), "a/x", b"");
        write(place.path(), "a/source.lock", b"");
        let folder = opened(place.path(), &Private::default());
        for _ in 0..100 {
            assert!(folder.selects(b"a/x", Kind::File));
            write(place.path(), "a/source.db", b"");
            assert!(!folder.selects(b"a/x", Kind::File));
            fs::remove_file(place.path().join("a/source.db")).unwrap();
        }
    }

    #[test]
    fn a_store_is_private_however_long_its_path_is() {
        let place = tempfile::tempdir().unwrap();
        let folder = opened(place.path(), &Private::default());
        let (mut dir, mut path) = (folder.root(), Vec::new());
        // The system does not report paths of more than 4,096 bytes, nor any path without `/proc`.
        for _ in 0..18 {
            let name = [b'a'; 250];
            dir.create_dir(&name).unwrap();
            dir = dir.dir(&name).unwrap();
            path.extend_from_slice(&name);
            path.push(b'/');
        }
        path.push(b'x');
        assert!(folder.selects(&path, Kind::File));
        dir.create_new(b"source.db").unwrap();
        dir.create_new(b"source.lock").unwrap();
        assert!(!folder.selects(&path, Kind::File));
    }

    #[test]
    fn the_folders_asked_about_last_are_remembered() {
        let mut known = Known::default();
        let stamp = [Some((1, 1)), None];
        let busy = (0, 0);
        known.insert(busy, (stamp, Answer::Private));
        for inode in 1..100_000 {
            known.insert((1, inode), (stamp, Answer::Other));
            assert!(known.young.len() + known.old.len() <= REMEMBERED_MAX);
            assert_eq!(known.get(busy), Some((stamp, Answer::Private)), "{inode}");
            assert!(known.get((1, inode.saturating_sub(2_000).max(1))).is_some(), "{inode}");
        }
    }
}
