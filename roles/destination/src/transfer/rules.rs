//! The rules for all items of a run.

use crate::plan::alternates::Alternates;
use crate::plan::bodies::Bodies;
use crate::plan::deprecation::Deprecations;
use crate::plan::skolem;
use crate::request::admit::Admission;
use crate::request::robots::Robots;
use crate::sink::rdf_rules::RdfRules;
use crate::transfer::mirror_hosts::MirrorHosts;
use crate::transfer::repetitions::Repetitions;
use std::fmt::Display;
use std::sync::{Mutex, MutexGuard, PoisonError};

use abreast_net::Authorization;
use std::sync::Arc;

/// The rules for all items of a run.
#[derive(Debug)]
pub(crate) struct Rules {
    /// How descriptions are read.
    pub(crate) rdf: RdfRules,
    pub(crate) require_fixity: bool,
    pub(crate) authorization: Option<Authorization>,
    /// The URL the credentials are for.
    pub(crate) authorized_url: String,
    /// The rules in robots.txt, unless the user ignores them.
    pub(crate) robots: Option<Arc<Robots>>,
    /// Which hosts resources may be on.
    pub(crate) admission: Admission,
    /// Mirrors and patches in lists.
    pub(crate) alternates: Arc<Alternates>,
    /// Whether a resource without statements counts as deleted.
    pub(crate) is_gone_if_empty: bool,
    /// Bytes that lists contain.
    pub(crate) bodies: Arc<Bodies>,
    pub(crate) patches: PatchCounts,
    pub(crate) mirror_hosts: MirrorHosts,
    /// Repetitions of requests after wrong bytes.
    pub(crate) again: Repetitions,
    pub(crate) deprecations: Arc<Deprecations>,
    pub(crate) skolems: skolem::Evidence,
    pub(crate) epoch: i64,
}

/// How many resources were made with patches in a run, and how many could not be.
#[derive(Debug, Default)]
pub(crate) struct PatchCounts(Mutex<Counts>);

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) patched: u64,
    pub(crate) fetched: u64,
    /// The first resource that was fetched, and the reason.
    pub(crate) first: Option<(String, String)>,
}

impl PatchCounts {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note_fetched(&self, uri: &str, why: &dyn Display) {
        let mut counts = self.lock();
        counts.fetched += 1;
        counts.first.get_or_insert_with(|| (uri.to_owned(), why.to_string()));
    }
}
