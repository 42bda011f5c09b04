//! What does this server serve?

use crate::api::{Api, path_of};
use abreast_core::{ChangeLog, SetId};
use abreast_folder::{Folder, Kind};
use abreast_hub::Hub;
use abreast_source::WatchStatus;
use abreast_source::deposit::Deposit;
use abreast_source::links::Links;
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
    /// Where the links of its files come from.
    pub links: Arc<Links>,
    /// How content comes into its folder through the API; `None` when it does not.
    pub deposit: Option<Arc<Deposit>>,
    /// It has records of resources that live elsewhere, and no content: its folder is empty and not watched.
    pub records: bool,
}

impl ServedSet {
    /// The folder as it was last read; `None` for a set of records.
    pub(crate) fn current_folder(&self) -> Option<Folder> {
        (!self.records).then(|| self.watch.folder().unwrap_or_else(|| self.folder.clone()))
    }

    /// May anything of the resource with this key be shown? Not if the set's rules leave it out now, unless its deletion
    /// is held.
    pub(crate) fn shows(&self, log: &dyn ChangeLog, id: SetId, key: &str) -> bool {
        // Keys of resources that live elsewhere are URIs.
        key.contains(':') || self.folder.selects(&path_of(key), Kind::File) || self.holds(log, id, key)
    }

    /// Is this a resource that the rules leave out, and whose deletion is held? The lists name it until that is confirmed,
    /// and it is served until then.
    pub(crate) fn holds(&self, log: &dyn ChangeLog, id: SetId, key: &str) -> bool {
        self.watch.held().is_some_and(|held| held.left_out > 0) && matches!(log.resource(id, key), Ok(Some(_)))
    }
}

/// Everything a request can reach. Sets are in the publisher's order.
pub struct Site {
    /// Documents.
    pub publisher: Publisher,
    /// Folders.
    pub sets: Vec<ServedSet>,
    /// The API, if there is one.
    pub api: Option<Api>,
    /// Who delivers notifications, if any are published.
    pub hub: Option<SiteHub>,
    /// Renders `/metrics`.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
}

/// The hub of a site.
pub struct SiteHub {
    /// It delivers; its store has the topics.
    pub hub: Hub,
    /// Strangers may subscribe at `/hub`. Otherwise it only tells other hubs.
    pub serves: bool,
}

/// The Link header value that leads from a resource to the Capability List of its set [rs-core §6.3.2].
///
/// # Errors
/// When the URL holds characters that no header may.
pub fn resourcesync_link(capability_list: &str) -> Result<HeaderValue, http::header::InvalidHeaderValue> {
    HeaderValue::from_str(&format!("<{capability_list}>; rel=\"resourcesync\""))
}
