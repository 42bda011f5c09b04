//! Options of synchronisations and audits.

use crate::report::heartbeat::Heartbeat;
use crate::report::on_change::OnChange;
use crate::report::open_files::requests_of_copies;
use crate::report::sinks::SinkOptions;
use crate::report::uri_list::UriList;
use abreast_core::filter::Filter;
use abreast_net::Authorization;
use abreast_rdf::Contexts;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use abreast_resourcesync::sitemap::Tolerance;

/// Properties that lead from a deprecated entity to another one to use instead.
pub const REPLACED_BY: [&str; 5] = [
    "http://purl.org/dc/terms/isReplacedBy",
    "http://www.loc.gov/mads/rdf/v1#useInstead",
    "http://purl.obolibrary.org/obo/IAO_0100001",
    "https://schema.org/supersededBy",
    // Only of a deprecated concept without any of the properties above.
    "http://www.w3.org/2004/02/skos/core#exactMatch",
];

/// Maximum number of deletions in one run without confirmation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum MaxDelete {
    /// 10 % of the resources in the copy, or 1,000 if that is more; but at most half of the
    /// resources in a copy of 10 or more.
    #[default]
    Default,
    /// At most this number of deletions.
    Count(u64),
    /// At most this percentage of the resources in the copy.
    Percent(f64),
}

impl MaxDelete {
    /// Parses `N` or `P%`.
    ///
    /// # Errors
    /// The expected syntax.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!(
                "`{text}` is not a number or a percentage; expected for example `1000` or `10%`"
            )
        };
        match text.trim().strip_suffix('%') {
            Some(share) => match share.trim().parse::<f64>() {
                Ok(share) if (0.0..=100.0).contains(&share) => Ok(Self::Percent(share)),
                _ => Err(refuse()),
            },
            None => text.trim().parse().map(Self::Count).map_err(|_| refuse()),
        }
    }

    /// The number of deletions that one run may make in a copy of `kept` resources.
    pub(crate) fn allowed(self, kept: u64) -> u64 {
        match self {
            Self::Default if kept < SMALL_COPY => u64::MAX,
            Self::Default => (kept / 10).max(1_000).min(kept / 2),
            Self::Count(count) => count,
            Self::Percent(share) => (kept as f64 * share / 100.0) as u64,
        }
    }

    /// The number of resources from which on a copy allows `due` deletions: the caller need not
    /// count further.
    pub(crate) fn enough_for(self, due: u64) -> u64 {
        match self {
            Self::Default if due <= 1_000 => due.saturating_mul(2).max(SMALL_COPY),
            Self::Default => due.saturating_mul(10),
            Self::Count(_) => 0,
            Self::Percent(share) => (due as f64 * 100.0 / share).ceil().min(1e15) as u64,
        }
    }
}

/// Number of resources below which one run may delete the whole copy.
const SMALL_COPY: u64 = 10;

/// Whether resources are extracted from packages [rs-core §11, §13].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dumps {
    /// Extract resources if that is cheaper than a request for each.
    #[default]
    Auto,
    /// Extract resources whenever the Source has packages.
    Always,
    /// Request each resource, and ignore packages.
    Never,
}

impl std::str::FromStr for Dumps {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err(format!("`{text}` is none of `auto`, `always` and `never`")),
        }
    }
}

/// How a Destination that follows a Source receives notifications of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Push {
    /// Use a hub if a callback is configured, else an event stream if the Source offers one, else
    /// poll.
    #[default]
    Auto,
    /// Subscribe at the hub of the Source.
    Callback,
    /// Read the event stream of the Source.
    Events,
    /// Poll the lists of the Source, without notifications.
    Off,
}

impl std::str::FromStr for Push {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "callback" => Ok(Self::Callback),
            "events" => Ok(Self::Events),
            "off" => Ok(Self::Off),
            _ => Err(format!("`{text}` is none of `auto`, `callback`, `events` and `off`")),
        }
    }
}

