//! Documents of ResourceSync 0.1: the walk from a Sitemap or change set to the documents that it
//! links to [rs-0.1 §2.2.1].
//!
//! | file | subject |
//! |---|---|
//! | `codes.rs` | the rules for deviations that the parser reports |
//! | `document.rs` | checks of a single document |
//! | `related.rs` | lists of an index, and change sets along `prev` |
//! | `dump.rs` | a dump and its manifest |
//! | `warc.rs` | comparison of a dump in WARC with its manifest |

mod alpha;
mod codes;
mod document;
mod dump;
mod related;
mod warc;

use crate::fetch::archive::is_named_warc;
use crate::fetch::manners::manners;
use crate::fetch::{self, Failure, Go, is_url, values};
use crate::report::{Findings, rules as r};
use crate::resourcesync_0_1::alpha::Alpha;
use crate::walk::feeds::{Feeds, From};
use crate::walk::inspect::{BEGIN_MAX, HOST_META};
use crate::walk::node::{FoundBy, Lead, Outcome, Record, Sampled, Stage};
use crate::walk::protocol::{Begin, Page, Pending, Protocol, Recognition, Visit};
use crate::walk::sketch::{Listed, Sketch};
use abreast_resourcesync::sitemap::{is_no_change_set, lists_only_others, may_be_change_set};
use abreast_resourcesync::v0_1::{
    CHANGE_SET, DUMP, INDEXES_MAX, LinkKind, Root, first_of_plain_index, has_marks,
    links_in_host_meta, links_in_html,
};
use abreast_webtypes::{excerpt, resolve, robots_sitemaps};
use document::{Checker, Facts, Sitemaps};
use std::cell::RefCell;
use std::fs::File;
use std::hash::{DefaultHasher, Hasher as _};
use std::time::Instant;
use url::Url;

/// Closed change sets that are fetched a second time, to check that they do not change.
const CLOSED_MAX: usize = 4;

impl Alpha {
    fn of(facts: &Facts, answer: Option<fetch::ResponseFacts>) -> Self {
        let name = match (facts.head.root, facts.head.change_set) {
            (Root::SitemapIndex, _) => "ResourceSync 0.1 Sitemap Index",
            (Root::UrlSet, true) => "ResourceSync 0.1 Change Set",
            (Root::UrlSet, false) => "ResourceSync 0.1 Sitemap",
        };
        Self {
            name,
            entries: facts.entries,
            bytes: facts.bytes,
            modified: facts.head.modified.map(|time| time.instant),
            is_change_set: facts.head.change_set,
            is_cut: !facts.is_complete,
            refusal: facts.refusal.as_ref().map(values::first_line),
            is_dump: false,
            facts: answer.unwrap_or_default(),
        }
    }
}

/// ResourceSync 0.1 during one run.
pub(crate) struct ResourceSync01;

impl Protocol for ResourceSync01 {
    fn is_document(&self, begin: &[u8]) -> bool {
        document::is_document(begin)
    }

    fn check(&self, bytes: &[u8], piece: usize, mut found: Findings) -> Findings {
        let mut checker = Checker::new("", u64::MAX, 0, 1);
        for piece in bytes.chunks(piece) {
            checker.feed(piece, &mut found);
        }
        checker.finish(&mut found);
        found
    }

    fn recognise(&self, begin: &Begin<'_>) -> Option<Box<dyn Record>> {
        let is_dump = begin.found_by != FoundBy::Sitemap && begin.bytes.starts_with(b"WARC/");
        let is_ours = may_be_ours(begin.found_by) && (is_dump || self.is_document(begin.bytes));
        is_ours.then(|| given(is_dump))
    }

    fn recognise_package(&self, url: &str, file: &File) -> Option<Box<dyn Record>> {
        (is_named_warc(url) || dump::is_dump(file)).then(|| given(true))
    }

