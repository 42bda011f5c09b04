//! Rules across the documents of a Source: links, indexes, chains of lists [rs-core §6, §9, §12].

mod topics;

use crate::fetch::archive::TOO_LARGE;
use crate::fetch::{is_url, values};
use crate::report::{Findings, Options, Rule, rules as r};
use crate::resourcesync::chain::{Bound, Chain, Interval, Openness};
use crate::resourcesync::collect::Child;
use crate::resourcesync::doc::Doc;
use crate::resourcesync::kind;
use crate::resourcesync::markup::has;
use crate::resourcesync::package::Package;
use crate::walk::node::{FoundBy, Node, Outcome, Walked, site_has_documents};
use abreast_resourcesync::sitemap::{NAMES_ITSELF, is_another_kind};
use abreast_resourcesync::v1_1::{Capability, Root};
use abreast_webtypes::{Timestamp, W3cDatetime, resolve, without_fragment};
use std::collections::{HashMap, HashSet};

/// All documents of the walk, with the findings that comparing them adds.
struct Relations<'a> {
    walked: &'a Walked,
    options: &'a Options,
    /// Findings by the index of their document.
    found: HashMap<usize, Findings>,
    /// Documents by the URL after redirects, if it differs.
    final_urls: HashMap<&'a str, usize>,
    /// Targets of the entries of archives.
    archived: HashSet<&'a str>,
    /// Targets of the entries of a document, collected on first use.
    listed: HashMap<usize, HashSet<&'a str>>,
    /// Newest time in an index and its entries, computed on first use.
    newest: HashMap<usize, Option<Timestamp>>,
}

/// Compares the documents with each other, and adds findings to each document.
pub(super) fn relate(walked: &mut Walked, options: &Options) {
    let mut relations = Relations {
        walked,
        options,
        found: HashMap::new(),
        final_urls: HashMap::new(),
        archived: HashSet::new(),
        listed: HashMap::new(),
        newest: HashMap::new(),
    };
    for (number, node) in relations.walked.nodes.iter().enumerate() {
        let Some(doc) = node.outcome.record::<Doc>() else { continue };
        if doc.facts.url != node.url {
            relations.final_urls.insert(&doc.facts.url, number);
        }
        if doc.capability().is_some_and(kind::is_archive) {
            relations.archived.extend(doc.children.iter().map(|child| child.url.as_str()));
        }
    }
    let nodes = &relations.walked.nodes;
    let any_read = nodes.iter().any(Node::is_document);
    for number in 0..relations.walked.nodes.len() {
        let node = &relations.walked.nodes[number];
        if let Some(doc) = node.outcome.record().filter(|_| options.walk && is_url(&node.url)) {
            relations.document(number, node, doc);
        }
        match &node.outcome {
            // The root of a site need not have a page: the Source may have been found at its
            // well-known URI.
            Outcome::Failed(_) | Outcome::Page(_)
                if node.is_root() && site_has_documents(nodes, number) => {}
            Outcome::Failed(message) if node.found_by == FoundBy::Start => {
                relations
                    .add(number, &r::REACHABLE, (0, 0), || format!("cannot be read: {message}"));
                relations.help(number, if is_url(&node.url) { HELP_ADDRESS } else { HELP_FILE });
            }
            Outcome::Page(name) if node.found_by == FoundBy::Start && !any_read => {
                let message =
                    || format!("this is a web {name} that leads to no ResourceSync document");
                relations.add(number, &r::REACHABLE, (0, 0), message);
                relations.help(number, HELP_PAGE);
            }
            _ => {}
        }
        relations.again(number);
    }
    if options.walk {
        relations.channels();
        relations.discovery();
    }
    let found = relations.found;
    for (number, found) in found {
        walked.nodes[number].findings.append(&mut found.into_list());
    }
}

/// Help for a start that cannot be read. The start is from the user, so repairing a link does not
/// help.
const HELP_ADDRESS: &str =
    "check the address, and that its server is running; `abreast doctor URL` tests the connection";
const HELP_FILE: &str = "name a document or package that can be read";
const HELP_PAGE: &str =
    "give the URL of a Source Description, Capability List, Resource List, Change List or Sitemap";

