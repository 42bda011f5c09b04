//! The order of activities and patches across pages [emm-1.0 §3.2, §4] [iiif-discovery §3.2].

use crate::emm::doc::Doc;
use crate::emm::item::{Item, PatchFacts};
use crate::fetch::values::is_before;
use crate::report::{Rule, rules as r};
use crate::walk::feeds::Fault;
use crate::walk::sketch::hash;
use abreast_emm::Profile;
use abreast_webtypes::{Timestamp, W3cDatetime, excerpt};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet, VecDeque};

/// Most activities of a feed that are remembered.
const SEEN_MAX: usize = 2 << 20;
/// Linked patches that are fetched to check their chain: the newest of the feed.
pub(super) const LINKED_MAX: usize = 10;
/// Most patches of a feed that are remembered.
const PATCHES_MAX: usize = 100_000;

/// An activity, with hashes in place of texts.
#[derive(Clone, Copy)]
struct Seen {
    entity: u64,
    /// Position of the activity in the order of the walk.
    place: u32,
    page: u32,
    number: u32,
    kind: u8,
}

const NEW: u8 = 0;
const CHANGED: u8 = 1;
const GONE: u8 = 2;
const OTHER: u8 = 3;

/// An activity, with the facts of its patch if they are known.
struct SeenPatch {
    entity: u64,
    page: u32,
    number: u32,
    facts: PatchFacts,
    has_patch: bool,
}

/// A patch to which an activity links, instead of containing it.
pub(super) struct LinkedPatch {
    /// Index of the patch among the patches of the feed.
    place: usize,
    pub(super) url: String,
}

/// Extent of the feed that was read.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    /// Whether all pages were read.
    pub(super) is_whole: bool,
    /// Whether the feed has a download, so that earlier activities may be missing.
    pub(super) has_download: bool,
    /// Whether the feed is part of another feed and contains only some of its activities.
    pub(super) is_view: bool,
}

/// Faults of pages: the first of each rule up to a limit, and the number of all.
pub(super) struct Faults {
    most: u64,
    pub(super) list: Vec<(String, Fault)>,
    counts: HashMap<&'static str, u64>,
}

impl Faults {
    pub(super) fn new(most: usize) -> Self {
        Self { most: most.max(1) as u64, list: Vec::new(), counts: HashMap::new() }
    }

    pub(super) fn add(&mut self, url: &str, rule: &'static Rule, message: impl FnOnce() -> String) {
        let count = self.counts.entry(rule.id).or_default();
        *count += 1;
        if *count <= self.most {
            self.list.push((url.to_owned(), (rule, message())));
        }
    }

    /// For each rule, the number of faults that are only counted.
    pub(super) fn more(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().map(|(rule, count)| (*rule, count.saturating_sub(self.most)))
    }
}

/// State of a feed during the walk over its pages.
pub(super) struct History {
    seed: u64,
    /// Whether the walk is from the last page to the first.
    backwards: bool,
    /// Order of times in the feed: the comparison of an activity with the next one.
    pub(super) direction: Option<Ordering>,
    /// Times of the first and last activity on the previous page.
    ends: Option<(W3cDatetime, W3cDatetime)>,
    pages: Vec<String>,
    seen: Vec<Seen>,
    patches: Vec<SeenPatch>,
    /// The first and the last linked patches, in the order of the walk.
    first_linked: Vec<LinkedPatch>,
    last_linked: VecDeque<LinkedPatch>,
    ids: HashSet<u64>,
    pub(super) count: u64,
    pub(super) newest: Option<Timestamp>,
    pub(super) has_instruments: bool,
    pub(super) has_inline_patches: bool,
}

impl History {
    pub(super) fn new(seed: u64, backwards: bool) -> Self {
        Self {
            seed,
            backwards,
            direction: None,
            ends: None,
            pages: Vec::new(),
            seen: Vec::new(),
            patches: Vec::new(),
            first_linked: Vec::new(),
            last_linked: VecDeque::new(),
            ids: HashSet::new(),
            count: 0,
            newest: None,
            has_instruments: false,
            has_inline_patches: false,
        }
    }

    /// Whether the pages with the newest activities are read first.
    pub(super) fn begins_with_newest(&self) -> bool {
        self.backwards != (self.direction == Some(Ordering::Greater))
    }

