//! The first page: conditions that need attention, charts, sets, copies and the disk.

use crate::chart::Chart;
use crate::request::{Page, Request, rendered};
use crate::samples::Figure;
use crate::set::changes_of;
use crate::text::{duration, number};
use abreast_core::{LogError, SystemClock};
use abreast_maintenance::{Attention, CopyStatus, SetStatus, StatusReport, StoreStatus};
use abreast_source::projection::pages::Size;
use askama::Template;
use askama::filters::Safe;

/// Most sets whose changes the chart of all changes counts.
const COUNTED_SETS: usize = 100;
/// Sets of a page.
const SETS: usize = 100;

#[derive(Template)]
#[template(path = "sets.html")]
struct SetsTemplate<'p> {
    root: &'p str,
    sets: Vec<&'p SetStatus>,
    /// The address of the next page.
    next: Option<String>,
}

/// A condition that needs attention.
struct Condition {
    /// Name of the set or the copy; empty for the server.
    of: String,
    /// Path of the page with the action, below `/admin/`.
    page: Option<String>,
    message: String,
    help: String,
}

#[derive(Template)]
#[template(path = "overview.html")]
struct Overview<'p> {
    root: &'p str,
    program: &'p str,
    attention: Vec<Condition>,
    charts: Vec<Safe<String>>,
    store: &'p StoreStatus,
    /// The first sets; sets that need attention are before others.
    sets: Vec<&'p SetStatus>,
    copies: &'p [CopyStatus],
    copies_left_out: u64,
}

impl Overview<'_> {
    fn behind(copy: &CopyStatus) -> String {
        copy.behind_seconds.map(|seconds| duration(seconds as f64)).unwrap_or_default()
    }

    fn copy_name(copy: &CopyStatus) -> String {
        let names = [copy.job.as_deref(), copy.set.as_deref()];
        let names: Vec<&str> = names.into_iter().flatten().collect();
        if names.is_empty() { copy.place.clone() } else { names.join(", ") }
    }
}

fn charts(request: &Request<'_>) -> Result<Vec<Safe<String>>, LogError> {
    let history = request.sources.samples.now();
    let of = |title, figure, shown: fn(f64) -> String| {
        Chart::new(title, "24 h", &history.bars(figure), shown)
    };
    let sets = request.site.sets.all().iter().take(COUNTED_SETS);
    let log = &**request.site.publisher.log();
    let mut sum: Vec<f64> = Vec::new();
    for set in sets {
        let changes = changes_of(log, set.published.id, &SystemClock)?;
        sum.resize(changes.len(), 0.0);
        sum.iter_mut().zip(changes).for_each(|(sum, changes)| *sum += changes);
    }
    let changes: Vec<_> = sum.into_iter().map(Some).collect();
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
    Ok(charts.iter().map(Chart::html).collect())
}

/// A page of all sets, in their configured order.
pub(crate) fn sets(request: &Request<'_>) -> Result<Page, LogError> {
    let first = usize::try_from(request.number("first")).unwrap_or(0);
    let report = &request.sources.report;
    let topics = report.hub(request.site).transpose()?.map(|(_, topics)| topics);
    let all = request.site.sets.all();
    let page = all.iter().skip(first).take(SETS);
    let rows: Vec<SetStatus> =
        page.map(|set| report.set(request.site, set, topics.as_deref())).collect();
    let next = first.saturating_add(SETS);
    let template = SetsTemplate {
        root: &request.root,
        sets: rows.iter().collect(),
        next: (next < all.len()).then(|| format!("{}sets/?first={next}", request.root)),
    };
    Ok(Page { title: "All sets".to_owned(), tab: "overview", content: rendered(&template) })
}

/// The page at `/admin/`.
pub(crate) fn page(request: &Request<'_>) -> Result<Page, LogError> {
    let store = &request.sources.report.store(request.site);
    let mut report = StatusReport::new(env!("CARGO_PKG_VERSION"), String::new());
    report.copies = (request.sources.copies)();
    report.finish();
    let mut sets: Vec<&SetStatus> = store.sets.iter().collect();
    sets.sort_by_key(|set| set.attention.is_empty());
    sets.truncate(SETS);
    let mut attention: Vec<Condition> = Vec::new();
    let mut add = |of: &str, page: Option<String>, found: &[Attention]| {
        attention.extend(found.iter().map(|one| Condition {
            of: of.to_owned(),
            page: page.clone(),
            message: one.message.clone(),
            help: one.help.clone(),
        }));
    };
    add("", None, &store.attention);
    for set in &store.sets {
        add(&format!("Set {}", set.name), Some(format!("sets/{}", set.name)), &set.attention);
    }
    if let Some(hub) = &store.hub {
        add("Deliveries", Some("deliveries".to_owned()), &hub.attention);
    }
    for copy in &report.copies {
        add(&format!("Copy {}", Overview::copy_name(copy)), None, &copy.attention);
    }
    let template = Overview {
        root: &request.root,
        program: &report.program,
        attention,
        charts: charts(request)?,
        store,
        sets,
        copies: &report.copies,
        copies_left_out: report.copies_left_out,
    };
    Ok(Page { title: "Administration".to_owned(), tab: "overview", content: rendered(&template) })
}
