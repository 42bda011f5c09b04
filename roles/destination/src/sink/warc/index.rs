//! The index of captures: sorted CDXJ files, merged so that there are few files, and each line is
//! rarely written again.
//!
//! Lines are first appended to a journal, and become durable together with their records. At the
//! end of a run, or when the journal is long, its lines are sorted into a new file. Files of
//! similar length are merged. Replay programs read all files of the folder. Any indexer can create
//! the index again from the archive.

use crate::copy::state_folder::open_own;
use abreast_store::mirror::Mirror;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Length of the journal in bytes from which on it is sorted before more is appended, since it is
/// read into memory.
const JOURNAL_BYTES_MAX: u64 = 32 << 20;
/// Key of the journal's valid length, in bytes.
const JOURNAL_LENGTH: &str = "warc-journal";
const PREFIX: &str = "abreast-";
const SUFFIX: &str = ".cdxj";

#[derive(Debug)]
pub(super) struct Index {
    folder: PathBuf,
    journal_path: PathBuf,
    journal: Mutex<Journal>,
}

#[derive(Debug)]
struct Journal {
    file: File,
    length: u64,
}

impl Index {
    /// Opens the index, and truncates the journal to the length at the last commit, since the
    /// records of later lines were removed.
    pub(super) fn open(
        folder: PathBuf,
        journal_path: PathBuf,
        mirror: &Mirror,
    ) -> io::Result<Self> {
        let known = mirror.meta(JOURNAL_LENGTH).map_err(io::Error::other)?;
        let known = known.and_then(|text| text.parse().ok()).unwrap_or(0);
        let file = open_own(File::options().append(true).create(true), &journal_path)?;
        // A shorter journal was sorted into the index by a run that was killed before its commit.
        // Its lines were appended after that.
        let length = if file.metadata()?.len() < known { 0 } else { known };
        file.set_len(length)?;
        Ok(Self { folder, journal_path, journal: Mutex::new(Journal { file, length }) })
    }

    /// Removes what this index had: it is rebuilt.
    pub(super) fn clear(&self) -> io::Result<()> {
        for (number, _) in self.files()? {
            std::fs::remove_file(self.path(number))?;
        }
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.length = 0;
        journal.file.set_len(0)
    }

