//! Rules for a single document: its head, its entries, their order [rs-core §7, §A].

use crate::fetch::paths::{is_again, path};
use crate::fetch::values;
use crate::report::{Findings, Rule, rules as r};
use crate::resourcesync::chain::{Bound, Chain, Interval, Openness};
use crate::resourcesync::entry::{Entry, Head};
use crate::resourcesync::kind::{self, AttributeUse};
use crate::resourcesync::markup::has;
use crate::resourcesync::{notification, related};
use abreast_resourcesync::sitemap::named_again;
use abreast_resourcesync::v1_1::{Capability, Change, Root};
use abreast_webtypes::{W3cDatetime, count, excerpt};
use std::collections::HashSet;

/// State from earlier entries of the document.
#[derive(Clone, Debug)]
pub(crate) struct State {
    head_judged: bool,
    /// Time of the last change or archived document with a time.
    latest: Option<W3cDatetime>,
    /// Intervals of the lists or packages.
    chain: Chain,
    /// Hashes of the paths in a manifest, or of the documents in an index.
    seen: HashSet<u64>,
    capabilities: Vec<Capability>,
    /// Media type of the first package.
    format: Option<String>,
    without_time: u64,
    first_without_time: (u64, u64),
    notification: notification::State,
}

impl Default for State {
    fn default() -> Self {
        Self {
            head_judged: false,
            latest: None,
            chain: Chain::alone(),
            seen: HashSet::new(),
            capabilities: Vec::new(),
            format: None,
            without_time: 0,
            first_without_time: (0, 0),
            notification: notification::State::default(),
        }
    }
}

/// Parts of a document that were read. Parts after a fault of XML are unknown, and not reported as
/// missing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Whether the head was read to its end.
    pub(crate) head: bool,
    /// Whether the document was read to its end.
    pub(crate) entries: bool,
}

/// Checks the head, which precedes the entries.
pub(crate) fn head(head: &Head, read: Extent, found: &mut Findings) {
    let Some(md) = &head.md else { return };
    let (root, place) = (head.root(), head.md_place);
    let Some(capability) = md.capability else {
        if !md.has(has::CAPABILITY) {
            found.add(&r::CAPABILITY, place, || "the `rs:md` of the document has no `capability`");
        }
        return;
    };
    let name = || kind::name(Some(capability), root);
    let times = kind::times(capability, root);
    for (of, bit, word, rule) in
        [(times.at, has::AT, "at", &r::AT), (times.from, has::FROM, "from", &r::FROM)]
    {
        if of == AttributeUse::Mandatory && !md.has(bit) {
            found.add(rule, place, || format!("this {} has no `{word}`", name()));
        }
    }
    for (of, bit, word) in [
        (times.at, has::AT, "at"),
        (times.at, has::COMPLETED, "completed"),
        (times.from, has::FROM, "from"),
        (times.from, has::UNTIL, "until"),
    ] {
        if !of.is_allowed() && md.has(bit) {
            found.add(&r::TIME_FORBIDDEN, place, || format!("`{word}` is not for a {}", name()));
        }
    }
    for (bit, word) in [(has::CHANGE, "change"), (has::DATETIME, "datetime")] {
        if md.has(bit) {
            found.add(&r::CHANGE_ONLY, place, || {
                format!("`{word}` is about a resource, not about a document")
            });
        }
    }
    if md.has(has::PATH) {
        found.add(&r::PATH_ONLY, place, || "`path` is about a bitstream, not about a document");
    }
    if kind::is_archive(capability) && md.has(has::AT | has::COMPLETED | has::FROM | has::UNTIL) {
        found.add(&r::ARCHIVE_HEAD, place, || format!("this {} has times of its own", name()));
    }
    if let Some(rule) = up_rule(capability, root)
        && read.head
        && head.link("up").is_none()
    {
        found.add(rule, (0, 0), || format!("this {} has no `up` link", name()));
    }
    let describedby = match capability {
        Capability::Description => Some(&r::DESCRIPTION_DESCRIBEDBY),
        Capability::CapabilityList => Some(&r::CAPABILITY_LIST_DESCRIBEDBY),
        _ => None,
    };
    if let Some(rule) = describedby
        && read.head
        && head.link("describedby").is_none()
    {
        found.add(rule, (0, 0), || format!("this {} has no `describedby` link", name()));
    }
    if kind::is_notification(capability) {
        notification::head(head, capability, found);
    }
    if kind::is_manifest(capability) && root == Root::SitemapIndex {
        found.add(&r::MANIFEST, place, || "the root of this manifest is `sitemapindex`");
    }
    if capability == Capability::CapabilityList && root == Root::SitemapIndex {
        found.add(&r::CAPABILITY_LIST_INDEX, place, || "this is an index of Capability Lists");
    }
}

