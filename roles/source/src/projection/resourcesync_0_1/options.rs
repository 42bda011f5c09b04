//! Data of a set's documents of ResourceSync 0.1 that is not in the log.

use crate::publish::PublishedSet;
use abreast_resourcesync::v0_1::{CALLBACK_PROTOCOL, XMPP_PROTOCOL};
use std::sync::{Arc, LazyLock};

/// Settings of a set for ResourceSync 0.1.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Base URL of the same resources in OAI-PMH, for an entry of the Sitemap [rs-0.1 §4.3.3].
    pub oai_pmh: Option<String>,
    /// Whether robots.txt lists the Sitemap. Crawlers may refuse the elements in this Sitemap.
    pub robots: bool,
    /// Services that push changes, for links in the Sitemap [rs-0.1 §5.2].
    pub push: Vec<PushLink>,
}

/// A service that pushes changes to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushLink {
    /// URL of the XMPP service, or of the subscription for callbacks.
    pub href: String,
    /// URI of the protocol of the service.
    pub protocol: &'static str,
    /// Node of the XMPP service, if the protocol is XMPP.
    pub node: Option<String>,
}

impl PushLink {
    /// Link to a node of an XMPP service [rs-0.1 §5.2.1].
    pub fn xmpp(service: &str, node: impl Into<String>) -> Self {
        Self { href: format!("xmpp:{service}"), protocol: XMPP_PROTOCOL, node: Some(node.into()) }
    }

    /// Link to the subscription for callbacks [rs-0.1 §5.2.2].
    pub fn callback(subscribe: impl Into<String>) -> Self {
        Self { href: subscribe.into(), protocol: CALLBACK_PROTOCOL, node: None }
    }
}

impl PublishedSet {
    /// Options of the set's documents of ResourceSync 0.1.
    pub(crate) fn resourcesync_0_1(&self) -> &Options {
        static DEFAULT: LazyLock<Options> = LazyLock::new(Options::default);
        self.part().map_or(&*DEFAULT, |options: &Arc<Options>| &**options)
    }
}
