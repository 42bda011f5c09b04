//! The outcome of a run, and the expectations of rows.

use super::history::Versions;
use crate::copy::Reported;
use std::collections::BTreeSet;

/// The outcome of a run.
pub(crate) struct Outcome {
    pub(super) run: usize,
    pub(crate) exit: u8,
    pub(crate) reported: Vec<Reported>,
    pub(crate) kept: Versions,
    pub(super) truth: Versions,
    pub(crate) requests: Vec<String>,
}

impl Outcome {
    pub(crate) fn is_equal(&self) -> bool {
        self.kept == self.truth
    }

    pub(crate) fn describe(&self) -> String {
        let mut parts = Vec::new();
        for (entity, version) in &self.truth {
            match self.kept.get(entity) {
                None => parts.push(format!("{entity} is missing")),
                Some(kept) if kept != version => {
                    parts.push(format!("{entity} is {kept}, not {version}"));
                }
                Some(_) => {}
            }
        }
        let extra = self.kept.keys().filter(|entity| !self.truth.contains_key(entity));
        parts.extend(extra.map(|entity| format!("{entity} is extra")));
        let codes: BTreeSet<&str> = self.reported.iter().map(|it| it.code.as_str()).collect();
        let (codes, parts) = (codes.into_iter().collect::<Vec<_>>().join(", "), parts.join(", "));
        let parts = if parts.is_empty() { "the copy is right" } else { &parts };
        format!("run {}, exit {} [{codes}], {parts}", self.run, self.exit)
    }

    /// The copy equals the Source, and the run says so.
    pub(crate) fn right(self) -> Result<Self, String> {
        if self.is_equal() && self.exit == 0 {
            return Ok(self);
        }
        Err(format!("expected a right copy and exit 0: {}", self.describe()))
    }

    /// The copy equals the Source, independent of the outcome of the run.
    pub(crate) fn equal(self) -> Result<Self, String> {
        if self.is_equal() {
            return Ok(self);
        }
        Err(format!("expected a right copy: {}", self.describe()))
    }

    /// The run says that something is missing.
    pub(crate) fn named(self) -> Result<Self, String> {
        if self.exit != 0 {
            return Ok(self);
        }
        Err(format!("expected an exit code: {}", self.describe()))
    }

    /// At most so many entities and other documents were requested.
    pub(crate) fn costs(self, entities: usize, documents: usize) -> Result<Self, String> {
        let (of_entities, others) = self.requested();
        if of_entities <= entities && others <= documents {
            return Ok(self);
        }
        Err(format!(
            "expected at most {entities} requests for entities and {documents} for documents, not \
             {of_entities} and {others}: {}",
            self.describe()
        ))
    }

    /// Requests for entities and for other documents.
    fn requested(&self) -> (usize, usize) {
        let is_entity = |path: &&String| path.trim_start_matches("HEAD ").starts_with("/e/");
        let entities = self.requests.iter().filter(is_entity).count();
        (entities, self.requests.len() - entities)
    }

    /// The copy does not have an entity.
    pub(crate) fn lacks(self, entity: usize) -> Result<Self, String> {
        if self.kept.contains_key(&entity) {
            return Err(format!("entity {entity} was not deleted: {}", self.describe()));
        }
        Ok(self)
    }

    /// The copy has an entity as the Source has it.
    pub(crate) fn follows(self, entity: usize) -> Result<Self, String> {
        if self.kept.get(&entity) != self.truth.get(&entity) {
            return Err(format!("entity {entity} is not as at the Source: {}", self.describe()));
        }
        Ok(self)
    }
}
