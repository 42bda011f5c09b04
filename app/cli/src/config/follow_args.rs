//! Options of `sync --follow`: how a copy is notified of changes.

use crate::config::xmpp::XmppArgs;
use crate::program::errors::UsageError;
use abreast_destination::{CallbackOptions, Push, SyncOptions};
use anyhow::{Result, bail};
use clap::Args;

/// Notifications, in place of polling.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Notifications (with --follow)")]
pub(crate) struct FollowArgs {
    /// Method: auto (XMPP if --xmpp-jid is given and there is a node, else callback if configured,
    /// else events), callback (a hub delivers), events (an event stream), off
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) push: Push,
    /// Base URL of callbacks, as hubs reach it through a proxy [default: http://HOST:PORT/ of
    /// --callback-listen]
    #[arg(long, value_name = "URL", requires = "callback_listen", value_parser = crate::values::address::http_url)]
    pub(crate) callback_url: Option<String>,
    /// Listen for hubs on this address; each copy that runs with --follow needs its own port
    #[arg(long, value_name = "HOST:PORT", requires = "follow", conflicts_with = "all_sets")]
    pub(crate) callback_listen: Option<String>,
    /// Receive change sets from this node of an XMPP service, xmpp:SERVICE?;node=NAME; for one job
    /// [default: the node that the Source offers, if --xmpp-jid is given]
    #[arg(long, value_name = "NODE", requires_all = ["xmpp_jid", "follow"], conflicts_with = "all_sets")]
    pub(crate) xmpp: Option<String>,
    #[command(flatten)]
    pub(crate) account: XmppArgs,
}

impl FollowArgs {
    /// # Errors
    /// The callback has no address for hubs, the node is not an address, or the password cannot be read.
    pub(crate) fn apply(&self, options: &mut SyncOptions) -> Result<()> {
        options.push = self.push;
        options.callback = match &self.callback_listen {
            Some(listen) => Some(CallbackOptions {
                url: self.callback_url.clone().map_or_else(|| own_url(listen), Ok)?,
                listen: listen.clone(),
            }),
            None => None,
        };
        self.account.apply(self.xmpp.as_deref(), options)
    }
}

/// Where hubs reach what listens there, if no proxy is between.
fn own_url(listen: &str) -> Result<String> {
    if listen.rsplit_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_err()) {
        bail!(UsageError(format!(
            "`--callback-listen {listen}` is not HOST:PORT (help: for example 192.0.2.1:8080)"
        )));
    }
    let host = listen.rsplit_once(':').filter(|(_, port)| *port != "0").map(|(host, _)| host);
    if host.is_none_or(|host| matches!(host, "" | "0.0.0.0" | "[::]")) {
        bail!(UsageError(format!(
            "`--callback-listen {listen}` is not an address that a hub can call (help: give that with --callback-url URL)"
        )));
    }
    Ok(format!("http://{listen}/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_callback_is_at_its_own_address_by_default() {
        assert_eq!(own_url("192.0.2.1:8080").unwrap(), "http://192.0.2.1:8080/");
        assert_eq!(own_url("[2001:db8::1]:80").unwrap(), "http://[2001:db8::1]:80/");
        for listen in ["0.0.0.0:8080", "[::]:8080", ":8080", "192.0.2.1:0", "host"] {
            assert!(own_url(listen).unwrap_err().is::<UsageError>(), "{listen}");
        }
    }
}
