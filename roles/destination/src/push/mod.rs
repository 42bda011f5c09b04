//! Push: notifications of changes, instead of polling [rs-change-notification §4] [websub §5, §7]
//! [rs-0.1 §5.2.2].
//!
//! | file | subject |
//! |---|---|
//! | `find.rs` | the topic of a set, and its hubs |
//! | `subscribe.rs` | subscriptions: created, renewed and ended |
//! | `callback.rs` | answers to hubs, and the decision which deliveries are accepted |
//! | `events.rs` | event streams, for programs that cannot receive requests |
//! | `xmpp.rs` | nodes of XMPP services, with the feature `xmpp` |
//! | `inbox.rs` | notifications that wait for a run |
//!
//! The reader (`read/resourcesync/pushed.rs`) parses the content of notifications, and decides
//! whether the content continues from the cursor.
//!
//! A notification is only an early hint. The Change Lists are authoritative, and are read if a
//! notification does not continue from the cursor. A lost, repeated or late delivery therefore only
//! costs time.

pub(crate) mod announcement;
mod callback;
mod events;
mod find;
mod inbox;
mod limits;
mod subscribe;
#[cfg(feature = "xmpp")]
mod xmpp;

use crate::push::announcement::{Announcement, PushOffer, Topic};
use crate::report::error::{Error, ExitCode};
use crate::report::options::{Push, SyncOptions};
use crate::request::admit::same_origin;
use abreast_core::start_thread;
use abreast_net::{Authorization, Client, Listener, ListenerOptions, Options, Proxies, Shared};
use abreast_webtypes::without_login;
use announcement::Asking;
use callback::Callbacks;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::watch;

pub(crate) use inbox::{Inbox, Wakeup};

/// First pause after a connection for notifications ended; the pause doubles each time.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// Longest pause after a connection for notifications ended.
const PAUSE_MAX: Duration = Duration::from_secs(10 * 60);
/// The first pause after an account was not accepted.
const REFUSED_PAUSE: Duration = Duration::from_secs(10);
/// Number of failures in memory, so that none is reported twice.
const FAILURES_MAX: usize = 16;
/// Duration after which a connection counts as successful, as it does after a notification; the
/// next pauses then start at the shortest one.
const LASTED: Duration = Duration::from_secs(30);
/// Silence after which an event stream is closed; this program as a Source sends something every
/// 15 s.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Silence after which a request for a short answer fails.
const ANSWER_TIME: Duration = Duration::from_secs(20);

