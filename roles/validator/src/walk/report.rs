//! The report: every inspected document and every finding, in a stable order.

use crate::report::facts::{ChangeFeedFacts, FeedFacts, Unreachable};
use crate::report::finding::Finding;
use crate::report::options::Options;
use crate::report::rule::Mode;
use crate::report::rules as r;
use crate::resourcesync::kind;
use crate::walk::node::{Node, Outcome, Walked, site_has_documents};
use abreast_core::Severity;
use abreast_resourcesync::v1_1::Capability;
use abreast_webtypes::{Timestamp, UNUSABLE};
use std::collections::{BTreeMap, HashSet};

/// One document or package that was checked, or was meant to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Document {
    /// Its URL, or the path of a file.
    pub url: String,
    /// The specification's name for it.
    pub name: String,
    /// How it was found: `given`, `up`, `index`, `entry`, `contents`, `package`, `well-known` and
    /// so on.
    pub found_by: &'static str,
    /// The document that led to it, as an index into the list of documents.
    pub parent: Option<usize>,
    /// How far below the Source Description it is.
    pub level: u32,
    /// Whether it was read.
    pub read: bool,
    /// Why it was not read, or not all of it.
    pub problem: Option<String>,
    /// Whether it is a ResourceSync document, a package, a Sitemap or a feed.
    pub is_source: bool,
    /// Entries it has.
    pub entries: u64,
    /// Bytes, unpacked; those of the file for packages.
    pub bytes: u64,
    /// Milliseconds it took to fetch and read.
    pub millis: u64,
    /// When its snapshot was begun.
    pub at: Option<Timestamp>,
    /// When its snapshot was complete.
    pub completed: Option<Timestamp>,
    /// Changes since then.
    pub from: Option<Timestamp>,
    /// Changes until then.
    pub until: Option<Timestamp>,
    /// Documents it points to, as indexes into the list of documents.
    pub children: Vec<usize>,
    /// What a feed or snapshot of SDShare states.
    pub feed: Option<FeedFacts>,
    /// What an Entry Point and its pages state, or another document of a change feed.
    pub changes: Option<ChangeFeedFacts>,
}

/// The result of a validation.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Report {
    /// How it was judged.
    pub mode: Mode,
    /// Everything that was checked, each above what it points to.
    pub documents: Vec<Document>,
    /// The findings, document by document in the same order, then by line.
    pub findings: Vec<Finding>,
    /// Resources that were fetched.
    pub sampled: u64,
    /// The seed of the sample.
    pub seed: u64,
    /// One in how many URIs was checked for being listed twice; 1 for all.
    pub unique_one_in: u64,
    /// The limit that ended the walk, by the name of its option.
    pub limit: Option<&'static str>,
    /// Whether it was stopped by the user.
    pub cancelled: bool,
    /// Why servers could not be asked, if any could not.
    pub unreachable: Option<Unreachable>,
    /// The places of a site that were tried and have nothing, each with the reason.
    pub tried: Vec<(String, String)>,
}

impl Report {
    /// How many faults there are of a severity, those not kept included.
    pub fn count(&self, severity: Severity) -> u64 {
        self.findings
            .iter()
            .filter(|found| found.severity == severity)
            .map(|found| 1 + found.more)
            .sum()
    }

    /// Documents that were read.
    pub fn read(&self) -> usize {
        self.documents.iter().filter(|document| document.read).count()
    }

    /// Bytes of what was read.
    pub fn bytes(&self) -> u64 {
        self.documents.iter().map(|document| document.bytes).sum()
    }

    /// Entries of what was read.
    pub fn entries(&self) -> u64 {
        self.documents.iter().map(|document| document.entries).sum()
    }

    /// Whether nothing at all could be read.
    pub fn saw_nothing(&self) -> bool {
        self.read() == 0
    }

    /// Links that lead in a circle or up instead of down: no tree shows them.
    pub fn circles(&self) -> impl Iterator<Item = &Finding> {
        let rules = [r::A_INDEX.id, r::A_PREV.id, r::CF_LOOP.id];
        self.findings.iter().filter(move |found| rules.contains(&found.rule.id))
    }

    /// States of each document that was read wholly the first entry that cannot be requested, if it has one.
    pub fn note_unusable(&mut self) {
        let is_unusable = |found: &&Finding| {
            found.rule.id == r::URI.id
                && UNUSABLE.iter().any(|fault| found.message.ends_with(fault))
        };
        for document in self.documents.iter_mut().filter(|document| document.problem.is_none()) {
            let of_document = self.findings.iter().filter(|found| found.url == document.url);
            document.problem =
                of_document.filter(is_unusable).map(|found| found.message.clone()).next();
        }
    }

