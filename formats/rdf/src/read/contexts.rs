//! JSON-LD contexts by their IRI. Documents refer to them; contexts are never fetched.

use crate::read::term_chains::{self, Terms};
use abreast_webtypes::SyntaxError;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock};

/// The contexts that JSON-LD documents may use by their IRI.
///
/// [`Contexts::bundled`], the default, has the contexts that come with this crate:
/// `https://www.w3.org/ns/activitystreams`, `https://linked.art/ns/v1/linked-art.json` and
/// `http://iiif.io/api/presentation/2/context.json`.
#[derive(Clone, Debug)]
pub struct Contexts {
    documents: Arc<BTreeMap<String, Arc<Context>>>,
}

/// Equal if the same IRIs have the same documents.
impl PartialEq for Contexts {
    fn eq(&self, other: &Self) -> bool {
        let documents = |contexts: &Self| -> Vec<(String, String)> {
            let all = contexts.documents.iter();
            all.map(|(iri, context)| (iri.clone(), context.document.clone())).collect()
        };
        Arc::ptr_eq(&self.documents, &other.documents) || documents(self) == documents(other)
    }
}

#[derive(Debug)]
struct Context {
    document: String,
    /// Made for the first document that uses the context, since a check takes up to 1 ms.
    checked: OnceLock<Checked>,
}

#[derive(Debug)]
struct Checked {
    terms: Result<Terms, SyntaxError>,
    /// Whether the context refers to other contexts.
    has_others: bool,
}

impl Context {
    fn new(document: &str) -> Arc<Self> {
        Arc::new(Self { document: document.to_owned(), checked: OnceLock::new() })
    }

    fn checked(&self) -> &Checked {
        self.checked.get_or_init(|| {
            let mut has_others = false;
            let terms = term_chains::check(self.document.as_bytes(), &mut |_| has_others = true);
            Checked { terms, has_others }
        })
    }
}

const ACTIVITY_STREAMS: &str = include_str!("../../contexts/activitystreams.jsonld");

/// Contexts of models, by their IRIs without the scheme; see `contexts/README.md` for their
/// sources.
const MODELS: [(&str, &str); 2] = [
    ("//linked.art/ns/v1/linked-art.json", include_str!("../../contexts/linked-art.jsonld")),
    (
        "//iiif.io/api/presentation/2/context.json",
        include_str!("../../contexts/iiif-presentation-2.jsonld"),
    ),
];

/// Shared, so that each context is checked once in a process.
static OF_PROTOCOLS: LazyLock<Contexts> = LazyLock::new(|| {
    Contexts::none().with_both("//www.w3.org/ns/activitystreams", ACTIVITY_STREAMS)
});
static BUNDLED: LazyLock<Contexts> = LazyLock::new(|| {
    let with =
        |contexts: Contexts, (iri, document): (&str, &str)| contexts.with_both(iri, document);
    MODELS.into_iter().fold(Contexts::of_protocols(), with)
});

impl Default for Contexts {
    fn default() -> Self {
        Self::bundled()
    }
}

impl Contexts {
    /// An empty list: documents must contain their contexts.
    pub fn none() -> Self {
        Self { documents: Arc::default() }
    }

    /// All contexts of this crate.
    pub fn bundled() -> Self {
        BUNDLED.clone()
    }

    /// The contexts of this crate that protocols need. Documents with the context of a model, such
    /// as Linked Art, cannot be read with these.
    pub fn of_protocols() -> Self {
        OF_PROTOCOLS.clone()
    }

    /// Adds a context with its IRI in the schemes `http` and `https`.
    fn with_both(self, iri: &str, document: &str) -> Self {
        let context = Context::new(document);
        self.add(&format!("https:{iri}"), Arc::clone(&context)).add(&format!("http:{iri}"), context)
    }

    fn add(mut self, iri: &str, context: Arc<Context>) -> Self {
        Arc::make_mut(&mut self.documents).insert(iri.to_owned(), context);
        self
    }

    /// Adds a context: a JSON document with `@context`. If [`check`](Self::check) refuses it,
    /// documents with this context cannot be read.
    ///
    /// # Examples
    /// ```
    /// use abreast_rdf::{Contexts, ReadOptions, Syntax, read};
    /// use std::ops::ControlFlow;
    ///
    /// let context = r#"{"@context": {"title": "http://purl.org/dc/terms/title"}}"#;
    /// let contexts = Contexts::none().with("https://library.example/context.json", context);
    /// let document = r#"{"@context": "https://library.example/context.json",
    ///     "@id": "http://h/7", "title": "Atlas"}"#;
    /// let mut count = 0;
    /// let options = ReadOptions::default().with_contexts(contexts);
    /// read(Syntax::JsonLd, document.as_bytes(), &options, &mut |_| {
    ///     count += 1;
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(count, 1);
    /// # Ok::<(), abreast_rdf::ReadError>(())
    /// ```
    #[must_use]
    pub fn with(self, iri: &str, document: &str) -> Self {
        self.add(iri, Context::new(document))
    }

    /// Checks that a document can be used as a context.
    ///
    /// # Examples
    /// ```
    /// use abreast_rdf::Contexts;
    ///
    /// assert!(Contexts::check(r#"{"@context": {"title": "http://purl.org/dc/terms/title"}}"#).is_ok());
    /// assert!(Contexts::check("<html>not found</html>").is_err());
    /// ```
    ///
    /// # Errors
    /// It is not JSON, or it has a chain of more than 64 terms that refer to each other.
    pub fn check(document: &str) -> Result<(), SyntaxError> {
        term_chains::check(document.as_bytes(), &mut |_| {}).map(|_| ())
    }

    /// The document of a context.
    pub fn get(&self, iri: &str) -> Option<&str> {
        self.documents.get(iri).map(|context| context.document.as_str())
    }

    /// The fault of a context that cannot be used.
    pub(crate) fn fault(&self, iri: &str) -> Option<&SyntaxError> {
        self.documents.get(iri)?.checked().terms.as_ref().err()
    }

    /// The sizes of terms that a document with this context may use.
    pub(crate) fn terms(&self, iri: &str) -> Terms {
        let of = |checked: &Checked| checked.terms.clone().unwrap_or_default();
        let checked = self.documents.get(iri).map(|context| context.checked());
        if let Some(checked) = checked.filter(|checked| !checked.has_others) {
            return of(checked);
        }
        // The context may lead to any other one, for example by a relative IRI.
        let all = self.documents.values().map(|context| of(context.checked()));
        all.fold(Terms::default(), Terms::max)
    }

    /// A number that identifies the set of contexts, for all builds of the same release.
    pub fn fingerprint(&self) -> u64 {
        let mut hasher = blake3::Hasher::new();
        for (iri, context) in &*self.documents {
            for part in [iri, &context.document] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part.as_bytes());
            }
        }
        let mut number = [0; 8];
        number.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
        u64::from_le_bytes(number)
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

    #[test]
    fn bundled_contexts_can_be_used_and_are_small() {
        let contexts = Contexts::bundled();
        assert_eq!(contexts.iris().count(), 6);
        for iri in contexts.iris() {
            assert!(contexts.fault(iri).is_none(), "{iri}");
            assert!(contexts.get(iri).is_some_and(|document| document.len() < 128 << 10), "{iri}");
        }
    }
}
