//! Several hosts of a database, tried one after the other.

use crate::postgres::password::ChangingPassword;
use deadpool_postgres::Connect;
use std::borrow::Cow;
use std::future::{Future, pending};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::{Client, Config, Error};

/// Time limit for a connection to one host, with its greeting.
pub(crate) const HOST_LIMIT: Duration = Duration::from_secs(3);

/// Connects to the first host that answers: a silent one must not use up the time of the others.
pub(crate) struct Hosts<C> {
    connect: C,
    /// One for each host.
    configs: Vec<Config>,
    /// The password, if it may change.
    password: Option<ChangingPassword>,
    /// Index of the host that answered last, which is tried first.
    last: AtomicUsize,
}

impl<C> Hosts<C> {
    /// The hosts of a configuration, each with a connection of its own.
    pub(crate) fn of(config: &Config, password: Option<&ChangingPassword>, connect: C) -> Self {
        let count = config.get_hosts().len().max(config.get_hostaddrs().len());
        let configs = (0..count).map(|number| only(config, number)).collect();
        Self { connect, configs, password: password.cloned(), last: AtomicUsize::new(0) }
    }
}

impl<C> Hosts<C> {
    /// The present password, if it may change. A command that prints it may take long.
    async fn password(&self) -> Option<String> {
        let password = self.password.clone()?;
        tokio::task::spawn_blocking(move || password.get()).await.ok()
    }
}

impl<C: Connect> Connect for Hosts<C> {
    fn connect(
        &self,
        _config: &Config,
    ) -> Pin<Box<dyn Future<Output = Result<(Client, JoinHandle<()>), Error>> + Send + '_>> {
        Box::pin(async move {
            let password = self.password().await;
            let mut failed = None;
            let last = self.last.load(Ordering::Relaxed);
            let (before, after) = self.configs.split_at(last);
            let in_order =
                after.iter().chain(before).zip((last..self.configs.len()).chain(0..last));
            for (config, number) in in_order {
                let mut config = Cow::Borrowed(config);
                if let Some(password) = &password {
                    config.to_mut().password(password);
                }
                match timeout(HOST_LIMIT, self.connect.connect(&config)).await {
                    Ok(Ok(connected)) => {
                        self.last.store(number, Ordering::Relaxed);
                        return Ok(connected);
                    }
                    Ok(Err(error)) => failed = Some(error),
                    Err(_) => {}
                }
            }
            match failed {
                Some(error) => Err(error),
                // Every host is silent: the limit of the pool ends the attempt.
                None => pending().await,
            }
        })
    }
}

/// The configuration with one of its hosts.
fn only(config: &Config, number: usize) -> Config {
    let mut one = Config::new();
    if let Some(user) = config.get_user() {
        one.user(user);
    }
    if let Some(password) = config.get_password() {
        one.password(password);
    }
    if let Some(name) = config.get_dbname() {
        one.dbname(name);
    }
    if let Some(options) = config.get_options() {
        one.options(options);
    }
    if let Some(name) = config.get_application_name() {
        one.application_name(name);
    }
    match config.get_hosts().get(number) {
        Some(tokio_postgres::config::Host::Tcp(host)) => drop(one.host(host)),
        #[cfg(unix)]
        Some(tokio_postgres::config::Host::Unix(path)) => drop(one.host_path(path)),
        _ => {}
    }
    if let Some(address) = config.get_hostaddrs().get(number) {
        one.hostaddr(*address);
    }
    // One port may be for all hosts.
    let ports = config.get_ports();
    if let Some(port) = ports.get(number).or(ports.first()) {
        one.port(*port);
    }
    if let Some(limit) = config.get_tcp_user_timeout() {
        one.tcp_user_timeout(*limit);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        one.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        one.keepalives_retries(retries);
    }
    one.keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle())
        .connect_timeout(HOST_LIMIT)
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding());
    one
}
