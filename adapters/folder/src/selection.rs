//! The files and folders that are shown of a folder, by their paths.

use crate::dir::Dir;
use crate::stat::Kind;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

type Rule = dyn Fn(&[u8], Kind) -> bool + Send + Sync;

/// A rule for paths from the root. Cloning shares it.
#[derive(Clone)]
pub struct Selection(Arc<Rule>);

impl Selection {
    /// A rule that decides for a path, of a file or a folder, whether it is visible.
    pub fn new(rule: impl Fn(&[u8], Kind) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(rule))
    }

    pub(crate) fn has(&self, path: &[u8], kind: Kind) -> bool {
        (self.0)(path, kind)
    }
}

impl fmt::Debug for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Selection")
    }
}

type HidingRule = dyn Fn(&Dir, &[u8], bool) -> bool + Send + Sync;

/// A rule for folders that are never shown, nor anything in them. Cloning shares it.
#[derive(Clone)]
pub struct Hiding {
    marks: &'static [&'static str],
    rule: Arc<HidingRule>,
}

impl Hiding {
    /// A rule that decides for an opened folder whether it is hidden, with its path from the root, which is empty for
    /// the root, and whether it may have one of the names in `marks`. A folder without them is hidden only because of what a
    /// folder around it has.
    pub fn new(
        marks: &'static [&'static str],
        rule: impl Fn(&Dir, &[u8], bool) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { marks, rule: Arc::new(rule) }
    }

    pub(crate) fn hides(&self, dir: &Dir, path: &[u8], is_marked: bool) -> bool {
        (self.rule)(dir, path, is_marked)
    }

    /// In any case: a file system may not distinguish them.
    pub(crate) fn is_mark(&self, name: &[u8]) -> bool {
        self.marks.iter().any(|mark| mark.as_bytes().eq_ignore_ascii_case(name))
    }

    /// The path of the hidden folder that a path is, or is in. Names are opened one by one, through no link.
    pub(crate) fn hidden_folder<'a>(
        &self,
        root: &Arc<OwnedFd>,
        path: &'a [u8],
        kind: Kind,
    ) -> Option<&'a [u8]> {
        let mut dir = Dir::new(Arc::clone(root));
        if self.hides(&dir, b"", true) {
            return path.get(..0);
        }
        let last = match path.iter().rposition(|byte| *byte == b'/') {
            _ if kind == Kind::Folder => path.len(),
            Some(slash) => slash,
            None => 0,
        };
        let mut end = 0;
        while end < last {
            let begin = if end == 0 { 0 } else { end + 1 };
            let rest = &path[begin..last];
            end = begin + rest.iter().position(|byte| *byte == b'/').unwrap_or(rest.len());
            dir = dir.dir(&path[begin..end]).ok()?;
            if self.hides(&dir, &path[..end], true) {
                return path.get(..end);
            }
        }
        None
    }
}

impl fmt::Debug for Hiding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hiding")
    }
}
