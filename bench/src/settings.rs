//! Size, repetitions and folders of the benchmarks.

use crate::samples::Samples;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

/// Default number of rounds.
const ROUNDS: usize = 3;

/// Where folders wait to be deleted.
const ASIDE: &str = "set-aside";
/// Its modification time is the time of the last deletion.
const DELETED: &str = "deleted";
/// Fewer freed inodes than this are not worth waiting for.
const MANY: u64 = 10_000;
/// Files of one group that shows what creating one costs.
const PROBE_FILES: u32 = 200;
/// How long ext4 avoids a freed inode whose block was not yet written, with room to spare.
const EXT4_RECENTLY_DELETED: Duration = Duration::from_secs(310);

/// Options of the command line.
pub(crate) struct Settings {
    /// How often each thing is measured.
    pub(crate) rounds: usize,
    /// Small collections, nothing written.
    pub(crate) quick: bool,
    /// The parts to measure, all if empty; with any, nothing is written.
    only: Vec<String>,
    /// The repository.
    pub(crate) root: PathBuf,
    /// Cargo's target folder.
    pub(crate) target: PathBuf,
    /// Where collections and copies live.
    pub(crate) folder: PathBuf,
}

impl Settings {
    pub(crate) fn from_arguments(arguments: &[String]) -> Result<(Self, Vec<String>)> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .parent()
            .context("the crate is in no repository")?
            .to_owned();
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let (mut rounds, mut quick, mut only, mut names) = (ROUNDS, false, Vec::new(), Vec::new());
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => quick = true,
                "--only" => only
                    .push(arguments.next().context("--only needs the name of a part")?.to_owned()),
                "--rounds" => {
                    let number = arguments
                        .next()
                        .and_then(|text| text.parse().ok())
                        .filter(|number| *number > 0);
                    rounds = number.context("--rounds needs a number above 0")?;
                }
                option if option.starts_with('-') => {
                    bail!("there is no option `{option}`\n  help: see --help")
                }
                name => names.push(name.to_owned()),
            }
        }
        let folder = target.join("bench");
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok((Self { rounds, quick, only, root, target, folder }, names))
    }

    /// Whether only some parts are measured.
    pub(crate) fn is_partial(&self) -> bool {
        !self.only.is_empty()
    }

    /// Whether a part is to be measured.
    pub(crate) fn wants(&self, part: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|one| one == part)
    }

    /// The first part that was asked for and is none of these.
    pub(crate) fn unknown_part(&self, known: &[&str]) -> Option<&str> {
        self.only.iter().map(String::as_str).find(|one| !known.contains(one))
    }

    /// The size to measure: `full`, or `quick` when in a hurry.
    pub(crate) fn size(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// An empty folder for one run, beneath [`Self::folder`]. What was there before is set aside,
    /// not deleted.
    pub(crate) fn empty_folder(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        self.set_aside(&path)?;
        std::fs::create_dir_all(&path)
            .with_context(|| format!("cannot create {}", path.display()))?;
        Ok(path)
    }

    /// Moves a folder away, to be deleted by [`Self::clean_up`].
    pub(crate) fn set_aside(&self, path: &Path) -> Result<()> {
        let aside = self.folder.join(ASIDE);
        std::fs::create_dir_all(&aside)?;
        let since = UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
        match std::fs::rename(path, aside.join(since.to_string())) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("cannot move {}", path.display()))
            }
            _ => Ok(()),
        }
    }

    /// Deletes what was set aside, and notes when, if that was much.
    pub(crate) fn clean_up(&self) -> Result<()> {
        let free = || rustix::fs::statvfs(&self.folder).map_or(0, |found| found.f_ffree);
        let before = free();
        remove(&self.folder.join(ASIDE))?;
        if free().saturating_sub(before) >= MANY { self.note_deletions() } else { Ok(()) }
    }

    /// Notes that many files were deleted or replaced just now.
    pub(crate) fn note_deletions(&self) -> Result<()> {
        std::fs::write(self.folder.join(DELETED), "").context("cannot note the time of deletion")
    }

    /// Microseconds that creating a small file takes now, the median of several groups; it shows
    /// whether the file system still searches around freed inodes.
    pub(crate) fn creation_cost(&self) -> Result<f64> {
        let folder = self.empty_folder("probe")?;
        let mut groups = Samples::default();
        for group in 0..5 {
            let folder = folder.join(group.to_string());
            std::fs::create_dir(&folder)?;
            let start = Instant::now();
            for number in 0..PROBE_FILES {
                std::fs::write(folder.join(number.to_string()), "x")?;
            }
            groups.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(PROBE_FILES));
        }
        Ok(groups.median())
    }

    /// Waits until files may be created at their usual cost: ext4 searches around the inodes that
    /// were freed in the last five minutes, which made creating a file five times as dear for every
    /// program here.
    pub(crate) fn wait_for_deletions(&self) {
        let noted = std::fs::metadata(self.folder.join(DELETED)).and_then(|found| found.modified());
        let age = noted.ok().and_then(|time| time.elapsed().ok()).unwrap_or(EXT4_RECENTLY_DELETED);
        let rest = EXT4_RECENTLY_DELETED.saturating_sub(age);
        if !rest.is_zero() && !self.quick {
            eprintln!(
                "   waiting {} s for the file system to forget deleted files",
                rest.as_secs()
            );
            std::thread::sleep(rest);
        }
    }
}

/// Removes a folder that may not be there.
fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
