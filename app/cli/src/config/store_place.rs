//! The place of a store, as the argument of a command gives it.

use crate::config::database::{DatabaseConfig, database_url};
use crate::config::settings::File;
use crate::program::errors::UsageError;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// The place of a store.
pub(crate) enum StorePlace {
    Folder(PathBuf),
    Database(Box<DatabaseConfig>),
}

impl StorePlace {
    /// The place in an argument: a folder, the URL of a database, or a configuration file. The address of a bucket takes
    /// precedence over that of the file.
    ///
    /// # Errors
    /// The file cannot be read, or lacks a place.
    pub(crate) fn of(argument: &Path, contents: Option<&str>) -> Result<Self> {
        let found = if let Some(url) = database_url(argument) {
            Some(DatabaseConfig::of_url(url))
        } else if argument.is_file() {
            let file = File::read(argument)?;
            let database = DatabaseConfig::of_file(&file)?;
            if database.is_none() {
                let no_data = || UsageError(format!("`{}` names no `data`", argument.display()));
                return Ok(Self::Folder(file.store_folder().ok_or_else(no_data)?));
            }
            database
        } else {
            None
        };
        let Some(mut database) = found else { return Ok(Self::Folder(argument.to_owned())) };
        if let Some(contents) = contents {
            database.contents = Some(contents.to_owned());
        }
        Ok(Self::Database(Box::new(database)))
    }

    /// The place for messages, without a password.
    #[cfg(feature = "postgres")]
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Folder(folder) => folder.display().to_string(),
            Self::Database(config) => config.shown(),
        }
    }
}
