//! Records the description of one entity, or imports many.

use super::deprecation::{deprecate, deprecation};
use super::record::state_of;
use super::{Delta, RdfInput, apply, replace};
use crate::origin::rdf::error::RdfError;
use crate::origin::rdf::report::RdfReport;
use crate::origin::rdf::target::{RdfOptions, RdfTarget};
use abreast_contents::Contents;
use abreast_core::{AppendDone, Appended, Change, ChangeLog, Clock as _, SetId, SystemClock};
use abreast_rdf::{DescriptionLimits, Entities, ReadLimits, ReadOptions, Syntax};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use thiserror::Error;
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

/// An entity and its description in canonical lines; nothing where it is gone.
pub type Described = (String, Option<Vec<u8>>);

/// Records descriptions of entities one at a time, or imports many; not both at once.
pub struct EntityWriter {
    log: Arc<dyn ChangeLog>,
    set: SetId,
    contents: Contents,
    options: RdfOptions,
    /// Held for writing by an import.
    importing: Arc<RwLock<()>>,
}

/// No import begins while this is held.
pub type Changing = OwnedRwLockReadGuard<()>;

/// What is imported.
pub enum Import {
    /// The complete state.
    State(RdfInput),
    /// A difference; see [`super::apply`].
    Delta(Delta, bool),
}

/// A document that does not describe one entity.
#[derive(Debug, Error)]
pub enum NotDescription {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] abreast_rdf::ReadError),
    /// The description is too large.
    #[error(transparent)]
    TooLarge(#[from] abreast_rdf::TooLarge),
    /// Nothing is stated about the entity.
    #[error("nothing is stated about <{0}>\n  help: DELETE the entity to remove it")]
    Nothing(String),
    /// Something is stated about another entity.
    #[error(
        "something is stated about <{0}>, which is another entity\n  help: put each entity on its own"
    )]
    Other(String),
    /// Statements about blank nodes that the entity does not reach.
    #[error(
        "statements about blank nodes that are not part of the description: {0}\n  help: leave them out"
    )]
    Unreached(usize),
}

impl EntityWriter {
    /// A writer for a set.
    pub fn new(
        log: Arc<dyn ChangeLog>,
        set: SetId,
        contents: Contents,
        options: &RdfOptions,
    ) -> Self {
        Self { log, set, contents, options: options.clone(), importing: Arc::default() }
    }

    /// To be held until a change of one entity is durable.
    ///
    /// # Errors
    /// An import is running.
    pub fn change(&self) -> Result<Changing, RdfError> {
        Arc::clone(&self.importing).try_read_owned().map_err(|_| RdfError::Importing)
    }