    /// Adds a page. Returns the faults of its activities and of its order.
    pub(super) fn page(&mut self, url: &str, doc: &Doc) -> Vec<Fault> {
        let mut faults = Vec::new();
        let page = self.pages.len() as u32;
        self.pages.push(url.to_owned());
        self.order(doc, &mut faults);
        let items: Box<dyn Iterator<Item = &Item>> = if self.backwards {
            Box::new(doc.items.iter().rev())
        } else {
            Box::new(doc.items.iter())
        };
        for item in items {
            self.item(item, page, &mut faults);
        }
        faults
    }

    fn order(&mut self, doc: &Doc, faults: &mut Vec<Fault>) {
        let mut before: Option<W3cDatetime> = None;
        let (mut first, mut last) = (None, None);
        for item in &doc.items {
            let Some(time) = item.time else { continue };
            if let Some(before) = before
                && !self.follows(before, time)
            {
                let message = format!(
                    "/orderedItems/{}: {} comes behind {}",
                    item.number, time.instant, before.instant
                );
                faults.push((&r::CF_ORDER, message));
            }
            before = Some(time);
            first = first.or(before);
            last = before;
        }
        let (Some(first), Some(last)) = (first, last) else { return };
        if let Some((other_first, other_last)) = self.ends {
            let (earlier, later) =
                if self.backwards { (last, other_first) } else { (other_last, first) };
            if !self.follows(earlier, later) {
                let message = format!(
                    "a page with {} comes behind one with {}",
                    later.instant, earlier.instant
                );
                faults.push((&r::CF_PAGE_ORDER, message));
            }
        }
        self.ends = Some((first, last));
    }

    /// Whether two times are in the order of the feed, which the first two different times
    /// determine.
    fn follows(&mut self, one: W3cDatetime, other: W3cDatetime) -> bool {
        let found = match (is_before(one, other), is_before(other, one)) {
            (true, _) => Ordering::Less,
            (_, true) => Ordering::Greater,
            _ => return true,
        };
        *self.direction.get_or_insert(found) == found
    }

    fn item(&mut self, item: &Item, page: u32, faults: &mut Vec<Fault>) {
        self.count += 1;
        let time = item.time.map(|time| time.instant);
        self.newest = self.newest.max(time);
        self.has_instruments |= item.instrument.is_some() || item.patch.is_some();
        self.has_inline_patches |= item.patch.is_some();
        if let Some(id) = &item.id
            && self.ids.len() < SEEN_MAX
            && !self.ids.insert(hash(self.seed, id))
        {
            let message = format!(
                "/orderedItems/{}: `id` {} is that of another activity",
                item.number,
                excerpt(id)
            );
            faults.push((&r::CF_ID_ONCE, message));
        }
        let Some(object) = &item.object else { return };
        let entity = hash(self.seed, object);
        let kind = match &*item.kind {
            "Create" | "Add" => NEW,
            "Update" | "Deprecate" => CHANGED,
            "Delete" | "Remove" => GONE,
            _ => OTHER,
        };
        if self.seen.len() < SEEN_MAX {
            let place = self.seen.len() as u32;
            self.seen.push(Seen { entity, place, page, number: item.number, kind });
        }
        if let Some(url) = &item.instrument
            && self.patches.len() < PATCHES_MAX
        {
            let facts = item.patch.clone().filter(PatchFacts::is_short);
            let (has_patch, facts) = (facts.is_some(), facts.unwrap_or_default());
            if item.patch.is_none() {
                self.note_linked(url);
            }
            self.patches.push(SeenPatch { entity, page, number: item.number, facts, has_patch });
        }
    }

    fn note_linked(&mut self, url: &str) {
        let linked = || LinkedPatch { place: self.patches.len(), url: url.to_owned() };
        if self.first_linked.len() < LINKED_MAX {
            self.first_linked.push(linked());
        }
        self.last_linked.push_back(linked());
        if self.last_linked.len() > LINKED_MAX {
            self.last_linked.pop_front();
        }
    }

    /// The newest linked patches, for the check of their chain.
    pub(super) fn take_linked(&mut self) -> Vec<LinkedPatch> {
        if self.begins_with_newest() {
            std::mem::take(&mut self.first_linked)
        } else {
            std::mem::take(&mut self.last_linked).into()
        }
    }

