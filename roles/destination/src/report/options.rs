//! Options of synchronisations and audits.

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
    // Of a deprecated concept only, and where nothing else is stated.
    "http://www.w3.org/2004/02/skos/core#exactMatch",
];

/// How many deletions one run may make without confirmation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum MaxDelete {
    /// 10 % of the resources kept or 1,000, whichever is more, but never more than half of a copy
    /// of 10 or more.
    #[default]
    Default,
    /// This many.
    Count(u64),
    /// This many of a hundred resources kept.
    Percent(f64),
}

impl MaxDelete {
    /// Reads `N` or `P%`.
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

    /// The number of deletions allowed in a copy of `kept` resources.
    pub(crate) fn allowed(self, kept: u64) -> u64 {
        match self {
            Self::Default if kept < SMALL_COPY => u64::MAX,
            Self::Default => (kept / 10).max(1_000).min(kept / 2),
            Self::Count(count) => count,
            Self::Percent(share) => (kept as f64 * share / 100.0) as u64,
        }
    }

    /// The size of a copy from which on `due` deletions are allowed: no more resources than this
    /// need to be counted.
    pub(crate) fn enough_for(self, due: u64) -> u64 {
        match self {
            Self::Default if due <= 1_000 => due.saturating_mul(2).max(SMALL_COPY),
            Self::Default => due.saturating_mul(10),
            Self::Count(_) => 0,
            Self::Percent(share) => (due as f64 * 100.0 / share).ceil().min(1e15) as u64,
        }
    }
}

/// Copies with fewer resources may lose all of them in one run.
const SMALL_COPY: u64 = 10;

/// Whether resources are taken out of packages [rs-core §11, §13].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dumps {
    /// When that is cheaper than asking for each.
    #[default]
    Auto,
    /// Whenever there are packages.
    Always,
    /// Never.
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

/// How a copy that follows is notified of changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Push {
    /// By a hub where there is a callback, else by an event stream where there is one, else not at
    /// all.
    #[default]
    Auto,
    /// By a hub.
    Callback,
    /// By an event stream.
    Events,
    /// Not at all: the lists are asked.
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

/// Where hubs deliver to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallbackOptions {
    /// The begin of callback URLs, as hubs reach it; each subscription adds a part that nobody can
    /// guess.
    pub url: String,
    /// `HOST:PORT` to listen on.
    pub listen: String,
}

/// How change sets are received over XMPP [rs-0.1 §5.2.1].
#[cfg(feature = "xmpp")]
#[derive(Clone, Debug)]
pub struct XmppOptions {
    /// The account that subscribes.
    pub account: abreast_xmpp::Account,
    /// The node; default: the one that the Source offers.
    pub node: Option<abreast_xmpp::Node>,
}

