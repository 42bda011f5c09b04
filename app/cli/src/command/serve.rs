//! `abreast serve`: watches folders and publishes them until it is stopped.

use crate::command::args::ServeArgs;
use crate::config::api::ApiConfig;
use crate::config::push::{Delivery, SitePublisher};
use crate::config::{
    Descriptions, File, Origin, ServeConfig, SetConfig, SetFile, is_of_environment,
};
use crate::program::errors::UsageError;
use crate::program::service::Service;
use crate::program::signals::Signals;
use crate::store::open_set::SetOpener;
use crate::store::stores::{Stores, Task};
use abreast_core::ChangeLog;
use abreast_server::api::{Api, ApiOptions};
use abreast_server::{Metrics, ServedSet, Server, ServerOptions, Site};
use abreast_source::archive;
use abreast_source::dump::{Dumper, Dumps};
use abreast_source::notify::Notifier;
use abreast_source::origin::rdf::RdfWatch;
use abreast_source::projection::sdshare::SetSnapshots;
use abreast_source::publish::{Publisher, SourceUrls};
use abreast_source::versions::{Collector, KeptSet};
use abreast_source::watch::Watch;
use anyhow::{Context as _, Result, bail};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Pause between two messages while the sets are opened.
const LOG_PAUSE: Duration = Duration::from_secs(2);
/// Time for what requests left behind, once they are finished or given up.
const STOP_REST: Duration = Duration::from_millis(500);

/// Folder and flags over the configuration file.
pub(crate) fn config(args: &ServeArgs) -> Result<ServeConfig> {
    let mut file = match &args.config {
        Some(path) => File::read_with_faults(path)?,
        None => File::default(),
    };
    if args.folder.is_some() || args.origin.is_some() {
        if args.config.as_ref().is_some_and(|path| is_of_environment(path)) {
            // The sets of a file that the environment names are replaced.
            file.set.clear();
        }
        if !file.set.is_empty() {
            bail!(UsageError(
                "both a folder and `[[set]]` in the configuration (help: leave one of them out)"
                    .into()
            ));
        }
        file.set.push(SetFile {
            name: args.name.clone(),
            title: args.title.clone(),
            follow_links: args.follow_links.then_some(true),
            filter: args.rules.rules.clone(),
            origin: args.origin.clone(),
            skolemize: args.skolemize.clone(),
            base: args.base.clone(),
            folder: args.folder.clone().unwrap_or_default(),
            digests: args.digests.clone(),
            debounce: args.debounce.clone(),
            wait_for_quiet: args.wait_for_quiet.then_some(true),
            rescan: args.rescan.clone(),
            reread: None,
            events: args.no_events.then_some(false),
            changes_per_list: args.changes_per_list,
            dumps: args.dumps.to_file(),
            versions: args.versions.to_file()?,
            ..SetFile::default()
        });
    }
    file.api = args.api.over(file.api);
    file.hub = args.push.over(file.hub);
    let data_in_file = file.data.clone();
    file.given(
        args.listen.as_ref(),
        args.base_url.as_ref(),
        args.data.as_ref(),
        &args.trusted_proxies,
    );
    let mut config = ServeConfig::check_to_serve(file)?;
    config.confirm_deletions = args.confirm_deletions;
    config.new_store = args.new_store;
    config.data_in_file = data_in_file;
    Ok(config)
}

/// A running Source, with an orderly stop.
pub(crate) struct Running {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Its public base URL, ending in `/`.
    pub(crate) base_url: String,
    /// The store was made by this start.
    is_new: bool,
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
    service: Service,
    watches: Vec<Watch>,
    rdf: Vec<RdfWatch>,
    snapshots: Vec<Arc<SetSnapshots>>,
    dumper: Option<Dumper>,
    keeper: Option<archive::Keeper>,
    notifier: Option<Notifier>,
    delivery: Option<Delivery>,
    collector: Option<Collector>,
    /// Locked: no second process writes the same stores.
    _stores: Stores,
}

