//! Feeds of SDShare: the walk from an overview down [sdshare §Server Role].
//!
//! | file | subject |
//! |---|---|
//! | `page.rs` | one page of a feed, and the rules its entries break |
//! | `read.rs` | what is remembered of a feed's entries |
//! | `pages.rs` | all pages of a feed |
//! | `since.rs` | answers to `since` |
//! | `fragments.rs` | a sample of fragments |
//! | `snapshots.rs` | snapshots and their chunks |
//! | `graph.rs` | RDF compared |

mod fragments;
mod graph;
mod page;
mod pages;
mod read;
mod since;
mod snapshots;

use crate::collect::Origin;
use crate::fetch::{self, Answer, Budget, Failure, ResponseFacts};
use crate::finding::Findings;
use crate::inspect::{CONDITIONS_MAX, take_one};
use crate::node::{FoundBy, Node, Outcome, Walked, is_url};
use crate::options::{Options, Share};
use crate::report::FeedFacts;
use crate::rule::Rule;
use crate::rules as r;
use crate::sample::{Hosts, hosts};
use crate::values;
use crate::walk::MAX_DOCUMENTS;
use abreast_net::{Client, Request, Shared, UnaskedEncoding, retry_after};
use abreast_sdshare::{ATOM_MEDIA_TYPE, Entry, FeedKind, Relation};
use abreast_webtypes::{excerpt, without_fragment};
pub(crate) use page::{check_feed, is_feed};
use read::Reading;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

/// Fragments that are sampled of one feed with `--sample all`.
const SAMPLE_MAX: usize = 50_000;
/// How long the walk waits for snapshots that are being made, in all, and for one at a time.
const PATIENCE: Duration = Duration::from_secs(60);
const WAIT_MAX: Duration = Duration::from_secs(5);
/// Addresses that are asked for other types than they have.
const ACCEPTS_MAX: u64 = 16;

/// A feed or snapshot that was read.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    pub(crate) kind: Option<FeedKind>,
    pub(crate) is_snapshot: bool,
    pub(crate) is_read: bool,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) children: Vec<String>,
    pub(crate) facts: FeedFacts,
}

impl Feed {
    pub(crate) fn name(&self) -> String {
        match self.kind {
            _ if self.is_snapshot => "SDShare snapshot".to_owned(),
            Some(kind) => format!("SDShare {}", kind.name()),
            None => "Atom feed".to_owned(),
        }
    }
}

/// Reads the feeds that were given and what is below them; returns how many fragments and snapshots
/// were fetched.
pub(crate) fn walk(
    walked: &mut Walked,
    options: &Options,
    shared: &Arc<Shared>,
    budget: &Budget<'_>,
) -> u64 {
    let starts: Vec<usize> = (0..walked.nodes.len())
        .filter(|number| matches!(walked.nodes[*number].outcome, Outcome::Feed(_)))
        .collect();
    if starts.is_empty() || walked.cancelled || walked.limit.is_some() {
        return 0;
    }
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return 0;
    };
    let mut feeds = Feeds {
        taken: walked.nodes.len(),
        walked,
        options,
        budget,
        client: Client::new(Arc::clone(shared)),
        shared,
        hosts: hosts(options),
        conditions: AtomicU64::new(CONDITIONS_MAX),
        accepts: AtomicU64::new(ACCEPTS_MAX),
        patience: PATIENCE,
        sampled: 0,
    };
    for start in starts {
        match runtime.block_on(feeds.start(start)) {
            Ok(()) | Err(Failure::Missing(_)) => {}
            Err(Failure::Limit(limit)) => {
                feeds.walked.limit = Some(limit);
                break;
            }
            Err(Failure::Cancelled) => {
                feeds.walked.cancelled = true;
                break;
            }
        }
    }
    feeds.sampled
}

/// The walk. Errors of its methods are limits and the wish of the user: what cannot be fetched is a
/// finding.
struct Feeds<'a> {
    walked: &'a mut Walked,
    options: &'a Options,
    budget: &'a Budget<'a>,
    client: Client,
    shared: &'a Arc<Shared>,
    hosts: Hosts,
    /// Documents that were read or are to be.
    taken: usize,
    conditions: AtomicU64,
    accepts: AtomicU64,
    patience: Duration,
    sampled: u64,
}

/// Where a link is written: the document and the line.
type From = (usize, u64);

