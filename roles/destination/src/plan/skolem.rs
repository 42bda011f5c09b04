//! IRIs that replace blank nodes [rdf11-concepts §3.5]: whether a Source uses them for parts of
//! descriptions or for separate resources.
//!
//! A file with all descriptions does not show the difference. They are treated as parts of the
//! descriptions that refer to them, unless the copy already has such resources. The Source shows
//! the difference later, if it lists such an IRI as a resource, or describes an entity without the
//! statements about its parts. From then on they are resources, and the next run compares the copy
//! with all resources of the Source.

use crate::plan::planner::PlanContext;
use crate::report::error::Error;
use abreast_rdf::{is_skolem_iri, loose_skolem};
use abreast_store::mirror::Mirror;
use std::sync::atomic::{AtomicBool, Ordering};

/// Key of the use of these IRIs in the database; the next three are its values.
const KEY: &str = "skolem-iris";
/// The descriptions in the copy contain parts.
const PARTS: &str = "parts";
/// The IRIs are resources, and the copy has not been compared since this was detected.
const COMPARE: &str = "compare";
/// The IRIs are resources, and the copy was compared.
const RESOURCES: &str = "resources";
/// Part of the URI of a resource that replaces a blank node.
const PATH: &str = "/.well-known/genid/";

/// Whether these IRIs are resources in the Source of a copy.
pub(crate) fn are_resources(mirror: &Mirror) -> Result<bool, Error> {
    match mirror.meta(KEY)? {
        Some(known) => Ok(known != PARTS),
        None => Ok(mirror.has_uri_with(PATH)?),
    }
}

/// Whether the copy has to be compared with all that the Source has.
pub(crate) fn wants_comparison(mirror: &Mirror) -> Result<bool, Error> {
    Ok(mirror.meta(KEY)?.as_deref() == Some(COMPARE))
}

/// Records a comparison of the copy with descriptions that have `parts` parts, in the transaction
/// of the comparison.
pub(crate) fn keep(mirror: &Mirror, parts: u64) -> Result<(), Error> {
    if wants_comparison(mirror)? {
        mirror.set_meta(KEY, Some(RESOURCES))?;
    } else if parts > 0 {
        mirror.set_meta(KEY, Some(PARTS))?;
    }
    Ok(())
}

/// Evidence from responses of the Source, for a copy whose descriptions have parts.
#[derive(Debug, Default)]
pub(crate) struct Evidence {
    /// Whether the descriptions contain parts; otherwise there is nothing to detect.
    has_parts: bool,
    are_resources: AtomicBool,
}

impl Evidence {
    /// For a run on this copy.
    pub(crate) fn new(mirror: &Mirror) -> Result<Self, Error> {
        let has_parts = mirror.meta(KEY)?.as_deref() == Some(PARTS);
        Ok(Self { has_parts, are_resources: AtomicBool::new(false) })
    }

    /// Takes the description of a resource that the Source lists.
    pub(crate) fn described(&self, uri: &str, lines: &[u8]) {
        if self.has_parts && (is_skolem_iri(uri) || loose_skolem(lines).is_some()) {
            self.are_resources.store(true, Ordering::Relaxed);
        }
    }

    /// Stores the result for the next run, and reports it.
    pub(crate) fn conclude(&self, run: &mut PlanContext<'_, '_>) -> Result<(), Error> {
        if !self.are_resources.load(Ordering::Relaxed) {
            return Ok(());
        }
        run.planner.mirror.set_meta(KEY, Some(COMPARE))?;
        let message = format!(
            "IRIs with `{PATH}` are resources of their own here; the copy has their statements in the descriptions of \
             others, and may lack some of them\n  help: run again: the next run compares with all that the Source has"
        );
        run.report.list_failed("rdf.skolem", &run.planner.options.url, &message);
        Ok(())
    }
}
