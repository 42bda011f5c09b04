//! Notifications: `[hub]` and `[notify]` of the configuration, and the services they start.

use crate::config::settings::{HubFile, NotifyFile, XmppFile};
use crate::config::webhook::WebhookConfig;
use crate::config::webhook_body::webhook_body;
use crate::config::xmpp::XmppConfig;
use abreast_core::hub::HubStore;
use abreast_core::{LogError, Position, TopicId};
use abreast_hub::{Gap, Hub, HubOptions, Payloads, Redirect, SubmissionKind, keep_submissions};
use abreast_server::{CurrentSite, Site, SiteHub};
use abreast_source::notify::{NotifiedPlace, Notifier, NotifyOptions};
use abreast_source::projection::{Topic, TopicContent};
use abreast_source::publish::{Notifications, PublishError, Publisher};
use abreast_websub::{LeaseLimits, Method};
use abreast_webtypes::without_login;
use anyhow::{Context as _, Result};
use bytes::Bytes;
use clap::Args;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// The lease granted when none is requested.
const LEASE: Duration = Duration::from_secs(10 * 24 * 3_600);

/// The same as flags.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Notifications")]
pub(crate) struct PushArgs {
    /// Also notify this hub of every change; repeatable
    #[arg(long = "hub", value_name = "URL", value_parser = crate::values::address::http_url)]
    pub(crate) hubs: Vec<String>,
    /// Do not run the built-in hub
    #[arg(long)]
    pub(crate) no_hub: bool,
}

impl PushArgs {
    /// Values of the flags, which override those of the file.
    pub(crate) fn over(&self, file: Option<HubFile>) -> Option<HubFile> {
        if self.hubs.is_empty() && !self.no_hub {
            return file;
        }
        let mut file = file.unwrap_or_default();
        file.hubs.extend(self.hubs.iter().cloned());
        if self.no_hub {
            file.enabled = Some(false);
        }
        Some(file)
    }
}

/// The hub and the notifications, checked.
#[derive(Clone, Debug)]
pub(crate) struct PushConfig {
    /// Strangers may subscribe here.
    pub(crate) serves: bool,
    pub(crate) hubs: Vec<String>,
    pub(crate) submit: SubmissionKind,
    /// Its URL is known later.
    pub(crate) options: HubOptions,
    pub(crate) notify: Option<NotifyOptions>,
    /// The account that publishes to nodes.
    pub(crate) xmpp: Option<XmppConfig>,
    /// The nodes' addresses by the names of their sets.
    pub(crate) nodes: BTreeMap<String, String>,
    /// The webhooks of each set.
    pub(crate) webhooks: BTreeMap<String, Vec<WebhookConfig>>,
}

