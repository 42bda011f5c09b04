//! Facts about Entity Patches.

/// What the header of a patch states.
#[derive(Clone, Debug, Default)]
pub(super) struct PatchFacts {
    pub(super) id: Option<String>,
    pub(super) prev: Option<String>,
    pub(super) entity_prev: Option<String>,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

impl PatchFacts {
    /// Whether it may be remembered: what servers send has any length.
    pub(super) fn is_short(&self) -> bool {
        let all = [&self.id, &self.prev, &self.entity_prev, &self.before, &self.after];
        all.into_iter().flatten().all(|text| text.len() <= TEXT_MAX)
    }
}

/// Bytes of an identifier or digest that is remembered.
pub(super) const TEXT_MAX: usize = 500;
