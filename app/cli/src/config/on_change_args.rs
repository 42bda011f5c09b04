//! Options of `sync`: the command that is given the changes of the copy.

use abreast_destination::{OnChange, SyncOptions};
use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use std::time::Duration;

/// The command, and its limits.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Command after changes")]
#[expect(clippy::struct_field_names, reason = "the names of the fields are the keys of a job")]
pub(crate) struct OnChangeArgs {
    /// Give the changes of the copy to this command (`sh -c`), as JSON lines on standard input, after they are applied. A change
    /// waits until the command ends with exit code 0
    #[arg(long, value_name = "CMD", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) on_change: Option<String>,
    /// Longest duration of the command; then SIGTERM, and SIGKILL after 10 s more
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = humantime::parse_duration)]
    pub(crate) on_change_timeout: Duration,
    /// Most changes that one run of the command is given
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) on_change_batch: u32,
}

impl OnChangeArgs {
    pub(crate) fn apply(&self, options: &mut SyncOptions) {
        options.on_change = self.on_change.as_ref().map(|command| OnChange {
            timeout: self.on_change_timeout,
            batch: self.on_change_batch as usize,
            ..OnChange::new(command)
        });
    }
}