/// Checks `[hub]`, `[notify]` and `[xmpp]`; every problem is added to the others.
pub(crate) fn check(
    hub: Option<HubFile>,
    notify: Option<NotifyFile>,
    xmpp: Option<XmppFile>,
    listen: SocketAddr,
    base_url: Option<&str>,
    problems: &mut Vec<String>,
) -> PushConfig {
    let (hub, notify) = (hub.unwrap_or_default(), notify.unwrap_or_default());
    let mut time = |key: &str, text: Option<&String>, default: Duration| match text {
        None => default,
        Some(text) => humantime::parse_duration(text).unwrap_or_else(|error| {
            problems.push(format!(
                "`{key}`: `{text}` is not a duration: {error} (help: write it as `200ms` or `10d`)"
            ));
            default
        }),
    };
    let mut options = HubOptions::new("");
    let (minute, day) = (Duration::from_secs(60), Duration::from_secs(24 * 3_600));
    let lease = time("hub.lease", hub.lease.as_ref(), LEASE);
    options.keep = time("hub.keep", hub.keep.as_ref(), options.keep);
    let debounce =
        time("notify.debounce", notify.debounce.as_ref(), NotifyOptions::default().debounce);
    let open_lists = time("notify.open_lists", notify.open_lists.as_ref(), minute);
    if (5 * minute..=31 * day).contains(&lease) {
        options.leases = LeaseLimits::new(lease, 5 * minute, 31 * day);
    } else {
        problems.push("`hub.lease`: out of range (help: 5m to 31d)".to_owned());
    }
    if let Some(path) = &hub.ca_file {
        crate::program::small_file::problem_of_certificates("hub.ca_file", path, problems);
        options.extra_roots = Some(path.clone());
    }
    if let Some(name) = &hub.signature {
        match Method::ALL.into_iter().find(|method| method.name() == name) {
            Some(method) => options.signature = method,
            None => {
                problems.push(format!(
                    "`hub.signature`: `{name}` is not known (help: sha1, sha256, sha384 or sha512)"
                ));
            }
        }
    }
    let submit = match hub.submit.as_deref() {
        None | Some("content") => SubmissionKind::Fat,
        Some("form") => SubmissionKind::Form,
        Some(other) => {
            problems.push(format!("`hub.submit`: `{other}` is not known (help: content or form)"));
            SubmissionKind::Fat
        }
    };
    for (key, url) in hub
        .hubs
        .iter()
        .map(|url| ("hub.hubs", url))
        .chain(hub.redirect.iter().map(|url| ("hub.redirect", url)))
    {
        if let Err(error) = abreast_websub::check_topic(url) {
            problems.push(format!(
                "`{key}`: `{}` cannot be a hub: {error} (help: for example https://hub.example.net/)",
                without_login(url)
            ));
        }
    }
    for url in &hub.trusted_callbacks {
        if let Err(error) = abreast_websub::check_callback(url) {
            problems.push(format!(
                "`hub.trusted_callbacks`: `{}` cannot be a callback: {error} (help: give its whole URL)",
                without_login(url)
            ));
        }
    }
    options.trusted_callbacks = hub.trusted_callbacks;
    options.open = hub.open.unwrap_or(false);
    options.allow_topics = hub.allow_topics;
    options.private_callbacks =
        hub.private_callbacks.unwrap_or_else(|| crate::config::api::is_local(listen, base_url));
    options.private_topics = options.private_callbacks;
    options.redirect = hub
        .redirect
        .map(|url| Redirect { url, permanent: hub.redirect_permanent.unwrap_or(false) });
    let serves = hub.enabled.unwrap_or(true);
    let most = notify.most.unwrap_or(1_000);
    if !(1..=50_000).contains(&most) {
        problems.push(format!("`notify.most`: {most} is out of range (help: 1 to 50000)"));
    }
    let xmpp = crate::config::xmpp::check(xmpp, problems);
    let notifies = notify.enabled.unwrap_or(true) && (serves || !hub.hubs.is_empty());
    if xmpp.is_some() && !notifies {
        problems.push(
            "`xmpp`: notifications are switched off (help: leave out `notify.enabled`, and `hub.enabled` or name other \
             hubs)"
                .to_owned(),
        );
    }
    let notify = notifies.then(|| {
        NotifyOptions::default()
            .with_debounce(debounce)
            .with_most(most as usize)
            .with_change_list_every(open_lists)
    });
    let (nodes, webhooks) = (BTreeMap::new(), BTreeMap::new());
    PushConfig { serves, hubs: hub.hubs, submit, options, notify, xmpp, nodes, webhooks }
}

impl PushConfig {
    /// Whether anything has to run.
    pub(crate) fn is_wanted(&self) -> bool {
        self.serves || self.notify.is_some()
    }

    /// The channels of every set, with their hubs.
    pub(crate) fn notifications(&self, base_url: &str) -> Option<Notifications> {
        let own = self.serves.then(|| hub_url(base_url));
        self.notify.map(|_| Notifications::at(own.into_iter().chain(self.hubs.iter().cloned())))
    }

    /// Starts the hub. It renders notifications from a site that is set later.
    pub(crate) fn start(&self, store: Arc<dyn HubStore>, base_url: &str) -> Result<Delivery> {
        let hubs = self.hubs.iter().map(|hub| (hub.clone(), self.submit));
        let nodes = self.nodes.values().map(|node| (node.clone(), SubmissionKind::Node));
        let webhooks = self.webhooks.values().flatten();
        let webhooks = webhooks.map(|webhook| (webhook.url.clone(), SubmissionKind::Webhook));
        keep_submissions(&*store, &hubs.chain(nodes).chain(webhooks).collect::<Vec<_>>())
            .context("cannot read the other hubs from the store")?;
        let options = HubOptions { url: hub_url(base_url), ..self.options.clone() };
        #[cfg(feature = "xmpp")]
        let options = HubOptions {
            xmpp: self.xmpp.as_ref().map(XmppConfig::account).transpose()?,
            ..options
        };
        let rendering = Arc::new(Rendering::default());
        let hub = Hub::start(options, store, Arc::clone(&rendering) as Arc<dyn Payloads>)
            .context("cannot start the hub")?;
        Ok(Delivery { hub, rendering, submitted: HashSet::new() })
    }
}

