//! Check of archived Resource Lists for damage. It only reads the folders, so that a server may
//! have them open.

use super::copies::{Part, Snapshot, read_document};
use super::record::{self, Record};
use super::salvage;
use crate::made::folders;
use abreast_core::{Finding, Severity};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Checks the archives of all sets in the folder, with `read_data` also whether each list is
/// readable. Returns the number of lists.
///
/// # Errors
/// The folder cannot be listed.
pub fn check_archives(
    folder: &Path,
    read_data: bool,
    report: &mut dyn FnMut(Finding),
) -> io::Result<u64> {
    let mut count = 0;
    for archive in folders(folder)? {
        let mut find = |rule, location: PathBuf, message: String| {
            let location = location.display().to_string();
            report(Finding { severity: Severity::Error, rule, location, message });
        };
        match Record::read(&archive) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                find("archives.record", archive.join(record::NAME), error.to_string());
            }
            Err(error) => return Err(error),
            Ok(record) => {
                count += record.snapshots.len() as u64;
                for (file, error) in damaged_files(&archive, &record, read_data)? {
                    find("archives.list", file, error.to_string());
                }
            }
        }
    }
    Ok(count)
}

/// Recreates damaged records, and removes lists whose bytes are lost. Returns a line for each
/// repair.
///
/// # Errors
/// A folder cannot be listed or written.
pub fn repair_archives(folder: &Path, read_data: bool, dry_run: bool) -> io::Result<Vec<String>> {
    let mut steps = Vec::new();
    for archive in folders(folder)? {
        let shown = archive.display();
        let (mut record, is_new) = match Record::read(&archive) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                (salvage::from_lists(&archive)?, true)
            }
            record => (record?, false),
        };
        if is_new {
            let lists = record.snapshots.len();
            steps.push(format!("make the record of archived lists in {shown} again: {lists}"));
        }
        let damaged = damaged_files(&archive, &record, read_data)?;
        let is_damaged =
            |name: &str| damaged.iter().any(|(file, _)| file.file_name() == Some(name.as_ref()));
        let (lost, kept): (Vec<_>, Vec<_>) = record
            .snapshots
            .into_iter()
            .partition(|snapshot| files(snapshot).any(|(name, _)| is_damaged(&name)));
        for snapshot in &lost {
            steps.push(format!(
                "drop the archived list {} of {} in {shown}, whose bytes are lost",
                snapshot.number, snapshot.at
            ));
        }
        record = Record { snapshots: kept };
        if !dry_run && (is_new || !lost.is_empty()) {
            record.write(&archive)?;
            // Otherwise the next start would remove these files.
            for (file, _) in damaged {
                match fs::remove_file(&file) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
        }
    }
    Ok(steps)
}

/// Files of a copy: the list and its parts.
fn files(snapshot: &Snapshot) -> impl Iterator<Item = (String, Option<&Part>)> {
    let list = std::iter::once((record::list_name(snapshot.number), None));
    list.chain(snapshot.parts.iter().map(|part| (record::part_name(part), Some(part))))
}

