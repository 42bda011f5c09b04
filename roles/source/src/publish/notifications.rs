//! Hubs of a set, and the kinds of notifications.

/// Hubs of a set, and the kinds of changes that are notified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notifications {
    /// URLs of hubs for subscriptions; at least one.
    pub hubs: Vec<String>,
    /// Whether changes of resources are notified.
    pub changes: bool,
    /// Whether changes of documents are notified.
    pub framework: bool,
}

impl Notifications {
    /// Notifications of resources and of documents by these hubs.
    pub fn at(hubs: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { hubs: hubs.into_iter().map(Into::into).collect(), changes: true, framework: true }
    }
}