    /// Stores the header of a linked patch that was fetched.
    pub(super) fn fetched(&mut self, linked: &LinkedPatch, facts: PatchFacts) {
        if let Some(seen) = self.patches.get_mut(linked.place).filter(|_| facts.is_short()) {
            (seen.facts, seen.has_patch) = (facts, true);
        }
    }

    /// Adds the faults that are known only after the whole feed was read.
    pub(super) fn finish(mut self, profile: Profile, extent: Extent, faults: &mut Faults) {
        let Extent { is_whole, has_download, is_view } = extent;
        let descends = self.direction == Some(Ordering::Greater);
        if self.begins_with_newest() {
            self.seen.iter_mut().for_each(|seen| seen.place = u32::MAX - seen.place);
            self.patches.reverse();
        }
        let is_cut = self.seen.len() == SEEN_MAX;
        self.seen.sort_unstable_by_key(|seen| (seen.entity, seen.place));
        let groups = || self.seen.chunk_by(|one, other| one.entity == other.entity);
        // A feed with only the last change of each entity does not contain earlier activities.
        let is_history = groups().any(|group| group.len() > 1);
        let reads_begin =
            profile != Profile::Iiif1 && is_whole && !is_cut && is_history && !has_download;
        let at = |page: u32| self.pages[page as usize].as_str();
        let mut add = |seen: Seen, rule, why: &str| {
            faults.add(at(seen.page), rule, || format!("/orderedItems/{}: {why}", seen.number));
        };
        for group in groups() {
            if reads_begin && !matches!(group[0].kind, NEW | OTHER) {
                let why = "the first activity of its entity is neither `Create` nor `Add`";
                add(group[0], &r::EMM_APPEARANCE, why);
            }
            for pair in group.windows(2) {
                if pair[0].kind == GONE && pair[1].kind == CHANGED {
                    let why =
                        "the entity was deleted or removed before, and not created or added since";
                    add(pair[1], &r::CF_AFTER_DELETE, why);
                }
            }
        }
        chain(&self.patches, is_view, |patch, rule, why| {
            let message = || format!("/orderedItems/{}/instrument: {why}", patch.number);
            faults.add(at(patch.page), rule, message);
        });
        if profile == Profile::Iiif1
            && descends
            && let Some(page) = self.pages.first()
        {
            faults.add(page, &r::IIIF_ORDER, || "the newest activity is the first".to_owned());
        }
    }
}

/// Checks the patches in the order of time: the previous patch that each refers to, and the state
/// that it applies to. In a view of a feed, the previous patch of the log may be missing.
fn chain<'p>(
    patches: &'p [SeenPatch],
    is_view: bool,
    mut add: impl FnMut(&'p SeenPatch, &'static Rule, String),
) {
    let mut of_entities: HashMap<u64, &SeenPatch> = HashMap::new();
    let mut last: Option<&SeenPatch> = None;
    for patch in patches {
        let facts = &patch.facts;
        let former = of_entities.get(&patch.entity).filter(|former| former.has_patch);
        let id_of = |patch: Option<&SeenPatch>| patch.and_then(|patch| patch.facts.id.clone());
        let (of_log, of_entity) = (id_of(last.filter(|_| !is_view)), id_of(former.copied()));
        let follows = |prev: &Option<String>, known: &[&Option<String>]| {
            known.iter().all(|known| known.is_none()) || known.contains(&prev)
        };
        if facts.prev.is_some() && of_log.is_some() && !follows(&facts.prev, &[&of_log, &of_entity])
        {
            let prev = excerpt(facts.prev.as_deref().unwrap_or_default());
            let why = format!("`H prev` is <{prev}>, and the patch before it is another one");
            add(patch, &r::PATCH_CHAIN, why);
        } else if facts.entity_prev.is_some() && !follows(&facts.entity_prev, &[&of_entity]) {
            let prev = excerpt(facts.entity_prev.as_deref().unwrap_or_default());
            let why = format!(
                "`H entityPrev` is <{prev}>, and the patch before it of this entity is another one"
            );
            add(patch, &r::PATCH_CHAIN, why);
        }
        if let (Some(before), Some(after)) =
            (&facts.before, former.and_then(|it| it.facts.after.as_ref()))
            && before != after
        {
            let why = format!(
                "`H before` is {}, and the patch before it has {} after",
                excerpt(before),
                excerpt(after)
            );
            add(patch, &r::PATCH_DIGEST, why);
        }
        of_entities.insert(patch.entity, patch);
        last = Some(patch);
    }
}
