//! Record of earlier builds: the files of the site that a build wrote, and may replace.
//!
//! The record is a small text file in the hidden folder of the site. A path is appended durably
//! before its file is created, so that files without a path in the record belong to other programs.
//! The end of a build rewrites the record. Each part ends with a line that has the digest of the
//! part: one part for the rewritten record, and one for each append.

use crate::static_site::report::SiteError;
use abreast_core::Position;
use abreast_folder::{Dir, ErrorKind, is_sealed, sealed, unsealed};
use abreast_webtypes::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

const NAME: &[u8] = b"book";
const NEW: &[u8] = b"book.new";
const FIRST_LINE: &str = "abreast-site 1";
/// Prefix of the line with the digest of a part.
const SEAL: &[u8] = b"blake3 ";
/// Longer than the names of any number of documents.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// Position in the log up to which the copies of a set's resources are complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// Time when the log was created.
    pub(super) created: Timestamp,
    pub(super) position: Position,
}

/// Record of the files of one site.
pub(super) struct BuildRecord {
    dir: Dir,
    base: String,
    owned: BTreeSet<String>,
    /// Own files that the last build did not publish.
    left: BTreeSet<String>,
    closed: BTreeSet<String>,
    /// Text that identifies the source of the closed documents of each set.
    origins: BTreeMap<String, String>,
    marks: BTreeMap<String, Mark>,
}

