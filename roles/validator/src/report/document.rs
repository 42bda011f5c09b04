//! The report: every inspected document and every finding.

use crate::report::facts::{ChangeFeedFacts, FeedFacts, Unreachable};
use crate::report::finding::Finding;
use crate::report::rule::Mode;
use crate::report::rules as r;
use abreast_core::Severity;
use abreast_webtypes::{Timestamp, UNUSABLE};

/// Problem of a package that the server still makes on demand, so that it was not checked.
pub(crate) const MAKING: &str = "still being made (202)";

/// Problem of a document that ends too early.
pub(crate) const NO_END: &str = "it cannot be read to its end";

/// A document or package that was checked, or that should have been checked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Document {
    /// URL of the document, or the path of a file.
    pub url: String,
    /// Name of this kind of document in its specification.
    pub name: String,
    /// How the walk found the document: `given`, `up`, `index`, `entry`, `contents`, `package`,
    /// `well-known` and others.
    pub found_by: &'static str,
    /// Index of the document that links to this one, in the list of documents.
    pub parent: Option<usize>,
    /// Number of levels below the Source Description.
    pub level: u32,
    /// Whether the document was read.
    pub read: bool,
    /// Why the document was not read, or only in part.
    pub problem: Option<String>,
    /// Whether this is a ResourceSync document, a package, a Sitemap or a feed.
    pub is_source: bool,
    /// Number of entries in the document.
    pub entries: u64,
    /// Size of the document in bytes, unpacked; for a package the size of the file.
    pub bytes: u64,
    /// Milliseconds that fetching and reading took.
    pub millis: u64,
    /// Start time of the snapshot [rs-core §10.1].
    pub at: Option<Timestamp>,
    /// Time when the snapshot was complete.
    pub completed: Option<Timestamp>,
    /// Start of the period that the changes cover.
    pub from: Option<Timestamp>,
    /// End of the period that the changes cover.
    pub until: Option<Timestamp>,
    /// Documents that this one links to, as indexes into the list of documents.
    pub children: Vec<usize>,
    /// Facts about a feed or snapshot of SDShare.
    pub feed: Option<FeedFacts>,
    /// Facts about a change feed: its Entry Point with its pages, or another document.
    pub changes: Option<ChangeFeedFacts>,
}

/// The result of a validation.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// Mode that determined the severities of the findings.
    pub mode: Mode,
    /// All checked documents; each precedes the documents that it links to.
    pub documents: Vec<Document>,
    /// Findings, sorted by document in the same order, then by line.
    pub findings: Vec<Finding>,
    /// Number of resources that were fetched.
    pub sampled: u64,
    /// Seed that selected the sample; the same seed selects the same resources.
    pub seed: u64,
    /// Share of URIs that were checked for duplicates: one in this many; 1 for all.
    pub unique_one_in: u64,
    /// Limit that ended the walk, as the name of its option.
    pub limit: Option<&'static str>,
    /// Whether the user stopped the validation.
    pub cancelled: bool,
    /// Why a server did not answer, if one did not.
    pub unreachable: Option<Unreachable>,
    /// Well-known places of a site without a document, each with the reason.
    pub tried: Vec<(String, String)>,
}

impl Report {
    /// Number of faults with a severity, including faults that are only counted.
    pub fn count(&self, severity: Severity) -> u64 {
        self.findings
            .iter()
            .filter(|found| found.severity == severity)
            .map(|found| 1 + found.more)
            .sum()
    }

    /// Number of documents that were read.
    pub fn read(&self) -> usize {
        self.documents.iter().filter(|document| document.read).count()
    }

    /// Bytes of all documents that were read.
    pub fn bytes(&self) -> u64 {
        self.documents.iter().map(|document| document.bytes).sum()
    }

    /// Number of entries in all documents that were read.
    pub fn entries(&self) -> u64 {
        self.documents.iter().map(|document| document.entries).sum()
    }

    /// Whether no document could be read.
    pub fn saw_nothing(&self) -> bool {
        self.read() == 0
    }

    /// Findings about links in a circle, or up instead of down; a tree cannot show these links.
    pub fn circles(&self) -> impl Iterator<Item = &Finding> {
        let rules = [r::A_INDEX.id, r::A_PREV.id, r::CF_LOOP.id];
        self.findings.iter().filter(move |found| rules.contains(&found.rule.id))
    }

    /// Sets the problem of each document that was read completely to its first entry that cannot be
    /// requested, if there is one.
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

    /// Whether at least one document belongs to ResourceSync, SDShare, a change feed or a Sitemap.
    pub fn found_source(&self) -> bool {
        self.documents.iter().any(|document| document.is_source)
    }
}
