//! Puts lost contents of several nodes into their bucket again.

use crate::check::CheckReport;
use crate::check::shared::{SharedCheckOptions, check_contents};
use crate::place::{Context as _, Error, Result};
use crate::repair::report::RepairReport;
use abreast_contents::{Condition, View};
use abreast_core::ContentId;
use abreast_core::contents::{ContentStore, digest_of};
use abreast_webtypes::count;
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Contents that are put again after one check; then they are checked again.
const REPAIRED_AT_ONCE: usize = 100_000;

/// The shared store whose contents are repaired, and places that may have their bytes.
#[derive(Clone, Debug)]
pub struct SharedRepairOptions<'c> {
    /// The store, and how much of its contents is read to find damaged ones.
    pub check: SharedCheckOptions<'c>,
    /// Folders of stores and of backups, whose stored contents are searched, and other folders, such as published ones,
    /// whose files are compared.
    pub from: Vec<PathBuf>,
    /// Whether to report the steps only, without changes.
    pub dry_run: bool,
}

/// Puts contents that are missing or damaged in the bucket there again, from other places. Nodes may be running. Rows
/// are not repaired: a backup of the database has them. A text about each step is passed to `step`.
///
/// # Errors
/// The bucket is not known, some contents are in none of the places, or a step failed.
pub fn repair_shared(
    options: &SharedRepairOptions<'_>,
    step: &mut dyn FnMut(String),
    cancel: &AtomicBool,
) -> Result<RepairReport> {
    let mut report = RepairReport { steps: 0, dry_run: options.dry_run };
    let Some((bucket, contents)) = &options.check.contents else {
        let message = "the bucket of the contents is not known\n  help: name it: --contents s3://BUCKET/PREFIX";
        return Err(Error::Usage(message.to_owned()));
    };
    loop {
        let lost = find_lost(&options.check, cancel)?;
        let is_all = lost.len() < REPAIRED_AT_ONCE;
        let mut rest = lost;
        let mut found = 0;
        for place in &options.from {
            let search = Search { contents: *contents, dry_run: options.dry_run, cancel };
            let repaired = search
                .run(place, &mut rest)
                .with_context(|| format!("cannot put contents of `{}` again", place.display()))?;
            if repaired > 0 {
                let contents = count(repaired, "lost content");
                step(format!("put {contents} into the bucket again, from {}", place.display()));
                report.steps += 1;
                found += repaired;
            }
        }
        if !options.dry_run {
            contents.sync()?;
        }
        if found > 0 && !is_all && !options.dry_run {
            continue;
        }
        let Some(first) = rest.keys().min() else { return Ok(report) };
        return Err(Error::Damaged(format!(
            "{} of `{bucket}` are lost, and in none of the places, such as {first}\n  \
             help: name folders that have the files, or backups: --from DIR; else restore the objects from their earlier versions",
            count(rest.len() as u64, "content")
        )));
    }
}

/// The lost contents with their lengths, at most [`REPAIRED_AT_ONCE`].
fn find_lost(
    check: &SharedCheckOptions<'_>,
    cancel: &AtomicBool,
) -> Result<HashMap<ContentId, u64>> {
    let lost = Mutex::new(HashMap::new());
    let damaged = |id, length| {
        let mut lost = lost.lock().unwrap_or_else(PoisonError::into_inner);
        if lost.len() < REPAIRED_AT_ONCE {
            lost.insert(id, length);
        }
    };
    check_contents(check, &mut CheckReport::default(), &damaged, cancel)?;
    Ok(lost.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The search for lost contents in a place.
struct Search<'s> {
    contents: &'s dyn ContentStore,
    dry_run: bool,
    cancel: &'s AtomicBool,
}

impl Search<'_> {
    /// Removes the contents that the place has from `lost`, and returns their number.
    fn run(&self, place: &Path, lost: &mut HashMap<ContentId, u64>) -> Result<u64> {
        let stored = place.join("contents");
        if stored.is_dir() { self.of_store(&stored, lost) } else { self.of_files(place, lost) }
    }

    /// Searches the stored contents of a store, or of backups.
    fn of_store(&self, folder: &Path, lost: &mut HashMap<ContentId, u64>) -> Result<u64> {
        let view = View::open(folder)?;
        let ids: Vec<(ContentId, u64)> = lost.iter().map(|(id, length)| (*id, *length)).collect();
        let mut found = 0;
        for (id, length) in ids {
            self.check_cancelled()?;
            let condition = view.examine(&id)?;
            if !matches!(condition, Condition::Whole | Condition::RecordDamaged) {
                continue;
            }
            if !self.dry_run {
                // Rows need the content, so it is not removed without the pin.
                drop(self.contents.put_reader(&mut view.open_read(&id)?, length)?);
                self.check_whole(&id)?;
            }
            lost.remove(&id);
            found += 1;
        }
        Ok(found)
    }

    /// Searches the files of a folder and of the folders in it. Links are not followed.
    fn of_files(&self, folder: &Path, lost: &mut HashMap<ContentId, u64>) -> Result<u64> {
        let lengths: HashSet<u64> = lost.values().copied().collect();
        let (mut folders, mut found) = (vec![folder.to_owned()], 0);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                self.check_cancelled()?;
                let entry = entry?;
                let kind = entry.file_type()?;
                if kind.is_dir() {
                    folders.push(entry.path());
                }
                if !kind.is_file() || !lengths.contains(&entry.metadata()?.len()) {
                    continue;
                }
                found += u64::from(self.of_file(&entry.path(), lost)?);
            }
        }
        Ok(found)
    }

    /// Whether a file has the bytes of a lost content, which are then put again.
    fn of_file(&self, path: &Path, lost: &mut HashMap<ContentId, u64>) -> Result<bool> {
        let mut file = match File::open(path) {
            // The file was deleted meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        let (id, length) = digest_of(&mut file)?;
        if !lost.contains_key(&id) {
            return Ok(false);
        }
        if !self.dry_run {
            drop(self.contents.put_file(file.as_fd(), length, &mut |_| Ok(()))?);
            self.check_whole(&id)?;
        }
        lost.remove(&id);
        Ok(true)
    }

    /// Checks that the bucket has the content now. It does not replace a new object of the same length.
    fn check_whole(&self, id: &ContentId) -> Result<()> {
        if self.contents.is_whole(id)? {
            return Ok(());
        }
        let message = format!(
            "the damaged object of the content {id} was not replaced\n  help: delete the object, and run this again"
        );
        Err(Error::Damaged(message))
    }

    fn check_cancelled(&self) -> Result<()> {
        if self.cancel.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
}