    /// Recognises a plain index by marks of 0.1 in its first Sitemap, also below nested indexes. If
    /// a request fails, the version remains unknown.
    fn recognise_below<'f>(&'f self, visit: &'f Visit<'_>, begin: &'f [u8]) -> Recognition<'f> {
        Box::pin(async move {
            let run = visit.run;
            let is_ours = may_be_ours(visit.found_by) && run.options.walk && is_url(&visit.url);
            let mut next = first_of_plain_index(begin).filter(|_| is_ours);
            for _ in 0..INDEXES_MAX {
                let Some(url) = next.take().filter(|url| run.hosts.may(url)) else { break };
                match begin_of(visit, &url).await {
                    Ok(begin) if has_marks(&begin) => return Ok(Some(given(false))),
                    Ok(begin) => next = first_of_plain_index(&begin),
                    Err(Failure::Missing(_)) => break,
                    Err(other) => return Err(other),
                }
            }
            Ok(None)
        })
    }

    fn read<'f>(&self, feeds: &'f mut Feeds<'_>, start: usize) -> Pending<'f, Result<(), Failure>> {
        Box::pin(feeds.alpha(start))
    }

    fn leads_on(&self, facts: &fetch::ResponseFacts) -> bool {
        facts.relations.iter().any(|(rel, _)| LinkKind::of(rel).is_some())
    }

    /// Links in host-meta and in the given page [rs-0.1 §7.2, §7.3].
    fn links(&self, page: &Page<'_>) -> Vec<Lead> {
        if page.is_host_meta {
            let links = best(links_in_host_meta(page.bytes));
            if !links.is_empty() {
                return links.into_iter().map(|link| Lead::new(link, FoundBy::Site, 1)).collect();
            }
        }
        let of_head = |(rel, target): &(String, String)| Some((LinkKind::of(rel)?, target.clone()));
        let of_head = page.facts.relations.iter().filter_map(of_head);
        let links = best(of_head.chain(links_in_html(page.bytes)).collect());
        links.into_iter().map(|link| tried(link, FoundBy::Site, 1)).collect()
    }

    fn places(&self, start: &Url) -> Vec<Lead> {
        let places = HOST_META.iter().map(|place| (*place, FoundBy::HostMeta, 0));
        let places = places.chain([("/sitemap.xml", FoundBy::Site, 1)]);
        places
            .filter_map(|(place, by, level)| Some(tried(start.join(place).ok()?, by, level)))
            .collect()
    }
}

/// A link that is tried if nothing else leads to documents.
fn tried(url: impl Into<String>, found_by: FoundBy, level: u32) -> Lead {
    Lead { stage: Stage::Try, ..Lead::new(url, found_by, level) }
}

/// Targets of the best kind of link, from which a copy also starts.
fn best(links: Vec<(LinkKind, String)>) -> Vec<String> {
    let best = links.iter().map(|(kind, _)| *kind).min();
    let of_best = links.into_iter().filter(|(kind, _)| Some(*kind) == best);
    of_best.map(|(_, href)| href.trim().to_owned()).collect()
}

fn may_be_ours(found_by: FoundBy) -> bool {
    matches!(found_by, FoundBy::Start | FoundBy::Sitemap | FoundBy::Site)
}

/// Record for a document or dump that is read after the walk.
fn given(is_dump: bool) -> Box<dyn Record> {
    Box::new(Alpha { is_dump, ..Alpha::default() })
}

/// The first bytes of a document, which determine its version. Copies use the same number.
async fn begin_of(visit: &Visit<'_>, url: &str) -> Result<Vec<u8>, Failure> {
    let begin = RefCell::new(Vec::new());
    let restart = |_: &fetch::ResponseFacts| {
        begin.borrow_mut().clear();
        Go::On
    };
    let piece = |bytes: &[u8]| {
        let mut begin = begin.borrow_mut();
        begin.extend_from_slice(bytes);
        if begin.len() < BEGIN_MAX { Go::On } else { Go::Enough }
    };
    fetch::url(visit.client, url, false, visit.run.budget, restart, piece).await?;
    Ok(begin.into_inner())
}

