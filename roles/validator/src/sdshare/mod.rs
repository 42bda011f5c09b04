//! Feeds of SDShare: the walk from an overview down [sdshare §Server Role].
//!
//! | file | subject |
//! |---|---|
//! | `page.rs` | a page of a feed, and the rules for its entries |
//! | `read.rs` | facts from the entries of a feed |
//! | `pages.rs` | all pages of a feed |
//! | `since.rs` | checks of answers to `since` |
//! | `fragments.rs` | a sample of fragments |
//! | `snapshots.rs` | snapshots and their chunks |
//! | `graph.rs` | comparison of RDF |

mod feed;
mod fragments;
mod graph;
mod page;
mod pages;
mod read;
mod since;
mod snapshots;

use crate::fetch::manners::take_one;
use crate::fetch::{Budget, Failure, ResponseFacts, values};
use crate::report::{Findings, rules as r};
use crate::walk::feeds::{Fault, Feeds, ask};
use crate::walk::node::{FoundBy, Record};
use crate::walk::protocol::{Begin, Pending, Protocol};
use abreast_net::{Client, retry_after};
use abreast_sdshare::{ATOM_MEDIA_TYPE, Entry, FeedKind, Relation};
use abreast_webtypes::excerpt;
use read::Reading;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime};

/// Longest wait before the next request for a snapshot that the server still makes.
const WAIT_MAX: Duration = Duration::from_secs(5);

/// SDShare during one run.
pub(crate) struct SdShare;

impl Protocol for SdShare {
    fn is_document(&self, begin: &[u8]) -> bool {
        page::is_feed(begin)
    }

    fn check(&self, bytes: &[u8], piece: usize, found: Findings) -> Findings {
        page::check_feed(bytes, piece, found)
    }

    fn has_mark(&self, begin: &[u8]) -> bool {
        self.is_document(begin) && abreast_sdshare::has_mark(begin)
    }

    fn recognise(&self, begin: &Begin<'_>) -> Option<Box<dyn Record>> {
        let is_start = begin.found_by == FoundBy::Start && !begin.is_links;
        let is_ours = is_start && self.is_document(begin.bytes);
        is_ours.then(|| Box::<feed::Feed>::default() as Box<dyn Record>)
    }

    fn read<'f>(&self, feeds: &'f mut Feeds<'_>, start: usize) -> Pending<'f, Result<(), Failure>> {
        Box::pin(feeds.start(start))
    }
}

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
            None => {
                if reading.is_complete {
                    let message = || "the feed has no entries that show its kind";
                    self.add(number, &r::SDS_EMPTY, 0, message);
                }
                Ok(())
            }
        }
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

    /// Reads the feeds of a collection. Snapshots come first, because the fragments feed contains
    /// the changes since.
    async fn collection(&mut self, number: usize, reading: &Reading) -> Result<(), Failure> {
        if reading.is_complete && reading.entries.is_empty() {
            self.add(number, &r::SDS_TWO_FEEDS, 0, || "the collection feed has no entries");
        }
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

    /// Waits as long as a response with status 202 requests, up to [`WAIT_MAX`]. `false` if the
    /// total time for waiting is used up.
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

    /// Checks that a feed is delivered as Atom, even if the client prefers other types.
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
}

/// Links of a relation in entries, with their lines. A link with `alternate` is used only if the
/// entry does not have a link with the relation.
fn linked(entries: &[Entry], relation: &Relation) -> Vec<(u64, String)> {
    let of = |entry: &Entry| -> Vec<(u64, String)> {
        entry.targets(relation).map(|link| (entry.line, link.href.clone())).collect()
    };
    entries.iter().flat_map(of).collect()
}

/// Fault of an answer whose media type differs from the type in the link.
fn delivered(url: &str, due: &str, facts: &ResponseFacts) -> Option<Fault> {
    let own = facts.content_type.as_deref().map(values::essence).unwrap_or_default();
    if due.is_empty() || own == due {
        return None;
    }
    let own = if own.is_empty() { "missing".to_owned() } else { excerpt(&own) };
    let message = format!("{}: Content-Type is {own}, not {}", excerpt(url), excerpt(due));
    Some((&r::SDS_DELIVERED, message))
}

/// Fault of an answer with status 202, which is allowed for snapshots and needs `Retry-After`
/// [sdshare §Snapshot Processing].
fn accepted(url: &str, may_be: bool, wish: Option<&str>) -> Option<Fault> {
    let fault = match (may_be, wish) {
        (true, Some(_)) => return None,
        (true, None) => "is answered 202 without Retry-After",
        (false, _) => "is answered 202, and is no snapshot",
    };
    Some((&r::SDS_ACCEPTED, format!("{} {fault}", excerpt(url))))
}

/// Checks that the server refuses RDF to a client that does not accept it.
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
