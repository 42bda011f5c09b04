//! The sets of resources in the documents of a Source.

use crate::read::resourcesync::entry_points::EntryPoints;
use crate::read::sets;
use crate::report::error::{Error, ExitCode};
use crate::request::admit::Refusal;

/// A set that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// The Capability List of the set, or the document that replaces it.
    pub(crate) url: String,
    /// The documents of the set, if its Capability List was already read.
    pub(crate) entry_points: Option<Box<EntryPoints>>,
    /// The Source Description to which the document links.
    pub(crate) up: Option<String>,
    /// The reason why the Capability List must not be read.
    pub(crate) refusal: Option<Refusal>,
}

impl Candidate {
    pub(crate) const fn at(url: String) -> Self {
        Self { url, entry_points: None, up: None, refusal: None }
    }

    /// Whether the candidate is a list without a Capability List, so that its set is nameless.
    pub(crate) fn is_sitemap(&self) -> bool {
        self.entry_points
            .as_ref()
            .is_some_and(|entry_points| entry_points.capability_list.is_none())
    }

    /// # Errors
    /// The Capability List is on a host that is not allowed.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.refusal {
            None => Ok(()),
            Some(refusal) => {
                let message =
                    format!("cannot read the Capability List {}: {}", self.url, refusal.message());
                Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message))
            }
        }
    }
}

impl sets::Candidate for Candidate {
    fn url(&self) -> &str {
        &self.url
    }

    fn is_nameless(&self) -> bool {
        self.is_sitemap()
    }
}

/// Adds sets that are not in the list yet.
pub(crate) fn add(to: &mut Vec<Candidate>, more: Vec<Candidate>) {
    let mut known: std::collections::HashSet<String> =
        to.iter().map(|set| set.url.clone()).collect();
    to.extend(more.into_iter().filter(|set| known.insert(set.url.clone())));
}
