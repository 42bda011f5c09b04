//! Documents of ResourceSync 1.1.
//!
//! | file | subject |
//! |---|---|
//! | `checker.rs`, `markup.rs`, `entry.rs` | parsing that continues after faults |
//! | `judge.rs`, `related.rs`, `notification.rs`, `chain.rs`, `kind.rs` | rules for a single document |
//! | `reader.rs`, `collect.rs`, `doc.rs`, `follow.rs` | a document of the walk and its links |
//! | `package.rs` | packages |
//! | `relate.rs`, `relate/topics.rs` | comparison of documents with each other |
//! | `uniform.rs`, `sets.rs` | comparison of lists, changes and packages of a set |
//! | `topic.rs` | topics and hubs |
//! | `resources.rs` | resources for the sample |

pub(crate) mod chain;
pub(crate) mod checker;
pub(crate) mod collect;
pub(crate) mod doc;
pub(crate) mod entry;
mod follow;
pub(crate) mod judge;
pub(crate) mod kind;
pub(crate) mod markup;
pub(crate) mod notification;
pub(crate) mod package;
mod reader;
pub(crate) mod relate;
pub(crate) mod related;
mod resources;
pub(crate) mod sets;
pub(crate) mod topic;
pub(crate) mod uniform;

use crate::fetch::archive::Got;
use crate::fetch::root::root_of;
use crate::fetch::{ResponseFacts, html, is_url};
use crate::report::{Findings, Options};
use crate::resourcesync::checker::Checker;
use crate::resourcesync::collect::{Context, SKETCH};
use crate::resourcesync::doc::Doc;
use crate::resourcesync::package::Package;
use crate::resourcesync::reader::Reading;
use crate::resourcesync::sets::SetData;
use crate::walk::node::{FoundBy, Lead, Node, Record, Sampled, Walked};
use crate::walk::protocol::{Inspection, Page, Protocol, Reader, Run, Visit};
use crate::walk::sketch::{Listed, Seen};
use abreast_resourcesync::v1_1::{Capability, SITEMAP_NAMESPACE};
use abreast_webtypes::robots_sitemaps;
use std::any::Any;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use url::Url;

/// URIs stored to find duplicates; after this limit an even share is checked. About 70 MB.
const SEEN_MAX: usize = 2 << 20;

/// ResourceSync during one run. It reads the documents that no other protocol recognises.
pub(crate) struct ResourceSync {
    context: Context,
    state: Mutex<State>,
}

/// Resources and changes from all documents.
#[derive(Default)]
struct State {
    /// Sets by the URL of their Capability List.
    sets: HashMap<String, SetData>,
    /// Entries of documents that were given. Whether an archive contains such a document is known
    /// only after the walk.
    given: Vec<(usize, String, sets::Sketches)>,
}

impl State {
    fn set(&mut self, url: String) -> &mut SetData {
        // With many sets, each gets smaller sketches, to limit the memory.
        let most = if self.sets.len() < 64 { SKETCH } else { SKETCH / 8 };
        self.sets.entry(url).or_insert_with(|| SetData::new(most))
    }
}

impl ResourceSync {
    pub(crate) fn new(seed: u64) -> Self {
        let seen = Mutex::new(Seen::new(SEEN_MAX, seed));
        Self { context: Context { seed, seen, sketch: SKETCH }, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_document(
        &self,
        doc: &mut Doc,
        node: &Node,
        number: usize,
        options: &Options,
    ) -> (u32, Vec<Lead>) {
        let url = &node.url;
        let set = doc.link(url, "up").map_or_else(|| url.clone(), |(up, _)| up);
        if let Some(sketches) = doc.sketches.take()
            && !(sketches.0.is_empty() && sketches.1.is_empty())
            && !doc.capability().is_some_and(kind::is_manifest)
        {
            let mut state = self.lock();
            if node.found_by == FoundBy::Start {
                state.given.push((number, set, sketches));
            } else {
                state.set(set).merge(sketches);
            }
        }
        let level = follow::level(doc, url, node.origin.index.is_some(), node.level);
        let is_followed = options.walk && is_url(url);
        let leads = is_followed.then(|| follow::leads(doc, url, &node.origin, level, options));
        (level, leads.unwrap_or_default())
    }

    /// Adds the resources in a package of a current Resource Dump to the dumped resources of the
    /// set.
    fn take_package(&self, package: &mut Package, nodes: &[Node], number: usize) {
        let Some(listed) = package.listed.take() else { return };
        let Some(dump) = nodes[number].from.map(|from| &nodes[from]) else { return };
        let Some(doc) = dump.outcome.record::<Doc>() else { return };
        if !dump.origin.archived
            && package.capability == Some(Capability::ResourceDumpManifest)
            && let Some((set, _)) = doc.link(&dump.url, "up")
        {
            self.lock().set(set).dumped.merge(listed, |_, _| {});
        }
    }
}

impl Protocol for ResourceSync {
    fn is_document(&self, _begin: &[u8]) -> bool {
        true
    }

    fn check(&self, bytes: &[u8], piece: usize, found: Findings) -> Findings {
        let mut checker = Checker::new(found, (), u64::MAX);
        for piece in bytes.chunks(piece) {
            checker.feed(piece);
        }
        checker.finish();
        checker.found
    }

    fn has_mark(&self, begin: &[u8]) -> bool {
        let is_sitemap = |(_, name): (bool, String)| matches!(&*name, "urlset" | "sitemapindex");
        root_of(begin, &[SITEMAP_NAMESPACE]).is_some_and(is_sitemap)
    }

    fn reader<'v>(&'v self, visit: &'v Visit<'_>) -> Option<Box<dyn Reader + 'v>> {
        Some(Box::new(Reading::new(&self.context, visit)))
    }

