//! All pages of an Entry Point [emm-1.0 §3.2] [iiif-discovery §3.2].

use super::history::{Extent, Faults, History};
use crate::emm::change_feed::ChangeFeed;
use crate::emm::doc::{Doc, Download, Kind};
use crate::fetch::{Failure, ResponseFacts, is_url};
use crate::report::{ChangeFeedFacts, Findings, MAX_DOCUMENTS, Rule, rules as r};
use crate::walk::feeds::Feeds;
use crate::walk::node::{FoundBy, Outcome};
use abreast_emm::Profile;
use abreast_webtypes::{Timestamp, excerpt, resolve, without_fragment};
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashSet};
use std::time::Instant;

/// Hubs, downloads and types of activities that are reported.
const LISTED_MAX: usize = 20;

/// Pages of a feed whose `id` is requested because it differs from the page's URL.
const IDS_MAX: u32 = 10;

/// State of the walk over the pages of a feed.
pub(super) struct Walk {
    pub(super) history: History,
    pub(super) sample: super::newest::Sample,
    pages: u64,
    bytes: u64,
    /// Number of activities of each type on the newest page.
    kinds: BTreeMap<String, u64>,
    /// Faults that a change during the walk can explain, with their pages.
    volatile: Faults,
    /// Number of pages whose `id` was requested.
    ids: u32,
    /// Pages whose `totalItems` differs from the number of their activities: URL and both numbers.
    totals: Vec<(String, u64, u64)>,
    is_whole: bool,
}

