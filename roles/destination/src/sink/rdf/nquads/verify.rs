//! Verification of N-Quads files that changed since the last run: restored from a backup, edited,
//! or written by a killed run. Descriptions that are in the database and not in the file are
//! fetched again. Parts that are not in the database are overwritten.

use super::files::{Files, Found, name_of, overwrite_in, time_key};
use super::run::{is_filler, restore};
use crate::report::error::Error;
use crate::report::sinks::Graph;
use crate::sink::kept::plan_again;
use crate::sink::segments::{BUFFER_BYTES, unusable};
use abreast_store::mirror::{Location, Mirror};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

/// A part of a file that is being read.
struct Reading {
    file: File,
    /// Offset up to which the file was read.
    end: u64,
    /// Valid length of the file, in bytes.
    length: u64,
    foreign: Vec<Location>,
    block: Vec<u8>,
}

impl Reading {
    /// Checks the bytes between the last part and the next part, which starts at `begin`.
    fn skip_to(&mut self, segment: i64, begin: u64) -> io::Result<()> {
        let (offset, mut at, mut is_filled) = (self.end, self.end, true);
        while at < begin && is_filled {
            let most = usize::try_from(begin - at).unwrap_or(usize::MAX).min(BUFFER_BYTES);
            self.block.resize(most, 0);
            self.file.read_exact_at(&mut self.block, at)?;
            is_filled = is_filler(&self.block);
            at += most as u64;
        }
        if !is_filled {
            self.foreign.push(Location { segment, offset, length: begin - offset });
        }
        Ok(())
    }
}

impl Files {
    fn time_of(&self, number: i64) -> Option<String> {
        let path = self.folder.join(name_of(number));
        let about = std::fs::metadata(path).ok()?;
        Some(format!("{}.{:09} {}", about.mtime(), about.mtime_nsec(), about.len()))
    }

    /// Records the time of a file after the last change.
    pub(super) fn note_time(&self, mirror: &Mirror, number: i64) -> Result<(), Error> {
        Ok(mirror.set_meta(&time_key(number), self.time_of(number).as_deref())?)
    }

    /// The files that changed since the last run.
    pub(super) fn touched(&self, mirror: &Mirror) -> Result<Vec<i64>, Error> {
        let mut touched = Vec::new();
        for segment in mirror.segments()? {
            let noted = mirror.meta(&time_key(segment.number))?;
            if noted.is_none() || noted != self.time_of(segment.number) {
                touched.push(segment.number);
            }
        }
        Ok(touched)
    }

