//! A changed configuration, applied to a running Source: sets are added, removed and replaced, while all others, every
//! connection and every stream remain.
//!
//! A set with other settings is stopped before it is opened with them, since two writers of one set would contradict
//! each other; meanwhile its documents are served from the log. If it cannot be opened, it is opened with the former
//! settings.

use super::open_sets::RunningSet;
use super::running::{Running, api_options, served_sets};
use crate::config::settings::Declared as _;
use crate::config::{File, ServeConfig, SetConfig};
use crate::program::service;
use crate::store::open_set::SetOpener;
use abreast_server::Site;
use abreast_source::versions::KeptSet;
use anyhow::{Context as _, Result};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// The result of a reload, by set.
#[derive(Debug, Default)]
struct Done {
    added: Vec<String>,
    changed: Vec<String>,
    removed: Vec<String>,
    failed: Vec<String>,
}

impl Running {
    /// Applies a checked configuration. Settings for a start have the values of the start. Faults are logged, and never
    /// end the program.
    fn apply(&mut self, config: ServeConfig) {
        let mut done = Done::default();
        if config.keeps_contents() && self.parts.contents.is_none() {
            match self.parts.stores.contents() {
                Ok(contents) => self.parts.contents = Some(contents),
                // Sets that need it report the same.
                Err(error) => tracing::error!("{error:#}"),
            }
        }
        let notifies = (config.push.notify, config.push.nodes.clone());
        let is_notified_otherwise =
            notifies != (self.parts.push.notify, self.parts.push.nodes.clone());
        (self.parts.push.notify, self.parts.push.nodes) = notifies;
        self.parts.push.webhooks = config.push.webhooks;
        let before: Vec<String> = self.sets.iter().map(|set| set.slug().to_owned()).collect();
        let versions = self.versions();
        if let Err(error) =
            crate::store::served::record(&self.parts.stores, &*self.parts.log, &config.sets)
        {
            tracing::error!("cannot record the sets of the store: {error:#}");
        }
        let mut removed = self.exchange(config.sets, &mut done);
        let is_other_order =
            self.sets.iter().map(RunningSet::slug).ne(before.iter().map(String::as_str));
        let is_other = is_other_order || !(done.changed.is_empty() && done.failed.is_empty());
        let old = self.site.now();
        let options = api_options(&config.api, &self.parts.stores);
        let published = self.sets.iter().map(|set| Arc::clone(&set.served.published));
        let sets = served_sets(&self.sets, &self.parts.stores).unwrap_or_else(|error| {
            tracing::error!("former names of sets are not answered: {error:#}");
            self.sets.iter().map(|set| Arc::clone(&set.served)).collect()
        });
        self.site.replace(Site {
            publisher: old.publisher.with_sets(published).with_institution(config.institution),
            sets,
            api: old.api.as_ref().map(|api| api.with(options)),
            hub: old.hub.clone(),
            metrics: Arc::clone(&old.metrics),
            memory: old.memory.clone(),
            followers: old.followers.clone(),
            store: old.store.clone(),
        });
        drop(old);
        let access_log = config.listen.access_log();
        if access_log != self.access_log {
            self.access_log = access_log;
            self.reopen();
        }
        self.site.trust_proxies(config.listen.trusted_proxies);
        // No new request finds them any more.
        removed.iter().for_each(RunningSet::begin_stop);
        removed.iter_mut().for_each(RunningSet::stop);
        for set in &removed {
            abreast_server::forget_set(set.slug());
        }
        if versions != self.versions() {
            self.workers.collector = None;
        }
        if let Err(error) = self.workers.start(&self.parts, &self.site, &self.sets) {
            tracing::error!("{error:#} (help: reload again, or restart)");
        }
        let is_due = is_other || is_notified_otherwise || self.lacks_notifier();
        // The same files can contain new secrets.
        if !is_due && let Some(delivery) = &self.delivery {
            let kept = delivery.keep_webhooks(&self.parts.push, &self.site.now());
            if let Err(error) = kept {
                tracing::error!("{error:#} (help: reload again, or restart)");
            }
        }
        if is_due && let Err(error) = self.notify_again() {
            tracing::error!(
                "changes are recorded, but not notified: {error:#} (help: reload again, or restart)"
            );
        }
        done.log();
    }

