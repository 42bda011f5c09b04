//! The steps of a migration.

use crate::maintenance::migrate::compare::{
    LogDigest, compare_logs, compare_tables, digest_log, digest_table,
};
use crate::maintenance::migrate::options::{
    MigratedStore, MigrationOptions, Verified, changed, is_unfinished, stopped,
};
use crate::maintenance::migrate::postgres::PostgresSide;
use crate::maintenance::migrate::side::Side;
use crate::maintenance::migrate::sqlite::SqliteSide;
use crate::maintenance::migrate::state::State;
use crate::maintenance::migrate::table::Part;
use crate::maintenance::migrate::tables::TABLES;
use crate::maintenance::shared_sets::SharedSets as _;
use abreast_core::{ContentId, ErrorKind, LogError};
use std::fmt;
use std::path::Path;

/// Tables whose digests identify a store: the sets with their pages and shards, and the topics.
const IDENTITY: [&str; 4] = ["sets", "pages", "shards", "topics"];

/// A migration of all rows from a store to another one.
pub struct Migration<'o> {
    from: Box<dyn Side>,
    to: Box<dyn Side>,
    state: [State; 2],
    parts: Vec<Part>,
    options: MigrationOptions<'o>,
    is_continued: bool,
}

impl fmt::Debug for Migration<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Migration").finish_non_exhaustive()
    }
}

fn refused(message: &str) -> LogError {
    LogError::new(ErrorKind::Refused, message)
}

/// Completes a folder whose rows were verified, after an interruption of [`Migration::finish`].
///
/// # Errors
/// A database cannot be opened.
pub fn complete_folder(folder: &Path) -> Result<(), LogError> {
    let mut side = SqliteSide::destination(folder);
    // Reading the state opens a database that exists.
    side.state(Part::Log)?;
    side.state(Part::Hub)?;
    side.finish("")
}

/// The identity of a store: a digest of its sets with their pages and shards, and of its topics.
///
/// # Errors
/// The store cannot be read.
pub fn identity_of(store: &MigratedStore) -> Result<String, LogError> {
    match store {
        MigratedStore::Folder(folder) => identity(&mut SqliteSide::source(folder)?),
        MigratedStore::Database(database) => identity(&mut PostgresSide::new(database.clone())),
    }
}

/// The source and the destination.
type Sides = (Box<dyn Side>, Box<dyn Side>);

/// The stores of a migration, after the check that a migration between them is possible.
fn sides(from: MigratedStore, to: MigratedStore) -> Result<Sides, LogError> {
    match (from, to) {
        (MigratedStore::Folder(from), MigratedStore::Database(to)) => {
            to.check_unused()?;
            Ok((Box::new(SqliteSide::source(&from)?), Box::new(PostgresSide::new(to))))
        }
        (MigratedStore::Database(from), MigratedStore::Folder(to)) => {
            if is_unfinished(&from)? {
                return Err(refused(
                    "a migration to the database of the source is not complete\n  help: complete it first, by the same command as before",
                ));
            }
            let from = PostgresSide::new(from);
            from.check_source()?;
            Ok((Box::new(from), Box::new(SqliteSide::destination(&to))))
        }
        (MigratedStore::Folder(_), MigratedStore::Folder(_)) => Err(refused(
            "both stores are folders\n  help: copy the folder while no program uses it, or use `abreast backup` and `abreast restore`",
        )),
        (MigratedStore::Database(_), MigratedStore::Database(_)) => {
            Err(refused("both stores are databases\n  help: use `pg_dump` and `pg_restore`"))
        }
    }
}

impl<'o> Migration<'o> {
    /// Starts a migration, or continues an interrupted one. From now on, the destination is
    /// incomplete until [`Self::finish`].
    ///
    /// # Errors
    /// A store cannot be opened or is in use, both are of one kind, or the destination has other data.
    pub fn start(
        from: MigratedStore,
        to: MigratedStore,
        options: MigrationOptions<'o>,
    ) -> Result<Self, LogError> {
        let mut is_new = match &to {
            MigratedStore::Database(database) => PostgresSide::new(database.clone()).is_empty()?,
            MigratedStore::Folder(_) => true,
        };
        let (mut from, mut to) = sides(from, to)?;
        let mut parts = Vec::new();
        for part in [Part::Log, Part::Hub] {
            if from.has(part) && has_rows(&mut *from, part)? {
                parts.push(part);
            }
        }
        if parts.is_empty() {
            return Err(refused("the source has neither sets nor topics"));
        }
        let identity = identity(&mut *from)?;
        let (mut state, mut is_continued) =
            ([State::new(identity.clone()), State::new(identity.clone())], false);
        for part in [Part::Log, Part::Hub] {
            match to.state(part)? {
                Some(known) if known.from == identity => {
                    (state[part as usize], is_continued) = (known, true);
                }
                Some(_) => {
                    return Err(refused(
                        "the destination has a part of another store, or the source was changed since the migration was interrupted\n  \
                         help: empty the destination, and start the migration again",
                    ));
                }
                // An attempt may have ended between the creation of a database and its first record.
                None => is_new = is_new && (!to.has(part) || !has_rows(&mut *to, part)?),
            }
        }
        if !is_new && !is_continued {
            return Err(refused(
                "the destination is not empty\n  help: use an empty database, or a folder that does not exist; if a migration to it has ended, start the server with it",
            ));
        }
        if !is_continued {
            // One record marks the whole store as incomplete.
            to.write_state(parts[0], &state[0])?;
        }
        Ok(Self { from, to, state, parts, options, is_continued })
    }

