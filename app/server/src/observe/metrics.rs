//! All metrics of the program, with their meaning, and the recorder that renders them.

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use std::io;
use std::time::Duration;
use thiserror::Error;

/// The type of a metric for Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// A total since the start of the program.
    Counter,
    /// A value that rises and falls.
    Gauge,
    /// A distribution in buckets, from 0.1 ms to an hour.
    Histogram,
}

/// A metric of the program. Names end with the unit, or with `_total`; times and durations are in
/// seconds.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The name in the text for Prometheus.
    pub name: &'static str,
    /// The kind, for the line `# TYPE`.
    pub kind: MetricKind,
    /// Names of the labels of each value.
    pub labels: &'static [&'static str],
    /// The text after `# HELP`.
    pub help: &'static str,
}

const fn total(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Counter, labels, help }
}

const fn now(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Gauge, labels, help }
}

const fn spread(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Histogram, labels, help }
}

/// Every metric with a name that begins with `abreast_`. `docs/metrics.md` is made from this table.
pub const METRICS: &[Metric] = &[
    now("abreast_build_info", &["version"], "Always 1; the label has the version of the program."),
    total(
        "abreast_http_responses_total",
        &["class"],
        "Answers by class of their status, such as 2xx.",
    ),
    total(
        "abreast_http_limited_total",
        &[],
        "Requests answered with 429, because their client had too many in flight.",
    ),
    total(
        "abreast_http_known_requests_total",
        &["client"],
        "Requests of each known client, by its signature or token.",
    ),
    spread(
        "abreast_http_request_seconds",
        &["kind"],
        "Time from the header of a request to the header of its answer, by kind: document, resource, api, hub or other. Requests that wait for changes are left out.",
    ),
    total(
        "abreast_access_log_lost_total",
        &[],
        "Requests whose lines were not written to the access log at once, because the disk was slow or full.",
    ),
    total(
        "abreast_connections_refused_total",
        &[],
        "Connections that were closed without an answer, because their client had too many.",
    ),
    total(
        "abreast_accept_errors_total",
        &[],
        "Connections that the system could not accept, such as without free descriptors.",
    ),
    // Sets.
    now("abreast_resources", &["set"], "Resources of a set."),
    now(
        "abreast_log_head_position",
        &["set"],
        "Changes that were recorded in a set since it exists.",
    ),
    now("abreast_log_head_time_seconds", &["set"], "Time of the last change of a set."),
    now("abreast_set_state", &["set", "state"], "1 for the state of a set, 0 for the others."),
    now("abreast_source_watching", &["set"], "1 while changes of a set are noticed, else 0."),
    now("abreast_source_held_deletions", &["set"], "Deletions that wait for a confirmation."),
    now(
        "abreast_source_unreadable_files",
        &["set"],
        "Files that could not be read in the last scan, or since.",
    ),
    now("abreast_source_last_scan_time_seconds", &["set"], "Time of the last complete scan."),
    total("abreast_source_scans_total", &[], "Complete scans of folders."),
    spread(
        "abreast_source_publish_lag_seconds",
        &[],
        "Time from the last event of a file to its change in the log, of the file that waited longest in each pass.",
    ),
    now("abreast_source_shared_blank_nodes", &["set"], "Blank nodes that several entities share."),
    now("abreast_source_unreached_blank_nodes", &["set"], "Blank nodes that no entity leads to."),
    now("abreast_kept_bytes", &["set"], "Bytes of the stored versions of a set."),
    total("abreast_versions_dropped_total", &["set"], "Versions that the rule of a set removed."),
    total("abreast_dumps_total", &["set", "kind", "result"], "Dumps that were made, or failed."),
    now(
        "abreast_dump_time_seconds",
        &["set", "kind"],
        "Time up to which the newest dump of this process has changes.",
    ),
    total("abreast_dump_since_total", &["set"], "Dumps of changes that were made for one request."),
    now(
        "abreast_backup_time_seconds",
        &[],
        "Time at which the last complete backup of the store began.",
    ),
    now(
        "abreast_store_free_bytes",
        &[],
        "Bytes that are free for this user on the file system of the store.",
    ),
    total(
        "abreast_notifications_total",
        &["set", "channel"],
        "Notifications that were given to the hub.",
    ),
    // Copies that follow their Source; the labels are empty without a job or set of that name.
    total(
        "abreast_copy_attempts_total",
        &["job", "set", "result"],
        "Runs of a copy that came to their end, or failed.",
    ),
    total(
        "abreast_copy_changes_applied_total",
        &["job", "set"],
        "Changes that were applied to a copy.",
    ),
    total(
        "abreast_copy_received_bytes_total",
        &["job", "set"],
        "Bytes of answers that a copy received.",
    ),
    total("abreast_copy_requests_total", &["job", "set"], "Requests of a copy."),
    total("abreast_copy_retries_total", &["job", "set"], "Requests of a copy that were repeated."),
    now(
        "abreast_copy_last_change_time_seconds",
        &["job", "set"],
        "Time at which a copy last changed.",
    ),
    now(
        "abreast_copy_last_sign_age_seconds",
        &["job", "set"],
        "Time since a copy last gave a sign of work; after 5 minutes it counts as hung.",
    ),
    now(
        "abreast_copy_last_success_time_seconds",
        &["job", "set"],
        "Time of the last run of a copy that succeeded.",
    ),
    now(
        "abreast_copy_complete_time_seconds",
        &["job", "set"],
        "Time up to which a copy has all changes of its Source.",
    ),
    now(
        "abreast_copy_complete",
        &["job", "set"],
        "1 if the last run left a copy complete, else 0.",
    ),
    now(
        "abreast_copy_pending",
        &["job", "set"],
        "Resources that the last run left untried, and those that failed.",
    ),
    now(
        "abreast_copy_failed",
        &["job", "set"],
        "Resources that failed or were left out in the last run.",
    ),
    now(
        "abreast_copy_held_deletions",
        &["job", "set"],
        "Deletions that the limit of deletions holds back.",
    ),
    now(
        "abreast_copy_cursor_time_seconds",
        &["job", "set"],
        "Time of the last change that a copy has read.",
    ),
    spread("abreast_copy_run_seconds", &["job", "set"], "Time that a run of a copy took."),
    // The hub.
    total("abreast_hub_accepted_total", &[], "Notifications that the hub accepted and stored."),
    total("abreast_hub_refused_total", &[], "Requests to publish that the hub refused."),
    total(
        "abreast_hub_fetched_total",
        &[],
        "Topics that the hub fetched because they were reported as changed.",
    ),
    total("abreast_hub_delivered_total", &[], "Deliveries that the recipient accepted."),
    total("abreast_hub_failed_total", &[], "Attempts to deliver that failed."),
    total(
        "abreast_hub_given_up_total",
        &[],
        "Notifications that were given up, once for each target.",
    ),
    total(
        "abreast_hub_requested_total",
        &[],
        "Requests to subscribe or to unsubscribe that the hub accepted.",
    ),
    total("abreast_hub_confirmed_total", &[], "Requests that the callback confirmed."),
    total("abreast_hub_unconfirmed_total", &[], "Requests that the callback did not confirm."),
    total("abreast_hub_ended_total", &[], "Subscriptions that ended, for any reason."),
    spread(
        "abreast_hub_delivery_lag_seconds",
        &[],
        "Time from the notification that the hub accepted to the answer of a recipient that accepted it.",
    ),
    now("abreast_hub_topics", &[], "Topics of the hub."),
    now(
        "abreast_hub_targets",
        &[],
        "Subscriptions and other hubs that notifications are delivered to.",
    ),
    now("abreast_hub_in_flight", &[], "Deliveries that are running."),
    now("abreast_hub_slow", &[], "Running deliveries that are slow."),
    now("abreast_hub_ready", &[], "Deliveries that wait for a place."),
    now("abreast_hub_waiting", &[], "Deliveries that wait for the time of their next attempt."),
    now("abreast_hub_broken_origins", &[], "Origins of callbacks that are paused after failures."),
    now("abreast_hub_unverified", &[], "Requests to subscribe whose callback did not answer yet."),
    now(
        "abreast_hub_failing_hubs",
        &[],
        "Other hubs that do not accept notifications, once for each topic.",
    ),
    now("abreast_hub_event_streams", &[], "Open event streams."),
    now(
        "abreast_hub_nodes",
        &[],
        "Nodes that deliver from the store of the hub; 0 if only this process delivers from it.",
    ),
    now(
        "abreast_hub_shards",
        &[],
        "Shards of the targets that this node delivers to; 0 if only this process delivers.",
    ),
    now(
        "abreast_hub_since_renewal_seconds",
        &[],
        "Time since this node renewed its lease; 0 if only this process delivers.",
    ),
    now("abreast_hub_stored_bytes", &[], "Bytes of the notifications that the hub stores."),
];

