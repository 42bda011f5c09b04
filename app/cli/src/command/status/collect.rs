//! The report on places: from the programs that use them, else from their databases.

use crate::admin::ask::{Access, ask_url, base_of, in_words, new_report, possible_sockets};
use crate::admin::socket;
use crate::command::places::Place;
use crate::command::status::database;
use crate::program::errors::{ExitCodeError, UsageError};
use crate::program::exit::{AUTH, NETWORK};
use abreast_maintenance::{
    Attention, CopyStatus, SetStatus, StateFolders, StatusReport, StoreStatus, status,
};
use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;

/// Collects the report on the places.
///
/// # Errors
/// A place has neither a store nor a copy, or a server does not answer.
pub(super) fn report(
    places: &[Place],
    access: Access<'_>,
    timeout: Duration,
) -> Result<StatusReport> {
    let mut report = new_report();
    for place in places {
        if let Some(url) = place.own_url() {
            of_url(url, access, timeout, &mut report)?;
            continue;
        }
        if let Some(database) = place.database() {
            report.stores.push(database::report(database, place.config.as_deref(), timeout));
            continue;
        }
        let before = report.copies.len();
        of_folder(place, timeout, &mut report)?;
        for copy in &mut report.copies[before..] {
            if let Some(job) = copy.job.take().or_else(|| place.job.clone()) {
                copy.name_job(&job, place.config.as_deref());
            }
        }
    }
    report.finish();
    Ok(report)
}

fn of_folder(place: &Place, timeout: Duration, report: &mut StatusReport) -> Result<()> {
    let dir = place.folder();
    let mut folders = StateFolders::find(dir)?;
    let (mut has_store, mut has_copies) = (false, false);
    for (state, name) in possible_sockets(dir) {
        let is_done = if name == socket::SERVER { has_store } else { has_copies };
        if is_done {
            continue;
        }
        match socket::ask((&state, name), "/status", timeout) {
            Ok(None) => {}
            Ok(Some((200, text))) => {
                let found: StatusReport = serde_json::from_str(&text)
                    .context("the process answers with a report of another version")?;
                let copies: Vec<CopyStatus> =
                    found.copies.into_iter().filter(|copy| is_in(copy, dir)).collect();
                has_store |= !found.stores.is_empty();
                has_copies |= !copies.is_empty();
                report.stores.extend(found.stores);
                report.copies.extend(copies);
                report.attention.extend(found.attention);
            }
            Ok(Some((status, _))) => note(report, &state, &format!("answers {status}")),
            Err(error) => note(report, &state, &in_words(&error, timeout)),
        }
    }
    if has_store {
        (folders.store, folders.hub) = (None, None);
    }
    if has_copies {
        folders.copy = None;
    }
    if !has_store && !has_copies && is_none(&folders) {
        let sets = crate::store::all_sets::folders(dir)?;
        if sets.is_empty() {
            if place.job.is_some() {
                report.copies.push(missing(place));
                return Ok(());
            }
            bail!(UsageError(format!(
                "there is neither a store nor a copy in `{}`\n  help: name the folder of a store (it has a file source.db or hub.db) or \
                 of a copy, or a URL, or use --config",
                dir.display()
            )));
        }
        for (name, folder) in sets {
            let before = report.copies.len();
            status(&StateFolders::find(&folder)?, report)?;
            for copy in &mut report.copies[before..] {
                copy.set = Some(name.clone());
            }
        }
        return Ok(());
    }
    status(&folders, report)?;
    Ok(())
}

/// Whether a store, a hub or a copy is found.
fn is_none(folders: &StateFolders) -> bool {
    folders.store.is_none() && folders.hub.is_none() && folders.copy.is_none()
}

/// Whether the copy is the folder itself or in it, or has its database there.
fn is_in(copy: &CopyStatus, dir: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (copy, dir) = (real(Path::new(&copy.place)), real(dir));
    copy.starts_with(&dir)
        || dir.starts_with(copy.join(abreast_destination::STATE_FOLDER))
        || StateFolders::find(&dir).is_ok_and(|found| {
            found.copy.and_then(|place| place.folder).is_some_and(|folder| real(&folder) == copy)
        })
}

