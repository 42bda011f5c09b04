//! Recording of the description of an entity, and imports of many descriptions.

use super::deprecation::{deprecate, deprecation};
use super::record::state_of;
use super::{Delta, RdfInput, apply, replace};
use crate::origin::rdf::description::described;
use crate::origin::rdf::error::RdfError;
use crate::origin::rdf::report::RdfReport;
use crate::origin::rdf::target::{RdfOptions, RdfTarget};
use abreast_core::contents::ContentStore;
use abreast_core::{AppendDone, Appended, Change, ChangeLog, SetId, WorkOnRequest};
use abreast_rdf::{DescriptionLimits, Entities, ReadLimits, ReadOptions, Syntax};
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

/// Longest wait for the import of another node.
const IMPORT_PATIENCE: Duration = Duration::from_secs(10);

/// An entity and its description in canonical lines; `None` for a deleted entity.
pub type Described = (String, Option<Vec<u8>>);

/// Records descriptions of single entities, or runs an import; never both at the same time.
pub struct EntityWriter {
    log: Arc<dyn ChangeLog>,
    set: SetId,
    contents: Arc<dyn ContentStore>,
    options: RdfOptions,
    /// Lock that an import holds for writing, and a change of an entity for reading.
    importing: Arc<RwLock<()>>,
    /// Imports of several nodes, of which one at a time runs.
    imports: WorkOnRequest,
}

/// Guard of a change; an import waits until the value is dropped.
pub type Changing = OwnedRwLockReadGuard<()>;

/// Input of an import of many entities.
pub enum Import {
    /// The complete state of the set.
    State(RdfInput),
    /// A difference; see [`super::apply`] for the flag.
    Delta(Delta, bool),
}

/// Error of a document that must describe an entity.
#[derive(Debug, Error)]
pub enum NotDescription {
    /// The document cannot be parsed.
    #[error(transparent)]
    Read(#[from] abreast_rdf::ReadError),
    /// The description is too large to be recorded.
    #[error(transparent)]
    TooLarge(#[from] abreast_rdf::TooLarge),
    /// The document does not contain statements about the entity.
    #[error("nothing is stated about <{0}>\n  help: DELETE the entity to remove it")]
    Nothing(String),
    /// The document contains statements about another entity.
    #[error(
        "something is stated about <{0}>, which is another entity\n  help: put each entity on its own"
    )]
    Other(String),
    /// The document contains statements about blank nodes that do not belong to the entity.
    #[error(
        "statements about blank nodes that are not part of the description: {0}\n  help: leave them out"
    )]
    Unreached(usize),
}

impl EntityWriter {
    /// Creates a writer for the entities of a set.
    pub fn new(
        log: Arc<dyn ChangeLog>,
        set: SetId,
        contents: Arc<dyn ContentStore>,
        options: &RdfOptions,
    ) -> Self {
        let (options, importing) = (options.clone(), Arc::default());
        Self { log, set, contents, options, importing, imports: WorkOnRequest::always() }
    }

    /// Shares the imports with other nodes.
    #[must_use]
    pub fn with_imports(self, imports: WorkOnRequest) -> Self {
        Self { imports, ..self }
    }

    /// Shares the lock of imports with a former value for the same set, whose changes may be
    /// unfinished.
    #[must_use]
    pub fn after(self, former: &Self) -> Self {
        Self { importing: Arc::clone(&former.importing), ..self }
    }

    /// Locks out imports. Hold the result until the change of an entity is durable.
    ///
    /// # Errors
    /// An import is running.
    pub fn change(&self) -> Result<Changing, RdfError> {
        Arc::clone(&self.importing).try_read_owned().map_err(|_| RdfError::Importing)
    }

    /// Creates an unnamed temporary file for the input of an import.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn file(&self) -> io::Result<File> {
        tempfile::tempfile_in(&self.options.sort.temporary)
    }

    /// Imports a state or a difference after pending changes are durable. A dry run only reports
    /// the changes. This method blocks.
    ///
    /// # Errors
    /// If the input is invalid or the guard holds the deletions, nothing is recorded. The log, the
    /// contents or the disk can fail after some changes were recorded.
    pub fn import(&self, import: Import, dry_run: bool) -> Result<RdfReport, RdfError> {
        let lease = self.imports.take(IMPORT_PATIENCE).ok_or(RdfError::Importing)?;
        let _importing = self.importing.blocking_write();
        let Self { log, set, contents, options, .. } = self;
        let options = RdfOptions { dry_run, lease, ..options.clone() };
        let log = options.lease.take_over(log, *set)?;
        let target = RdfTarget {
            log: &*log,
            set: *set,
            contents: &**contents,
            kept: None,
            options: &options,
        };
        let now = log.now();
        match import {
            Import::State(input) => replace(target, [Ok(input)], now),
            Import::Delta(delta, lenient) => apply(target, [Ok(delta)], lenient, now),
        }
    }

    /// Records a description in canonical lines, as returned by [`read_description`]. `done` is
    /// called when the change is durable. An unchanged description is not recorded.
    ///
    /// # Errors
    /// The description cannot be stored, the log fails, or an import is running.
    pub fn put(
        &self,
        iri: &str,
        lines: &[u8],
        idempotency_key: Option<String>,
        done: AppendDone,
    ) -> Result<(), RdfError> {
        self.record(vec![(iri.to_owned(), Some(lines.to_vec()))], idempotency_key, done)
    }

    /// Records descriptions, and a deletion for each entity without a description, in a single
    /// transaction. Unchanged entities are not recorded.
    ///
    /// # Errors
    /// A description cannot be stored, the log fails, or an import is running.
    pub fn record(
        &self,
        entities: Vec<Described>,
        idempotency_key: Option<String>,
        done: AppendDone,
    ) -> Result<(), RdfError> {
        let changing = self.change()?;
        let (mut changes, mut kept, mut unchanged) = (Vec::new(), Vec::new(), 0);
        // Deprecated entities are recorded after the entities that replace them.
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
            let id = abreast_core::contents::address_of(&lines);
            let is_known = known.is_some();
            if known.is_some_and(|known| known.state.content == Some(id)) {
                unchanged += 1;
                continue;
            }
            let content = self.contents.put_bytes(&lines)?;
            let description = described(&iri, &lines, &self.options);
            let mut state =
                state_of(&iri, &lines, self.options.digests, description, self.log.now());
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
        // One idempotency key covers all changes of the request.
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

/// Reads a document that must only describe `entity`, and returns the description in canonical
/// lines. Relative IRIs are resolved against the IRI of the entity.
///
/// # Errors
/// The document is invalid, or describes another entity.
pub fn read_description(
    iri: &str,
    syntax: Syntax,
    document: &[u8],
) -> Result<Vec<u8>, NotDescription> {
    let mut found = read_descriptions(&[iri.to_owned()], syntax, document)?;
    found.pop().and_then(|(_, lines)| lines).ok_or_else(|| NotDescription::Nothing(iri.to_owned()))
}

/// Reads a document that must only describe these entities, and returns their descriptions in
/// canonical lines. Entities without statements are omitted. Relative IRIs are resolved against the
/// first entity.
///
/// # Errors
/// The document is invalid, or describes another entity.
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
