//! The walk over a whole Source, up and down: each address once, by several threads, within limits.

pub(crate) mod feeds;
pub(crate) mod inspect;
pub(crate) mod inspected;
pub(crate) mod node;
pub(crate) mod report;
pub(crate) mod sample;
pub(crate) mod settle;
pub(crate) mod sketch;

use crate::fetch::manners::is_host_meta;
use crate::fetch::manners::{CONDITIONS_MAX, HOST_META};
use crate::fetch::place::is_url;
use crate::fetch::{Budget, ResponseFacts};
use crate::report::options::{Options, Share};
use crate::resourcesync::collect::{Child, Context, Origin, SKETCH};
use crate::resourcesync::kind;
use crate::resourcesync::package::{self, Package};
use crate::resourcesync_0_1::alpha::Alpha;
use crate::walk::inspected::{Inspected, Inspection};
use crate::walk::node::{
    Doc, FoundBy, Node, Outcome, SetData, Walked, in_archive, site_has_documents,
};
use crate::walk::sketch::{Changes, Listed, Seen, Sketch};
use abreast_net::{Client, Shared};
use abreast_resourcesync::v0_1::{LinkKind, links_in_host_meta, links_in_html};
use abreast_resourcesync::v1_1::{Capability, Root};
use abreast_webtypes::{Origin as WebOrigin, resolve, robots_sitemaps};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use url::Url;

/// Findings after which a document keeps one of each rule; the others are counted.
const FINDINGS_MAX: usize = 100_000;
/// The limit of documents, by the name of its option.
pub(crate) const MAX_DOCUMENTS: &str = "--max-documents";
/// URIs kept for finding those listed twice; beyond it an even share is checked. About 70 MB.
const SEEN_MAX: usize = 2 << 20;
struct State {
    nodes: Vec<Node>,
    by_url: HashMap<String, usize>,
    queue: VecDeque<usize>,
    /// Change Lists: read when the queue is empty, so that they report everything the other lists
    /// do.
    late: VecDeque<usize>,
    /// Addresses from archives: read last, since a list that is still in its index does not belong
    /// to the past.
    past: VecDeque<usize>,
    /// It is time for the late ones, or for the past.
    stage: u8,
    active: usize,
    sets: HashMap<String, SetData>,
    /// Entries of documents that were given: only at the end it is known whether an archive has
    /// them.
    given: Vec<(usize, String, Sketch<Listed>, Sketch<Changes>)>,
    /// A limit of bytes or time, which ends the walk at once.
    limit: Option<&'static str>,
    /// Documents and packages that were read or are waiting.
    taken: usize,
    /// Addresses beyond the limit of documents, in order.
    refused: VecDeque<usize>,
    /// More addresses than are remembered.
    overflowed: bool,
    cancelled: bool,
    steps: u64,
    /// Links of pages that were given to documents of ResourceSync 0.1.
    of_0_1: Vec<(usize, String)>,
    /// What leads to documents of 0.1 was tried.
    is_last_tried: bool,
}

