//! The files of a published state.

use super::copies::PublishedStatus;
use super::{page, turtle};
use crate::place::{Context as _, Result};
use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Names of the files of a published state.
const FILES: [&str; 3] = ["status.json", "status.ttl", "index.html"];
impl PublishedStatus {
    /// Writes the state into a folder, which is made if it does not exist. Each file is replaced in one step.
    ///
    /// # Errors
    /// The folder or a file cannot be written.
    pub fn publish(&self, folder: &Path) -> Result<()> {
        let json = serde_json::to_vec(self).map_err(io::Error::other);
        let texts = [json, turtle::text(self), Ok(page::text(self).into_bytes())];
        let task = || format!("cannot publish the state in `{}`", folder.display());
        std::fs::create_dir_all(folder).with_context(task)?;
        for (name, text) in FILES.into_iter().zip(texts) {
            let task = || format!("cannot publish the state as `{}`", folder.join(name).display());
            text.and_then(|text| replace_file(&folder.join(name), &text)).with_context(task)?;
        }
        Ok(())
    }
}

/// Replaces a file that everyone may read, in one step.
///
/// # Errors
/// The file or its folder cannot be written.
pub fn replace_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".status-")
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::published::copies::STALLED_AFTER;
    use crate::status::report::{CopyRun, CopyStatus, ProblemStatus, StatusReport};
    use abreast_core::{Clock as _, SystemClock};

    fn copy() -> CopyStatus {
        let now = SystemClock.now().to_string();
        CopyStatus {
            place: "/home/me/secret".to_owned(),
            source: Some("http://me:hush@h/a/?key=hush#hush".to_owned()),
            state: "stopped".to_owned(),
            last_run: Some(now.clone()),
            last_success: Some(now),
            behind_seconds: Some(0),
            resources: 3,
            run: Some(CopyRun::default()),
            ..CopyStatus::default()
        }
    }

    fn published(copy: CopyStatus) -> PublishedStatus {
        let mut report = StatusReport::new("0", SystemClock.now().to_string());
        report.copies.push(copy);
        PublishedStatus::new(&report, STALLED_AFTER)
    }

    fn state(copy: CopyStatus) -> (String, Option<String>) {
        let copy = published(copy).copies.remove(0);
        (copy.state, copy.stalled_since)
    }

    #[test]
    fn a_copy_is_in_step_incomplete_or_stalled() {
        let old = "2020-01-01T00:00:00Z".to_owned();
        let with = |change: &dyn Fn(&mut CopyStatus)| {
            let mut one = copy();
            change(&mut one);
            state(one)
        };
        let stalled = || ("stalled".to_owned(), Some(old.clone()));
        assert_eq!(with(&|_| {}).0, "in step");
        assert_eq!(with(&|copy| copy.behind_seconds = Some(9)).0, "incomplete");
        assert_eq!(with(&|copy| copy.last_run = Some(old.clone())), stalled());
        let fails = |code: u8| CopyRun { exit_code: code, ..CopyRun::default() };
        let failed = |copy: &mut CopyStatus| {
            (copy.run, copy.last_success) = (Some(fails(5)), Some(old.clone()));
        };
        assert_eq!(with(&failed), stalled());
        let hung = |copy: &mut CopyStatus| {
            (copy.state, copy.last_success) = ("hung".to_owned(), Some(old.clone()));
        };
        assert_eq!(with(&hung), stalled());
        let follows = |copy: &mut CopyStatus| {
            (copy.state, copy.last_run) = ("following".to_owned(), Some(old.clone()));
        };
        assert_eq!(with(&follows).0, "in step");
        let first = |copy: &mut CopyStatus| {
            *copy = CopyStatus { state: "running".to_owned(), ..CopyStatus::default() };
        };
        assert_eq!(with(&first).0, "incomplete");
        let never = |copy: &mut CopyStatus| {
            *copy = CopyStatus { state: "stopped".to_owned(), ..CopyStatus::default() };
        };
        assert_eq!(with(&never), ("stalled".to_owned(), None));
    }

    #[test]
    fn what_is_private_is_in_no_file() {
        let place = tempfile::tempdir().unwrap();
        let mut one = copy();
        one.run = Some(CopyRun { exit_code: 5, ..CopyRun::default() });
        one.problems.push(ProblemStatus {
            code: "http.status".to_owned(),
            uri: "http://h/secret".to_owned(),
            message: "secret".to_owned(),
        });
        published(one).publish(place.path()).unwrap();
        let mut names: Vec<String> = Vec::new();
        for entry in std::fs::read_dir(place.path()).unwrap().flatten() {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            assert!(!text.contains("hush") && !text.contains("secret"), "{text}");
            assert!(text.contains("http://h/a/"), "{text}");
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o044, 0o044);
            names.push(entry.file_name().into_string().unwrap());
        }
        names.sort();
        assert_eq!(names, ["index.html", "status.json", "status.ttl"]);
        let page = std::fs::read_to_string(place.path().join("index.html")).unwrap();
        for element in ["dl", "section", "main", "dt", "dd", "p"] {
            let count = |tag: String| page.matches(&tag).count();
            let begun = count(format!("<{element}>")) + count(format!("<{element} "));
            assert_eq!(begun, count(format!("</{element}>")), "{element}: {page}");
        }
    }

    #[test]
    fn two_copies_of_a_source_have_two_names() {
        let mut report = StatusReport::new("0", String::new());
        report.copies = vec![copy(), copy()];
        let published = PublishedStatus::new(&report, STALLED_AFTER);
        let names: Vec<&str> = published.copies.iter().map(|copy| &*copy.name).collect();
        assert_eq!(names, ["http://h/a/", "http://h/a/ (2)"]);
    }
}