/// Missing or damaged files of copies, without duplicates.
fn damaged_files(
    folder: &Path,
    record: &Record,
    read_data: bool,
) -> io::Result<Vec<(PathBuf, io::Error)>> {
    let all = record.snapshots.iter().flat_map(files).map(|(name, _)| name);
    let names: std::collections::BTreeSet<String> = all.collect();
    let read = |name: String| {
        let path = folder.join(name);
        let read =
            if read_data { read_document(&path).map(drop) } else { path.metadata().map(drop) };
        match read {
            Err(error) if salvage::is_damage(&error) => Ok(Some((path, error))),
            read => read.map(|()| None),
        }
    };
    names.into_iter().filter_map(|name| read(name).transpose()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projection::resourcesync::archive::{Archive, ArchiveRule};
    use abreast_core::{Position, ShardId};
    use abreast_webtypes::Timestamp;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write as _;
    use std::time::Duration;

    const RULE: ArchiveRule = ArchiveRule { every: Duration::from_secs(1), keep: 9 };

    fn write(folder: &Path, name: &str, text: &str) {
        let file = fs::File::create(folder.join(name)).unwrap();
        let mut encoder = GzEncoder::new(file, Compression::default());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap();
    }

    fn list(root: &str, entries: &str) -> String {
        format!(
            "<{root} xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\
             <rs:md capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"/>{entries}</{root}>"
        )
    }

    /// Makes two copies of a set, the second copy in parts.
    fn archive() -> (tempfile::TempDir, PathBuf, Record) {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("set");
        fs::create_dir(&folder).unwrap();
        let at = Timestamp::from_seconds(1_767_225_600);
        let part = Part { shard: ShardId(3), version: Position(9), number: 2, time: at };
        let one = Snapshot {
            number: 1,
            at,
            completed: None,
            taken: at,
            position: Position(8),
            parts: Vec::new(),
        };
        let two = Snapshot { number: 2, parts: vec![part], ..one.clone() };
        write(&folder, "list-1.xml.gz", &list("urlset", ""));
        let entry = "<sitemap><loc>http://example.org/set/archived/resourcelist/3-9-2.xml</loc>\
                     <lastmod>2026-01-01T00:00:00Z</lastmod></sitemap>";
        write(&folder, "list-2.xml.gz", &list("sitemapindex", entry));
        write(&folder, "part-3-9-2.xml.gz", &list("urlset", ""));
        let record = Record { snapshots: vec![one, two] };
        record.write(&folder).unwrap();
        (place, folder, record)
    }

    fn rules(folder: &Path) -> Vec<&'static str> {
        let mut rules = Vec::new();
        check_archives(folder, true, &mut |finding| rules.push(finding.rule)).unwrap();
        rules
    }

    #[test]
    fn a_flipped_bit_in_the_record_costs_no_list() {
        let (place, folder, record) = archive();
        let path = folder.join(record::NAME);
        let whole = fs::read(&path).unwrap();
        for bit in 0..whole.len() * 8 {
            let mut damaged = whole.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            fs::write(&path, damaged).unwrap();
            assert_eq!(rules(place.path()), ["archives.record"], "bit {bit}");
            if bit % 97 != 0 {
                continue;
            }
            let archive = Archive::open(&folder, RULE, None).unwrap();
            let known = archive.snapshots();
            assert_eq!(known.len(), 2);
            assert_eq!(
                (known[0].at, known[1].parts()),
                (record.snapshots[0].at, record.snapshots[1].parts())
            );
            assert!(archive.list(2).is_ok());
            assert_eq!(rules(place.path()), [""; 0]);
        }
        fs::remove_file(&path).unwrap();
        assert_eq!(Archive::open(&folder, RULE, None).unwrap().snapshots().len(), 2);
        fs::write(&path, "").unwrap();
        let steps = repair_archives(place.path(), true, false).unwrap();
        assert!(steps.len() == 1 && steps[0].ends_with("again: 2"), "{steps:?}");
        assert_eq!(rules(place.path()), [""; 0]);
    }

    #[test]
    fn lists_whose_bytes_are_lost_are_dropped_by_repair() {
        let (place, folder, _) = archive();
        let path = folder.join("part-3-9-2.xml.gz");
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert_eq!(rules(place.path()), ["archives.list"]);
        assert_eq!(repair_archives(place.path(), true, true).unwrap().len(), 1);
        let steps = repair_archives(place.path(), true, false).unwrap();
        assert!(steps[0].starts_with("drop the archived list 2 of 2026-01-01"), "{steps:?}");
        assert_eq!(rules(place.path()), [""; 0]);
        let numbers: Vec<_> = Archive::open(&folder, RULE, None)
            .unwrap()
            .snapshots()
            .iter()
            .map(|one| one.number)
            .collect();
        assert_eq!(numbers, [1]);
    }
}
