//! A migration of a whole store: its rows, its records and its stored contents.

use crate::config::database::DatabaseConfig;
use crate::config::store_place::StorePlace;
use crate::program::errors::UsageError;
use crate::store::data_folder::{MIGRATION, refuse_published};
use crate::store::database::{BUCKET, Database};
use crate::store::migrated_contents::{ContentSource, CopiedContents, copy_contents, read_back};
use crate::store::migration_options::Options;
use crate::store::stores::{Stores, Task, check_bucket, token_place};
use abreast_contents::Contents;
use abreast_core::contents::ContentStore;
use abreast_core::{ErrorKind, Lease};
use abreast_folder::{Folder, Locked};
use abreast_maintenance::{BackedUpSet, StateFolders};
use abreast_source::notify::{NotifiedPlace, copy_notified, notified_path};
use abreast_store::migrate::{
    MigratedStore, Migration, MigrationOptions, complete_folder, identity_of, migrated_from,
};
use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// File with the identity of the source: in the folder of an unfinished store whose data are all
/// verified, and later in the folder of the store.
const MIGRATED: &str = "migrated";
/// File with the lock of a store, in its folder.
const LOCK: &str = "source.lock";

/// The migrated data.
#[derive(Debug, Default, Serialize)]
#[serde(tag = "type", rename = "summary")]
pub(crate) struct Report {
    pub(crate) from: String,
    pub(crate) to: String,
    /// Whether an earlier run was interrupted.
    pub(crate) continued: bool,
    /// Whether an earlier run had ended.
    pub(crate) complete_before: bool,
    pub(crate) sets: Vec<BackedUpSet>,
    /// Rows of all tables.
    pub(crate) rows: u64,
    pub(crate) tables: BTreeMap<&'static str, u64>,
    pub(crate) contents_copied: u64,
    pub(crate) bytes_copied: u64,
    pub(crate) contents_present: u64,
    pub(crate) contents_verified: u64,
}

/// A store that is open for the migration.
struct Opened {
    store: MigratedStore,
    /// The folder of a store; in a destination, the folder of the unfinished store.
    folder: PathBuf,
    database: Option<(Database, Option<String>)>,
    /// The lock of the folder.
    _lock: Option<Box<dyn Send>>,
}

impl Opened {
    fn notified(&self) -> NotifiedPlace {
        match &self.database {
            Some((database, _)) => NotifiedPlace::Shared(database.records(), Lease::always()),
            None => NotifiedPlace::File(notified_path(&self.folder)),
        }
    }

    /// The identity of the store that an earlier run moved here.
    fn migrated_from(&self) -> Result<Option<String>> {
        let folder = match &self.store {
            MigratedStore::Database(database) => return Ok(migrated_from(database)?),
            _ => self.folder.parent().unwrap_or(&self.folder),
        };
        identity_in(folder)
    }

    fn database(config: &DatabaseConfig, is_source: bool) -> Result<Self> {
        let connected = if is_source {
            Database::connect(config)?
        } else {
            Database::connect_to_migrate(config)?
        };
        let mut bucket = config.contents.clone();
        if is_source && bucket.is_none() {
            let record = connected.records().record(BUCKET)?;
            bucket = record.map(|record| String::from_utf8_lossy(&record.bytes).into_owned());
        }
        Ok(Self {
            store: connected.migrated(),
            folder: PathBuf::new(),
            database: Some((connected, bucket)),
            _lock: None,
        })
    }
}

/// Opens the present store.
fn open_source(place: &StorePlace) -> Result<Opened> {
    let folder = match place {
        StorePlace::Database(config) => return Opened::database(config, true),
        StorePlace::Folder(folder) => folder,
    };
    let found = StateFolders::find(folder)?;
    let of_hub = || Some(found.hub.as_ref()?.parent()?.to_owned());
    let Some(folder) = found.store.clone().or_else(of_hub) else {
        bail!(UsageError(format!(
            "there is no store in `{}` (help: give the folder with source.db, or the configuration file)",
            folder.display()
        )));
    };
    let stores = Stores::open(&folder, Task::Move)?;
    let store = MigratedStore::Folder(folder.clone());
    Ok(Opened { store, folder, database: None, _lock: Some(Box::new(stores)) })
}

