//! Connections to PostgreSQL, for callers that block.

use crate::postgres::clock::DatabaseClock;
use crate::postgres::failure::Failure;
use crate::postgres::hosts::{HOST_LIMIT, Hosts};
use crate::postgres::password::ChangingPassword;
use crate::postgres::shared_values::database_now;
use abreast_core::{ErrorKind, LogError};
use deadpool_postgres::{
    ConfigConnectImpl, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts,
};
use std::future::Future;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tokio_postgres::config::Host;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Config, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Time limit for a free place among the connections, and for a connection to a single host.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// Time limit for the answer to a statement.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// How long a read is repeated while the database is out of reach.
const RETRY_LIMIT: Duration = Duration::from_secs(2);
/// Pause before a read is repeated.
const RETRY_PAUSE: Duration = Duration::from_millis(50);
/// Interval of signs of life on a connection without traffic; after three without an answer it is
/// closed.
const KEEPALIVE: Duration = Duration::from_secs(5);
/// Threads for the sockets of connections.
const THREADS: usize = 2;

/// Most connections for each use: reads of one answer, scans whose visitors take their time,
/// writers, and renewals of leases. One use cannot stop the others.
const CONNECTIONS: [usize; 4] = [14, 8, 6, 2];

/// The use of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Use {
    Read,
    Scan,
    Write,
    Lease,
}

/// Pools of connections, with the threads that serve them.
pub(crate) struct Client {
    runtime: Option<tokio::runtime::Runtime>,
    pools: [Pool; 4],
    /// Whether all hosts are this machine.
    pub(crate) is_local: bool,
    /// The time of the database; the renewals of leases set it.
    pub(crate) clock: DatabaseClock,
}

impl Client {
    /// Prepares connections; connects when one is used.
    pub(crate) fn new(
        mut config: Config,
        tls: Option<&MakeRustlsConnect>,
        password: Option<&ChangingPassword>,
    ) -> Result<Self, LogError> {
        config.tcp_user_timeout(ANSWER_LIMIT);
        config.keepalives_idle(KEEPALIVE).keepalives_interval(KEEPALIVE).keepalives_retries(3);
        let is_local = is_local(&config);
        let hosts = config.get_hosts().len().max(config.get_hostaddrs().len()) as u32;
        let limit = Some(CONNECT_LIMIT.max(HOST_LIMIT * (hosts + 1)));
        let pool = |connections| {
            let options = ManagerConfig { recycling_method: RecyclingMethod::Fast };
            let given = config.clone();
            let manager = if let Some(tls) = tls {
                let connect = ConfigConnectImpl { tls: tls.clone() };
                Manager::from_connect(given, Hosts::of(&config, password, connect), options)
            } else {
                let connect = ConfigConnectImpl { tls: NoTls };
                Manager::from_connect(given, Hosts::of(&config, password, connect), options)
            };
            Pool::builder(manager)
                .max_size(connections)
                .runtime(Runtime::Tokio1)
                .timeouts(Timeouts { wait: limit, create: limit, recycle: limit })
                .build()
        };
        let failed = |cause: &dyn std::fmt::Display| {
            LogError::new(ErrorKind::Io, format!("cannot prepare connections: {cause}"))
        };
        let [read, scan, write, lease] = CONNECTIONS.map(pool);
        let pools = [
            read.map_err(|cause| failed(&cause))?,
            scan.map_err(|cause| failed(&cause))?,
            write.map_err(|cause| failed(&cause))?,
            lease.map_err(|cause| failed(&cause))?,
        ];
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("postgres")
            .enable_all()
            .build();
        let runtime = Some(runtime.map_err(|cause| failed(&cause))?);
        Ok(Self { runtime, pools, is_local, clock: DatabaseClock::default() })
    }

    /// A connection for a use.
    pub(crate) fn connection(&self, of: Use) -> Result<Object, Failure> {
        self.wait(async { self.pools[of as usize].get().await.map_err(Failure::from) })
    }