/// The address at which this Destination receives notifications from hubs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackOptions {
    /// The start of callback URLs, as hubs reach this Destination. Each subscription adds a random
    /// part that cannot be guessed.
    pub url: String,
    /// The address to listen on, as `HOST:PORT`.
    pub listen: String,
}

/// How change sets are received over XMPP [rs-0.1 §5.2.1].
#[cfg(feature = "xmpp")]
#[derive(Clone, Debug)]
pub struct XmppOptions {
    /// The XMPP account that subscribes to the node.
    pub account: abreast_xmpp::Account,
    /// The PubSub node to subscribe to. Default: the node that the Source offers.
    pub node: Option<abreast_xmpp::Node>,
}

/// Numbers of lanes of a thread. A lane fetches one item after another.
#[derive(Clone, Copy)]
pub(crate) struct Lanes {
    pub(crate) first: usize,
    /// Number after a server has chosen HTTP/2 or answers requests in a row, if more.
    pub(crate) most: usize,
}

/// Options of a synchronisation: the Source, the copy, limits and connections.
#[derive(Clone, Debug)]
pub struct SyncOptions {
    /// Any URL of the Source: a ResourceSync document, a web page that links to one, or a site's
    /// root.
    pub url: String,
    /// The folder for the copy; created if missing.
    pub folder: PathBuf,
    /// Folders that are known to be published, in addition to folders with a store in them. The
    /// copy must be outside of these folders.
    pub published: Vec<PathBuf>,
    /// The folder for the state of the copy. Default: `.abreast` in the folder of the copy.
    pub state: Option<PathBuf>,
    /// The start of URIs that is not part of their paths. Default: the start that the Source lists,
    /// else the common start of all URIs.
    pub base: Option<String>,
    /// The set to copy, by its name or the URL of its Capability List, if the Source has several.
    pub set: Option<String>,
    /// Number of connections to one host by HTTP/1.1, and of parallel requests to a server that
    /// answers no requests in a row. Default 8.
    pub connections: usize,
    /// Number of parallel requests to one host by HTTP/2 or in a row, if this is more than `connections`.
    /// Default 100, which servers should allow on each connection [rfc9113 §6.5.2].
    pub streams: usize,
    /// Threads that fetch and write; default: one for each core, never more than connections.
    pub threads: Option<usize>,
    /// Report all actions, but do not change the copy.
    pub dry_run: bool,
    /// Read the whole Resource List again, even if Change Lists are sufficient.
    pub baseline: bool,
    /// With `baseline`: compare the digests of all stored resources, not only lengths and times.
    pub full: bool,
    /// Refuse resources whose digest is not listed or has an unknown algorithm.
    pub require_fixity: bool,
    /// The resources to copy. Excluded resources are not fetched, and their files are not changed.
    pub filter: Filter,
    /// Copy only these resources, if `filter` includes them.
    pub uris: Option<Arc<UriList>>,
    /// Copy only resources with at least one of these categories, by URI or label, if `filter`
    /// includes them. Default: any.
    pub categories: Vec<String>,
    /// Delete files of this copy that the filters now exclude.
    pub delete_excluded: bool,
    /// Number of received bytes after which the run stops; the next run continues.
    pub max_bytes: Option<u64>,
    /// Duration after which the run stops; the next run continues.
    pub max_time: Option<Duration>,
    /// Ignore the robots.txt of the hosts of resources.
    pub ignore_robots: bool,
    /// Hosts that may serve resources, in addition to the host of the list: `host` or `host:port`.
    pub allow_hosts: Vec<String>,
    /// Whether a list from an https address may contain resources with http addresses.
    pub allow_downgrade: bool,
    /// Maximum number of deletions in one run.
    pub max_delete: MaxDelete,
    /// Whether the Source has moved to `url`; then the existing copy is continued.
    pub moved: bool,
    /// Do not replace or delete files that were changed locally.
    pub immutable: bool,
    /// The folder for files that were changed locally, to which a run moves them before it writes
    /// new versions. Default: `backup` in the state folder.
    pub backup_dir: Option<PathBuf>,
    /// Pause between polls when following. A longer freshness lifetime of a list prolongs the
    /// pause, up to 1 h. Default 30 s.
    pub interval: Duration,
    /// Shortest pause between two polls that notifications cause when following, so that senders of
    /// notifications cannot increase the load on the Source. Default 1 s.
    pub poll_pause: Duration,
    /// How changes are announced when following. Default [`Push::Auto`]. Polls are 10 times less
    /// frequent while notifications arrive.
    pub push: Push,
    /// Where hubs send notifications. Default: none, so that no port is opened.
    pub callback: Option<CallbackOptions>,
    /// An XMPP account for notifications, which [`Push::Auto`] prefers to hubs and event streams.
    /// Default none.
    #[cfg(feature = "xmpp")]
    pub xmpp: Option<XmppOptions>,
    /// Write the origin of each file next to the file, for a Source that publishes the folder.
    /// Default false.
    pub republish: bool,
    /// The kind of copy and its options. Default: one file for each resource, in `folder`.
    pub sink: SinkOptions,
    /// Credentials that are sent to the Source's host only.
    pub authorization: Option<Authorization>,
    /// How documents that violate the specification are treated.
    pub tolerance: Tolerance,
    /// Whether resources are extracted from packages.
    pub dumps: Dumps,
    /// Number of earlier versions of each resource that are stored in the state folder, if the
    /// Source links to them.
    pub history: Option<u32>,
    /// The contexts that descriptions in JSON-LD may refer to; none is fetched. A description whose
    /// contexts are known is parsed and stored as N-Triples. Targets that store the received bytes
    /// therefore have only the contexts of protocols by default.
    pub contexts: Contexts,
    /// Leave out statements of RDF that are not valid, and store the others; else the description or file with such a
    /// statement fails. Default false.
    pub leave_out_invalid: bool,
    /// Properties of deprecated entities whose objects replace the entity, the best first.
    pub replaced_by: Vec<String>,
    /// Limits and headers of the HTTP client. [`Self::connections`], [`Self::streams`] and
    /// [`Self::allow_downgrade`] replace the fields `connections_per_host`, `streams_per_host` and
    /// `allow_downgrade`.
    pub net: abreast_net::Options,
    /// The command that is given the changes of the copy. Default: none.
    pub on_change: Option<OnChange>,
    /// The sign that the run works, for a watchdog. Runs with clones of these options share it.
    pub heartbeat: Heartbeat,
}

