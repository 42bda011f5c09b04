//! JSON-LD contexts by their IRI; documents name them, nothing fetches them.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The contexts that a JSON-LD document may name.
///
/// [`Contexts::bundled`], the default, has those that come with this crate:
/// `https://www.w3.org/ns/activitystreams`.
#[derive(Clone, Debug)]
pub struct Contexts {
    documents: Arc<BTreeMap<String, String>>,
}

const ACTIVITY_STREAMS: &str = include_str!("../contexts/activitystreams.jsonld");

impl Default for Contexts {
    fn default() -> Self {
        Self::bundled()
    }
}

impl Contexts {
    /// No context: documents must contain all they need.
    pub fn none() -> Self {
        Self { documents: Arc::default() }
    }

    /// The contexts of this crate.
    pub fn bundled() -> Self {
        Self::none()
            .with("https://www.w3.org/ns/activitystreams", ACTIVITY_STREAMS)
            .with("http://www.w3.org/ns/activitystreams", ACTIVITY_STREAMS)
    }

    /// Adds a context: a JSON document with `@context` in it.
    #[must_use]
    pub fn with(mut self, iri: &str, document: &str) -> Self {
        Arc::make_mut(&mut self.documents).insert(iri.to_owned(), document.to_owned());
        self
    }

    /// The document of a context.
    pub fn get(&self, iri: &str) -> Option<&str> {
        self.documents.get(iri).map(String::as_str)
    }

    /// The IRIs of the contexts at hand.
    pub fn iris(&self) -> impl Iterator<Item = &str> {
        self.documents.keys().map(String::as_str)
    }
}
