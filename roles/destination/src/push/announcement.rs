//! The announcement of a Source that it pushes changes.

#[cfg(feature = "xmpp")]
use crate::report::options::SyncOptions;
use abreast_webtypes::SyntaxError;

/// The document that contains the topic of a set.
#[derive(Clone, Debug)]
pub(crate) struct Announcement {
    /// The URL of the document, to which the rules for other hosts refer.
    pub(crate) url: String,
    /// Finds the topic in the bytes of the document; the second argument is the URL after
    /// redirects.
    pub(crate) topic_in: fn(&[u8], &str) -> Result<Option<Topic>, SyntaxError>,
    /// Other ways in which the Source pushes changes.
    pub(crate) offers: Vec<PushOffer>,
}

/// A substitute for the announcement of a Source, if the user specifies a node.
#[cfg(feature = "xmpp")]
pub(super) fn of_own_node(options: &SyncOptions) -> Option<Announcement> {
    let node = options.xmpp.as_ref().and_then(|xmpp| xmpp.node.as_ref());
    let (url, offers) = (options.url.clone(), Vec::new());
    node.map(|_| Announcement { url, topic_in: |_, _| Ok(None), offers })
}

/// A way in which a Source pushes change sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PushOffer {
    /// A node of an XMPP PubSub service [rs-0.1 §5.2.1].
    Xmpp {
        /// The address of the service, such as `pubsub.example.org`.
        service: String,
        /// The PubSub node of the service.
        node: String,
    },
    /// HTTP callbacks of the Source itself [rs-0.1 §5.2.2].
    Callback {
        /// The address for subscriptions of callbacks.
        subscribe: String,
        /// The subject of the callbacks: the current change set, if the Source has one.
        topic: Option<String>,
        /// The Source follows the specification exactly: it neither verifies subscriptions nor
        /// signs notifications.
        is_plain: bool,
    },
}

/// A topic, and the addresses for subscriptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Topic {
    pub(crate) url: String,
    /// Hubs for subscriptions, https addresses first; empty if the topic can only be read.
    pub(crate) hubs: Vec<String>,
    /// The form of subscription requests at these hubs.
    pub(crate) asking: Asking,
}

/// The form of subscription requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Asking {
    /// At a hub, which verifies the subscription [websub §5.1].
    #[default]
    WebSub,
    /// By the form of ResourceSync 0.1 with secret and lease, and verified as by a hub [rs-0.1
    /// §5.2.2].
    Callback,
    /// In the form of the specification: nothing is verified, signed or ended.
    PlainCallback,
}
