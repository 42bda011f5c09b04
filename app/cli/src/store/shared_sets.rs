//! The sets of a database, which are removed and renamed while no node runs.

use crate::config::database::DatabaseConfig;
use crate::store::database::{BUCKET, Database};
use crate::store::log_access::unknown_set;
use abreast_core::Lease;
use abreast_core::contents::made::MadeStore;
use abreast_server::api::{Token, TokenPlace};
use abreast_source::notify::{NotifiedPlace, rename_in_record, topics_of_set};
use abreast_source::{remove_made_files, rename_made_files};
use abreast_store::{DroppedSet, DroppedTopics, FormerSet, Removal, RenamedSet, SharedSets};
use anyhow::{Context as _, Result};
use std::sync::Arc;

const NOTIFIED: &str = "cannot change the record of notified documents in the database (help: if it is damaged, delete it: \
     DELETE FROM abreast.records WHERE name = 'notified'; documents are then notified again)";

/// The sets of a database, with their made files, topics and tokens.
pub(crate) struct DatabaseSets {
    sets: Arc<dyn SharedSets>,
    /// The database for messages.
    shown: String,
}

impl DatabaseSets {
    /// Opens the sets of a database that has the tables of this program.
    ///
    /// # Errors
    /// The database cannot be read, has other tables, or a migration to it is not complete.
    pub(crate) fn open(config: &DatabaseConfig) -> Result<Self> {
        Ok(Self { sets: Database::sets_of(config)?, shown: config.shown() })
    }

    /// Checks that no node runs.
    ///
    /// # Errors
    /// A node runs, or the database cannot be read.
    pub(crate) fn check_unused(&self) -> Result<()> {
        Ok(self.sets.check_unused()?)
    }

    /// Names that sets of the database had.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(crate) fn former_sets(&self) -> Result<Vec<FormerSet>> {
        Ok(self.sets.former_sets()?)
    }

    /// The place of the tokens of the API.
    pub(crate) fn tokens(&self) -> TokenPlace {
        TokenPlace::Shared(self.sets.records())
    }

    fn notified(&self) -> NotifiedPlace {
        NotifiedPlace::Shared(self.sets.records(), Lease::always())
    }

    /// The bucket with the made files of all nodes, if a node has used one.
    fn made_files(&self) -> Result<Option<(Arc<dyn MadeStore>, String)>> {
        let Some(record) = self.sets.records().record(BUCKET)? else { return Ok(None) };
        let url = String::from_utf8_lossy(&record.bytes).into_owned();
        Ok(Some((crate::store::bucket::made_files(&url)?, url)))
    }

    /// The error for a set that the database does not have.
    ///
    /// # Errors
    /// The database cannot be read.
    pub(crate) fn no_such_set(&self, set: &str) -> Result<anyhow::Error> {
        let names = self.sets.names()?;
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Ok(unknown_set(set, &self.shown, &names))
    }

    /// Counts the rows of a set, and its topics.
    ///
    /// # Errors
    /// The set is unknown, or the database cannot be read.
    pub(crate) fn count(&self, set: &str) -> Result<(DroppedSet, DroppedTopics)> {
        let Some(counted) = self.sets.count_set(set)? else { return Err(self.no_such_set(set)?) };
        let urls = topics_of_set(&self.notified(), set, false).context(NOTIFIED)?;
        Ok((counted, self.sets.drop_topics(&urls, true)?))
    }

    /// Removes a set, or continues an interrupted removal. The bucket is the first, since it may be out of reach.
    ///
    /// # Errors
    /// A node runs, or the database or the bucket cannot be changed. The removal can be started again.
    pub(crate) fn remove(&self, set: &str, moved_to: Option<String>) -> Result<()> {
        if let Some((made, url)) = self.made_files()? {
            remove_made_files(&*made, set)
                .with_context(|| format!("cannot remove the made files of the set in `{url}`"))?;
        }
        let notified = self.notified();
        let urls = topics_of_set(&notified, set, false).context(NOTIFIED)?;
        self.sets.drop_topics(&urls, false)?;
        topics_of_set(&notified, set, true).context(NOTIFIED)?;
        let removal = Removal { time: self.sets.now()?, moved_to };
        self.sets.remove_set(set, &removal)?;
        Ok(self.sets.finish_removals(&|| false)?)
    }

    /// Gives a set another name in all parts of the store, unless `dry_run`. The log is last: if this is interrupted,
    /// it can be run again.
    ///
    /// # Errors
    /// A node runs, or the database or the bucket cannot be changed.
    pub(crate) fn rename(&self, names: (&str, &str), dry_run: bool) -> Result<RenamedSet> {
        let (old, new) = names;
        self.check_unused()?;
        let possible = self.sets.rename_set(names, None)?;
        if possible != RenamedSet::Renamed || dry_run {
            return Ok(possible);
        }
        if let Some((made, url)) = self.made_files()? {
            rename_made_files(&*made, names)
                .with_context(|| format!("cannot rename the made files of the set in `{url}`"))?;
        }
        let notified = self.notified();
        let topics = rename_in_record(&notified, names, false).context(NOTIFIED)?;
        self.sets.rename_topics(&topics)?;
        rename_in_record(&notified, names, true).context(NOTIFIED)?;
        let rename = |tokens: &mut Vec<Token>| -> Result<()> {
            for set in tokens.iter_mut().flat_map(|token| &mut token.sets) {
                if set == old {
                    new.clone_into(set);
                }
            }
            Ok(())
        };
        let tokens = self.tokens();
        if !tokens.read().context("cannot read the tokens of the API")?.is_empty() {
            tokens.change(rename).context("cannot change the tokens of the API")?;
        }
        Ok(self.sets.rename_set(names, Some(self.sets.now()?))?)
    }
}
