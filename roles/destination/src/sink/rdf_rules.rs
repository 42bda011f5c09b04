//! How descriptions in RDF are read, and the statements of them that were left out.

use crate::report::error::Error;
use crate::report::options::SyncOptions;
use crate::report::reporter::Reporter;
use abreast_rdf::{Contexts, LeftOut};
use abreast_store::mirror::Mirror;
use abreast_webtypes::count;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Places that are named where there are more.
pub(crate) const NAMED: usize = 10;

/// How descriptions are read.
#[derive(Debug, Default)]
pub(crate) struct RdfRules {
    /// The contexts that JSON-LD may name.
    pub(crate) contexts: Contexts,
    /// Statements that are not valid are left out; else the description with such a statement fails.
    leaves_out: bool,
    /// The copy lacks statements already.
    has_any: bool,
    /// By resource, from its description until its outcome is kept: how many statements were left out, and the first fault.
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

    /// Where the statements of one description are counted that are left out.
    pub(crate) fn left_out(&self) -> Option<LeftOut> {
        self.leaves_out.then(LeftOut::default)
    }

    /// Notes how much of the description of a resource was left out.
    pub(crate) fn described(&self, uri: &str, left_out: Option<&LeftOut>) {
        let statements = left_out.map_or(0, LeftOut::count);
        if statements > 0 || self.has_any {
            let fault = left_out.and_then(|left_out| left_out.first().into_iter().next());
            let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            noted.insert(uri.to_owned(), (statements, fault.unwrap_or_default()));
        }
    }

    /// Keeps what was noted of a resource, in the transaction of its row; how many statements were left out.
    pub(crate) fn keep(&self, mirror: &Mirror, uri: &str) -> Result<u64, Error> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner).remove(uri);
        let Some((statements, fault)) = noted else { return Ok(0) };
        mirror.set_left_out(uri, statements, &fault)?;
        Ok(statements)
    }
}

/// Keeps what was left out of a complete state, in the transaction of the comparison with it.
pub(crate) fn keep_of_state(mirror: &Mirror, name: &str, left_out: &LeftOut) -> Result<(), Error> {
    let fault = left_out.first().into_iter().next().unwrap_or_default();
    Ok(mirror.set_left_out_of_state(name, left_out.count(), &fault)?)
}

/// Counts what the copy lacks at the end of a run.
pub(crate) fn conclude(mirror: &Mirror, report: &mut Reporter<'_>) -> Result<(), Error> {
    if mirror.left_out(0)?.places > 0 {
        mirror.prune_left_out()?;
    }
    report.summary.invalid_statements = mirror.left_out(0)?.statements;
    Ok(())
}

/// What is reported about statements that were left out.
pub(crate) fn message(left_out: &LeftOut) -> String {
    let first = left_out.first().into_iter().next().unwrap_or_default();
    let count = count(left_out.count(), "statement");
    format!("left out, since they are not valid: {count}; the first: {first}")
}
