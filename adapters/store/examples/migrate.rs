//! Duration of a migration from a folder to PostgreSQL and back: `cargo run --release -p abreast-store
//! --features postgres --example migrate -- postgres://USER@HOST/EMPTY_DATABASE [RESOURCES]`.

#[cfg(not(feature = "postgres"))]
fn main() {}

#[cfg(feature = "postgres")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    use abreast_core::{Change, ChangeLog as _, NewSet, State, SystemClock, append};
    use abreast_store::migrate::{MigratedStore, Migration, MigrationOptions};
    use abreast_store::{PostgresOptions, SqliteLog};
    use abreast_webtypes::Digests;
    use std::io::Write as _;
    use std::sync::Arc;
    use std::time::Instant;

    const BATCH: u64 = 5_000;
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().ok_or("the URL of an empty database is missing")?;
    let resources: u64 = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let (one, other) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let mut out = std::io::stdout().lock();

    let log = SqliteLog::open(&one.path().join("source.db"), Arc::new(SystemClock))?;
    let set = log.open_set(&NewSet { slug: "set".into(), ..NewSet::default() })?.id;
    log.complete_import(set)?;
    for first in (0..resources).step_by(BATCH as usize) {
        let change = |number: u64| {
            let digests = Digests { md5: Some([number as u8; 16]), ..Digests::default() };
            let state = State { length: Some(number), digests, ..State::default() };
            let key = format!("collection/{:04}/item-{number:09}.xml", number / 10_000);
            Change::put(key, state).with_witness(vec![7; 40])
        };
        append(&log, set, (first..resources.min(first + BATCH)).map(change).collect())?;
    }
    drop(log);

    let folder = MigratedStore::Folder(one.path().to_owned());
    let database = MigratedStore::Database(PostgresOptions::default().connect(&url)?);
    let back = MigratedStore::Folder(other.path().to_owned());
    for (name, from, to) in
        [("to PostgreSQL", &folder, &database), ("to a folder", &database, &back)]
    {
        let options = MigrationOptions::default();
        let mut migration = Migration::start(from.clone(), to.clone(), options)?;
        let begun = Instant::now();
        migration.copy_rows()?;
        let copied = begun.elapsed();
        let begun = Instant::now();
        let verified = migration.verify()?;
        let compared = begun.elapsed();
        migration.finish()?;
        let rows: u64 = verified.tables.iter().map(|table| table.rows).sum();
        writeln!(
            out,
            "{name}: {rows} rows copied in {copied:.1?} ({:.0} rows/s), compared in {compared:.1?}",
            rows as f64 / copied.as_secs_f64()
        )?;
    }
    Ok(())
}
