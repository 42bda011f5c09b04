//! `/livez`, `/readyz`, `/metrics`: whether the server is alive, whether it can serve, and its
//! metrics.

use crate::message::respond::{Answer, text, try_later};
use crate::observe::metrics::{METRICS, MetricKind};
use crate::site::current::CurrentSite;
use crate::site::served::{ServedSet, Site, SiteHub};
use abreast_core::LogError;
use abreast_folder::LastBackup;
use abreast_source::{SetState, WatchState};
use abreast_webtypes::count;
use metrics::{counter, gauge};
use std::fmt::Write as _;
use std::time::Duration;

/// Most sets that are not ready, and most hubs that do not accept notifications, in a response.
const MAX_TOLD: usize = 20;
/// Time limit for the answers of the stores to a probe.
const PROBE_LIMIT: Duration = Duration::from_millis(2_500);

pub(crate) fn live() -> Answer {
    text("text/plain; charset=utf-8", "alive\n")
}

fn state_of(site: &Site, set: &ServedSet) -> Result<SetState, LogError> {
    SetState::of(&**site.publisher.log(), &set.published)
}

/// Whether a set is published, at least in part.
fn is_published(site: &Site, state: &SetState, set: &ServedSet) -> bool {
    match state {
        SetState::Ready | SetState::Held(_) | SetState::Confirmed(_) => true,
        // Descriptions of entities are served from the store.
        SetState::Missing(_) => {
            let head = site.publisher.log().head_for_documents(set.published.id);
            !set.published.representations.has_folder() && head.is_ok_and(|head| !head.importing)
        }
        SetState::Reading | SetState::Incomplete | SetState::Failed(_) => false,
    }
}

/// The set's status as a text; `None` if the set is ready.
fn text_of(state: &SetState, slug: &str) -> Option<String> {
    Some(match state {
        SetState::Ready => return None,
        SetState::Reading => "is being read for the first time".to_owned(),
        SetState::Incomplete => {
            "is incomplete: its import is running, or was interrupted and has to be made again"
                .to_owned()
        }
        SetState::Held(held) => format!(
            "{held} (help: if {}, POST /api/v1/sets/{slug}/deletions with a token of scope `admin` confirms it)",
            held.if_intended(),
        ),
        SetState::Confirmed(held) => format!("{held}; it was confirmed and is being recorded"),
        SetState::Missing(reason) => format!("is missing: {reason}"),
        SetState::Failed(reason) => format!("has failed, its changes cannot be recorded: {reason}"),
    })
}

/// Ready when the server can serve: its stores can be read and written, and at least one set is
/// published. The response lists the status of each set; a set that is not ready does not make the
/// server unready.
pub(crate) fn ready(sites: &CurrentSite, stopping: bool) -> Answer {
    if stopping {
        return try_later("stopping", 10);
    }
    match readiness_in_time(sites) {
        Ok(ready) => text("text/plain; charset=utf-8", ready),
        Err((reason, wait)) => try_later(&reason, wait),
    }
}

/// As [`readiness`], within [`PROBE_LIMIT`].
fn readiness_in_time(sites: &CurrentSite) -> Result<String, (String, u32)> {
    let site = sites.now();
    let done = sites.probes.readiness.run(PROBE_LIMIT, move || readiness(&site));
    let late = || format!("the store has not answered for {} ms", PROBE_LIMIT.as_millis());
    match done {
        Ok(Some(readiness)) => readiness,
        Ok(None) => Err((late(), 10)),
        Err(error) => Err((format!("no thread can be started: {error}"), 10)),
    }
}

/// The text of a ready server; else the reason, and the seconds after which a client should ask again.
fn readiness(site: &Site) -> Result<String, (String, u32)> {
    if let Some(hub) = &site.hub
        && let Err(reason) = hub.hub.check_lease()
    {
        return Err((format!("the hub: {reason}"), 10));
    }
    if let Err(error) = site.publisher.log().check_available() {
        return Err((format!("the store: {error}"), 10));
    }
    if let Some(hub) = &site.hub
        && let Err(error) = hub.hub.store().check_available()
    {
        return Err((format!("the hub: {error}"), 10));
    }
    let (mut states, mut is_ready, mut wait) = (Vec::new(), site.sets.is_empty(), 10);
    for set in site.sets.all() {
        let slug = &set.published.slug;
        let state = match state_of(site, set) {
            Ok(state) => state,
            Err(error) => return Err((format!("set `{slug}`: {error}"), 10)),
        };
        is_ready |= is_published(site, &state, set);
        if matches!(state, SetState::Reading | SetState::Incomplete) {
            wait = 2;
        }
        if let Some(text) = text_of(&state, slug) {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            states.push(format!("set `{slug}` {text}"));
        }
    }
    if !is_ready {
        return Err((some_of(&states).join("; "), wait));
    }
    let mut ready = "ready\n".to_owned();
    // Sets that are not ready and failing hubs do not make this server unready, but the response
    // lists them.
    for state in some_of(&states) {
        let _ = writeln!(ready, "{state}");
    }
    for set in site.sets.all() {
        for problem in set.published.watch.problem_texts() {
            let problem = problem.split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = writeln!(ready, "set `{}`: {problem}", set.published.slug);
        }
    }
    for failing in site.hub.iter().flat_map(|hub| hub.hub.failing_hubs()).take(MAX_TOLD) {
        let _ = writeln!(ready, "{failing}");
    }
    Ok(ready)
}

