//! `/livez`, `/readyz`, `/metrics`: whether the server lives, whether it can serve, and its
//! figures.

use super::topic;
use crate::respond::{Answer, text, try_later};
use crate::site::{Site, SiteHub};
use abreast_source::WatchState;
use metrics::{counter, gauge};
use std::fmt::Write as _;

/// Most hubs that do not accept notifications in one answer.
const MAX_TOLD: usize = 20;

pub(crate) fn live() -> Answer {
    text("text/plain; charset=utf-8", "alive\n")
}

/// Ready when every set can be published: its store records, its first reading is complete, and no
/// deletion is held.
pub(crate) fn ready(site: &Site, stopping: bool) -> Answer {
    if stopping {
        return try_later("stopping", 10);
    }
    for set in site.sets.all() {
        let slug = &set.published.slug;
        let log = site.publisher.log();
        match log.check_available().and_then(|()| log.head(set.published.id)) {
            Ok(head) if head.importing => {
                let (state, seconds) = match (&set.entities, set.watch.state()) {
                    (Some(_), _) => {
                        let state = "is not complete: its import is running, or was interrupted and has to be made again";
                        (state.to_owned(), 2)
                    }
                    (None, WatchState::Vanished(reason)) => {
                        (format!("cannot be read: {reason}"), 10)
                    }
                    (None, _) => ("is being read for the first time".to_owned(), 2),
                };
                return try_later(&format!("set `{slug}` {state}"), seconds);
            }
            Ok(_) => {}
            Err(error) => return try_later(&format!("set `{slug}`: {error}"), 10),
        }
        match set.watch.state() {
            // Descriptions of entities are served from the store.
            WatchState::Vanished(reason) if set.published.representations.has_folder() => {
                return try_later(&format!("set `{slug}`: {reason}"), 10);
            }
            WatchState::Failed(reason) => {
                return try_later(&format!("set `{slug}`: cannot record changes: {reason}"), 10);
            }
            _ => {}
        }
        if let Some(held) = set.watch.held() {
            if set.watch.is_confirming() {
                return try_later(
                    &format!("set `{slug}`: {held}; it was confirmed and is being recorded"),
                    2,
                );
            }
            let help = format!(
                "if {}, POST /api/v1/sets/{slug}/deletions with a token of scope `admin` confirms it",
                held.if_intended()
            );
            return try_later(&format!("set `{slug}`: {held} (help: {help})"), 10);
        }
    }
    if let Some(hub) = &site.hub
        && let Err(error) = hub.hub.store().check_available()
    {
        return try_later(&format!("the hub: {error}"), 10);
    }
    let mut ready = "ready\n".to_owned();
    // Neither files that cannot be read nor failing hubs make this server less ready, but they are
    // shown.
    for set in site.sets.all() {
        for problem in set.watch.problem_texts() {
            let problem = problem.split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = writeln!(ready, "set `{}`: {problem}", set.published.slug);
        }
    }
    for failing in site.hub.iter().flat_map(|hub| hub.hub.failing_hubs()).take(MAX_TOLD) {
        let _ = writeln!(ready, "{failing}");
    }
    text("text/plain; charset=utf-8", ready)
}

/// Prometheus text. Gauges are read from memory when asked for.
pub(crate) fn metrics(site: &Site) -> Answer {
    for set in site.sets.all() {
        let slug = &set.published.slug;
        if let Ok(head) = site.publisher.log().head(set.published.id) {
            gauge!("abreast_log_head_position", "set" => slug.clone()).set(head.position.0 as f64);
            gauge!("abreast_log_head_time_seconds", "set" => slug.clone())
                .set(head.time.as_micros() as f64 / 1e6);
            gauge!("abreast_resources", "set" => slug.clone()).set(head.resources as f64);
        }
        let watching = match set.watch.state() {
            WatchState::Watching | WatchState::Scanning => true,
            WatchState::Vanished(_) | WatchState::Failed(_) => false,
            WatchState::Starting | WatchState::Stopped => {
                !set.published.representations.has_folder()
            }
        };
        if let Some((shared, unreached)) = set.watch.blank_nodes() {
            gauge!("abreast_source_shared_blank_nodes", "set" => slug.clone()).set(shared as f64);
            gauge!("abreast_source_unreached_blank_nodes", "set" => slug.clone())
                .set(unreached as f64);
        }
        gauge!("abreast_source_watching", "set" => slug.clone()).set(f64::from(u8::from(watching)));
        let held = set.watch.held().map_or(0, |held| held.missing);
        gauge!("abreast_source_held_deletions", "set" => slug.clone()).set(held as f64);
        gauge!("abreast_source_unreadable_files", "set" => slug.clone())
            .set(set.watch.problems() as f64);
        if let Some(at) = set.watch.last_scan() {
            gauge!("abreast_source_last_scan_time_seconds", "set" => slug.clone())
                .set(at.as_micros() as f64 / 1e6);
        }
    }
    if let Some(hub) = &site.hub {
        measure(hub);
    }
    text("text/plain; version=0.0.4; charset=utf-8", (site.metrics)())
}

/// The hub counts by itself: its totals are handed on.
fn measure(hub: &SiteHub) {
    let metrics = hub.hub.metrics();
    for (name, total) in [
        ("abreast_hub_accepted_total", metrics.accepted),
        ("abreast_hub_refused_total", metrics.refused),
        ("abreast_hub_fetched_total", metrics.fetched),
        ("abreast_hub_delivered_total", metrics.delivered),
        ("abreast_hub_failed_total", metrics.failed),
        ("abreast_hub_given_up_total", metrics.given_up),
        ("abreast_hub_requested_total", metrics.requested),
        ("abreast_hub_confirmed_total", metrics.confirmed),
        ("abreast_hub_unconfirmed_total", metrics.unconfirmed),
        ("abreast_hub_ended_total", metrics.ended),
    ] {
        counter!(name).absolute(total);
    }
    for (name, now) in [
        ("abreast_hub_topics", metrics.topics),
        ("abreast_hub_targets", metrics.targets),
        ("abreast_hub_in_flight", metrics.in_flight),
        ("abreast_hub_slow", metrics.slow),
        ("abreast_hub_ready", metrics.ready),
        ("abreast_hub_waiting", metrics.waiting),
        ("abreast_hub_broken_origins", metrics.broken_origins),
        ("abreast_hub_unverified", metrics.unverified),
        ("abreast_hub_failing_hubs", metrics.failing_hubs),
        ("abreast_hub_event_streams", topic::streams() as u64),
    ] {
        gauge!(name).set(now as f64);
    }
    if let Ok(sizes) = hub.hub.sizes() {
        gauge!("abreast_hub_stored_bytes").set(sizes.body_bytes as f64);
    }
}
