//! The sets that a request may read.

/// The sets that a request sees where it names none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VisibleSets {
    All,
    /// Those that its token is for.
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