impl CurrentSite {
    /// The text of `/readyz` with one line for each set that is not ready; an error while the server
    /// cannot serve. Answers within 3 s, even if the store does not answer.
    ///
    /// # Errors
    /// The server cannot serve, with the reason.
    pub fn readiness(&self) -> Result<String, String> {
        readiness_in_time(self).map_err(|(reason, _)| format!("{reason}\n"))
    }

    /// The metrics, as `/metrics` of the server shows them. Values that come from a store that does
    /// not answer within 3 s are the last ones.
    pub fn metrics_text(&self) -> String {
        let (site, read) = (self.now(), self.now());
        // If no thread starts, the values are from the last request.
        let _ = self.probes.metrics.run(PROBE_LIMIT, move || measure_stored(&read));
        if let Some(hub) = &site.hub {
            measure(&site, hub);
        }
        (site.metrics)()
    }
}

impl Site {
    /// One line on the sets for a service manager: their number, their resources, and the first set
    /// that is not ready. Reads the store.
    pub fn status_line(&self) -> String {
        let sets = self.sets.all();
        let heads = sets.iter().filter_map(|set| self.publisher.log().head(set.published.id).ok());
        let resources: u64 = heads.map(|head| head.resources).sum();
        let mut line = match sets.len() {
            0 => "serving".to_owned(),
            number => format!(
                "serving {} of {}",
                count(resources, "resource"),
                count(number as u64, "set")
            ),
        };
        let state = |set: &ServedSet| text_of(&state_of(self, set).ok()?, &set.published.slug);
        let unready: Vec<_> = sets.iter().filter_map(|set| Some((set, state(set)?))).collect();
        if let Some((set, text)) = unready.first() {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = write!(line, "; set `{}` {text}", set.published.slug);
        }
        if unready.len() > 1 {
            let _ = write!(line, "; and {} more", unready.len() - 1);
        }
        line
    }
}

/// The first texts, and the number of further ones.
fn some_of(states: &[String]) -> Vec<String> {
    let mut some: Vec<String> = states.iter().take(MAX_TOLD).cloned().collect();
    let more = states.len().saturating_sub(MAX_TOLD);
    if more > 0 {
        some.push(format!("and {more} more sets"));
    }
    some
}

/// Metrics as Prometheus text.
pub(crate) fn metrics(sites: &CurrentSite) -> Answer {
    text("text/plain; version=0.0.4; charset=utf-8", sites.metrics_text())
}

/// Measures the values that are in the stores.
fn measure_stored(site: &Site) {
    for set in site.sets.all() {
        let slug = &set.published.slug;
        if let Ok(head) = site.publisher.log().head_for_documents(set.published.id) {
            gauge!("abreast_log_head_position", "set" => slug.clone()).set(head.position.0 as f64);
            gauge!("abreast_log_head_time_seconds", "set" => slug.clone())
                .set(head.time.as_micros() as f64 / 1e6);
            gauge!("abreast_resources", "set" => slug.clone()).set(head.resources as f64);
        }
        let watching = match set.published.watch.state() {
            WatchState::Watching | WatchState::Scanning | WatchState::Elsewhere => true,
            WatchState::Vanished(_) | WatchState::Failed(_) => false,
            WatchState::Starting | WatchState::Stopped => {
                !set.published.representations.has_folder()
            }
        };
        if let Some((shared, unreached)) = set.published.watch.blank_nodes() {
            gauge!("abreast_source_shared_blank_nodes", "set" => slug.clone()).set(shared as f64);
            gauge!("abreast_source_unreached_blank_nodes", "set" => slug.clone())
                .set(unreached as f64);
        }
        if let Ok(state) = state_of(site, set) {
            for name in SetState::NAMES {
                let is_now = f64::from(u8::from(name == state.name()));
                gauge!("abreast_set_state", "set" => slug.clone(), "state" => name).set(is_now);
            }
        }
        gauge!("abreast_source_watching", "set" => slug.clone()).set(f64::from(u8::from(watching)));
        let held = set.published.watch.held().map_or(0, |held| held.missing);
        gauge!("abreast_source_held_deletions", "set" => slug.clone()).set(held as f64);
        gauge!("abreast_source_unreadable_files", "set" => slug.clone())
            .set(set.published.watch.problems() as f64);
        if let Some(at) = set.published.watch.last_scan() {
            gauge!("abreast_source_last_scan_time_seconds", "set" => slug.clone())
                .set(at.as_micros() as f64 / 1e6);
        }
    }
    if let Some(hub) = &site.hub
        && let Ok(sizes) = hub.hub.sizes()
    {
        gauge!("abreast_hub_stored_bytes").set(sizes.body_bytes as f64);
    }
    // A damaged record is left out; the next backup replaces it.
    if let Some(Ok(Some(last))) = site.store.as_deref().map(LastBackup::read) {
        gauge!("abreast_backup_time_seconds").set(last.began as f64 / 1e6);
    }
}

/// Makes the gauges of a set that is no longer published not a number, for which no alert fires.
pub fn forget_set(slug: &str) {
    for metric in METRICS.iter().filter(|metric| metric.kind == MetricKind::Gauge) {
        if metric.labels == ["set"] {
            gauge!(metric.name, "set" => slug.to_owned()).set(f64::NAN);
        }
    }
    for name in SetState::NAMES {
        let labels = [("set", slug.to_owned()), ("state", name.to_owned())];
        gauge!("abreast_set_state", &labels).set(f64::NAN);
    }
}

/// Copies the hub's own totals to the metrics.
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
        ("abreast_hub_nodes", metrics.nodes),
        ("abreast_hub_shards", metrics.shards),
    ] {
        gauge!(name).set(now as f64);
    }
    gauge!("abreast_hub_since_renewal_seconds").set(metrics.since_renewal.as_secs_f64());
}
