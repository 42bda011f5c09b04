//! What does this server serve?

use abreast_folder::Folder;
use abreast_source::WatchStatus;
use abreast_source::publish::Publisher;
use http::HeaderValue;
use std::sync::Arc;

/// A set as the server needs it.
pub struct ServedSet {
    /// Its name in URLs.
    pub slug: String,
    /// Its title for people.
    pub title: String,
    /// Where its resources are.
    pub folder: Folder,
    /// How the watching goes.
    pub watch: Arc<WatchStatus>,
    /// Value of the Link header on every resource: where the Capability List is [rs-core §6.3.2].
    pub link: HeaderValue,
}

/// Everything a request can reach. Sets are in the publisher's order.
pub struct Site {
    /// Documents.
    pub publisher: Publisher,
    /// Folders.
    pub sets: Vec<ServedSet>,
    /// Renders `/metrics`.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
}

/// The Link header value that leads from a resource to the Capability List of its set [rs-core §6.3.2].
///
/// # Errors
/// When the URL holds characters that no header may.
pub fn resourcesync_link(capability_list: &str) -> Result<HeaderValue, http::header::InvalidHeaderValue> {
    HeaderValue::from_str(&format!("<{capability_list}>; rel=\"resourcesync\""))
}
