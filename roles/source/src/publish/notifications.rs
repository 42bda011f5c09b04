//! The hubs of a set, and what is notified.

/// The hubs and channels of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notifications {
    /// The hubs that take subscriptions: at least one.
    pub hubs: Vec<String>,
    /// Whether changes of resources are notified.
    pub changes: bool,
    /// Whether changes of documents are notified.
    pub framework: bool,
}

impl Notifications {
    /// Notifications of resources and of documents, by these hubs.
    pub fn at(hubs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { hubs: hubs.into_iter().map(Into::into).collect(), changes: true, framework: true }
    }
}