    /// Whether there is anything of ResourceSync or SDShare, a change feed, or a Sitemap.
    pub fn found_source(&self) -> bool {
        self.documents.iter().any(|document| document.is_source)
    }
}

/// Puts together what was learnt.
pub(crate) fn report(walked: Walked, options: &Options, sampled: u64) -> Report {
    let order = order(&walked);
    let places: BTreeMap<usize, usize> =
        order.iter().enumerate().map(|(place, number)| (*number, place)).collect();
    let mut documents: Vec<Document> =
        order.iter().map(|number| document(&walked.nodes[*number])).collect();
    for (place, number) in order.iter().enumerate() {
        let mut children = Vec::new();
        for child in below(&walked, *number) {
            if let Some(child) = places
                .get(&child)
                .filter(|child| documents[**child].parent.is_none() && **child > place)
            {
                documents[*child].parent = Some(place);
                children.push(*child);
            }
        }
        documents[place].children = children;
    }
    let tried = walked.nodes.iter().enumerate().filter_map(|(number, node)| match &node.outcome {
        Outcome::Failed(why) if !is_shown(node) => Some((node.url.clone(), why.clone())),
        Outcome::Page(_) if !is_shown(node) => {
            let mut named = walked.nodes.iter().filter(|other| other.from == Some(number));
            let why = match named.next() {
                None => "names no Sitemap",
                Some(first) if first.is_document() || named.any(Node::is_document) => return None,
                Some(_) => "names Sitemaps that cannot be read",
            };
            Some((node.url.clone(), why.to_owned()))
        }
        _ => None,
    });
    let tried = tried.collect();
    let mut findings = Vec::new();
    let mut nodes: Vec<Option<Vec<Finding>>> =
        walked.nodes.into_iter().map(|node| Some(node.findings)).collect();
    for number in order {
        let mut of_document = nodes[number].take().unwrap_or_default();
        of_document.sort_by(|a, b| {
            (&a.url, a.line, a.column, a.rule.id).cmp(&(&b.url, b.line, b.column, b.rule.id))
        });
        findings.append(&mut of_document);
    }
    Report {
        mode: options.mode,
        documents,
        findings,
        sampled,
        seed: options.seed,
        unique_one_in: walked.unique_one_in,
        limit: walked.limit,
        cancelled: walked.cancelled,
        unreachable: None,
        tried,
    }
}

/// Documents that a document points to, in its order.
fn below(walked: &Walked, number: usize) -> Vec<usize> {
    let doc = match &walked.nodes[number].outcome {
        Outcome::Document(doc) => doc,
        Outcome::Feed(feed) => {
            let mut seen = HashSet::new();
            let known = feed.children.iter().filter_map(|url| walked.by_url.get(url).copied());
            return known.filter(|child| *child != number && seen.insert(*child)).collect();
        }
        Outcome::ChangeFeed(feed) => {
            return feed
                .children
                .iter()
                .filter_map(|url| walked.by_url.get(url).copied())
                .collect();
        }
        Outcome::Alpha(document) => {
            let mut seen = HashSet::new();
            let known = document.children.iter().filter_map(|url| walked.by_url.get(url).copied());
            return known.filter(|child| *child != number && seen.insert(*child)).collect();
        }
        _ => return Vec::new(),
    };
    if doc.is(Capability::FrameworkNotification) {
        return Vec::new(); // It reports of documents that are elsewhere in the tree.
    }
    let urls =
        doc.children.iter().flat_map(|child| [Some(&child.url), child.contents.as_ref()]).flatten();
    let mut seen = HashSet::new();
    urls.filter_map(|url| walked.by_url.get(url).copied())
        .filter(|child| *child != number && seen.insert(*child))
        .collect()
}

/// From the top down, each once; what nothing points to comes in the order it was found.
fn order(walked: &Walked) -> Vec<usize> {
    // A root without a page is not a fault of a site whose documents were found.
    let is_bare = |number: usize| {
        let node = &walked.nodes[number];
        matches!(node.outcome, Outcome::Failed(_))
            && node.is_root()
            && site_has_documents(&walked.nodes, number)
    };
    let is_top = |number: &usize| is_shown(&walked.nodes[*number]) && !is_bare(*number);
    let mut tops: Vec<usize> = (0..walked.nodes.len()).filter(is_top).collect();
    tops.sort_by_key(|number| (walked.nodes[*number].level, *number));
    let (mut order, mut seen) = (Vec::new(), HashSet::new());
    for top in tops {
        let mut stack = vec![top];
        while let Some(number) = stack.pop() {
            if is_shown(&walked.nodes[number]) && seen.insert(number) {
                order.push(number);
                stack.extend(below(walked, number).into_iter().rev());
            }
        }
    }
    order
}

