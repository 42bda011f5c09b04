//! Opening a change log on PostgreSQL.

use crate::database::queue::Queue;
use crate::log::postgres::log::PostgresLog;
use crate::log::postgres::watch::Watch;
use crate::log::postgres::writer::LogWriter;
use crate::postgres::attempts::Attempts;
use crate::postgres::options::{PostgresOptions, thread, writer_name};
use abreast_core::LogError;
use std::collections::HashMap;
use std::sync::Arc;

/// Threads that record changes, each for some of the sets.
const WRITERS: usize = 4;

impl PostgresOptions {
    /// Opens the change log of the database at a URL. See [`PostgresLog::open`].
    ///
    /// # Errors
    /// See [`PostgresLog::open`].
    pub fn open(self, url: &str) -> Result<PostgresLog, LogError> {
        let client = self.connect(url)?;
        let watch = Arc::new(Watch::default());
        let name = writer_name()?;
        let (mut queues, mut threads) = (Vec::new(), Vec::new());
        for number in 0..WRITERS {
            let queue = Arc::new(Queue::default());
            let writer = LogWriter {
                client: Arc::clone(&client),
                clock: self.clock.clone(),
                rule: self.shard_rule,
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
        Ok(PostgresLog { client, queues, watch, threads, rule: self.shard_rule, clock: self.clock })
    }
}

impl PostgresLog {
    /// Opens the database at a URL, and makes the tables that are missing. Several hosts may be
    /// given; with `target_session_attrs=read-write`, the host that accepts changes is used.
    /// A host that does not answer within 3 s is passed over.
    ///
    /// # Errors
    /// The database cannot be reached, is not encoded in UTF-8, or has tables of a newer program.
    pub fn open(url: &str) -> Result<Self, LogError> {
        PostgresOptions::default().open(url)
    }
}