    fn versions(&self) -> Vec<KeptSet> {
        self.sets.iter().filter_map(|set| set.versions.clone()).collect()
    }

    fn lacks_notifier(&self) -> bool {
        self.workers.notifier.is_none() && self.parts.push.notify.is_some()
    }

    /// The notifier of the current sets, in place of the former one. Subscribers and event streams remain in the hub;
    /// changes in between are notified afterwards.
    fn notify_again(&mut self) -> Result<()> {
        let Some(delivery) = &mut self.delivery else { return Ok(()) };
        if let Some(notifier) = self.workers.notifier.take() {
            notifier.stop();
        }
        let place = self.parts.stores.notified()?;
        self.workers.notifier = delivery.notify(&self.parts.push, &self.site, place)?;
        Ok(())
    }

    /// Opens new and changed sets of the configuration; returns the removed sets, which still run.
    fn exchange(&mut self, configs: Vec<SetConfig>, done: &mut Done) -> Vec<RunningSet> {
        let mut running: HashMap<String, RunningSet> =
            self.sets.drain(..).map(|set| (set.slug().to_owned(), set)).collect();
        let is_same =
            |set: &RunningSet, config: &SetConfig| !set.is_stopped && set.config.is_as(config);
        let replaced: Vec<&RunningSet> = configs
            .iter()
            .filter_map(|config| running.get(&config.slug).filter(|set| !is_same(set, config)))
            .collect();
        // All at the same time: a watch may be in the middle of a large file.
        for set in &replaced {
            set.begin_stop();
        }
        // The thread may be reading the list of a set that is replaced.
        if replaced.iter().any(|set| set.served.published.archive().is_some()) {
            self.workers.keeper = None;
        }
        let opener = self.parts.opener(false);
        for config in configs {
            let slug = config.slug.clone();
            match running.remove(&slug) {
                Some(set) if is_same(&set, &config) => self.sets.push(set),
                Some(set) => self.sets.push(replace(&opener, set, config, done)),
                None => match RunningSet::open(&opener, config, None) {
                    Ok(set) => {
                        done.added.push(slug);
                        self.sets.push(set);
                    }
                    Err(error) => {
                        tracing::error!(set = %slug, "the set `{slug}` cannot be added: {error:#}");
                        done.failed.push(slug);
                    }
                },
            }
        }
        let removed: Vec<RunningSet> = running.into_values().collect();
        done.removed.extend(removed.iter().map(|set| set.slug().to_owned()));
        done.removed.sort_unstable();
        removed
    }
}

/// Stops a set, and opens it with other settings; if that fails, with its own.
fn replace(
    opener: &SetOpener<'_>,
    mut set: RunningSet,
    config: SetConfig,
    done: &mut Done,
) -> RunningSet {
    let slug = config.slug.clone();
    set.stop();
    let error = match RunningSet::open(opener, config, Some(&set)) {
        Ok(set) => {
            done.changed.push(slug);
            return set;
        }
        Err(error) => error,
    };
    tracing::error!(set = %slug, "the set `{slug}` keeps its former settings: {error:#}");
    done.failed.push(slug.clone());
    match RunningSet::open(opener, set.config.clone(), Some(&set)) {
        Ok(set) => set,
        Err(error) => {
            tracing::error!(
                set = %slug,
                "the set `{slug}` is served as it is, and no change is recorded: {error:#} (help: reload again)"
            );
            set.served.published.watch.fail(format!("{error:#}"));
            set
        }
    }
}

impl Done {
    fn log(&self) {
        let mut text = String::new();
        for (what, names) in [
            ("added", &self.added),
            ("changed", &self.changed),
            ("removed", &self.removed),
            ("failed", &self.failed),
        ] {
            if !names.is_empty() {
                let _ = write!(text, "; {what}: {}", names.join(", "));
            }
        }
        if text.is_empty() {
            text.push_str("; the sets are the same");
        }
        tracing::info!("reloaded{text}");
    }
}