impl Running {
    /// Opens the stores, starts watching and listening.
    pub(crate) fn start(config: ServeConfig) -> Result<Self> {
        let metrics = metrics_recorder();
        let Listening { runtime, server, address } = listen(&config)?;
        let is_new = crate::store::served::check_new(&config)?;
        let mut stores = Stores::open(&config.data, Task::Serve)?;
        let log: Arc<dyn ChangeLog> = Arc::new(stores.log()?);
        crate::store::served::record(stores.data(), &*log, &config.sets)?;
        let contents = config.keeps_contents().then(|| stores.contents()).transpose()?;
        let urls = SourceUrls::new(
            &config.base_url.clone().unwrap_or_else(|| format!("http://{address}/")),
        );
        let dumps = Dumps::new(Arc::clone(&log), stores.path("dumps"));
        let opener = SetOpener {
            stores: &stores,
            log: &log,
            urls: &urls,
            contents: contents.as_ref(),
            dumps: &dumps,
            notifications: config.push.notifications(urls.base()),
            callbacks: config.push.serves && config.push.notify.is_some(),
            xmpp_service: config.push.xmpp.as_ref().map(|xmpp| xmpp.service.as_str()),
            api_writes: config.api.write,
            confirm_deletions: config.confirm_deletions,
        };
        let Sets { served, watches, rdf, versions } = Sets::open(&opener, config.sets)?;
        let published = served.iter().map(|set| Arc::clone(&set.published));
        let publisher =
            Publisher::new(Arc::clone(&log), urls.clone(), published, stores.path("documents"))
                .context("cannot make the folder for rendered documents")?
                .with_all_projections();
        let api = Some(open_api(&config.api, stores.data())?);
        let delivery = if config.push.is_wanted() {
            Some(config.push.start(stores.data(), urls.base())?)
        } else {
            None
        };
        let hub = delivery.as_ref().map(|delivery| delivery.site_hub(&config.push));
        let site = Arc::new(Site {
            publisher,
            sets: served.into_iter().collect(),
            api,
            hub,
            metrics,
            memory: abreast_server::Memory::default(),
            store: Some(stores.data().to_owned()),
        });
        let notifier = match &delivery {
            Some(delivery) => delivery.notify(&config.push, &site, stores.data())?,
            None => None,
        };
        let keeper = start_archiving(&site)?;
        let dumper = start_dumping(&dumps, &site)?;
        let (stop, stopped) = watch::channel(false);
        let sets = site.publisher.sets().iter();
        let snapshots = sets.filter_map(|set| set.snapshots().cloned()).collect();
        let status =
            crate::program::service::status_of(runtime.handle().clone(), Arc::clone(&site));
        let thread = start_server(runtime, server, site, stopped)?;
        let collector = crate::config::versions::collect(log, contents.as_ref(), versions)?;
        stores.keep();
        Ok(Self {
            is_new,
            collector,
            address,
            base_url: urls.base().to_owned(),
            stop,
            thread,
            service: Service::ready(status)?,
            watches,
            rdf,
            snapshots,
            dumper,
            keeper,
            notifier,
            delivery,
            _stores: stores,
        })
    }

    /// Stops: no new connection, no dump, requests in flight are finished, then the watches, then
    /// the store.
    pub(crate) fn stop(self) {
        self.service.stopping();
        let _ = self.stop.send(true);
        // All at once: each of them may be in the middle of a large file.
        self.watches.iter().for_each(Watch::begin_stop);
        self.rdf.iter().for_each(RdfWatch::begin_stop);
        // Before the requests are waited for: one of them may wait for a package.
        if let Some(dumper) = self.dumper {
            dumper.stop();
        }
        drop(self.keeper);
        drop(self.notifier);
        for snapshots in &self.snapshots {
            snapshots.stop();
        }
        if let Some(collector) = self.collector {
            collector.stop();
        }
        let _ = self.thread.join();
        if let Some(delivery) = self.delivery {
            delivery.stop();
        }
        for watch in self.watches {
            watch.stop();
        }
        drop(self.rdf);
    }
}

/// Renders `/metrics`. A second Source in this process shares the first one's recorder, and shows
/// nothing of its own.
fn metrics_recorder() -> Box<dyn Fn() -> String + Send + Sync> {
    match Metrics::install() {
        Ok(metrics) => Box::new(move || metrics.render()),
        Err(_) => Box::new(String::new),
    }
}

/// A server that listens, and does not answer yet.
struct Listening {
    runtime: Runtime,
    server: Server,
    address: SocketAddr,
}

fn listen(config: &ServeConfig) -> Result<Listening> {
    let (address, sets, strip_prefix) = (config.listen, config.sets.len(), config.strip_prefix);
    let trusted_proxies = config.trusted_proxies.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let connections =
        crate::program::open_files::connections(sets, ServerOptions::default().connections)?;
    let options =
        ServerOptions { trusted_proxies, strip_prefix, connections, ..ServerOptions::default() };
    let server = crate::program::service::listen(&runtime, address, options)?;
    let address = server.address().context("cannot learn the address listened on")?;
    Ok(Listening { runtime, server, address })
}

/// The parts of all sets, in their order.
#[derive(Default)]
struct Sets {
    served: Vec<ServedSet>,
    watches: Vec<Watch>,
    rdf: Vec<RdfWatch>,
    versions: Vec<KeptSet>,
}