/// The topic of a set's change sets, as its record of what was notified names it.
fn is_change_set_topic(topic: &Topic) -> bool {
    topic.record == format!("{}/v0.1", topic.set.slug)
}

/// The topic of the changes of a set, of which webhooks get each.
fn is_change_topic(topic: &Topic) -> bool {
    topic.record == topic.set.slug && topic.content == TopicContent::Changes
}

fn hub_url(base_url: &str) -> String {
    format!("{base_url}hub")
}

/// Makes bytes of ranges of the log, once it is known by whom.
#[derive(Default)]
struct Rendering(OnceLock<Weak<CurrentSite>>);

impl Payloads for Rendering {
    fn render(&self, topic_url: &str, after: Position, last: Position) -> Result<Bytes, LogError> {
        let bytes =
            self.with(topic_url, |site| site.publisher.notification(topic_url, after, last))?;
        Ok(bytes.into())
    }

    fn webhook(
        &self,
        topic_url: &str,
        after: Position,
        last: Position,
    ) -> Result<(Bytes, Position), LogError> {
        self.with(topic_url, |site| {
            let publisher = &site.publisher;
            let path = topic_url.strip_prefix(publisher.urls().base());
            let topic = path.and_then(|path| publisher.topic_at(path));
            let set = topic.ok_or(PublishError::NotFound)?.set;
            let (body, end) = webhook_body(publisher, &set, after, last)?;
            Ok((body.into(), end))
        })
    }

    fn gap(&self, topic_url: &str) -> Result<Option<Gap>, LogError> {
        let gap = self.with(topic_url, |site| site.publisher.gap(topic_url))?;
        Ok(gap.map(|(topic, bytes)| Gap {
            media_type: topic.media_type.to_owned(),
            links: topic.links,
            body: bytes.into(),
        }))
    }
}

impl Rendering {
    fn with<T>(
        &self,
        topic_url: &str,
        make: impl FnOnce(&Site) -> Result<T, PublishError>,
    ) -> Result<T, LogError> {
        let failed = |message: String| LogError::new(abreast_core::ErrorKind::Io, message);
        let Some(site) = self.0.get().and_then(Weak::upgrade) else {
            return Err(failed("the Source is starting or stopping".to_owned()));
        };
        make(&site.now()).map_err(|error| match error {
            PublishError::Log(error) => error,
            PublishError::NotFound => {
                let message = format!("{topic_url} is no longer a topic of this Source");
                LogError::new(abreast_core::ErrorKind::NoSet, message)
            }
            error => failed(error.to_string()),
        })
    }
}

/// A hub that runs.
pub(crate) struct Delivery {
    hub: Hub,
    rendering: Arc<Rendering>,
    /// Topics that are submitted, with the other hubs and nodes.
    submitted: HashSet<(String, String)>,
}

impl Delivery {
    /// The shared state of the server.
    pub(crate) fn site_hub(&self, config: &PushConfig) -> SiteHub {
        SiteHub { hub: self.hub.clone(), serves: config.serves }
    }