impl BuildRecord {
    /// Reads the record in `dir`. The list of closed documents is valid only if the public base is
    /// unchanged.
    pub(super) fn open(dir: &Dir, base: &str) -> Result<Self, SiteError> {
        let mut record = Self {
            dir: dir.clone(),
            base: base.to_owned(),
            owned: BTreeSet::new(),
            left: BTreeSet::new(),
            closed: BTreeSet::new(),
            origins: BTreeMap::new(),
            marks: BTreeMap::new(),
        };
        let mut bytes = Vec::new();
        match dir.open_read(NAME) {
            Ok((file, _)) => {
                let read = file.take(MAX_BYTES).read_to_end(&mut bytes);
                read.map_err(|error| SiteError::Record(error.to_string()))?;
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                record.save()?;
                return Ok(record);
            }
            Err(error) => return Err(error.into()),
        }
        let (text, is_whole) =
            whole_parts(&bytes).map_err(|error| SiteError::Record(error.to_string()))?;
        let mut lines = text.lines().enumerate();
        if lines.next().is_none_or(|(_, line)| line != FIRST_LINE) {
            return Err(SiteError::Record(format!("line 1: not `{FIRST_LINE}`")));
        }
        let mut same_base = false;
        for (number, line) in lines {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "base" => same_base = rest == base,
                "owned" => drop(record.owned.insert(rest.to_owned())),
                "left" => drop(record.left.insert(rest.to_owned())),
                "closed" if same_base => drop(record.closed.insert(rest.to_owned())),
                "closed" => {}
                "origin" => {
                    let (slug, origin) = rest.split_once(' ').unwrap_or((rest, ""));
                    record.origins.insert(slug.to_owned(), origin.to_owned());
                }
                "copied" => {
                    let (slug, mark) = parse_mark(rest).ok_or_else(|| {
                        SiteError::Record(format!("line {}: `{}`", number + 1, line.escape_debug()))
                    })?;
                    record.marks.insert(slug, mark);
                }
                _ => {
                    return Err(SiteError::Record(format!(
                        "line {}: `{}`",
                        number + 1,
                        line.escape_debug()
                    )));
                }
            }
        }
        if !is_whole {
            // Start a new part for later appends.
            record.save()?;
        }
        Ok(record)
    }

    /// Whether the record has no files of earlier builds.
    pub(super) fn is_empty(&self) -> bool {
        self.owned.is_empty()
    }

    pub(super) fn owns(&self, path: &str) -> bool {
        self.owned.contains(path)
    }

    pub(super) fn is_closed(&self, path: &str) -> bool {
        self.closed.contains(path)
    }

    pub(super) fn mark(&self, slug: &str) -> Option<Mark> {
        self.marks.get(slug).copied()
    }

    /// Records paths before files are created there.
    pub(super) fn claim(&mut self, paths: &[String]) -> Result<(), SiteError> {
        if paths.is_empty() {
            return Ok(());
        }
        let mut lines = String::new();
        for path in paths {
            let _ = writeln!(lines, "owned {path}");
        }
        let (mut file, _) = self.dir.open_append(NAME)?;
        let written = file.write_all(&sealed(lines.into_bytes())).and_then(|()| file.sync_data());
        written
            .map_err(|error| SiteError::Write("the record of earlier builds".to_owned(), error))?;
        self.owned.extend(paths.iter().cloned());
        Ok(())
    }

    pub(super) fn close(&mut self, path: &str) {
        self.closed.insert(path.to_owned());
    }

    /// Records the sources of each set's closed documents and copies. If the source of a set
    /// changed or was unknown, its documents are no longer closed and its copies no longer
    /// complete; the record is saved at once, so that this is valid if the build is killed.
    pub(super) fn originate(
        &mut self,
        origins: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), SiteError> {
        let mut is_new = false;
        for (slug, origin) in origins {
            if self.origins.get(&slug) != Some(&origin) {
                let of_set = format!("{slug}/");
                self.closed.retain(|path| !path.starts_with(&of_set));
                self.marks.remove(&slug);
                self.origins.insert(slug, origin);
                is_new = true;
            }
        }
        if is_new { self.save() } else { Ok(()) }
    }

    /// Records the position up to which copies are complete; `None` after a failure.
    pub(super) fn copied(&mut self, slug: &str, mark: Option<Mark>) {
        match mark {
            Some(mark) => drop(self.marks.insert(slug.to_owned(), mark)),
            None => drop(self.marks.remove(slug)),
        }
    }

    /// Records the published documents and the folders of copies. Returns the paths that neither
    /// this build nor the last one publishes.
    pub(super) fn retire(&mut self, planned: impl Iterator<Item = String>) -> Vec<String> {
        let planned: BTreeSet<String> = planned.collect();
        let unnamed: BTreeSet<String> =
            self.owned.iter().filter(|path| !planned.contains(*path)).cloned().collect();
        let gone: Vec<String> = unnamed.intersection(&self.left).cloned().collect();
        self.owned.retain(|path| !gone.contains(path));
        self.closed.retain(|path| planned.contains(path));
        self.left = unnamed.into_iter().filter(|path| self.owned.contains(path)).collect();
        gone
    }

    /// Own files that this build does not publish.
    pub(super) fn left(&self) -> impl Iterator<Item = &str> {
        self.left.iter().map(String::as_str)
    }

    /// Rewrites the record file durably.
    pub(super) fn save(&self) -> Result<(), SiteError> {
        let mut text = format!("{FIRST_LINE}\nbase {}\n", self.base);
        for (word, paths) in
            [("owned", &self.owned), ("left", &self.left), ("closed", &self.closed)]
        {
            for path in paths {
                text.push_str(word);
                text.push(' ');
                text.push_str(path);
                text.push('\n');
            }
        }
        for (slug, origin) in &self.origins {
            let _ = writeln!(text, "origin {slug} {origin}");
        }
        for (slug, mark) in &self.marks {
            let _ =
                writeln!(text, "copied {slug} {} {}", mark.created.as_micros(), mark.position.0);
        }
        match self.dir.unlink(NEW) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let mut file = self.dir.create_new(NEW)?;
        let written = file.write_all(&sealed(text.into_bytes())).and_then(|()| file.sync_data());
        written
            .map_err(|error| SiteError::Write("the record of earlier builds".to_owned(), error))?;
        self.dir.rename(NEW, &self.dir, NAME)?;
        Ok(self.dir.sync()?)
    }
}

