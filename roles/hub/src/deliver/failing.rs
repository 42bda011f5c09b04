//! Hubs, nodes and webhooks that do not accept the notifications of a topic.

use abreast_core::hub::{TargetId, TargetKind};
use abreast_webtypes::{Timestamp, count};

/// A hub, a node or a webhook that does not accept the notifications of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailingHub {
    /// Number of the target in the store.
    pub target: TargetId,
    /// URL of the topic whose notifications fail.
    pub topic: String,
    /// The hub's or the node's URL, or the host of a webhook, because the whole URL may be a secret.
    pub hub: String,
    /// Attempts in a row that failed.
    pub attempts: u32,
    /// Time of the first of these attempts.
    pub since: Option<Timestamp>,
    /// Status of the last response since the start, if any.
    pub status: Option<u16>,
    /// The protocol of the target.
    pub kind: TargetKind,
}

impl FailingHub {
    /// Whether the target refuses the notifications, so that repeating alone does not help.
    pub fn refuses(&self) -> bool {
        is_refusal(self.status)
    }
}

impl std::fmt::Display for FailingHub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { target, topic, hub, attempts, since, status, kind } = self;
        let does = if self.refuses() { "refuses" } else { "does not accept" };
        let what = match kind {
            TargetKind::Node => "node",
            TargetKind::Webhook => "webhook",
            _ => "hub",
        };
        let attempts = count(*attempts, "failed attempt");
        write!(f, "{what} {hub} {does} the notifications of {topic}: {attempts}")?;
        if let Some(since) = since {
            write!(f, " since {since}")?;
        }
        if let Some(status) = status {
            write!(f, ", the last answer was {status}")?;
        }
        write!(f, "; {} (abreast hub attempts {})", help(*kind, *status), target.0)
    }
}

/// Whether a retry after this status does not help.
pub(crate) fn is_refusal(status: Option<u16>) -> bool {
    status.is_some_and(|status| {
        (400..500).contains(&status) && !matches!(status, 408 | 421 | 425 | 429)
    })
}

/// Help for a hub, a node or a webhook that does not accept notifications.
pub(crate) fn help(kind: TargetKind, status: Option<u16>) -> &'static str {
    match kind {
        TargetKind::Node => match status {
            Some(401) => "check `xmpp.jid` and its password",
            Some(403 | 409) => {
                "ask the operator of the service to let the account of `xmpp.jid` publish there, or name another node with `xmpp_node`"
            }
            Some(404) => {
                "check `xmpp.service`; if it is right, ask its operator to create the node, or to let `xmpp.jid` do so"
            }
            Some(413) => "lower `xmpp.max_stanza` below the limit of the XMPP server",
            _ => {
                "check that the XMPP server runs, can be reached from here, and has a valid certificate"
            }
        },
        TargetKind::Webhook if status.is_some_and(|status| (300..400).contains(&status)) => {
            "set `set.webhook.url` to the address that accepts requests"
        }
        TargetKind::Webhook if is_refusal(status) => {
            "check `set.webhook.url`, and that the receiver knows one of the secrets"
        }
        TargetKind::FatSubmission | TargetKind::FormSubmission if is_refusal(status) => {
            "ask its operator to accept the topic, set `hub.submit` to what it supports, or remove it from `hub.hubs`"
        }
        _ => "check that it runs and can be reached from here",
    }
}
