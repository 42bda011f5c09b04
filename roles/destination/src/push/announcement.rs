//! How a Source announces that changes are pushed.

#[cfg(feature = "xmpp")]
use crate::report::options::SyncOptions;
use abreast_webtypes::SyntaxError;

/// The document that names the topic of a set.
#[derive(Clone, Debug)]
pub(crate) struct Announcement {
    /// Its URL: hosts are judged by it.
    pub(crate) url: String,
    /// Finds the topic in its bytes; the second argument is the URL that it answered at.
    pub(crate) topic_in: fn(&[u8], &str) -> Result<Option<Topic>, SyntaxError>,
    /// Other ways in which changes are pushed.
    pub(crate) offers: Vec<PushOffer>,
}

/// Stands for the announcement of a Source, where the user names a node.
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
        /// The node.
        node: String,
    },
    /// HTTP callbacks [rs-0.1 §5.2.2].
    Callback {
        /// Where callbacks are subscribed.
        subscribe: String,
        /// What they are about: the current change set, where the Source has one.
        topic: Option<String>,
        /// The Source has them as in the specification: it verifies and signs nothing.
        is_plain: bool,
    },
}

/// A topic and where it can be subscribed to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Topic {
    pub(crate) url: String,
    /// Those reached by https first; none when it can only be read.
    pub(crate) hubs: Vec<String>,
    /// How a subscription is requested there.
    pub(crate) asking: Asking,
}

/// How a subscription is requested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Asking {
    /// At a hub, which verifies it [websub §5.1].
    #[default]
    WebSub,
    /// By the form of ResourceSync 0.1 with secret and lease, and verified as by a hub [rs-0.1
    /// §5.2.2].
    Callback,
    /// By that form as the specification has it: nothing is verified, signed or ended.
    PlainCallback,
}
