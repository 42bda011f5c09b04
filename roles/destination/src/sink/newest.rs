//! The newest changes of a copy in a service, to detect that the service has lost them.
//!
//! A service that was emptied, replaced or restored from a backup is not noticed, since no request
//! is sent while nothing changes at the Source. Such a service certainly lacks the newest change.
//! So the database stores the last few changes, and each run checks the newest one that can be
//! judged. Only certain losses count: a stored resource is missing, or its version is exactly one of the
//! versions before the change. A backup may be several versions old, so a change has the earlier versions of its
//! resource too.

use crate::report::error::Error;
use abreast_store::mirror::Mirror;

/// Key of the changes in the database; one line for each, the oldest first.
const NEWEST: &str = "newest-changes";
/// Number of changes that are stored.
pub(crate) const CHANGES: usize = 4;
/// Number of earlier versions of a resource that are stored with its newest change.
const OLDER_MAX: usize = 32;
/// Marks the absence of a version.
const NOTHING: &str = "-";

/// A change of the copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// The URI of the resource.
    pub(crate) uri: String,
    /// The name of the resource's data in the service.
    pub(crate) name: String,
    /// Identifies the version after the change; `None` after a deletion.
    pub(crate) new: Option<String>,
    /// Identifies the version before the change.
    pub(crate) old: Option<String>,
    /// The versions before that one, as far as they are known, the oldest first.
    pub(crate) older: Vec<String>,
}

/// The condition of a service, according to one change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The service contains the change.
    Done,
    /// The service is as before the change.
    Undone,
    /// The service has another version, or does not answer.
    Unknown,
}

impl Change {
    /// Judges by the version in the service; `None` if the resource is missing.
    pub(crate) fn judge(&self, found: Option<&str>) -> Verdict {
        match (found, self.new.as_deref(), self.old.as_deref()) {
            (found, new, _) if found == new => Verdict::Done,
            (None, Some(_), _) => Verdict::Undone,
            (found, _, old) if found == old => Verdict::Undone,
            (Some(found), ..) if self.older.iter().any(|older| older == found) => Verdict::Undone,
            _ => Verdict::Unknown,
        }
    }

    /// All versions of the resource that are known, the newest first.
    #[cfg(feature = "s3")]
    pub(crate) fn versions(&self) -> impl Iterator<Item = &String> {
        [&self.new, &self.old].into_iter().flatten().chain(self.older.iter().rev())
    }

    fn line(&self) -> String {
        let version = |version: &Option<String>| version.as_deref().unwrap_or(NOTHING).to_owned();
        let mut fields =
            vec![self.uri.clone(), self.name.clone(), version(&self.new), version(&self.old)];
        fields.extend(self.older.iter().cloned());
        fields.join("\t")
    }

    /// Whether no field contains a separator.
    fn fits_in_a_line(&self) -> bool {
        self.line().matches(['\t', '\n', '\r']).count() == 3 + self.older.len()
    }

    /// Continues from an earlier change of the same name.
    fn continue_from(&mut self, known: Self) {
        let Self { new, old, older, .. } = known;
        self.old = self.old.take().or_else(|| new.clone());
        let before = older.into_iter().chain(old).chain(new);
        self.older = before.filter(|version| self.old.as_ref() != Some(version)).collect();
        let surplus = self.older.len().saturating_sub(OLDER_MAX);
        self.older.drain(..surplus);
    }

    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split('\t').map(str::to_owned);
        let mut next = || fields.next();
        let (uri, name, new, old) = (next()?, next()?, next()?, next()?);
        let version = |text: String| (text != NOTHING).then_some(text);
        Some(Self { uri, name, new: version(new), old: version(old), older: fields.collect() })
    }
}

fn read(mirror: &Mirror) -> Result<Vec<Change>, Error> {
    let text = mirror.meta(NEWEST)?.unwrap_or_default();
    Ok(text.lines().filter_map(Change::parse).collect())
}

/// Records changes, the newest last, in the transaction with their rows. Several changes under one
/// name become one, with the versions before it.
pub(crate) fn note(
    mirror: &Mirror,
    changes: impl IntoIterator<Item = Change>,
) -> Result<(), Error> {
    let (mut all, mut is_same) = (read(mirror)?, true);
    for mut change in changes {
        if change.new == change.old || !change.fits_in_a_line() {
            continue;
        }
        if let Some(at) = all.iter().position(|known| known.name == change.name) {
            change.continue_from(all.remove(at));
        }
        all.push(change);
        is_same = false;
    }
    if is_same {
        return Ok(());
    }
    let lines: Vec<String> =
        all[all.len().saturating_sub(CHANGES)..].iter().map(Change::line).collect();
    Ok(mirror.set_meta(NEWEST, Some(&lines.join("\n")))?)
}

