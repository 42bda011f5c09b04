//! The report on a store in a database.

use crate::config::database::DatabaseConfig;
use crate::store::database::{Database, Inspected};
use abreast_core::{Clock as _, SystemClock, start_thread};
use abreast_maintenance::{Attention, DatabaseStatus, LeaseStatus, StoreStatus, hub_status};
use abreast_webtypes::{Timestamp, count};
use anyhow::{Context as _, Result, bail};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

/// Subscriptions that ended within this time are reported, in microseconds.
const ENDED_MICROS: i64 = 7 * 24 * 3_600 * 1_000_000;

/// Describes a database within a time limit.
///
/// # Errors
/// The database does not answer, or refuses the user.
pub(crate) fn inspect(database: &DatabaseConfig, limit: Duration) -> Result<Inspected> {
    let (sender, receiver) = mpsc::channel();
    let database = database.clone();
    let since = Timestamp::from_micros(SystemClock.now().as_micros() - ENDED_MICROS);
    // A database that does not answer would hold this thread for longer.
    start_thread("database", move || drop(sender.send(Database::inspect(&database, since))))
        .context("cannot start a thread")?;
    match receiver.recv_timeout(limit) {
        Ok(found) => found,
        Err(_) => bail!("the database has not answered for {} s", limit.as_secs_f64()),
    }
}

/// The report on the store in a database; `config` is its configuration file.
pub(super) fn report(
    database: &DatabaseConfig,
    config: Option<&Path>,
    limit: Duration,
) -> StoreStatus {
    let place = database.shown();
    let (found, summary) = match inspect(database, limit) {
        Ok(found) => found,
        Err(error) => return unreachable(place, &error),
    };
    let attention = found.checks().into_iter().filter(|check| check.urgent && !check.ok);
    // A Source without notifications has leases only.
    let is_served = found.nodes.iter().any(|node| node.state == "alive")
        || found.leases.iter().any(|lease| lease.state == "held");
    let mut hub = summary.map(|summary| hub_status(&summary, &place));
    if let (Some(hub), Some(config)) = (&mut hub, config) {
        let (data, config) = (format!("--data {place}"), format!("--config {}", config.display()));
        for attention in &mut hub.attention {
            attention.help = attention.help.replace(&data, &config);
        }
    }
    let mut attention: Vec<Attention> =
        attention.map(|check| Attention::new(check.message, check.help)).collect();
    attention.extend(found.leases.iter().filter(|lease| lease.held_deletions > 0).map(held));
    StoreStatus {
        state: if is_served { "serving" } else { "stopped" }.to_owned(),
        attention,
        database: Some(found),
        hub,
        place,
        ..StoreStatus::default()
    }
}

/// The advice about deletions that a watch holds.
fn held(lease: &LeaseStatus) -> Attention {
    let set = lease.name.strip_prefix("watch/").unwrap_or(&lease.name);
    let deletions = count(lease.held_deletions, "resource");
    Attention::new(
        format!("set {set}: the deletion of {deletions} is held by the node {}", lease.node),
        format!(
            "if it is intended, confirm it at any node, at /admin/sets/{set} or with POST /api/v1/sets/{set}/deletions (a token of scope \
             `admin`); if not, put the files back"
        ),
    )
}

/// The report on a database that cannot be read.
fn unreachable(place: String, error: &anyhow::Error) -> StoreStatus {
    let (message, help) = in_words(error);
    StoreStatus {
        place,
        state: "unreachable".to_owned(),
        database: Some(DatabaseStatus::default()),
        attention: vec![Attention::new(message, help)],
        ..StoreStatus::default()
    }
}

/// The messages of an error of a database in one line, and its help.
pub(crate) fn in_words(error: &anyhow::Error) -> (String, String) {
    with_own_help(error, "check the database, and `data` of the configuration")
}

/// The messages of an error in one line, and its help; else the given help.
pub(crate) fn with_own_help(error: &anyhow::Error, otherwise: &str) -> (String, String) {
    let mut help = None;
    let texts = crate::program::logging::messages(error);
    let texts = texts.iter().map(|text| {
        let (text, own) = crate::program::logging::without_help(text);
        help = help.take().or(own.map(str::to_owned));
        text.to_owned()
    });
    let message = texts.collect::<Vec<_>>().join(": ");
    (message, help.unwrap_or_else(|| otherwise.to_owned()))
}
