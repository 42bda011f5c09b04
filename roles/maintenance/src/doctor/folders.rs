//! Folders: their file systems, and the folders of a configuration.

use crate::doctor::diagnosis::Doctor;
use crate::doctor::subject::{BucketSubject, ConfigurationSubject, DatabaseSubject};
use crate::place::{Error, there};
use std::path::{Path, PathBuf};

const SPACE_MIN: u64 = 1 << 30;
const INODES_MIN: u64 = 100_000;

/// Reports errors in a configuration, and checks each configured folder.
pub(super) fn check_configuration(doctor: &mut Doctor<'_>, configuration: &ConfigurationSubject) {
    let ConfigurationSubject { file, faults, published, store, database } = configuration;
    if faults.is_empty() {
        doctor.report("config", true, &format!("{} has no errors", file.display()), "");
    }
    for (what, help) in faults {
        doctor.report("config", false, what, help);
    }
    // Published folders are only read.
    for folder in published {
        let (what, good) = match std::fs::read_dir(folder) {
            Ok(_) => (folder.display().to_string(), true),
            Err(error) => (format!("{}: {error}", folder.display()), false),
        };
        doctor.report("readable", good, &what, "make the folder, or let this user read it");
    }
    match (database, store) {
        (Some(database), _) => check_database(doctor, database),
        (None, Some(store)) => check_store(doctor, store),
        (None, None) => {}
    }
    // A store that is not there yet is made in the nearest folder that is.
    if let Some(store) = store
        && let Some(there) = nearest(store)
    {
        check_folder(doctor, &there);
    }
}

/// Reports whether the database answers, and its properties.
fn check_database(doctor: &mut Doctor<'_>, database: &DatabaseSubject) {
    match &database.found {
        Ok(found) => {
            doctor.report("database", true, &format!("{} answers", database.shown), "");
            for check in found.checks() {
                doctor.report(check.code, check.ok, &check.message, check.help);
            }
        }
        Err((what, help)) => {
            doctor.report("database", false, &format!("{}: {what}", database.shown), help);
        }
    }
    if let Some(bucket) = &database.bucket {
        let found = database.found.as_ref().ok();
        check_bucket(doctor, bucket, found.and_then(|found| found.contents.as_deref()));
    }
}

/// Reports whether the bucket can be used, and whether it is that of the other nodes.
fn check_bucket(doctor: &mut Doctor<'_>, bucket: &BucketSubject, recorded: Option<&str>) {
    let url = &bucket.url;
    match &bucket.checked {
        Ok(()) => {
            let what = format!("{url} answers, stores objects and has conditional writes");
            doctor.report("bucket", true, &what, "");
        }
        Err((what, help)) => doctor.report("bucket", false, &format!("{url}: {what}"), help),
    }
    if let Some(recorded) = recorded {
        let is_same = recorded == url;
        let what = if is_same {
            format!("{url} is the bucket of all nodes")
        } else {
            format!("{url} is not the bucket of the other nodes, which is {recorded}")
        };
        doctor.report("bucket.address", is_same, &what, "give all nodes the same `contents`");
    }
}

/// Reports whether the configured store exists.
fn check_store(doctor: &mut Doctor<'_>, store: &Path) {
    // The report shows the absolute path, so that a mistyped path is visible.
    let store = std::path::absolute(store).unwrap_or_else(|_| store.to_owned());
    let shown = store.display();
    let has = |name: &str| there::is_file(&store.join(name));
    match has("source.db").and_then(|found| Ok(found || has("hub.db")?)) {
        Ok(true) => doctor.report("store", true, &format!("{shown} has a store"), ""),
        Ok(false) => {
            let what = format!(
                "{shown} has no store yet: the first start of the server makes one there; if there is one elsewhere, correct `data`"
            );
            doctor.report("store", true, &what, "");
        }
        Err(error) => {
            let (text, help) = error.text_and_help();
            doctor.report(
                "store",
                false,
                &text,
                help.as_deref().unwrap_or("let this user read it"),
            );
        }
    }
}

/// A folder, or the nearest one above it that is there.
fn nearest(folder: &Path) -> Option<PathBuf> {
    let whole = std::path::absolute(folder).ok()?;
    whole.ancestors().find(|above| above.exists()).map(Path::to_owned)
}

/// Checks the space, names, times and links of a folder's file system.
pub(super) fn check_folder(doctor: &mut Doctor<'_>, folder: &Path) {
    let shown = folder.display().to_string();
    if folder.exists() && !folder.is_dir() {
        let what = format!("{shown} is a file, not a folder");
        doctor.report("folder", false, &what, "name the folder that it is in");
        doctor.error = Some(Error::Usage(what));
        return;
    }
    let Ok(stat) = rustix::fs::statvfs(folder) else {
        let (what, help, error) = match there::found(folder) {
            Err(error) => (error.text(), "let this user read it", Some(error)),
            Ok(None) => {
                let what = format!("there is no folder {shown}");
                (what.clone(), "make it", Some(Error::Usage(what)))
            }
            Ok(Some(_)) => (format!("{shown} cannot be read"), "let this user read it", None),
        };
        doctor.error = error;
        doctor.report("folder", false, &what, help);
        return;
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    doctor.report(
        "space",
        free >= SPACE_MIN,
        &format!("{shown}: {} MiB free", free >> 20),
        "free space, or use another disk",
    );
    // Some file systems create inodes on demand, and report 0.
    let inodes = stat.f_files == 0 || stat.f_favail >= INODES_MIN;
    doctor.report(
        "inodes",
        inodes,
        &format!("{shown}: {} free", stat.f_favail),
        "remove small files, or keep a packed copy: `abreast sync URL warc:DIR`",
    );
    match abreast_destination::check::file_system(folder) {
        Ok(found) => {
            doctor.report("writable", true, &shown, "");
            doctor.report("names", true, &found.names, "");
            doctor.report("times", true, &found.times, "");
        }
        Err(error) => doctor.report(
            "writable",
            false,
            &format!("{shown}: {error}"),
            "let this user write there",
        ),
    }
    let links = tempfile::Builder::new().prefix(".%~").tempdir_in(folder).and_then(|place| {
        let (one, two) = (place.path().join("one"), place.path().join("two"));
        std::fs::write(&one, "")?;
        std::fs::hard_link(&one, &two)
    });
    doctor.report(
        "links",
        true,
        if links.is_ok() {
            "hard links can be made"
        } else {
            "no hard links: files are copied where others would be linked"
        },
        "",
    );
}
