//! An Oxigraph store in this process, in the folder of the copy or opened by the caller.
//!
//! Each batch of changes is one transaction, which reads the stored statements of its entities and
//! removes exactly these statements, so the reach of blank nodes is not needed. RocksDB passes
//! committed data to the operating system at once: the data survives the end of the process, but
//! not a power failure. So the store is flushed to disk before the database records the changes.
//!
//! A store cannot be opened without the feature `oxigraph`. The feature `rocksdb` is required for
//! stores in a folder; otherwise the caller has to open the store.

use crate::copy::names::CURRENT;
use crate::report::error::{Error, ExitCode};
use crate::report::open_store::OpenStore;
use crate::report::sinks::OxigraphOptions;
use std::path::{Path, PathBuf};

#[cfg(feature = "oxigraph")]
mod database;
#[cfg(feature = "rocksdb")]
mod folder;
#[cfg(not(feature = "oxigraph"))]
mod none;
#[cfg(feature = "oxigraph")]
pub(super) use database::Database;
#[cfg(not(feature = "oxigraph"))]
pub(super) use none::Database;

/// The place of a store.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) folder: PathBuf,
    pub(super) opened: Option<OpenStore>,
}

impl Place {
    pub(super) fn new(folder: &Path, options: &OxigraphOptions) -> Self {
        Self { folder: folder.to_owned(), opened: options.store.clone() }
    }

    /// Whether the folder does not contain a store.
    pub(super) fn is_missing(&self) -> bool {
        self.opened.is_none() && !self.folder.join(CURRENT).exists()
    }

    /// Opens the store; `is_known` if the copy already exists.
    pub(super) fn open(&self, is_known: bool) -> Result<Database, Error> {
        if let Some(opened) = &self.opened {
            return Ok(Database::of(opened));
        }
        #[cfg(feature = "rocksdb")]
        return folder::open(&self.folder, is_known).map(|store| Database::of(&store));
        #[cfg(not(feature = "rocksdb"))]
        {
            let _ = is_known;
            let message = format!(
                "cannot keep a copy in oxigraph:{}: this program was built without Oxigraph",
                self.folder.display()
            );
            Err(Error::new("oxigraph.missing", ExitCode::Usage, message)
                .with_help("build it with `--features oxigraph`, or use nquads:DIR"))
        }
    }
}
