//! `/livez`, `/readyz`, `/metrics`: whether the server lives, whether it can serve, and its
//! figures.

use crate::respond::{Answer, text, try_later};
use crate::site::{ServedSet, Site, SiteHub};
use abreast_core::LogError;
use abreast_source::WatchState;
use metrics::{counter, gauge};
use std::fmt::Write as _;

/// Most sets that are not ready, and most hubs that do not accept notifications, in one answer.
const MAX_TOLD: usize = 20;

pub(crate) fn live() -> Answer {
    text("text/plain; charset=utf-8", "alive\n")
}

/// The state of one set, as `/readyz` and `/metrics` report it.
enum SetState {
    /// Everything of it is published, and its changes are recorded.
    Ready,
    /// The first reading is running: nothing of it is published yet.
    Reading,
    /// Its first reading ended before it was complete: nothing of it is published.
    Incomplete,
    /// Deletions wait for a confirmation; everything else is published.
    Held(String),
    /// Its folder cannot be read; the documents that were published remain.
    Missing(String),
    /// Its changes cannot be recorded.
    Failed(String),
}

/// Names of states in `/metrics`.
const STATES: [&str; 6] = ["ready", "reading", "incomplete", "held", "missing", "failed"];

impl SetState {
    /// # Errors
    /// The store cannot be read.
    fn of(site: &Site, set: &ServedSet) -> Result<Self, LogError> {
        let state = set.watch.state();
        if site.publisher.log().head(set.published.id)?.importing {
            return Ok(match state {
                WatchState::Vanished(reason) => Self::Missing(reason),
                WatchState::Failed(reason) => Self::Failed(reason),
                WatchState::Scanning => Self::Reading,
                WatchState::Starting if set.entities.is_none() => Self::Reading,
                WatchState::Starting | WatchState::Watching | WatchState::Stopped => {
                    Self::Incomplete
                }
            });
        }
        Ok(match state {
            // Descriptions of entities are served from the store.
            WatchState::Vanished(reason) if set.published.representations.has_folder() => {
                Self::Missing(reason)
            }
            WatchState::Failed(reason) => Self::Failed(reason),
            _ => match set.watch.held() {
                Some(held) if set.watch.is_confirming() => {
                    Self::Held(format!("{held}; it was confirmed and is being recorded"))
                }
                Some(held) => Self::Held(format!(
                    "{held} (help: if {}, POST /api/v1/sets/{}/deletions with a token of scope `admin` confirms it)",
                    held.if_intended(),
                    set.published.slug
                )),
                None => Self::Ready,
            },
        })
    }

    const fn name(&self) -> &'static str {
        STATES[match self {
            Self::Ready => 0,
            Self::Reading => 1,
            Self::Incomplete => 2,
            Self::Held(_) => 3,
            Self::Missing(_) => 4,
            Self::Failed(_) => 5,
        }]
    }

    /// Whether the set is published, perhaps not all of it.
    const fn is_published(&self) -> bool {
        matches!(self, Self::Ready | Self::Held(_))
    }

    /// The state in words; `None` when there is nothing to report.
    fn text(&self) -> Option<String> {
        Some(match self {
            Self::Ready => return None,
            Self::Reading => "is being read for the first time".to_owned(),
            Self::Incomplete => {
                "is not complete: its import is running, or was interrupted and has to be made again"
                    .to_owned()
            }
            Self::Held(text) => text.clone(),
            Self::Missing(reason) => format!("cannot be read: {reason}"),
            Self::Failed(reason) => format!("cannot record changes: {reason}"),
        })
    }
}

/// Ready when the server can serve: its stores can be read and written, and at least one set is published. The state of
/// each set is in the answer, and does not make the server unready.
pub(crate) fn ready(site: &Site, stopping: bool) -> Answer {
    if stopping {
        return try_later("stopping", 10);
    }
    if let Err(error) = site.publisher.log().check_available() {
        return try_later(&format!("the store: {error}"), 10);
    }
    if let Some(hub) = &site.hub
        && let Err(error) = hub.hub.store().check_available()
    {
        return try_later(&format!("the hub: {error}"), 10);
    }
    let (mut states, mut is_published, mut wait) = (Vec::new(), site.sets.is_empty(), 10);
    for set in site.sets.all() {
        let slug = &set.published.slug;
        let state = match SetState::of(site, set) {
            Ok(state) => state,
            Err(error) => return try_later(&format!("set `{slug}`: {error}"), 10),
        };
        is_published |= state.is_published();
        if matches!(state, SetState::Reading | SetState::Incomplete) {
            wait = 2;
        }
        if let Some(text) = state.text() {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            states.push(format!("set `{slug}` {text}"));
        }
    }
    if !is_published {
        return try_later(&some_of(&states).join("; "), wait);
    }
    let mut ready = "ready\n".to_owned();
    // Neither the state of one set nor failing hubs make this server less ready, but they are shown.
    for state in some_of(&states) {
        let _ = writeln!(ready, "{state}");
    }
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

/// The first states, and how many more there are.
fn some_of(states: &[String]) -> Vec<String> {
    let mut some: Vec<String> = states.iter().take(MAX_TOLD).cloned().collect();
    let more = states.len().saturating_sub(MAX_TOLD);
    if more > 0 {
        some.push(format!("and {more} more sets"));
    }
    some
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
        if let Ok(state) = SetState::of(site, set) {
            for name in STATES {
                let is_now = f64::from(u8::from(name == state.name()));
                gauge!("abreast_set_state", "set" => slug.clone(), "state" => name).set(is_now);
            }
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
        measure(site, hub);
    }
    text("text/plain; version=0.0.4; charset=utf-8", (site.metrics)())
}

/// The hub counts by itself: its totals are handed on.
fn measure(site: &Site, hub: &SiteHub) {
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
        ("abreast_hub_event_streams", site.memory.streams.taken() as u64),
    ] {
        gauge!(name).set(now as f64);
    }
    if let Ok(sizes) = hub.hub.sizes() {
        gauge!("abreast_hub_stored_bytes").set(sizes.body_bytes as f64);
    }
}
