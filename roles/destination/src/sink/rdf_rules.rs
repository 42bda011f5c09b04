//! Rules for reading descriptions in RDF, and the invalid statements that were left out.

use crate::report::error::Error;
use crate::report::options::SyncOptions;
use crate::report::reporter::Reporter;
use abreast_rdf::{Contexts, LeftOut};
use abreast_store::mirror::Mirror;
use abreast_webtypes::count;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Maximum number of places in a message.
pub(crate) const NAMED: usize = 10;

/// Rules for reading descriptions, and counts of the invalid statements.
#[derive(Debug, Default)]
pub(crate) struct RdfRules {
    /// The contexts that JSON-LD may refer to.
    pub(crate) contexts: Contexts,
    /// Statements that are not valid are left out; else the description with such a statement fails.
    leaves_out: bool,
    /// Whether the copy already lacks statements.
    has_any: bool,
    /// The number of left out statements and the first fault, by resource, from the description
    /// until the outcome is recorded.
    noted: Mutex<HashMap<String, (u64, String)>>,
}

impl RdfRules {
    pub(crate) fn new(options: &SyncOptions, mirror: &Mirror) -> Result<Self, Error> {
        Ok(Self {
            contexts: options.contexts.clone(),
            leaves_out: options.leave_out_invalid,
            has_any: mirror.left_out(0)?.places > 0,
            noted: Mutex::default(),
        })
    }

    /// A counter of left out statements for one description; `None` if invalid statements are
    /// errors.
    pub(crate) fn left_out(&self) -> Option<LeftOut> {
        self.leaves_out.then(LeftOut::default)
    }

    /// Records how many statements of a description were left out.
    pub(crate) fn described(&self, uri: &str, left_out: Option<&LeftOut>) {
        let statements = left_out.map_or(0, LeftOut::count);
        if statements > 0 || self.has_any {
            let fault = left_out.and_then(|left_out| left_out.first().into_iter().next());
            let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            noted.insert(uri.to_owned(), (statements, fault.unwrap_or_default()));
        }
    }

    /// Writes the record for a resource in the transaction with its row; returns the number of left
    /// out statements.
    pub(crate) fn keep(&self, mirror: &Mirror, uri: &str) -> Result<u64, Error> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
        let Some((statements, fault)) = noted else { return Ok(0) };
        mirror.set_left_out(uri, statements, &fault)?;
        Ok(statements)
    }
}

/// Records the left out statements of a complete snapshot, in the transaction of the comparison
/// with that snapshot.
pub(crate) fn keep_of_state(mirror: &Mirror, name: &str, left_out: &LeftOut) -> Result<(), Error> {
    let fault = left_out.first().into_iter().next().unwrap_or_default();
    Ok(mirror.set_left_out_of_state(name, left_out.count(), &fault)?)
}

/// Counts the statements that the copy lacks at the end of a run.
pub(crate) fn conclude(mirror: &Mirror, report: &mut Reporter<'_>) -> Result<(), Error> {
    if mirror.left_out(0)?.places > 0 {
        mirror.prune_left_out()?;
    }
    report.summary.invalid_statements = mirror.left_out(0)?.statements;
    Ok(())
}

/// The message about left out statements.
pub(crate) fn message(left_out: &LeftOut) -> String {
    let first = left_out.first().into_iter().next().unwrap_or_default();
    let count = count(left_out.count(), "statement");
    format!("left out, since they are not valid: {count}; the first: {first}")
}