    /// Reads these files, which were truncated to their valid lengths, and makes files and database
    /// agree.
    pub(super) fn verify(
        &self,
        touched: &[i64],
        mirror: &Mirror,
        graph: &Graph,
    ) -> Result<Found, Error> {
        let (Some(first), Some(last)) = (touched.first(), touched.last()) else {
            return Ok(Found::default());
        };
        let open = |number| -> Result<Reading, Error> {
            let path = self.folder.join(name_of(number));
            let file = File::open(&path).map_err(|cause| unusable(&path, cause))?;
            let length = file.metadata().map_err(|cause| unusable(&path, cause))?.len();
            Ok(Reading { file, end: 0, length, foreign: Vec::new(), block: Vec::new() })
        };
        let mut files = BTreeMap::new();
        for number in touched {
            files.insert(*number, open(*number)?);
        }
        let (mut damaged, mut bytes, mut failed) = (Vec::new(), Vec::new(), None);
        mirror.packed_in(*first..=*last, &mut |uri, at| {
            let Some(reading) = files.get_mut(&at.segment).filter(|_| failed.is_none()) else {
                return;
            };
            let end = at.offset.saturating_add(at.length);
            if at.offset < reading.end || end > reading.length {
                damaged.push((uri.to_owned(), at));
                return;
            }
            bytes.resize(usize::try_from(at.length).unwrap_or(usize::MAX), 0);
            let read = reading
                .skip_to(at.segment, at.offset)
                .and_then(|()| reading.file.read_exact_at(&mut bytes, at.offset));
            if let Err(cause) = read {
                failed = Some(unusable(&self.folder.join(name_of(at.segment)), cause));
            }
            reading.end = end;
            let whole = restore(&bytes, graph.of(uri));
            if whole.is_none_or(|(_, header)| header.uri != uri) {
                damaged.push((uri.to_owned(), at));
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        let mut found = Found { damaged: damaged.len() as u64, foreign: 0 };
        mirror.begin()?;
        for (uri, at) in damaged {
            if let Some(row) = mirror.row(&uri)? {
                plan_again(mirror, &row)?;
            }
            // The bytes at the place do not belong to the description.
            mirror.put_superseded(&at)?;
            mirror.delete_packed(&uri)?;
        }
        mirror.commit()?;
        for (number, mut reading) in files {
            let path = self.folder.join(name_of(number));
            reading.skip_to(number, reading.length).map_err(|cause| unusable(&path, cause))?;
            found.foreign += reading.foreign.len() as u64;
            if !reading.foreign.is_empty() {
                overwrite_in(&path, &reading.foreign).map_err(|cause| unusable(&path, cause))?;
            }
            self.note_time(mirror, number)?;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::document::digest_of;
    use super::super::run;
    use super::*;
    use crate::report::sinks::NQuadsOptions;
    use abreast_store::mirror::Row;
    use std::path::PathBuf;

    /// A file with descriptions of `a`, `b` and `c`, of which `a` was superseded.
    struct Place {
        folder: tempfile::TempDir,
        mirror: Mirror,
    }

    impl Place {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("copy")).unwrap();
            let mirror = Mirror::open(&folder.path().join("mirror.db")).unwrap();
            let place = Self { folder, mirror };
            let files = place.open().unwrap();
            for (uri, value) in [("a", "old"), ("b", "one"), ("c", "one"), ("a", "new")] {
                let uri = format!("http://h/{uri}");
                let (lines, mut out) =
                    (format!("<{uri}> <http://h/p> \"{value}\" .\n"), Vec::new());
                let digest = digest_of(lines.as_bytes());
                run::write(&uri, None, lines.as_bytes(), &digest, &mut out);
                files.append(&Row { uri: uri.clone(), ..Row::default() }, &out).unwrap();
                place.mirror.put_row(&Row { uri, ..Row::default() }).unwrap();
            }
            place.mirror.begin().unwrap();
            files.settle(&place.mirror).unwrap();
            place.mirror.commit().unwrap();
            place
        }

        fn open(&self) -> Result<Files, Error> {
            let folder = self.folder.path().join("copy");
            Files::open(&folder, &self.mirror, &NQuadsOptions::default())
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("copy").join(name_of(1))
        }

        fn planned(&self) -> u64 {
            self.mirror.pending_counts().unwrap().fetches
        }
    }

    #[test]
    fn files_as_they_were_left_are_not_read() {
        let place = Place::new();
        place.open().unwrap().finish(&place.mirror).unwrap();
        assert_eq!(place.open().unwrap().touched(&place.mirror).unwrap(), [0; 0]);
    }

    #[test]
    fn a_restored_file_is_made_to_agree_with_the_state() {
        let place = Place::new();
        let before = std::fs::read(place.path()).unwrap();
        place.open().unwrap().finish(&place.mirror).unwrap();
        let after = std::fs::read(place.path()).unwrap();
        assert_ne!(before, after, "the old version was overwritten");
        let at_b = before.windows(5).position(|window| window == b"\"one\"").unwrap();
        let mut altered = after.clone();
        altered[at_b + 1] = b'x';
        let cases = [
            // Only touched.
            (after.clone(), Found::default()),
            // The file before the old version was overwritten.
            (before, Found { damaged: 0, foreign: 1 }),
            (altered, Found { damaged: 1, foreign: 0 }),
            (vec![b'x'; after.len()], Found { damaged: 2, foreign: 1 }),
        ];
        let mut planned = 0;
        for (bytes, expected) in cases {
            std::fs::write(place.path(), &bytes).unwrap();
            let files = place.open().unwrap();
            assert_eq!(files.found, expected);
            planned += expected.damaged;
            assert_eq!(place.planned(), planned);
            files.finish(&place.mirror).unwrap();
            let text = std::fs::read_to_string(place.path()).unwrap_or_default();
            assert!(
                !text.contains("old") && !text.contains("x\"") && !text.contains("xx"),
                "{text}"
            );
            assert_eq!(place.open().unwrap().touched(&place.mirror).unwrap(), [0; 0]);
        }
    }
}
