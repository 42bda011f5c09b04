//! The page of a set: state, changes by hour, dumps, and forms for requests.

use crate::chart::Chart;
use crate::request::{Page, Request, rendered};
use crate::text::{moment, number};
use abreast_core::{ChangeLog, Clock, LogError, SetId, SystemClock};
use abreast_maintenance::SetStatus;
use abreast_webtypes::Timestamp;
use askama::Template;
use askama::filters::Safe;

/// Hours of a chart of changes.
const HOURS: i64 = 24;
const HOUR_MICROS: i64 = 3_600 * 1_000_000;
/// Most problems of files in a page.
const PROBLEMS: usize = 20;

#[derive(Template)]
#[template(path = "set.html")]
struct SetTemplate<'p> {
    root: &'p str,
    set: &'p SetStatus,
    page: String,
    chart: Safe<String>,
    scans: bool,
    dumps: Option<Vec<DumpRow>>,
    problems: Vec<String>,
}

struct DumpRow {
    name: String,
    end: String,
    packages: usize,
    bytes: u64,
}

/// Numbers of changes in each of the last 24 hours, the oldest first.
///
/// # Errors
/// The store cannot be read.
pub(crate) fn changes_of(
    log: &dyn ChangeLog,
    set: SetId,
    clock: &dyn Clock,
) -> Result<Vec<f64>, LogError> {
    let now = clock.now().as_micros();
    let mut ends = Vec::new();
    for hours in (0..=HOURS).rev() {
        ends.push(log.position_at(set, Timestamp::from_micros(now - hours * HOUR_MICROS))?.0);
    }
    Ok(ends.windows(2).map(|pair| pair[1].saturating_sub(pair[0]) as f64).collect())
}

/// The page of the set with this name.
pub(crate) fn page(request: &Request<'_>, slug: &str) -> Result<Option<Page>, LogError> {
    let all = request.site.sets.all();
    let Some(served) = all.iter().find(|set| set.published.slug == slug) else { return Ok(None) };
    let published = &served.published;
    let topics = request.sources.report.hub(request.site).transpose()?.map(|(_, topics)| topics);
    let set = request.sources.report.set(request.site, served, topics.as_deref());
    let log = &**request.site.publisher.log();
    let changes = changes_of(log, published.id, &SystemClock)?;
    let changes: Vec<_> = changes.into_iter().map(Some).collect();
    let dumps = published.dumps().map(|dumps| {
        let all = dumps.resources().into_iter().chain(dumps.changes());
        let mut rows: Vec<DumpRow> = all
            .map(|dump| DumpRow {
                name: dump.name.clone(),
                end: moment(&Some(dump.end.to_string())),
                packages: dump.packages.len(),
                bytes: dump.bytes(),
            })
            .collect();
        rows.sort_by(|a, b| b.end.cmp(&a.end));
        rows
    });
    let template = SetTemplate {
        root: &request.root,
        set: &set,
        page: published.urls.page(),
        chart: Chart::new("Changes an hour", "24 h", &changes, number).html(),
        scans: published.watch.can_scan(),
        dumps,
        problems: published.watch.problem_texts().into_iter().take(PROBLEMS).collect(),
    };
    let content = rendered(&template);
    Ok(Some(Page { title: format!("Set {slug}"), tab: "", content }))
}