/// Receives notifications in a separate thread. Dropping this value ends the subscription.
#[derive(Debug)]
pub(crate) struct Pushing {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

/// The data of the thread.
struct Subscriber {
    way: Push,
    announcement: Announcement,
    /// The start of callback URLs, with a slash at the end.
    callback_base: Option<String>,
    callbacks: Arc<Callbacks>,
    inbox: Arc<Inbox>,
    /// The client for short responses.
    client: Client,
    /// The client for responses without an end.
    streams: Client,
    authorization: Option<Authorization>,
    authorized_url: String,
    allow_hosts: Vec<String>,
    allow_downgrade: bool,
    proxies: Proxies,
    #[cfg(feature = "xmpp")]
    xmpp: Option<crate::report::options::XmppOptions>,
    stop: watch::Receiver<bool>,
}

/// The reason why a connection for notifications ended.
enum Ended {
    /// The run must stop.
    Stopped,
    /// The connection failed or has ended.
    Broken(String),
    /// The service refuses the account. The connection is not repeated, since servers may lock an
    /// account after many attempts.
    #[cfg_attr(not(feature = "xmpp"), expect(dead_code, reason = "only XMPP logs in"))]
    Refused(String),
    /// The Source does not offer this way.
    NotOffered,
    /// The Source offers callbacks only, and this program lacks an address for them.
    NeedsCallback,
}

/// Listens for requests of hubs, if callbacks are configured. Called first, so that a wrong address
/// is reported at once.
///
/// # Errors
/// `callback.listen` if the address is not available, `callback.url` if hubs could not use it.
pub(crate) fn listen(options: &SyncOptions) -> Result<Option<Listener>, Error> {
    let Some(callback) =
        options.callback.as_ref().filter(|_| matches!(options.push, Push::Auto | Push::Callback))
    else {
        if options.push == Push::Callback {
            return Err(Error::new("callback.url", ExitCode::Usage, "there is no callback that a hub could deliver to")
                .with_help("set where to listen and how hubs reach it: `--callback-listen 0.0.0.0:8080 --callback-url https://me.example/in/`"));
        }
        return Ok(None);
    };
    abreast_websub::check_callback(&callback.url).map_err(|cause| {
        Error::new(
            "callback.url",
            ExitCode::Usage,
            format!("`{}` cannot be a callback: {cause}", without_login(&callback.url)),
        )
    })?;
    if callback.url.contains('?') {
        return Err(Error::new(
            "callback.url",
            ExitCode::Usage,
            format!("`{}` has a query", without_login(&callback.url)),
        )
        .with_help("give what callbacks begin with, such as https://me.example/in/"));
    }
    Listener::bind(&callback.listen).map(Some).map_err(|cause| {
        Error::new(
            "callback.listen",
            ExitCode::Usage,
            format!("cannot listen on {}: {cause}", callback.listen),
        )
        .with_help("choose a free port of this machine")
        .with_cause(cause)
    })
}

impl Pushing {
    /// Starts to receive notifications, if the set announces changes.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(
        options: &SyncOptions,
        announcement: Option<Announcement>,
        inbox: &Arc<Inbox>,
        listener: Option<Listener>,
    ) -> Result<Option<Self>, Error> {
        // A node from the options does not require an announcement of the Source.
        #[cfg(feature = "xmpp")]
        let announcement = announcement.or_else(|| announcement::of_own_node(options));
        let Some(announcement) = announcement.filter(|_| options.push != Push::Off) else {
            return Ok(None);
        };
        let (stop, stopped) = watch::channel(false);
        let net = options.net_options();
        let short = Options {
            idle_timeout: ANSWER_TIME,
            connections_per_host: 4,
            retries: 0,
            ..net.clone()
        };
        let base = options
            .callback
            .as_ref()
            .filter(|_| listener.is_some())
            .map(|callback| callback.url.clone());
        let subscriber = Subscriber {
            way: options.push,
            announcement,
            callback_base: base.map(|base| if base.ends_with('/') { base } else { base + "/" }),
            callbacks: Arc::new(Callbacks::new(Arc::clone(inbox))),
            inbox: Arc::clone(inbox),
            client: Client::new(Shared::new(short)),
            streams: Client::new(Shared::new(net.for_streams(SILENCE_MAX))),
            authorization: options.authorization.clone(),
            authorized_url: options.url.clone(),
            allow_hosts: options.allow_hosts.clone(),
            allow_downgrade: options.allow_downgrade,
            proxies: net.proxies.clone(),
            #[cfg(feature = "xmpp")]
            xmpp: options.xmpp.clone(),
            stop: stopped,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(
            |cause| {
                Error::new("io", ExitCode::Io, "cannot start the network runtime").with_cause(cause)
            },
        )?;
        let thread = start_thread("push", move || runtime.block_on(subscriber.run(listener)))
            .map_err(|cause| {
                Error::new("io", ExitCode::Io, "cannot start a thread").with_cause(cause)
            })?;
        Ok(Some(Self { stop, thread: Some(thread) }))
    }
}

impl Drop for Pushing {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Subscriber {
    async fn run(mut self, listener: Option<Listener>) {
        if let Some(listener) = listener {
            let receiver = Arc::clone(&self.callbacks) as _;
            tokio::spawn(async move {
                let Err(error) = listener.run(receiver, ListenerOptions::default()).await;
                tracing::error!(%error, "cannot listen for hubs");
            });
        }
        let (mut pause, mut turn, mut last_id) = (PAUSE_MIN, 0, String::new());
        // Failures that were reported since the last notification.
        let mut failures: Vec<String> = Vec::new();
        let mut is_reported = false;
        while !*self.stop.borrow() {
            let begun = Instant::now();
            let ended = self.once(turn, &mut last_id).await;
            self.inbox.set_live(false);
            let is_refused = matches!(ended, Ended::Refused(_));
            match ended {
                Ended::Stopped => return,
                Ended::NotOffered | Ended::NeedsCallback => {
                    // Another way may work, or the documents may offer one later.
                    turn += 1;
                    let message = match ended {
                        Ended::NeedsCallback => {
                            "changes are announced by a hub, which needs an address to call; the lists are polled\n  \
                             help: --callback-listen HOST:PORT; also --callback-url URL if the hub reaches it at another address"
                        }
                        _ if !self.announcement.offers.is_empty() => {
                            "changes are pushed in the ways of ResourceSync 0.1 only; the lists are polled"
                        }
                        _ => {
                            "neither a hub nor an event stream announces changes; the lists are polled"
                        }
                    };
                    if !std::mem::replace(&mut is_reported, true) {
                        self.inbox.note("push.none", &self.announcement.url, message);
                    }
                    if self.announcement.offers.is_empty() {
                        pause = PAUSE_MAX;
                    }
                }
                Ended::Broken(why) | Ended::Refused(why) => {
                    if self.inbox.take_arrived() || begun.elapsed() >= LASTED {
                        pause = PAUSE_MIN;
                        failures.clear();
                    }
                    if is_refused {
                        pause = pause.max(REFUSED_PAUSE);
                    }
                    // The next hub, if there are several.
                    turn += 1;
                    if failures.contains(&why) {
                        tracing::debug!(why, "pushing failed again");
                    } else {
                        self.inbox.note("push.broken", &self.announcement.url, &why);
                        failures.truncate(FAILURES_MAX - 1);
                        failures.insert(0, why);
                    }
                }
            }
            let wait = spread(pause);
            pause = (pause * 2).min(PAUSE_MAX);
            tokio::select! {
                () = stopped(&mut self.stop) => return,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Receives notifications in one way, until the connection ends.
    async fn once(&mut self, turn: usize, last_id: &mut String) -> Ended {
        let mut stop = self.stop.clone();
        #[cfg(feature = "xmpp")]
        if let Some((account, node)) = self.node() {
            return tokio::select! {
                ended = self.follow_node(account, &node, last_id) => ended,
                () = stopped(&mut stop) => Ended::Stopped,
            };
        }
        // First the callbacks in the documents, then the hubs of the topic.
        let offers = callbacks(&self.announcement.offers);
        if let Some(base) = self.callback_base.clone()
            && let Some((topic, subscribe)) = offers.get(turn % (offers.len() + 1))
        {
            return self.subscribed(&base, topic, subscribe).await;
        }
        let found = tokio::select! {
            found = self.find() => found,
            () = stopped(&mut stop) => return Ended::Stopped,
        };
        let topic = match found {
            Ok(Some(topic)) => topic,
            Ok(None) => return Ended::NotOffered,
            Err(why) => return Ended::Broken(why),
        };
        if let Some(base) = self.callback_base.clone() {
            if let Some(hub) = topic.hubs.get(turn % topic.hubs.len().max(1)) {
                return self.subscribed(&base, &topic, hub).await;
            }
            if self.way == Push::Callback {
                return Ended::NotOffered;
            }
        }
        let ended = tokio::select! {
            ended = self.stream(&topic.url, last_id) => ended,
            () = stopped(&mut stop) => Ended::Stopped,
        };
        match ended {
            Ended::NotOffered
                if self.callback_base.is_none()
                    && !(topic.hubs.is_empty() && offers.is_empty()) =>
            {
                Ended::NeedsCallback
            }
            ended => ended,
        }
    }

    fn authorization_for(&self, url: &str) -> Option<&Authorization> {
        self.authorization.as_ref().filter(|_| same_origin(url, &self.authorized_url))
    }
}

/// The callbacks among offers: their topics, and where they are subscribed.
fn callbacks(offers: &[PushOffer]) -> Vec<(Topic, String)> {
    let callback = |offer: &PushOffer| match offer {
        PushOffer::Callback { subscribe, topic, is_plain } => {
            let url = topic.clone().unwrap_or_else(|| subscribe.clone());
            let asking = if *is_plain { Asking::PlainCallback } else { Asking::Callback };
            Some((Topic { url, asking, ..Topic::default() }, subscribe.clone()))
        }
        PushOffer::Xmpp { .. } => None,
    };
    offers.iter().filter_map(callback).collect()
}

/// Ends when a stop is requested.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// A random duration between half of a pause and the whole pause, so that copies that lost their
/// connections together do not reconnect together.
fn spread(pause: Duration) -> Duration {
    use std::hash::BuildHasher as _;
    let share = std::hash::RandomState::new().hash_one(0) % 1_000;
    pause / 2 + pause / 2_000 * share as u32
}

/// Whether a secret may be sent to a hub: only where it cannot be read on the way, over TLS, or
/// within this machine. A proxy is on the way, wherever the hub is.
fn may_have_secret(hub: &str, proxies: &Proxies) -> bool {
    is_https(hub) || is_loopback(hub) && !proxies.covers(hub)
}

/// Whether the host is this machine.
fn is_loopback(url: &str) -> bool {
    url::Url::parse(url).is_ok_and(|url| match url.host() {
        Some(url::Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    })
}

fn is_https(url: &str) -> bool {
    url.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_out_over_https_or_not_at_all() {
        let none = Proxies::default();
        for url in [
            "http://127.0.0.1:1/hub",
            "http://localhost/",
            "http://[::1]:8/",
            "HTTPS://example.org/hub",
        ] {
            assert!(may_have_secret(url, &none), "{url}");
            let through = Proxies::through("http://proxy.example.org:3128").unwrap();
            assert_eq!(may_have_secret(url, &through), is_https(url), "{url} through a proxy");
            let through = through.bypassing("localhost,127.0.0.0/8,::1");
            assert!(may_have_secret(url, &through), "{url} past the proxy");
        }
        for url in [
            "http://example.org/",
            "http://localhost.example.org/",
            "http://10.0.0.1/",
            "http://127.0.0.1@e.org/",
            "",
        ] {
            assert!(!may_have_secret(url, &none), "{url}");
        }
    }

    #[test]
    fn pauses_are_spread() {
        assert!((PAUSE_MIN / 2..=PAUSE_MIN).contains(&spread(PAUSE_MIN)));
    }
}