/// Options of a synchronisation.
#[derive(Clone, Debug)]
pub struct SyncOptions {
    /// Any URL of the Source: a ResourceSync document, a web page that links to one, or a site's
    /// root.
    pub url: String,
    /// The folder to keep the copy in; made when it is not there.
    pub folder: PathBuf,
    /// Folders that are known to be published, beside those with their store in them: the copy has to be elsewhere.
    pub published: Vec<PathBuf>,
    /// Where to keep the state; default: `.abreast` in the folder.
    pub state: Option<PathBuf>,
    /// The begin of URIs that is not part of their path; default: as the Source states, else the
    /// common begin.
    pub base: Option<String>,
    /// Which set of resources, by name or Capability List URL, when the Source has several.
    pub set: Option<String>,
    /// Requests in flight to one host. Default 8.
    pub connections: usize,
    /// Threads that fetch and write; default: one for each core, never more than connections.
    pub threads: Option<usize>,
    /// Show what would be done, do nothing.
    pub dry_run: bool,
    /// Read the whole Resource List again, even where a Change List would do.
    pub baseline: bool,
    /// With `baseline`: compare digests of all that is kept, not only lengths and times.
    pub full: bool,
    /// Refuse resources whose digest is not listed or of an unknown algorithm.
    pub require_fixity: bool,
    /// Which resources are wanted; what is excluded is left alone on both sides.
    pub filter: Filter,
    /// Copy these resources only, as far as `filter` includes them.
    pub uris: Option<Arc<UriList>>,
    /// Copy only resources with one of these categories, by URI or name, as far as `filter`
    /// includes them. Default: any.
    pub categories: Vec<String>,
    /// Delete files of this copy that are excluded now.
    pub delete_excluded: bool,
    /// Stop after so many bytes received in one run; the next one continues.
    pub max_bytes: Option<u64>,
    /// Stop after so much time; the next run continues.
    pub max_time: Option<Duration>,
    /// Ignore the robots.txt of the hosts of resources.
    pub ignore_robots: bool,
    /// Hosts that resources may be on beside the list's own: `host` or `host:port`.
    pub allow_hosts: Vec<String>,
    /// Whether a list served over https may name http resources.
    pub allow_downgrade: bool,
    /// How many deletions one run may make.
    pub max_delete: MaxDelete,
    /// The Source of the copy has moved to this URL: keep the copy.
    pub moved: bool,
    /// Never replace or delete a file that was changed here.
    pub immutable: bool,
    /// Where files that were changed here go before they are replaced; default: `backup` in the
    /// state folder.
    pub backup_dir: Option<PathBuf>,
    /// Pause between polls when following; longer when the Source states that a list is fresh for
    /// longer, up to 1 h. Default 30 s.
    pub interval: Duration,
    /// Least pause between two polls that notifications cause when following: those who may notify
    /// may not make the copy poll more often. Default 1 s.
    pub poll_pause: Duration,
    /// How changes are announced when following. Default [`Push::Auto`]; while they are, polls are
    /// 10 times rarer.
    pub push: Push,
    /// Where hubs deliver to. Default none: nobody is listened for.
    pub callback: Option<CallbackOptions>,
    /// With [`Push::Auto`], an account of XMPP to be notified by before all other ways. Default none.
    #[cfg(feature = "xmpp")]
    pub xmpp: Option<XmppOptions>,
    /// Write beside each file where it comes from originally, for a Source that publishes the
    /// folder. Default false.
    pub republish: bool,
    /// Where the resources go. Default: one file each, in the folder.
    pub sink: SinkOptions,
    /// Credentials for the Source's host.
    pub authorization: Option<Authorization>,
    /// How documents that violate the specification are treated.
    pub tolerance: Tolerance,
    /// Whether resources are taken out of packages.
    pub dumps: Dumps,
    /// How many earlier versions of each resource are kept in the state folder, where the Source
    /// links to them.
    pub history: Option<u32>,
    /// The contexts that descriptions in JSON-LD may name; none is fetched. A description that is read is stored as
    /// N-Triples, so targets that keep what was sent have only those of protocols by default.
    pub contexts: Contexts,
    /// Leave out statements of RDF that are not valid, and store the others; else the description or file with such a
    /// statement fails. Default false.
    pub leave_out_invalid: bool,
    /// Properties of deprecated entities whose objects are to be used instead, the best first.
    pub replaced_by: Vec<String>,
    /// Limits and manners of the HTTP client; `connections_per_host` and `allow_downgrade` follow
    /// the fields above.
    pub net: abreast_net::Options,
}

impl SyncOptions {
    /// The defaults for a URL and a folder.
    pub fn new(url: impl Into<String>, folder: impl Into<PathBuf>) -> Self {
        Self {
            url: url.into(),
            folder: folder.into(),
            state: None,
            base: None,
            set: None,
            connections: 8,
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
        }
    }

    pub(crate) fn net_options(&self) -> abreast_net::Options {
        abreast_net::Options {
            connections_per_host: self.connections.max(1),
            allow_downgrade: self.allow_downgrade,
            ..self.net.clone()
        }
    }
}

/// Options of an audit.
#[derive(Clone, Debug)]
pub struct AuditOptions {
    /// Source, folder and how to reach them, as for a synchronisation.
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