/// Removes the changes, because the service differs from them.
pub(crate) fn forget(mirror: &Mirror) -> Result<(), Error> {
    Ok(mirror.set_meta(NEWEST, None)?)
}

/// Whether a service contains the newest change that can be judged. A resource in the plan cannot
/// be judged, since a killed run may have changed the resource again.
pub(crate) fn is_there(
    mirror: &Mirror,
    mut judge: impl FnMut(&Change) -> Verdict,
) -> Result<bool, Error> {
    for change in read(mirror)?.iter().rev() {
        if mirror.task(&change.uri)?.is_some() {
            continue;
        }
        match judge(change) {
            Verdict::Done => return Ok(true),
            Verdict::Undone => return Ok(false),
            Verdict::Unknown => {}
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_store::mirror::Pending;

    fn change(uri: &str, new: Option<&str>, old: Option<&str>) -> Change {
        let [new, old] = [new, old].map(|version| version.map(str::to_owned));
        Change { uri: uri.to_owned(), name: uri.to_owned(), new, old, older: Vec::new() }
    }

    #[test]
    fn only_what_is_certain_is_taken_for_undone() {
        use Verdict::{Done, Undone, Unknown};
        let cases = [
            (Some("1"), None, Some("1"), Done),
            (Some("1"), None, None, Undone),
            (Some("1"), None, Some("x"), Unknown),
            (Some("2"), Some("1"), Some("2"), Done),
            (Some("2"), Some("1"), Some("1"), Undone),
            (Some("2"), Some("1"), None, Undone),
            (Some("2"), Some("1"), Some("x"), Unknown),
            (None, Some("1"), None, Done),
            (None, Some("1"), Some("1"), Undone),
            (None, Some("1"), Some("x"), Unknown),
        ];
        for (new, old, found, expected) in cases {
            assert_eq!(change("a", new, old).judge(found), expected, "{new:?} {old:?} {found:?}");
        }
    }

    #[test]
    fn each_earlier_version_of_a_resource_is_known() {
        let mirror = Mirror::scratch().unwrap();
        for version in 1..=OLDER_MAX + 3 {
            let (new, old) = (version.to_string(), (version - 1).to_string());
            note(&mirror, [change("a", Some(&new), Some(&old))]).unwrap();
        }
        let judged = |version: usize| read(&mirror).unwrap()[0].judge(Some(&version.to_string()));
        assert_eq!(judged(OLDER_MAX + 3), Verdict::Done);
        assert!((2..OLDER_MAX + 3).all(|version| judged(version) == Verdict::Undone));
        assert_eq!(judged(1), Verdict::Unknown);
        note(&mirror, [change("a", Some("5"), Some("35"))]).unwrap();
        assert_eq!((judged(5), judged(35)), (Verdict::Done, Verdict::Undone));
    }

    #[test]
    fn the_newest_change_that_can_be_judged_decides() {
        let mirror = Mirror::scratch().unwrap();
        let versions = |uri: &str| match uri {
            "b" => Some("1"),
            "c" => Some("x"),
            _ => None,
        };
        let is_there = |mirror: &Mirror| {
            super::is_there(mirror, |change| change.judge(versions(&change.uri))).unwrap()
        };
        assert!(is_there(&mirror));
        note(&mirror, [change("a", Some("1"), None)]).unwrap();
        assert!(!is_there(&mirror));
        note(&mirror, [change("b", Some("1"), None), change("c", Some("1"), None)]).unwrap();
        assert!(is_there(&mirror), "nothing is known by `c`");
        note(&mirror, [change("a", None, Some("1"))]).unwrap();
        assert!(is_there(&mirror));
        note(&mirror, [change("d", Some("1"), None)]).unwrap();
        assert!(!is_there(&mirror));
        let planned = Pending { uri: "d".to_owned(), ..Pending::default() };
        mirror.put_pending(&planned).unwrap();
        assert!(is_there(&mirror), "a killed run may have deleted it");
        forget(&mirror).unwrap();
        assert_eq!(read(&mirror).unwrap(), []);
    }

    #[test]
    fn changes_are_noted_once_a_name_and_up_to_a_number() {
        let mirror = Mirror::scratch().unwrap();
        let uris = ["1", "2", "3", "4", "5", "6"];
        note(&mirror, uris.map(|uri| change(uri, Some("x"), None))).unwrap();
        note(&mirror, [change("5", Some("y"), None), change("tab\t", Some("x"), None)]).unwrap();
        let noted: Vec<_> =
            read(&mirror).unwrap().into_iter().map(|change| (change.uri, change.old)).collect();
        let expected = [("3", None), ("4", None), ("6", None), ("5", Some("x"))];
        assert_eq!(noted, expected.map(|(uri, old)| (uri.to_owned(), old.map(str::to_owned))));
    }
}