/// The rule that requires an `up` link in this kind of document.
fn up_rule(capability: Capability, root: Root) -> Option<&'static Rule> {
    use Capability as C;
    Some(match (capability, root) {
        (C::CapabilityList, _) => &r::CAPABILITY_LIST_UP,
        (C::ResourceList, Root::UrlSet) => &r::RESOURCE_LIST_UP,
        (C::ResourceList, Root::SitemapIndex) => &r::RESOURCE_INDEX_UP,
        (C::ResourceDump, _) => &r::RESOURCE_DUMP_UP,
        (C::ResourceDumpManifest | C::ChangeDumpManifest, _) => &r::MANIFEST_UP,
        (C::ChangeList, Root::UrlSet) => &r::CHANGE_LIST_UP,
        (C::ChangeList, Root::SitemapIndex) => &r::CHANGE_INDEX_UP,
        (C::ChangeDump, _) => &r::CHANGE_DUMP_UP,
        _ if kind::is_archive(capability) => &r::ARCHIVE_UP,
        _ => return None,
    })
}

/// Checks an entry with the state from earlier entries.
pub(crate) fn entry(head: &Head, entry: &Entry, state: &mut State, found: &mut Findings) {
    state.head_judged |= head.md.is_some();
    let Some((md, capability)) = head.md.as_ref().and_then(|md| Some((md, md.capability?))) else {
        return;
    };
    let root = head.root();
    let (own, place) = (&entry.md, entry.place);
    if own.has(has::AT | has::COMPLETED | has::FROM | has::UNTIL)
        || kind::is_container(capability, root)
    {
        times_of_entry(capability, root, entry, found);
    }
    if own.has(has::PATH) && !kind::is_manifest(capability) {
        found.add(&r::PATH_ONLY, place, || "`path` outside a manifest");
    }
    if kind::lists_changes(capability, root) {
        change(capability, (md.from, md.until), entry, state, found);
    } else if own.has(has::CHANGE | has::DATETIME) && !kind::is_notification(capability) {
        let name = kind::name(Some(capability), root);
        found.add(&r::CHANGE_ONLY, place, || format!("`change` or `datetime` in a {name}"));
    }
    match capability {
        Capability::Description => description_entry(root, entry, found),
        Capability::CapabilityList => capability_entry(entry, state, found),
        Capability::ResourceDumpManifest | Capability::ChangeDumpManifest => {
            manifest_entry(capability, entry, &mut state.seen, found);
        }
        Capability::FrameworkNotification => notification::framework_entry(md.until, entry, found),
        Capability::ResourceDump | Capability::ChangeDump => {
            dump_entry(root, entry, state, found);
        }
        _ if kind::is_archive(capability) && root == Root::UrlSet => {
            archive_entry(capability, entry, state, found);
        }
        _ => {}
    }
    let leads_down = root == Root::SitemapIndex || kind::points_to_packages(capability, root);
    if leads_down && !kind::is_notification(capability) && is_again(&entry.loc, &mut state.seen) {
        found.add(kind::of_second_entry(capability, root), place, || named_again(&entry.loc));
    }
    if kind::has_intervals(capability, root) {
        let bound = |time| Bound::of(time, None);
        let is_open = own.has(has::FROM) && !own.has(has::UNTIL);
        let interval = Interval {
            from: bound(own.from),
            until: bound(own.until),
            open: is_open.then_some(Openness::Stated),
            place,
        };
        let mut faults = Vec::new();
        state.chain.next(capability, interval, &mut faults);
        found.add_all(faults);
    }
    if kind::is_notification(capability) {
        notification::once(capability, entry, &mut state.notification, found);
    }
    if !entry.links.is_empty() {
        related::links(capability, root, entry, &mut state.seen, found);
    }
}

fn times_of_entry(capability: Capability, root: Root, entry: &Entry, found: &mut Findings) {
    let times = kind::times(capability, root);
    for (of, bit, word) in [
        (times.child_at, has::AT, "at"),
        (times.child_at, has::COMPLETED, "completed"),
        (times.child_from, has::FROM, "from"),
        (times.child_from, has::UNTIL, "until"),
    ] {
        if !of.is_allowed() && entry.md.has(bit) {
            let name = kind::name(Some(capability), root);
            found.add(&r::TIME_FORBIDDEN, entry.place, || {
                format!("`{word}` is not for an entry of a {name}")
            });
        }
    }
    if times.child_from == AttributeUse::Recommended && !entry.md.has(has::FROM) {
        found.add(&r::FROM_CHILD, entry.place, || format!("no `from` for {}", excerpt(&entry.loc)));
    }
}

