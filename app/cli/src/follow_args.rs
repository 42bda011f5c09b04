//! How is a copy that follows told of changes? Options of `sync --follow`.

use abreast_destination::{CallbackOptions, Push, SyncOptions};
use clap::Args;

/// Being told, instead of asking again and again.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Being told of changes (with --follow)")]
pub(crate) struct FollowArgs {
    /// How: auto (callback where there is one, else events), callback (a hub delivers), events (an event stream), off
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(crate) push: Push,
    /// What callbacks begin with, as hubs reach them, on the public side of a proxy
    #[arg(long, value_name = "URL", requires = "callback_listen", value_parser = crate::address::http_url)]
    pub(crate) callback_url: Option<String>,
    /// Where to listen for hubs; a port for each copy that follows
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