impl<'a> Relations<'a> {
    fn help(&mut self, number: usize, help: &'static str) {
        if let Some(found) = self.found.get_mut(&number) {
            found.with_help(help);
        }
    }

    fn add<M: Into<String>>(
        &mut self,
        number: usize,
        rule: &'static Rule,
        place: (u64, u64),
        message: impl FnOnce() -> M,
    ) {
        let node = &self.walked.nodes[number];
        let options = self.options;
        let found = self.found.entry(number);
        found
            .or_insert_with(|| Findings::new(&node.url, options.mode, options.most_each))
            .add(rule, place, message);
    }

    fn node(&self, url: &str) -> Option<(usize, &'a Node)> {
        let key = without_fragment(url);
        let number = self.walked.by_url.get(key).or_else(|| self.final_urls.get(key))?;
        Some((*number, &self.walked.nodes[*number]))
    }

    /// Index of the document at an address. A document that cannot be fetched is a finding at the
    /// place of the link.
    fn target(&mut self, from: usize, place: (u64, u64), url: &str, what: &str) -> Option<usize> {
        let (number, node) = self.node(url)?;
        match &node.outcome {
            Outcome::Read(_) => {
                return self.doc(number).filter(|doc| doc.head.root.is_some()).map(|_| number);
            }
            Outcome::Failed(message) => {
                let message = message.clone();
                self.add(from, &r::REACHABLE, place, || format!("{what} {url}: {message}"));
            }
            Outcome::Left("other host") => {
                self.add(from, &r::OTHER_HOST, place, || format!("{what} {url} was not checked"));
            }
            _ => {}
        }
        None
    }

    /// Whether an entry of a document links to an address.
    fn lists(&mut self, number: usize, url: &str) -> bool {
        let doc = self.doc(number);
        let make = || {
            doc.into_iter().flat_map(|doc| &doc.children).map(|child| child.url.as_str()).collect()
        };
        self.listed.entry(number).or_insert_with(make).contains(url)
    }

