//! A running Source: its parts, its start and its stop.

use super::open_sets::{RunningSet, open_all};
use super::removals::Removals;
use crate::admin::served::{ListCopies, ServedAdmin};
use crate::command::status;
use crate::config::ServeConfig;
use crate::config::api::ApiConfig;
use crate::config::listen::{open_access_log, reopen};
use crate::config::push::{Delivery, PushConfig, SitePublisher};
use crate::program::progress::ProgressArgs;
use crate::program::service::{Service, start_server};
use crate::store::open_set::SetOpener;
use crate::store::stores::{Stores, Task};
use abreast_core::contents::ContentStore;
use abreast_core::{ChangeLog, LogError, NodeRole};
use abreast_net::ServerCertificate;
use abreast_server::api::{Api, ApiOptions};
use abreast_server::{
    AccessLogOptions, CurrentSite, Metrics, ServedSets, Server, ServerOptions, Site,
};
use abreast_source::archive;
use abreast_source::dump::{Dumper, Dumps};
use abreast_source::notify::Notifier;
use abreast_source::publish::{Publisher, SourceUrls};
use abreast_source::versions::Collector;
use anyhow::{Context as _, Result};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// A running Source, with an orderly stop.
pub(crate) struct Running {
    /// The URL of the address listened on.
    pub(crate) own_url: String,
    /// Its public base URL, ending in `/`.
    pub(crate) base_url: String,
    /// The store was made by this start.
    pub(super) is_new: bool,
    certificate: Option<Arc<ServerCertificate>>,
    pub(super) access_log: Option<AccessLogOptions>,
    pub(super) site: Arc<CurrentSite>,
    /// In their configured order.
    pub(super) sets: Vec<RunningSet>,
    pub(super) parts: Parts,
    pub(super) service: Service,
    admin: ServedAdmin,
    pub(super) delivery: Option<Delivery>,
    pub(super) workers: Workers,
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

/// The parts that all sets share, which remain while the program runs.
pub(super) struct Parts {
    pub(super) log: Arc<dyn ChangeLog>,
    urls: SourceUrls,
    /// The store of contents, if a set has needed it since the start.
    pub(super) contents: Option<Arc<dyn ContentStore>>,
    pub(super) dumps: Arc<Dumps>,
    pub(super) push: PushConfig,
    /// Locked: no second process writes the same stores.
    pub(super) stores: Stores,
    pub(super) progress: ProgressArgs,
}

impl Parts {
    pub(super) fn opener(&self, confirm_deletions: bool) -> SetOpener<'_> {
        SetOpener {
            stores: &self.stores,
            log: &self.log,
            urls: &self.urls,
            contents: self.contents.as_ref(),
            dumps: &self.dumps,
            notifications: self.push.notifications(self.urls.base()),
            callbacks: self.push.serves && self.push.notify.is_some(),
            xmpp_service: self.push.xmpp.as_ref().map(|xmpp| xmpp.service.as_str()),
            confirm_deletions,
            progress: &self.progress,
        }
    }
}

/// The threads that work for several sets.
#[derive(Default)]
pub(super) struct Workers {
    pub(super) dumper: Option<Dumper>,
    pub(super) keeper: Option<archive::Keeper>,
    pub(super) notifier: Option<Notifier>,
    pub(super) collector: Option<Collector>,
    removals: Option<Removals>,
}

impl Workers {
    /// Starts the threads that do not run and that a set needs, and passes the sets to the one that makes dumps.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub(super) fn start(
        &mut self,
        parts: &Parts,
        site: &Arc<CurrentSite>,
        sets: &[RunningSet],
    ) -> Result<()> {
        let published = || sets.iter().map(|set| &set.served.published);
        if self.keeper.is_none() && published().any(|set| set.archive().is_some()) {
            let current = Arc::clone(site);
            self.keeper = archive::Keeper::start(move || SitePublisher(current.now()))
                .map(Some)
                .context("cannot start the thread that archives lists")?;
        }
        let dumps: Vec<_> = published().filter_map(|set| set.dumps().cloned()).collect();
        match &self.dumper {
            Some(dumper) => dumper.replace(dumps),
            None if dumps.is_empty() => {}
            None => {
                let dumper = parts.dumps.start(dumps);
                self.dumper =
                    dumper.map(Some).context("cannot start the thread that makes dumps")?;
            }
        }
        if self.collector.is_none() {
            let versions = sets.iter().filter_map(|set| set.versions.clone()).collect();
            let (log, contents) = (Arc::clone(&parts.log), parts.contents.as_ref());
            let lease = parts.stores.lease("collect")?;
            self.collector = crate::config::versions::collect(log, contents, versions, lease)?;
        }
        Ok(())
    }
}

