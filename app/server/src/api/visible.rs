//! The sets that a request may read.

/// The sets that a request without a set in its path may read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VisibleSets {
    All,
    /// The sets in the request's token.
    Only(Vec<String>),
}

impl VisibleSets {
    pub(super) fn has(&self, slug: &str) -> bool {
        match self {
            Self::All => true,
            Self::Only(sets) => sets.iter().any(|set| set == slug),
        }
    }
}
