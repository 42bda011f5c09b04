//! The marker in the folder of a copy whose state is elsewhere: the path of the state, and a random
//! stamp that is replaced whenever the state changes.
//!
//! A folder without the marker is not the folder of the copy: a file system is not mounted, or the
//! path leads to another folder. If folder and state have different stamps, one of the two was
//! restored from a backup.

use crate::copy::names::{DATABASE, MARKER};
use crate::copy::path_map::STATE_FOLDER;
use crate::copy::state_folder::{StateFolder, read_text};
use crate::copy::unusable::{overlap, unusable};
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use abreast_folder::Folder;
use abreast_store::mirror::Mirror;
use std::path::{Path, PathBuf};

/// Maximum length of a marker, in bytes.
const BYTES_MAX: u64 = 32 << 10;
/// Separates the path of the state from the stamp.
const STAMP_MARK: &str = "\nstamp ";
/// Key of the folder's stamp in the database; the second key is used during the replacement.
const STAMP: &str = "folder-stamp";
const NEXT_STAMP: &str = "folder-stamp-next";

/// The text of a marker.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Text {
    state: String,
    stamp: Option<String>,
}

impl Text {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim_end_matches('\n');
        let (state, stamp) = match text.rsplit_once(STAMP_MARK) {
            Some((state, stamp)) => (state, Some(stamp.to_owned())),
            None => (text, None),
        };
        (!state.is_empty()).then(|| Self { state: state.to_owned(), stamp })
    }

    /// Whether the database exists. The marker of a deleted database does not reserve the folder.
    fn names_a_state(&self) -> bool {
        Path::new(&self.state).join(DATABASE).is_file()
    }
}

/// The state folder of a copy in `folder` whose state is elsewhere, according to the marker.
pub(crate) fn state_elsewhere(folder: &Path) -> Option<PathBuf> {
    let own = Folder::open(folder).ok()?.root().dir(STATE_FOLDER.as_bytes()).ok()?;
    let found = Text::parse(&read_text(&own, MARKER.as_bytes(), BYTES_MAX)?)?;
    found.names_a_state().then(|| PathBuf::from(found.state))
}

fn damaged(folder: &Path) -> Error {
    let marker = folder.join(STATE_FOLDER).join(MARKER);
    let message = format!(
        "{} is damaged: which state is that of the copy in {} is not known",
        marker.display(),
        folder.display()
    );
    Error::new("folder.owner", ExitCode::Usage, message)
        .with_help("name the state of the copy with `--state`; or remove the file, and the copy is compared with the Source")
}

/// The marker of a copy, in its folder.
#[derive(Debug)]
pub(crate) struct Marker {
    own: StateFolder,
    /// The path of the state folder.
    state: String,
    found: Option<Text>,
    /// A marker exists and cannot be parsed.
    is_damaged: bool,
}

impl Marker {
    /// Reads the marker of a folder whose state is at `state`, or in the folder itself.
    ///
    /// # Errors
    /// The folder belongs to the state of another copy.
    pub(crate) fn check(
        folder: &Path,
        own: &StateFolder,
        state: Option<&Path>,
    ) -> Result<Option<Self>, Error> {
        let read = own.read_text(MARKER, BYTES_MAX);
        let is_damaged = read.is_err();
        let found = read.ok().flatten().and_then(|text| Text::parse(&text));
        let refuse = |other: &str| {
            let other = other.trim();
            Err(overlap(format!("{} is a copy whose state is in {other}", folder.display())))
        };
        let owner = found.as_ref().filter(|text| text.names_a_state());
        let Some(path) = state else {
            if is_damaged && !folder.join(STATE_FOLDER).join(DATABASE).exists() {
                return Err(damaged(folder));
            }
            return owner.map_or(Ok(None), |owner| refuse(&owner.state));
        };
        let real = std::path::absolute(path).map_err(|cause| unusable(path, cause))?;
        let state = real.display().to_string();
        let marker = folder.join(STATE_FOLDER);
        match owner {
            Some(owner) if owner.state != state => refuse(&owner.state),
            None if marker.join(DATABASE).exists() => refuse(&marker.display().to_string()),
            _ => Ok(Some(Self { own: own.clone(), state, found, is_damaged })),
        }
    }

