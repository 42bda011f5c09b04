//! Is a copy still what was written? Its files beside its own state; the Source is not asked.
//!
//! What is damaged can be had again: mending notes it in the plan, and the next run fetches it.

use crate::audit::fetch_again;
use crate::error::Error;
use crate::path_map::{Form, PathMap, STATE_FOLDER, TEMPORARY_PREFIX};
use crate::probe::FileSystem;
use crate::sink::kept::ReadBack as _;
use crate::sink::warc::WarcKept;
use crate::state::{DATABASE, LOCK, key};
use crate::verify::hash_file;
use abreast_folder::{Folder, Kind, Locked, Stat};
use abreast_store::check::{Findings, check_mirror};
use abreast_store::mirror::{Mirror, Row};
use abreast_webtypes::Digests;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows looked at together.
const ROWS: usize = 512;

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyFacts {
    /// Resources that the state knows.
    pub resources: u64,
    /// Those whose bytes were read.
    pub read: u64,
    /// Items of a plan that waits for the next run.
    pub pending: u64,
}

/// Where is the state of the copy in this folder, if it is one?
pub fn state_of(folder: &Path) -> Option<PathBuf> {
    let own = folder.join(STATE_FOLDER);
    if own.join(DATABASE).is_file() {
        return Some(own);
    }
    if let Ok(owner) = std::fs::read_to_string(own.join("owner")) {
        let elsewhere = PathBuf::from(owner.trim_end());
        return elsewhere.join(DATABASE).is_file().then_some(elsewhere);
    }
    folder.join(DATABASE).is_file().then(|| folder.to_owned())
}

/// The file that the process at work on a copy holds locked.
pub fn lock_of(folder: &Path) -> PathBuf {
    folder.join(STATE_FOLDER).join(std::ffi::OsStr::new(std::str::from_utf8(LOCK).unwrap_or("lock")))
}

/// Looks at the copy in a folder. `wants` says of which resources the bytes are read.
///
/// # Errors
/// The folder or the state cannot be read at all, or it was stopped.
pub fn check_copy(
    folder: &Path,
    wants: &dyn Fn(&str) -> bool,
    findings: &mut Findings,
    cancel: &AtomicBool,
) -> Result<CopyFacts, Error> {
    let Some(state) = state_of(folder) else { return Ok(CopyFacts::default()) };
    let database = state.join(DATABASE);
    if !check_mirror(&database, findings)? {
        return Ok(CopyFacts::default());
    }
    let mirror = Mirror::look(&database)?;
    let mut facts = CopyFacts::default();
    let counts = mirror.pending_counts()?;
    facts.pending = counts.fetches + counts.deletes + counts.held + counts.conflicts;
    if facts.pending > 0 {
        let message = format!("{} resources are still to be brought up to date by the next run", facts.pending);
        findings.note("copy.pending", folder.display().to_string(), message);
    }
    let kind = mirror.meta("sink")?.unwrap_or_else(|| "folder".to_owned());
    match kind.as_str() {
        "folder" => {
            let Some(base) = mirror.meta(key::BASE)? else { return Ok(facts) };
            let looked = Files::open(folder, &mirror, &base)?;
            each_row(&mirror, cancel, &mut |row| {
                facts.resources += 1;
                let read = wants(&row.uri);
                facts.read += u64::from(read);
                if let Some((rule, message)) = looked.fault(row, read) {
                    findings.add(rule, row.uri.clone(), message);
                }
                Ok(())
            })?;
            looked.leftovers(&mut |path| findings.add("copy.leftover", path, "left by a run that was killed"))?;
        }
        "warc" => {
            check_segments(folder, &mirror, findings)?;
            let mut kept = WarcKept::open(folder, &mirror)?;
            each_row(&mirror, cancel, &mut |row| {
                facts.resources += 1;
                let read = wants(&row.uri);
                facts.read += u64::from(read);
                if let Some((rule, message)) = record_fault(&mut kept, &mirror, row, read)? {
                    findings.add(rule, row.uri.clone(), message);
                }
                Ok(())
            })?;
        }
        _ => {
            each_row(&mirror, cancel, &mut |_| {
                facts.resources += 1;
                Ok(())
            })?;
            let message =
                format!("what a copy of the kind `{kind}` keeps elsewhere is not looked at; `abreast audit` does");
            findings.note("copy.elsewhere", folder.display().to_string(), message);
        }
    }
    Ok(facts)
}

