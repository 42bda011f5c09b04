//! `abreast hub`: runs a hub without sets, and inspects any hub.

mod access;
mod admin;

use crate::admin::served::ListCopies;
use crate::config::admin::{AdminArgs, AdminConfig};
use crate::config::api::ApiConfig;
use crate::config::database::{DatabaseConfig, NodeArgs};
use crate::config::faults::Fault;
use crate::config::listen::{ListenArgs, open_access_log, reopen};
use crate::config::push::{self, PushConfig};
use crate::config::{File, ListenConfig};
use crate::program::service::{self, Service};
use crate::program::signals::{Request, Signals};
use crate::store::stores::{Stores, Task};
use abreast_core::SystemClock;
use abreast_server::api::{Api, ApiOptions};
use abreast_server::{CurrentSite, Metrics, ServedSets, ServerOptions, Site};
use abreast_source::publish::{PublishedSet, Publisher, SourceUrls};
use abreast_store::SqliteLog;
use admin::HubCommand;
use anyhow::{Context as _, Result};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::sync::watch;

const HELP: &str = "\
Examples:
  abreast hub --data /var/lib/abreast-hub --listen 127.0.0.1:8090 --base-url https://hub.example.org/
  abreast hub --data /var/lib/abreast-hub --allow-topic https://papers.example.org/
  abreast hub topics --server http://127.0.0.1:8090/
  abreast hub targets https://papers.example.org/papers/notify/change --server http://127.0.0.1:8080/
  abreast hub replay 17 --after 1200 --data /var/lib/abreast

`abreast serve` runs a hub for its own sets; this one is for topics of others. A publisher with a token of scope `write` can publish
anything (`abreast token create`); one without a token, only in allowed topics, and only content that the topic itself has.
Stops on SIGTERM or Ctrl-C; a second signal ends it at once. SIGHUP opens the access log again. The commands go through the API of a running server, or to a store that no server has open.

Exit codes, also for a database: 0 done, 1 other, 2 usage, 5 try again later, 6 no secure connection, 10 a server has the store open,
12 not authorised, 13 disk or permission denied, 130 ended by a second signal.";

/// Options of `hub`.
#[derive(Debug, Args)]
#[command(after_help = HELP, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct HubArgs {
    #[command(subcommand)]
    command: Option<HubCommand>,
    /// Keep the store in this folder, or in the PostgreSQL database at this URL, which several nodes share
    #[arg(
        long,
        value_name = "DIR|URL",
        env = "ABREAST_DATA",
        hide_env_values = true,
        required_unless_present = "config"
    )]
    data: Option<PathBuf>,
    /// Read a configuration file: `listen`, `base_url`, `data`, `scratch`, `node`, `[database]`, `admin_listen`, `admin_pages`, `[hub]`, `[api]`
    #[arg(long, value_name = "FILE", env = "ABREAST_CONFIG")]
    config: Option<PathBuf>,
    /// Accept topics whose URLs begin with this; repeatable
    #[arg(long = "allow-topic", value_name = "PREFIX")]
    allow_topics: Vec<String>,
    /// Accept any topic
    #[arg(long)]
    open: bool,
    /// Also trust the certificates in this PEM file, of callbacks and topics
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    listen: ListenArgs,
    #[command(flatten)]
    admin: AdminArgs,
}

impl HubArgs {
    /// True if the command runs a server.
    pub(crate) const fn serves(&self) -> bool {
        self.command.is_none()
    }
}

/// The checked configuration of a hub.
struct HubConfig {
    listen: ListenConfig,
    /// Folder of the store, or of the temporary files of a node.
    data: PathBuf,
    database: Option<DatabaseConfig>,
    api: ApiConfig,
    push: PushConfig,
    admin: Option<AdminConfig>,
    /// Whether there are pages at `/admin`.
    admin_pages: bool,
}

/// All faults of a configuration file for a hub alone.
pub(crate) fn faults(file: File) -> Vec<Fault> {
    HubConfig::check(file).err().unwrap_or_default()
}

impl HubConfig {
    /// Flags over the configuration file.
    fn of(args: &HubArgs) -> Result<Self> {
        let mut file = match &args.config {
            Some(path) => File::read_with_faults(path)?,
            None => File::default(),
        };
        let hub = file.hub.get_or_insert_default();
        hub.allow_topics.extend(args.allow_topics.iter().cloned());
        hub.ca_file = args.ca_file.clone().or(hub.ca_file.take());
        hub.open = if args.open { Some(true) } else { hub.open };
        file.store_in(args.data.as_ref());
        args.node.over(&mut file);
        args.listen.over(&mut file);
        args.admin.over(&mut file);
        Self::check(file).map_err(crate::config::faults::refused)
    }

