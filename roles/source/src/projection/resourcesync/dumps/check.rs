//! Check of complete dumps for damage. It only reads the folder of dumps, so that a server may have
//! it open.

use super::dump_folder::{CHANGES, remove_folder, set_aside};
use super::record::manifest_digest;
use super::{derived, manifest};
use crate::DigestPolicy;
use crate::made::folders;
use abreast_core::{Finding, Severity};
use abreast_folder::read_sealed;
use abreast_resourcesync::v1_1::{Document, Entry};
use std::io;
use std::path::{Path, PathBuf};

/// Checks every dump in the folder, with `read_data` also the digests of packages. Returns the
/// number of packages in records.
///
/// # Errors
/// The folder cannot be listed.
pub fn check_dumps(
    folder: &Path,
    read_data: bool,
    report: &mut dyn FnMut(Finding),
) -> io::Result<u64> {
    let mut packages = 0;
    for set in folders(folder)? {
        for kind in folders(&set)? {
            for dump in folders(&kind)? {
                packages += check_all(&dump, read_data, report)?;
            }
        }
    }
    Ok(packages)
}

/// Repairs of dumps that were made, or would be made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RepairedDumps {
    /// Removed dumps, which were incomplete or damaged, and removed damaged files that were made
    /// from packages.
    pub removed: Vec<PathBuf>,
    /// Damaged packages of changes, which are renamed and not published.
    pub aside: Vec<PathBuf>,
    /// Damaged manifests, which are restored from their packages.
    pub restored: Vec<PathBuf>,
}

/// Removes incomplete or damaged dumps, and renames damaged packages of changes so that they are
/// not published. Damaged manifests are restored from their packages.
///
/// # Errors
/// A folder cannot be listed, renamed or removed.
pub fn repair_dumps(folder: &Path, read_data: bool, dry_run: bool) -> io::Result<RepairedDumps> {
    let RepairedDumps { mut removed, mut aside, mut restored } = RepairedDumps::default();
    for set in folders(folder)? {
        for kind in folders(&set)? {
            for dump in folders(&kind)? {
                let mut intact = true;
                let mut manifests = Vec::new();
                check_dump(&dump, read_data, &mut |finding| {
                    if finding.rule == "dumps.manifest" {
                        manifests.push(PathBuf::from(finding.location));
                    } else {
                        intact = false;
                    }
                });
                if intact {
                    if !dry_run {
                        restore_manifests(&dump, &manifests)?;
                    }
                    restored.extend(manifests);
                    // These files are made again on request.
                    let damaged = if read_data { derived::damaged(&dump)? } else { Vec::new() };
                    if !dry_run {
                        damaged.iter().try_for_each(|file| derived::remove_one(file))?;
                    }
                    removed.extend(damaged);
                    continue;
                }
                let name = dump.file_name().unwrap_or_default().to_string_lossy();
                if name.starts_with(CHANGES) {
                    if !dry_run {
                        set_aside(&kind, &name)?;
                    }
                    aside.push(dump);
                    continue;
                }
                if !dry_run {
                    remove_folder(&dump)?;
                }
                removed.push(dump);
            }
        }
    }
    Ok(RepairedDumps { removed, aside, restored })
}

/// Restores damaged manifests from their packages.
fn restore_manifests(dump: &Path, manifests: &[PathBuf]) -> io::Result<()> {
    for entry in
        manifests.first().and_then(|_| record(dump)).iter().flat_map(|record| &record.entries)
    {
        let path = package_of(dump, entry).with_extension("xml");
        if let Some(digest) = manifest_digest(entry).filter(|_| manifests.contains(&path)) {
            manifest::restore(&path, &digest)?;
        }
    }
    Ok(())
}

fn record(dump: &Path) -> Option<Document> {
    read_sealed(&dump.join("record.xml")).ok().and_then(|bytes| Document::from_slice(&bytes).ok())
}

fn package_of(dump: &Path, entry: &Entry) -> PathBuf {
    dump.join(entry.loc.rsplit('/').next().unwrap_or_default())
}

/// Checks the packages of a dump, and the files made from packages.
fn check_all(dump: &Path, read_data: bool, report: &mut dyn FnMut(Finding)) -> io::Result<u64> {
    let packages = check_dump(dump, read_data, report);
    if packages > 0 && read_data {
        for file in derived::damaged(dump)? {
            report(Finding {
                severity: Severity::Error,
                rule: "dumps.derived",
                location: file.display().to_string(),
                message: "the file made of a package has another digest than when it was made"
                    .to_owned(),
            });
        }
    }
    Ok(packages)
}

fn check_dump(dump: &Path, read_data: bool, report: &mut dyn FnMut(Finding)) -> u64 {
    let mut find = |rule, location: &Path, message: String| {
        report(Finding {
            severity: Severity::Error,
            rule,
            location: location.display().to_string(),
            message,
        });
    };
    let name = dump.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with("making-") {
        find("dumps.unfinished", dump, "a dump that was never completed".to_owned());
        return 0;
    }
    if !["resources-", "changes-", "since-"].iter().any(|prefix| name.starts_with(prefix)) {
        return 0; // not one of this program's
    }
    let Some(record) = record(dump) else {
        find(
            "dumps.record",
            &dump.join("record.xml"),
            "the record of its packages is missing or cannot be read".to_owned(),
        );
        return 0;
    };
    for entry in &record.entries {
        let zip = package_of(dump, entry);
        let length = zip.metadata().map(|metadata| metadata.len()).ok();
        if length.is_none() || length != entry.length {
            find(
                "dumps.package",
                &zip,
                "the package is missing or has another length than announced".to_owned(),
            );
        } else if !zip.with_extension("xml").is_file() {
            find("dumps.package", &zip, "the package's manifest is missing".to_owned());
        } else if read_data {
            let policy = match (entry.digests.md5.is_some(), entry.digests.sha256.is_some()) {
                (true, true) => DigestPolicy::Both,
                (false, true) => DigestPolicy::Sha256,
                _ => DigestPolicy::Md5,
            };
            match super::digest_of(&zip, policy) {
                Ok((_, digests)) if digests.agree(&entry.digests) == Some(false) => {
                    find(
                        "dumps.package",
                        &zip,
                        "the package has another digest than announced".to_owned(),
                    );
                }
                Ok(_) => {}
                Err(error) => {
                    find("dumps.package", &zip, format!("the package cannot be read: {error}"));
                }
            }
            let path = zip.with_extension("xml");
            if let Some(digest) = manifest_digest(entry)
                && !manifest::is_whole(&path, &digest).unwrap_or_default()
            {
                let is_in_package = manifest::of_package(&path, &digest).is_ok();
                let rule = if is_in_package { "dumps.manifest" } else { "dumps.package" };
                let message = "the manifest beside the package is not as it was made";
                find(rule, &path, message.to_owned());
            }
        }
    }
    record.entries.len() as u64
}