    fn doc(&self, number: usize) -> Option<&'a Doc> {
        self.walked.nodes[number].outcome.record()
    }

    fn document(&mut self, number: usize, node: &Node, doc: &Doc) {
        let Some(capability) = doc.capability() else { return };
        self.up(number, node, doc, capability);
        self.index(number, node, doc, capability);
        if let Some((url, place)) = doc.link(&node.url, "archives")
            && let Some(target) = self.target(number, place, &url, "`archives`")
        {
            let archive = self.doc(target).and_then(Doc::capability);
            if archive.and_then(kind::archived) != Some(capability) {
                let name = kind::name(Some(capability), doc.root());
                self.add(number, &r::ARCHIVE_LINK, place, || {
                    format!("{url} is not an archive for a {name}")
                });
            }
        }
        let is_dump = kind::points_to_packages(capability, doc.root());
        for child in &doc.children {
            if is_dump {
                self.package(number, child);
            } else if capability == Capability::FrameworkNotification {
                self.announced(number, child);
            } else {
                self.child(number, doc, capability, child);
            }
        }
        if kind::has_intervals(capability, doc.root()) {
            self.chain(number, capability, doc);
        }
    }

    /// Checks that `up` leads to the Capability List, that its `up` leads to the Source
    /// Description, and that both link back.
    fn up(&mut self, number: usize, node: &Node, doc: &Doc, capability: Capability) {
        let Some((url, place)) = doc.link(&node.url, "up") else { return };
        let Some(target) = self.target(number, place, &url, "`up`") else { return };
        let Some(above) = self.doc(target) else { return };
        let due = match capability {
            Capability::CapabilityList => Capability::Description,
            // A Source Description may have an index of Source Descriptions above it.
            Capability::Description => return,
            _ => Capability::CapabilityList,
        };
        if above.capability() != Some(due) {
            let name = kind::name(above.capability(), above.root());
            self.add(number, &r::UP_LEADS, place, || format!("`up` leads to {url}, a {name}"));
            return;
        }
        if kind::is_manifest(capability) || node.origin.archived {
            return;
        }
        let index =
            doc.link(&node.url, "index").map(|(url, _)| url).or_else(|| node.origin.index.clone());
        let names = [Some(node.url.clone()), Some(doc.facts.url.clone()), index];
        let above_is_index = above.root() == Root::SitemapIndex;
        let listed = names.iter().flatten().any(|name| self.lists(target, name));
        if !listed
            && !above_is_index
            && above.complete
            && !self.archived.contains(node.url.as_str())
        {
            self.add(number, &r::LISTED, place, || {
                format!("{url} does not point to this document")
            });
        }
    }

    /// Checks that `index` leads to an index of the same capability that lists the document.
    fn index(&mut self, number: usize, node: &Node, doc: &Doc, capability: Capability) {
        let recommended = match capability {
            Capability::ResourceList => Some(&r::RESOURCE_LIST_INDEX),
            Capability::ResourceDump => Some(&r::RESOURCE_DUMP_INDEX),
            Capability::ChangeList => Some(&r::CHANGE_LIST_INDEX),
            Capability::ChangeDump => Some(&r::CHANGE_DUMP_INDEX),
            _ => None,
        };
        let Some((url, place)) = doc.link(&node.url, "index") else {
            if let (Some(rule), Some(index)) = (recommended, &node.origin.index) {
                self.add(number, rule, (0, 0), || format!("no `index` link to {index}"));
            }
            return;
        };
        let Some(target) = self.target(number, place, &url, "`index`") else { return };
        let Some(index) = self.doc(target) else { return };
        let message =
            if index.root() != Root::SitemapIndex || index.capability() != Some(capability) {
                Some(format!("{url} is a {}", kind::name(index.capability(), index.root())))
            } else if index.complete && !self.lists(target, &node.url) {
                // An old Change List may be removed from the index while its URL still works.
                (capability != Capability::ChangeList || node.origin.index.is_some())
                    .then(|| format!("{url} does not list this document"))
            } else {
                None
            };
        if let Some(message) = message {
            self.add(number, &r::INDEX_LEADS, place, || message);
        }
    }

    /// Checks an entry that links to a document.
    fn child(&mut self, number: usize, doc: &Doc, capability: Capability, child: &Child) {
        if self.node(&child.url).is_none_or(|(_, node)| matches!(node.outcome, Outcome::Waiting)) {
            return;
        }
        let is_topic = capability == Capability::CapabilityList
            && child.capability.is_some_and(kind::is_notification);
        if is_topic && !self.topic(number, child) {
            return;
        }
        let Some(target) = self.target(number, child.place, &child.url, "entry") else { return };
        let Some(below) = self.doc(target) else { return };
        let due = match capability {
            Capability::Description if doc.root() == Root::UrlSet => {
                Some(Capability::CapabilityList)
            }
            Capability::CapabilityList => child.capability,
            _ if doc.root() == Root::SitemapIndex => Some(capability),
            _ => kind::archived(capability),
        };
        let is_index = below.root() == Root::SitemapIndex;
        let (own, name) = (below.capability(), kind::name(below.capability(), below.root()));
        let md = below.head.md.clone().unwrap_or_default();
        let url = &child.url;
        if let (Some(due), Some(own)) = (due, own)
            && due != own
        {
            let own = (Some(own), below.root());
            self.add(number, &r::CAPABILITY_EQUAL, child.place, || is_another_kind(url, own, due));
            return;
        }
        if doc.root() != Root::SitemapIndex {
            return;
        }
        if target == number {
            let rule = kind::of_second_entry(capability, doc.root());
            self.add(number, rule, child.place, || NAMES_ITSELF.to_owned());
        }
        if is_index {
            self.add(number, &r::NO_NESTING, child.place, || format!("{url} is a {name}"));
            return;
        }
        let differs = |stated: Option<W3cDatetime>, own: Option<W3cDatetime>| {
            stated.zip(own).is_some_and(|(stated, own)| values::differ(stated, own))
        };
        if differs(child.at, md.at) || differs(child.completed, md.completed) {
            self.add(number, &r::RESOURCE_INDEX_AT, child.place, || {
                format!("{url} states other times")
            });
        }
        let own_at = doc.head.md.as_ref().and_then(|md| md.at);
        if let (Some(at), Some(below_at)) = (own_at, md.at)
            && values::is_before(below_at, at)
            && self.has_changes(number, doc)
        {
            let message = || {
                format!("`at` of {url} is {}, before {} of the index", below_at.instant, at.instant)
            };
            self.add(number, &r::RESOURCE_INDEX_LATER, child.place, message);
        }
        if differs(child.from, md.from) || differs(child.until, md.until) {
            self.add(number, &r::CHANGE_INDEX_INTERVAL, child.place, || {
                format!("{url} states another interval")
            });
        }
        if capability == Capability::ChangeList && (child.from.is_some() || child.until.is_some()) {
            if child.until.is_some() && md.until.is_none() {
                self.add(number, &r::CHANGE_INDEX_OPEN, child.place, || format!("{url} is open"));
            } else if child.until.is_none() && md.until.is_some() {
                self.add(number, &r::CHANGE_INDEX_CLOSED, child.place, || {
                    format!("{url} is closed")
                });
            }
        }
    }

    /// Whether the set publishes changes. Otherwise clients do not need the `at` of a list to
    /// continue from.
    fn has_changes(&self, number: usize, doc: &Doc) -> bool {
        let above =
            doc.link(&self.walked.nodes[number].url, "up").and_then(|(url, _)| self.node(&url));
        let above = above.and_then(|(above, _)| self.doc(above));
        let is_change = |child: &Child| {
            matches!(child.capability, Some(Capability::ChangeList | Capability::ChangeDump))
        };
        above.is_some_and(|above| above.children.iter().any(is_change))
    }

    /// Checks an entry of a dump, which links to a package.
    fn package(&mut self, number: usize, child: &Child) {
        let outcome = self.node(&child.url).map(|(_, node)| &node.outcome);
        let package = outcome.and_then(|outcome| outcome.record::<Package>());
        let url = &child.url;
        match outcome {
            Some(Outcome::Failed(message)) => {
                let message = || format!("package {url}: {message}");
                self.add(number, &r::REACHABLE, child.place, message);
            }
            Some(Outcome::Left(why @ ("other host" | TOO_LARGE))) => {
                let rule = if *why == "other host" { &r::OTHER_HOST } else { &r::LIMIT };
                let message = || format!("package {url} was not checked: {why}");
                self.add(number, rule, child.place, message);
            }
            _ => {}
        }
        let Some(contents) = &child.contents else { return };
        let Some(copy) = self.target(number, child.place, contents, "`contents`") else { return };
        let Some(copy) = self.doc(copy) else { return };
        if !copy.capability().is_some_and(kind::is_manifest) {
            let name = kind::name(copy.capability(), copy.root());
            self.add(number, &r::DUMP_CONTENTS, child.place, || format!("{contents} is a {name}"));
        } else if let Some(package) = package.filter(|package| package.complete)
            && copy.complete
            && package.fingerprint != copy.fingerprint
        {
            let message = || format!("{contents} differs from the manifest in {}", child.url);
            self.add(number, &r::DUMP_CONTENTS, child.place, message);
        }
    }

    /// Checks the sequence of lists and packages whose entries do not contain intervals.
    fn chain(&mut self, number: usize, capability: Capability, doc: &Doc) {
        let (mut chain, mut faults) = (Chain::related(), Vec::new());
        for child in &doc.children {
            let outcome = self.node(&child.url).map(|(_, node)| &node.outcome);
            let package = outcome.and_then(|outcome| outcome.record::<Package>());
            let doc = outcome.and_then(|outcome| outcome.record::<Doc>());
            let own = package
                .map(|package| (package.from, package.until, package.until.is_some()))
                .or_else(|| {
                    let md = doc?.head.md.as_ref()?;
                    Some((md.from, md.until, md.has(has::UNTIL)))
                });
            let is_known = own.is_some() || child.from.is_some() || child.until.is_some();
            if !is_known {
                chain.unknown();
                continue;
            }
            let (from, until, is_closed) = own.unwrap_or((None, None, true));
            let is_open = child.from.is_none() && child.until.is_none() && !is_closed;
            let interval = Interval {
                from: Bound::of(child.from, from),
                until: Bound::of(child.until, until),
                open: (is_open && from.is_some()).then_some(Openness::Own),
                place: child.place,
            };
            chain.next(capability, interval, &mut faults);
        }
        let md = doc.head.md.clone().unwrap_or_default();
        chain.end(capability, (md.from, md.until), doc.head.md_place, &mut faults);
        for (rule, place, message) in faults {
            self.add(number, rule, place, || message);
        }
    }

    /// Reports URIs that another Resource List of the set also contains.
    fn again(&mut self, number: usize) {
        let Some(doc) = self.doc(number) else { return };
        for (place, (other, first)) in doc.again.clone() {
            let url = self
                .walked
                .nodes
                .get(other as usize)
                .map(|node| node.url.clone())
                .unwrap_or_default();
            self.add(number, &r::RESOURCE_LIST_ONCE, place, || {
                format!("this URI is entry {first} of {url} already")
            });
        }
    }

    /// Checks the well-known URI, robots.txt, and links in pages [rs-core §6.3].
    fn discovery(&mut self) {
        let walked = self.walked;
        let docs = || {
            let doc =
                |(number, node): (usize, &'a Node)| Some((number, node.outcome.record::<Doc>()?));
            walked.nodes.iter().enumerate().filter_map(doc)
        };
        let first_list =
            docs().find(|(_, doc)| doc.is(Capability::CapabilityList)).map(|(at, _)| at);
        let description = docs().any(|(_, doc)| doc.is(Capability::Description));
        let is_any = |(number, doc): &(usize, &Doc)| {
            doc.capability().is_some() && is_url(&walked.nodes[*number].url)
        };
        let any = docs().find(is_any).map(|(number, _)| number);
        if let (Some(at), false, None) = (first_list.or(any), description, walked.limit) {
            self.add(at, &r::DESCRIPTION, (0, 0), || "no Source Description was found");
        }
        for (number, node) in walked.nodes.iter().enumerate() {
            let doc = node.outcome.record::<Doc>();
            let failure = match &node.outcome {
                Outcome::Failed(message) => Some(format!("{}: {message}", node.url)),
                _ => None,
            };
            let name = |doc: &Doc| kind::name(doc.capability(), doc.root());
            let at_parent = |rule, message: Option<String>| Some((node.from?, rule, message?));
            let fault = match node.found_by {
                FoundBy::WellKnown => match failure {
                    Some(failure) => first_list.or(any).map(|at| (at, &r::WELL_KNOWN, failure)),
                    None => doc.filter(|doc| !doc.is(Capability::Description)).map(|doc| {
                        let message = format!("this is a {}, no Source Description", name(doc));
                        (number, &r::WELL_KNOWN, message)
                    }),
                },
                FoundBy::Sitemap => at_parent(&r::ROBOTS, failure),
                FoundBy::Site => at_parent(&r::A_REACHABLE, failure),
                FoundBy::Page => {
                    let other = doc.filter(|doc| !doc.is(Capability::CapabilityList));
                    let other = other.map(|doc| format!("{} is a {}", node.url, name(doc)));
                    at_parent(&r::LINK, failure.or(other))
                }
                _ => None,
            };
            if let Some((at, rule, message)) = fault {
                self.add(at, rule, (0, 0), || message);
            }
        }
    }
}

/// Target of a link in a resource's answer, if the target is not a Capability List of the walk.
pub(super) fn wrong_link(walked: &Walked, base: &str, target: &str) -> Option<String> {
    let url = resolve(base, target).ok()?;
    match walked.record::<Doc>(without_fragment(&url)) {
        Some(doc) if doc.is(Capability::CapabilityList) => None,
        Some(doc) => Some(format!("{url} is a {}", kind::name(doc.capability(), doc.root()))),
        None => Some(format!("{url} is no Capability List of this Source")),
    }
}
