//! The cells of the table: which run, and which cannot occur.

use super::Column;
use super::activities::{self, Activities};
use super::pushed::Push;
use super::reasons::REASONS;
use super::rendering::{Form, Rendered};
use super::resourcesync::{self, ResourceSync};
use super::resourcesync_0_1::OldResourceSync;
use super::sdshare::SdShare;
use super::world::{Checked, World};
use abreast_testkit::xmpp::SERVICE;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock, Mutex};

pub(crate) const LISTS: &str = "1.1 lists";
pub(crate) const CHAIN: &str = "1.1 chain";
pub(crate) const DUMPS: &str = "1.1 dumps";
pub(crate) const OLD: &str = "0.1";
pub(crate) const SDSHARE: &str = "SDShare";
pub(crate) const EMM_0_1: &str = "EMM 0.1";
pub(crate) const EMM_1_0: &str = "EMM 1.0";
pub(crate) const EMM_ON: &str = "EMM, oldest first";
pub(crate) const IIIF: &str = "IIIF";
pub(crate) const HUB: &str = "hub";
pub(crate) const EVENTS: &str = "events";
pub(crate) const NODE: &str = "XMPP";
pub(crate) const CALLBACK: &str = "callback";

pub(crate) static COLUMNS: LazyLock<Vec<Column>> = LazyLock::new(|| {
    let column = |name, rendered: Box<dyn Rendered>, push| Column { name, rendered, push };
    let lists = |shape, topic| Box::new(ResourceSync { shape, topic });
    let old = |links: &str| Box::new(OldResourceSync { links: links.to_owned() });
    let feed = |context, date, shape, form, has_download| {
        Box::new(Activities { context, date, shape, form, has_download })
    };
    let node = format!(
        "<xhtml:link href=\"xmpp:{SERVICE}\" rs:protocol=\"http://xmpp.org/extensions/xep-0060.html\" \
         rs:pubsubnode=\"papers\"/>\n"
    );
    let callback =
        "<xhtml:link href=\"/subscribe\" rs:protocol=\"urn:abreast:resourcesync-0.1:callback\"/>\n";
    let emm = "https://emm-spec.org/1.0/context.json";
    let emm_0_1 = "https://ld4.github.io/entity_metadata_management/0.1/context.json";
    let iiif = "http://iiif.io/api/discovery/1/context.json";
    let (statements, files) = (Form::Statements, Form::Files);
    vec![
        column(LISTS, lists(resourcesync::Shape::Index, ""), None),
        column(CHAIN, lists(resourcesync::Shape::Chain, ""), None),
        column(DUMPS, lists(resourcesync::Shape::Dumps, ""), None),
        column(OLD, old(""), None),
        column(SDSHARE, Box::new(SdShare), None),
        column(
            EMM_0_1,
            feed(emm_0_1, "published", activities::Shape::NewestFirst, statements, true),
            None,
        ),
        column(
            EMM_1_0,
            feed(emm, "published", activities::Shape::BothWays, statements, true),
            None,
        ),
        column(
            EMM_ON,
            feed(emm, "endTime", activities::Shape::OldestFirst, statements, false),
            None,
        ),
        column(IIIF, feed(iiif, "endTime", activities::Shape::BothWays, files, false), None),
        column(
            HUB,
            lists(resourcesync::Shape::Index, "<rs:ln rel=\"hub\" href=\"BASE/hub\"/>"),
            Some(Push::Hub),
        ),
        column(EVENTS, lists(resourcesync::Shape::Index, " "), Some(Push::Events)),
        column(NODE, old(&node), Some(Push::Node)),
        column(CALLBACK, old(callback), Some(Push::Callback)),
    ]
});

/// An adversity.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&mut World) -> Checked,
}

pub(crate) const fn row(name: &'static str, run: fn(&mut World) -> Checked) -> Row {
    Row { name, run }
}

