//! Topic and hubs in the links of a header, feed or page [websub §4].

use abreast_webtypes::{LinkHeaderError, ResolveError, resolve};
use thiserror::Error;

/// Most hubs that one topic may have.
pub const MAX_HUBS: usize = 16;

/// Where hubs and topic were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiscoverySource {
    /// The `Link` headers of the answer.
    Header,
    /// `<link>` of an Atom or RSS feed.
    Feed,
    /// `<link>` in the head of a web page.
    Page,
}

/// A topic and its hubs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovered {
    /// URL to subscribe to: the link `rel="self"`, whether or not this URL was fetched.
    pub topic: String,
    /// At least one hub, in the topic's order and without repetition.
    pub hubs: Vec<String>,
    /// Place of the links in the answer.
    pub place: DiscoverySource,
}

/// Why the hubs of a topic are unknown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// Neither the headers nor the content link to a hub.
    #[error(
        "no hub is named, neither in `Link` headers nor in the content\n  help: it cannot be subscribed to; poll it"
    )]
    NoHub,
    /// A hub, and no topic.
    #[error("a hub is named, but no topic: no link has rel=\"self\"")]
    NoTopic,
    /// Several topics in one place.
    #[error("several links with rel=\"self\" name different topics: `{0}` and `{1}`")]
    Topics(String, String),
    /// The topic has more hubs than [`MAX_HUBS`].
    #[error("more than {MAX_HUBS} hubs are named")]
    Hubs,
    /// The `Link` headers cannot be read.
    #[error(transparent)]
    Header(#[from] LinkHeaderError),
    /// The target of a link cannot be resolved.
    #[error("a link leads nowhere: {0}")]
    Link(#[from] ResolveError),
}

/// Links found in one place so far.
#[derive(Debug, Default)]
pub(super) struct HubLinks {
    topic: Option<String>,
    hubs: Vec<String>,
}

impl HubLinks {
    /// Records a hub or topic. Links with other relations are ignored, including unusable targets.
    pub(super) fn add(&mut self, base: &str, rel: &str, target: &str) -> Result<(), DiscoverError> {
        let has = |rel_wanted: &str| {
            rel.split_ascii_whitespace().any(|rel| rel.eq_ignore_ascii_case(rel_wanted))
        };
        if has("self") {
            let topic = resolve(base, target)?;
            match &self.topic {
                Some(known) if *known != topic => {
                    let cut = abreast_webtypes::excerpt;
                    return Err(DiscoverError::Topics(cut(known), cut(&topic)));
                }
                _ => self.topic = Some(topic),
            }
        }
        if has("hub") {
            let hub = resolve(base, target)?;
            if !self.hubs.contains(&hub) {
                if self.hubs.len() == MAX_HUBS {
                    return Err(DiscoverError::Hubs);
                }
                self.hubs.push(hub);
            }
        }
        Ok(())
    }

    /// `None` without a hub: another place then decides.
    pub(super) fn finish(
        self,
        place: DiscoverySource,
    ) -> Result<Option<Discovered>, DiscoverError> {
        match (self.topic, self.hubs) {
            (_, hubs) if hubs.is_empty() => Ok(None),
            (None, _) => Err(DiscoverError::NoTopic),
            (Some(topic), hubs) => Ok(Some(Discovered { topic, hubs, place })),
        }
    }
}
