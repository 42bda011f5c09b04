//! `/livez`, `/readyz`, `/metrics`: is it alive, can it serve, how is it doing?

use crate::respond::{Answer, text, try_later};
use crate::site::Site;
use abreast_source::WatchState;
use metrics::gauge;

pub(crate) fn live() -> Answer {
    text("text/plain; charset=utf-8", "alive\n")
}

/// Ready when every set can be published: its store answers and its first reading is complete.
pub(crate) fn ready(site: &Site, stopping: bool) -> Answer {
    if stopping {
        return try_later("stopping", 10);
    }
    for (set, published) in site.sets.iter().zip(site.publisher.sets()) {
        match site.publisher.log().head(published.id) {
            Ok(head) if head.importing => {
                return try_later(&format!("set `{}` is being read for the first time", set.slug), 2);
            }
            Ok(_) => {}
            Err(error) => return try_later(&format!("the store of set `{}` failed: {error}", set.slug), 10),
        }
        if let WatchState::Vanished(reason) = set.watch.state() {
            return try_later(&format!("set `{}`: {reason}", set.slug), 10);
        }
    }
    text("text/plain; charset=utf-8", "ready\n")
}

/// Prometheus text. Gauges are read from memory when asked for.
pub(crate) fn metrics(site: &Site) -> Answer {
    for (set, published) in site.sets.iter().zip(site.publisher.sets()) {
        if let Ok(head) = site.publisher.log().head(published.id) {
            gauge!("abreast_log_head_position", "set" => set.slug.clone()).set(head.position.0 as f64);
            gauge!("abreast_log_head_time_seconds", "set" => set.slug.clone()).set(head.time.as_micros() as f64 / 1e6);
            gauge!("abreast_resources", "set" => set.slug.clone()).set(head.resources as f64);
        }
        let watching = set.records || matches!(set.watch.state(), WatchState::Watching | WatchState::Scanning);
        gauge!("abreast_source_watching", "set" => set.slug.clone()).set(f64::from(u8::from(watching)));
        gauge!("abreast_source_unreadable_files", "set" => set.slug.clone()).set(set.watch.problems() as f64);
        if let Some(at) = set.watch.last_scan() {
            gauge!("abreast_source_last_scan_time_seconds", "set" => set.slug.clone()).set(at.as_micros() as f64 / 1e6);
        }
    }
    text("text/plain; version=0.0.4; charset=utf-8", (site.metrics)())
}