impl Feeds<'_> {
    async fn start(&mut self, number: usize) -> Result<(), Failure> {
        let Some(reading) = self.read(number, None, None).await? else { return Ok(()) };
        if !self.walks(number) {
            return Ok(());
        }
        match reading.kind {
            Some(FeedKind::Overview) => self.overview(number, &reading).await,
            Some(FeedKind::Collection) => self.collection(number, &reading).await,
            Some(FeedKind::Snapshots) => self.snapshots(number, &reading).await.map(drop),
            Some(FeedKind::ChunkedSnapshot) => self.chunks(number, &reading, None).await,
            Some(FeedKind::Fragments) => self.fragments(number, &reading).await.map(drop),
            None => Ok(()),
        }
    }

    /// Whether links of a document are followed.
    fn walks(&self, number: usize) -> bool {
        let node = &self.walked.nodes[number];
        self.options.walk && is_url(&node.url) && node.level < self.options.depth
    }

    /// Whether behaviour and contents are checked.
    fn samples(&self) -> bool {
        !self.options.sample.is_none() && self.options.walk
    }

    async fn overview(&mut self, number: usize, reading: &Reading) -> Result<(), Failure> {
        let mut seen = std::collections::HashMap::new();
        for entry in &reading.entries {
            for link in entry.targets(&Relation::CollectionFeed) {
                let before = seen.insert(&link.href, entry.line);
                if let Some(line) = before.filter(|line| *line != entry.line) {
                    let message = || format!("{} is in line {line} already", excerpt(&link.href));
                    self.add(number, &r::SDS_COLLECTION_ONCE, entry.line, message);
                    continue;
                }
                let from = (number, entry.line);
                let Some(child) = self.child(from, &link.href, FoundBy::Feed) else { continue };
                let collection = self.read(child, Some(FeedKind::Collection), Some(from)).await?;
                if let Some(collection) = collection.filter(|_| self.walks(child)) {
                    self.collection(child, &collection).await?;
                }
            }
        }
        Ok(())
    }

    /// Snapshots are read first: the fragments feed has what changed since.
    async fn collection(&mut self, number: usize, reading: &Reading) -> Result<(), Failure> {
        let (mut snapshot, mut fragments) = (None, None);
        for relation in [Relation::SnapshotsFeed, Relation::FragmentsFeed] {
            let is_snapshots = relation == Relation::SnapshotsFeed;
            let kind = if is_snapshots { FeedKind::Snapshots } else { FeedKind::Fragments };
            for (line, link) in linked(&reading.entries, &relation) {
                let query = link.split_once('?').map_or("", |(_, query)| query);
                if !is_snapshots && query.split('&').any(|pair| pair.starts_with("since=")) {
                    let message = || format!("the link is {}", excerpt(&link));
                    self.add(number, &r::SDS_NO_SINCE, line, message);
                }
                let Some(child) = self.child((number, line), &link, FoundBy::Feed) else {
                    continue;
                };
                let read = self.read(child, Some(kind), Some((number, line))).await?;
                let Some(read) = read.filter(|_| self.walks(child)) else { continue };
                if is_snapshots {
                    snapshot = self.snapshots(child, &read).await?.or(snapshot);
                } else {
                    let sample = self.fragments(child, &read).await?;
                    fragments = Some((child, read, sample));
                }
            }
        }
        if let (Some(snapshot), Some((feed, read, sample))) = (snapshot, fragments) {
            self.compare(&snapshot, feed, &read, &sample).await?;
        }
        Ok(())
    }

    /// Adds the target of a link below a document; `None` when it was added before or is left out.
    fn child(&mut self, from: From, url: &str, found_by: FoundBy) -> Option<usize> {
        let url = without_fragment(url);
        let level = self.walked.nodes[from.0].level + 1;
        if let Outcome::Feed(feed) = &mut self.walked.nodes[from.0].outcome {
            feed.children.push(url.to_owned());
        }
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
        self.walked.by_url.insert(url.to_owned(), number);
        self.walked.nodes.push(Node {
            url: url.to_owned(),
            found_by,
            from: Some(from.0),
            entry: 0,
            level,
            origin: Origin::default(),
            outcome,
            findings: Vec::new(),
            millis: 0,
            steps: (0, 0),
        });
        is_waiting.then_some(number)
    }

    fn add(
        &mut self,
        number: usize,
        rule: &'static Rule,
        line: u64,
        message: impl FnOnce() -> String,
    ) {
        let node = &self.walked.nodes[number];
        let mut found = Findings::new(&node.url, self.options.mode, self.options.most_each);
        found.add(rule, (line, 0), message);
        self.keep(number, found);
    }

    fn report(&mut self, from: From, faults: impl IntoIterator<Item = Fault>) {
        for (rule, message) in faults {
            self.add(from.0, rule, from.1, || message);
        }
    }

    /// Adds findings to those of a document, up to the limit of each rule.
    fn keep(&mut self, number: usize, found: Findings) {
        let kept = &mut self.walked.nodes[number].findings;
        for finding in found.into_list() {
            let same = |other: &crate::Finding| {
                other.rule.id == finding.rule.id && other.url == finding.url
            };
            if kept.iter().filter(|other| same(other)).count() < self.options.most_each.max(1) {
                kept.push(finding);
            } else if let Some(last) = kept.iter_mut().rfind(|other| same(other)) {
                last.more += 1 + finding.more;
            }
        }
    }

    /// Asks for an address, whatever the status. `Ok(Err(_))`: it cannot be fetched.
    async fn ask(
        &self,
        url: &str,
        accept: Option<&str>,
        head: bool,
        most: u64,
    ) -> Result<Result<Answer, String>, Failure> {
        ask(&self.client, self.budget, url, (accept, head), most).await
    }

    /// Waits as a 202 asks for; `false` when the patience is at its end.
    async fn waits(&mut self, asked: Option<&str>) -> bool {
        let wish = asked.and_then(|value| retry_after(value, SystemTime::now()));
        let wait = wish.unwrap_or(Duration::from_secs(1)).min(WAIT_MAX);
        if self.patience < wait || self.budget.take(0).is_err() {
            return false;
        }
        self.patience -= wait;
        tokio::time::sleep(wait).await;
        true
    }

    /// A feed is Atom whatever the client accepts.
    async fn accepts(&mut self, number: usize) -> Result<(), Failure> {
        if !take_one(&self.accepts) {
            return Ok(());
        }
        let url = self.walked.nodes[number].url.clone();
        let browser = "text/html, image/gif, image/jpeg, */*;q=0.2";
        if let Ok(answer) = self.ask(&url, Some(browser), false, 0).await? {
            let kind = answer.facts.content_type.as_deref().map(values::essence);
            if answer.facts.status != 200 || kind.as_deref() != Some(ATOM_MEDIA_TYPE) {
                let (status, kind) = (answer.facts.status, kind.unwrap_or_default());
                let message =
                    || format!("`Accept: text/html` is answered {status} {}", excerpt(&kind));
                self.add(number, &r::SDS_ATOM, 0, message);
            }
        }
        Ok(())
    }

    fn sample_size(&self) -> usize {
        match self.options.sample {
            Share::Some(some) => usize::try_from(some).unwrap_or(SAMPLE_MAX).min(SAMPLE_MAX),
            Share::All => SAMPLE_MAX,
        }
    }
}

