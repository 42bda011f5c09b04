//! The site: all data that requests to a server can use.

use crate::api::Api;
use crate::limits::memory::Memory;
use crate::observe::followers::{Follower, Followers};
use abreast_core::{ChangeLog, Clock as _, SystemClock};
use abreast_hub::Hub;
use abreast_source::deposit::Deposit;
use abreast_source::links::Links;
use abreast_source::origin::rdf::EntityWriter;
use abreast_source::projection::resourcesync_0_1;
use abreast_source::publish::{PublishedSet, Publisher};
use abreast_store::{FormerSet, NowAt};
use abreast_webtypes::write_link;
use http::HeaderValue;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A set, with the server's data about it.
pub struct ServedSet {
    /// The set as it is published.
    pub published: Arc<PublishedSet>,
    /// Title of the set for users.
    pub title: String,
    /// The Link header of all resources, with the documents about the set ([`set_link`]).
    pub link: SetLink,
    /// The source of links for the set's files.
    pub links: Arc<Links>,
    /// Stores content from the API in the folder; `None` if the API does not write there.
    pub deposit: Option<Arc<Deposit>>,
    /// Records descriptions of entities that come through the API; `None` for other sets, and for
    /// entities whose descriptions are files.
    pub entities: Option<Arc<EntityWriter>>,
}

/// The value of a Link header, without and with the dump of version 0.1.
pub struct SetLink([HeaderValue; 2]);

impl ServedSet {
    /// The present Link header for resources.
    pub(crate) fn link(&self) -> HeaderValue {
        let [without, with] = &self.link.0;
        let has_dump = resourcesync_0_1::has_one_dump(&self.published);
        if has_dump { with.clone() } else { without.clone() }
    }

    /// Whether the resource with this key may be shown: not if the set's rules leave it out now,
    /// unless its deletion is held.
    pub(crate) fn shows(&self, log: &dyn ChangeLog, key: &str) -> bool {
        self.published.representations.selects(key) || self.holds(log, key)
    }

    /// Whether the set's folder has been missing since the start: then the set cannot be served.
    pub(crate) fn is_absent(&self) -> bool {
        self.published.representations.is_absent()
    }

    /// Whether the deletion of any resource that the rules leave out is held.
    pub(crate) fn holds_any(&self) -> bool {
        self.published.watch.held().is_some_and(|held| held.left_out > 0)
    }

    /// Whether this is a resource that the rules leave out, and whose deletion is held: it is
    /// listed and served until the deletion is confirmed.
    pub(crate) fn holds(&self, log: &dyn ChangeLog, key: &str) -> bool {
        self.holds_any()
            && !self.published.representations.hides(key)
            && matches!(log.resource(self.published.id, key), Ok(Some(_)))
    }
}

/// The sets of a site, in their configured order, and by name.
#[derive(Default)]
pub struct ServedSets {
    all: Vec<Arc<ServedSet>>,
    places: HashMap<String, usize>,
    former: HashMap<String, NowAt>,
}

impl<S: Into<Arc<ServedSet>>> FromIterator<S> for ServedSets {
    fn from_iter<T: IntoIterator<Item = S>>(sets: T) -> Self {
        let all: Vec<Arc<ServedSet>> = sets.into_iter().map(Into::into).collect();
        let places = all
            .iter()
            .enumerate()
            .map(|(place, set)| (set.published.slug.clone(), place))
            .collect();
        Self { all, places, former: HashMap::new() }
    }
}

impl ServedSets {
    /// All sets, in their configured order.
    pub fn all(&self) -> &[Arc<ServedSet>] {
        &self.all
    }

    /// The set with this name in URLs.
    pub fn find(&self, slug: &str) -> Option<&Arc<ServedSet>> {
        self.all.get(*self.places.get(slug)?)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds the names of sets that were renamed or removed. Names of present sets have no effect.
    #[must_use]
    pub fn with_former(mut self, former: impl IntoIterator<Item = FormerSet>) -> Self {
        self.former = former.into_iter().map(|set| (set.slug, set.now)).collect();
        self
    }

    pub(crate) fn has_former(&self) -> bool {
        !self.former.is_empty()
    }

    /// Where the set is that had this name.
    pub(crate) fn former(&self, slug: &str) -> Option<&NowAt> {
        self.former.get(slug)
    }
}

/// All data that requests can use.
pub struct Site {
    /// The publisher of the documents.
    pub publisher: Publisher,
    /// The publisher's sets, with the data that the server needs.
    pub sets: ServedSets,
    /// The API, if it is enabled.
    pub api: Option<Api>,
    /// The hub that delivers notifications, if the site publishes any.
    pub hub: Option<SiteHub>,
    /// The memory for rendering and for large requests.
    pub memory: Memory,
    /// The clients that follow sets.
    pub followers: Followers,
    /// Renders the text for `/metrics`.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// The folder of the store, whose record of its last backup `/metrics` reads.
    pub store: Option<PathBuf>,
}

impl Site {
    /// The clients that follow sets, the last to ask first.
    pub fn followers(&self) -> Vec<Follower> {
        self.followers.all(SystemClock.now())
    }

    /// Whether the file of tokens contains at least one token.
    pub fn has_tokens(&self) -> bool {
        self.api.as_ref().is_some_and(|api| !api.tokens.current().is_empty())
    }
}

/// The hub of a site.
#[derive(Clone)]
pub struct SiteHub {
    /// The hub that delivers; its store has the topics.
    pub hub: Hub,
    /// Whether everyone may subscribe at `/hub`. Otherwise it only notifies other hubs.
    pub serves: bool,
}

/// The Link header value with the Capability List of a resource's set [rs-core §6.3.2], and with
/// its current change set and its dump in version 0.1 [rs-0.1 §7.2.2].
///
/// # Errors
/// When the URLs contain characters that headers must not contain.
pub fn set_link(set: &PublishedSet) -> Result<SetLink, http::header::InvalidHeaderValue> {
    let value = |has_dump: bool| {
        let mut value = format!("<{}>; rel=\"resourcesync\"", set.urls.capability_list());
        for link in resourcesync_0_1::set_links(set, has_dump) {
            value.push_str(", ");
            write_link(&mut value, &link);
        }
        HeaderValue::from_str(&value)
    };
    Ok(SetLink([value(false)?, value(true)?]))
}