impl Running {
    /// Opens the stores, starts watching and listening.
    pub(crate) fn start(config: ServeConfig) -> Result<Self> {
        let metrics = metrics_recorder(&config.data);
        let Listening { runtime, server, address, certificate } = listen(&config)?;
        let access_log = open_access_log(config.listen.access_log().as_ref())?;
        let roles = config.roles();
        let is_new = config.database.is_none() && crate::store::served::check_new(&config)?;
        let stores = Stores::open_shared(&config.data, config.database.as_ref(), Task::Serve)?;
        let log = stores.served_log()?;
        let is_new = match stores.database() {
            Some(_) => log.sets()?.is_empty(),
            None => is_new,
        };
        crate::store::served::record(&stores, &*log, &config.sets)?;
        let contents = config.keeps_contents().then(|| stores.contents()).transpose()?;
        let urls = SourceUrls::new(&config.listen.base_url(address));
        let made_files = stores.made_files()?;
        let dumps = Dumps::new(Arc::clone(&log), stores.path("dumps"), made_files);
        let mut parts = Parts {
            log,
            urls,
            contents,
            dumps,
            push: config.push,
            stores,
            progress: config.progress,
        };
        let sets = open_all(&parts.opener(config.confirm_deletions), config.sets)?;
        let published = sets.iter().map(|set| Arc::clone(&set.served.published));
        let documents = parts.stores.path("documents");
        let publisher =
            Publisher::new(Arc::clone(&parts.log), parts.urls.clone(), published, documents)
                .context("cannot make the folder for rendered documents")?
                .with_all_projections()
                .with_institution(config.institution);
        let data = parts.stores.data();
        let api = Api::new(api_options(&config.api, &parts.stores));
        let api = Some(api.context("cannot read the tokens of the API")?);
        let mut delivery = if parts.push.is_wanted() {
            Some(parts.push.start(parts.stores.hub()?, parts.urls.base())?)
        } else {
            None
        };
        let hub = delivery.as_ref().map(|delivery| delivery.site_hub(&parts.push));
        let site = Arc::new(CurrentSite::new(Site {
            publisher,
            sets: served_sets(&sets, &parts.stores)?,
            api,
            hub,
            metrics,
            memory: abreast_server::Memory::default(),
            followers: abreast_server::Followers::default(),
            store: Some(data.to_owned()),
        }));
        site.log_access(access_log);
        let notifier = match &mut delivery {
            Some(delivery) => {
                let place = parts.stores.notified()?;
                delivery.notify(&parts.push, &site, place)?
            }
            None => None,
        };
        let sets_of_database = parts.stores.database().filter(|_| roles.has(NodeRole::Watch));
        let removals = sets_of_database
            .map(|database| Removals::start(database.sets()))
            .transpose()
            .context("cannot start the thread that deletes the rows of removed sets")?;
        let mut workers = Workers { notifier, removals, ..Workers::default() };
        workers.start(&parts, &site, &sets)?;
        let (stop, stopped) = watch::channel(false);
        let status =
            crate::program::service::status_of(runtime.handle().clone(), Arc::clone(&site));
        let handle = runtime.handle();
        let listed = config.file.clone();
        let copies = move || listed.as_deref().map(status::copies_of_jobs).unwrap_or_default();
        let pages = config.admin_pages.then(|| Box::new(copies) as ListCopies);
        let operators = config.admin.as_ref();
        let admin = crate::admin::served::start(handle, &site, data, operators, pages)?;
        let thread = start_server(runtime, server, Arc::clone(&site), stopped)?;
        parts.stores.keep();
        let base_url = parts.urls.base().to_owned();
        let service = Service::ready(status)?;
        Ok(Self {
            own_url: config.listen.own_url(address),
            base_url,
            is_new,
            certificate,
            access_log: config.listen.access_log(),
            site,
            sets,
            parts,
            service,
            admin,
            delivery,
            workers,
            stop,
            thread,
        })
    }