/// Notes that the process that uses a folder does not report its status.
fn note(report: &mut StatusReport, state: &Path, why: &str) {
    let message =
        format!("the process that uses `{}` does not report its state: {why}", state.display());
    let help = "if it hangs, restart it; what follows is read from its databases";
    report.attention.push(Attention::new(message, help));
}

/// The report on a job before its first copy.
fn missing(place: &Place) -> CopyStatus {
    let message = "the job has no copy yet: no run has stored anything";
    let help = format!("abreast sync --config FILE {}", place.name);
    CopyStatus {
        place: place.folder().display().to_string(),
        state: "stopped".to_owned(),
        attention: vec![Attention::new(message, help)],
        ..CopyStatus::default()
    }
}

/// Asks a server by its URL: on `/status` of an address for operators, else on `/readyz` and its API.
fn of_url(
    url: &str,
    access: Access<'_>,
    timeout: Duration,
    report: &mut StatusReport,
) -> Result<()> {
    let base = base_of(url);
    let ask = |path: &str| ask_url(base, path, access, timeout);
    let (status, text) = ask("/status")?;
    if status == 200
        && let Ok(found) = serde_json::from_str::<StatusReport>(&text)
    {
        report.stores.extend(found.stores);
        report.copies.extend(found.copies);
        report.attention.extend(found.attention);
        return Ok(());
    }
    if status == 401 {
        let message = format!("{base} needs a token\n  help: --token-file FILE");
        bail!(ExitCodeError { message, code: AUTH });
    }
    let (ready, text) = ask("/readyz")?;
    if !matches!(ready, 200 | 503) {
        let message = format!(
            "{base}/readyz answers {ready}\n  help: name the URL of a server made by `abreast serve` or `abreast hub`, or an address of \
             --admin-listen"
        );
        bail!(ExitCodeError { message, code: NETWORK });
    }
    let mut store = StoreStatus {
        place: base.to_owned(),
        state: "serving".to_owned(),
        url: Some(format!("{base}/")),
        ..StoreStatus::default()
    };
    if let Ok((200, sets)) = ask("/api/v1/sets") {
        store.sets = sets_of(&sets, base);
    }
    if ready == 503 {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        store
            .attention
            .push(Attention::new(format!("not ready: {text}"), "see the log of the server"));
    } else {
        let lines = text.lines().skip(1).filter(|line| !is_of_sets(line, &store.sets));
        let lines: Vec<Attention> =
            lines.map(|line| Attention::new(line, "see the log of the server")).collect();
        store.attention.extend(lines);
    }
    report.stores.push(store);
    Ok(())
}

/// Whether a line of `/readyz` is about a set that has its own condition.
fn is_of_sets(line: &str, sets: &[SetStatus]) -> bool {
    let with_condition = sets.iter().filter(|set| !set.attention.is_empty());
    let mut names = with_condition.map(|set| format!("set `{}` ", set.name));
    names.any(|name| line.starts_with(&name)) || line.contains("is being read for the first time")
}

fn sets_of(text: &str, base: &str) -> Vec<SetStatus> {
    #[derive(Deserialize)]
    struct Sets {
        sets: Vec<Set>,
    }
    #[derive(Deserialize)]
    struct Set {
        name: String,
        state: String,
        head: u64,
        datetime: String,
        count: u64,
        held_deletions: u64,
    }
    let Ok(Sets { sets }) = serde_json::from_str(text) else { return Vec::new() };
    let of = |set: Set| {
        let mut status = SetStatus {
            resources: set.count,
            position: set.head,
            last_change: (set.head > 0).then_some(set.datetime),
            held_deletions: set.held_deletions,
            ..SetStatus::default()
        };
        let name = &set.name;
        match set.state.as_str() {
            "held" => status.attention.push(Attention::new(
                format!("{} deletions are held back", set.held_deletions),
                format!(
                    "if they are intended: curl -X POST -H 'Authorization: Bearer TOKEN' {base}/api/v1/sets/{name}/deletions"
                ),
            )),
            "missing" | "failed" | "incomplete" => status
                .attention
                .push(Attention::new(format!("the set is {}", set.state), format!("see {base}/readyz"))),
            _ => {}
        }
        (status.name, status.state) = (set.name, set.state);
        status
    };
    sets.into_iter().map(of).collect()
}
