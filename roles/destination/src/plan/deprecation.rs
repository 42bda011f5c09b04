//! Deprecated resources whose replacements are in their descriptions, and not in the feed.
//!
//! Such resources are reported after their descriptions were received. The database contains them
//! until then, so that the next run reports the resources of a killed run.

use crate::report::error::Error;
use crate::sink::rdf::replaced::replacements;
use abreast_store::mirror::Mirror;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Deprecated resources that wait for their descriptions; others are reported without.
const WAITING_MAX: usize = 100_000;

/// Deprecated resources of a run, shared by its threads.
#[derive(Debug, Default)]
pub(crate) struct Deprecations {
    predicates: Vec<String>,
    /// Waiting resources, with the replacements after the description was received.
    waiting: Mutex<BTreeMap<String, Option<Vec<String>>>>,
}

impl Deprecations {
    /// Includes resources that an earlier run did not report.
    pub(crate) fn open(predicates: &[String], mirror: &Mirror) -> Result<Self, Error> {
        let before = mirror.deprecations(WAITING_MAX)?;
        let waiting = Mutex::new(before.into_iter().map(|uri| (uri, None)).collect());
        Ok(Self { predicates: predicates.to_vec(), waiting })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Option<Vec<String>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the description of a resource, in the transaction of its plan; `false` when it is
    /// to be reported at once.
    pub(crate) fn wait_for(&self, uri: &str, mirror: &Mirror) -> Result<bool, Error> {
        let mut waiting = self.lock();
        let has_room = waiting.len() < WAITING_MAX && !self.predicates.is_empty();
        if has_room {
            mirror.put_deprecation(uri)?;
            waiting.insert(uri.to_owned(), None);
        }
        Ok(has_room)
    }

    pub(crate) fn is_waiting_for(&self, uri: &str) -> bool {
        self.lock().contains_key(uri)
    }

    /// Adds the replacements in the description of a waiting resource, which was received or is
    /// already stored.
    pub(crate) fn described(&self, uri: &str, lines: &[u8]) {
        if let Some(replaced_by) = self.lock().get_mut(uri) {
            *replaced_by = Some(replacements(&self.predicates, uri, lines));
        }
    }

    /// What to use instead of a resource with this description, the best first.
    pub(crate) fn replacements(&self, uri: &str, lines: &[u8]) -> Vec<String> {
        replacements(&self.predicates, uri, lines)
    }

    /// Returns and removes the waiting resources. Received descriptions yield the replacements, the
    /// best first.
    pub(crate) fn take(&self) -> BTreeMap<String, Option<Vec<String>>> {
        std::mem::take(&mut self.lock())
    }
}

/// The notice about a deprecated resource.
pub(crate) fn message(replaced_by: &[String]) -> String {
    match replaced_by {
        [] => "the Source deprecates it; the copy is kept".to_owned(),
        others => format!(
            "the Source deprecates it; the copy is kept\n  help: use {} instead",
            others.join(" or ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::options::REPLACED_BY;

    #[test]
    fn replacements_are_those_of_the_first_property() {
        let mirror = Mirror::scratch().unwrap();
        let known = Deprecations::open(&REPLACED_BY.map(str::to_owned), &mirror).unwrap();
        let uri = "http://h/a";
        let of = |lines: &str| {
            assert!(known.wait_for(uri, &mirror).unwrap());
            known.described(uri, lines.as_bytes());
            known.take().remove(uri).unwrap().unwrap()
        };
        let exact =
            "<http://h/a> <http://www.w3.org/2004/02/skos/core#exactMatch> <http://h/m> .\n";
        assert_eq!(of(exact), ["http://h/m"]);
        let stated = "<http://h/a> <http://purl.org/dc/terms/isReplacedBy> <http://h/b> .\n\
            <http://h/a> <http://purl.org/dc/terms/isReplacedBy> <http://h/a> .\n\
            <http://h/a> <http://purl.org/dc/terms/isReplacedBy> <http://h/c> .\n\
            <http://h/a> <http://purl.org/dc/terms/isReplacedBy> \"text\" .\n\
            <http://h/x> <http://purl.org/dc/terms/isReplacedBy> <http://h/y> .\n";
        assert_eq!(of(&format!("{stated}{exact}")), ["http://h/b", "http://h/c"]);
        assert_eq!(of("<http://h/a> <http://h/p> <http://h/b> .\n"), [""; 0]);
        // Nobody waits for it any more.
        known.described(uri, stated.as_bytes());
        assert!(known.take().is_empty());
        // Not reported yet, as far as the state knows.
        let next = Deprecations::open(&[], &mirror).unwrap();
        assert!(next.is_waiting_for(uri) && !next.wait_for("http://h/b", &mirror).unwrap());
        assert_eq!(next.take(), BTreeMap::from([(uri.to_owned(), None)]));
    }
}
