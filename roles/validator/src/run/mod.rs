//! A validation run, from the first address to the report.

#[doc(hidden)]
pub mod fuzz_property;

use crate::report::finding::{Finding, Findings};
use crate::report::options::Options;
use crate::report::rule::Mode;
use crate::report::rules;
use crate::resourcesync::checker::Checker;
use crate::resourcesync::{relate, topic, uniform};
use crate::walk::node::Outcome;
use crate::walk::report::{self, Report};
use crate::walk::{self, Walk};
use crate::walk::{feeds, sample, settle};
use crate::{emm, resourcesync_0_1, sdshare};
use abreast_net::Shared;
use std::sync::atomic::{AtomicBool, Ordering};

/// Judges the bytes of one document by itself; `name` stands for it in findings.
pub fn check_document(name: &str, bytes: &[u8], mode: Mode) -> Vec<Finding> {
    let found = Findings::new(name, mode, usize::MAX);
    if sdshare::is_feed(bytes) {
        return sdshare::check_feed(bytes, usize::MAX, found).into_list();
    }
    if emm::is_document(bytes) {
        return emm::check_document(bytes, found).into_list();
    }
    if resourcesync_0_1::is_document(bytes) {
        return resourcesync_0_1::check_document(bytes, usize::MAX, found).into_list();
    }
    let mut checker = Checker::new(found, (), u64::MAX);
    checker.feed(bytes);
    checker.finish();
    checker.found.into_list()
}

/// Walks from the starts, judges what is there, and reports all of it. `cancel` ends it early.
///
/// It blocks, and starts as many threads as there may be requests.
pub fn validate(options: &Options, cancel: &AtomicBool) -> Report {
    let mut net = options.net.clone();
    net.connections_per_host = options.connections.max(1);
    let shared = Shared::new(net);
    let budget = walk::budget(options, cancel);
    let mut walked = Walk::new(options, &budget, shared.clone()).run();
    let of_feeds = feeds::walk(&mut walked, options, &shared, &budget);
    relate::relate(&mut walked, options);
    let sampled = if walked.cancelled {
        sample::Sampled::default()
    } else {
        uniform::compare(&mut walked, options);
        topic::ask_hubs(&mut walked, options, &shared, &budget);
        sample::sample(&mut walked, options, &shared, &budget)
    };
    settle::settle(&mut walked, options, &shared);
    walked.cancelled |= cancel.load(Ordering::Relaxed);
    walked.limit = walked.limit.or(sampled.limit.filter(|_| !walked.cancelled));
    if let Some(limit) = walked.limit
        && let Some(node) =
            walked.nodes.iter_mut().find(|node| !matches!(node.outcome, Outcome::Waiting))
    {
        let mut found = Findings::new(&node.url, options.mode, 1);
        found.add(&rules::LIMIT, (0, 0), || format!("the limit {limit} was reached"));
        node.findings.append(&mut found.into_list());
    }
    let unreachable =
        budget.unreachable.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    Report { unreachable, ..report::report(walked, options, sampled.fetched + of_feeds) }
}
