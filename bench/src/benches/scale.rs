//! Several nodes on PostgreSQL: the change log, documents, growth, idle subscriptions, and deliveries.

mod deliveries;
mod documents;
mod growth;
mod idle;
mod log;
mod rows;

use crate::peers::postgres_programs;
use crate::report::Report;
use crate::settings::Settings;
use abreast_testkit::postgres::Postgres;
use anyhow::Result;

type Part = fn(&Settings, &Postgres, &mut Report) -> Result<()>;

/// The measurements, in this order.
const PARTS: [(&str, Part); 5] = [
    ("log", log::run),
    ("documents", documents::run),
    ("growth", growth::run),
    ("idle", idle::run),
    ("deliveries", deliveries::run),
];

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let programs = postgres_programs()?;
    // Commits are durable, as in production; the buffers are those of a small server.
    let server =
        Postgres::start_with(&programs, &["fsync=on", "shared_buffers=512MB", "max_wal_size=4GB"]);
    for (_, part) in PARTS.iter().filter(|(name, _)| settings.wants(name)) {
        part(settings, &server, report)?;
    }
    Ok(())
}

/// The names of the parts, for `--only`.
pub(crate) fn part_names() -> Vec<&'static str> {
    PARTS.iter().map(|(name, _)| *name).collect()
}