    /// Blocks until the answer is there, or its time is over.
    pub(crate) fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let answer = self.wait_within(ANSWER_LIMIT, answer);
        if matches!(answer, Err(Failure::Late)) {
            // Other connections to the same server may be dead as well.
            for pool in &self.pools {
                pool.retain(|_, _| false);
            }
        }
        answer
    }

    fn wait_within<T>(
        &self,
        limit: Duration,
        answer: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let runtime = self.runtime.as_ref().expect("the threads end with the client");
        // The runtime's threads drive connections and timers. Unlike the runtime's own function, this
        // may also be called on a thread of another runtime, which it blocks.
        let _entered = runtime.enter();
        futures_executor::block_on(async {
            tokio::time::timeout(limit, answer).await.unwrap_or(Err(Failure::Late))
        })
    }

    /// Runs a read, and repeats it for a short time if the database is out of reach, as after a
    /// restart. `read` must not have passed anything on when it fails so.
    pub(crate) fn read<T>(
        &self,
        doing: &str,
        mut read: impl FnMut(&mut Object) -> Result<T, Failure>,
    ) -> Result<T, LogError> {
        repeat(doing, || {
            let mut connection = self.connection(Use::Read)?;
            let result = read(&mut connection);
            if matches!(result, Err(Failure::Late)) {
                // An answer may still arrive; nobody else may get it.
                drop(Object::take(connection));
            }
            result
        })
    }

    /// Runs one statement that reads.
    pub(crate) fn query(
        &self,
        doing: &str,
        sql: &str,
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, LogError> {
        self.read(doing, |connection| {
            self.wait(async { Ok(connection.query_typed(sql, params).await?) })
        })
    }

    /// Sets the clock to the time of the database.
    pub(crate) fn read_clock(&self, limit: Duration) -> Result<(), LogError> {
        const DOING: &str = "cannot read the clock of the database";
        let begin = Instant::now();
        let rows = self.query_lease(DOING, limit, concat!("SELECT ", database_now!()), &[])?;
        self.set_clock(&rows, 0, begin);
        Ok(())
    }

    /// Sets the clock by this column of an answer to a statement that was sent at `begin`.
    pub(crate) fn set_clock(&self, rows: &[Row], column: usize, begin: Instant) {
        if let Some(now) = rows.first().and_then(|row| row.try_get(column).ok()) {
            self.clock.set(now, begin);
        }
    }

    /// Runs a statement of a lease once, on connections that only leases use, because slow reads must
    /// not end leases. The limit is that of the answer.
    ///
    /// # Errors
    /// The statement fails, or its answer takes longer than the limit.
    pub(crate) fn query_lease(
        &self,
        doing: &str,
        limit: Duration,
        sql: &str,
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, LogError> {
        let query = || -> Result<Vec<Row>, Failure> {
            let connection = self.connection(Use::Lease)?;
            let answer =
                self.wait_within(limit, async { Ok(connection.query_typed(sql, params).await?) });
            if matches!(answer, Err(Failure::Late)) {
                // An answer may still arrive; nobody else may get it.
                drop(Object::take(connection));
            }
            answer
        };
        query().map_err(|failure| failure.into_error(doing))
    }
}

/// Whether all hosts of a configuration are this machine.
fn is_local(config: &Config) -> bool {
    let is_loopback = |name: &str| match name.parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => name == "localhost",
    };
    let hosts = config.get_hosts().iter().all(|host| match host {
        Host::Tcp(name) => is_loopback(name),
        #[cfg(unix)]
        Host::Unix(_) => true,
    });
    let addresses = config.get_hostaddrs();
    if addresses.is_empty() { hosts } else { addresses.iter().all(IpAddr::is_loopback) }
}

/// Repeats work for a short time while it fails because the database is out of reach.
pub(crate) fn repeat<T>(
    doing: &str,
    mut work: impl FnMut() -> Result<T, Failure>,
) -> Result<T, LogError> {
    let begun = Instant::now();
    loop {
        match work() {
            Err(failure) if failure.is_passing() && begun.elapsed() < RETRY_LIMIT => {
                std::thread::sleep(RETRY_PAUSE);
            }
            result => return result.map_err(|failure| failure.into_error(doing)),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        for pool in &self.pools {
            pool.close();
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
