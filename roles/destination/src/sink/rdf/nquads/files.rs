//! The files of a copy in N-Quads. Descriptions are appended, and overwritten after they are
//! superseded. A file that consists mostly of superseded parts is rewritten.
//!
//! The database has the place of each description, and the valid length of each file; the next run
//! removes bytes that a killed run wrote after this length. A superseded description is recorded in
//! the transaction that stores the place of its successor, and overwritten with comments after that
//! transaction is durable, so that the database never refers to missing bytes. The database also
//! has the modification time of each file. A file with another time was changed or restored by
//! somebody else, or by a killed run, and is read before it is used (`verify.rs`).

use super::run::{Runs, filler};
use crate::copy::state_folder::open_own;
use crate::report::error::Error;
use crate::report::sinks::NQuadsOptions;
use crate::sink::kept::distrusted;
use crate::sink::segments::{BUFFER_BYTES, Current, OpenSegments, sync, unusable};
use abreast_store::mirror::{Location, Mirror, Packed, Row, Segment};
use std::fs::File;
use std::io::{self, BufReader};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of superseded parts that are overwritten together.
const PARTS: usize = 4_096;
/// Length of a file in bytes below which it is not rewritten.
const COMPACTED_BYTES_MIN: u64 = 1 << 20;
/// Key in the database, set if the database has the places of the descriptions.
const BEGUN: &str = "nquads-begun";
const PREFIX: &str = "abreast-";
const SUFFIX: &str = ".nq";

/// A change of a description that is not durable yet.
#[derive(Debug)]
enum Unsettled {
    At(Row, Location),
    Gone(String),
}

#[derive(Debug, Default)]
struct Open {
    files: OpenSegments,
    unsettled: Vec<Unsettled>,
}

/// Differences found in the files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Descriptions that are missing or altered, and are fetched again.
    pub(super) damaged: u64,
    /// Parts that are not in the database, and were overwritten.
    pub(super) foreign: u64,
}

/// Key of a file's modification time in the database.
pub(super) fn time_key(number: i64) -> String {
    format!("nquads-time {number}")
}

/// The N-Quads files of a copy.
#[derive(Debug)]
pub(super) struct Files {
    pub(super) folder: PathBuf,
    file_bytes: u64,
    open: Mutex<Open>,
    /// Differences that were found when the files were opened.
    pub(super) found: Found,
}

/// The name of a file.
pub(super) fn name_of(number: i64) -> String {
    format!("{PREFIX}{number:08}{SUFFIX}")
}

fn number_in(name: &str) -> Option<i64> {
    name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok()
}

fn write_error(cause: io::Error) -> Error {
    crate::sink::warc::spelling::write_error(cause)
}

