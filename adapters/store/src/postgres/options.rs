//! Options for connections to PostgreSQL.

use crate::postgres::client::Client;
use crate::postgres::password::ChangingPassword;
use crate::postgres::problem::{DatabaseError, DatabaseProblem};
use crate::postgres::schema::migrate;
use crate::postgres::url::{UrlFault, read_url};
use abreast_core::{Clock, ErrorKind, LogError, ShardRule, retry_at_start};
use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio_postgres_rustls::MakeRustlsConnect;

/// Time limit for the first reading of the database's clock.
pub(crate) const CLOCK_LIMIT: Duration = Duration::from_secs(5);

/// Options for opening a [`PostgresLog`](crate::PostgresLog) or a
/// [`PostgresHub`](crate::hub::PostgresHub).
#[derive(Clone, Default)]
pub struct PostgresOptions {
    pub(crate) shard_rule: ShardRule,
    pub(crate) clock: Option<Arc<dyn Clock>>,
    tls: Option<MakeRustlsConnect>,
    password: Option<String>,
    changing: Option<ChangingPassword>,
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

    /// Sets a password that may change: it is read again when a connection is opened, at most once in
    /// a time. If reading fails, the last password is used, with one warning.
    #[must_use]
    pub fn with_changing_password(
        mut self,
        password: impl Into<String>,
        every: Duration,
        read: impl Fn() -> Result<String, String> + Send + Sync + 'static,
    ) -> Self {
        self.changing = Some(ChangingPassword::new(password.into(), every, Box::new(read)));
        self
    }

    /// Connects to the database at a URL, which has the form `postgres://USER@HOST:PORT/NAME`.
    pub(crate) fn client(&self, url: &str) -> Result<Arc<Client>, LogError> {
        let client = self.unmigrated_client(url)?;
        migrate(&client)?;
        retry_at_start(|| client.read_clock(CLOCK_LIMIT))?;
        Ok(client)
    }

    /// As [`Self::client`], with the tables as they are. Connects when the client is used.
    pub(crate) fn unmigrated_client(&self, url: &str) -> Result<Arc<Client>, LogError> {
        let mut config = read_url(url).map_err(|UrlFault { message, help }| {
            let cause = DatabaseError::new(DatabaseProblem::Unusable, message.clone());
            LogError::new(ErrorKind::Refused, format!("{message}\n  help: {help}"))
                .with_cause(cause)
        })?;
        if let Some(password) = &self.password {
            config.password(password);
        }
        if config.get_application_name().is_none() {
            config.application_name("abreast");
        }
        Ok(Arc::new(Client::new(config, self.tls.as_ref(), self.changing.as_ref())?))
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("shard_rule", &self.shard_rule)
            .finish_non_exhaustive()
    }
}

/// A random name for the writers of one opened store.
pub(crate) fn writer_name() -> Result<String, LogError> {
    let mut name = [0; 8];
    getrandom::fill(&mut name).map_err(|cause| {
        LogError::new(ErrorKind::Io, format!("no random number for a writer: {cause}"))
    })?;
    Ok(format!("{:016x}", u64::from_le_bytes(name)))
}

/// Starts a thread of a store.
pub(crate) fn thread(
    name: &str,
    run: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, LogError> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map_err(|cause| {
        LogError::new(ErrorKind::Io, "cannot start a thread for the store").with_cause(cause)
    })
}