    /// Appends lines, durable when this returns.
    pub(super) fn journal(&self, lines: &[u8], mirror: &Mirror) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        if journal.length >= JOURNAL_BYTES_MAX {
            // The lines in the journal are committed at this point, so the index never contains
            // lines of removed records.
            self.sort(&mut journal, mirror)?;
        }
        let length = journal.length;
        journal.file.set_len(length)?;
        journal.file.write_all(lines)?;
        journal.file.sync_data()?;
        journal.length += lines.len() as u64;
        mirror.set_meta(JOURNAL_LENGTH, Some(&journal.length.to_string())).map_err(io::Error::other)
    }

    /// Sorts the lines of the journal into the index.
    pub(super) fn merge(&self, mirror: &Mirror) -> io::Result<()> {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        if journal.length > 0 {
            self.sort(&mut journal, mirror)?;
        }
        Ok(())
    }

    /// Removes the lines of records that a file has lost: records at the offset `from` or later.
    pub(super) fn forget(&self, filename: &str, from: u64, mirror: &Mirror) -> io::Result<()> {
        self.merge(mirror)?;
        let end = format!("\",\"filename\":\"{filename}\"}}\n");
        let is_lost = |line: &[u8]| {
            let front = line.strip_suffix(end.as_bytes()).unwrap_or_default();
            let offset = front.rsplit(|byte| *byte == b'"').next().unwrap_or_default();
            std::str::from_utf8(offset)
                .is_ok_and(|text| text.parse().is_ok_and(|at: u64| at >= from))
        };
        for (number, _) in self.files()? {
            let path = self.path(number);
            let (mut input, mut line) = (BufReader::new(File::open(&path)?), Vec::new());
            self.replace(&path, |out| {
                while input.read_until(b'\n', &mut line)? > 0 {
                    if !is_lost(&line) {
                        out.write_all(&line)?;
                    }
                    line.clear();
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn sort(&self, journal: &mut Journal, mirror: &Mirror) -> io::Result<()> {
        let mut text = Vec::new();
        File::open(&self.journal_path)?.take(journal.length).read_to_end(&mut text)?;
        let mut lines: Vec<&[u8]> = Vec::new();
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', &text) {
            lines.push(&text[begin..=end]);
            begin = end + 1;
        }
        // Each connection wrote its own in order.
        lines.sort();
        let files = self.files()?;
        let number = files.last().map_or(1, |(number, _)| number + 1);
        self.replace(&self.path(number), |out| {
            lines.iter().try_for_each(|line| out.write_all(line))
        })?;
        // The lines are in the index: if the run is killed here, the next one puts them in twice,
        // which merging undoes.
        mirror.set_meta(JOURNAL_LENGTH, None).map_err(io::Error::other)?;
        journal.file.set_len(0)?;
        journal.length = 0;
        self.merge_files()
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{PREFIX}{number:06}{SUFFIX}"))
    }

    /// Number and length of each file, by number.
    fn files(&self) -> io::Result<Vec<(u64, u64)>> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name
                .to_str()
                .and_then(|name| name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?.parse().ok());
            if let Some(number) = number {
                files.push((number, entry.metadata()?.len()));
            }
        }
        files.sort_unstable();
        Ok(files)
    }

    /// Merges the last two files while they have similar lengths: each line is written again only
    /// when its file doubles.
    fn merge_files(&self) -> io::Result<()> {
        loop {
            let files = self.files()?;
            let [.., (first, first_length), (second, second_length)] = files.as_slice() else {
                return Ok(());
            };
            if *first_length > second_length.saturating_mul(2) {
                return Ok(());
            }
            let (first, second) = (self.path(*first), self.path(*second));
            self.replace(&first, |out| merge_two(&first, &second, out))?;
            std::fs::remove_file(&second)?;
        }
    }

    /// Writes a file completely, then gives the file its name.
    fn replace(
        &self,
        path: &Path,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> io::Result<()> {
        let temporary = self.folder.join("abreast.new");
        match std::fs::remove_file(&temporary) {
            Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
            _ => {}
        }
        let mut out = BufWriter::with_capacity(1 << 18, File::create_new(&temporary)?);
        write(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_data()?;
        std::fs::rename(&temporary, path)
    }
}

/// Merges two sorted files; duplicate lines are written once.
fn merge_two(first: &Path, second: &Path, out: &mut BufWriter<File>) -> io::Result<()> {
    let mut inputs = [
        BufReader::with_capacity(1 << 18, File::open(first)?),
        BufReader::with_capacity(1 << 18, File::open(second)?),
    ];
    let mut lines = [Vec::new(), Vec::new()];
    for (input, line) in inputs.iter_mut().zip(&mut lines) {
        input.read_until(b'\n', line)?;
    }
    let mut last = Vec::new();
    loop {
        let which = match (lines[0].is_empty(), lines[1].is_empty()) {
            (true, true) => return Ok(()),
            (true, false) => 1,
            (false, true) => 0,
            (false, false) => usize::from(lines[1] < lines[0]),
        };
        if lines[which] != last {
            out.write_all(&lines[which])?;
            std::mem::swap(&mut last, &mut lines[which]);
        }
        lines[which].clear();
        inputs[which].read_until(b'\n', &mut lines[which])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(index: &Index) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for (number, _) in index.files().unwrap() {
            let text = std::fs::read_to_string(index.path(number)).unwrap();
            let own: Vec<String> = text.lines().map(str::to_owned).collect();
            assert!(own.is_sorted());
            lines.extend(own);
        }
        lines.sort();
        lines
    }

    #[test]
    fn lines_end_sorted_in_few_files() {
        let place = tempfile::tempdir().unwrap();
        let mirror = Mirror::open(&place.path().join("mirror.db")).unwrap();
        let index =
            Index::open(place.path().to_owned(), place.path().join("journal"), &mirror).unwrap();
        let mut expected = Vec::new();
        for run in 0..40 {
            let line = format!("{:03} line", (run * 7) % 40);
            index.journal(format!("{line}\n").as_bytes(), &mirror).unwrap();
            index.merge(&mirror).unwrap();
            expected.push(line);
        }
        expected.sort();
        assert_eq!(all(&index), expected);
        assert!(index.files().unwrap().len() <= 7, "{:?}", index.files().unwrap());
    }

    #[test]
    fn the_next_run_cuts_off_uncommitted_lines_and_merges_others() {
        let place = tempfile::tempdir().unwrap();
        let mirror = Mirror::open(&place.path().join("mirror.db")).unwrap();
        let open =
            || Index::open(place.path().to_owned(), place.path().join("journal"), &mirror).unwrap();
        let index = open();
        index.journal(b"a\n", &mirror).unwrap();
        mirror.begin().unwrap();
        index.journal(b"b\n", &mirror).unwrap();
        mirror.rollback().unwrap();
        let index = open();
        index.journal(b"c\n", &mirror).unwrap();
        index.merge(&mirror).unwrap();
        // Killed between the sorted file and the state: the same lines come again.
        index.journal(b"a\nc\n", &mirror).unwrap();
        index.merge(&mirror).unwrap();
        assert_eq!(all(&index), ["a", "c"]);
    }

    #[test]
    fn a_full_journal_whose_commit_fails_leaves_no_lines() {
        let place = tempfile::tempdir().unwrap();
        let mirror = Mirror::open(&place.path().join("mirror.db")).unwrap();
        let open =
            || Index::open(place.path().to_owned(), place.path().join("journal"), &mirror).unwrap();
        let index = open();
        index.journal(b"a\n", &mirror).unwrap();
        mirror.begin().unwrap();
        let full = format!("b {}\n", "x".repeat(JOURNAL_BYTES_MAX as usize));
        index.journal(full.as_bytes(), &mirror).unwrap();
        mirror.rollback().unwrap();
        drop(index);
        let index = open();
        index.merge(&mirror).unwrap();
        assert_eq!(all(&index), ["a"]);
        // The next journal is committed, and the following call sorts it.
        index.journal(full.as_bytes(), &mirror).unwrap();
        mirror.begin().unwrap();
        index.journal(b"c\n", &mirror).unwrap();
        mirror.rollback().unwrap();
        drop(index);
        let index = open();
        index.merge(&mirror).unwrap();
        let lines = all(&index);
        assert_eq!((lines.len(), lines[0].as_str(), &lines[1][..2]), (2, "a", "b "));
    }
}
