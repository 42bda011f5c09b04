//! Recording of a plan. Descriptions are stored and durable before the log refers to them.

use super::deprecation::{deprecate, deprecation};
use super::plan::{Plan, PlanWriter, Step};
use crate::DigestPolicy;
use crate::origin::rdf::description::described;
use crate::origin::rdf::error::RdfError;
use crate::origin::rdf::target::{MEDIA_TYPE, RdfTarget};
use crate::scan::appends::{AppendCounts, Appends};
use abreast_core::contents::PinnedContent;
use abreast_core::{Action, Change, Description, State};
use abreast_webtypes::{Algorithm, Digests, Link, Timestamp};
use md5::{Digest as _, Md5};
use sha2::Sha256;
use std::fmt::Write as _;

/// Most changes in a transaction, and the most bytes of their descriptions.
const BATCH: usize = 2_000;
const BATCH_BYTES: usize = 8 << 20;

/// Returns the state of an entity with this description.
pub(super) fn state_of(
    iri: &str,
    lines: &[u8],
    digests: DigestPolicy,
    description: Description,
    modified: Timestamp,
) -> State {
    let mut found = Digests::default();
    if digests.md5() {
        found.set(Algorithm::Md5, &Md5::digest(lines));
    }
    if digests.sha256() {
        found.set(Algorithm::Sha256, &Sha256::digest(lines));
    }
    State {
        modified,
        length: Some(lines.len() as u64),
        media_type: Some(MEDIA_TYPE.to_owned()),
        digests: found,
        links: vec![Link { rel: "describes".to_owned(), target: uri_of(iri), params: Vec::new() }],
        description: Some(Box::new(description)),
        ..State::default()
    }
}

/// Converts an IRI to a URI, by encoding all characters outside ASCII [rfc3987 §3.1].
fn uri_of(iri: &str) -> String {
    let mut uri = String::with_capacity(iri.len());
    for byte in iri.bytes() {
        if byte.is_ascii() {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

/// Changes that are recorded in one transaction.
#[derive(Default)]
struct Batch {
    changes: Vec<Change>,
    kept: Vec<PinnedContent>,
    refreshed: Vec<(String, Vec<u8>)>,
    bytes: usize,
}

impl Batch {
    /// Stores the description of an entity, and returns the new state of the entity.
    fn keep(
        &mut self,
        target: RdfTarget<'_>,
        iri: &str,
        lines: &[u8],
        modified: Timestamp,
    ) -> Result<State, RdfError> {
        let kept = target.contents.put_bytes(lines)?;
        let description = described(iri, lines, target.options);
        let mut state = state_of(iri, lines, target.options.digests, description, modified);
        state.content = Some(kept.id());
        self.bytes += lines.len();
        self.kept.push(kept);
        Ok(state)
    }

    fn is_full(&self) -> bool {
        self.changes.len() + self.refreshed.len() >= BATCH || self.bytes >= BATCH_BYTES
    }
}

/// Records a plan, without its deletions if the guard holds them. After a failure, the changes that
/// are already recorded are correct, and the next comparison finds the rest. Deprecated entities
/// are recorded last, after the entities that replace them.
///
/// # Errors
/// The log or the store of contents fails.
pub(in crate::origin) fn record(
    target: RdfTarget<'_>,
    mut plan: Plan,
    are_deletions_held: bool,
    modified: Timestamp,
) -> Result<AppendCounts, RdfError> {
    if target.options.dry_run {
        return Ok(AppendCounts::default());
    }
    let first = target.log.head(target.set)?.position.0 == 0;
    let (appends, mut batch) = (Appends::default(), Batch::default());
    let mut deprecated = PlanWriter::new(&target.options.sort.temporary)?;
    let mut is_open = true;
    while is_open && let Some(planned) = plan.read()? {
        match planned.step {
            Step::Delete if are_deletions_held => {}
            Step::Delete => batch.changes.push(Change::delete(planned.iri)),
            Step::Refresh(witness) => batch.refreshed.push((planned.iri, witness)),
            Step::Put { lines, witness } if deprecation(&planned.iri, &lines).is_some() => {
                deprecated.put(&planned.iri, &lines, &witness)?;
            }
            Step::Put { lines, witness } => {
                let state = batch.keep(target, &planned.iri, &lines, modified)?;
                // Entities in the initial state of a set existed before the set.
                let action = if first {
                    Action::Add { state, witness }
                } else {
                    Action::Put { state, witness }
                };
                batch.changes.push(Change::new(planned.iri, action));
            }
        }
        is_open = !batch.is_full() || flush(target, &appends, &mut batch)?;
    }
    let mut plan = deprecated.finish()?;
    while is_open && let Some(planned) = plan.read()? {
        let (iri, Step::Put { lines, witness }) = (planned.iri, planned.step) else { continue };
        let Some(stated) = deprecation(&iri, &lines) else { continue };
        let is_known = target.log.resource(target.set, &iri)?.is_some();
        let state = batch.keep(target, &iri, &lines, modified)?;
        deprecate(iri, (state, witness), stated, (is_known, first), &mut batch.changes);
        is_open = !batch.is_full() || flush(target, &appends, &mut batch)?;
    }
    if is_open {
        flush(target, &appends, &mut batch)?;
    }
    Ok(appends.finish()?)
}

/// Appends a batch to the log. Returns false if an earlier append failed.
fn flush(target: RdfTarget<'_>, appends: &Appends, batch: &mut Batch) -> Result<bool, RdfError> {
    target.options.sort.check_stop()?;
    target.options.lease.check()?;
    let Batch { changes, kept, refreshed, .. } = std::mem::take(batch);
    if !refreshed.is_empty() {
        target.log.refresh_witnesses(target.set, refreshed)?;
    }
    if changes.is_empty() {
        return Ok(true);
    }
    if !kept.is_empty() {
        target.contents.sync()?;
    }
    if !appends.take_place() {
        return Ok(false);
    }
    appends.append(target.log, target.set, changes, kept);
    Ok(true)
}