impl SyncOptions {
    /// The default options for a Source and a folder.
    pub fn new(url: impl Into<String>, folder: impl Into<PathBuf>) -> Self {
        Self {
            url: url.into(),
            folder: folder.into(),
            state: None,
            base: None,
            set: None,
            connections: 8,
            streams: 100,
            threads: None,
            dry_run: false,
            baseline: false,
            full: false,
            require_fixity: false,
            filter: Filter::default(),
            uris: None,
            categories: Vec::new(),
            delete_excluded: false,
            max_bytes: None,
            max_time: None,
            ignore_robots: false,
            allow_hosts: Vec::new(),
            allow_downgrade: false,
            max_delete: MaxDelete::Default,
            replaced_by: crate::report::options::REPLACED_BY.map(str::to_owned).into(),
            contexts: Contexts::of_protocols(),
            leave_out_invalid: false,
            moved: false,
            immutable: false,
            backup_dir: None,
            interval: Duration::from_secs(30),
            poll_pause: Duration::from_secs(1),
            push: Push::Auto,
            callback: None,
            #[cfg(feature = "xmpp")]
            xmpp: None,
            republish: false,
            published: Vec::new(),
            sink: SinkOptions::Folder,
            authorization: None,
            tolerance: Tolerance::Usual,
            dumps: Dumps::Auto,
            history: None,
            net: abreast_net::Options::default(),
            on_change: None,
            heartbeat: Heartbeat::default(),
        }
    }

