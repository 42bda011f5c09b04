//! The options of `sync` and `audit` about what the Source publishes: how strictly it is read, and what is made use of.

use abreast_destination::{Dumps, SyncOptions, Tolerance};
use clap::Args;

/// How strictly documents are read.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "What the Source publishes")]
pub(crate) struct ReadingArgs {
    /// Refuse documents that are not quite as the specification says, also where they can mean one thing only
    #[arg(long, conflicts_with = "lenient")]
    pub(crate) strict: bool,
    /// Leave out entries of lists that cannot be understood, and tell; nothing is deleted in such a run
    #[arg(long)]
    pub(crate) lenient: bool,
}

impl ReadingArgs {
    pub(crate) fn apply(&self, options: &mut SyncOptions) {
        options.tolerance = match (self.strict, self.lenient) {
            (true, _) => Tolerance::Strict,
            (_, true) => Tolerance::Lenient,
            _ => Tolerance::Usual,
        };
    }
}

/// What is made use of.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "What the Source publishes")]
pub(crate) struct OfferArgs {
    /// Take resources out of dumps: auto (when cheaper than asking for each), always, never
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) dumps: Dumps,
    /// Keep the N newest earlier versions of each resource, where the Source links to them, in .abreast/history
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10")]
    pub(crate) history: Option<u32>,
}

impl OfferArgs {
    pub(crate) fn apply(&self, options: &mut SyncOptions) {
        options.dumps = self.dumps;
        options.history = self.history;
    }
}