impl Sets {
    fn open(opener: &SetOpener<'_>, configs: Vec<SetConfig>) -> Result<Self> {
        let mut sets = Self::default();
        let total = configs.len();
        let mut logged = Instant::now();
        for (number, config) in configs.into_iter().enumerate() {
            if logged.elapsed() >= LOG_PAUSE {
                logged = Instant::now();
                tracing::info!("opening the sets: {number} of {total}");
            }
            let set = opener.open(config)?;
            sets.served.push(set.served);
            sets.watches.extend(set.watch);
            sets.rdf.extend(set.rdf);
            sets.versions.extend(set.versions);
        }
        Ok(sets)
    }
}

fn open_api(config: &ApiConfig, data: &Path) -> Result<Api> {
    let api = Api::new(ApiOptions {
        write: config.write,
        readers: config.readers,
        local: config.local,
        max_content: config.max_content,
        ..ApiOptions::new(abreast_server::api::tokens_path(data))
    });
    api.context("cannot read the tokens of the API")
}

/// Starts to archive old lists, if any set keeps them.
fn start_archiving(site: &Arc<Site>) -> Result<Option<archive::Keeper>> {
    if site.publisher.sets().iter().all(|set| set.archive().is_none()) {
        return Ok(None);
    }
    let publisher = SitePublisher(Arc::clone(site));
    archive::Keeper::start(publisher)
        .map(Some)
        .context("cannot start the thread that archives lists")
}

/// Starts to make dumps, if any set has them.
fn start_dumping(dumps: &Arc<Dumps>, site: &Site) -> Result<Option<Dumper>> {
    let sets: Vec<_> =
        site.publisher.sets().iter().filter_map(|set| set.dumps().cloned()).collect();
    if sets.is_empty() {
        return Ok(None);
    }
    dumps.start(sets).map(Some).context("cannot start the thread that makes dumps")
}

fn start_server(
    runtime: Runtime,
    server: Server,
    site: Arc<Site>,
    stopped: watch::Receiver<bool>,
) -> Result<JoinHandle<()>> {
    let run = move || {
        runtime.block_on(server.run(site, stopped));
        // Requests were waited for; nothing else is.
        runtime.shutdown_timeout(STOP_REST);
    };
    std::thread::Builder::new()
        .name("server".into())
        .spawn(run)
        .context("cannot start the server's thread")
}

/// Runs until a signal.
pub(crate) fn run(args: &ServeArgs) -> Result<()> {
    let config = config(args)?;
    let folders = config.sets.iter().filter_map(|set| set.origin.path());
    let folders: Vec<_> = folders.map(Path::to_owned).collect();
    crate::program::redirected::refuse_published_output(&folders)?;
    crate::program::open_files::raise_limit();
    let signals = Signals::listen()?;
    let shown: Vec<_> = config
        .sets
        .iter()
        .map(|set| {
            let origin = match &set.origin {
                Origin::Folder(folder) => folder.path.display().to_string(),
                Origin::Records => "records".to_owned(),
                Origin::Rdf(rdf) => match &rdf.descriptions {
                    Descriptions::Folder(folder) => folder.display().to_string(),
                    Descriptions::Endpoint(sparql) => sparql.url.clone(),
                    Descriptions::Given => "entities".to_owned(),
                },
            };
            (set.slug.clone(), origin)
        })
        .collect();
    let writes = config.api.write;
    let data = config.data.display().to_string();
    let running = Running::start(config)?;
    let choice = if shown.len() > 1 { " --all-sets" } else { "" };
    for (slug, folder) in shown {
        crate::program::logging::ready(&format!(
            "publishing {folder} as {}{slug}/capabilitylist.xml",
            running.base_url
        ));
    }
    crate::program::logging::ready(&format!(
        "  all addresses  {} (a page for people; change feeds are at SET/emm/1.0, SET/emm/0.1 and SET/iiif)",
        running.base_url
    ));
    let new = if running.is_new { " (new: the history of its sets begins now)" } else { "" };
    crate::program::logging::ready(&format!("  store          {data}{new}"));
    crate::program::logging::ready(&format!("  listening on   http://{}/", running.address));
    if writes {
        crate::program::logging::ready(&format!(
            "  changes go to  {}api/v1/ (docs/api.md)",
            running.base_url
        ));
    }
    crate::program::logging::ready(&format!(
        "  to mirror it   abreast sync {} FOLDER{choice}",
        running.base_url
    ));
    let signal = signals.wait_to_stop();
    tracing::info!(signal, "stopping: finishing requests in flight");
    running.stop();
    Ok(())
}
