//! Second checks. A fault is dropped if the Source changed while it was read.
//!
//! A Source in operation may publish a list again after its index was checked and before the list
//! is. Findings that this can explain are dropped if one of the documents concerned changed after
//! it was read.

use crate::fetch::{self, is_url};
use crate::report::{Finding, Options, Rule, rules as r};
use crate::walk::node::{Node, Outcome, Walked};
use abreast_net::{Client, Shared};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Documents that are requested again.
const LOOKS_MAX: usize = 200;

static VOLATILE: &[&Rule] = &[
    &r::REACHABLE,
    &r::INDEX_LEADS,
    &r::LISTED,
    &r::RESOURCE_INDEX_AT,
    &r::RESOURCE_INDEX_LATER,
    &r::RESOURCE_LIST_ONCE,
    &r::CHANGE_INDEX_INTERVAL,
    &r::CHANGE_INDEX_CLOSED,
    &r::CHANGE_INDEX_OPEN,
    &r::CHANGE_INDEX_GAP,
    &r::CHANGE_INDEX_ORDER,
    &r::CHANGE_INDEX_LAST,
    &r::CHANGE_INDEX_SPAN,
    &r::CHANGE_DUMP_ORDER,
    &r::CHANGE_DUMP_SPAN,
    &r::DUMP_CONTENTS,
    &r::UNIFORM_CHANGES,
    &r::UNIFORM_DUMP,
    &r::AVAILABLE,
    &r::LENGTH_TRUE,
    &r::HASH_TRUE,
    &r::TYPE_TRUE,
    &r::TOPIC_ANSWERS,
    &r::TOPIC_HUBS,
    &r::FRAMEWORK_INDEX,
    &r::FRAMEWORK_NO_INDEX,
];

fn is_volatile(finding: &Finding) -> bool {
    VOLATILE.iter().any(|rule| rule.id == finding.rule.id)
}

/// Drops findings that a change of the Source explains.
pub(crate) fn settle(walked: &mut Walked, options: &Options, shared: &Arc<Shared>) {
    if walked.cancelled || !walked.nodes.iter().any(|node| node.findings.iter().any(is_volatile)) {
        return;
    }
    let Some(runtime) = fetch::runtime() else { return };
    let client = Client::new(Arc::clone(shared));
    let mut changed: BTreeMap<usize, bool> = BTreeMap::new();
    let mut dropped = HashSet::new();
    for number in 0..walked.nodes.len() {
        let node = &walked.nodes[number];
        if !options.walk || !is_url(&node.url) || !node.findings.iter().any(is_volatile) {
            continue;
        }
        for related in related(walked, number) {
            if changed.len() < LOOKS_MAX || changed.contains_key(&related) {
                let ask = || runtime.block_on(has_changed(&client, &walked.nodes[related]));
                if *changed.entry(related).or_insert_with(ask) {
                    dropped.insert(number);
                    break;
                }
            }
        }
    }
    for number in dropped {
        walked.nodes[number].findings.retain(|finding| !is_volatile(finding));
    }
}

/// The document, the document that links to it, and the documents that it links to.
fn related(walked: &Walked, number: usize) -> Vec<usize> {
    let node = &walked.nodes[number];
    let mut all = vec![number];
    all.extend(node.from);
    if let Outcome::Read(record) = &node.outcome {
        let urls = record.related(&node.url);
        all.extend(urls.iter().filter_map(|url| walked.by_url.get(url).copied()));
    }
    all
}

async fn has_changed(client: &Client, node: &Node) -> bool {
    let Outcome::Read(record) = &node.outcome else { return false };
    let Some(facts) = record.facts() else { return false };
    (facts.etag.is_some() || facts.last_modified.is_some())
        && fetch::is_other_now(client, &node.url, facts).await == Some(true)
}
