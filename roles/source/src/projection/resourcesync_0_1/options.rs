//! What a set's documents of ResourceSync 0.1 state beyond its log.

use crate::publish::PublishedSet;
use abreast_resourcesync::v0_1::{CALLBACK_PROTOCOL, XMPP_PROTOCOL};
use std::sync::{Arc, LazyLock};

/// Settings of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The base URL at which the same resources are offered over OAI-PMH: an entry of the Sitemap
    /// [rs-0.1 §4.3.3].
    pub oai_pmh: Option<String>,
    /// Whether robots.txt names the Sitemap. Crawlers that read it may refuse its elements.
    pub robots: bool,
    /// Where changes are pushed: links of the Sitemap [rs-0.1 §5.2].
    pub push: Vec<PushLink>,
}

/// A way to get changes pushed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushLink {
    /// The address: of an XMPP service, or of where callbacks are subscribed.
    pub href: String,
    /// The URI of what is spoken there.
    pub protocol: &'static str,
    /// The node of an XMPP service.
    pub node: Option<String>,
}

impl PushLink {
    /// A node of an XMPP service [rs-0.1 §5.2.1].
    pub fn xmpp(service: &str, node: impl Into<String>) -> Self {
        Self { href: format!("xmpp:{service}"), protocol: XMPP_PROTOCOL, node: Some(node.into()) }
    }

    /// The address where callbacks are subscribed [rs-0.1 §5.2.2].
    pub fn callback(subscribe: impl Into<String>) -> Self {
        Self { href: subscribe.into(), protocol: CALLBACK_PROTOCOL, node: None }
    }
}

impl PublishedSet {
    /// What its documents of ResourceSync 0.1 state beyond its log.
    pub(crate) fn resourcesync_0_1(&self) -> &Options {
        static DEFAULT: LazyLock<Options> = LazyLock::new(Options::default);
        self.part().map_or(&*DEFAULT, |options: &Arc<Options>| &**options)
    }
}
