//! The paths of packages: `/{set}/dump/NAME.zip`, its manifest `NAME.xml`, and
//! `/{set}/changedump/since` [rs-core §11, §13].
//!
//! A package is complete when it has a name, and never changes under this name. The changes since a
//! point are packaged at the request. The response has the URL under which the package is available
//! for some time.

use super::{Since, SinceError, Which};
use crate::publish::files::{FileError, PublishedFile};
use crate::publish::{Freshness, PublishedSet};
use abreast_webtypes::W3cDatetime;
use std::sync::Arc;

/// A file of a set; `S` is a reference to the set, or the set's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FilePath<S> {
    /// A package or a manifest, by file name.
    Package(S, String),
    /// A package of the changes since the point in the query.
    ChangesSince(S),
}

impl<S> FilePath<S> {
    /// Parses a path below the public base; `find` returns the set with a name.
    pub(crate) fn parse(path: &str, find: impl FnOnce(&str) -> Option<S>) -> Option<Self> {
        let (slug, rest) = path.split_once('/')?;
        if rest == "changedump/since" {
            return find(slug).map(Self::ChangesSince);
        }
        let name = rest.strip_prefix("dump/")?;
        find(slug).map(|set| Self::Package(set, name.to_owned()))
    }
}

impl FilePath<&Arc<PublishedSet>> {
    /// Opens the file, which is made first if it is made on demand.
    pub(crate) fn open(&self, query: Option<&str>) -> Result<PublishedFile, FileError> {
        match self {
            Self::Package(set, name) => package(set, name),
            Self::ChangesSince(set) => since(set, query.unwrap_or_default()),
        }
    }
}

fn package(set: &Arc<PublishedSet>, name: &str) -> Result<PublishedFile, FileError> {
    let content = set.dumps().map_or(Ok(None), |dumps| dumps.open(name))?;
    let none = "there is no such package; it may have been replaced: read the Resource Dump or the Change Dump again";
    let content = content.ok_or_else(|| FileError::NotFound(none.to_owned()))?;
    Ok(PublishedFile {
        content,
        gzip: None,
        content_type: content_type(name).into(),
        set: Arc::clone(set),
        location: None,
        freshness: Freshness::Immutable,
        negotiated: false,
        digest: None,
    })
}

fn since(set: &Arc<PublishedSet>, query: &str) -> Result<PublishedFile, FileError> {
    let Some((since, which)) = point(query) else {
        let detail = "the start is missing: `?position=` and the position of a change, or `?time=` and a time such as \
                      2026-01-31T12:00:00Z; `&changes=last` leaves out those that a later change of the same resource followed";
        return Err(FileError::BadQuery(detail.to_owned()));
    };
    let dumps = set.dumps().ok_or_else(|| refusal(SinceError::Disabled))?;
    let name = dumps.since_name(since, which).map_err(refusal)?;
    let Some(content) = dumps.open(&name)? else {
        return Err(FileError::Later {
            detail: "the package is being replaced".to_owned(),
            seconds: 1,
        });
    };
    let location = Some(set.urls.package(name.trim_end_matches(".zip")));
    Ok(PublishedFile {
        content,
        gzip: None,
        content_type: content_type(&name).into(),
        set: Arc::clone(set),
        location,
        freshness: Freshness::Revalidate,
        negotiated: false,
        digest: None,
    })
}

fn content_type(name: &str) -> &'static str {
    if name.strip_suffix(".zip").is_some() { "application/zip" } else { "application/xml" }
}

fn refusal(error: SinceError) -> FileError {
    let detail = error.to_string();
    match error {
        SinceError::Disabled => FileError::NotFound(detail),
        SinceError::Ahead { .. } => FileError::BadQuery(detail),
        SinceError::TooOld { .. } | SinceError::NotKept { .. } => FileError::Gone(detail),
        SinceError::TooLarge { .. } => FileError::TooLarge(detail),
        SinceError::Importing => FileError::Later { detail, seconds: 2 },
        SinceError::Busy | SinceError::Unsettled => FileError::Later { detail, seconds: 1 },
        SinceError::Failed(cause) => FileError::Failed { detail, cause },
    }
}

/// Parses `position=N` or `time=W3CDATETIME`, with `changes=all` or `changes=last` optional, each
/// at most once.
fn point(query: &str) -> Option<(Since, Which)> {
    let (mut since, mut which) = (None, None);
    for pair in query.split('&') {
        let (name, value) = pair.split_once('=')?;
        let is_new = match name {
            "position" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                since.replace(Since::Position(value.parse().ok()?)).is_none()
            }
            "time" => {
                let time = abreast_webtypes::decode_segment(value.as_bytes());
                since.replace(Since::Time(W3cDatetime::parse(&time).ok()?.instant)).is_none()
            }
            "changes" => {
                let wanted = match value {
                    "all" => Which::Every,
                    "last" => Which::Last,
                    _ => return None,
                };
                which.replace(wanted).is_none()
            }
            _ => false,
        };
        if !is_new {
            return None;
        }
    }
    Some((since?, which.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_and_changes_since_have_one_path() {
        let of = |path: &str| {
            FilePath::parse(path, |slug| ["a", "b"].iter().position(|name| *name == slug))
        };
        assert_eq!(
            of("b/dump/resources-x-1.zip"),
            Some(FilePath::Package(1, "resources-x-1.zip".into()))
        );
        assert_eq!(of("a/changedump/since"), Some(FilePath::ChangesSince(0)));
        for path in [
            "",
            "dump/x.zip",
            "c/dump/x.zip",
            "c/changedump/since",
            "a/changedump/since/",
            "a/dump",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn a_point_is_a_position_or_a_time() {
        assert_eq!(point("position=17"), Some((Since::Position(17), Which::Every)));
        assert_eq!(point("changes=last&position=17"), Some((Since::Position(17), Which::Last)));
        assert_eq!(point("position=17&changes=all"), Some((Since::Position(17), Which::Every)));
        let time = W3cDatetime::parse(b"2026-01-31T12:00:00.5Z").unwrap().instant;
        assert_eq!(
            point("time=2026-01-31T12%3A00%3A00.5Z"),
            Some((Since::Time(time), Which::Every))
        );
        for bad in [
            "",
            "position=",
            "position=+1",
            "changes=last",
            "position=1&changes=first",
            "position=1&changes=all&changes=all",
            "position=1&time=2026",
            "time=soon",
            "since=1",
            "position",
        ] {
            assert_eq!(point(bad), None, "{bad}");
        }
    }
}
