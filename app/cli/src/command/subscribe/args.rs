//! Options of `abreast subscribe`.

use crate::config::access::AccessArgs;
use crate::config::xmpp::XmppArgs;
use clap::Args;
use std::time::Duration;

/// The wait before a stream is opened again, unless it names another; then twice as long each time,
/// up to a minute.
pub(super) const RETRY: Duration = Duration::from_secs(2);
pub(super) const MAX_RETRY: Duration = Duration::from_secs(60);

const HELP: &str = "\
Examples:
  abreast subscribe https://papers.example.org/
  abreast subscribe https://library.example.org/ --set papers
  abreast subscribe https://papers.example.org/papers/notify/change --from 1200 >> notifications.jsonl
  abreast subscribe https://papers.example.org/ --limit 1 --max-time 10m && make rebuild
  abreast subscribe 'xmpp:pubsub.example.org?;node=papers' --xmpp-jid me@example.org --xmpp-password-file password

Each line is one notification: topic, offset, received, media_type, and the content: for ResourceSync, 1.1 and 0.1, from,
until and changes, otherwise text, or base64. An interrupted stream is resumed; no notification is printed twice. To continue
an earlier run, give the last `offset` as --from. Of a node of an XMPP service the items after --from are printed that it
keeps, at most 1,000, then new ones; the offset is the item's name. The command reads the topic's event stream (docs/push.md), so
no port has to be reachable from outside.

Exit codes: 0 the limit of notifications was reached, 1 other, 2 usage, 4 no such topic or node, 5 try again later, 6 no secure connection,
8 the time limit was reached, 12 not authorised, 130 cancelled.";

/// Options of `subscribe`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct SubscribeArgs {
    /// A topic, any address of a Source, or a node of an XMPP service (xmpp:SERVICE?;node=NAME)
    #[arg(value_parser = topic_or_node)]
    pub(super) url: String,
    /// Select a set, by name or Capability List URL, if the Source has several
    #[arg(long, value_name = "NAME|URL")]
    pub(super) set: Option<String>,
    /// Start after this notification; 0 for all that are kept [default: only new ones]
    #[arg(long, value_name = "OFFSET")]
    pub(super) from: Option<u64>,
    /// Follow changes of the Source's documents, not of its resources
    #[arg(long)]
    pub(super) framework: bool,
    /// Exit after this many notifications
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) limit: Option<u64>,
    /// Exit after this time, such as 10m
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(super) max_time: Option<Duration>,
    #[command(flatten)]
    pub(super) access: AccessArgs,
    #[command(flatten)]
    pub(super) xmpp: XmppArgs,
}

pub(super) fn is_node(url: &str) -> bool {
    url.get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("xmpp:"))
}

fn topic_or_node(text: &str) -> Result<String, String> {
    if is_node(text) { Ok(text.to_owned()) } else { crate::values::address::http_url(text) }
}