    /// Whether an earlier attempt was interrupted.
    pub const fn is_continued(&self) -> bool {
        self.is_continued
    }

    /// Copies all rows that are not copied yet.
    ///
    /// # Errors
    /// A store fails, or the migration was stopped.
    pub fn copy_rows(&mut self) -> Result<(), LogError> {
        self.options.meter.begin("copying rows");
        for table in TABLES.iter().filter(|table| self.parts.contains(&table.part)) {
            let _named = self.options.meter.item(|| table.name.to_owned());
            loop {
                let state = &mut self.state[table.part as usize];
                let mut progress = state.table(table.name);
                if progress.is_complete {
                    break;
                }
                if (self.options.is_stopped)() {
                    return Err(stopped());
                }
                let read = self.from.read(table, progress.after.as_deref(), self.options.rows)?;
                progress.rows += read.rows.len() as u64;
                progress.is_complete = read.next.is_none();
                progress.after = read.next;
                state.set_table(table.name, progress);
                self.to.write(table, &read.rows, state)?;
                self.options.meter.add(read.rows.len() as u64, 0);
            }
        }
        if self.parts.contains(&Part::Log) {
            let (states, former) = (self.from.set_states()?, self.from.former_sets()?);
            self.to.store_set_states(states)?;
            self.to.store_former_sets(&former)?;
        }
        if self.parts.contains(&Part::Hub) {
            self.to.store_numbers(self.from.numbers()?)?;
        }
        Ok(())
    }

    /// Addresses and lengths of contents that rows of the source need, after an address.
    ///
    /// # Errors
    /// The store fails.
    pub fn needed_contents(
        &mut self,
        after: &[u8],
        limit: usize,
    ) -> Result<Vec<(ContentId, u64)>, LogError> {
        if self.parts.contains(&Part::Log) {
            self.from.needed(after, limit)
        } else {
            Ok(Vec::new())
        }
    }

    /// The address up to which the contents are copied; empty before the first.
    pub fn contents_after(&self) -> &[u8] {
        &self.state[Part::Log as usize].contents_after
    }

    /// Records that all contents up to an address are copied and durable.
    ///
    /// # Errors
    /// The store fails.
    pub fn set_contents_after(&mut self, id: &ContentId) -> Result<(), LogError> {
        let state = &mut self.state[Part::Log as usize];
        state.contents_after = id.as_bytes().to_vec();
        self.to.write_state(Part::Log, state)
    }

    /// Compares all tables of both stores, and the change log of each set as both stores read it.
    ///
    /// # Errors
    /// A store fails, or the stores differ.
    pub fn verify(&mut self) -> Result<Verified, LogError> {
        let Self { from, to, parts, options, .. } = self;
        let options = &*options;
        options.meter.begin("verifying rows");
        let tables: Vec<_> = TABLES.iter().filter(|table| parts.contains(&table.part)).collect();
        let compared_tables = compare_tables(&mut **from, &mut **to, &tables, options)?;
        let mut sets = Vec::new();
        if parts.contains(&Part::Log) {
            options.meter.begin("verifying logs");
            let digests = std::thread::scope(|scope| {
                let other = scope.spawn(|| digest_log(&mut **from, options));
                let own = digest_log(&mut **to, options);
                let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                Ok::<[Vec<LogDigest>; 2], LogError>([other?, own?])
            })?;
            sets = compare_logs(digests)?;
        }
        if identity(&mut **from)? != self.state[Part::Log as usize].from {
            return Err(changed("the sets"));
        }
        Ok(Verified { tables: compared_tables, sets })
    }

    /// The identity of the source.
    pub fn source(&self) -> &str {
        &self.state[Part::Log as usize].from
    }

    /// Marks the destination as complete.
    ///
    /// # Errors
    /// The store fails.
    pub fn finish(mut self) -> Result<(), LogError> {
        self.to.finish(&self.state[Part::Log as usize].from)
    }
}

/// Whether a part of the store has any row.
fn has_rows(side: &mut dyn Side, part: Part) -> Result<bool, LogError> {
    for table in TABLES.iter().filter(|table| table.part == part) {
        if !side.read(table, None, 1)?.rows.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The digest of the tables that identify a store.
fn identity(side: &mut dyn Side) -> Result<String, LogError> {
    let mut digests = Vec::new();
    let options = MigrationOptions::default();
    for table in TABLES.iter().filter(|table| IDENTITY.contains(&table.name)) {
        if side.has(table.part) {
            digests.push(format!("{} {}", table.name, digest_table(side, table, &options)?.text()));
        }
    }
    Ok(digests.join(", "))
}
