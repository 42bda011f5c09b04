//! The sets of resources that the documents of a Source name.

use crate::read::resourcesync::entry_points::EntryPoints;
use crate::read::sets;
use crate::report::error::{Error, ExitCode};
use crate::request::admit::Refusal;

/// A set that may be the one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Its Capability List, or the document that stands for it.
    pub(crate) url: String,
    /// Where its documents are, if that was read already.
    pub(crate) entry_points: Option<Box<EntryPoints>>,
    /// The Source Description that it names.
    pub(crate) up: Option<String>,
    /// Why its Capability List is not read.
    pub(crate) refusal: Option<Refusal>,
}

impl Candidate {
    pub(crate) const fn at(url: String) -> Self {
        Self { url, entry_points: None, up: None, refusal: None }
    }

    /// A list without a Capability List: of no set that has a name.
    pub(crate) fn is_sitemap(&self) -> bool {
        self.entry_points
            .as_ref()
            .is_some_and(|entry_points| entry_points.capability_list.is_none())
    }

    /// # Errors
    /// Its Capability List is on a host that is not allowed.
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

/// Adds sets that are not there yet.
pub(crate) fn add(to: &mut Vec<Candidate>, more: Vec<Candidate>) {
    let mut known: std::collections::HashSet<String> =
        to.iter().map(|set| set.url.clone()).collect();
    to.extend(more.into_iter().filter(|set| known.insert(set.url.clone())));
}
