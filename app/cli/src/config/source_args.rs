//! The options of `sync` and `audit` about the Source: strictness, and optional capabilities.

use abreast_destination::{Dumps, SyncOptions, Tolerance};
use clap::Args;

/// How strictly documents are read.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "What the Source publishes")]
pub(crate) struct ReadingArgs {
    /// Refuse all documents that deviate from the specification, even if unambiguous
    #[arg(long, conflicts_with = "lenient")]
    pub(crate) strict: bool,
    /// Skip entries of lists that cannot be understood, with a notice; such a run deletes nothing
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

/// Optional capabilities to use.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "What the Source publishes")]
pub(crate) struct OfferArgs {
    /// Fetch resources from dumps: auto (if cheaper than single requests), always, never
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) dumps: Dumps,
    /// Keep the N newest earlier versions of each resource in .abreast/history, if the Source links
    /// to them
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "10")]
    pub(crate) history: Option<u32>,
}

impl OfferArgs {
    pub(crate) fn apply(&self, options: &mut SyncOptions) {
        options.dumps = self.dumps;
        options.history = self.history;
    }
}
