//! Options of `sync --follow`: how a copy is notified of changes.

use abreast_destination::{CallbackOptions, Push, SyncOptions};
use clap::Args;

/// Notifications, in place of polling.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Notifications (with --follow)")]
pub(crate) struct FollowArgs {
    /// Method: auto (callback if configured, else events), callback (a hub delivers), events (an
    /// event stream), off
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) push: Push,
    /// Base URL of callbacks, as hubs reach it through a proxy
    #[arg(long, value_name = "URL", requires = "callback_listen", value_parser = crate::address::http_url)]
    pub(crate) callback_url: Option<String>,
    /// Listen for hubs on this address; one port for each copy that follows
    #[arg(long, value_name = "HOST:PORT", requires = "callback_url", conflicts_with = "all_sets")]
    pub(crate) callback_listen: Option<String>,
}

impl FollowArgs {
    pub(crate) fn apply(&self, options: &mut SyncOptions) {
        options.push = self.push;
        options.callback = self
            .callback_url
            .clone()
            .zip(self.callback_listen.clone())
            .map(|(url, listen)| CallbackOptions { url, listen });
    }
}
