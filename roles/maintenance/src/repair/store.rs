//! Repairs the folder of a Source's store.

use crate::check::store::StoreCheck;
use crate::place::{Context as _, Result};
use crate::repair::options::RepairOptions;
use abreast_contents::{Contents, ErrorKind, View};
use abreast_core::contents::ContentStore as _;
use abreast_core::{Clock as _, SystemClock};
use abreast_source::archive::repair_archives;
use abreast_source::dump::repair_dumps;
use abreast_source::notify::{check_notified, notified_path};
use abreast_source::projection::sdshare::remove_damaged_snapshots;
use abreast_source::publish::ServedSets;
use abreast_store::integrity::Findings;
use abreast_store::repair::{drop_contents, repair_log};
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Contents that are repaired after one check; then they are checked again.
const REPAIRED_AT_ONCE: usize = 100_000;

/// Repairs the database, the dumps and other files, the small records and the contents, in this order.
pub(crate) fn repair_store(
    options: &RepairOptions,
    store: &Path,
    steps: &mut Vec<String>,
    wants: &dyn Fn(&str) -> bool,
    cancel: &AtomicBool,
) -> Result<()> {
    let database = store.join("source.db");
    let repaired = repair_log(&database, options.dry_run, SystemClock.now())?;
    let unreadable = options.dry_run && repaired.lost;
    // The next run reads all RDF files again, and so finds lost entities.
    if !options.dry_run && store.join("temporary").is_dir() {
        std::fs::remove_dir_all(store.join("temporary"))
            .context("cannot remove temporary files")?;
    }
    steps.extend(repaired.steps);
    let dumps = repair_dumps(&store.join("dumps"), wants("dumps"), options.dry_run)
        .context("cannot repair dumps")?;
    steps.extend(
        dumps
            .removed
            .iter()
            .map(|dump| format!("drop the dump {}, which is not whole", dump.display())),
    );
    steps.extend(dumps.aside.iter().map(|dump| {
        format!(
            "set the damaged package of changes {} aside: changes in it may be nowhere else",
            dump.display()
        )
    }));
    steps.extend(
        dumps.restored.iter().map(|manifest| {
            format!("restore the manifest {} from its package", manifest.display())
        }),
    );
    let unsound =
        remove_damaged_snapshots(&store.join("snapshots"), wants("snapshots"), options.dry_run)
            .context("cannot drop snapshots")?;
    steps.extend(
        unsound
            .iter()
            .map(|snapshot| format!("drop the snapshot {}, which is damaged", snapshot.display())),
    );
    repair_records(options, store, steps, wants("archives"))?;
    if unreadable {
        return Ok(());
    }
    // Opening the contents rebuilds a damaged index, and removes incomplete files of a killed server.
    let path = store.join("contents");
    let is_damaged = |error: &abreast_contents::Error| error.kind() == ErrorKind::Damaged;
    if View::open(&path).is_err_and(|error| is_damaged(&error)) {
        steps.push("rebuild the index of packed contents".to_owned());
    }
    let contents =
        if options.dry_run || !path.is_dir() { None } else { Some(Contents::open(&path)?) };
    loop {
        let (mut lost, mut records) = (Vec::new(), Vec::new());
        let mut findings = Findings::default();
        let mut damaged = |rule, id| {
            let list = if rule == "contents.record" { &mut records } else { &mut lost };
            if list.len() < REPAIRED_AT_ONCE {
                list.push(id);
            }
        };
        let (records_of_store, meter) = (&options.records, &options.meter);
        let check = StoreCheck { store, wants, records: records_of_store, cancel, meter };
        check.run(&mut findings, &mut Vec::new(), &mut damaged)?;
        // Contents whose bytes are lost: the versions that name them go.
        if !lost.is_empty() {
            steps.push(format!(
                "drop the kept contents that are missing or damaged, and what names them: {}",
                lost.len()
            ));
        }
        if !records.is_empty() {
            steps.push(format!(
                "rewrite the kept contents whose records are damaged: {}",
                records.len()
            ));
        }
        if options.dry_run {
            return Ok(());
        }
        if !lost.is_empty() {
            drop_contents(&database, &lost)?;
        }
        if let Some(contents) = &contents {
            for id in &lost {
                contents.remove(id)?;
            }
            for id in &records {
                contents.rewrite(id)?;
            }
            contents.sync()?;
        }
        if lost.len().max(records.len()) < REPAIRED_AT_ONCE {
            return Ok(());
        }
    }
}

/// Repairs the small records of a store.
fn repair_records(
    options: &RepairOptions,
    store: &Path,
    steps: &mut Vec<String>,
    read_archives: bool,
) -> Result<()> {
    let archives = repair_archives(&store.join("archives"), read_archives, options.dry_run);
    steps.extend(archives.context("cannot repair the archives")?);
    for record in &options.records {
        let repaired = (record.repair)(store, options.dry_run);
        steps.extend(repaired.with_context(|| format!("cannot repair {}", record.name))?);
    }
    if ServedSets::check(store).is_some() {
        if !options.dry_run {
            std::fs::remove_file(ServedSets::path(store))
                .context("cannot remove the record of served sets")?;
        }
        steps.push(
            "drop the record of the sets that were served: the next start writes it".to_owned(),
        );
    }
    let notified = notified_path(store);
    let damage =
        check_notified(&notified).context("cannot read the record of notified documents")?;
    if damage.is_some() {
        if !options.dry_run {
            std::fs::remove_file(&notified)
                .context("cannot remove the record of notified documents")?;
        }
        steps.push(
            "drop the record of notified documents: at the next start they are notified again, and changes from then on"
                .to_owned(),
        );
    }
    Ok(())
}
