//! Options of `sync --follow`: how a copy is notified of changes.

use crate::xmpp::XmppArgs;
use abreast_destination::{CallbackOptions, Push, SyncOptions};
use anyhow::Result;
use clap::Args;

/// Notifications, in place of polling.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Notifications (with --follow)")]
pub(crate) struct FollowArgs {
    /// Method: auto (XMPP if --xmpp-jid is given and there is a node, else callback if configured,
    /// else events), callback (a hub delivers), events (an event stream), off
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) push: Push,
    /// Base URL of callbacks, as hubs reach it through a proxy
    #[arg(long, value_name = "URL", requires = "callback_listen", value_parser = crate::address::http_url)]
    pub(crate) callback_url: Option<String>,
    /// Listen for hubs on this address; one port for each copy that follows
    #[arg(long, value_name = "HOST:PORT", requires = "callback_url", conflicts_with = "all_sets")]
    pub(crate) callback_listen: Option<String>,
    /// Receive change sets from this node of an XMPP service, xmpp:SERVICE?;node=NAME; for one job
    /// [default: the node that the Source offers, if --xmpp-jid is given]
    #[arg(long, value_name = "NODE", requires = "xmpp_jid", conflicts_with = "all_sets")]
    pub(crate) xmpp: Option<String>,
    #[command(flatten)]
    pub(crate) account: XmppArgs,
}

impl FollowArgs {
    /// # Errors
    /// The node is not an address, or the password cannot be read.
    pub(crate) fn apply(&self, options: &mut SyncOptions) -> Result<()> {
        options.push = self.push;
        options.callback = self
            .callback_url
            .clone()
            .zip(self.callback_listen.clone())
            .map(|(url, listen)| CallbackOptions { url, listen });
        self.account.apply(self.xmpp.as_deref(), options)
    }
}
