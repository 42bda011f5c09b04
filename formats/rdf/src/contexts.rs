//! JSON-LD contexts by their IRI; documents name them, nothing fetches them.

use crate::term_chains::{self, Terms};
use abreast_webtypes::SyntaxError;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// The contexts that a JSON-LD document may name.
///
/// [`Contexts::bundled`], the default, has those that come with this crate:
/// `https://www.w3.org/ns/activitystreams`.
#[derive(Clone, Debug)]
pub struct Contexts {
    documents: Arc<BTreeMap<String, Context>>,
}

#[derive(Clone, Debug)]
struct Context {
    document: String,
    terms: Result<Terms, SyntaxError>,
    /// It names other contexts.
    has_others: bool,
}

const ACTIVITY_STREAMS: &str = include_str!("../contexts/activitystreams.jsonld");

/// Checked once: each reader of a document begins with them.
static BUNDLED: LazyLock<Contexts> = LazyLock::new(|| {
    Contexts::none()
        .with("https://www.w3.org/ns/activitystreams", ACTIVITY_STREAMS)
        .with("http://www.w3.org/ns/activitystreams", ACTIVITY_STREAMS)
});

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
        BUNDLED.clone()
    }

    /// Adds a context: a JSON document with `@context` in it. One that [`check`](Self::check) refuses makes the
    /// documents that use it errors.
    #[must_use]
    pub fn with(mut self, iri: &str, document: &str) -> Self {
        let mut has_others = false;
        let terms = term_chains::check(document.as_bytes(), &mut |_| has_others = true);
        let context = Context { document: document.to_owned(), terms, has_others };
        Arc::make_mut(&mut self.documents).insert(iri.to_owned(), context);
        self
    }

    /// Checks a context.
    ///
    /// # Errors
    /// It is not JSON, or its terms refer to each other over more than 64 terms.
    pub fn check(document: &str) -> Result<(), SyntaxError> {
        term_chains::check(document.as_bytes(), &mut |_| {}).map(|_| ())
    }

    /// The document of a context.
    pub fn get(&self, iri: &str) -> Option<&str> {
        self.documents.get(iri).map(|context| context.document.as_str())
    }

    /// Why a context cannot be used, if it is one of these.
    pub(crate) fn fault(&self, iri: &str) -> Option<&SyntaxError> {
        self.documents.get(iri)?.terms.as_ref().err()
    }

    /// How large the terms are that a document may use which names this context.
    pub(crate) fn terms(&self, iri: &str) -> Terms {
        let of = |context: &Context| context.terms.clone().unwrap_or_default();
        match self.documents.get(iri).filter(|context| !context.has_others) {
            Some(context) => of(context),
            // It leads to any of them: by a relative IRI, for example.
            None => self.documents.values().map(of).fold(Terms::default(), Terms::max),
        }
    }

    /// The IRIs of the contexts.
    pub fn iris(&self) -> impl Iterator<Item = &str> {
        self.documents.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_contexts_are_checked_once() {
        let (first, second) = (Contexts::bundled(), Contexts::default());
        assert!(Arc::ptr_eq(&first.documents, &second.documents));
    }
}
