//! Options of `sync`: the folder for the public status of the copy.

use clap::Args;
use std::path::PathBuf;

/// The folder for the public status of the copy.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Public status")]
pub(crate) struct PublishArgs {
    /// Write the status of the copy into this folder for the public, as JSON, RDF and a page: after each run, and with --follow at
    /// most once a minute. Each job needs its own folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["dry_run", "test_filter"])]
    pub(crate) publish_status: Option<PathBuf>,
}
