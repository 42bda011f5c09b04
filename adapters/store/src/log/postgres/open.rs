//! Opening a change log on PostgreSQL.

use crate::database::queue::Queue;
use crate::log::postgres::last_heads::LastHeads;
use crate::log::postgres::log::{PostgresLog, Shared};
use crate::log::postgres::watch::Watch;
use crate::log::postgres::writer::LogWriter;
use crate::postgres::attempts::Attempts;
use crate::postgres::database::PostgresDatabase;
use crate::postgres::options::{PostgresOptions, thread, writer_name};
use abreast_core::LogError;
use std::collections::HashMap;
use std::sync::Arc;

/// Threads that record changes, each for some of the sets.
const WRITERS: usize = 4;

impl PostgresOptions {
    /// Opens the change log of the database at a URL. See [`PostgresOptions::connect`].
    ///
    /// # Errors
    /// See [`PostgresOptions::connect`].
    pub fn open(self, url: &str) -> Result<PostgresLog, LogError> {
        self.connect(url)?.log()
    }
}

impl PostgresDatabase {
    /// Opens the change log.
    ///
    /// # Errors
    /// The system cannot start threads.
    pub fn log(&self) -> Result<PostgresLog, LogError> {
        let (client, options) = (Arc::clone(&self.client), &self.options);
        let watch = Arc::new(Watch::default());
        let name = writer_name()?;
        let (mut queues, mut threads) = (Vec::new(), Vec::new());
        for number in 0..WRITERS {
            let queue = Arc::new(Queue::default());
            let writer = LogWriter {
                client: Arc::clone(&client),
                clock: options.clock.clone(),
                rule: options.shard_rule,
                watch: Arc::clone(&watch),
                name: format!("{name}-{number}"),
                cached: HashMap::new(),
                pruned: HashMap::new(),
                batch: 0,
                attempts: Attempts::default(),
            };
            let taken = Arc::clone(&queue);
            threads.push(thread("log-writer", move || writer.run(&taken))?);
            queues.push(queue);
        }
        let (watched, reader) = (Arc::clone(&watch), Arc::clone(&client));
        threads.push(thread("log-watch", move || watched.run(&reader))?);
        Ok(PostgresLog::of(Shared {
            client,
            queues,
            watch,
            last_heads: LastHeads::default(),
            threads,
            rule: options.shard_rule,
            clock: options.clock.clone(),
        }))
    }
}

impl PostgresLog {
    /// Opens the change log of the database at a URL. See [`PostgresOptions::connect`].
    ///
    /// # Errors
    /// See [`PostgresOptions::connect`].
    pub fn open(url: &str) -> Result<Self, LogError> {
        PostgresOptions::default().open(url)
    }
}