/// The identity in the file of a folder, if there is one.
fn identity_in(folder: &Path) -> Result<Option<String>> {
    let file = folder.join(MIGRATED);
    match fs::read_to_string(&file) {
        Ok(identity) => Ok(Some(identity)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read `{}`", file.display())),
    }
}

/// Opens the new store. In a folder, its data are in a folder of their own until they are complete.
fn open_destination(place: &StorePlace) -> Result<Opened> {
    let folder = match place {
        StorePlace::Database(config) => return Opened::database(config, false),
        StorePlace::Folder(folder) => folder,
    };
    let shown = folder.display();
    refuse_published(folder)?;
    crate::program::there::make_folder(folder)
        .with_context(|| format!("cannot make the store's folder `{shown}`"))?;
    let opened = Folder::open(folder).with_context(|| format!("cannot open `{shown}`"))?;
    let lock: Option<Locked> =
        opened.root().lock(LOCK.as_bytes()).with_context(|| format!("cannot lock `{shown}`"))?;
    let Some(lock) = lock else {
        bail!(crate::program::errors::ExitCodeError {
            message: format!("another abreast uses the store `{shown}` (help: stop it first)"),
            code: crate::program::exit::IN_USE,
        });
    };
    let unfinished = folder.join(MIGRATION);
    let is_complete = identity_in(folder)?.is_some();
    if !is_complete && !unfinished.exists() {
        for entry in fs::read_dir(folder)? {
            if entry?.file_name() != LOCK {
                bail!(UsageError(format!(
                    "the folder `{shown}` is not empty (help: give a folder that does not exist; if a migration to it has ended, start the server with it)"
                )));
            }
        }
    }
    if !is_complete {
        crate::program::there::make_folder(&unfinished)
            .with_context(|| format!("cannot make the folder `{}`", unfinished.display()))?;
    }
    let store = MigratedStore::Folder(unfinished.clone());
    Ok(Opened { store, folder: unfinished, database: None, _lock: Some(Box::new(lock)) })
}

/// Gives the data of a complete store their final names.
fn publish(unfinished: &Path) -> Result<()> {
    let task = || format!("cannot complete the store in `{}`", unfinished.display());
    let folder = unfinished.parent().unwrap_or(unfinished);
    for entry in fs::read_dir(unfinished).with_context(task)? {
        let name = entry.with_context(task)?.file_name();
        if name != MIGRATED {
            fs::rename(unfinished.join(&name), folder.join(&name)).with_context(task)?;
        }
    }
    sync_folder(folder).with_context(task)?;
    fs::rename(unfinished.join(MIGRATED), folder.join(MIGRATED)).with_context(task)?;
    remove_unfinished(unfinished).with_context(task)
}

/// Removes the empty folder of a store that is complete.
fn remove_unfinished(unfinished: &Path) -> std::io::Result<()> {
    match fs::remove_dir(unfinished) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    sync_folder(unfinished.parent().unwrap_or(unfinished))
}

fn sync_folder(folder: &Path) -> std::io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

/// Copies the tokens and the record of notified documents.
fn copy_records(from: &Opened, to: &Opened) -> Result<()> {
    let place = |opened: &Opened| {
        token_place(&opened.folder, opened.database.as_ref().map(|(database, _)| database))
    };
    let tokens = place(from).read().context("cannot read the tokens")?;
    if !tokens.is_empty() {
        place(to)
            .change(|known| -> Result<(), std::io::Error> {
                known.clone_from(&tokens);
                Ok(())
            })
            .context("cannot write the tokens")?;
    }
    copy_notified(&from.notified(), &to.notified())
        .context("cannot copy the record of notified documents")
}

/// Opens the contents of the new store, if the present one has contents.
fn contents_of(to: &Opened, temporary: &Path) -> Result<Arc<dyn ContentStore>> {
    let Some((database, bucket)) = &to.database else {
        let contents = Contents::open(&to.folder.join("contents"));
        return Ok(Arc::new(contents.context("cannot open the contents of the new store")?));
    };
    let Some(url) = bucket else {
        bail!(UsageError(
            "the store has contents, which need a bucket (help: give `contents` in the configuration file, or --contents s3://BUCKET/PREFIX)"
                .to_owned()
        ));
    };
    let contents = crate::store::bucket::contents(url, temporary)?;
    check_bucket(&*database.records(), url, &*contents)?;
    Ok(contents)
}

/// Opens the contents of the present store.
fn source_of(from: &Opened, temporary: &Path) -> Result<ContentSource> {
    let Some((_, bucket)) = &from.database else {
        return ContentSource::folder(&from.folder.join("contents"));
    };
    let url = bucket.as_ref().context(
        "the address of the bucket is not known (help: give --contents s3://BUCKET/PREFIX)",
    )?;
    Ok(ContentSource::Shared(crate::store::bucket::contents(url, temporary)?))
}

/// Moves a store. The present store is not changed.
///
/// # Errors
/// A store cannot be used, the run was cancelled, or the stores differ.
pub(crate) fn migrate(options: &Options<'_>) -> Result<Report> {
    let (from_place, to_place) = (
        StorePlace::of(options.from.as_ref(), options.contents)?,
        StorePlace::of(options.to.as_ref(), options.contents)?,
    );
    let (from, to) = (open_source(&from_place)?, open_destination(&to_place)?);
    let temporary = tempfile::tempdir().context("cannot make a folder for temporary files")?;
    let mut report = Report { from: from_place.shown(), to: to_place.shown(), ..Report::default() };
    let identity = identity_of(&from.store)?;
    let is_of_source = |known: &str| -> Result<()> {
        if known != identity {
            bail!(UsageError(format!(
                "`{}` is a copy of another store, or `{}` has changed since (help: give an empty database, or a folder that does not exist)",
                report.to, report.from
            )));
        }
        Ok(())
    };
    if let Some(known) = to.migrated_from()? {
        is_of_source(&known)?;
        if to.database.is_none() {
            remove_unfinished(&to.folder)?;
        }
        report.complete_before = true;
        return Ok(report);
    }
    if to.database.is_none()
        && let Some(known) = identity_in(&to.folder)?
    {
        is_of_source(&known)?;
        report.continued = true;
        complete_folder(&to.folder)?;
        publish(&to.folder)?;
        return Ok(report);
    }
    let rows = MigrationOptions {
        meter: options.meter.clone(),
        is_stopped: options.is_cancelled,
        ..MigrationOptions::default()
    };
    let started = Migration::start(from.store.clone(), to.store.clone(), rows);
    let mut migration = started.map_err(|error| match error.kind() {
        ErrorKind::Refused => anyhow::Error::new(UsageError(error.to_string())),
        _ => error.into(),
    })?;
    report.continued = migration.is_continued();
    migration.copy_rows()?;
    copy_records(&from, &to)?;
    // A destination without a bucket is refused before the comparison.
    let needs_contents = !migration.needed_contents(&[], 1)?.is_empty();
    let contents = needs_contents.then(|| contents_of(&to, temporary.path())).transpose()?;
    if let Some(contents) = &contents {
        let source = source_of(&from, temporary.path())?;
        let CopiedContents { copied, bytes, present } =
            copy_contents(&mut migration, &source, &**contents, options)?;
        (report.contents_copied, report.bytes_copied, report.contents_present) =
            (copied, bytes, present);
        report.contents_verified = read_back(&mut migration, &**contents, options)?;
    }
    let verified = migration.verify()?;
    report.rows = verified.tables.iter().map(|table| table.rows).sum();
    report.tables = verified.tables.iter().map(|table| (table.name, table.rows)).collect();
    report.sets = verified
        .sets
        .into_iter()
        .map(|set| BackedUpSet {
            name: set.slug,
            log_created: None,
            position: set.position,
            resources: set.resources,
        })
        .collect();
    drop(contents);
    if to.database.is_none() {
        // A file that is not whole would have another identity.
        let partial = to.folder.join(MIGRATED).with_extension("new");
        let file = fs::write(&partial, migration.source())
            .and_then(|()| fs::File::open(&partial)?.sync_all())
            .and_then(|()| fs::rename(&partial, to.folder.join(MIGRATED)))
            .and_then(|()| sync_folder(&to.folder));
        file.with_context(|| format!("cannot write to `{}`", to.folder.display()))?;
        migration.finish()?;
        publish(&to.folder)?;
    } else {
        migration.finish()?;
    }
    Ok(report)
}
