//! The files and folders that are shown of a folder, by their paths.

use crate::stat::Kind;
use std::fmt;
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

type HidingRule = dyn Fn(&[u8], Kind) -> Option<usize> + Send + Sync;

/// A rule for folders that are never shown, nor anything in them. Cloning shares it.
#[derive(Clone)]
pub struct Hiding(Arc<HidingRule>);

impl Hiding {
    /// A rule that returns, for the path of a file or folder, the length of the path of the hidden folder that it is or is in.
    pub fn new(rule: impl Fn(&[u8], Kind) -> Option<usize> + Send + Sync + 'static) -> Self {
        Self(Arc::new(rule))
    }

    pub(crate) fn hidden_folder<'a>(&self, path: &'a [u8], kind: Kind) -> Option<&'a [u8]> {
        (self.0)(path, kind).and_then(|length| path.get(..length))
    }
}

impl fmt::Debug for Hiding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hiding")
    }
}
