//! Documents and findings of a walk, in a stable order.

use crate::report::{Document, Finding, Options, Report};
use crate::walk::node::{FoundBy, Node, Outcome, Walked, site_has_documents};
use std::collections::{BTreeMap, HashSet};

/// Creates the report from the results of a walk.
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

/// Documents that a document links to, in the order of its links.
fn below(walked: &Walked, number: usize) -> Vec<usize> {
    let node = &walked.nodes[number];
    let Outcome::Read(record) = &node.outcome else { return Vec::new() };
    let urls = record.children().into_iter().chain(node.children.iter().map(String::as_str));
    urls.filter_map(|url| walked.by_url.get(url).copied()).collect()
}

/// Order of the report: from the top down, each document once. Documents without a link to them
/// follow in the order of their discovery.
fn order(walked: &Walked) -> Vec<usize> {
    // A site whose documents were found need not have a page at its root.
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

/// Whether an address is reported. An address that was only tried is not, unless it has a document
/// or a finding.
fn is_shown(node: &Node) -> bool {
    match &node.outcome {
        Outcome::Read(_) => true,
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

fn document(node: &Node) -> Document {
    let mut document = Document {
        url: node.url.clone(),
        found_by: node.found_by.word(),
        level: node.level,
        millis: node.millis,
        ..Document::default()
    };
    match &node.outcome {
        Outcome::Read(record) => record.report(node, &mut document),
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