    fn package(&self, visit: &Visit<'_>, got: Got) -> Result<Inspection, Got> {
        Ok(package::inspect(&self.context, visit, got))
    }

    fn leads_on(&self, facts: &ResponseFacts) -> bool {
        !facts.links.is_empty()
    }

    /// Links for discovery in web pages and robots.txt [rs-core §6.3].
    fn links(&self, page: &Page<'_>) -> Vec<Lead> {
        if page.is_host_meta {
            return Vec::new();
        }
        let (targets, found_by) = if page.found_by == FoundBy::Robots {
            (robots_sitemaps(page.bytes), FoundBy::Sitemap)
        } else {
            ([page.facts.links.clone(), html::in_html(page.bytes)].concat(), FoundBy::Page)
        };
        targets.into_iter().map(|target| Lead::new(target, found_by, 1)).collect()
    }

    fn places(&self, start: &Url) -> Vec<Lead> {
        let places = [
            ("/.well-known/resourcesync", FoundBy::WellKnown),
            ("/robots.txt", FoundBy::Robots),
            // A Source in a folder: its URL ends with a slash.
            (".well-known/resourcesync", FoundBy::WellKnown),
        ];
        let count = if start.path().ends_with('/') { 3 } else { 2 };
        let lead = |(path, found_by)| Some(Lead::new(start.join(path).ok()?, found_by, 0));
        places.into_iter().take(count).filter_map(lead).collect()
    }

    fn take_over(
        &self,
        record: &mut dyn Record,
        nodes: &[Node],
        number: usize,
        options: &Options,
    ) -> Option<(u32, Vec<Lead>)> {
        let record: &mut dyn Any = record;
        if let Some(doc) = record.downcast_mut::<Doc>() {
            return Some(self.take_document(doc, &nodes[number], number, options));
        }
        self.take_package(record.downcast_mut()?, nodes, number);
        None
    }

    fn relate(&self, walked: &mut Walked, run: &Run<'_>) {
        relate::relate(walked, run.options);
        let mut state = self.lock();
        for (number, set, sketches) in std::mem::take(&mut state.given) {
            if !doc::in_archive(&walked.nodes, &walked.nodes[number].url) {
                state.set(set).merge(sketches);
            }
        }
        let seen = self.context.seen.lock().unwrap_or_else(PoisonError::into_inner);
        walked.unique_one_in = seen.one_in();
        if !walked.cancelled {
            uniform::compare(walked, &state.sets, run.options);
            topic::ask_hubs(walked, run);
        }
        for (url, set) in state.sets.drain() {
            walked.sets.insert(url, Sampled { listed: set.listed, is_all: false });
        }
    }

    fn each_resource(&self, walked: &Walked, run: &Run<'_>, send: &mut dyn FnMut(Listed)) {
        resources::each(walked, run, send);
    }

    fn link_fault(&self, walked: &Walked, listed: &Listed, target: &str) -> Option<String> {
        // Documents of other protocols do not link to a Capability List.
        walked.record::<Doc>(&listed.document)?;
        relate::wrong_link(walked, &listed.uri, target)
    }
}
