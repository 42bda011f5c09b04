//! Check of complete snapshots for damage. It only reads the folders, so that a server may have
//! them open.

use super::snapshot_name::SnapshotName;
use super::snapshot_record;
use crate::made::folders;
use crate::projection::routes::PathValue as _;
use abreast_core::{Finding, Severity};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Checks the snapshots of every set in the folder, with `read_data` also their digests. Returns
/// the number of snapshots.
///
/// # Errors
/// The folder cannot be listed.
pub fn check_snapshots(
    folder: &Path,
    read_data: bool,
    report: &mut dyn FnMut(Finding),
) -> io::Result<u64> {
    let mut count = 0;
    each_record(folder, &mut |folder, name| {
        count += 1;
        if let Some((rule, message)) = damage(folder, name, read_data) {
            let location = folder.join(name.to_string()).display().to_string();
            report(Finding { severity: Severity::Error, rule, location, message });
        }
        Ok(())
    })?;
    Ok(count)
}

/// Removes damaged snapshots, unless `dry_run` is set. Returns the paths of damaged snapshots.
///
/// # Errors
/// The folder cannot be listed.
pub fn remove_damaged_snapshots(
    folder: &Path,
    read_data: bool,
    dry_run: bool,
) -> io::Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    each_record(folder, &mut |folder, name| {
        if damage(folder, name, read_data).is_some() {
            if !dry_run {
                snapshot_record::remove(folder, name);
            }
            removed.push(folder.join(name.to_string()));
        }
        Ok(())
    })?;
    Ok(removed)
}

/// Visits the folder and the name of each snapshot with a record.
fn each_record(
    folder: &Path,
    visit: &mut dyn FnMut(&Path, SnapshotName) -> io::Result<()>,
) -> io::Result<()> {
    for set in folders(folder)? {
        let mut names = Vec::new();
        for file in fs::read_dir(&set)? {
            let path = file?.path();
            let is_record = path.extension().is_some_and(|extension| extension == "json");
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            names.extend(stem.filter(|_| is_record).and_then(SnapshotName::parse));
        }
        names.sort_unstable();
        for name in names {
            visit(&set, name)?;
        }
    }
    Ok(())
}

fn damage(folder: &Path, name: SnapshotName, read_data: bool) -> Option<(&'static str, String)> {
    let Some(snapshot) = snapshot_record::read_record(folder, name) else {
        let message = "its record cannot be read, or a file is missing or has another length";
        return Some(("snapshots.record", message.to_owned()));
    };
    if !read_data {
        return None;
    }
    snapshot.digests.iter().find_map(|(extension, digest)| {
        let file = format!("{name}.{extension}");
        let message = match snapshot_record::digest_of(&folder.join(&file)) {
            Ok(found) if found == *digest => return None,
            Ok(_) => format!("{file} has another digest than was recorded"),
            Err(error) => format!("{file} cannot be read: {error}"),
        };
        Some(("snapshots.digest", message))
    })
}
