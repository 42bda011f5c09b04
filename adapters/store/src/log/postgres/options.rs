//! Opening a change log on PostgreSQL.

use crate::database::queue::Queue;
use crate::log::postgres::client::Client;
use crate::log::postgres::log::PostgresLog;
use crate::log::postgres::schema::migrate;
use crate::log::postgres::watch::Watch;
use crate::log::postgres::writer::LogWriter;
use abreast_core::{Clock, ErrorKind, LogError, ShardRule};
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr as _;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Threads that record changes, each for some of the sets.
const WRITERS: usize = 4;

/// Options for opening a [`PostgresLog`].
#[derive(Clone, Default)]
pub struct PostgresOptions {
    shard_rule: ShardRule,
    clock: Option<Arc<dyn Clock>>,
    tls: Option<MakeRustlsConnect>,
    password: Option<String>,
}

impl PostgresOptions {
    /// Sets other sizes for shards than [`ShardRule::DEFAULT`].
    #[must_use]
    pub const fn with_shard_rule(mut self, rule: ShardRule) -> Self {
        self.shard_rule = rule;
        self
    }

    /// Takes the time from a clock, for tests, in place of the database's clock. Clocks of nodes may
    /// differ.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Uses TLS, if the server offers it or `sslmode=require` is in the URL.
    #[must_use]
    pub fn with_tls(mut self, tls: rustls::ClientConfig) -> Self {
        self.tls = Some(MakeRustlsConnect::new(tls));
        self
    }

    /// Sets a password that is not in the URL.
    #[must_use]
    pub fn with_password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Opens the database at a URL. See [`PostgresLog::open`].
    ///
    /// # Errors
    /// See [`PostgresLog::open`].
    pub fn open(self, url: &str) -> Result<PostgresLog, LogError> {
        let mut config = tokio_postgres::Config::from_str(url).map_err(|cause| {
            let message = "the URL of the database cannot be read\n  help: write postgres://USER@HOST:PORT/NAME";
            LogError::new(ErrorKind::Refused, message).with_cause(cause)
        })?;
        if let Some(password) = self.password {
            config.password(password);
        }
        config.application_name("abreast");
        let client = Arc::new(Client::new(config, self.tls.as_ref())?);
        migrate(&client)?;
        let watch = Arc::new(Watch::default());
        let mut name = [0; 8];
        getrandom::fill(&mut name).map_err(|cause| {
            LogError::new(ErrorKind::Io, format!("no random number for a writer: {cause}"))
        })?;
        let name = u64::from_le_bytes(name);
        let (mut queues, mut threads) = (Vec::new(), Vec::new());
        for number in 0..WRITERS {
            let queue = Arc::new(Queue::default());
            let writer = LogWriter {
                client: Arc::clone(&client),
                clock: self.clock.clone(),
                rule: self.shard_rule,
                watch: Arc::clone(&watch),
                name: format!("{name:016x}-{number}"),
                cached: HashMap::new(),
                pruned: HashMap::new(),
                batch: 0,
                is_away: false,
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

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("shard_rule", &self.shard_rule)
            .finish_non_exhaustive()
    }
}

fn thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, LogError> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(|cause| {
        LogError::new(ErrorKind::Io, "cannot start a thread for the store").with_cause(cause)
    })
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