/// Replaces the settings that only a start applies by the values of the start, and logs differences.
fn keep_of_start(new: &mut File, start: &File) {
    let mut differences = Vec::new();
    for (key, [before, after]) in
        start.different(new).into_iter().filter(|(key, _)| key.is_of_start)
    {
        let plain = |value: &str| value.trim_matches('"').to_owned();
        match key.name {
            "hub" => {
                let of = |file: &File| file.hub.clone().unwrap_or_default();
                let keys = of(start).different(&of(new));
                differences
                    .extend(keys.iter().map(|(key, _)| format!("`hub.{}` changed", key.name)));
            }
            "database" => {
                let of = |file: &File| file.database.clone().unwrap_or_default();
                let keys = of(start).different(&of(new));
                differences
                    .extend(keys.iter().map(|(key, _)| format!("`database.{}` changed", key.name)));
            }
            "xmpp" => {
                let of = |file: &File| file.xmpp.clone().unwrap_or_default();
                let keys = of(start).different(&of(new));
                differences
                    .extend(keys.iter().map(|(key, _)| format!("`xmpp.{}` changed", key.name)));
            }
            name => {
                let value = |text: &str| match text {
                    "None" => "the default".to_owned(),
                    text => format!("`{}`", plain(text)),
                };
                let (before, after) = (value(&before), value(&after));
                differences.push(format!("`{name}` changed from {before} to {after}"));
            }
        }
    }
    let of = |file: &File| file.notify.clone().unwrap_or_default();
    let keys = of(start).different(&of(new));
    let notify = keys.iter().filter(|(key, _)| key.is_of_start);
    differences.extend(notify.map(|(key, _)| format!("`notify.{}` changed", key.name)));
    if let Some(notify) = &mut new.notify {
        notify.enabled = of(start).enabled;
    } else if start.notify.is_some() {
        new.notify.get_or_insert_default().enabled = of(start).enabled;
    }
    new.listen.clone_from(&start.listen);
    new.base_url.clone_from(&start.base_url);
    new.data.clone_from(&start.data);
    new.contents.clone_from(&start.contents);
    new.scratch.clone_from(&start.scratch);
    new.node.clone_from(&start.node);
    new.database.clone_from(&start.database);
    new.http2 = start.http2;
    new.strip_prefix = start.strip_prefix;
    new.tls.clone_from(&start.tls);
    new.hub.clone_from(&start.hub);
    new.xmpp.clone_from(&start.xmpp);
    if !differences.is_empty() {
        let takes = if differences.len() == 1 { "takes" } else { "take" };
        tracing::warn!("{}: {takes} effect after a restart", differences.join(", "));
    }
}

impl Running {
    /// Reads and applies a file; settings that only a start applies have the values of `start`. A fault is logged, and
    /// changes nothing.
    pub(super) fn reload(&mut self, read: impl FnOnce() -> Result<File>, start: &File) {
        service::begin_reload();
        match read().and_then(|file| checked(file, start)) {
            Ok(config) => self.apply(config),
            Err(error) => tracing::error!("the configuration remains as it was: {error:#}"),
        }
        self.service.end_reload();
    }
}

/// The configuration to apply.
fn checked(mut file: File, start: &File) -> Result<ServeConfig> {
    // As at the next start, so that no fault is found only there.
    ServeConfig::check_to_serve(file.clone())?;
    if start.is_in_folder() {
        file.data = file.store_folder();
    }
    keep_of_start(&mut file, start);
    let config = ServeConfig::check_to_serve(file)
        .context("with the settings that only a restart changes")?;
    let folders = config.sets.iter().filter_map(|set| set.origin.path());
    let folders: Vec<_> = folders.map(ToOwned::to_owned).collect();
    crate::program::redirected::refuse_published_output(&folders)?;
    // The limit of open files leaves fewer for connections.
    let most = abreast_server::ServerOptions::default().connections;
    crate::program::open_files::connections(config.sets.len(), most)?;
    Ok(config)
}
