//! The first page: conditions that need attention, charts, sets, copies and the disk.

use crate::chart::Chart;
use crate::request::{Page, Request, rendered};
use crate::samples::Figure;
use crate::set::changes_of;
use crate::text::{duration, number};
use abreast_core::SystemClock;
use abreast_maintenance::{Attention, CopyStatus, SetStatus, StatusReport, StoreStatus};
use abreast_source::projection::pages::Size;
use askama::Template;
use askama::filters::Safe;

/// Most sets whose changes the chart of all changes counts.
const COUNTED_SETS: usize = 100;

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview<'p> {
    root: &'p str,
    program: &'p str,
    /// Conditions, each with the name of the set or the copy.
    attention: Vec<(String, &'p Attention)>,
    charts: Vec<Safe<String>>,
    store: &'p StoreStatus,
    copies: &'p [CopyStatus],
    copies_left_out: u64,
}

impl Overview<'_> {
    /// How far the slowest subscriber of a set is behind.
    fn lag(set: &SetStatus) -> String {
        match (set.subscribers_lag, set.subscribers_lag_seconds) {
            (Some(lag @ 1..), Some(seconds)) => {
                let noun = if lag == 1 { "notification" } else { "notifications" };
                format!("; {lag} {noun}, {} behind", duration(seconds as f64))
            }
            (Some(lag @ 1..), None) => format!("; {lag} behind"),
            _ => String::new(),
        }
    }

    fn behind(copy: &CopyStatus) -> String {
        copy.behind_seconds.map(|seconds| duration(seconds as f64)).unwrap_or_default()
    }

    fn copy_name(copy: &CopyStatus) -> String {
        let names = [copy.job.as_deref(), copy.set.as_deref()];
        let names: Vec<&str> = names.into_iter().flatten().collect();
        if names.is_empty() { copy.place.clone() } else { names.join(", ") }
    }
}

fn charts(request: &Request<'_>) -> Vec<Safe<String>> {
    let history = request.sources.samples.now();
    let of = |title, figure, shown: fn(f64) -> String| {
        Chart::new(title, "24 h", &history.bars(figure), shown)
    };
    let sets = request.site.sets.all().iter().take(COUNTED_SETS);
    let log = &**request.site.publisher.log();
    let changes = sets.filter_map(|set| changes_of(log, set.published.id, &SystemClock).ok());
    let sum = changes.reduce(|sum, of_set| sum.iter().zip(of_set).map(|(a, b)| a + b).collect());
    let changes: Vec<_> = sum.unwrap_or_default().into_iter().map(Some).collect();
    let size = |bytes: f64| Size(bytes as u64).to_string();
    let mut charts = vec![
        Chart::new("Changes an hour", "24 h", &changes, number),
        of("Requests in 15 minutes", Figure::Requests, number),
        of("Failures in 15 minutes", Figure::Failures, number),
        of("Time from a change to its publication", Figure::PublishLag, duration),
    ];
    if request.site.hub.is_some() {
        charts.push(of("Deliveries in 15 minutes", Figure::Delivered, number));
        charts.push(of("Time from a notification to its delivery", Figure::DeliveryLag, duration));
    }
    charts.push(of("Free space of the disk", Figure::FreeDisk, size));
    charts.iter().map(Chart::html).collect()
}

/// The page at `/admin/`.
pub(crate) fn page(request: &Request<'_>) -> Page {
    let mut report = StatusReport::new(env!("CARGO_PKG_VERSION"), String::new());
    report.stores.push(request.sources.report.store(request.site));
    report.copies = (request.sources.copies)();
    report.finish();
    let Some(store) = report.stores.first() else { unreachable!("the report has this store") };
    let mut attention: Vec<(String, &Attention)> = Vec::new();
    attention.extend(store.attention.iter().map(|one| (String::new(), one)));
    for set in &store.sets {
        attention.extend(set.attention.iter().map(|one| (format!("Set {}", set.name), one)));
    }
    let of_hub = store.hub.iter().flat_map(|hub| &hub.attention);
    attention.extend(of_hub.map(|one| ("Deliveries".to_owned(), one)));
    for copy in &report.copies {
        let name = format!("Copy {}", Overview::copy_name(copy));
        attention.extend(copy.attention.iter().map(|one| (name.clone(), one)));
    }
    let template = Overview {
        root: &request.root,
        program: &report.program,
        attention,
        charts: charts(request),
        store,
        copies: &report.copies,
        copies_left_out: report.copies_left_out,
    };
    Page { title: "Administration".to_owned(), tab: "overview", content: rendered(&template) }
}
