//! The walk of a protocol that reads its documents one after another.

use crate::fetch::hosts::Hosts;
use crate::fetch::manners::CONDITIONS_MAX;
use crate::fetch::{self, Answer, Budget, Failure, is_url};
use crate::report::{Finding, Findings, MAX_DOCUMENTS, Options, Rule, Share, rules as r};
use crate::walk::node::{FoundBy, Lead, Node, Outcome, Walked};
use abreast_net::{Client, Request, Shared, UnaskedEncoding};
use abreast_webtypes::{excerpt, without_fragment};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Entries to sample of a feed with `--sample all`.
const SAMPLE_MAX: usize = 50_000;
/// Total time that the walk waits for snapshots that a server makes on demand.
const PATIENCE: Duration = Duration::from_secs(60);
/// Addresses that are requested with a media type other than their own.
const ACCEPTS_MAX: u64 = 16;

/// The walk of a feed. Its methods return an error only for a limit or after the user stopped the
/// run; a document that cannot be fetched is a finding.
pub(crate) struct Feeds<'a> {
    pub(crate) walked: &'a mut Walked,
    pub(crate) options: &'a Options,
    pub(crate) budget: &'a Budget<'a>,
    pub(crate) client: Client,
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) hosts: &'a Hosts,
    /// Number of documents that were read or wait to be read.
    pub(crate) taken: usize,
    pub(crate) conditions: AtomicU64,
    pub(crate) accepts: AtomicU64,
    pub(crate) patience: Duration,
    pub(crate) sampled: u64,
}

/// Place of a link: index of the document, and line.
pub(crate) type From = (usize, u64);

impl<'a> Feeds<'a> {
    pub(crate) fn new(
        walked: &'a mut Walked,
        options: &'a Options,
        budget: &'a Budget<'a>,
        shared: &'a Arc<Shared>,
        hosts: &'a Hosts,
    ) -> Self {
        Self {
            taken: walked.nodes.len(),
            walked,
            options,
            budget,
            client: Client::new(Arc::clone(shared)),
            shared,
            hosts,
            conditions: AtomicU64::new(CONDITIONS_MAX),
            accepts: AtomicU64::new(ACCEPTS_MAX),
            patience: PATIENCE,
            sampled: 0,
        }
    }

    /// Whether the walk follows links in a document.
    pub(crate) fn walks(&self, number: usize) -> bool {
        let node = &self.walked.nodes[number];
        self.options.walk && is_url(&node.url) && node.level < self.options.depth
    }

    /// Whether the walk checks the behaviour of the server and the contents of entries.
    pub(crate) fn samples(&self) -> bool {
        !self.options.sample.is_none() && self.options.walk
    }

    /// Adds the target of a link as a child of a document. `None` if the target was added before,
    /// or is outside the allowed hosts or the limit of documents.
    pub(crate) fn child(&mut self, from: From, url: &str, found_by: FoundBy) -> Option<usize> {
        let url = without_fragment(url);
        self.walked.nodes[from.0].children.push(url.to_owned());
        if self.walked.by_url.contains_key(url) {
            return None;
        }
        let outcome = if !self.hosts.may(url) {
            let message = || format!("{} was not checked", excerpt(url));
            self.add(from.0, &r::OTHER_HOST, from.1, message);
            Outcome::Left("other host")
        } else if self.taken >= self.options.max_documents {
            self.walked.limit = Some(MAX_DOCUMENTS);
            Outcome::Left("limit")
        } else {
            self.taken += 1;
            Outcome::Waiting
        };
        let is_waiting = matches!(outcome, Outcome::Waiting);
        let number = self.walked.nodes.len();
        let lead = Lead::new(url, found_by, self.walked.nodes[from.0].level + 1);
        self.walked.by_url.insert(url.to_owned(), number);
        self.walked.nodes.push(Node::new(lead, Some(from.0), outcome));
        is_waiting.then_some(number)
    }

    pub(crate) fn add<M: Into<String>>(
        &mut self,
        number: usize,
        rule: &'static Rule,
        line: u64,
        message: impl FnOnce() -> M,
    ) {
        let node = &self.walked.nodes[number];
        let mut found = Findings::new(&node.url, self.options.mode, self.options.most_each);
        found.add(rule, (line, 0), message);
        self.keep(number, found);
    }

    pub(crate) fn report(&mut self, from: From, faults: impl IntoIterator<Item = Fault>) {
        for (rule, message) in faults {
            self.add(from.0, rule, from.1, || message);
        }
    }

    /// Adds findings to a document, up to the limit of each rule. For a change feed, the limit
    /// applies to all pages together, because a feed may have a very large number of pages.
    pub(crate) fn keep(&mut self, number: usize, found: Findings) {
        let node = &mut self.walked.nodes[number];
        let is_one = matches!(&node.outcome, Outcome::Read(record) if record.counts_once());
        let kept = &mut node.findings;
        for finding in found.into_list() {
            let same = |other: &Finding| {
                other.rule.id == finding.rule.id && (is_one || other.url == finding.url)
            };
            if kept.iter().filter(|other| same(other)).count() < self.options.most_each.max(1) {
                kept.push(finding);
            } else if let Some(last) = kept.iter_mut().rfind(|other| same(other)) {
                last.more += 1 + finding.more;
            }
        }
    }

    /// Records that a document cannot be read. The link to the document violates a rule.
    pub(crate) fn failed(
        &mut self,
        number: usize,
        from: Option<(From, &'static Rule)>,
        failure: Failure,
    ) -> Result<(), Failure> {
        let Failure::Missing(message) = failure else {
            self.walked.nodes[number].outcome = Outcome::Left("limit");
            return Err(failure);
        };
        if let Some(((parent, line), rule)) = from {
            let url = excerpt(&self.walked.nodes[number].url);
            self.add(parent, rule, line, || format!("{url}: {message}"));
        }
        self.walked.nodes[number].outcome = Outcome::Failed(message);
        Ok(())
    }

    /// Requests an address and accepts any status. `Ok(Err(_))`: the address cannot be fetched.
    pub(crate) async fn ask(
        &self,
        url: &str,
        accept: Option<&str>,
        head: bool,
        most: u64,
    ) -> Result<Result<Answer, String>, Failure> {
        ask(&self.client, self.budget, url, (accept, head), most).await
    }

    pub(crate) fn sample_size(&self) -> usize {
        match self.options.sample {
            Share::Some(some) => usize::try_from(some).unwrap_or(SAMPLE_MAX).min(SAMPLE_MAX),
            Share::All => SAMPLE_MAX,
        }
    }
}

/// A rule that is violated, with the message.
pub(crate) type Fault = (&'static Rule, String);

/// Requests an address with `Accept`, optionally only the headers, and accepts any status.
pub(crate) async fn ask(
    client: &Client,
    budget: &Budget<'_>,
    url: &str,
    (accept, head): (Option<&str>, bool),
    most: u64,
) -> Result<Result<Answer, String>, Failure> {
    let request = Request {
        accept,
        head,
        unasked_encoding: if head { UnaskedEncoding::Raw } else { UnaskedEncoding::Decode },
        ..Request::new(url)
    };
    match fetch::answer(client, &request, most, budget).await {
        Ok(answer) => Ok(Ok(answer)),
        Err(Failure::Missing(message)) => Ok(Err(message)),
        Err(other) => Err(other),
    }
}
