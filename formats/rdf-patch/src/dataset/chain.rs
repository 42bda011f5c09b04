//! Chains of patches, in which each patch has the identifier of its predecessor.

use crate::syntax::header::{Header, ID, PREV};
use oxrdf::Term;

/// A log of patches, of which only the last one is known.
///
/// ```
/// use rdf_patch::{Chain, Header};
/// use oxrdf::NamedNode;
///
/// let mut chain = Chain::default();
/// let (first, second) = (NamedNode::new("uuid:1")?, NamedNode::new("uuid:2")?);
/// chain.append(&Header::new(first.clone(), None))?;
/// chain.append(&Header::new(second.clone(), Some(first.clone())))?;
/// assert_eq!(chain.head(), Some("uuid:2"));
/// let late = chain.append(&Header::new(NamedNode::new("uuid:3")?, Some(first))).unwrap_err();
/// assert_eq!(late.to_string(), "`H prev` is <uuid:1>, and the last patch is <uuid:2>");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    head: Option<String>,
}

/// Why a patch does not continue a chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// The patch has no `H id`, or the value is not an IRI.
    #[error("the patch has no `H id` with an IRI")]
    NoId,
    /// `H prev` is not an IRI.
    #[error("`H prev` is not an IRI")]
    PrevTerm,
    /// There are two rows of this word.
    #[error("the patch has more than one `H {0}`")]
    Twice(&'static str),
    /// The patch is its own predecessor.
    #[error("`H id` and `H prev` are both <{0}>")]
    Itself(String),
    /// The patch follows another one than the last.
    #[error("{}, and {}", named(.prev.as_deref()), last(.head.as_deref()))]
    Prev {
        /// Value of `H prev` in the patch.
        prev: Option<String>,
        /// The last patch of the chain.
        head: Option<String>,
    },
}

fn named(prev: Option<&str>) -> String {
    prev.map_or("there is no `H prev`".to_owned(), |prev| format!("`H prev` is <{prev}>"))
}

fn last(head: Option<&str>) -> String {
    head.map_or("there is no patch before it".to_owned(), |head| {
        format!("the last patch is <{head}>")
    })
}

impl Chain {
    /// The chain that ends with this patch; `None` for an empty one.
    pub fn new(head: Option<String>) -> Self {
        Self { head }
    }

    /// The identifier of the last patch.
    pub fn head(&self) -> Option<&str> {
        self.head.as_deref()
    }

    /// Continues the chain with a patch.
    ///
    /// # Errors
    /// - The header has not exactly one `id`, or more than one `prev`, or they are not IRIs.
    /// - `prev` is not the last patch of the chain.
    pub fn append(&mut self, header: &Header) -> Result<(), ChainError> {
        for word in [ID, PREV] {
            if header.rows().iter().filter(|(known, _)| known == word).count() > 1 {
                return Err(ChainError::Twice(word));
            }
        }
        let id = header.id().ok_or(ChainError::NoId)?;
        if header.get(PREV).is_some_and(|prev| !matches!(prev, Term::NamedNode(_))) {
            return Err(ChainError::PrevTerm);
        }
        let prev = header.prev();
        if prev == Some(id) {
            return Err(ChainError::Itself(id.to_owned()));
        }
        if prev != self.head() {
            let prev = prev.map(str::to_owned);
            return Err(ChainError::Prev { prev, head: self.head.clone() });
        }
        self.head = Some(id.to_owned());
        Ok(())
    }
}