/// Rules of a document that reports changes: for the attribute `change`, and for the order.
fn rules_of_changes(capability: Capability) -> (&'static Rule, &'static Rule) {
    match capability {
        Capability::ChangeNotification => (&r::NOTIFICATION_CHANGE, &r::NOTIFICATION_ORDER),
        _ => (&r::CHANGE, &r::ORDER),
    }
}

fn change(
    capability: Capability,
    (from, until): (Option<W3cDatetime>, Option<W3cDatetime>),
    entry: &Entry,
    state: &mut State,
    found: &mut Findings,
) {
    let (md, place) = (&entry.md, entry.place);
    let (change_rule, order_rule) = rules_of_changes(capability);
    if !md.has(has::CHANGE) {
        found.add(change_rule, place, || format!("no `change` for {}", excerpt(&entry.loc)));
    }
    if md.change == Some(Change::Deleted)
        && md.has(has::HASH | has::LENGTH | has::TYPE | has::ENCODING)
    {
        let loc = excerpt(&entry.loc);
        found.add(&r::DELETED, place, || {
            format!("a deletion of {loc} with attributes of a representation")
        });
    }
    let Some(time) = md.datetime else {
        if !md.has(has::DATETIME) {
            if state.without_time == 0 {
                state.first_without_time = place;
            }
            state.without_time += 1;
        }
        return;
    };
    if let Some(latest) = state.latest.filter(|latest| values::is_before(time, *latest)) {
        let message = || format!("{} comes behind {}", time.instant, latest.instant);
        found.add(order_rule, place, message);
    }
    state.latest = Some(time);
    if let Some(from) = from.filter(|from| values::is_before(time, *from)) {
        let message = || format!("`datetime` {} is before `from` {}", time.instant, from.instant);
        found.add(&r::DATETIME_RANGE, place, message);
    }
    if let Some(until) = until.filter(|until| values::is_before(*until, time)) {
        let message = || format!("`datetime` {} is after `until` {}", time.instant, until.instant);
        found.add(&r::DATETIME_RANGE, place, message);
    }
}

fn description_entry(root: Root, entry: &Entry, found: &mut Findings) {
    let place = entry.place;
    if !entry.md.has(has::CAPABILITY) {
        let rule = if entry.has_md { &r::DESCRIPTION_CAPABILITY } else { &r::DESCRIPTION_MD };
        found.add(rule, place, || "an entry without the capability of a Capability List");
    } else if entry.md.capability.is_some_and(|capability| {
        // The entries of an index of Source Descriptions are Source Descriptions.
        let is_index = root == Root::SitemapIndex;
        capability != if is_index { Capability::Description } else { Capability::CapabilityList }
    }) {
        found.add(&r::DESCRIPTION_CAPABILITY, place, || "an entry that is no Capability List");
    }
    if !entry.links.iter().any(|link| link.has_rel("describedby")) {
        found.add(&r::SET_DESCRIBEDBY, place, || {
            format!("no `describedby` for {}", excerpt(&entry.loc))
        });
    }
    if entry.has_lastmod {
        found.add(&r::DESCRIPTION_LASTMOD, place, || "an entry with `lastmod`");
    }
}

fn capability_entry(entry: &Entry, state: &mut State, found: &mut Findings) {
    let place = entry.place;
    if entry.has_lastmod {
        found.add(&r::CAPABILITY_LIST_LASTMOD, place, || "an entry with `lastmod`");
    }
    if !entry.md.has(has::CAPABILITY) {
        found.add(&r::CAPABILITY_LIST_CAPABILITY, place, || {
            format!("no `capability` for {}", excerpt(&entry.loc))
        });
    }
    let Some(capability) = entry.md.capability else { return };
    let wrong = matches!(capability, Capability::Description | Capability::CapabilityList);
    if wrong || kind::is_manifest(capability) {
        found.add(&r::CAPABILITY_LIST_KIND, place, || {
            format!("an entry for `{}`", capability.token())
        });
    }
    if kind::is_notification(capability) {
        notification::topic_entry(capability, entry, &mut state.notification, found);
    }
    if state.capabilities.contains(&capability) {
        found.add(&r::CAPABILITY_LIST_ONCE, place, || {
            format!("a second entry for `{}`", capability.token())
        });
    } else {
        state.capabilities.push(capability);
    }
}

