//! One set of a configuration, opened: its log, its watch, and the parts of it that are published,
//! served and packaged.

use crate::config::{Descriptions, FolderOrigin, Origin, RdfOrigin, SetConfig};
use crate::program::progress::{Progress, ProgressArgs};
use crate::store::stores::Stores;
use abreast_core::contents::ContentStore;
use abreast_core::{Beginning, ChangeLog, Lease, NewSet, PageRule, SetId};
use abreast_folder::Folder;
use abreast_server::ServedSet;
use abreast_source::archive::Archive;
use abreast_source::deposit::Deposit;
use abreast_source::dump::{DumpSet, Dumps};
use abreast_source::links::Links;
use abreast_source::origin::rdf::{EntityWriter, RdfFolder, RdfWatch};
use abreast_source::origin::sparql::SparqlSet;
use abreast_source::projection::resourcesync_0_1::{PushLink, subscribe_url};
use abreast_source::projection::sdshare::{SetSnapshots, SnapshotOptions};
use abreast_source::publish::{Notifications, PublishedSet, SetUrls, SourceUrls};
use abreast_source::versions::{KeptSet, VersionUrls};
use abreast_source::watch::{Watch, WatchOptions};
use abreast_source::{Copies, Private, Representations, WatchStatus};
use anyhow::{Context as _, Result};
use std::sync::Arc;

/// The parts that all sets of a Source share.
pub(crate) struct SetOpener<'a> {
    pub(crate) stores: &'a Stores,
    pub(crate) log: &'a Arc<dyn ChangeLog>,
    pub(crate) urls: &'a SourceUrls,
    /// Kept contents, if any set keeps versions.
    pub(crate) contents: Option<&'a Arc<dyn ContentStore>>,
    /// The shared part of all dumps.
    pub(crate) dumps: &'a Arc<Dumps>,
    /// Where every set's notifications are subscribed to, if there are any.
    pub(crate) notifications: Option<Notifications>,
    /// Whether callbacks subscribe here to every set's change sets.
    pub(crate) callbacks: bool,
    /// The service with the nodes that change sets are published to, if there is one.
    pub(crate) xmpp_service: Option<&'a str>,
    /// Whether the files that are missing at the start were removed on purpose.
    pub(crate) confirm_deletions: bool,
    /// How scans, dumps and snapshots are shown.
    pub(crate) progress: &'a ProgressArgs,
}

/// A set that is served.
pub(crate) struct OpenSet {
    pub(crate) served: ServedSet,
    /// The watch of its folder.
    pub(crate) watch: Option<Watch>,
    /// The watch of the files that describe its entities.
    pub(crate) rdf: Option<RdfWatch>,
    /// The rule by which its versions are collected, if it keeps them.
    pub(crate) versions: Option<KeptSet>,
    /// Shows its scans, dumps and snapshots.
    pub(crate) progress: [Progress; 3],
}

/// Opens a set in the log.
///
/// # Errors
/// The log fails.
pub(crate) fn open_log(log: &dyn ChangeLog, set: &SetConfig) -> Result<SetId> {
    let page_rule = PageRule { changes: set.changes_per_list, ..PageRule::default() };
    let opened = log
        .open_set(&NewSet {
            slug: set.slug.clone(),
            page_rule,
            beginning: set.beginning,
            incomplete: set.is_read(),
        })
        .with_context(|| format!("cannot open the set `{}`", set.slug))?;
    Ok(opened.id)
}

/// The URLs of a set.
pub(crate) fn set_urls(urls: &SourceUrls, set: &SetConfig) -> SetUrls {
    let of_set = urls.set(&set.slug);
    match &set.origin {
        Origin::Rdf(rdf) => of_set.of_entities(&rdf.namespace),
        Origin::Folder(_) | Origin::Records => of_set,
    }
}

/// Opens a published folder.
///
/// # Errors
/// It cannot be opened.
pub(crate) fn open_folder(folder: &FolderOrigin, private: &Private) -> Result<Folder> {
    abreast_source::open_folder(&folder.path, folder.follow_links, &folder.filter, private)
        .with_context(|| format!("cannot open the published folder `{}`", folder.path.display()))
}

/// A set as every command publishes it, with its archive.
///
/// # Errors
/// Its links are wrong, or its archive cannot be opened.
pub(crate) fn publish(
    stores: &Stores,
    set: &SetConfig,
    id: SetId,
    urls: SetUrls,
    representations: Representations,
) -> Result<PublishedSet> {
    let open_archive = |rule| {
        let shared = stores.made_files()?.map(|files| files.of_set(&set.slug));
        Archive::open(stores.path("archives").join(&set.slug), rule, shared.as_ref())
            .map(Arc::new)
            .with_context(|| format!("cannot open the archive of the set `{}`", set.slug))
    };
    let published = PublishedSet {
        representations,
        links: set.links.published()?,
        about: set.about.clone(),
        ..PublishedSet::new(id, set.slug.clone(), urls)
    };
    Ok(published
        .with(Some(Arc::new(set.feeds.clone())))
        .with(Some(Arc::new(set.resourcesync_0_1.clone())))
        .with(set.archives.map(open_archive).transpose()?))
}