impl Feeds<'_> {
    /// Reads the given document and the documents that it links to.
    pub(crate) async fn changes(&mut self, number: usize) -> Result<(), Failure> {
        let url = self.walked.nodes[number].url.clone();
        let begun = Instant::now();
        let (doc, facts, mut found) = match self.document(&url).await {
            Ok(got) => got,
            Err(failure) => return self.failed(number, None, failure),
        };
        let Some(doc) = doc else {
            self.keep(number, found);
            let feed =
                ChangeFeed { name: "JSON".to_owned(), is_read: true, ..ChangeFeed::default() };
            self.walked.nodes[number].outcome = Outcome::read(feed);
            return Ok(());
        };
        if is_url(&url) && !matches!(doc.kind, Kind::RdfPatch) {
            self.delivery(&url, &doc, &facts, &[], &mut found).await;
        }
        self.keep(number, found);
        self.walked.nodes[number].outcome = Outcome::read(ChangeFeed {
            name: doc.name(),
            is_source: doc.kind != Kind::Other,
            is_entry_point: doc.kind == Kind::EntryPoint,
            is_read: true,
            entries: doc.items.len() as u64,
            bytes: doc.bytes,
            facts: facts_of(&doc, &facts),
            problem: None,
        });
        let node = &mut self.walked.nodes[number];
        node.millis = begun.elapsed().as_millis() as u64;
        node.level = u32::from(doc.kind != Kind::EntryPoint);
        if is_url(&url) && self.samples() {
            self.served(number, &url, &facts.url, &doc).await?;
        }
        match doc.kind {
            Kind::EntryPoint if self.walks(number) => self.walk_pages(number, doc, &facts).await,
            // If a page was reached through `partOf`, its own `partOf` is not followed.
            Kind::Page
                if self.options.walk
                    && is_url(&url)
                    && doc.part_of.is_some()
                    && self.walked.nodes[number].found_by == FoundBy::Start =>
            {
                self.above(number, &doc).await
            }
            _ => {
                for (rule, message) in super::alone(&doc) {
                    self.fault(number, &url, rule, message);
                }
                Ok(())
            }
        }
    }

    /// Walks the feed that contains the given page.
    async fn above(&mut self, number: usize, page: &Doc) -> Result<(), Failure> {
        let Some(whole) = &page.part_of else { return Ok(()) };
        let Some(entry) = self.child((number, 0), whole, FoundBy::Up) else { return Ok(()) };
        // In the report, the Entry Point is above its page.
        let own = self.walked.nodes[number].url.clone();
        self.walked.nodes[number].children.clear();
        Box::pin(self.changes(entry)).await?;
        let above = &mut self.walked.nodes[entry];
        if let Outcome::Failed(message) = &above.outcome {
            let message = format!("`partOf` {}: {message}", excerpt(whole));
            self.add(number, &r::CF_REACHABLE, 0, || message);
        } else if let Some(feed) = above.outcome.record::<ChangeFeed>() {
            let (is_entry_point, name) = (feed.is_entry_point, feed.name.clone());
            above.children.push(own);
            if !is_entry_point {
                let message = || format!("`partOf` {} is of another kind: {name}", excerpt(whole));
                self.add(number, &r::CF_KIND, 0, message);
            }
        }
        Ok(())
    }

    async fn walk_pages(
        &mut self,
        number: usize,
        entry: Doc,
        facts: &ResponseFacts,
    ) -> Result<(), Failure> {
        let begun = Instant::now();
        // In IIIF, `prev` determines the order of pages [iiif-discovery §3.2].
        let is_iiif = entry.profile == Profile::Iiif1;
        let backwards = entry.last.is_some() && (is_iiif || entry.first.is_none());
        let mut walk = Walk {
            history: History::new(self.options.seed, backwards),
            sample: super::newest::Sample::new(self.sample_size(), self.options.seed),
            pages: 0,
            bytes: entry.bytes,
            kinds: BTreeMap::new(),
            volatile: Faults::new(self.options.most_each),
            ids: 0,
            totals: Vec::new(),
            is_whole: false,
        };
        let ended = self.each_page(number, &entry, backwards, &mut walk).await;
        let node = &mut self.walked.nodes[number];
        node.millis += begun.elapsed().as_millis() as u64;
        if let Some(feed) = node.outcome.record_mut::<ChangeFeed>() {
            (feed.entries, feed.bytes) = (walk.history.count, walk.bytes);
            let state = &mut feed.facts;
            (state.pages, state.newest) = (walk.pages, walk.history.newest);
            state.direction = walk.history.direction.map(|direction| match direction {
                Ordering::Greater => "newest first",
                _ => "oldest first",
            });
            state.kinds = std::mem::take(&mut walk.kinds).into_iter().collect();
            state.patches = match (walk.history.has_inline_patches, walk.history.has_instruments) {
                (true, _) => Some("inline"),
                (false, true) => Some("linked"),
                (false, false) => None,
            };
        }
        ended?;
        self.settle(number, &entry, &mut walk).await?;
        if self.samples() {
            self.sample(number, &entry, &facts.url, &walk).await?;
            self.linked_patches(&mut walk).await?;
        }
        let extent = Extent {
            is_whole: walk.is_whole,
            has_download: entry.downloads.iter().any(Download::is_data),
            is_view: entry.part_of.is_some(),
        };
        let mut faults = Faults::new(self.options.most_each);
        walk.history.finish(entry.profile, extent, &mut faults);
        self.faults(number, faults);
        Ok(())
    }

    /// Reads all pages, forwards from the first or backwards from the last.
    async fn each_page(
        &mut self,
        number: usize,
        entry: &Doc,
        backwards: bool,
        walk: &mut Walk,
    ) -> Result<(), Failure> {
        let own = self.walked.nodes[number].url.clone();
        // A feed may be a view of another feed, which is then the topic of both.
        let topics: Vec<&str> =
            [Some(&*own), entry.part_of.as_deref()].into_iter().flatten().collect();
        let (begin, end) =
            if backwards { (&entry.last, &entry.first) } else { (&entry.first, &entry.last) };
        if begin.is_none() && !entry.items.is_empty() {
            self.take(number, &own, entry, true, walk);
            walk.is_whole = true;
            return Ok(());
        }
        let (mut next, mut before) = (begin.clone(), None::<(String, String)>);
        let (mut seen, mut from) = (HashSet::new(), own.clone());
        while let Some(url) = next.take() {
            let url = without_fragment(&url).to_owned();
            if !self.hosts.may(&url) {
                let message = format!("the page {} was not checked", excerpt(&url));
                self.fault(number, &from, &r::OTHER_HOST, message);
                self.incomplete(number, &url, "it is on another host");
                return Ok(());
            }
            if self.taken >= self.options.max_documents {
                self.walked.limit = Some(MAX_DOCUMENTS);
                self.incomplete(number, &url, "not checked: limit");
                return Ok(());
            }
            self.taken += 1;
            seen.insert(url.clone());
            let (doc, facts, mut found) = match self.document(&url).await {
                Ok(got) => got,
                Err(Failure::Missing(message)) => {
                    self.incomplete(number, &url, &message);
                    let message = format!("{}: {message}", excerpt(&url));
                    self.fault(number, &from, &r::CF_REACHABLE, message);
                    return Ok(());
                }
                Err(other) => return Err(other),
            };
            let is_first = walk.pages == 0;
            walk.pages += 1;
            let Some(doc) = doc else {
                let why = found.message_of(&r::AS_JSON).unwrap_or("it is not a JSON object");
                self.incomplete(number, &url, why);
                self.keep(number, found);
                return Ok(());
            };
            walk.bytes += doc.bytes;
            if is_first {
                self.delivery(&url, &doc, &facts, &topics, &mut found).await;
            }
            let has_context = found.message_of(&r::CF_CONTEXT).is_none();
            // Findings of a given page were already added.
            if !self.walked.by_url.contains_key(&url) {
                self.keep(number, found);
            }
            if doc.kind != Kind::Page {
                let message =
                    format!("{} is a document of another kind: {}", excerpt(&url), doc.name());
                self.fault(number, &from, &r::CF_KIND, message);
                self.incomplete(number, &url, "it is a document of another kind");
                return Ok(());
            }
            if self.samples() && walk.ids < IDS_MAX {
                walk.ids += u32::from(self.served(number, &url, &facts.url, &doc).await?);
            }
            if doc.profile != entry.profile && has_context {
                let message = format!("it is an {} below an {}", doc.name(), entry.name());
                self.fault(number, &url, &r::CF_CONTEXT, message);
            }
            self.links(number, entry, &url, &doc, before.as_ref(), backwards, walk);
            self.take(number, &url, &doc, is_first, walk);
            let is_end = end.as_deref().map(without_fragment) == Some(&url);
            let (on, name) = if backwards { (&doc.prev, "prev") } else { (&doc.next, "next") };
            let on = on.as_deref().map(|on| without_fragment(on).to_owned());
            match on {
                Some(on) if seen.contains(&on) => {
                    let message =
                        format!("`{name}` leads to a page that was read: {}", excerpt(&on));
                    self.fault(number, &url, &r::CF_LOOP, message);
                    return Ok(());
                }
                None if !is_end && end.is_some() => {
                    let rule = match (entry.profile, backwards) {
                        (Profile::Iiif1, true) => &r::IIIF_PREV,
                        _ => &r::CF_NEXT,
                    };
                    let other = if backwards { "first" } else { "last" };
                    let message = format!("there is no `{name}`, and this is not the {other} page");
                    walk.volatile.add(&url, rule, || message);
                    return Ok(());
                }
                Some(on) if is_end => {
                    let message =
                        format!("this is the end of the feed, and `{name}` is {}", excerpt(&on));
                    walk.volatile.add(&url, &r::CF_ENDS, || message);
                    next = Some(on);
                }
                on => {
                    walk.is_whole = on.is_none();
                    next = on;
                }
            }
            before = Some((url.clone(), doc.id.unwrap_or_default()));
            from = url;
        }
        Ok(())
    }

    /// Checks the links of a page to its neighbours and its feed.
    #[expect(clippy::too_many_arguments, reason = "a page, its feed and where it was found")]
    fn links(
        &mut self,
        number: usize,
        entry: &Doc,
        url: &str,
        doc: &Doc,
        before: Option<&(String, String)>,
        backwards: bool,
        walk: &mut Walk,
    ) {
        let own = &self.walked.nodes[number].url;
        if let (Some(part_of), Some(id)) = (&doc.part_of, entry.id.as_ref().or(Some(own)))
            && part_of != id
            && part_of != own
        {
            let message =
                format!("`partOf` is {}, and the Entry Point {}", excerpt(part_of), excerpt(id));
            self.fault(number, url, &r::CF_PART_OF_EQUAL, message);
        }
        let (back, name) = if backwards { (&doc.next, "next") } else { (&doc.prev, "prev") };
        let back = back.as_deref().map(without_fragment);
        match (back, before) {
            (Some(back), Some((address, id))) if back != address && back != id => {
                let message =
                    format!("`{name}` is {}, and {} leads here", excerpt(back), excerpt(address));
                self.fault(number, url, &r::CF_PREV, message);
            }
            (Some(back), None) => {
                let message =
                    format!("this is an end of the feed, and `{name}` is {}", excerpt(back));
                walk.volatile.add(url, &r::CF_ENDS, || message);
            }
            (None, Some(_)) if entry.profile == Profile::Iiif1 => {
                let rule = if backwards { &r::IIIF_NEXT } else { &r::IIIF_PREV };
                self.fault(number, url, rule, format!("there is no `{name}`"));
            }
            _ => {}
        }
        let count = doc.items.len() as u64;
        if let Some(total) = doc.total.filter(|total| *total != count)
            && walk.totals.len() < self.options.most_each
        {
            walk.totals.push((url.to_owned(), total, count));
        }
    }

    /// Adds the activities of a page to the state of the walk.
    fn take(&mut self, number: usize, url: &str, doc: &Doc, is_first: bool, walk: &mut Walk) {
        let before = walk.history.newest;
        for (rule, message) in walk.history.page(url, doc) {
            if rule.id == r::CF_ID_ONCE.id || rule.id == r::CF_PAGE_ORDER.id {
                walk.volatile.add(url, rule, || message);
            } else {
                self.fault(number, url, rule, message);
            }
        }
        walk.sample.page(url, doc);
        // The page with the newest activity may be read first or last.
        if is_first || walk.history.newest > before {
            walk.kinds.clear();
            for kind in doc.items.iter().map(|item| excerpt(&item.kind)) {
                if walk.kinds.len() < LISTED_MAX || walk.kinds.contains_key(&kind) {
                    *walk.kinds.entry(kind).or_default() += 1;
                }
            }
        }
    }

    /// Adds volatile faults, unless the Entry Point changed during the walk.
    async fn settle(&mut self, number: usize, entry: &Doc, walk: &mut Walk) -> Result<(), Failure> {
        let own = self.walked.nodes[number].url.clone();
        let count = walk.history.count;
        if walk.is_whole
            && let Some(total) = entry.total.filter(|total| *total != count)
        {
            let found = abreast_webtypes::count(count, "activity");
            let message = format!("`totalItems` is {total}, and the pages have {found}");
            walk.volatile.add(&own, &r::CF_TOTAL_SUM, || message);
        }
        let is_of_all = |total: u64| match entry.total {
            Some(all) if all == total => true,
            all => walk.is_whole && total == count || !walk.is_whole && all.is_none(),
        };
        for (url, total, count) in walk.totals.iter().filter(|(_, total, _)| !is_of_all(*total)) {
            walk.volatile.add(url, &r::CF_TOTAL_PAGE, || {
                format!("`totalItems` is {total}: neither the number of activities of the page, {count}, nor that of the feed")
            });
        }
        if walk.volatile.list.is_empty() {
            return Ok(());
        }
        let again = match self.document(&own).await {
            Ok((again, ..)) => again,
            Err(Failure::Missing(_)) => None,
            Err(other) => return Err(other),
        };
        let state = |doc: &Doc| (doc.first.clone(), doc.last.clone(), doc.total);
        if again.is_none_or(|again| state(&again) == state(entry)) {
            let faults = std::mem::replace(&mut walk.volatile, Faults::new(0));
            self.faults(number, faults);
        }
        Ok(())
    }

    /// Records that the walk ended at a page that cannot be read.
    fn incomplete(&mut self, number: usize, url: &str, why: &str) {
        let outcome = &mut self.walked.nodes[number].outcome;
        if let Some(feed) = outcome.record_mut::<ChangeFeed>() {
            feed.problem = Some(format!("the page {}: {why}", excerpt(url)));
        }
    }

    fn faults(&mut self, number: usize, mut faults: Faults) {
        for (url, (rule, message)) in std::mem::take(&mut faults.list) {
            self.fault(number, &url, rule, message);
        }
        for (rule, more) in faults.more() {
            let findings = &mut self.walked.nodes[number].findings;
            if let Some(last) = findings.iter_mut().rfind(|found| found.rule.id == rule) {
                last.more += more;
            }
        }
    }

    /// Adds a finding about a page to the findings of its Entry Point.
    pub(super) fn fault(&mut self, number: usize, url: &str, rule: &'static Rule, message: String) {
        let mut found = Findings::new(url, self.options.mode, self.options.most_each);
        found.add(rule, (0, 0), || message);
        self.keep(number, found);
    }
}

