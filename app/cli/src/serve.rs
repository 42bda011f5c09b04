//! `abreast serve`: watch folders and publish them, until told to stop.

use crate::args::ServeArgs;
use crate::config::{File, ServeConfig, SetConfig, SetFile, Unusable};
use crate::data_folder::NewData;
use crate::push::{Delivery, SitePublisher};
use crate::signals::Signals;
use abreast_core::{ChangeLog, NewSet, PageRule, SystemClock};
use abreast_folder::Folder;
use abreast_server::api::{Api, ApiOptions};
use abreast_server::{ServedSet, Server, ServerOptions, Site};
use abreast_source::archive::{self, Archive};
use abreast_source::deposit::Deposit;
use abreast_source::dump::{DumpSet, Dumper, Dumps};
use abreast_source::notify::Notifier;
use abreast_source::publish::{PublishedSet, Publisher, SourceUrls};
use abreast_source::versions::{Collector, VersionUrls};
use abreast_source::watch::{Watch, WatchOptions};
use abreast_store::SqliteLog;
use anyhow::{Context as _, Result, bail};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

/// Time for what requests left behind, once they are finished or given up.
const STOP_REST: Duration = Duration::from_millis(500);

/// Folder and flags over the configuration file.
pub(crate) fn config(args: &ServeArgs) -> Result<ServeConfig> {
    let mut file = match &args.config {
        Some(path) => File::read_with_faults(path)?,
        None => File::default(),
    };
    if let Some(folder) = &args.folder {
        if !file.set.is_empty() {
            bail!(Unusable("both a folder and `[[set]]` in the configuration (help: leave one of them out)".into()));
        }
        file.set.push(SetFile {
            name: args.name.clone(),
            title: args.title.clone(),
            follow_links: args.follow_links.then_some(true),
            filter: args.rules.rules.clone(),
            folder: folder.clone(),
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
    file.given(args.listen.as_ref(), args.base_url.as_ref(), args.data.as_ref());
    let mut config = ServeConfig::check(file)?;
    config.confirm_deletions = args.confirm_deletions;
    Ok(config)
}

/// A running Source; stops in order when told.
pub(crate) struct Running {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Its public base URL, ending in `/`.
    pub(crate) base_url: String,
    stop: watch::Sender<bool>,
    thread: JoinHandle<()>,
    watches: Vec<Watch>,
    dumper: Option<Dumper>,
    keeper: Option<archive::Keeper>,
    notifier: Option<Notifier>,
    delivery: Option<Delivery>,
    collector: Option<Collector>,
    /// Held: no second process writes the same store.
    _lock: abreast_folder::Locked,
}

impl Running {
    /// Opens the store, starts watching and listening.
    pub(crate) fn start(config: ServeConfig) -> Result<Self> {
        // A second Source in this process shares the first one's recorder, and shows nothing of its own.
        let metrics: Box<dyn Fn() -> String + Send + Sync> =
            match metrics_exporter_prometheus::PrometheusBuilder::new().install_recorder() {
                Ok(recorder) => Box::new(move || recorder.render()),
                Err(_) => Box::new(String::new),
            };
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
        let server = runtime
            .block_on(Server::bind(config.listen, ServerOptions::default()))
            .context("cannot start the server (help: if the address is in use, choose another with --listen)")?;
        let address = server.address().context("cannot learn the address listened on")?;
        let new_data = NewData::make(&config.data)?;
        let data = Folder::open(&config.data).context("cannot open the store's folder")?;
        let lock = data.root().lock(b"source.lock").context("cannot lock the store")?;
        let Some(lock) = lock else {
            bail!(
                "another abreast is serving from the store `{}` (help: stop it, or name another with --data)",
                config.data.display()
            );
        };
        let new_data = new_data.locked();
        let path = config.data.join("source.db");
        let log: Arc<dyn ChangeLog> = Arc::new(
            SqliteLog::open(&path, Arc::new(SystemClock))
                .with_context(|| format!("cannot open the store `{}`", path.display()))?,
        );
        let urls = SourceUrls::new(&config.base_url.unwrap_or_else(|| format!("http://{address}/")));
        let (mut published, mut served, mut watches, mut abouts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut dump_sets = Vec::new();
        let contents = crate::versions::open(&config.data, &config.sets)?;
        let mut kept_sets = Vec::new();
        let mut archives = Vec::new();
        for set in config.sets {
            let page_rule = PageRule { changes: set.changes_per_list, ..PageRule::default() };
            let opened = log
                .open_set(&NewSet { slug: set.slug.clone(), page_rule, ..NewSet::default() })
                .with_context(|| format!("cannot open the set `{}`", set.slug))?;
            let set_urls = urls.set(&set.slug);
            let mut options = WatchOptions::new(&set.folder);
            options.ingest.digests = set.digests;
            options.debounce = set.debounce;
            options.at_once = !set.wait_for_quiet;
            options.hold_deletions = set.hold_deletions;
            options.confirm_deletions = config.confirm_deletions;
            options.rescan = set.rescan;
            options.reread = set.reread;
            options.events = set.events;
            options.follow_links = set.follow_links;
            options.filter = Arc::clone(&set.filter);
            let kept = crate::versions::keep(&*log, opened.id, &set)?;
            if kept.is_some() {
                options.ingest.contents.clone_from(&contents);
            }
            options.ingest.links = set.links.policy(&set_urls.resources())?;
            let links = Arc::clone(&options.ingest.links);
            let deposit = (config.api.write && !set.records)
                .then(|| Arc::new(Deposit::new(Arc::clone(&log), opened.id, options.ingest.clone())));
            let (watch, status) = if set.records {
                // Nothing to read first: changes are taken in from now on.
                log.complete_import(opened.id).with_context(|| format!("cannot open the set `{}`", set.slug))?;
                std::fs::create_dir_all(&set.folder).context("cannot make a folder in the store")?;
                (None, Arc::default())
            } else {
                let watch = Watch::start(options, Arc::clone(&log), opened.id);
                let status = Arc::clone(watch.status());
                (Some(watch), status)
            };
            let served_folder = abreast_source::open_folder(&set.folder, set.follow_links, &set.filter)
                .context("cannot open a published folder")?;
            served.push(ServedSet {
                slug: set.slug.clone(),
                title: set.title.clone(),
                folder: served_folder.clone(),
                watch: Arc::clone(&status),
                link: abreast_server::resourcesync_link(&set_urls.capability_list())
                    .context("the base URL cannot stand in a header")?,
                links,
                deposit,
                records: set.records,
            });
            archives.push(open_archive(&config.data, &set)?);
            abouts.push(set.about);
            let versions = kept.is_some().then(|| VersionUrls::new(&urls, &set.slug, &set_urls.resources()));
            kept_sets.extend(kept);
            let set_published = PublishedSet {
                versions,
                links: set.links.published()?,
                ..PublishedSet::new(opened.id, set.slug, set_urls)
            };
            dump_sets.push(DumpSet {
                set: set_published.clone(),
                folder: served_folder,
                watch: status,
                kept: crate::versions::reader(contents.as_ref()),
                options: set.dumps,
            });
            watches.extend(watch);
            published.push(set_published);
        }
        let sets = published.len();
        let dumps = Dumps::open(Arc::clone(&log), &config.data.join("dumps"), dump_sets)
            .context("cannot open the folder of dumps")?;
        let dumps = Arc::new(dumps);
        let publisher = Publisher::new(Arc::clone(&log), urls.clone(), published, config.data.join("documents"))
            .context("cannot make the folder for rendered documents")?
            .with_abouts(abouts)
            .with_archives(archives)
            .with_notifications(config.push.notifications(urls.base(), sets))
            .with_dumps(Arc::clone(&dumps));
        let publisher = match &contents {
            Some(contents) => publisher.with_contents(contents.clone()),
            None => publisher,
        };
        let api = Api::new(ApiOptions {
            write: config.api.write,
            readers: config.api.readers,
            local: config.api.local,
            max_content: config.api.max_content,
            ..ApiOptions::new(crate::api::tokens_path(&config.data))
        });
        let api = Some(api.context("cannot read the tokens of the API")?);
        let delivery = if config.push.is_wanted() { Some(config.push.start(&config.data, urls.base())?) } else { None };
        let hub = delivery.as_ref().map(|delivery| delivery.site_hub(&config.push));
        let site = Arc::new(Site { publisher, sets: served, api, hub, metrics });
        let notifier = match &delivery {
            Some(delivery) => delivery.notify(&config.push, &site, &config.data)?,
            None => None,
        };
        let keeper = if site.sets.iter().enumerate().any(|(set, _)| site.publisher.archive(set).is_some()) {
            let publisher = SitePublisher(Arc::clone(&site));
            Some(archive::Keeper::start(publisher).context("cannot start the thread that archives lists")?)
        } else {
            None
        };
        let (stop, stopped) = watch::channel(false);
        let thread = std::thread::Builder::new()
            .name("server".into())
            .spawn(move || {
                runtime.block_on(server.run(site, stopped));
                // What still runs is not waited for: requests were.
                runtime.shutdown_timeout(STOP_REST);
            })
            .context("cannot start the server's thread")?;
        let dumper =
            if dumps.any() { Some(dumps.start().context("cannot start the thread that makes dumps")?) } else { None };
        let collector = crate::versions::collect(log, contents.as_ref(), kept_sets)?;
        new_data.keep();
        Ok(Self {
            collector,
            address,
            base_url: urls.base().to_owned(),
            stop,
            thread,
            watches,
            dumper,
            keeper,
            notifier,
            delivery,
            _lock: lock,
        })
    }

    /// Stops: no new connection, no dump, requests in flight are finished, then the watches, then the store.
    pub(crate) fn stop(self) {
        let _ = self.stop.send(true);
        // All at once: each of them may be in the middle of a large file.
        self.watches.iter().for_each(Watch::begin_stop);
        // Before the requests are waited for: one of them may wait for a package.
        if let Some(dumper) = self.dumper {
            dumper.stop();
        }
        drop(self.keeper);
        drop(self.notifier);
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
    }
}

/// The archive of a set, if it keeps one.
pub(crate) fn open_archive(data: &Path, set: &SetConfig) -> Result<Option<Arc<Archive>>> {
    let Some(rule) = set.archives else { return Ok(None) };
    let archive = Archive::open(data.join("archives").join(&set.slug), rule)
        .with_context(|| format!("cannot open the archive of the set `{}`", set.slug))?;
    Ok(Some(Arc::new(archive)))
}

/// Runs until SIGTERM or SIGINT.
pub(crate) fn run(args: &ServeArgs) -> Result<()> {
    let config = config(args)?;
    raise_file_limit();
    let mut signals = Signals::listen()?;
    let shown: Vec<_> = config
        .sets
        .iter()
        .map(|set| {
            let what = if set.records { "records".to_owned() } else { set.folder.display().to_string() };
            (set.slug.clone(), what)
        })
        .collect();
    let writes = config.api.write;
    let data = config.data.display().to_string();
    let running = Running::start(config)?;
    for (slug, folder) in shown {
        crate::logging::ready(&format!("publishing {folder} as {}{slug}/capabilitylist.xml", running.base_url));
    }
    crate::logging::ready(&format!("  store          {data}"));
    crate::logging::ready(&format!("  listening on   http://{}/", running.address));
    if writes {
        crate::logging::ready(&format!("  changes go to  {}api/v1/ (docs/api.md)", running.base_url));
    }
    crate::logging::ready(&format!("  to mirror it   abreast sync {} FOLDER", running.base_url));
    signals.wait();
    tracing::info!("stopping: finishing requests in flight");
    running.stop();
    Ok(())
}

/// Many connections and folders need many file descriptors: take all that the system allows.
pub(crate) fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