fn reason(row: &str, column: &str) -> Option<&'static str> {
    let found = REASONS.iter().find(|it| row.starts_with(it.0) && it.1.contains(&column));
    found.map(|it| it.2)
}

/// All adversities.
fn all_rows() -> impl Iterator<Item = &'static Row> {
    use super::{circles, faults, holes, others, snapshots, states, times};
    let groups = [
        circles::CIRCLES,
        circles::ENDLESS,
        faults::ENTITIES,
        faults::DOCUMENTS,
        faults::PASSING,
        faults::ABORTED,
        holes::ROWS,
        others::OTHERS,
        others::PUSHED,
        snapshots::ROWS,
        states::ROWS,
        times::FUTURES,
        times::COARSE,
        times::EQUAL,
        times::ORDER,
    ];
    groups.into_iter().flatten()
}

#[test]
fn every_cell_is_run_or_has_a_reason() {
    let rows: Vec<&str> = all_rows().map(|row| row.name).collect();
    let is_column = |name: &str| COLUMNS.iter().any(|column| column.name == name);
    for (number, row) in rows.iter().enumerate() {
        assert!(!rows[..number].contains(row), "two rows are `{row}`");
        let runs = COLUMNS.iter().any(|column| reason(row, column.name).is_none());
        assert!(runs, "nothing runs `{row}`");
    }
    for (begin, columns, why) in REASONS {
        let is_used = *begin == AUDITED || rows.iter().any(|row| row.starts_with(begin));
        assert!(
            is_used && columns.iter().all(|name| is_column(name)) && !why.is_empty(),
            "{begin}"
        );
    }
    let cells = rows.len() * COLUMNS.len();
    let run = |row: &&str| COLUMNS.iter().filter(|it| reason(row, it.name).is_none()).count();
    let runs: usize = rows.iter().map(run).sum();
    eprintln!("{cells} cells, {runs} run");
}

/// The suffix of a row's name for the audits of its runs.
pub(super) const AUDITED: &str = ", audited";

/// Runs the cells of some rows.
pub(crate) fn check(rows: &[Row]) {
    let only = std::env::var("ABREAST_TEST_CELL").unwrap_or_default();
    let cells = rows
        .iter()
        .flat_map(|row| COLUMNS.iter().map(move |column| (row, column)))
        .filter(|(row, column)| reason(row.name, column.name).is_none())
        .filter(|(row, column)| format!("{} / {}", row.name, column.name).contains(&only));
    let (pushed, read): (Vec<_>, Vec<_>) = cells.partition(|(_, column)| column.push.is_some());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        // Copies that follow wait most of the time.
        for (threads, cells) in [(40, pushed), (3, read)] {
            let cells = Arc::new(Mutex::new(cells.into_iter()));
            for _ in 0..threads {
                let (cells, wrong) = (Arc::clone(&cells), &wrong);
                scope.spawn(move || {
                    loop {
                        let Some((row, column)) = cells.lock().unwrap().next() else { break };
                        let found = run(row, column);
                        wrong.lock().unwrap().extend(found);
                    }
                });
            }
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// Runs a cell; returns its errors.
fn run(row: &Row, column: &'static Column) -> Vec<String> {
    let mut world = World::new(column);
    let ran = catch_unwind(AssertUnwindSafe(|| (row.run)(&mut world)));
    let ran = ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|it| (*it).to_owned()));
        Err(text.unwrap_or_default())
    });
    let audited = std::mem::replace(&mut world.audited, Ok(()));
    drop(world);
    let mut wrong = Vec::new();
    // The audits of a row that ended early show nothing if all were right.
    if reason(AUDITED, column.name).is_none() && (ran.is_ok() || audited.is_err()) {
        let wrong_audit = |what| format!("{}{AUDITED} / {}: {what}", row.name, column.name);
        wrong.extend(audited.err().map(wrong_audit));
    }
    wrong.extend(ran.err().map(|what| format!("{} / {}: {what}", row.name, column.name)));
    wrong
}