    /// An unnamed file for what is imported.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn file(&self) -> io::Result<File> {
        tempfile::tempfile_in(&self.options.sort.temporary)
    }

    /// Imports a state or a difference, once other changes are durable; a dry run only reports what
    /// would change. It blocks.
    ///
    /// # Errors
    /// The input is wrong, or too much would be deleted: nothing is recorded then. Or the log, the
    /// contents or the disk fail.
    pub fn import(&self, import: Import, dry_run: bool) -> Result<RdfReport, RdfError> {
        let _importing = self.importing.blocking_write();
        let Self { log, set, contents, options, .. } = self;
        let options = RdfOptions { dry_run, ..options.clone() };
        let target = RdfTarget { log: &**log, set: *set, contents, kept: None, options: &options };
        let now = SystemClock.now();
        match import {
            Import::State(input) => replace(target, [Ok(input)], now),
            Import::Delta(delta, lenient) => apply(target, [Ok(delta)], lenient, now),
        }
    }

    /// Records a description in canonical lines, as [`read_description`] makes them; `done` is
    /// called when it is durable. The description that the entity has records nothing.
    ///
    /// # Errors
    /// The description cannot be kept, the log fails, or an import is running.
    pub fn put(
        &self,
        iri: &str,
        lines: &[u8],
        idempotency_key: Option<String>,
        done: AppendDone,
    ) -> Result<(), RdfError> {
        self.record(vec![(iri.to_owned(), Some(lines.to_vec()))], idempotency_key, done)
    }

    /// Records descriptions, and deletions where there is none: all or nothing. What is so already is
    /// not recorded.
    ///
    /// # Errors
    /// A description cannot be kept, the log fails, or an import is running.
    pub fn record(
        &self,
        entities: Vec<Described>,
        idempotency_key: Option<String>,
        done: AppendDone,
    ) -> Result<(), RdfError> {
        let changing = self.change()?;
        let (mut changes, mut kept, mut unchanged) = (Vec::new(), Vec::new(), 0);
        // After the entities that replace them.
        let mut deprecated = Vec::new();
        for (iri, lines) in entities {
            let known = self.log.resource(self.set, &iri)?;
            let Some(lines) = lines else {
                if known.is_some() {
                    changes.push(Change::delete(iri));
                } else {
                    unchanged += 1;
                }
                continue;
            };
            let id = abreast_contents::address_of(&lines);
            let is_known = known.is_some();
            if known.is_some_and(|known| known.state.content == Some(id)) {
                unchanged += 1;
                continue;
            }
            let content = self.contents.put_bytes(&lines)?;
            let description = self.options.descriptions.summary(&iri, &lines);
            let mut state =
                state_of(&iri, &lines, self.options.digests, description, SystemClock.now());
            state.content = Some(content.id());
            kept.push(content);
            match deprecation(&iri, &lines) {
                Some(stated) => {
                    let witnessed = (state, Vec::new());
                    deprecate(iri, witnessed, stated, (is_known, false), &mut deprecated);
                }
                None => changes.push(Change::put(iri, state)),
            }
        }
        changes.append(&mut deprecated);
        if changes.is_empty() {
            let head = self.log.head(self.set)?.position;
            done(Ok(Appended { head, recorded: 0, unchanged }));
            return Ok(());
        }
        if !kept.is_empty() {
            self.contents.sync()?;
        }
        // One name stands for all of them.
        changes[0].idempotency_key = idempotency_key;
        let done = Box::new(move |result: Result<Appended, _>| {
            drop((kept, changing));
            done(result.map(|appended| Appended {
                unchanged: appended.unchanged + unchanged,
                ..appended
            }));
        });
        self.log.append_then(self.set, changes, done);
        Ok(())
    }
}

/// Reads a document that describes one entity, and nothing else: its description in canonical
/// lines. Relative IRIs are resolved against the entity's.
///
/// # Errors
/// The document is wrong, or describes something else.
pub fn read_description(
    iri: &str,
    syntax: Syntax,
    document: &[u8],
) -> Result<Vec<u8>, NotDescription> {
    let mut found = read_descriptions(&[iri.to_owned()], syntax, document)?;
    found.pop().and_then(|(_, lines)| lines).ok_or_else(|| NotDescription::Nothing(iri.to_owned()))
}

/// Reads a document that describes these entities, and nothing else: their descriptions in canonical
/// lines, none of those about which nothing is stated. Relative IRIs are resolved against the first.
///
/// # Errors
/// The document is wrong, or describes something else.
pub fn read_descriptions(
    iris: &[String],
    syntax: Syntax,
    document: &[u8],
) -> Result<Vec<Described>, NotDescription> {
    let mut entities = Entities::default();
    let mut options = ReadOptions::default().with_limits(ReadLimits::in_memory());
    if let Some(first) = iris.first() {
        options = options.with_base(first);
    }
    abreast_rdf::read(syntax, document, &options, &mut |quad| {
        entities.add(quad.into());
        ControlFlow::Continue(())
    })?;
    let mut described: HashMap<&str, Option<Vec<u8>>> =
        iris.iter().map(|iri| (iri.as_str(), None)).collect();
    for description in entities.descriptions(DescriptionLimits::default()) {
        let description = description?;
        match described.get_mut(description.entity.as_str()) {
            Some(lines) => *lines = Some(description.canonical.lines),
            None => return Err(NotDescription::Other(description.entity)),
        }
    }
    if entities.findings().unreached_count > 0 {
        return Err(NotDescription::Unreached(entities.findings().unreached_count));
    }
    Ok(iris.iter().map(|iri| (iri.clone(), described.remove(iri.as_str()).flatten())).collect())
}
