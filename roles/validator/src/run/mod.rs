//! A validation run, from the first address to the report.

#[doc(hidden)]
pub mod fuzz_property;

use crate::emm::Emm;
use crate::fetch::hosts::Hosts;
use crate::fetch::manners::CONDITIONS_MAX;
use crate::fetch::{self, Failure};
use crate::report::{Finding, Findings, Mode, Options, Report, rules};
use crate::resourcesync::ResourceSync;
use crate::resourcesync_0_1::ResourceSync01;
use crate::sdshare::SdShare;
use crate::walk::feeds::Feeds;
use crate::walk::node::{Outcome, Walked};
use crate::walk::protocol::{Protocol, Run};
use crate::walk::sample::{Fetched, sample};
use crate::walk::{Walk, budget, report, settle};
use abreast_net::Shared;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// All protocols, in the order in which documents are offered. The last one accepts any document.
fn protocols(seed: u64) -> [Box<dyn Protocol>; 4] {
    [Box::new(ResourceSync01), Box::new(SdShare), Box::new(Emm), Box::new(ResourceSync::new(seed))]
}

/// Checks the bytes of a single document without requests. Findings contain `name` in place of a
/// URL.
pub fn check_document(name: &str, bytes: &[u8], mode: Mode) -> Vec<Finding> {
    check(bytes, usize::MAX, Findings::new(name, mode, usize::MAX))
}

fn check(bytes: &[u8], piece: usize, found: Findings) -> Vec<Finding> {
    let protocols = protocols(0);
    match protocols.iter().find(|protocol| protocol.is_document(bytes)) {
        Some(protocol) => protocol.check(bytes, piece, found).into_list(),
        None => Vec::new(),
    }
}

/// Walks from the starts, checks all documents and returns the report. Set `cancel` to end the run
/// early; the report then covers the part that was checked.
///
/// The call blocks. It starts as many threads as concurrent requests are allowed.
pub fn validate(options: &Options, cancel: &AtomicBool) -> Report {
    let mut net = options.net.clone();
    net.connections_per_host = options.connections.max(1);
    let (budget, protocols) = (budget(options, cancel), protocols(options.seed));
    let run = Run {
        options,
        budget: &budget,
        shared: Shared::new(net),
        hosts: Hosts::of(options),
        protocols: &protocols,
        conditions: AtomicU64::new(CONDITIONS_MAX),
    };
    let (mut walked, later) = Walk::new(&run).run();
    let of_feeds = read(&mut walked, &later, &run);
    for protocol in &protocols {
        protocol.relate(&mut walked, &run);
    }
    let sampled = if walked.cancelled { Fetched::default() } else { sample(&mut walked, &run) };
    settle::settle(&mut walked, options, &run.shared);
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

/// Reads the recognised documents and their children. Returns the number of fetched resources.
fn read(walked: &mut Walked, later: &[(usize, usize)], run: &Run<'_>) -> u64 {
    if later.is_empty() || walked.cancelled || walked.limit.is_some() {
        return 0;
    }
    let Some(runtime) = fetch::runtime() else { return 0 };
    let mut feeds = Feeds::new(walked, run.options, run.budget, &run.shared, &run.hosts);
    for (start, protocol) in later {
        match runtime.block_on(run.protocols[*protocol].read(&mut feeds, *start)) {
            Ok(()) | Err(Failure::Missing(_)) => {}
            Err(Failure::Limit(limit)) => {
                feeds.walked.limit = Some(limit);
                break;
            }
            Err(Failure::Cancelled) => {
                feeds.walked.cancelled = true;
                break;
            }
        }
    }
    feeds.sampled
}