/// Links of a relation in entries, with their lines; those that are `alternate` only count where
/// no other is meant.
fn linked(entries: &[Entry], relation: &Relation) -> Vec<(u64, String)> {
    let of = |entry: &Entry| -> Vec<(u64, String)> {
        entry.targets(relation).map(|link| (entry.line, link.href.clone())).collect()
    };
    entries.iter().flat_map(of).collect()
}

/// A rule that is broken, and how.
type Fault = (&'static Rule, String);

/// Asks for an address, whatever the status, with `Accept` and perhaps for the headers only.
async fn ask(
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

/// What is delivered has the type of the link.
fn delivered(url: &str, due: &str, facts: &ResponseFacts) -> Option<Fault> {
    let own = facts.content_type.as_deref().map(values::essence).unwrap_or_default();
    if due.is_empty() || own == due {
        return None;
    }
    let own = if own.is_empty() { "missing".to_owned() } else { excerpt(&own) };
    let message = format!("{}: Content-Type is {own}, not {}", excerpt(url), excerpt(due));
    Some((&r::SDS_DELIVERED, message))
}

/// A 202: whether it may be, and states when to come again [sdshare §Snapshot Processing].
fn accepted(url: &str, may_be: bool, wish: Option<&str>) -> Option<Fault> {
    let fault = match (may_be, wish) {
        (true, Some(_)) => return None,
        (true, None) => "is answered 202 without Retry-After",
        (false, _) => "is answered 202, and is no snapshot",
    };
    Some((&r::SDS_ACCEPTED, format!("{} {fault}", excerpt(url))))
}

/// RDF is refused to a client that cannot read it.
async fn refusal(
    client: &Client,
    budget: &Budget<'_>,
    accepts: &AtomicU64,
    url: &str,
) -> Result<Option<Fault>, Failure> {
    if !take_one(accepts) {
        return Ok(None);
    }
    let accept = Some("application/x-unknown");
    let answer = ask(client, budget, url, (accept, false), 0).await?;
    let other = answer.ok().map(|answer| answer.facts.status).filter(|status| *status != 406);
    Ok(other.map(|status| {
        let message =
            format!("{}: `Accept: application/x-unknown` is answered {status}", excerpt(url));
        (&r::SDS_ACCEPTABLE, message)
    }))
}
