//! The command line: one word, one job.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Publish what changed in a collection; stay in sync with one.
#[derive(Debug, Parser)]
#[command(name = "abreast", version, propagate_version = true, arg_required_else_help = true)]
#[command(after_help = "Start here: `abreast demo` shows a folder published, mirrored and kept in sync.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Tell more on standard error; twice for every request. ABREAST_LOG sets filters such as `abreast=debug`.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Publish a folder: every change becomes visible to all who mirror it
    Serve(Box<ServeArgs>),
    /// Copy a published collection into a folder, or bring the copy up to date
    Sync(Box<SyncArgs>),
    /// Compare a folder with what is published, changing nothing
    Audit(Box<AuditArgs>),
    /// Show it all on a small collection made on the spot
    Demo(DemoArgs),
}

const SERVE_HELP: &str = "\
Examples:
  abreast serve ./papers
  abreast serve /srv/papers --listen 0.0.0.0:8080 --base-url https://papers.example.org/
  abreast serve --config /etc/abreast.toml

Hidden files (.x) and editors' leftovers (x~, #x#) are not published; symbolic links are not followed.
Stops on SIGTERM or Ctrl-C after finishing requests in flight.";

/// Options of `serve`.
#[derive(Debug, Args)]
#[command(after_help = SERVE_HELP)]
pub(crate) struct ServeArgs {
    /// Folder to publish
    #[arg(required_unless_present = "config")]
    pub(crate) folder: Option<PathBuf>,
    /// Configuration file, for several sets and all settings
    #[arg(long, value_name = "FILE", env = "ABREAST_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Address to listen on; port 0 chooses a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "HOST:PORT", env = "ABREAST_LISTEN")]
    pub(crate) listen: Option<String>,
    /// Public base URL, from which every published URL is built [default: http:// and the listen address]
    #[arg(long, value_name = "URL", env = "ABREAST_BASE_URL")]
    pub(crate) base_url: Option<String>,
    /// Folder of the store [default: .abreast in the published folder]
    #[arg(long, value_name = "DIR", env = "ABREAST_DATA")]
    pub(crate) data: Option<PathBuf>,
    /// Name of the set in URLs [default: made from the folder's name]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Title of the set for people [default: its name]
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Digests to compute: md5, sha-256 or both [default: md5]
    #[arg(long, value_name = "WHICH")]
    pub(crate) digests: Option<String>,
    /// How long a file must be quiet before it is looked at [default: 200ms]
    #[arg(long, value_name = "TIME")]
    pub(crate) debounce: Option<String>,
    /// Time between full scans, 0s for none but the first [default: 1h]
    #[arg(long, value_name = "TIME")]
    pub(crate) rescan: Option<String>,
    /// Do not use the system's change events, only scans (network file systems)
    #[arg(long)]
    pub(crate) no_events: bool,
    /// Changes in one Change List, 1 to 50000 [default: 5000]
    #[arg(long, value_name = "N")]
    pub(crate) changes_per_list: Option<u32>,
}

const SYNC_HELP: &str = "\
Examples:
  abreast sync https://papers.example.org/ ./papers
  abreast sync https://papers.example.org/ ./papers --follow
  abreast sync https://papers.example.org/papers/capabilitylist.xml ./papers --dry-run --json

URL may be any ResourceSync document, a page that links to one, or a site's root. The first run copies all, later
runs apply what changed. A file appears under its name only when it is whole and verified; files that others put
into the folder are never deleted; a file that was changed here is kept in .abreast/backup before it is replaced.

Exit codes: 0 in sync, 1 other, 2 usage, 3 partial, 4 source invalid, 5 try again later, 7 too many deletions,
8 limit reached, 10 locked, 11 gap, 12 not authorised, 13 disk, 130 cancelled.";

/// Which Source and which folder, and how to reach the one from the other.
#[derive(Debug, Args)]
pub(crate) struct MirrorArgs {
    /// Any address of the Source
    pub(crate) url: String,
    /// The folder of the copy
    pub(crate) folder: PathBuf,
    /// Where to keep the copy's state [default: .abreast in the folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// What URIs begin with that is not part of their path [default: as the Source says, else what they share]
    #[arg(long, value_name = "URI")]
    pub(crate) base: Option<String>,
    /// Which set, by name or Capability List URL, if the Source has several
    #[arg(long, value_name = "NAME|URL")]
    pub(crate) set: Option<String>,
    /// Requests in flight to one host
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) connections: u16,
    /// Another host that resources may be on; may be given several times
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// Let a list served over https name http resources
    #[arg(long)]
    pub(crate) allow_downgrade: bool,
    /// Trust the certificates in this PEM file as well
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Attempts to repeat a request that failed for now
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) retries: u32,
    /// One JSON object a line on standard output: status, item, error, notice, summary
    #[arg(long)]
    pub(crate) json: bool,
    /// Tell nothing but errors
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Options of `sync`.
#[derive(Debug, Args)]
#[command(after_help = SYNC_HELP)]
pub(crate) struct SyncArgs {
    #[command(flatten)]
    pub(crate) mirror: MirrorArgs,
    /// Stay, and apply changes as they come
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) follow: bool,
    /// Time between polls when following
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    pub(crate) interval: std::time::Duration,
    /// Show what would be done, do nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Compare with the whole Resource List, even where following changes would do
    #[arg(long)]
    pub(crate) baseline: bool,
    /// Refuse resources without a digest to check them by
    #[arg(long)]
    pub(crate) require_fixity: bool,
    /// Most deletions in one run, a number or a share of the copy [default: 10% or 1000, whichever is more]
    #[arg(long, value_name = "N|P%", value_parser = abreast_destination::MaxDelete::parse)]
    pub(crate) max_delete: Option<abreast_destination::MaxDelete>,
    /// Never replace or delete a file that was changed here
    #[arg(long)]
    pub(crate) immutable: bool,
    /// Where files that were changed here go before they are replaced [default: backup in the state folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) backup_dir: Option<PathBuf>,
}

const AUDIT_HELP: &str = "\
Examples:
  abreast audit https://papers.example.org/ ./papers
  abreast audit https://papers.example.org/ ./papers --full --json

Changes nothing. Exit code 0: the folder equals the Source; 1: it differs.";

/// Options of `audit`.
#[derive(Debug, Args)]
#[command(after_help = AUDIT_HELP)]
pub(crate) struct AuditArgs {
    #[command(flatten)]
    pub(crate) mirror: MirrorArgs,
    /// Compare every digest, not only lengths and times
    #[arg(long)]
    pub(crate) full: bool,
}

/// Options of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Leave it running at the end, and print the addresses
    #[arg(long)]
    pub(crate) keep: bool,
    /// Where to make the two folders [default: a temporary folder, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
