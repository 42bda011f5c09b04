//! Folders of copies, which must not overlap.

use super::job::Job;
use crate::config::File;
use crate::config::faults::Fault;
use crate::values::hidden_logins::shown;
use abreast_destination::{TargetPlace, resolved};
use std::path::{Path, PathBuf};

/// Where a copy keeps something: its folder, or its address in an object store.
fn places_of(job: &Job, file: &File) -> Vec<(&'static str, PathBuf)> {
    let word = |key: &str| {
        job.table.get(key).and_then(toml::Value::as_str).filter(|text| !text.is_empty())
    };
    let mut places = Vec::new();
    let place = word("folder").and_then(|target| match TargetPlace::of(target) {
        TargetPlace::Set(set) => file.folder_of(set).ok().map(|folder| real(&folder)),
        // Its own name space, and kept apart from folders by its scheme.
        TargetPlace::Address(url) => Some(PathBuf::from(url.trim_end_matches('/'))),
        TargetPlace::Folder(folder) => Some(real(folder)),
        _ => None,
    });
    places.extend(place.map(|place| ("folder", place)));
    places.extend(word("state").map(|state| ("state", real(Path::new(state)))));
    places
}

/// A path without links as far as it exists.
fn real(path: &Path) -> PathBuf {
    resolved(path).components().collect()
}

/// Jobs whose folders are in the folders of other jobs.
pub(super) fn overlapping(jobs: &[Job], file: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut known: Vec<(&Job, &str, PathBuf)> = Vec::new();
    for job in jobs {
        let own = places_of(job, file);
        for (key, place) in &own {
            let other = known
                .iter()
                .find(|(_, _, other)| place.starts_with(other) || other.starts_with(place));
            if let Some((other, _, _)) = other {
                let text = format!(
                    "`{key}`: job `{}` and job `{}` overlap in `{}` (help: give each a folder of its own, none inside another)",
                    job.name,
                    other.name,
                    shown(&place.display().to_string())
                );
                faults.extend(job.origins.fault(&format!("{}.{key}", job.path), text));
            }
        }
        known.extend(own.into_iter().map(|(key, place)| (job, key, place)));
    }
    faults
}

/// Copies in a folder that the same file publishes, where that is not asked for.
pub(crate) fn in_published_folders(jobs: &[Job], file: &File) -> Vec<Fault> {
    let published = file.set.iter().filter(|set| !set.folder.as_os_str().is_empty());
    let published: Vec<PathBuf> = published.map(|set| real(&set.folder)).collect();
    let mut faults = Vec::new();
    for job in jobs {
        let is_asked_for = job.table.get("republish").and_then(toml::Value::as_bool) == Some(true)
            || job
                .table
                .get("folder")
                .and_then(toml::Value::as_str)
                .is_some_and(|folder| matches!(TargetPlace::of(folder), TargetPlace::Set(_)));
        let copies = places_of(job, file).into_iter().filter(|(key, _)| *key == "folder");
        for (key, place) in copies.filter(|_| !is_asked_for) {
            if let Some(folder) = published.iter().find(|folder| place.starts_with(folder)) {
                let text = format!(
                    "`{key}`: the copy of job `{}` lies in `{}`, which is published (help: choose another folder; to publish the \
                     copy again, add `republish = true`)",
                    job.name,
                    shown(&folder.display().to_string())
                );
                faults.extend(job.origins.fault(&format!("{}.{key}", job.path), text));
            }
        }
    }
    faults
}