impl Feeds<'_> {
    /// Reads the given document and the documents that it links to.
    async fn alpha(&mut self, number: usize) -> Result<(), Failure> {
        let given = self.walked.nodes[number].outcome.record::<Alpha>();
        if given.is_some_and(|given| given.is_dump) {
            return self.dump(number, (number, 0)).await;
        }
        let Some(facts) = self.read_alpha(number, None, false).await? else { return Ok(()) };
        let is_index = facts.head.root == Root::SitemapIndex;
        let mut sitemaps = Sitemaps::of(&facts);
        if is_index && self.walks(number) {
            self.lists(number, &facts, &mut sitemaps).await?;
        }
        if !facts.head.change_set && (!is_index || self.walks(number)) {
            self.others(number, &sitemaps);
        }
        if !self.walks(number) {
            return Ok(());
        }
        if facts.head.change_set {
            return self.change_sets(number, facts).await;
        }
        let is_linked = facts.head.links.iter().any(|link| link.has_rel(CHANGE_SET));
        if facts.change_in_sitemap.is_some() && facts.not_a_change.is_none() && !is_linked {
            let url = self.walked.nodes[number].url.clone();
            self.add(number, &r::A_TYPE, 0, || may_be_change_set(&url));
        }
        self.discovery(number).await?;
        self.linked(number, &facts).await
    }

    /// Reports Sitemaps that contain only addresses of other protocols [rs-0.1 §4.3.3].
    fn others(&mut self, number: usize, sitemaps: &Sitemaps) {
        let Some(count) = sitemaps.only_others() else { return };
        let message = lists_only_others(&self.walked.nodes[number].url, count);
        self.refused(number, message.clone());
        self.add(number, &r::A_OTHERS, 0, || message);
    }

    /// Reads the link targets of a Sitemap or index: the current change set, and dumps.
    async fn linked(&mut self, number: usize, facts: &Facts) -> Result<(), Failure> {
        let url = self.walked.nodes[number].url.clone();
        for link in &facts.head.links {
            let Ok(target) = resolve(&url, &link.href) else { continue };
            let from = (number, 0);
            if link.has_rel(CHANGE_SET) {
                let Some(child) = self.child(from, &target, FoundBy::Down) else { continue };
                if let Some(set) = self.read_alpha(child, Some(from), true).await? {
                    if !set.head.change_set {
                        self.no_change_set(number, child, &set);
                    } else if self.walks(child) {
                        self.change_sets(child, set).await?;
                    }
                }
            } else if link.has_rel(DUMP) {
                let Some(child) = self.child(from, &target, FoundBy::Package) else { continue };
                self.dump(child, from).await?;
            }
        }
        Ok(())
    }

    /// Reports a document that is not a change set although a link with that relation leads to it,
    /// perhaps because `rs:type` is missing.
    fn no_change_set(&mut self, number: usize, child: usize, facts: &Facts) {
        let line = facts.not_a_change.filter(|_| facts.head.root == Root::UrlSet);
        let message = is_no_change_set(&self.walked.nodes[child].url, line);
        self.add(number, &r::A_CHANGE_SET, 0, || message);
        if let Some(line) = facts.change_in_sitemap {
            let message = || "a change in a document without `rs:type=\"changeset\"`";
            self.add(child, &r::A_TYPE, line, message);
        }
    }

    /// Reads one document, perhaps as the target of a link to a change set. `None` if it cannot be
    /// fetched, which is a finding at the link.
    async fn read_alpha(
        &mut self,
        number: usize,
        from: Option<From>,
        is_called_change_set: bool,
    ) -> Result<Option<Facts>, Failure> {
        let begun = Instant::now();
        let url = self.walked.nodes[number].url.clone();
        let (mode, most_each) = (self.options.mode, self.options.most_each);
        let new_state = || {
            let (most, seed) = (self.options.max_document_bytes, self.options.seed);
            let mut checker = Checker::new(&url, most, seed, self.sample_size());
            if is_called_change_set {
                checker = checker.called_change_set();
            }
            (checker, Findings::new(&url, mode, most_each), DefaultHasher::new())
        };
        let state = RefCell::new(new_state());
        let piece = |bytes: &[u8]| {
            let (checker, found, hasher) = &mut *state.borrow_mut();
            hasher.write(bytes);
            checker.feed(bytes, found);
            if checker.is_broken() { Go::Enough } else { Go::On }
        };
        let begin = |facts: &fetch::ResponseFacts| {
            let mut state = state.borrow_mut();
            *state = new_state();
            state.0.answered(facts);
            Go::On
        };
        let result = if is_url(&url) {
            fetch::url(&self.client, &url, false, self.budget, begin, piece).await.map(Some)
        } else {
            fetch::file(&url, self.budget, piece).map(|()| None)
        };
        let answer = match result {
            Ok(answer) => answer,
            Err(failure) => {
                let from = from.map(|from| (from, &r::A_REACHABLE));
                return self.failed(number, from, failure).map(|()| None);
            }
        };
        let (mut checker, mut found, hasher) = state.into_inner();
        checker.finish(&mut found);
        let (mut facts, listed) = (checker.facts, checker.listed);
        facts.hash = hasher.finish();
        if let Some(answer) = &answer {
            let kind = answer.content_type.as_deref().map(values::essence).unwrap_or_default();
            if !values::is_xml_or_packed(&kind) {
                let kind = if kind.is_empty() { "missing".to_owned() } else { excerpt(&kind) };
                found.add(&r::CONTENT_TYPE, (0, 0), || format!("Content-Type is {kind}"));
            }
            let (client, bytes) = (&self.client, facts.bytes);
            manners(client, &url, answer, bytes, &self.conditions, &mut found).await;
        }
        self.walked.nodes[number].outcome = Outcome::read(Alpha::of(&facts, answer));
        self.walked.nodes[number].millis = begun.elapsed().as_millis() as u64;
        self.keep(number, found);
        self.add_to_sample(number, listed, &facts);
        Ok(Some(facts))
    }

    /// Adds resources to the sample, except resources in change sets, which may have changed since.
    fn add_to_sample(&mut self, number: usize, listed: Sketch<Listed>, facts: &Facts) {
        let mut start = number;
        while let Some(from) = self.walked.nodes[start].from {
            start = from;
        }
        let (url, most) = (self.walked.nodes[start].url.clone(), self.sample_size());
        // Documents are not read again, so resources up to a limit are in memory.
        let new = || Sampled { listed: Sketch::new(most), is_all: true };
        let set = self.walked.sets.entry(url).or_insert_with(new);
        set.listed.merge(listed, |_, _| {});
        for uri in facts.changed.keys() {
            set.listed.remove(*uri);
        }
    }

    /// Checks whether the site leads to a Sitemap that was given [rs-0.1 §7.1, §7.3].
    async fn discovery(&mut self, number: usize) -> Result<(), Failure> {
        const MOST: u64 = 512 << 10;
        const ROBOTS: &str = "/robots.txt";
        let url = self.walked.nodes[number].url.clone();
        if !is_url(&url) {
            return Ok(());
        }
        for path in [ROBOTS].iter().chain(&HOST_META) {
            let Ok(place) = resolve(&url, path) else { continue };
            let answer = self.ask(&place, None, false, MOST).await?;
            let answer = answer.ok().filter(|answer| answer.facts.is_success());
            let body = answer.map(|answer| answer.body).unwrap_or_default();
            let named = if *path == ROBOTS {
                robots_sitemaps(&body)
            } else {
                links_in_host_meta(&body).into_iter().map(|(_, href)| href).collect()
            };
            let is_it = |href: &String| {
                let href = href.trim();
                href == url || resolve(&place, href).is_ok_and(|target| target == url)
            };
            if named.iter().any(is_it) {
                return Ok(());
            }
        }
        let message = || "neither robots.txt nor /.well-known/host-meta names it";
        self.add(number, &r::A_DISCOVERY, 0, message);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Mode;

    /// The parser of the validator continues where the parser of copies stops.
    #[test]
    fn copies_refuse_documents_with_many_entries() {
        let entry = "<url><loc>h:a</loc></url>".repeat(200_001);
        let text =
            format!("<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>{entry}</urlset>");
        let found = Findings::new("", Mode::Normal, 1);
        let found = ResourceSync01.check(text.as_bytes(), usize::MAX, found);
        let message = found.message_of(&r::A_ITEMS).unwrap_or_default();
        assert!(message.ends_with("copies refuse it: more than 200000 entries"), "{message}");
    }
}