impl SetOpener<'_> {
    /// Opens a set, and starts to watch its folder if it has one. `former` is the same set with other
    /// settings, which requests in progress still use.
    ///
    /// # Errors
    /// The log, the folder or the archive cannot be opened, or the links are wrong.
    pub(crate) fn open(&self, set: SetConfig, former: Option<&ServedSet>) -> Result<OpenSet> {
        let id = open_log(&**self.log, &set)?;
        let urls = set_urls(self.urls, &set);
        let links = set.links.policy(&urls.resources())?;
        let keep = |versions| crate::config::versions::keep(&**self.log, id, &set.slug, versions);
        // The watch records versions from its first change on.
        let mut versions = set.versions.map(|versions| keep(Some(versions))).transpose()?.flatten();
        let progress = [(); 3].map(|()| self.progress.begin_job(false, false, Some(&set.slug)));
        let [of_scans, of_dumps, of_snapshots] = &progress;
        let opened = match &set.origin {
            Origin::Records => self.records(&set.slug, id)?,
            Origin::Rdf(origin) => self.rdf(origin, &set.slug, id, of_scans)?,
            Origin::Folder(folder) => self.folder(folder, id, (&links, of_scans), &set, former)?,
        };
        let Opened { representations, watch, rdf, status, copies, deposit, entities } = opened;
        let before = former.and_then(|set| set.deposit.as_ref());
        let deposit = match (deposit, before) {
            (Some(deposit), Some(before)) => Some(deposit.after(before)),
            (deposit, _) => deposit,
        };
        let before = former.and_then(|set| set.entities.as_ref());
        let entities = match (entities, before) {
            (Some(entities), Some(before)) => Some(entities.after(before)),
            (entities, _) => entities,
        };
        let (deposit, entities) = (deposit.map(Arc::new), entities.map(Arc::new));
        let dumps = set.dumps.clone().map(|options| {
            let (slug, urls, representations) =
                (set.slug.clone(), urls.clone(), representations.clone());
            let opened = self.dumps.open_set(DumpSet { id, slug, urls, representations, options });
            opened.inspect(|dumps| dumps.show(of_dumps.meter())).with_context(|| {
                format!("cannot open the folder of dumps of the set `{}`", set.slug)
            })
        });
        let snapshots = if urls.naming().names_entities() {
            let folder = self.stores.path("snapshots").join(&set.slug);
            let shared = self.stores.made_files()?.map(|files| files.of_set(&set.slug));
            let (log, options) = (Arc::clone(self.log), SnapshotOptions::default());
            let opened = SetSnapshots::open(
                log,
                id,
                representations.clone(),
                folder,
                options,
                shared.as_ref(),
            );
            let snapshots = opened.with_context(|| {
                format!("cannot open the folder of snapshots of the set `{}`", set.slug)
            })?;
            snapshots.show(of_snapshots.meter());
            // The first client of a change feed finds it.
            let begun = Arc::clone(&snapshots);
            match &rdf {
                Some(watch) => watch.status().when_read(move || begun.begin()),
                None => begun.begin(),
            }
            Some(snapshots)
        } else {
            None
        };
        let version_urls = match self.log.head(id)?.versions_since {
            Some(since) if versions.is_some() => {
                Some(VersionUrls::new(self.urls, &set.slug, urls.naming()).since(since))
            }
            _ => None,
        };
        let mut options = set.resourcesync_0_1.clone();
        if self.callbacks {
            options.push.push(PushLink::callback(subscribe_url(&urls)));
        }
        if let Some(service) = self.xmpp_service {
            options.push.push(PushLink::xmpp(service, set.xmpp_node.as_str()));
        }
        let published = PublishedSet {
            versions: version_urls,
            notifications: self.notifications.clone(),
            copies,
            watch: status,
            ..publish(self.stores, &set, id, urls, representations)?
        };
        let published =
            published.with(dumps.transpose()?).with(snapshots).with(Some(Arc::new(options)));
        let published = Arc::new(published);
        let link = abreast_server::set_link(&published)
            .context("the base URL cannot stand in a header")?;
        let title = set.title;
        let served = ServedSet { published, title, link, links, deposit, entities };
        // After everything that can fail: the log does not list earlier versions any more.
        if set.versions.is_none() {
            versions = keep(None)?;
        }
        Ok(OpenSet { served, watch, rdf, versions, progress })
    }

    fn private(&self) -> Private {
        Private::new([self.urls.base().to_owned()])
    }

    fn kept(&self, representations: Representations) -> Representations {
        representations.with_kept(crate::config::versions::reader(self.contents))
    }

    /// There is nothing to read first: changes are recorded from now on.
    fn records(&self, slug: &str, id: SetId) -> Result<Opened> {
        self.log.complete_import(id).with_context(|| format!("cannot open the set `{slug}`"))?;
        let representations = self.kept(Representations::elsewhere());
        Ok(Opened {
            representations,
            watch: None,
            rdf: None,
            status: Arc::new(WatchStatus::stopped()),
            copies: Copies::default(),
            deposit: None,
            entities: None,
        })
    }

    /// Entities, and the watch of what describes them.
    fn rdf(
        &self,
        origin: &RdfOrigin,
        slug: &str,
        id: SetId,
        progress: &Progress,
    ) -> Result<Opened> {
        let contents = self.contents.context("descriptions of entities have no place")?;
        let representations = self.kept(Representations::elsewhere());
        let mut options = origin.options(crate::store::rdf_files::temporary_folder(self.stores)?);
        options.meter = progress.meter();
        options.lease = match origin.descriptions {
            Descriptions::Given => Lease::always(),
            Descriptions::Folder(_) | Descriptions::Endpoint(_) => self.watch_lease(slug)?,
        };
        let record = Some(options.record_of_files(slug));
        let (log, contents) = (Arc::clone(self.log), Arc::clone(contents));
        let watch = match &origin.descriptions {
            Descriptions::Given => {
                // Of an import that failed, nothing was recorded: the set is empty, and may be filled another way.
                let head = log.head(id)?;
                if head.importing && head.position.0 == 0 {
                    log.complete_import(id)?;
                }
                let imports = self.stores.work_on_request(format!("import/{slug}"))?;
                let entities = EntityWriter::new(log, id, contents, &options).with_imports(imports);
                return Ok(Opened {
                    representations,
                    watch: None,
                    rdf: None,
                    status: Arc::new(WatchStatus::stopped()),
                    copies: Copies::default(),
                    deposit: None,
                    entities: Some(entities),
                });
            }
            Descriptions::Folder(path) => RdfWatch::start(RdfFolder {
                path: path.clone(),
                private: self.private(),
                log,
                set: id,
                contents,
                options,
                record,
            }),
            Descriptions::Endpoint(sparql) => {
                RdfWatch::poll(SparqlSet::new((**sparql).clone(), log, id, contents, options))
            }
        };
        let watch = watch.with_context(|| format!("cannot start the watch of the set `{slug}`"))?;
        if self.confirm_deletions {
            watch.status().confirm_deletions();
        }
        let status = Arc::clone(watch.status());
        Ok(Opened {
            representations,
            watch: None,
            rdf: Some(watch),
            status,
            copies: Copies::default(),
            deposit: None,
            entities: None,
        })
    }

    fn folder(
        &self,
        folder: &FolderOrigin,
        id: SetId,
        (links, progress): (&Arc<Links>, &Progress),
        set: &SetConfig,
        former: Option<&ServedSet>,
    ) -> Result<Opened> {
        let private = self.private();
        let is_shared = self.stores.database().is_some();
        let opened = match (&set.missing, open_folder(folder, &private)) {
            (_, Ok(opened)) => Some(opened),
            // Another node may have it.
            (_, Err(_)) if is_shared => None,
            // The watch waits for it, and reports it.
            (Some(_), Err(_)) => None,
            (None, Err(error)) => return Err(error),
        };
        let mut options = WatchOptions::new(&folder.path);
        options.ingest.digests = folder.digests;
        options.ingest.links = Arc::clone(links);
        options.ingest.meter = progress.meter();
        if set.versions.is_some() || is_shared {
            options.ingest.contents = self.contents.cloned();
        }
        options.lease = self.watch_lease(&set.slug)?;
        options.ingest.lease = options.lease.clone();
        options.debounce = folder.debounce;
        options.at_once = !folder.wait_for_quiet;
        options.hold_deletions = folder.hold_deletions;
        options.confirm_deletions = self.confirm_deletions;
        options.initial_changes = set.beginning == Beginning::Log;
        options.rescan = folder.rescan;
        options.reread = folder.reread;
        options.events = folder.events;
        options.follow_links = folder.follow_links;
        options.filter = Arc::clone(&folder.filter);
        let copies = private.copies().clone();
        options.private = private;
        if let Some(before) = former.and_then(|set| set.deposit.as_ref()) {
            before.share_writes(&mut options.ingest);
        }
        // The folder may be on another node.
        let deposit =
            (!is_shared).then(|| Deposit::new(Arc::clone(self.log), id, options.ingest.clone()));
        let watch = Watch::start(options, Arc::clone(self.log), id);
        let status = Arc::clone(watch.status());
        let representations = self.kept(if is_shared {
            Representations::of_stored_files()
        } else {
            Representations::of_folder_if_there(opened, Arc::clone(&status))
        });
        Ok(Opened {
            representations,
            watch: Some(watch),
            rdf: None,
            status,
            copies,
            deposit,
            entities: None,
        })
    }

    /// The lease of the watch of a set.
    fn watch_lease(&self, slug: &str) -> Result<Lease> {
        self.stores.lease(format!("watch/{slug}"))
    }
}

/// The origin of a set, opened.
struct Opened {
    representations: Representations,
    watch: Option<Watch>,
    rdf: Option<RdfWatch>,
    status: Arc<WatchStatus>,
    copies: Copies,
    deposit: Option<Deposit>,
    entities: Option<EntityWriter>,
}