fn manifest_entry(
    capability: Capability,
    entry: &Entry,
    paths: &mut HashSet<u64>,
    found: &mut Findings,
) {
    let (md, place) = (&entry.md, entry.place);
    let deleted = md.change == Some(Change::Deleted);
    if !md.has(has::PATH) {
        let rule = if capability == Capability::ResourceDumpManifest {
            &r::MANIFEST_PATH
        } else {
            &r::CHANGE_DUMP_PATH
        };
        if capability == Capability::ResourceDumpManifest || !deleted {
            found.add(rule, place, || format!("no `path` for {}", excerpt(&entry.loc)));
        }
    } else if deleted {
        found.add(&r::CHANGE_DUMP_DELETED, place, || {
            format!("a `path` for the deleted {}", excerpt(&entry.loc))
        });
    } else {
        path(&md.path, place, paths, found);
    }
    if !deleted && !md.has(has::TYPE) {
        found.add(&r::MANIFEST_TYPE, place, || format!("no `type` for {}", excerpt(&entry.loc)));
    }
}

fn dump_entry(root: Root, entry: &Entry, state: &mut State, found: &mut Findings) {
    let (md, place) = (&entry.md, entry.place);
    if root == Root::SitemapIndex {
        return;
    }
    if !md.has(has::TYPE) || !md.has(has::LENGTH) {
        found.add(&r::DUMP_TYPE_LENGTH, place, || {
            format!("no `type` or `length` for {}", excerpt(&entry.loc))
        });
    }
    let format = if md.media_type.is_empty() {
        extension(&entry.loc)
    } else {
        values::essence(&md.media_type)
    };
    if let Some(first) = &state.format
        && *first != format
    {
        found.add(&r::DUMP_FORMAT, place, || {
            format!("`{}` beside `{}`", excerpt(&format), excerpt(first))
        });
    }
    if !matches!(format.as_str(), "application/zip" | "application/x-zip-compressed" | "zip") {
        found.add(&r::DUMP_ZIP, place, || format!("a package of `{}`", excerpt(&format)));
    }
    state.format.get_or_insert(format);
}

/// Substitute for the media type of a package whose entry does not have one, from the ending of its
/// name.
fn extension(loc: &str) -> String {
    let name =
        loc.split(['?', '#']).next().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    match name.rsplit_once('.') {
        Some((_, extension)) if extension.eq_ignore_ascii_case("zip") => {
            "application/zip".to_owned()
        }
        Some((_, extension)) => extension.to_ascii_lowercase(),
        None => "unknown".to_owned(),
    }
}

fn archive_entry(capability: Capability, entry: &Entry, state: &mut State, found: &mut Findings) {
    let (md, place) = (&entry.md, entry.place);
    let snapshots =
        matches!(capability, Capability::ResourceListArchive | Capability::ResourceDumpArchive);
    let (bit, rule, word) = if snapshots {
        (has::AT, &r::ARCHIVE_AT, "at")
    } else {
        (has::FROM, &r::ARCHIVE_FROM, "from")
    };
    if !md.has(bit) {
        found.add(rule, place, || format!("no `{word}` for {}", excerpt(&entry.loc)));
    }
    let time = if snapshots { md.at } else { md.from };
    if let (Some(latest), Some(time)) = (state.latest, time)
        && values::is_before(time, latest)
    {
        let message = || format!("{} comes behind {}", time.instant, latest.instant);
        found.add(&r::ARCHIVE_ORDER, place, message);
    }
    state.latest = time.or(state.latest);
}

/// Checks that need the whole document.
pub(crate) fn end(head: &Head, state: &State, entries: u64, read: Extent, found: &mut Findings) {
    let Some(md) = &head.md else {
        if read.head {
            found.add(
                &r::MD,
                (0, 0),
                || "the document has no `rs:md` of its own: it is a plain Sitemap",
            );
        }
        return;
    };
    if !state.head_judged && entries > 0 {
        self::head(head, read, found);
    }
    for rel in ["up", "index"] {
        let mut all = head.links.iter().filter(|(link, _)| link.has_rel(rel));
        if let Some((link, place)) = all.nth(1) {
            let message = || format!("a second link `{rel}` leads to {}", excerpt(&link.href));
            found.add(&r::UP_ONCE, *place, message);
        }
    }
    if let Some(capability @ (Capability::Description | Capability::CapabilityList)) = md.capability
        && entries == 0
        && read.entries
    {
        let name = kind::name(Some(capability), head.root());
        found.add(&r::NO_ENTRIES, head.md_place, || format!("this {name} has no entries"));
    }
    if state.without_time > 0 {
        let message =
            || format!("{} of {} without `datetime`", state.without_time, count(entries, "change"));
        let rule = if md.capability.is_some_and(kind::is_notification) {
            &r::NOTIFICATION_TIME
        } else {
            &r::CHANGE_TIME
        };
        found.add(rule, state.first_without_time, message);
    }
    if let Some(capability) = md.capability
        && kind::has_intervals(capability, head.root())
        && read.entries
    {
        let mut faults = Vec::new();
        state.chain.end(capability, (md.from, md.until), head.md_place, &mut faults);
        found.add_all(faults);
    }
}
