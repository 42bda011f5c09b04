//! Rules for the files and folders of a folder that are shown, by their paths.

use crate::entry::dir::Dir;
use crate::entry::stat::Kind;
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;

type Rule = dyn Fn(&[u8], Kind) -> bool + Send + Sync;

/// A rule for paths from the root. A clone shares the rule.
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

/// A rule for folders that are never shown, including their content. A clone shares the rule.
#[derive(Clone)]
pub struct Hiding {
    marks: &'static [&'static str],
    rule: Arc<HidingRule>,
}

impl Hiding {
    /// A rule that decides whether an open folder is hidden. `rule` gets the folder, its path from
    /// the root (empty for the root), and whether the folder may have an entry with a name in
    /// `marks`. Folders without such an entry are hidden only because of their parent folders.
    pub fn new(
        marks: &'static [&'static str],
        rule: impl Fn(&Dir, &[u8], bool) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self { marks, rule: Arc::new(rule) }
    }

    pub(crate) fn hides(&self, dir: &Dir, path: &[u8], is_marked: bool) -> bool {
        (self.rule)(dir, path, is_marked)
    }

    /// In any letter case, because a file system may not distinguish it.
    pub(crate) fn is_mark(&self, name: &[u8]) -> bool {
        self.marks.iter().any(|mark| mark.as_bytes().eq_ignore_ascii_case(name))
    }

    /// The hidden folder that equals the path or contains it. Opens one component after the other,
    /// without following links.
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
