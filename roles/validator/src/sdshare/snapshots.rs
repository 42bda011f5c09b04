//! Checks of snapshots: files, chunks, and the changes in a snapshot [sdshare §Snapshots Feed]
//! [sdshare §Chunked Snapshot Feed].

use super::fragments::Sampled;
use super::graph::{self, Descriptions};
use super::read::Reading;
use super::{accepted, delivered, linked, refusal};
use crate::fetch::Failure;
use crate::report::rules as r;
use crate::sdshare::feed::Feed;
use crate::walk::feeds::{Feeds, From};
use crate::walk::node::{FoundBy, Outcome};
use abreast_rdf::{Entities, Syntax};
use abreast_sdshare::{Entry, FeedKind, Link, Relation, stamp, with_since};
use abreast_webtypes::{Timestamp, excerpt};
use oxrdf::Triple;

/// Most snapshots of which the files are requested; the newest are selected.
const SNAPSHOTS_MAX: usize = 4;
/// Most bytes of a snapshot that is compared.
const SNAPSHOT_BYTES: u64 = 16 << 20;
/// Most chunks of a snapshot that are compared.
const CHUNKS_MAX: usize = 1_000;

/// A snapshot with the descriptions in it.
pub(super) struct Snapshot {
    number: usize,
    line: u64,
    updated: Timestamp,
    described: Descriptions,
}