/// Addresses that were only tried are not reported, unless something was found there.
fn is_shown(node: &Node) -> bool {
    use crate::walk::node::FoundBy;
    match &node.outcome {
        Outcome::Document(_)
        | Outcome::Package(_)
        | Outcome::Feed(_)
        | Outcome::ChangeFeed(_)
        | Outcome::Alpha(_) => true,
        Outcome::Plain | Outcome::Page(_) => {
            !node.findings.is_empty() || node.found_by == FoundBy::Start
        }
        Outcome::Failed(_) | Outcome::Waiting | Outcome::Left(_) => {
            let is_tried = matches!(
                node.found_by,
                FoundBy::WellKnown
                    | FoundBy::Robots
                    | FoundBy::Sitemap
                    | FoundBy::HostMeta
                    | FoundBy::Site
            );
            !is_tried || !node.findings.is_empty()
        }
    }
}

/// The problem of a document that ends too early.
const NO_END: &str = "it cannot be read to its end";

fn document(node: &Node) -> Document {
    let mut document = Document {
        url: node.url.clone(),
        found_by: node.found_by.word(),
        level: node.level,
        millis: node.millis,
        ..Document::default()
    };
    match &node.outcome {
        Outcome::Document(doc) => {
            document.is_source = doc.silent || doc.capability().is_some() || doc.entries > 0;
            document.name = if doc.silent {
                "topic".to_owned()
            } else if doc.head.root.is_some() && doc.head.md.is_none() {
                "plain Sitemap".to_owned()
            } else {
                kind::name(doc.capability(), doc.root())
            };
            document.read = true;
            (document.entries, document.bytes) = (doc.entries, doc.bytes);
            if !doc.silent {
                let no_end = (!doc.complete).then(|| NO_END.to_owned());
                // Copies stop there too.
                let refused = [r::LISTED_ONCE.id, r::CAPABILITY_EQUAL.id];
                let is_refused = |found: &&Finding| refused.contains(&found.rule.id);
                let circle = node.findings.iter().find(is_refused).map(|found| &found.message);
                document.problem = doc.refusal.clone().or(no_end).or_else(|| circle.cloned());
            }
            if let Some(md) = &doc.head.md {
                let instant =
                    |time: Option<abreast_webtypes::W3cDatetime>| time.map(|time| time.instant);
                (document.at, document.completed) = (instant(md.at), instant(md.completed));
                (document.from, document.until) = (instant(md.from), instant(md.until));
            }
        }
        Outcome::Package(package) => {
            "package".clone_into(&mut document.name);
            document.is_source = true;
            document.read = true;
            (document.entries, document.bytes) = (package.entries, package.bytes);
            document.at = package.at.map(|time| time.instant);
            document.from = package.from.map(|time| time.instant);
            document.until = package.until.map(|time| time.instant);
        }
        Outcome::Feed(feed) => {
            document.name = feed.name();
            document.is_source = feed.kind.is_some() || feed.is_snapshot;
            document.read = feed.is_read;
            (document.entries, document.bytes) = (feed.entries, feed.bytes);
            document.problem.clone_from(&feed.problem);
            document.feed = Some(feed.facts.clone());
        }
        Outcome::ChangeFeed(feed) => {
            document.name.clone_from(&feed.name);
            (document.is_source, document.read) = (feed.is_source, feed.is_read);
            (document.entries, document.bytes) = (feed.entries, feed.bytes);
            document.problem.clone_from(&feed.problem);
            document.changes = Some(feed.facts.clone()).filter(|_| feed.is_source);
        }
        Outcome::Alpha(alpha) => {
            alpha.name.clone_into(&mut document.name);
            (document.is_source, document.read) = (true, true);
            (document.entries, document.bytes) = (alpha.entries, alpha.bytes);
            let no_end = alpha.is_cut.then(|| NO_END.to_owned());
            document.problem = alpha.refusal.clone().or(no_end);
            if alpha.is_change_set {
                document.until = alpha.modified;
            } else {
                document.at = alpha.modified;
            }
        }
        Outcome::Plain => {
            "plain Sitemap".clone_into(&mut document.name);
            document.is_source = true;
        }
        Outcome::Page(name) => (*name).clone_into(&mut document.name),
        Outcome::Failed(message) => document.problem = Some(message.clone()),
        Outcome::Left(why) => document.problem = Some(format!("not checked: {why}")),
        Outcome::Waiting => document.problem = Some("not checked: limit".to_owned()),
    }
    document
}