pub(crate) struct Walk<'a> {
    pub(crate) options: &'a Options,
    pub(crate) budget: &'a Budget<'a>,
    shared: Arc<Shared>,
    pub(crate) context: Context,
    hosts: HashSet<WebOrigin>,
    names: HashSet<String>,
    state: Mutex<State>,
    wake: Condvar,
    pub(crate) conditions: AtomicU64,
    /// Findings kept so far.
    kept: AtomicUsize,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(options: &'a Options, budget: &'a Budget<'a>, shared: Arc<Shared>) -> Self {
        let hosts = options
            .starts
            .iter()
            .filter(|start| is_url(start))
            .filter_map(|start| WebOrigin::of(start));
        let names = options.allow_hosts.iter().map(|host| host.to_ascii_lowercase());
        Self {
            options,
            budget,
            shared,
            context: Context {
                seed: options.seed,
                seen: Mutex::new(Seen::new(SEEN_MAX, options.seed)),
                sketch: SKETCH,
            },
            hosts: hosts.collect(),
            names: names.collect(),
            state: Mutex::new(State {
                nodes: Vec::new(),
                by_url: HashMap::new(),
                queue: VecDeque::new(),
                late: VecDeque::new(),
                past: VecDeque::new(),
                stage: 0,
                active: 0,
                sets: HashMap::new(),
                given: Vec::new(),
                limit: None,
                taken: 0,
                refused: VecDeque::new(),
                overflowed: false,
                cancelled: false,
                steps: 0,
                of_0_1: Vec::new(),
                is_last_tried: false,
            }),
            wake: Condvar::new(),
            conditions: AtomicU64::new(CONDITIONS_MAX),
            kept: AtomicUsize::new(0),
        }
    }

    /// Walks to the end, or to a limit.
    pub(crate) fn run(self) -> Walked {
        {
            let mut state = self.lock();
            for start in &self.options.starts {
                self.add(&mut state, start, FoundBy::Start, None, 0, 2, Origin::default());
            }
        }
        std::thread::scope(|scope| {
            for _ in 0..self.options.connections.clamp(1, 64) {
                scope.spawn(|| self.work());
            }
        });
        {
            let mut state = self.lock();
            for (number, set, listed, changed) in std::mem::take(&mut state.given) {
                if !in_archive(&state.nodes, &state.nodes[number].url) {
                    self.set(&mut state, set).merge(listed, changed);
                }
            }
        }
        let one_in = self.context.seen.lock().unwrap_or_else(PoisonError::into_inner).one_in();
        let state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        Walked {
            nodes: state.nodes,
            by_url: state.by_url,
            sets: state.sets,
            limit: state
                .limit
                .or((state.overflowed || !state.refused.is_empty()).then_some(MAX_DOCUMENTS)),
            cancelled: state.cancelled,
            unique_one_in: one_in,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an address may be checked.
    pub(crate) fn is_allowed(&self, url: &str) -> bool {
        let Some(origin) = WebOrigin::of(url) else { return false };
        matches!(origin.scheme.as_str(), "http" | "https")
            && (self.hosts.contains(&origin)
                || self.names.contains(&origin.host)
                || self.names.contains(&format!("{}:{}", origin.host, origin.port)))
    }

    #[expect(clippy::too_many_arguments, reason = "one call makes one node")]
    fn add(
        &self,
        state: &mut State,
        url: &str,
        found_by: FoundBy,
        from: Option<usize>,
        entry: usize,
        level: u32,
        origin: Origin,
    ) {
        let key = abreast_webtypes::without_fragment(url);
        if state.by_url.contains_key(key) {
            return;
        }
        let number = state.nodes.len();
        let is_full = state.taken >= self.options.max_documents;
        let outcome = if found_by != FoundBy::Start && !self.is_allowed(url) {
            Outcome::Left("other host")
        } else if state.limit.is_some() || state.cancelled || is_full {
            Outcome::Left("limit")
        } else {
            Outcome::Waiting
        };
        if is_full && number >= self.options.max_documents.saturating_mul(2) {
            state.overflowed = true;
            return;
        }
        let is_refused = is_full && matches!(outcome, Outcome::Left("limit"));
        let is_waiting = matches!(outcome, Outcome::Waiting);
        state.by_url.insert(key.to_owned(), number);
        state.nodes.push(Node {
            url: key.to_owned(),
            found_by,
            from,
            entry,
            level,
            origin,
            outcome,
            findings: Vec::new(),
            millis: 0,
            steps: (0, 0),
        });
        if is_refused {
            state.refused.push_back(number);
        } else if is_waiting {
            Self::take(state, number);
        }
    }

    /// Puts an address into the queue of its stage.
    fn take(state: &mut State, number: usize) {
        state.taken += 1;
        let node = &state.nodes[number];
        let parent = node.from.map(|from| &state.nodes[from].outcome);
        let is_change_list = matches!(parent, Some(Outcome::Document(doc))
            if doc.is(Capability::ChangeList) && node.found_by == FoundBy::Down
                || doc.is(Capability::CapabilityList)
                    && doc.children.get(node.entry).is_some_and(|c| c.capability == Some(Capability::ChangeList)));
        if node.origin.archived {
            state.past.push_back(number);
        } else if is_change_list {
            state.late.push_back(number);
        } else {
            state.queue.push_back(number);
        }
    }

    /// An address that was only tried, and has no document, does not count.
    fn give_back(state: &mut State) {
        state.taken -= 1;
        if let Some(number) = state.refused.pop_front() {
            state.nodes[number].outcome = Outcome::Waiting;
            Self::take(state, number);
        }
    }

    fn work(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let Ok(runtime) = runtime else { return };
        let client = Client::new(Arc::clone(&self.shared));
        while let Some(number) = self.next() {
            let guard = InspectionGuard(self);
            let (url, found_by, origin) = {
                let mut state = self.lock();
                state.steps += 1;
                let step = state.steps;
                let node = &mut state.nodes[number];
                node.steps.0 = step;
                (node.url.clone(), node.found_by, node.origin.clone())
            };
            let begun = Instant::now();
            let done = runtime.block_on(self.inspect(&client, number, &url, found_by, origin));
            let mut state = self.lock();
            state.nodes[number].millis = begun.elapsed().as_millis() as u64;
            self.done(&mut state, number, done);
            drop(state);
            drop(guard);
        }
    }

    /// The next address; `None` when all is done.
    fn next(&self) -> Option<usize> {
        let mut state = self.lock();
        loop {
            if state.limit.is_some() || state.cancelled {
                return None;
            }
            let is_idle = state.active == 0
                && [&state.queue, &state.late, &state.past].iter().all(|queue| queue.is_empty());
            if is_idle && self.options.walk && !std::mem::replace(&mut state.is_last_tried, true) {
                self.try_last(&mut state);
            }
            if state.active == 0 && state.queue.is_empty() {
                state.stage = state.stage.max(if state.late.is_empty() { 2 } else { 1 });
            }
            let stage = state.stage;
            let mut ready = state.queue.pop_front();
            if stage >= 1 {
                ready = ready.or_else(|| state.late.pop_front());
            }
            if stage >= 2 {
                ready = ready.or_else(|| state.past.pop_front());
            }
            if let Some(number) = ready {
                state.active += 1;
                return Some(number);
            }
            if state.active == 0 {
                self.wake.notify_all();
                return None;
            }
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// How many findings of one rule the next document may keep.
    pub(crate) fn most_each(&self) -> usize {
        if self.kept.load(Ordering::Relaxed) < FINDINGS_MAX { self.options.most_each } else { 1 }
    }

    /// The entry that leads to a package, and what the document is that has it.
    pub(crate) fn entry_of(&self, number: usize) -> Option<(Child, Option<Capability>)> {
        let state = self.lock();
        let node = &state.nodes[number];
        match node.from.map(|from| &state.nodes[from].outcome) {
            Some(Outcome::Document(doc)) if node.found_by == FoundBy::Package => {
                Some((doc.children[node.entry].clone(), doc.capability()))
            }
            _ => None,
        }
    }

    /// Adds the places of a site that lead to its Source, unless the start is a feed.
    fn probe(&self, state: &mut State, start: &str) {
        let Ok(url) = Url::parse(start) else { return };
        for (path, found_by) in
            [("/.well-known/resourcesync", FoundBy::WellKnown), ("/robots.txt", FoundBy::Robots)]
        {
            if let Ok(url) = url.join(path) {
                self.add(state, url.as_str(), found_by, None, 0, 0, Origin::default());
            }
        }
        // A Source below a path, whose address ends as that of a folder.
        if url.path().ends_with('/')
            && let Ok(url) = url.join(".well-known/resourcesync")
        {
            let found_by = FoundBy::WellKnown;
            self.add(state, url.as_str(), found_by, None, 0, 0, Origin::default());
        }
    }

    /// Adds what leads to documents of ResourceSync 0.1, where nothing else led to any: links of the
    /// page that was given; of the root of a site also host-meta [rs-0.1 §7.2, §7.3].
    fn try_last(&self, state: &mut State) {
        let links = std::mem::take(&mut state.of_0_1);
        let is_bare = |number: &usize| {
            let node = &state.nodes[*number];
            node.found_by == FoundBy::Start
                && is_url(&node.url)
                && matches!(
                    node.outcome,
                    Outcome::Failed(_) | Outcome::Page(_) | Outcome::Document(_)
                )
                && !site_has_documents(&state.nodes, *number)
        };
        let bare: Vec<usize> = (0..state.nodes.len()).filter(is_bare).collect();
        for number in bare {
            let mut own = links.iter().filter(|(from, _)| *from == number).peekable();
            let has_links = own.peek().is_some();
            let site = WebOrigin::of(&state.nodes[number].url);
            let is_plain = |node: &Node| {
                matches!(node.outcome, Outcome::Plain) && WebOrigin::of(&node.url) == site
            };
            // A copy would begin with what robots.txt names.
            for plain in 0..state.nodes.len() {
                if is_plain(&state.nodes[plain]) {
                    state.nodes[plain].found_by = FoundBy::Plain;
                    state.nodes[plain].outcome = Outcome::Waiting;
                    Self::take(state, plain);
                }
            }
            for (_, url) in own {
                self.add(state, url, FoundBy::Site, Some(number), 0, 1, Origin::default());
            }
            if has_links || !state.nodes[number].is_root() {
                continue;
            }
            let Ok(root) = Url::parse(&state.nodes[number].url) else { continue };
            for url in HOST_META.iter().filter_map(|place| root.join(place).ok()) {
                self.add(state, url.as_str(), FoundBy::HostMeta, None, 0, 0, Origin::default());
            }
            if let Ok(url) = root.join("/sitemap.xml") {
                self.add(state, url.as_str(), FoundBy::Site, None, 0, 1, Origin::default());
            }
        }
    }

    /// Takes over what was found, and adds what it leads to.
    fn done(&self, state: &mut State, number: usize, inspected: Inspection) {
        state.steps += 1;
        state.nodes[number].steps.1 = state.steps;
        self.kept.fetch_add(inspected.findings.len(), Ordering::Relaxed);
        state.nodes[number].findings = inspected.findings;
        let is_tried = matches!(
            state.nodes[number].found_by,
            FoundBy::WellKnown | FoundBy::Robots | FoundBy::HostMeta
        );
        if is_tried
            && matches!(
                inspected.found,
                Inspected::Nothing(_) | Inspected::Plain | Inspected::Page(..)
            )
        {
            Self::give_back(state);
        }
        let start = &state.nodes[number];
        if start.found_by == FoundBy::Start
            && is_url(&start.url)
            && self.options.walk
            && !matches!(
                inspected.found,
                Inspected::Feed
                    | Inspected::ChangeFeed
                    | Inspected::Alpha
                    | Inspected::AlphaDump
                    | Inspected::Left(crate::fetch::MAKING)
            )
        {
            let start = start.url.clone();
            self.probe(state, &start);
        }
        match inspected.found {
            Inspected::Feed => state.nodes[number].outcome = Outcome::Feed(Box::default()),
            Inspected::ChangeFeed => {
                state.nodes[number].outcome = Outcome::ChangeFeed(Box::default());
            }
            Inspected::Alpha => state.nodes[number].outcome = Outcome::Alpha(Box::default()),
            Inspected::AlphaDump => {
                let dump = Alpha { is_dump: true, ..Alpha::default() };
                state.nodes[number].outcome = Outcome::Alpha(Box::new(dump));
            }
            Inspected::Nothing(message) => state.nodes[number].outcome = Outcome::Failed(message),
            Inspected::Left(why) => state.nodes[number].outcome = Outcome::Left(why),
            Inspected::Plain => state.nodes[number].outcome = Outcome::Plain,
            Inspected::Limit(limit) => {
                state.limit = Some(limit);
                state.nodes[number].outcome = Outcome::Left("limit");
            }
            Inspected::Cancelled => {
                state.cancelled = true;
                state.nodes[number].outcome = Outcome::Left("stopped");
            }
            Inspected::Page(page, facts) => self.page(state, number, &page, &facts),
            Inspected::Resource(facts) => {
                self.page(state, number, b"", &facts);
                state.nodes[number].outcome = Outcome::Page("resource");
            }
            Inspected::Package(mut package) => {
                if let Some(listed) = package.listed.take()
                    && let Some(set) = Self::set_of_package(state, number, &package)
                {
                    self.set(state, set).dumped.merge(listed, |_, _| {});
                }
                state.nodes[number].outcome = Outcome::Package(package);
            }
            Inspected::Document(doc) => {
                let url = state.nodes[number].url.clone();
                let set = doc.link(&url, "up").map_or_else(|| url.clone(), |(up, _)| up);
                if let Some((listed, changed)) = inspected.listed
                    && !(listed.is_empty() && changed.is_empty())
                    && !kind::is_manifest(doc.capability().unwrap_or(Capability::ResourceList))
                {
                    if state.nodes[number].found_by == FoundBy::Start {
                        state.given.push((number, set, listed, changed));
                    } else {
                        self.set(state, set).merge(listed, changed);
                    }
                }
                let origin = state.nodes[number].origin.clone();
                state.nodes[number].level =
                    level(&doc, &url, origin.index.is_some(), state.nodes[number].level);
                state.nodes[number].outcome = Outcome::Document(doc);
                if self.options.walk && is_url(&url) {
                    self.follow(state, number, &url, &origin);
                }
            }
        }
    }

    fn set<'s>(&self, state: &'s mut State, url: String) -> &'s mut SetData {
        // Very many sets share the memory that is for sketches.
        let most =
            if state.sets.len() < 64 { self.context.sketch } else { self.context.sketch / 8 };
        state.sets.entry(url).or_insert_with(|| SetData {
            listed: Sketch::new(most),
            dumped: Sketch::new(most),
            changed: Sketch::new(most),
        })
    }

    /// The set of a Resource Dump's package.
    fn set_of_package(state: &State, number: usize, package: &Package) -> Option<String> {
        let dump = state.nodes[number].from?;
        let Outcome::Document(doc) = &state.nodes[dump].outcome else { return None };
        let is_current = !state.nodes[dump].origin.archived;
        (is_current && package.capability == Some(Capability::ResourceDumpManifest))
            .then(|| doc.link(&state.nodes[dump].url, "up").map(|(url, _)| url))?
    }

    fn page(&self, state: &mut State, number: usize, page: &[u8], facts: &ResponseFacts) {
        let (url, found_by) = (state.nodes[number].url.clone(), state.nodes[number].found_by);
        state.nodes[number].outcome = Outcome::Page("page");
        let (targets, next) = if found_by == FoundBy::Robots {
            (robots_sitemaps(page), FoundBy::Sitemap)
        } else if is_host_meta(&url, found_by) {
            (best(links_in_host_meta(page)), FoundBy::Site)
        } else {
            ([facts.links.clone(), crate::fetch::html::in_html(page)].concat(), FoundBy::Page)
        };
        if matches!(found_by, FoundBy::WellKnown | FoundBy::Page)
            || (!matches!(found_by, FoundBy::Robots | FoundBy::Start | FoundBy::HostMeta)
                && targets.is_empty())
        {
            let message = "this is a web page, no ResourceSync document".to_owned();
            state.nodes[number].outcome = Outcome::Failed(message);
        }
        if found_by == FoundBy::Start && targets.is_empty() {
            let links = [facts.of_0_1.clone(), links_in_html(page)].concat();
            let links = best(links).into_iter().filter_map(|link| resolve(&url, &link).ok());
            state.of_0_1.extend(links.map(|link| (number, link)));
        }
        for target in targets.iter().filter_map(|target| resolve(&url, target).ok()) {
            self.add(state, &target, next, Some(number), 0, 1, Origin::default());
        }
    }

    fn follow(&self, state: &mut State, number: usize, url: &str, origin: &Origin) {
        let level = state.nodes[number].level;
        let Outcome::Document(doc) = &state.nodes[number].outcome else { return };
        let mut next: Vec<(String, FoundBy, usize, u32, Origin)> = Vec::new();
        for (rel, found_by) in
            [("up", FoundBy::Up), ("index", FoundBy::Index), ("archives", FoundBy::Archives)]
        {
            if let Some((target, _)) = doc.link(url, rel) {
                let above = u32::from(!doc.is(Capability::CapabilityList));
                let level = if found_by == FoundBy::Up { above } else { 2 };
                next.push((target, found_by, 0, level, Origin::default()));
            }
        }
        if doc.silent {
            // It has no `up`; what leads to the Capability List is in the header.
            let links = doc.facts.links.iter().filter_map(|link| resolve(url, link).ok());
            next.extend(links.map(|target| (target, FoundBy::Page, 0, 1, Origin::default())));
        }
        if level < self.options.depth
            && let Some(capability) = doc.capability()
            // A document that a notification names may be deleted since; it is reached from the
            // Capability List.
            && capability != Capability::FrameworkNotification
        {
            let archived = origin.archived || kind::is_archive(capability);
            let is_dump = kind::points_to_packages(capability, doc.root());
            let chosen = chosen(doc.children.len(), self.options.packages);
            for (entry, child) in doc.children.iter().enumerate() {
                if is_dump {
                    if let Some(contents) = &child.contents {
                        let found_by = FoundBy::Contents;
                        next.push((
                            contents.clone(),
                            found_by,
                            entry,
                            level + 1,
                            Origin { index: None, archived },
                        ));
                    }
                    if chosen.contains(&entry) && package::may_be_zip(&child.media_type, &child.url)
                    {
                        let origin = Origin { index: None, archived };
                        next.push((child.url.clone(), FoundBy::Package, entry, level + 1, origin));
                    }
                    continue;
                }
                let index = (doc.root() == Root::SitemapIndex).then(|| url.to_owned());
                let is_topic = capability == Capability::CapabilityList
                    && child.capability.is_some_and(kind::is_notification);
                let found_by = if is_topic { FoundBy::Topic } else { FoundBy::Down };
                next.push((
                    child.url.clone(),
                    found_by,
                    entry,
                    level + 1,
                    Origin { index, archived },
                ));
            }
        }
        for (target, found_by, entry, level, origin) in next {
            self.add(state, &target, found_by, Some(number), entry, level, origin);
        }
    }
}

/// The targets of the best kind, as a copy begins with them.
fn best(links: Vec<(LinkKind, String)>) -> Vec<String> {
    let best = links.iter().map(|(kind, _)| *kind).min();
    let of_best = links.into_iter().filter(|(kind, _)| Some(*kind) == best);
    of_best.map(|(_, href)| href.trim().to_owned()).collect()
}

/// An inspection in progress; when it ends in any way, others may continue.
struct InspectionGuard<'a, 'w>(&'a Walk<'w>);

impl Drop for InspectionGuard<'_, '_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.active -= 1;
        state.cancelled |= std::thread::panicking();
        self.0.wake.notify_all();
    }
}

/// How far below the Source Description a document is.
fn level(doc: &Doc, url: &str, from_index: bool, expected: u32) -> u32 {
    match doc.capability() {
        Some(Capability::Description) => u32::from(from_index),
        Some(Capability::CapabilityList) => 1,
        Some(capability) if kind::is_manifest(capability) => expected.max(3),
        Some(_) if from_index || doc.link(url, "index").is_some() => expected.max(3),
        Some(_) => expected.max(2),
        None => expected,
    }
}

/// Which of so many packages are checked: the first, the last, and others evenly between.
fn chosen(count: usize, share: Share) -> HashSet<usize> {
    match share {
        Share::Some(0) => HashSet::new(),
        Share::Some(some) if (some as usize) < count => {
            let some = some as usize;
            (0..some)
                .map(|number| if some == 1 { 0 } else { number * (count - 1) / (some - 1) })
                .collect()
        }
        _ => (0..count).collect(),
    }
}

/// A budget for a walk.
pub(crate) fn budget<'a>(options: &Options, cancel: &'a AtomicBool) -> Budget<'a> {
    Budget {
        bytes_left: AtomicU64::new(options.max_bytes),
        until: Instant::now() + options.max_time,
        cancel,
        unreachable: Mutex::default(),
    }
}