    /// Whether folder and database were last changed by the same run. A database without resources
    /// fits every folder.
    ///
    /// # Errors
    /// The marker is missing, so that the folder is not the folder of the copy, and no baseline is
    /// requested.
    pub(crate) fn is_as_left(&self, mirror: &Mirror, options: &SyncOptions) -> Result<bool, Error> {
        let is_empty = mirror.count_rows_up_to(1)? == 0;
        if self.is_damaged {
            // A database with resources contains the path of its folder. Without resources, the
            // folder may belong to another copy.
            return if is_empty { Err(damaged(&options.folder)) } else { Ok(false) };
        }
        if is_empty {
            return Ok(true);
        }
        let Some(found) = &self.found else {
            return if options.baseline { Ok(false) } else { Err(self.lost(&options.folder)) };
        };
        // A database of an earlier version does not have a stamp.
        let known = [mirror.meta(STAMP)?, mirror.meta(NEXT_STAMP)?];
        Ok(known == [None, None] || found.stamp.is_some() && known.contains(&found.stamp))
    }

    fn lost(&self, folder: &Path) -> Error {
        let (folder, state) = (folder.display(), &self.state);
        let message = format!(
            "the state in {state} is of a copy in {folder}, and that folder is missing or not mounted: there is no `{STATE_FOLDER}/{MARKER}` in it"
        );
        Error::new("folder.lost", ExitCode::Usage, message).with_help(
            "mount or restore the folder; or run once with `--baseline`, which fetches everything that is missing again",
        )
    }

    /// Replaces the stamp of folder and database. After a crash, the folder has one of the two
    /// stamps in the database.
    pub(crate) fn stamp(&self, mirror: &Mirror) -> Result<(), Error> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|cause| {
            Error::new("io", ExitCode::Io, format!("cannot get random bytes: {cause}"))
        })?;
        let stamp = format!("{:016x}", u64::from_be_bytes(random));
        mirror.set_meta(NEXT_STAMP, Some(&stamp))?;
        self.own.replace_text(MARKER, &format!("{}{STAMP_MARK}{stamp}\n", self.state))?;
        mirror.set_meta(STAMP, Some(&stamp))?;
        Ok(mirror.set_meta(NEXT_STAMP, None)?)
    }

    /// Writes the marker, unless the marker exists.
    pub(crate) fn put(&self) -> Result<(), Error> {
        if self.found.as_ref().is_some_and(|found| found.state == self.state) {
            return Ok(());
        }
        let stamp = self.found.as_ref().and_then(|found| found.stamp.as_deref());
        let stamp = stamp.map(|stamp| format!("{STAMP_MARK}{stamp}")).unwrap_or_default();
        self.own.replace_text(MARKER, &format!("{}{stamp}\n", self.state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_marker_gives_the_folder_to_no_state() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["copy/.abreast", "state"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        let own = StateFolder::at(&at("copy/.abreast")).unwrap();
        let mirror = Mirror::open(&at("state").join(DATABASE)).unwrap();
        let check = |state: Option<&Path>| Marker::check(&at("copy"), &own, state);
        let marker = || check(Some(&at("state"))).unwrap().unwrap();
        marker().stamp(&mirror).unwrap();
        let options = SyncOptions::new("http://h/", at("copy"));
        mirror
            .put_row(&abreast_store::mirror::Row { uri: "http://h/a".into(), ..Default::default() })
            .unwrap();
        assert!(marker().is_as_left(&mirror, &options).unwrap());
        let path = at("copy/.abreast").join(MARKER);
        let record = std::fs::read(&path).unwrap();
        // One bit is corrected.
        for bit in 0..record.len() * 8 {
            let mut damaged = record.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &damaged).unwrap();
            assert!(marker().is_as_left(&mirror, &options).unwrap(), "bit {bit}");
        }
        let mut damaged = record.clone();
        damaged[..4].fill(b'x');
        std::fs::write(&path, &damaged).unwrap();
        // The state that knows the folder compares all; any other one is refused.
        assert!(!marker().is_as_left(&mirror, &options).unwrap());
        assert_eq!(check(None).unwrap_err().code(), "folder.owner");
        let other = Mirror::open(&at("other.db")).unwrap();
        assert_eq!(marker().is_as_left(&other, &options).unwrap_err().code(), "folder.owner");
        // The marker of an earlier version.
        let text = String::from_utf8(record).unwrap();
        std::fs::write(&path, text.split_once("blake3").unwrap().0).unwrap();
        assert!(marker().is_as_left(&mirror, &options).unwrap());
    }
}
