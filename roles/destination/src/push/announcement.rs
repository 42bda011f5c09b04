//! How a Source announces that changes are pushed.

use crate::push::Topic;
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