    fn check(file: File) -> Result<Self, Vec<Fault>> {
        let mut problems = Vec::new();
        if !file.set.is_empty() {
            problems.push(
                "`set`: a hub alone serves no sets (help: abreast serve runs a hub, too)"
                    .to_owned(),
            );
        }
        if file.roles.is_some() {
            problems.push(
                "`roles`: they are for the nodes of `abreast serve` (help: leave it out)"
                    .to_owned(),
            );
        }
        let listen = ListenConfig::check(&file, &mut problems);
        // A hub stores no contents, also if it has the file of a Source.
        let database = DatabaseConfig::check(&file, &mut problems)
            .map(|database| DatabaseConfig { contents: None, ..database });
        let data = file.store_folder().unwrap_or_else(|| {
            if database.is_none() {
                problems.push(
                    "`data`: a hub needs a folder for its store (help: --data DIR)".to_owned(),
                );
            }
            PathBuf::new()
        });
        let hub = file.hub.unwrap_or_default();
        if hub.enabled == Some(false) {
            problems.push(
                "`hub.enabled`: a hub that is not enabled does nothing (help: leave it out)"
                    .to_owned(),
            );
        }
        if !hub.hubs.is_empty() {
            problems.push(
                "`hub.hubs`: only a Source notifies other hubs (help: leave it out)".to_owned(),
            );
        }
        let api = crate::config::api::check(
            file.api,
            listen.address,
            file.base_url.as_deref(),
            database.is_none().then_some(&*data),
            &mut problems,
        );
        let (address, base_url) = (listen.address, file.base_url.as_deref());
        let push = push::check(Some(hub), None, None, address, base_url, &mut problems);
        let admin = crate::config::admin::check(
            file.admin_listen.as_deref(),
            file.admin_token.as_deref(),
            &mut problems,
        );
        let mut faults = file.origins.faults().to_vec();
        faults.extend(file.origins.place("", problems));
        if !faults.is_empty() {
            return Err(faults);
        }
        let admin_pages = file.admin_pages.unwrap_or(true);
        let push = PushConfig { notify: None, ..push };
        Ok(Self { listen, data, database, api, push, admin, admin_pages })
    }
}

/// Runs `hub`.
pub(crate) fn run(args: &HubArgs) -> Result<ExitCode> {
    match &args.command {
        Some(command) => Ok(admin::run(command)),
        None => serve(&HubConfig::of(args)?).map(|()| ExitCode::SUCCESS),
    }
}

fn serve(config: &HubConfig) -> Result<()> {
    crate::program::open_files::raise_limit();
    let mut requests = Signals::listen()?.requests()?;
    let metrics = Metrics::install().context("cannot count what the server does")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let most = ServerOptions::default().connections;
    let options = config.listen.options(crate::program::open_files::connections(0, most)?)?;
    let certificate = options.certificate.clone();
    let access_log = open_access_log(config.listen.access_log().as_ref())?;
    let server = crate::program::service::listen(&runtime, config.listen.address, options)?;
    let address = server.address().context("cannot learn the address listened on")?;
    let has_store = config.database.is_some()
        || abreast_maintenance::StateFolders::find(&config.data)?.hub.is_some();
    let new = if has_store { "" } else { " (new: it has no subscriptions)" };
    let mut stores = Stores::open_shared(&config.data, config.database.as_ref(), Task::Serve)?;
    let shown = match &config.database {
        Some(database) => format!("{} as node `{}`", database.shown(), database.node),
        None => config.data.display().to_string(),
    };
    let urls = SourceUrls::new(&config.listen.base_url(address));
    let api = Api::new(ApiOptions {
        readers: config.api.readers,
        local: config.api.local,
        ..ApiOptions::at(stores.tokens(), config.data.clone())
    });
    let api = Some(api.context("cannot read the tokens of the API")?);
    let delivery = config.push.start(stores.hub()?, urls.base())?;
    let hub = Some(delivery.site_hub(&config.push));
    // Nothing is published here.
    let log = Arc::new(SqliteLog::temporary(Arc::new(SystemClock))?);
    let publisher = Publisher::new(
        log,
        urls.clone(),
        Vec::<PublishedSet>::new(),
        config.data.join("documents"),
    );
    let publisher = publisher.context("cannot make a folder in the store")?;
    let metrics = crate::admin::served::render(metrics, &config.data);
    let site = Arc::new(CurrentSite::new(Site {
        publisher,
        sets: ServedSets::default(),
        api,
        hub,
        metrics,
        memory: abreast_server::Memory::default(),
        followers: abreast_server::Followers::default(),
        store: Some(config.data.clone()),
    }));
    site.log_access(access_log);
    let (stop, stopped) = watch::channel(false);
    let status = crate::program::service::status_of(runtime.handle().clone(), Arc::clone(&site));
    let handle = runtime.handle();
    let admin = crate::admin::served::start(
        handle,
        &site,
        &config.data,
        config.admin.as_ref(),
        config.admin_pages.then(|| Box::new(Vec::new) as ListCopies),
    )?;
    let thread = service::start_server(runtime, server, Arc::clone(&site), stopped)?;
    stores.keep();
    crate::program::logging::ready(&format!("a hub at {}hub", urls.base()));
    crate::program::logging::ready(&format!("  store          {shown}{new}"));
    crate::program::logging::ready(&format!("  listening on   {}", config.listen.own_url(address)));
    let service = Service::ready(status)?;
    let signal = loop {
        match requests.next() {
            Request::Stop(signal) => break signal,
            Request::Reload => {
                service::begin_reload();
                reopen(&site, config.listen.access_log().as_ref(), certificate.as_deref());
                tracing::info!(
                    "log files are open again; other settings take effect after a restart"
                );
                service.end_reload();
            }
            Request::Scan => tracing::info!("nothing to scan: a hub has no sets"),
        }
    };
    tracing::info!(signal, "stopping: finishing requests in flight");
    service.stopping();
    drop(admin);
    let _ = stop.send(true);
    let _ = thread.join();
    site.log_access(None);
    delivery.stop();
    Ok(())
}