impl Feeds<'_> {
    /// Checks the newest snapshots, and compares the newest with its chunks. Returns the contents
    /// of the newest.
    pub(super) async fn snapshots(
        &mut self,
        number: usize,
        reading: &Reading,
    ) -> Result<Option<Snapshot>, Failure> {
        let mut newest: Vec<&Entry> = reading.entries.iter().collect();
        newest.sort_by_key(|entry| std::cmp::Reverse(entry.updated));
        newest.truncate(SNAPSHOTS_MAX);
        let mut contents = None;
        for entry in &reading.entries {
            let from = (number, entry.line);
            let links: Vec<&Link> = entry.targets(&Relation::Snapshot).collect();
            let Some(first) = links.first() else { continue };
            let child = self.child(from, &first.href, FoundBy::Snapshot);
            let mut record = Feed { is_snapshot: true, ..Feed::default() };
            record.facts.title.clone_from(&entry.title);
            record.facts.updated = entry.updated;
            record.facts.formats = links.iter().map(|link| link.essence()).collect();
            if newest.iter().any(|other| std::ptr::eq(*other, entry)) {
                record.facts.size = self.files(from, &links).await?;
            }
            let Some(child) = child else { continue };
            self.walked.nodes[child].outcome = Outcome::read(record);
            if !newest.iter().any(|other| std::ptr::eq(*other, entry)) {
                continue;
            }
            let is_newest = newest.first().is_some_and(|newest| std::ptr::eq(*newest, entry));
            let described = if is_newest && self.samples() {
                self.contents(from, entry, &Relation::Snapshot).await?
            } else {
                None
            };
            for (line, link) in linked(std::slice::from_ref(entry), &Relation::ChunkedSnapshot) {
                let from = (number, line);
                let Some(feed) = self.child((child, line), &link, FoundBy::Feed) else { continue };
                let read = self.read(feed, Some(FeedKind::ChunkedSnapshot), Some(from)).await?;
                if let Some(read) = read.filter(|_| is_newest && self.samples()) {
                    self.chunks(feed, &read, described.as_ref()).await?;
                }
            }
            if let (Some(described), Some(updated)) = (described, entry.updated) {
                contents = Some(Snapshot { number, line: entry.line, updated, described });
            }
        }
        Ok(contents)
    }

    /// Requests the headers of files; returns the size of the first one.
    async fn files(&mut self, from: From, links: &[&Link]) -> Result<Option<u64>, Failure> {
        let mut size = None;
        for (place, link) in links.iter().enumerate() {
            if !self.hosts.may(&link.href) {
                continue;
            }
            let answer = match self.ask(&link.href, None, true, 0).await? {
                Ok(answer) => answer,
                Err(message) => {
                    let message = || format!("{}: {message}", excerpt(&link.href));
                    self.add(from.0, &r::SDS_REACHABLE, from.1, message);
                    continue;
                }
            };
            match answer.facts.status {
                200 => {
                    self.report(from, delivered(&link.href, &link.essence(), &answer.facts));
                    if place == 0 {
                        size = answer.facts.content_length;
                    }
                }
                202 => {
                    let wish = answer.facts.retry_after.as_deref();
                    self.report(from, accepted(&link.href, true, wish));
                }
                // The server does not support HEAD.
                405 | 501 => {}
                status => {
                    let message = || format!("{} is answered {status}", excerpt(&link.href));
                    self.add(from.0, &r::SDS_REACHABLE, from.1, message);
                }
            }
        }
        Ok(size)
    }

    /// Reads and compares all forms of a snapshot; returns the descriptions in the first.
    async fn contents(
        &mut self,
        from: From,
        entry: &Entry,
        relation: &Relation,
    ) -> Result<Option<Descriptions>, Failure> {
        let mut first: Option<Descriptions> = None;
        for (link, syntax) in graph::forms(entry, relation) {
            let Some(syntax) = syntax else { continue };
            let Some(triples) = self.rdf(from, link, syntax, 0).await? else { continue };
            let entities = Entities::new(triples.iter().map(Triple::as_ref));
            let described = graph::descriptions(&entities);
            if let Some(first) = &first {
                if let Some(iri) = graph::difference(first, &described) {
                    let message = || format!("{}: {} differs", excerpt(&link.href), excerpt(&iri));
                    self.add(from.0, &r::SDS_SAME, from.1, message);
                }
                continue;
            }
            let fault = refusal(&self.client, self.budget, &self.accepts, &link.href).await?;
            self.report(from, fault);
            let found = entities.findings();
            for shared in &found.shared {
                let [one, other] = &shared.entities;
                let message =
                    || format!("a blank node belongs to {} and {}", excerpt(one), excerpt(other));
                self.add(from.0, &r::SDS_SHARED, from.1, message);
            }
            for statement in &found.unreached {
                let message = || format!("no resource leads to {}", excerpt(statement));
                self.add(from.0, &r::SDS_BLANK_ROOT, from.1, message);
            }
            first = Some(described);
        }
        Ok(first)
    }

    /// Statements in a file of a snapshot, after waiting until the server has made it. `None` if
    /// the file cannot be checked.
    async fn rdf(
        &mut self,
        from: From,
        link: &Link,
        syntax: Syntax,
        document: u64,
    ) -> Result<Option<Vec<Triple>>, Failure> {
        if !self.hosts.may(&link.href) {
            return Ok(None);
        }
        let most = SNAPSHOT_BYTES.min(self.options.max_file_bytes);
        let due = link.essence();
        let answer = loop {
            let Ok(answer) = self.ask(&link.href, Some(&due), false, most).await? else {
                return Ok(None);
            };
            if answer.facts.status != 202 {
                break answer;
            }
            if !self.waits(answer.facts.retry_after.as_deref()).await {
                return Ok(None);
            }
        };
        if !answer.facts.is_success() || !answer.is_whole {
            return Ok(None);
        }
        self.sampled += 1;
        match graph::triples(syntax, &answer.body, &link.href, document) {
            Ok(triples) => Ok(Some(triples)),
            Err((rule, message)) => {
                self.add(from.0, rule, from.1, || format!("{}: {message}", excerpt(&link.href)));
                Ok(None)
            }
        }
    }

    /// Reads the chunks, and checks that together they equal the whole snapshot.
    pub(super) async fn chunks(
        &mut self,
        number: usize,
        reading: &Reading,
        whole: Option<&Descriptions>,
    ) -> Result<(), Failure> {
        let mut all: Vec<Triple> = Vec::new();
        let (mut is_complete, mut bytes) = (reading.is_complete, 0_usize);
        for (place, entry) in reading.entries.iter().enumerate() {
            if place == CHUNKS_MAX || bytes as u64 > SNAPSHOT_BYTES {
                return Ok(());
            }
            let from = (number, entry.line);
            let links: Vec<&Link> = entry.targets(&Relation::SnapshotComponent).collect();
            self.files(from, &links).await?;
            let rdf = graph::forms(entry, &Relation::SnapshotComponent);
            let Some((link, syntax)) =
                rdf.into_iter().find_map(|(link, syntax)| Some((link, syntax?)))
            else {
                is_complete = false;
                continue;
            };
            // Labels of blank nodes are unique only within a document, so each chunk has its own
            // number.
            match self.rdf(from, link, syntax, place as u64 + 1).await? {
                Some(triples) => {
                    bytes += triples.len() * 100;
                    all.extend(triples);
                }
                None => is_complete = false,
            }
        }
        let together = graph::descriptions(&Entities::new(all.iter().map(Triple::as_ref)));
        if let Some(iri) = whole.and_then(|whole| graph::difference(whole, &together))
            && is_complete
        {
            let message = || format!("{} differs from the snapshot", excerpt(&iri));
            self.add(number, &r::SDS_CHUNKS, 0, message);
        }
        Ok(())
    }

    /// Checks that a snapshot contains every change until its time [sdshare §Snapshot Processing].
    pub(super) async fn compare(
        &mut self,
        snapshot: &Snapshot,
        feed: usize,
        reading: &Reading,
        sample: &[Sampled],
    ) -> Result<(), Failure> {
        if let Some(newest) = reading.newest_time().filter(|_| reading.is_complete)
            && snapshot.updated > newest
        {
            let (updated, newest) = (stamp(snapshot.updated), stamp(newest));
            let message =
                || format!("the snapshot is of {updated}, the newest fragment of {newest}");
            self.add(snapshot.number, &r::SDS_SNAPSHOT_LATER, snapshot.line, message);
        }
        let differs = |sampled: &&Sampled| {
            let in_snapshot = snapshot.described.get(&sampled.resource);
            let in_fragment = sampled.described.get(&sampled.resource);
            match (in_snapshot, in_fragment) {
                (Some(Some(one)), Some(Some(other))) => one != other,
                (one, other) => one.is_some() != other.is_some(),
            }
        };
        let is_older = |sampled: &&Sampled| sampled.updated <= snapshot.updated;
        let differing: Vec<_> = sample.iter().filter(is_older).filter(differs).collect();
        if differing.is_empty() {
            return Ok(());
        }
        // The resources may have changed after the feed was read.
        let url = with_since(&self.walked.nodes[feed].url, snapshot.updated);
        let Some(since) = self.answered(feed, &url, &r::SDS_SINCE).await? else { return Ok(()) };
        for sampled in differing {
            let is_later = |(_, entry): &(usize, Entry)| {
                entry.resources.contains(&sampled.resource)
                    && entry.updated.is_some_and(|updated| updated > sampled.updated)
            };
            if since.entries.iter().any(is_later) {
                continue;
            }
            let message = || {
                format!(
                    "the snapshot of {} has another description of {}, which changed at {} (line {} of the fragments feed)",
                    stamp(snapshot.updated),
                    excerpt(&sampled.resource),
                    stamp(sampled.updated),
                    sampled.line
                )
            };
            self.add(snapshot.number, &r::SDS_SNAPSHOT_UPDATED, snapshot.line, message);
        }
        Ok(())
    }
}