    /// Starts to publish notifications of the current sets. Pending notifications of the previous
    /// notifier are sent first.
    pub(crate) fn notify(
        &mut self,
        config: &PushConfig,
        sites: &Arc<CurrentSite>,
        place: NotifiedPlace,
    ) -> Result<Option<Notifier>> {
        let site = &sites.now();
        let topics = site.publisher.topics();
        let nodes = topics.iter().filter(|topic| is_change_set_topic(topic)).filter_map(|topic| {
            config.nodes.get(&topic.set.slug).map(|node| (topic.url.clone(), node.clone()))
        });
        let nodes: HashMap<_, _> = nodes.collect();
        // Before anything can be rendered, and so before anything is delivered.
        self.hub.keep_nodes(&nodes).context("cannot end what is no longer published to a node")?;
        let _ = self.rendering.0.set(Arc::downgrade(sites));
        let Some(options) = config.notify else { return Ok(None) };
        let (mut published, mut submitted) = (HashSet::new(), HashSet::new());
        for topic in topics {
            self.hub.own_topic(&topic.url).context("cannot open a topic")?;
            for other in &config.hubs {
                let submission = (topic.url.clone(), other.clone());
                if !self.submitted.contains(&submission) {
                    self.hub
                        .submit_to(&topic.url, other, config.submit)
                        .context("cannot keep another hub in the store")?;
                }
                submitted.insert(submission);
            }
            if let Some(node) = nodes.get(&topic.url) {
                let submission = (topic.url.clone(), node.clone());
                if !self.submitted.contains(&submission) {
                    self.hub
                        .submit_to(&topic.url, node, SubmissionKind::Node)
                        .context("cannot keep a node in the store")?;
                }
                submitted.insert(submission);
            }
            published.insert(topic.url);
        }
        self.submitted = submitted;
        self.keep_webhooks(config, site)?;
        let last_words = self
            .removed_topics(site, &published)
            .context("cannot read the topics of removed sets")?;
        self.hub
            .release_submissions(&published, &last_words)
            .context("cannot end what is no longer submitted")?;
        let hub = self.hub.clone();
        let notifier = Notifier::start(
            SitePublisher(Arc::clone(site)),
            Arc::clone(self.hub.store()) as Arc<dyn abreast_core::TopicLog>,
            place,
            options,
            self.hub.store().clock(),
            Arc::new(move |topic: TopicId| hub.published(topic)),
        );
        notifier.map(Some).context("cannot start to publish notifications")
    }

    /// Starts and ends webhooks, and reads their secrets again.
    ///
    /// # Errors
    /// When the store of the hub fails.
    pub(crate) fn keep_webhooks(&self, config: &PushConfig, site: &Site) -> Result<()> {
        let topics = site.publisher.topics();
        let webhooks = topics.iter().filter(|topic| is_change_topic(topic)).flat_map(|topic| {
            let of_set = config.webhooks.get(&topic.set.slug).into_iter().flatten();
            of_set.map(|webhook| ((topic.url.clone(), webhook.url.clone()), webhook.keys()))
        });
        self.hub.keep_webhooks(webhooks.collect()).context("cannot keep a webhook in the store")
    }

    /// The topics of sets that are no longer published, in which their end is published: nobody
    /// else may publish there.
    fn removed_topics(
        &self,
        site: &Site,
        published: &HashSet<String>,
    ) -> Result<HashSet<String>, LogError> {
        let (mut removed, mut after) = (HashSet::new(), TopicId(0));
        loop {
            let page = self.hub.store().topics(after, 1_000)?;
            let Some(last) = page.last() else { return Ok(removed) };
            after = last.id;
            for topic in page.into_iter().filter(|topic| !published.contains(&topic.url)) {
                let path = topic.url.strip_prefix(site.publisher.urls().base());
                if path.is_some_and(|path| site.publisher.is_lasting_topic(path)) {
                    self.hub.own_topic(&topic.url)?;
                    removed.insert(topic.url);
                }
            }
        }
    }

    /// Stops delivering. The next run delivers the rest.
    pub(crate) fn stop(self) {
        self.hub.stop();
    }
}

/// The publisher of a site, for code that needs nothing else.
pub(crate) struct SitePublisher(pub(crate) Arc<Site>);

impl std::ops::Deref for SitePublisher {
    type Target = Publisher;

    fn deref(&self) -> &Publisher {
        &self.0.publisher
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_callbacks_are_only_allowed_on_local_servers() {
        for (listen, base_url, said, expected) in [
            ("127.0.0.1:80", None, None, true),
            ("[::1]:80", Some("http://localhost/"), None, true),
            ("127.0.0.1:80", Some("https://papers.example.org/"), None, false),
            ("192.0.2.1:80", None, None, false),
            ("127.0.0.1:80", Some("https://papers.example.org/"), Some(true), true),
            ("127.0.0.1:80", None, Some(false), false),
        ] {
            let hub = HubFile { private_callbacks: said, ..HubFile::default() };
            let checked =
                check(Some(hub), None, None, listen.parse().unwrap(), base_url, &mut Vec::new());
            let found = (checked.options.private_callbacks, checked.options.private_topics);
            assert_eq!(found, (expected, expected), "{listen} {base_url:?} {said:?}");
        }
    }
}