/// Whether the record of earlier builds in the hidden folder of a site is damaged; `false` if the
/// record does not exist.
///
/// # Errors
/// The record cannot be read.
pub fn is_site_record_damaged(folder: &Path) -> io::Result<bool> {
    let mut bytes = Vec::new();
    match std::fs::File::open(folder.join("book")) {
        Ok(file) => file.take(MAX_BYTES).read_to_end(&mut bytes)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    Ok(whole_parts(&bytes).is_err())
}

/// Returns the lines of all parts with a correct digest, and whether the record has only such
/// parts. A part that a killed build was writing is ignored: files in that part were not created
/// yet. The same is true for a last part that has blocks of NUL bytes after a loss of power. A
/// record of an earlier version has no digests.
fn whole_parts(record: &[u8]) -> io::Result<(String, bool)> {
    let damaged = || io::Error::new(io::ErrorKind::InvalidData, "its digest is another one");
    let (mut text, mut part) = (Vec::new(), 0..0);
    for line in record.split_inclusive(|byte| *byte == b'\n') {
        part.end += line.len();
        if line.starts_with(SEAL) && line.ends_with(b"\n") {
            let bytes = &record[part.clone()];
            if !is_sealed(bytes) {
                // The first part is durable before the record is renamed.
                let is_last = part.end == record.len() && !text.is_empty();
                if is_last && has_lost_block(bytes) {
                    return Ok((String::from_utf8(text).map_err(|_| damaged())?, false));
                }
                return Err(damaged());
            }
            text.extend_from_slice(&bytes[..bytes.len() - line.len()]);
            part.start = part.end;
        }
    }
    let rest = &record[part];
    // The last line of an incomplete part is not a whole digest.
    unsealed(rest)?;
    if text.is_empty() {
        let end = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        text.extend_from_slice(&rest[..end]);
    }
    let is_whole = rest.is_empty();
    let text = String::from_utf8(text).map_err(|_| damaged())?;
    Ok((text, is_whole))
}

/// Whether bytes of a part were never written: a NUL at the start, or two NULs in sequence. A single
/// NUL may be a space with one changed bit.
fn has_lost_block(part: &[u8]) -> bool {
    part.starts_with(b"\0") || part.windows(2).any(|two| two == b"\0\0")
}

fn parse_mark(rest: &str) -> Option<(String, Mark)> {
    let mut parts = rest.split(' ');
    let slug = parts.next()?.to_owned();
    let created = Timestamp::from_micros(parts.next()?.parse().ok()?);
    let position = Position(parts.next()?.parse().ok()?);
    Some((slug, Mark { created, position }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_folder::Folder;

    fn paths(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn what_was_claimed_is_owned_though_the_build_was_killed() {
        let place = tempfile::tempdir().unwrap();
        let dir = Folder::open(place.path()).unwrap().root();
        let mut record = BuildRecord::open(&dir, "https://x/").unwrap();
        record.claim(&paths(&["a.xml", "b/c.xml"])).unwrap();
        drop(record);
        // The process was killed while it wrote a claim.
        let mut file = dir.open_append(NAME).unwrap().0;
        file.write_all(b"owned half").unwrap();
        let mut record = BuildRecord::open(&dir, "https://x/").unwrap();
        assert!(record.owns("a.xml") && record.owns("b/c.xml") && !record.owns("half"));
        record.claim(&paths(&["d.xml"])).unwrap();
        let record = BuildRecord::open(&dir, "https://x/").unwrap();
        assert!(record.owns("d.xml") && !record.owns("half") && !record.owns("halfowned d.xml"));
    }

    #[test]
    fn a_flipped_bit_in_any_part_of_the_record_is_found() {
        let place = tempfile::tempdir().unwrap();
        let dir = Folder::open(place.path()).unwrap().root();
        let mut record = BuildRecord::open(&dir, "https://x/").unwrap();
        record.claim(&paths(&["a.xml"])).unwrap();
        record.save().unwrap();
        record.claim(&paths(&["b.xml"])).unwrap();
        record.claim(&paths(&["c.xml"])).unwrap();
        let path = place.path().join("book");
        let right = std::fs::read(&path).unwrap();
        for bit in (0..right.len() * 8).step_by(7) {
            let mut damaged = right.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            std::fs::write(&path, &damaged).unwrap();
            let opened = BuildRecord::open(&dir, "https://x/").map(|record| record.owned);
            assert!(matches!(opened, Err(SiteError::Record(_))), "bit {bit}: {opened:?}");
            assert!(is_site_record_damaged(place.path()).unwrap(), "bit {bit}");
        }
        // The file is cut off at any point after the first part, as by a kill.
        let first = right.windows(7).position(|bytes| bytes == SEAL).unwrap() + 72;
        for end in first..right.len() {
            std::fs::write(&path, &right[..end]).unwrap();
            assert!(!is_site_record_damaged(place.path()).unwrap(), "{end}");
            let record = BuildRecord::open(&dir, "https://x/").unwrap();
            assert!(record.owns("a.xml") && !record.owns("c.xml"), "{end}");
        }
    }

    #[test]
    fn a_last_part_with_lost_blocks_is_left_out() {
        let place = tempfile::tempdir().unwrap();
        let dir = Folder::open(place.path()).unwrap().root();
        let path = place.path().join("book");
        let mut record = BuildRecord::open(&dir, "https://x/").unwrap();
        record.claim(&paths(&["a.xml"])).unwrap();
        let begin = std::fs::read(&path).unwrap().len();
        record.claim(&paths(&["b.xml", "c.xml"])).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for lost in [begin..begin + 1, begin..begin + 20, begin + 3..begin + 9] {
            let mut torn = whole.clone();
            torn[lost.clone()].fill(0);
            std::fs::write(&path, &torn).unwrap();
            assert!(!is_site_record_damaged(place.path()).unwrap(), "{lost:?}");
            let mut record = BuildRecord::open(&dir, "https://x/").unwrap();
            assert!(record.owns("a.xml") && !record.owns("c.xml"), "{lost:?}");
            record.claim(&paths(&["d.xml"])).unwrap();
            assert!(BuildRecord::open(&dir, "https://x/").unwrap().owns("d.xml"), "{lost:?}");
            // A cut in an earlier part counts as damage.
            torn.extend_from_slice(&sealed(b"owned e.xml\n".to_vec()));
            std::fs::write(&path, &torn).unwrap();
            assert!(is_site_record_damaged(place.path()).unwrap(), "{lost:?}");
        }
    }

    #[test]
    fn a_record_without_digests_is_read_and_has_some_from_then_on() {
        let place = tempfile::tempdir().unwrap();
        let dir = Folder::open(place.path()).unwrap().root();
        let path = place.path().join("book");
        std::fs::write(&path, format!("{FIRST_LINE}\nbase https://x/\nowned a\n")).unwrap();
        let mut record = BuildRecord::open(&dir, "https://x/").unwrap();
        record.claim(&paths(&["b"])).unwrap();
        let record = BuildRecord::open(&dir, "https://x/").unwrap();
        assert!(record.owns("a") && record.owns("b"));
        let parts = String::from_utf8(std::fs::read(&path).unwrap()).unwrap();
        assert_eq!(parts.lines().filter(|line| line.starts_with("blake3 ")).count(), 2);
    }

    #[test]
    fn a_document_is_removed_by_the_second_build_without_it() {
        let place = tempfile::tempdir().unwrap();
        let dir = Folder::open(place.path()).unwrap().root();
        let mut record = BuildRecord::open(&dir, "https://x/").unwrap();
        record.claim(&paths(&["a", "b", "r/"])).unwrap();
        record.close("b");
        let mark = Mark { created: Timestamp::from_micros(5), position: Position(7) };
        record.copied("set", Some(mark));
        assert!(record.retire(["a".to_owned()].into_iter()).is_empty());
        record.save().unwrap();
        let mut record = BuildRecord::open(&dir, "https://x/").unwrap();
        assert_eq!(record.mark("set"), Some(mark));
        assert!(record.owns("b"));
        assert_eq!(record.retire(["a".to_owned()].into_iter()), ["b", "r/"]);
        record.save().unwrap();
        let record = BuildRecord::open(&dir, "https://x/").unwrap();
        assert!(!record.owns("b") && !record.owns("r/") && record.owns("a"));
    }

    #[test]
    fn what_is_closed_depends_on_its_origin() {
        let place = tempfile::tempdir().unwrap();
        let dir = Folder::open(place.path()).unwrap().root();
        let closed = ["set/1", "set-2/1"];
        let open = |origin: &str| {
            let mut record = BuildRecord::open(&dir, "https://x/").unwrap();
            record.originate([("set".to_owned(), origin.to_owned())]).unwrap();
            record
        };
        let mut record = open("one");
        for path in closed {
            record.close(path);
        }
        let mark = Mark { created: Timestamp::from_micros(5), position: Position(7) };
        record.copied("set", Some(mark));
        record.save().unwrap();
        assert_eq!(closed.map(|path| open("one").is_closed(path)), [true; 2]);
        assert_eq!(open("one").mark("set"), Some(mark));
        // Another origin removes the closed pages of the set, although no build was completed.
        assert_eq!(closed.map(|path| open("two").is_closed(path)), [false, true]);
        assert_eq!(closed.map(|path| open("one").is_closed(path)), [false, true]);
        assert_eq!(open("one").mark("set"), None);
    }

    #[test]
    fn what_is_closed_depends_on_the_base() {
        let place = tempfile::tempdir().unwrap();
        let dir = Folder::open(place.path()).unwrap().root();
        let mut record = BuildRecord::open(&dir, "https://x/").unwrap();
        record.close("a");
        record.save().unwrap();
        assert!(BuildRecord::open(&dir, "https://x/").unwrap().is_closed("a"));
        assert!(!BuildRecord::open(&dir, "https://y/").unwrap().is_closed("a"));
        std::fs::write(place.path().join("book"), "something else\n").unwrap();
        assert!(matches!(BuildRecord::open(&dir, "https://x/"), Err(SiteError::Record(_))));
    }
}