impl Files {
    pub(super) fn open(
        folder: &Path,
        mirror: &Mirror,
        options: &NQuadsOptions,
    ) -> Result<Self, Error> {
        let (folder, file_bytes) = (folder.to_owned(), options.file_bytes.max(1));
        let mut files =
            Self { folder, file_bytes, open: Mutex::default(), found: Found::default() };
        if mirror.meta(BEGUN)?.is_none() {
            mirror.begin()?;
            files.adopt(mirror)?;
            mirror.set_meta(BEGUN, Some("1"))?;
            mirror.commit()?;
        }
        let touched = files.touched(mirror)?;
        files.recover(mirror)?;
        files.overwrite(mirror)?;
        files.found = files.verify(&touched, mirror, &options.graph)?;
        Ok(files)
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The numbers of the files in the folder, in order.
    fn numbers(&self) -> Result<Vec<i64>, Error> {
        let entries =
            std::fs::read_dir(&self.folder).map_err(|cause| unusable(&self.folder, cause))?;
        let names = entries.flatten().filter_map(|entry| number_in(entry.file_name().to_str()?));
        let mut numbers: Vec<i64> = names.collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Adds the descriptions of existing files to a new database. The version of each description
    /// is not known, so each resource is fetched again, and is deleted if the Source no longer has
    /// it.
    fn adopt(&self, mirror: &Mirror) -> Result<(), Error> {
        for number in self.numbers()? {
            let path = self.folder.join(name_of(number));
            let read = |cause| unusable(&path, cause);
            let mut runs = Runs::new(BufReader::new(File::open(&path).map_err(read)?));
            let mut segment = Segment { number, name: name_of(number), length: 0 };
            mirror.put_segment(&segment)?;
            while let Some(found) = runs.next().map_err(read)? {
                let (uri, offset) = (found.header.uri, found.offset);
                let length = found.bytes.len() as u64;
                segment.length = offset + length;
                place(mirror, &uri, Some(Location { segment: number, offset, length }))?;
                mirror.put_row(&distrusted(&Row { uri, ..Row::default() }))?;
            }
            mirror.put_segment(&segment)?;
        }
        Ok(())
    }

    /// Removes bytes that were never recorded, and continues the newest file if it is not full.
    fn recover(&self, mirror: &Mirror) -> Result<(), Error> {
        let known = mirror.segments()?;
        let has_room = |segment: &Segment| segment.length < self.file_bytes;
        let files = OpenSegments::recover(&self.folder, &known, "nquads.damaged", has_room)?;
        self.lock().files = files;
        for number in self.numbers()? {
            if !known.iter().any(|segment| segment.number == number) {
                let path = self.folder.join(name_of(number));
                std::fs::remove_file(&path).map_err(|cause| unusable(&path, cause))?;
            }
        }
        Ok(())
    }

    /// Appends the description of a resource. [`Self::settle`] writes the row with its place.
    pub(super) fn append(&self, row: &Row, run: &[u8]) -> io::Result<()> {
        let mut open = self.lock();
        let at = self.append_bytes(&mut open, run)?;
        open.unsettled.push(Unsettled::At(row.clone(), at));
        Ok(())
    }

    /// Records that the resource was deleted.
    pub(super) fn remove(&self, uri: &str) {
        self.lock().unsettled.push(Unsettled::Gone(uri.to_owned()));
    }

    fn append_bytes(&self, open: &mut Open, run: &[u8]) -> io::Result<Location> {
        let begin = |number| Current::begin(&self.folder, number, name_of(number));
        open.files.room(self.file_bytes, begin)?.append(run)
    }

    /// Makes appended data durable, and returns the files with their lengths.
    fn sync(&self, open: &mut Open) -> io::Result<Vec<Segment>> {
        sync(&self.folder, open.files.take()?)
    }

    /// Makes data durable that was appended since the last call, and records the places of
    /// descriptions and the superseded parts in the database.
    pub(super) fn settle(&self, mirror: &Mirror) -> Result<(), Error> {
        let mut open = self.lock();
        let unsettled = std::mem::take(&mut open.unsettled);
        if unsettled.is_empty() {
            return Ok(());
        }
        let segments = self.sync(&mut open).map_err(write_error)?;
        drop(open);
        for segment in &segments {
            mirror.put_segment(segment)?;
            self.note_time(mirror, segment.number)?;
        }
        unsettled.iter().try_for_each(|change| match change {
            Unsettled::At(row, at) => {
                place(mirror, &row.uri, Some(*at))?;
                Ok(mirror.put_row(row)?)
            }
            Unsettled::Gone(uri) => place(mirror, uri, None),
        })
    }

    /// Overwrites superseded parts, then rewrites files that consist mostly of superseded parts.
    /// Requires that all changes are settled.
    pub(super) fn finish(&self, mirror: &Mirror) -> Result<(), Error> {
        self.overwrite(mirror)?;
        for (number, length, dead) in mirror.segments_in_use()? {
            if length >= COMPACTED_BYTES_MIN.min(self.file_bytes) && dead >= length.div_ceil(2) {
                self.compact(number, mirror)?;
            }
        }
        Ok(())
    }

    /// Overwrites superseded parts with comments, after it is certain that the database does not
    /// refer to them any more.
    fn overwrite(&self, mirror: &Mirror) -> Result<(), Error> {
        let (mut after, mut parts) = ((0, 0), Vec::new());
        loop {
            parts.clear();
            mirror.superseded_after(after, PARTS, &mut parts)?;
            let Some(last) = parts.last() else { return Ok(()) };
            if after == (0, 0) {
                mirror.sync()?;
            }
            after = (last.segment, last.offset as i64);
            for parts in parts.chunk_by(|one, other| one.segment == other.segment) {
                let path = self.folder.join(name_of(parts[0].segment));
                overwrite_in(&path, parts).map_err(|cause| unusable(&path, cause))?;
                self.note_time(mirror, parts[0].segment)?;
            }
            mirror.forget_superseded(after)?;
        }
    }

    /// Appends what counts of a file elsewhere and removes the file. Until then the same statements
    /// are in two files, which means the same as once: labels of blank nodes are equal too.
    fn compact(&self, number: i64, mirror: &Mirror) -> Result<(), Error> {
        let path = self.folder.join(name_of(number));
        let mut open = self.lock();
        if let Some(mut current) =
            open.files.current.take_if(|current| current.segment.number == number)
        {
            current.write_out().map_err(write_error)?;
        }
        let file = File::open(&path).map_err(|cause| unusable(&path, cause))?;
        let mut runs = Runs::new(BufReader::with_capacity(BUFFER_BYTES, file));
        let mut moved = Vec::new();
        while let Some(found) = runs.next().map_err(|cause| unusable(&path, cause))? {
            let uri = found.header.uri;
            let is_here = mirror.packed(&uri)?.is_some_and(|packed| {
                (packed.record.segment, packed.record.offset) == (number, found.offset)
            });
            if is_here {
                let at = self.append_bytes(&mut open, &found.bytes).map_err(write_error)?;
                moved.push((uri, at));
            }
        }
        let segments = self.sync(&mut open).map_err(write_error)?;
        drop(open);
        mirror.begin()?;
        for segment in &segments {
            mirror.put_segment(segment)?;
            self.note_time(mirror, segment.number)?;
        }
        for (uri, record) in moved {
            mirror.put_packed(&uri, &Packed { record, original: None })?;
        }
        mirror.delete_segment(number)?;
        mirror.set_meta(&time_key(number), None)?;
        mirror.commit()?;
        mirror.sync()?;
        std::fs::remove_file(&path).map_err(|cause| unusable(&path, cause))
    }
}

pub(super) fn overwrite_in(path: &Path, parts: &[Location]) -> io::Result<()> {
    let file = open_own(File::options().write(true), path)?;
    for part in parts {
        let length = usize::try_from(part.length).map_err(io::Error::other)?;
        file.write_all_at(&filler(length), part.offset)?;
    }
    file.sync_data()
}

/// Records the place of a description; its previous place is superseded.
fn place(mirror: &Mirror, uri: &str, at: Option<Location>) -> Result<(), Error> {
    if let Some(record) = &at
        && mirror.put_first_packed(uri, record)?
    {
        return Ok(());
    }
    if let Some(before) = mirror.packed(uri)? {
        mirror.put_superseded(&before.record)?;
    }
    match at {
        Some(record) => mirror.put_packed(uri, &Packed { record, original: None })?,
        None => mirror.delete_packed(uri)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::super::document::digest_of;
    use super::super::run;
    use super::*;
    use std::collections::BTreeSet;

    struct Place {
        folder: tempfile::TempDir,
        options: NQuadsOptions,
    }

    impl Place {
        fn new(file_bytes: u64) -> Self {
            let options = NQuadsOptions { file_bytes, ..NQuadsOptions::default() };
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("copy")).unwrap();
            Self { folder, options }
        }

        fn mirror(&self) -> Mirror {
            Mirror::open(&self.folder.path().join("mirror.db")).unwrap()
        }

        fn open(&self, mirror: &Mirror) -> Files {
            Files::open(&self.folder.path().join("copy"), mirror, &self.options).unwrap()
        }

        /// The statements in all files.
        fn statements(&self) -> BTreeSet<String> {
            let entries = std::fs::read_dir(self.folder.path().join("copy")).unwrap();
            let texts =
                entries.map(|entry| std::fs::read_to_string(entry.unwrap().path()).unwrap());
            let text = texts.collect::<String>();
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
        }
    }

    fn line(uri: &str, value: &str) -> String {
        format!("<{uri}> <http://h/p> \"{value}\" .")
    }

    fn append(files: &Files, uri: &str, value: &str) {
        let lines = line(uri, value) + "\n";
        let mut out = Vec::new();
        run::write(uri, None, lines.as_bytes(), &digest_of(lines.as_bytes()), &mut out);
        files.append(&Row { uri: uri.to_owned(), ..Row::default() }, &out).unwrap();
    }

    fn settle(files: &Files, mirror: &Mirror) {
        mirror.begin().unwrap();
        files.settle(mirror).unwrap();
        mirror.commit().unwrap();
    }

    #[test]
    fn a_run_killed_after_its_commit_leaves_old_parts_to_the_next() {
        let (place, value) = (Place::new(1 << 20), "x".repeat(500));
        let (a, b) = ("http://h/a", "http://h/b");
        let mirror = place.mirror();
        let files = place.open(&mirror);
        append(&files, a, &value);
        append(&files, b, "stays");
        settle(&files, &mirror);
        append(&files, a, "new");
        settle(&files, &mirror);
        assert_eq!(place.statements().len(), 3, "both versions, until they are overwritten");
        drop(files);
        place.open(&mirror);
        assert_eq!(place.statements(), BTreeSet::from([line(a, "new"), line(b, "stays")]));
    }

    #[test]
    fn a_run_killed_before_its_commit_left_nothing() {
        let place = Place::new(50);
        let (a, b) = ("http://h/a", "http://h/b");
        let mirror = place.mirror();
        let files = place.open(&mirror);
        append(&files, a, "old");
        settle(&files, &mirror);
        append(&files, a, "new");
        append(&files, b, "new");
        files.remove(a);
        mirror.begin().unwrap();
        files.settle(&mirror).unwrap();
        mirror.rollback().unwrap();
        drop(files);
        let files = place.open(&mirror);
        assert_eq!(place.statements(), BTreeSet::from([line(a, "old")]));
        files.remove(a);
        settle(&files, &mirror);
        files.finish(&mirror).unwrap();
        assert_eq!(place.statements(), BTreeSet::new());
        assert_eq!(mirror.segments().unwrap(), [], "a file without statements is removed");
    }

    #[test]
    fn files_are_written_anew_when_half_of_them_is_superseded() {
        let place = Place::new(2_000);
        let mirror = place.mirror();
        let files = place.open(&mirror);
        let uri = |number| format!("http://h/{number:02}");
        let mut expected = BTreeSet::new();
        for number in 0..60 {
            append(&files, &uri(number), "value");
        }
        settle(&files, &mirror);
        for number in 0..60 {
            if number % 3 == 0 {
                expected.insert(line(&uri(number), "value"));
            } else if number % 3 == 1 {
                append(&files, &uri(number), "new");
                expected.insert(line(&uri(number), "new"));
            } else {
                files.remove(&uri(number));
            }
        }
        settle(&files, &mirror);
        files.finish(&mirror).unwrap();
        assert_eq!(place.statements(), expected);
        for (number, length, dead) in mirror.segments_in_use().unwrap() {
            assert!(length < 2_000 || dead * 2 < length, "file {number}: {dead} of {length}");
        }
        // The remaining descriptions can be read and continued.
        drop(files);
        let files = place.open(&mirror);
        append(&files, "http://h/last", "value");
        settle(&files, &mirror);
        expected.insert(line("http://h/last", "value"));
        assert_eq!(place.statements(), expected);
    }
}