/// Upper ends of the buckets of histograms, in seconds.
const BUCKETS: [f64; 18] = [
    0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 600.0, 3_600.0,
];

/// How often recorded values are counted.
const UPKEEP: Duration = Duration::from_secs(5);

/// The recorder cannot be used.
#[derive(Debug, Error)]
pub enum MetricsError {
    /// Another recorder is installed, for example by an earlier call.
    #[error("metrics cannot be recorded")]
    Recorder(#[from] BuildError),
    /// The system cannot start a thread.
    #[error("cannot start the thread that counts metrics")]
    Thread(#[from] io::Error),
}

/// The recorder of the process, and the figures of the process itself: processor time, memory,
/// descriptors and threads.
pub struct Metrics {
    recorder: PrometheusHandle,
    process: metrics_process::Collector,
}

impl Metrics {
    /// Records from now on, for the whole process.
    ///
    /// # Errors
    /// Another recorder is installed, for example by an earlier call, or the system cannot start a
    /// thread.
    pub fn install() -> Result<Self, MetricsError> {
        let mut builder = PrometheusBuilder::new();
        for metric in METRICS.iter().filter(|metric| metric.kind == MetricKind::Histogram) {
            let name = Matcher::Full(metric.name.to_owned());
            builder = builder.set_buckets_for_metric(name, &BUCKETS)?;
        }
        let recorder = builder.install_recorder()?;
        for metric in METRICS {
            match metric.kind {
                MetricKind::Counter => describe_counter!(metric.name, metric.help),
                MetricKind::Gauge => describe_gauge!(metric.name, metric.help),
                MetricKind::Histogram => describe_histogram!(metric.name, metric.help),
            }
        }
        // The recorder stores every value of a histogram until it is counted, also if nobody asks.
        let counted = recorder.clone();
        std::thread::Builder::new().name("metrics".into()).spawn(move || {
            loop {
                std::thread::sleep(UPKEEP);
                counted.run_upkeep();
            }
        })?;
        let process = metrics_process::Collector::default();
        process.describe();
        gauge!("abreast_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
        // Alerts on a total need its value from the start.
        counter!("abreast_connections_refused_total").absolute(0);
        counter!("abreast_accept_errors_total").absolute(0);
        Ok(Self { recorder, process })
    }

    /// Renders the text for Prometheus, version 0.0.4.
    pub fn render(&self) -> String {
        self.process.collect();
        self.recorder.run_upkeep();
        // A counter of the recorder has whole numbers only, so the processor time is a gauge there.
        let text = self.recorder.render();
        text.replacen(
            "# TYPE process_cpu_seconds_total gauge",
            "# TYPE process_cpu_seconds_total counter",
            1,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// Words of a text that are names of metrics: with the prefix, and an end of one.
    fn names(text: &str) -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let words = words.filter(|word| word.starts_with("abreast_")).map(str::to_owned);
        words.collect()
    }

    fn read(folder: &Path, ending: &str, all: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                read(&path, ending, all);
            } else if path.to_string_lossy().ends_with(ending)
                && !path.ends_with("observe/metrics.rs")
            {
                all.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }

    #[test]
    fn every_metric_is_used_and_every_used_one_is_here() {
        let mut code = String::new();
        for part in [
            "app/server/src",
            "app/cli/src",
            "adapters/net/src",
            "roles/source/src",
            "roles/hub/src",
        ] {
            read(&root().join(part), ".rs", &mut code);
        }
        let declared: BTreeSet<_> = METRICS.iter().map(|metric| metric.name.to_owned()).collect();
        assert_eq!(declared.len(), METRICS.len(), "a name twice");
        let unused: Vec<_> =
            declared.iter().filter(|name| !code.contains(&format!("\"{name}\""))).collect();
        assert_eq!(unused, ["abreast_build_info"], "not used in the code");
        for line in code.lines().filter(|line| {
            line.contains("counter!(\"")
                || line.contains("gauge!(\"")
                || line.contains("histogram!(\"")
        }) {
            for name in names(line) {
                assert!(declared.contains(&name), "{name} is not in METRICS");
            }
        }
    }

    #[test]
    fn names_have_their_unit_at_the_end() {
        for Metric { name, kind, help, .. } in METRICS {
            assert_eq!(name.ends_with("_total"), *kind == MetricKind::Counter, "{name}");
            assert!(*kind != MetricKind::Histogram || name.ends_with("_seconds"), "{name}");
            assert!(help.ends_with('.'), "{name}");
        }
    }

    #[test]
    fn dashboard_and_alerts_have_existing_metrics() {
        let mut seen = 0;
        for file in ["grafana.json", "alerts.yaml"] {
            let text = fs::read_to_string(root().join("packaging/monitoring").join(file)).unwrap();
            for name in names(&text) {
                let is_known = METRICS.iter().any(|metric| match metric.kind {
                    MetricKind::Histogram => ["_bucket", "_sum", "_count"]
                        .iter()
                        .any(|end| name == format!("{}{end}", metric.name)),
                    _ => name == metric.name,
                });
                assert!(is_known, "{file}: {name}");
                seen += 1;
            }
        }
        assert!(seen > 30, "{seen}");
    }

    #[test]
    fn the_text_has_help_and_type_of_each_metric() {
        let metrics = Metrics::install().unwrap();
        gauge!("abreast_resources", "set" => "a").set(7.0);
        metrics::histogram!("abreast_hub_delivery_lag_seconds").record(0.3);
        let text = metrics.render();
        for line in [
            "# HELP abreast_resources Resources of a set.",
            "# TYPE abreast_resources gauge",
            "abreast_resources{set=\"a\"} 7",
            "# TYPE abreast_hub_delivery_lag_seconds histogram",
            "abreast_hub_delivery_lag_seconds_bucket{le=\"0.25\"} 0",
            "abreast_hub_delivery_lag_seconds_bucket{le=\"0.5\"} 1",
            "# TYPE process_open_fds gauge",
            "# TYPE process_start_time_seconds gauge",
            "# TYPE process_cpu_seconds_total counter",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
        // The processor time has the resolution of the system's clock, which is 10 ms.
        let processor_time = (0..100_000).find_map(|_| {
            let text = metrics.render();
            let value =
                text.lines().find_map(|line| line.strip_prefix("process_cpu_seconds_total "));
            value?.parse::<f64>().ok().filter(|seconds| seconds.fract() > 0.0)
        });
        assert!(processor_time.is_some(), "parts of seconds are counted");
        assert!(Metrics::install().is_err());
    }
}