    /// Starts a scan of every folder, of RDF files too, and a poll of every endpoint, also at other nodes;
    /// returns their number.
    ///
    /// # Errors
    /// A request cannot be passed on to another node.
    pub(crate) fn scan(&self) -> Result<usize, LogError> {
        let watches = self.sets.iter().map(|set| &set.served.published.watch);
        watches
            .map(|watch| watch.request_scan())
            .try_fold(0, |number, is_started| Ok(number + usize::from(is_started?)))
    }

    /// Opens the access log again, whose file may have been renamed, and reads a changed certificate.
    pub(crate) fn reopen(&self) {
        reopen(&self.site, self.access_log.as_ref(), self.certificate.as_deref());
    }

    /// Stops: no new connection, no dump, requests in flight are finished, then the watches, then
    /// the store.
    pub(crate) fn stop(self) {
        self.service.stopping();
        drop(self.admin);
        let _ = self.stop.send(true);
        // All at the same time: a watch may be in the middle of a large file.
        self.sets.iter().for_each(RunningSet::begin_stop);
        // Before the requests are waited for: one of them may wait for a package.
        if let Some(dumper) = self.workers.dumper {
            dumper.stop();
        }
        drop(self.workers.keeper);
        drop(self.workers.notifier);
        for snapshots in self.sets.iter().filter_map(|set| set.served.published.snapshots()) {
            snapshots.stop();
        }
        if let Some(collector) = self.workers.collector {
            collector.stop();
        }
        drop(self.workers.removals);
        let _ = self.thread.join();
        self.site.log_access(None);
        if let Some(delivery) = self.delivery {
            delivery.stop();
        }
        for mut set in self.sets {
            set.stop();
        }
    }
}

/// The sets for requests, with the names that sets of the store had.
///
/// # Errors
/// The store cannot be read.
pub(super) fn served_sets(sets: &[RunningSet], stores: &Stores) -> Result<ServedSets> {
    let former = stores.former_sets()?;
    let served: ServedSets = sets.iter().map(|set| Arc::clone(&set.served)).collect();
    Ok(served.with_former(former))
}

/// Renders `/metrics`. A second Source in this process shares the first one's recorder, and shows
/// nothing of its own.
fn metrics_recorder(data: &Path) -> Arc<dyn Fn() -> String + Send + Sync> {
    match Metrics::install() {
        Ok(metrics) => crate::admin::served::render(metrics, data),
        Err(_) => Arc::new(String::new),
    }
}

/// A server that listens, and does not answer yet.
struct Listening {
    runtime: Runtime,
    server: Server,
    address: SocketAddr,
    certificate: Option<Arc<ServerCertificate>>,
}

fn listen(config: &ServeConfig) -> Result<Listening> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let most = ServerOptions::default().connections;
    let connections = crate::program::open_files::connections(config.sets.len(), most)?;
    let options = ServerOptions {
        redirect_from: config.database.as_ref().and_then(|database| database.redirect_from),
        roles: config.roles(),
        ..config.listen.options(connections)?
    };
    let certificate = options.certificate.clone();
    let server = crate::program::service::listen(&runtime, config.listen.address, options)?;
    let address = server.address().context("cannot learn the address listened on")?;
    Ok(Listening { runtime, server, address, certificate })
}

pub(super) fn api_options(config: &ApiConfig, stores: &Stores) -> ApiOptions {
    ApiOptions {
        write: config.write,
        readers: config.readers,
        local: config.local,
        max_content: config.max_content,
        ..ApiOptions::at(stores.tokens(), stores.data().to_owned())
    }
}