    /// Limits the number of parallel requests to one host.
    pub fn limit_requests(&mut self, most: usize) {
        self.connections = self.connections.min(most);
        self.streams = self.streams.min(most);
    }

    /// Number of parallel requests to one host without and with more requests on a connection, by the limit of open files.
    pub(crate) fn parallel_by_protocol(&self) -> [usize; 2] {
        // A copy alone continues with one request at a time.
        let fitting = requests_of_copies(1, 1).unwrap_or(1);
        let connections = self.connections.clamp(1, fitting);
        [connections, self.streams.clamp(connections, fitting)]
    }

    /// The numbers of lanes of the threads that fetch.
    pub(crate) fn lanes(&self) -> Vec<Lanes> {
        let [connections, streams] = self.parallel_by_protocol();
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = self.threads.unwrap_or(cores).clamp(1, connections);
        let share = |all: usize, number| all / threads + usize::from(number < all % threads);
        let lanes =
            |number| Lanes { first: share(connections, number), most: share(streams, number) };
        (0..threads).map(lanes).collect()
    }

    /// Number of parallel requests to one host, which grows once a server is known to take more.
    pub(crate) fn parallel(&self, shared: &abreast_net::Shared) -> usize {
        self.parallel_by_protocol()[usize::from(shared.takes_many())]
    }

    pub(crate) fn net_options(&self) -> abreast_net::Options {
        let [connections_per_host, streams_per_host] = self.parallel_by_protocol();
        abreast_net::Options {
            connections_per_host,
            streams_per_host,
            allow_downgrade: self.allow_downgrade,
            ..self.net.clone()
        }
    }
}

/// Options of an audit: the synchronisation options of the copy, and the depth of the comparison.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    /// Source, folder and connection options, as for a synchronisation.
    pub sync: SyncOptions,
    /// Compare digests, not only lengths and times.
    pub full: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_or_shares() {
        assert_eq!(MaxDelete::parse("12"), Ok(MaxDelete::Count(12)));
        assert_eq!(MaxDelete::parse("5%"), Ok(MaxDelete::Percent(5.0)));
        for text in ["", "-1", "101%", "x%", "many"] {
            assert!(MaxDelete::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn allowed_deletions_depend_on_the_size_of_the_copy() {
        for (kept, allowed) in
            [(9, u64::MAX), (10, 5), (28, 14), (1_500, 750), (2_000, 1_000), (20_000, 2_000)]
        {
            assert_eq!(MaxDelete::Default.allowed(kept), allowed, "{kept}");
        }
        assert_eq!(MaxDelete::Count(7).allowed(3), 7);
        assert_eq!(MaxDelete::Percent(1.0).allowed(50_000), 500);
    }

    #[test]
    fn counting_stops_where_deletions_are_allowed() {
        for limit in [
            MaxDelete::Default,
            MaxDelete::Count(40),
            MaxDelete::Percent(0.5),
            MaxDelete::Percent(30.0),
        ] {
            for due in (1..60).chain([999, 1_000, 1_001, 5_000]) {
                let enough = limit.enough_for(due);
                // A copy has at least the resources that are due for deletion.
                for kept in
                    [due, enough.saturating_sub(1).max(due), enough.max(due), enough.max(due) * 3]
                {
                    let counted = kept.min(enough);
                    assert_eq!(
                        due <= limit.allowed(counted),
                        due <= limit.allowed(kept),
                        "{limit:?} {due} {kept}"
                    );
                }
            }
        }
        assert_eq!(MaxDelete::Percent(0.0).allowed(MaxDelete::Percent(0.0).enough_for(1)), 0);
    }
}
