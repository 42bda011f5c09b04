//! All pages of a feed [rfc5005 §3] [sdshare §Fragments Feed].

use super::page::{Page, PageReader};
use super::read::{ENTRIES_MAX, Reading};
use super::{accepted, delivered};
use crate::fetch::manners::manners;
use crate::fetch::{self, Failure, Go, ResponseFacts, is_url};
use crate::report::{FeedFacts, Findings, MAKING, MAX_DOCUMENTS, rules as r};
use crate::sdshare::feed::Feed;
use crate::walk::feeds::{Feeds, From};
use crate::walk::node::{FoundBy, Outcome};
use abreast_sdshare::{ATOM_MEDIA_TYPE, Entry, FeedKind, Relation};
use abreast_webtypes::{excerpt, without_fragment};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::time::Instant;

/// Most hubs of a feed that are reported.
const HUBS_MAX: usize = 20;

/// A page, or the answer that it is not ready yet.
enum Got {
    Page(Box<(Page, ResponseFacts)>),
    /// Status 202, with the value of `Retry-After`.
    Making(Option<String>),
}

impl Feeds<'_> {
    /// Reads all pages of a feed. `None` if the feed cannot be fetched, which is a finding at the
    /// link to the feed.
    pub(super) async fn read(
        &mut self,
        number: usize,
        expected: Option<FeedKind>,
        from: Option<From>,
    ) -> Result<Option<Reading>, Failure> {
        let begun = Instant::now();
        let url = self.walked.nodes[number].url.clone();
        let mut reading = Reading::new(self.options.seed, self.sample_size(), expected);
        let mut feed = Feed { kind: expected, is_read: true, ..Feed::default() };
        let (mut page_url, mut seen) = (url.clone(), HashSet::new());
        let mut is_other = false;
        loop {
            seen.insert(page_url.clone());
            let (page, facts) = match self.page(&page_url, &mut reading).await {
                Ok(Got::Page(got)) => *got,
                Ok(Got::Making(wish)) => {
                    let is_made = expected == Some(FeedKind::ChunkedSnapshot);
                    if let Some(from) = from {
                        self.report(from, accepted(&page_url, is_made, wish.as_deref()));
                    }
                    if is_made && self.waits(wish.as_deref()).await {
                        continue;
                    }
                    self.walked.nodes[number].outcome = Outcome::Left(MAKING);
                    return Ok(None);
                }
                Err(Failure::Missing(message)) if feed.facts.pages > 0 => {
                    let message = format!("page {}: {message}", excerpt(&page_url));
                    feed.problem = Some(format!("the {message}"));
                    self.add(number, &r::SDS_REACHABLE, 0, || message);
                    break;
                }
                Err(failure) => {
                    let from = from.map(|from| (from, &r::SDS_REACHABLE));
                    return self.failed(number, from, failure).map(|()| None);
                }
            };
            feed.facts.pages += 1;
            feed.entries += page.entries;
            feed.bytes += page.bytes;
            let Page { head, kind, entries, mut found, is_complete, refusal, .. } = page;
            reading.has_files |= head.has_files;
            if feed.facts.pages == 1 {
                if is_url(&url) {
                    self.answers(&url, &facts, page.bytes, &mut found).await;
                }
                head_facts(&head, &mut feed.facts);
                self_link(&head, &url, &facts, &mut found);
            }
            let next =
                head.link(&Relation::Next).map(|link| without_fragment(&link.href).to_owned());
            let is_known = next.as_ref().is_some_and(|next| seen.contains(next));
            if is_known && next.as_ref() != Some(&page_url) {
                found.add(&r::PAGE_LOOP, (0, 0), || "the next page was read before");
            } else if entries > 0 && reading.fresh == 0 && next.is_some() {
                let message = || "all entries of this page are on earlier pages";
                found.add(&r::PAGE_LOOP, (0, 0), message);
            }
            if !is_complete {
                let why = refusal.map_or_else(String::new, |refusal| format!(": {refusal}"));
                let message = "cannot be read to its end";
                feed.problem = Some(format!("the page {} {message}{why}", excerpt(&page_url)));
            }
            let is_over = !is_complete || is_known || entries > 0 && reading.fresh == 0;
            self.keep(number, found);
            if let (Some(kind), Some(due), 1) = (kind, expected, feed.facts.pages)
                && kind != due
            {
                let (parent, line) = from.unwrap_or((number, 0));
                let message =
                    || format!("{} is a {}, not a {}", excerpt(&url), kind.name(), due.name());
                self.add(parent, &r::SDS_KIND, line, message);
                is_other = true;
                feed.kind = Some(kind);
                break;
            }
            let Some(next) = next else {
                reading.is_complete = is_complete;
                break;
            };
            if is_over || !self.options.walk || !is_url(&url) {
                break;
            }
            if !self.hosts.may(&next) {
                let message = || format!("the next page {} was not checked", excerpt(&next));
                self.add(number, &r::OTHER_HOST, 0, message);
                feed.problem = Some(format!("the page {}: it is on another host", excerpt(&next)));
                break;
            }
            if self.taken >= self.options.max_documents {
                self.walked.limit = Some(MAX_DOCUMENTS);
                feed.problem = Some(format!("the page {}: not checked: limit", excerpt(&next)));
                break;
            }
            self.taken += 1;
            page_url = next;
        }
        if reading.is_cut {
            let message = || format!("the feed has more than {ENTRIES_MAX} entries");
            self.add(number, &r::LIMIT, 0, message);
        }
        feed.kind = if is_other { feed.kind } else { reading.kind };
        if matches!(feed.kind, Some(FeedKind::Snapshots | FeedKind::Fragments)) {
            feed.facts.newest = reading.newest_time();
        }
        feed.facts.formats = reading.formats.iter().cloned().collect();
        let node = &mut self.walked.nodes[number];
        node.millis = begun.elapsed().as_millis() as u64;
        if node.found_by == FoundBy::Start {
            node.level = match feed.kind {
                Some(FeedKind::Overview) => 0,
                Some(FeedKind::Collection) => 1,
                Some(FeedKind::ChunkedSnapshot) => 4,
                _ => 2,
            };
        }
        node.outcome = Outcome::read(feed);
        if is_url(&url) && self.samples() {
            self.accepts(number).await?;
        }
        Ok(Some(reading).filter(|_| !is_other))
    }

    /// Reads one page; its findings have the URL of the page.
    async fn page(&mut self, url: &str, reading: &mut Reading) -> Result<Got, Failure> {
        let new = |base: &str| {
            let found = Findings::new(url, self.options.mode, self.options.most_each);
            PageReader::new(base, found, self.options.max_document_bytes)
        };
        let reader = RefCell::new(new("file:///"));
        let now = Cell::new(None);
        reading.fresh = 0;
        // After a broken connection, the page is fetched again: entries that were read are skipped.
        let (mut taken, position) = (0_u64, Cell::new(0_u64));
        let mut listener = |entry: &Entry, found: &mut Findings| {
            position.set(position.get() + 1);
            if position.get() > taken {
                taken = position.get();
                reading.entry(entry, now.get(), found);
            }
        };
        let is_making = Cell::new(false);
        let begin = |facts: &ResponseFacts| {
            *reader.borrow_mut() = new(&facts.url).answered(facts);
            position.set(0);
            now.set(facts.time());
            is_making.set(facts.status == 202);
            if is_making.get() { Go::Enough } else { Go::On }
        };
        let piece = |bytes: &[u8]| {
            if reader.borrow_mut().feed(bytes, &mut listener) { Go::On } else { Go::Enough }
        };
        let facts = if is_url(url) {
            fetch::url(&self.client, url, false, self.budget, begin, piece).await?
        } else {
            fetch::file(url, self.budget, piece)?;
            ResponseFacts::default()
        };
        if is_making.get() {
            return Ok(Got::Making(facts.retry_after));
        }
        Ok(Got::Page(Box::new((reader.into_inner().finish(&mut listener), facts))))
    }

    /// Checks how the server delivers the feed.
    async fn answers(&self, url: &str, facts: &ResponseFacts, bytes: u64, found: &mut Findings) {
        if let Some((rule, message)) = delivered(url, ATOM_MEDIA_TYPE, facts) {
            found.add(rule, (0, 0), || message);
        }
        manners(&self.client, url, facts, bytes, &self.conditions, found).await;
    }
}

fn head_facts(head: &abreast_sdshare::Feed, facts: &mut FeedFacts) {
    facts.title.clone_from(&head.title);
    facts.updated = head.updated;
    let hubs = head.links.iter().filter(|link| link.relation == Relation::Hub);
    facts.hubs = hubs.take(HUBS_MAX).map(|link| link.href.clone()).collect();
}

/// Checks that a feed with a hub also has a link to itself [websub §4].
fn self_link(head: &abreast_sdshare::Feed, url: &str, facts: &ResponseFacts, found: &mut Findings) {
    let targets = |relation| head.links.iter().filter(move |link| link.relation == relation);
    if targets(Relation::Hub).next().is_none() {
        return;
    }
    let selves: Vec<&str> = targets(Relation::SelfLink).map(|link| link.href.as_str()).collect();
    let is_own = |own: &str| own == url || own == facts.url || !is_url(url);
    match selves[..] {
        [own] if is_own(own) => {}
        [own] => found.add(&r::FEED_SELF, (0, 0), || format!("`self` is {}", excerpt(own))),
        _ => {
            found.add(&r::FEED_SELF, (0, 0), || format!("there are {} links `self`", selves.len()));
        }
    }
}