fn facts_of(doc: &Doc, facts: &ResponseFacts) -> ChangeFeedFacts {
    let time = |text: &String| super::object::time(text).map(|time| time.instant);
    ChangeFeedFacts {
        profile: doc.profile.name(),
        title: doc.summary.clone(),
        part_of: doc.part_of.clone(),
        total: doc.total.filter(|_| doc.kind == Kind::EntryPoint),
        downloads: doc
            .downloads
            .iter()
            .filter(|download| download.is_data())
            .take(LISTED_MAX)
            .map(|download| crate::report::FullDownload {
                url: download.href.clone(),
                media_type: download.media_type.clone(),
                updated: download.updated.as_ref().and_then(time),
            })
            .collect(),
        hubs: facts
            .hubs
            .iter()
            .take(LISTED_MAX)
            .map(|hub| resolve(&facts.url, hub).unwrap_or_default())
            .collect(),
        newest: doc.items.iter().filter_map(|item| item.time).map(|time| time.instant).max(),
        ..ChangeFeedFacts::default()
    }
}

impl Walk {
    /// Whether the newest activities were read, even if others are missing.
    pub(super) fn has_newest(&self) -> bool {
        self.is_whole || self.history.begins_with_newest()
    }

    /// Time of the newest activity that was read.
    pub(super) fn newest(&self) -> Option<Timestamp> {
        self.history.newest
    }
}
