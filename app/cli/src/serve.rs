//! `abreast serve`: watch folders and publish them, until told to stop.

use crate::args::ServeArgs;
use crate::config::{File, ServeConfig, SetFile};
use crate::signals::Signals;
use abreast_core::{ChangeLog, NewSet, PageRule, SystemClock};
use abreast_folder::Folder;
use abreast_server::{ServedSet, Server, ServerOptions, Site};
use abreast_source::publish::{PublishedSet, Publisher, SourceUrls};
use abreast_source::watch::{Watch, WatchOptions};
use abreast_store::SqliteLog;
use anyhow::{Context as _, Result, bail};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::watch;

/// Folder and flags over the configuration file.
pub(crate) fn config(args: &ServeArgs) -> Result<ServeConfig> {
    let mut file = match &args.config {
        Some(path) => File::read(path)?,
        None => File::default(),
    };
    if let Some(folder) = &args.folder {
        if !file.set.is_empty() {
            bail!("both a folder and `[[set]]` in the configuration (help: leave one of them out)");
        }
        file.set.push(SetFile {
            name: args.name.clone(),
            title: args.title.clone(),
            folder: folder.clone(),
            digests: args.digests.clone(),
            debounce: args.debounce.clone(),
            rescan: args.rescan.clone(),
            reread: None,
            events: args.no_events.then_some(false),
            changes_per_list: args.changes_per_list,
        });
    }
    file.listen = args.listen.clone().or(file.listen);
    file.base_url = args.base_url.clone().or(file.base_url);
    file.data = args.data.clone().or(file.data);
    ServeConfig::check(file)
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
    /// Held: no second process writes the same store.
    _lock: std::fs::File,
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
        std::fs::create_dir_all(&config.data)
            .with_context(|| format!("cannot make the store's folder `{}`", config.data.display()))?;
        let data = Folder::open(&config.data).context("cannot open the store's folder")?;
        let lock = data.root().lock(b"source.lock").context("cannot lock the store")?;
        let Some(lock) = lock else {
            bail!(
                "another abreast is serving from the store `{}` (help: stop it, or name another with --data)",
                config.data.display()
            );
        };
        let path = config.data.join("source.db");
        let log: Arc<dyn ChangeLog> = Arc::new(
            SqliteLog::open(&path, Arc::new(SystemClock))
                .with_context(|| format!("cannot open the store `{}`", path.display()))?,
        );
        let runtime =
            tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
        let server = runtime
            .block_on(Server::bind(config.listen, ServerOptions::default()))
            .context("cannot start the server (help: if the address is in use, choose another with --listen)")?;
        let address = server.address().context("cannot learn the address listened on")?;
        let urls = SourceUrls::new(&config.base_url.unwrap_or_else(|| format!("http://{address}/")));
        let (mut published, mut served, mut watches) = (Vec::new(), Vec::new(), Vec::new());
        for set in config.sets {
            let page_rule = PageRule { changes: set.changes_per_list, ..PageRule::default() };
            let opened = log
                .open_set(&NewSet { slug: set.slug.clone(), page_rule })
                .with_context(|| format!("cannot open the set `{}`", set.slug))?;
            let set_urls = urls.set(&set.slug);
            let mut options = WatchOptions::new(&set.folder);
            options.ingest.digests = set.digests;
            options.debounce = set.debounce;
            options.rescan = set.rescan;
            options.reread = set.reread;
            options.events = set.events;
            let watch = Watch::start(options, Arc::clone(&log), opened.id);
            served.push(ServedSet {
                slug: set.slug.clone(),
                title: set.title,
                folder: Folder::open(&set.folder).context("cannot open a published folder")?,
                watch: Arc::clone(watch.status()),
                link: abreast_server::resourcesync_link(&set_urls.capability_list())
                    .context("the base URL cannot stand in a header")?,
            });
            watches.push(watch);
            published.push(PublishedSet { id: opened.id, slug: set.slug, urls: set_urls });
        }
        let publisher = Publisher::new(Arc::clone(&log), urls.clone(), published, config.data.join("documents"))
            .context("cannot make the folder for rendered documents")?;
        let site = Arc::new(Site { publisher, sets: served, metrics });
        let (stop, stopped) = watch::channel(false);
        let thread = std::thread::Builder::new()
            .name("server".into())
            .spawn(move || runtime.block_on(server.run(site, stopped)))
            .context("cannot start the server's thread")?;
        Ok(Self { address, base_url: urls.base().to_owned(), stop, thread, watches, _lock: lock })
    }

    /// Stops: no new connection, requests in flight are finished, then the watches, then the store.
    pub(crate) fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.thread.join();
        for watch in self.watches {
            watch.stop();
        }
    }
}

/// Runs until SIGTERM or SIGINT.
pub(crate) fn run(args: &ServeArgs) -> Result<()> {
    let config = config(args)?;
    raise_file_limit();
    let mut signals = Signals::listen()?;
    let shown: Vec<_> = config.sets.iter().map(|set| (set.slug.clone(), set.folder.display().to_string())).collect();
    let data = config.data.display().to_string();
    let running = Running::start(config)?;
    for (slug, folder) in shown {
        crate::terminal::line(&format!("publishing {folder} as {}{slug}/capabilitylist.xml", running.base_url));
    }
    crate::terminal::line(&format!("  store          {data}"));
    crate::terminal::line(&format!("  listening on   http://{}/", running.address));
    crate::terminal::line(&format!("  to mirror it   abreast sync {} FOLDER", running.base_url));
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