/// Notes in the plan what is damaged or missing, so that the next run fetches it, and removes what killed runs left.
/// Gives back the steps. The caller holds the copy's lock.
///
/// # Errors
/// The state cannot be written, or it was stopped.
pub fn repair_copy(
    folder: &Path,
    wants: &dyn Fn(&str) -> bool,
    dry_run: bool,
    cancel: &AtomicBool,
) -> Result<Vec<String>, Error> {
    let Some(state) = state_of(folder) else { return Ok(Vec::new()) };
    let database = state.join(DATABASE);
    let mirror = if dry_run { Mirror::look(&database)? } else { Mirror::open(&database)? };
    let mut steps = Vec::new();
    let kind = mirror.meta("sink")?.unwrap_or_else(|| "folder".to_owned());
    let mut bad: Vec<Row> = Vec::new();
    match kind.as_str() {
        "folder" => {
            let Some(base) = mirror.meta(key::BASE)? else { return Ok(steps) };
            let looked = Files::open(folder, &mirror, &base)?;
            each_row(&mirror, cancel, &mut |row| {
                if looked.fault(row, wants(&row.uri)).is_some() {
                    bad.push(row.clone());
                }
                Ok(())
            })?;
            let mut leftovers = 0_u64;
            looked.leftovers(&mut |path| {
                leftovers += 1;
                if !dry_run {
                    let _ = std::fs::remove_file(folder.join(path));
                }
            })?;
            if leftovers > 0 {
                steps.push(format!("remove {leftovers} files that killed runs left"));
            }
        }
        "warc" => {
            let mut kept = WarcKept::open(folder, &mirror)?;
            each_row(&mirror, cancel, &mut |row| {
                if record_fault(&mut kept, &mirror, row, wants(&row.uri))?.is_some() {
                    bad.push(row.clone());
                }
                Ok(())
            })?;
        }
        _ => {}
    }
    if !dry_run && !bad.is_empty() {
        mirror.begin()?;
        for row in &bad {
            // What is there is a stranger's file now: it is put aside, not trusted.
            mirror.put_pending(&fetch_again(row))?;
            mirror.delete_row(&row.uri)?;
        }
        mirror.commit()?;
    }
    steps.extend(bad.iter().map(|row| format!("fetch {} again with the next `abreast sync`", row.uri)));
    Ok(steps)
}

/// Mends the state's own database first: what is salvaged is compared with the Source by the next run.
///
/// # Errors
/// Nothing of it can be read.
pub fn repair_state(folder: &Path, dry_run: bool) -> Result<Vec<String>, Error> {
    let Some(state) = state_of(folder) else { return Ok(Vec::new()) };
    Ok(abreast_store::repair::repair_mirror(&state.join(DATABASE), dry_run)?.steps)
}

/// Takes a copy for mending; `None` when another process has it.
///
/// # Errors
/// The lock cannot be made.
pub fn take_copy(folder: &Path) -> Result<Option<Locked>, Error> {
    let folder = Folder::open(folder)?;
    Ok(folder.root().dir(STATE_FOLDER.as_bytes())?.lock(LOCK)?)
}

/// What a file system does, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystemFacts {
    /// To names.
    pub names: String,
    /// To times.
    pub times: String,
}

/// Tries out what the file system of a folder does to names and times.
///
/// # Errors
/// Nothing can be written there.
pub fn file_system(folder: &Path) -> Result<FileSystemFacts, Error> {
    let found = FileSystem::probe(&Folder::open(folder)?.root())?;
    let case = if found.rules.folds_case { "does not tell A from a" } else { "tells A from a" };
    let text = if found.rules.ascii_only { "changes or refuses some names" } else { "keeps every name as it is" };
    let names = format!("the file system {case} and {text}; names are escaped where needed");
    Ok(FileSystemFacts { names, times: format!("times are kept to {} ns", found.time_step) })
}

fn each_row(
    mirror: &Mirror,
    cancel: &AtomicBool,
    visit: &mut dyn FnMut(&Row) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut key, mut rows) = (String::new(), Vec::new());
    loop {
        rows.clear();
        mirror.rows_after(&key, ROWS, &mut rows)?;
        let Some(last) = rows.last() else { return Ok(()) };
        key.clone_from(&last.uri);
        for row in &rows {
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::cancelled());
            }
            visit(row)?;
        }
    }
}

/// The files of a copy that is a folder.
struct Files {
    folder: Folder,
    map: PathMap,
    system: FileSystem,
}

