//! The report: every inspected document and every finding.

use crate::report::facts::{ChangeFeedFacts, FeedFacts, Unreachable};
use crate::report::finding::Finding;
use crate::report::rule::Mode;
use crate::report::rules as r;
use abreast_core::Severity;
use abreast_webtypes::{Timestamp, UNUSABLE};

/// Why a package that is made on demand was not checked.
pub(crate) const MAKING: &str = "still being made (202)";

/// The problem of a document that ends too early.
pub(crate) const NO_END: &str = "it cannot be read to its end";

/// One document or package that was checked, or was meant to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Document {
    /// Its URL, or the path of a file.
    pub url: String,
    /// The specification's name for it.
    pub name: String,
    /// How it was found: `given`, `up`, `index`, `entry`, `contents`, `package`, `well-known` and
    /// so on.
    pub found_by: &'static str,
    /// The document that led to it, as an index into the list of documents.
    pub parent: Option<usize>,
    /// How far below the Source Description it is.
    pub level: u32,
    /// Whether it was read.
    pub read: bool,
    /// Why it was not read, or not all of it.
    pub problem: Option<String>,
    /// Whether it is a ResourceSync document, a package, a Sitemap or a feed.
    pub is_source: bool,
    /// Entries it has.
    pub entries: u64,
    /// Bytes, unpacked; those of the file for packages.
    pub bytes: u64,
    /// Milliseconds it took to fetch and read.
    pub millis: u64,
    /// When its snapshot was begun.
    pub at: Option<Timestamp>,
    /// When its snapshot was complete.
    pub completed: Option<Timestamp>,
    /// Changes since then.
    pub from: Option<Timestamp>,
    /// Changes until then.
    pub until: Option<Timestamp>,
    /// Documents it points to, as indexes into the list of documents.
    pub children: Vec<usize>,
    /// What a feed or snapshot of SDShare states.
    pub feed: Option<FeedFacts>,
    /// What an Entry Point and its pages state, or another document of a change feed.
    pub changes: Option<ChangeFeedFacts>,
}

/// The result of a validation.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// How it was judged.
    pub mode: Mode,
    /// Everything that was checked, each above what it points to.
    pub documents: Vec<Document>,
    /// The findings, document by document in the same order, then by line.
    pub findings: Vec<Finding>,
    /// Resources that were fetched.
    pub sampled: u64,
    /// The seed of the sample.
    pub seed: u64,
    /// One in how many URIs was checked for being listed twice; 1 for all.
    pub unique_one_in: u64,
    /// The limit that ended the walk, by the name of its option.
    pub limit: Option<&'static str>,
    /// Whether it was stopped by the user.
    pub cancelled: bool,
    /// Why servers could not be asked, if any could not.
    pub unreachable: Option<Unreachable>,
    /// The places of a site that were tried and have nothing, each with the reason.
    pub tried: Vec<(String, String)>,
}

impl Report {
    /// How many faults there are of a severity, those not kept included.
    pub fn count(&self, severity: Severity) -> u64 {
        self.findings
            .iter()
            .filter(|found| found.severity == severity)
            .map(|found| 1 + found.more)
            .sum()
    }

    /// Documents that were read.
    pub fn read(&self) -> usize {
        self.documents.iter().filter(|document| document.read).count()
    }

    /// Bytes of what was read.
    pub fn bytes(&self) -> u64 {
        self.documents.iter().map(|document| document.bytes).sum()
    }

    /// Entries of what was read.
    pub fn entries(&self) -> u64 {
        self.documents.iter().map(|document| document.entries).sum()
    }

    /// Whether nothing at all could be read.
    pub fn saw_nothing(&self) -> bool {
        self.read() == 0
    }

    /// Links that lead in a circle or up instead of down: no tree shows them.
    pub fn circles(&self) -> impl Iterator<Item = &Finding> {
        let rules = [r::A_INDEX.id, r::A_PREV.id, r::CF_LOOP.id];
        self.findings.iter().filter(move |found| rules.contains(&found.rule.id))
    }

    /// States of each document that was read wholly the first entry that cannot be requested, if it has one.
    pub fn note_unusable(&mut self) {
        let is_unusable = |found: &&Finding| {
            found.rule.id == r::URI.id
                && UNUSABLE.iter().any(|fault| found.message.ends_with(fault))
        };
        for document in self.documents.iter_mut().filter(|document| document.problem.is_none()) {
            let of_document = self.findings.iter().filter(|found| found.url == document.url);
            document.problem =
                of_document.filter(is_unusable).map(|found| found.message.clone()).next();
        }
    }

    /// Whether there is anything of ResourceSync or SDShare, a change feed, or a Sitemap.
    pub fn found_source(&self) -> bool {
        self.documents.iter().any(|document| document.is_source)
    }
}