impl Files {
    fn open(folder: &Path, mirror: &Mirror, base: &str) -> Result<Self, Error> {
        let system = mirror.meta(key::FILE_SYSTEM)?.as_deref().and_then(FileSystem::from_text);
        let system = system.unwrap_or(FileSystem { rules: crate::NameRules::default(), time_step: 1 });
        let map = PathMap::new(base, system.rules)
            .map_err(|cause| Error::new("folder.base", crate::ExitCode::Usage, cause.to_string()))?;
        Ok(Self { folder: Folder::open(folder)?, map, system })
    }

    fn fault(&self, row: &Row, read: bool) -> Option<(&'static str, String)> {
        let form = if row.leaf { Form::Leaf } else { Form::Plain };
        let mut path = Vec::new();
        if self.map.path_into(&row.uri, form, &mut path).is_err() {
            return Some(("copy.path", "the state names a resource that has no place in the folder".to_owned()));
        }
        let shown = String::from_utf8_lossy(&path).into_owned();
        let Ok((mut file, stat)) = self.folder.open_file(&path) else {
            return Some(("copy.missing", format!("the file `{shown}` is missing")));
        };
        if stat.size != row.length {
            return Some((
                "copy.changed",
                format!("the file `{shown}` has {} bytes, {} were written", stat.size, row.length),
            ));
        }
        let digests = digests_of(row);
        if read && digests.strongest().is_some() {
            return match hash_file(&mut file, &digests) {
                Ok((found, _)) if found.agree(&digests) == Some(true) => None,
                Ok(_) => Some(("copy.digest", format!("the file `{shown}` has other bytes than were written"))),
                Err(error) => Some(("copy.digest", format!("the file `{shown}` cannot be read: {error}"))),
            };
        }
        let touched = !self.is_as_written(row, &stat);
        touched
            .then(|| ("copy.changed", format!("the file `{shown}` was modified at another time than it was written")))
    }

    fn is_as_written(&self, row: &Row, stat: &Stat) -> bool {
        self.system.same_time(row.file_mtime, stat.mtime_ns)
    }

    fn leftovers(&self, tell: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let mut waiting: Vec<Vec<u8>> = vec![Vec::new()];
        while let Some(path) = waiting.pop() {
            let dir = self.folder.dir(path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()))?;
            for entry in dir.entries()? {
                let entry = entry?;
                if path.is_empty() && entry.name == STATE_FOLDER.as_bytes() {
                    continue;
                }
                let full = if path.is_empty() { entry.name.clone() } else { [&path[..], b"/", &entry.name].concat() };
                if entry.kind == Kind::Folder {
                    waiting.push(full);
                } else if entry.name.starts_with(TEMPORARY_PREFIX) {
                    tell(&String::from_utf8_lossy(&full));
                }
            }
        }
        Ok(())
    }
}

fn digests_of(row: &Row) -> Digests {
    let mut digests = Digests::default();
    digests.set_from_bytes(&row.digests);
    digests
}

fn record_fault(
    kept: &mut WarcKept,
    mirror: &Mirror,
    row: &Row,
    read: bool,
) -> Result<Option<(&'static str, String)>, Error> {
    if !kept.is_there(mirror, row)? {
        return Ok(Some(("copy.missing", "its record is in no segment".to_owned())));
    }
    let digests = digests_of(row);
    if !read || digests.strongest().is_none() {
        return Ok(None);
    }
    let sound = kept
        .digests(mirror, row, &digests)?
        .is_some_and(|(found, length)| length == row.length && found.agree(&digests) == Some(true));
    Ok((!sound).then(|| ("copy.digest", "its record has other bytes than were written".to_owned())))
}

fn check_segments(folder: &Path, mirror: &Mirror, findings: &mut Findings) -> Result<(), Error> {
    let archive = folder.join(crate::sink::warc::ARCHIVE);
    for segment in mirror.segments()? {
        let path = archive.join(&segment.name);
        let place = path.display().to_string();
        match std::fs::metadata(&path).map(|metadata| metadata.len()) {
            Ok(length) if length < segment.length => {
                findings.add("copy.segment", place, format!("it has {length} bytes, {} were written", segment.length));
            }
            Ok(length) if length > segment.length => {
                let message = format!(
                    "{} bytes of a run that was killed follow; the next run cuts them off",
                    length - segment.length
                );
                findings.note("copy.leftover", place, message);
            }
            Ok(_) => {}
            Err(error) => findings.add("copy.segment", place, format!("it cannot be read: {error}")),
        }
    }
    Ok(())
}
