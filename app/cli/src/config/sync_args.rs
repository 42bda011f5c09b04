//! The options of `sync` and `audit`; a job of a configuration file has the same ones.

use crate::config::access::AccessArgs;
use crate::config::admin::AdminArgs;
use crate::config::filter_rules::ordered_rules;
use crate::config::follow_args::FollowArgs;
use crate::config::on_change_args::OnChangeArgs;
use crate::config::publish_args::PublishArgs;
use crate::config::source_args::{OfferArgs, ReadingArgs};
use crate::program::progress::ProgressArgs;
use crate::values::json_ld::JsonLdContext;
use crate::values::sizes::parse_size;
use abreast_destination::{Filter, MaxDelete, UriList};
use abreast_net::Bandwidth;
use abreast_webtypes::W3cDatetime;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const SYNC_HELP: &str = "\
Examples:
  abreast sync https://papers.example.org/ ./papers
  abreast sync https://library.example.org/ ./papers --set papers
  abreast sync https://library.example.org/ ./library --all-sets
  abreast sync https://papers.example.org/ ./papers --include '*.pdf' --bwlimit 2M --follow
  abreast sync https://papers.example.org/papers/capabilitylist.xml ./papers --dry-run --json
  abreast sync --config /etc/abreast.toml papers
  abreast sync https://papers.example.org/ warc:./archive
  abreast sync https://papers.example.org/ - --state ./state | my-indexer
  abreast sync https://authorities.example.org/sdshare nquads:./graph
  abreast sync https://authorities.example.org/authorities/emm/1.0 nquads:./graph

URL may be any ResourceSync document, a page that links to one, or a site's root; an overview or collection of SDShare, or one of
its feeds; or the Entry Point of a change feed (EMM, IIIF Change Discovery). The first run copies everything, later
runs apply changes. A file appears under its name only when it is complete and verified; files that others put
into the folder are never deleted; a locally changed file is moved to .abreast/backup before it is replaced.
A folder whose name has a colon is written with its path: ./warc:x. Other words before a colon than those of the kinds of copies, and options
that have no effect on the kind, are refused.

Exit codes: 0 in sync, 1 other, 2 usage, 3 partial, 4 source invalid, 5 try again later, 6 no secure
connection, 7 too many deletions, 8 limit reached, 10 locked, 11 gap, 12 not authorised, 13 disk or permission denied, 130 cancelled.";

/// The Source and the copy, and how to reach the Source.
#[derive(Clone, Debug, Args)]
pub(crate) struct MirrorArgs {
    /// Any address of the Source and the copy: a folder, warc:DIR for WARC files,
    /// s3://BUCKET/PREFIX, nquads:DIR for files of N-Quads, labels:FILE.db or labels:FILE.csv for a
    /// table of labels, oxigraph:DIR for a store of Oxigraph,
    /// sparql:URL for a SPARQL endpoint, graphstore:URL for a graph store, push:URL for a receiver of
    /// SDShare Push, set:NAME for the folder of a set in the configuration of `abreast serve`, to be
    /// published again, or - for lines on standard output; with --config, names of jobs
    #[arg(value_name = "URL FOLDER | JOB", required_unless_present_any = ["config", "all"])]
    pub(crate) places: Vec<String>,
    /// Read jobs from a configuration file, each a `[[mirror]]`; options given here take precedence
    #[arg(long, value_name = "FILE", env = "ABREAST_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Run all jobs of the configuration file
    #[arg(long, requires = "config")]
    pub(crate) all: bool,
    /// Keep the copy's state here [default: .abreast in the folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Base URI that is not part of the paths [default: as stated by the Source, else the common
    /// prefix]
    #[arg(long, value_name = "URI")]
    pub(crate) base: Option<String>,
    /// Select a set, by name or Capability List URL, if the Source has several
    #[arg(long, value_name = "NAME|URL")]
    pub(crate) set: Option<String>,
    /// Copy all sets of the Source, each in its own folder below FOLDER
    #[arg(long, conflicts_with_all = ["set", "base"])]
    pub(crate) all_sets: bool,
    /// Parallel requests to one host [default: 8, 64 of small resources, or 100 by HTTP/2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) connections: Option<u16>,
    /// Also fetch resources from this host; repeatable
    #[arg(long, value_name = "HOST", value_parser = crate::values::address::host)]
    pub(crate) allow_host: Vec<String>,
    /// Property of a deprecated entity that names what to use instead; repeatable, the best first [default:
    /// dcterms:isReplacedBy and others]
    #[arg(long, value_name = "IRI", value_parser = crate::values::address::property)]
    pub(crate) replaced_by: Vec<String>,
    /// Context of JSON-LD, by its URL, as a file: documents name it, and it is never fetched; repeatable
    #[arg(long, value_name = "URL=FILE", value_parser = crate::values::json_ld::context)]
    pub(crate) context: Vec<JsonLdContext>,
    /// Leave out statements of RDF that are not valid, such as those with a space in an IRI, and store the others [default: the
    /// description or file with one fails]. Only for targets of RDF, and for SDShare, EMM and IIIF
    #[arg(long)]
    pub(crate) leave_out_invalid: bool,
    /// Allow http resources in lists served over https
    #[arg(long)]
    pub(crate) allow_downgrade: bool,
    /// Retries after a transient failure
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) retries: u32,
    /// Print one JSON object per line: status, item, error, notice, summary
    #[arg(long)]
    pub(crate) json: bool,
    /// Print errors only
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
    #[command(flatten)]
    pub(crate) target: crate::config::target::TargetArgs,
    #[command(flatten)]
    pub(crate) filter: FilterArgs,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
    #[command(flatten)]
    pub(crate) pace: PaceArgs,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

/// Options of `sync`.
#[derive(Clone, Debug, Args)]
#[command(after_help = SYNC_HELP)]
pub(crate) struct SyncArgs {
    /// Keep running, and apply changes as they happen
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) follow: bool,
    /// Time between polls; longer while the Source declares its list fresh (up to 1h), and 10
    /// times as long while notifications arrive
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = humantime::parse_duration)]
    pub(crate) interval: Duration,
    /// Print what would be done, and change nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Print the effect of the filters on each resource, and the deciding rule; change nothing
    #[arg(long, conflicts_with_all = ["follow", "dry_run"])]
    pub(crate) test_filter: bool,
    /// Compare the copy with all that the Source lists, and restore missing or altered files
    #[arg(long)]
    pub(crate) baseline: bool,
    /// With --baseline: compare the digests of all files, not only lengths and times
    #[arg(long, requires = "baseline")]
    pub(crate) full: bool,
    /// Refuse resources without a digest
    #[arg(long)]
    pub(crate) require_fixity: bool,
    /// Limit of deletions in one run, a number or a share of the copy [default: 10% or 1000,
    /// whichever is more, and at most half of a copy of 10 or more]
    #[arg(long, value_name = "N|P%", value_parser = MaxDelete::parse)]
    pub(crate) max_delete: Option<MaxDelete>,
    /// Delete files of the copy that the filters now exclude
    #[arg(long)]
    pub(crate) delete_excluded: bool,
    /// Keep the copy of a Source that has moved to this URL, if the same set is there
    #[arg(long, conflicts_with = "all_sets")]
    pub(crate) moved: bool,
    /// Never replace or delete a file that was changed locally
    #[arg(long)]
    pub(crate) immutable: bool,
    /// Write the original address beside each file, so that `abreast serve` on the folder publishes
    /// it again
    #[arg(long)]
    pub(crate) republish: bool,
    /// Move locally changed files here before they are replaced [default: backup in the state
    /// folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) backup_dir: Option<PathBuf>,
    /// Stop after receiving this much, such as 500M or 10G; the next run continues
    #[arg(long, value_name = "SIZE", value_parser = parse_size, conflicts_with = "follow")]
    pub(crate) max_bytes: Option<u64>,
    /// Stop after this time, such as 2h; the next run continues
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration, conflicts_with = "follow")]
    pub(crate) max_time: Option<Duration>,
    /// Options without their own heading come first; otherwise clap lists them under the last
    /// heading.
    #[command(flatten)]
    pub(crate) mirror: MirrorArgs,
    #[command(flatten)]
    pub(crate) offer: OfferArgs,
    #[command(flatten)]
    pub(crate) notifications: FollowArgs,
    #[command(flatten)]
    pub(crate) on_change: OnChangeArgs,
    #[command(flatten)]
    pub(crate) publish: PublishArgs,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

const AUDIT_HELP: &str = "\
Examples:
  abreast audit https://papers.example.org/ ./papers
  abreast audit https://papers.example.org/ ./papers --full --json
  abreast audit https://authorities.example.org/sdshare nquads:./graph
  abreast audit https://authorities.example.org/authorities/emm/1.0 nquads:./graph

URL and TARGET are those of `abreast sync`. Read-only. Exit code 0: the copy equals the Source; 1: it differs; `abreast sync URL FOLDER --baseline` repairs it; 3: no
difference was found, but not all could be compared.";

/// Options of `audit`.
#[derive(Clone, Debug, Args)]
#[command(after_help = AUDIT_HELP)]
pub(crate) struct AuditArgs {
    /// Compare every digest, not only lengths and times
    #[arg(long)]
    pub(crate) full: bool,
    #[command(flatten)]
    pub(crate) mirror: MirrorArgs,
}

/// Limits of rate and bandwidth.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct PaceArgs {
    /// Limit bytes per second over all connections: 512K, 2M, off; or a timetable in local time,
    /// such as "08:00,512K 18:00,off" or "Mon-08:00,1M Fri-18:00,off"
    #[arg(long, value_name = "RATE|TIMETABLE", env = "ABREAST_BWLIMIT", value_parser = parse_bandwidth)]
    pub(crate) bwlimit: Option<Bandwidth>,
    /// Limit requests to one host: 5/s, 30/m, 1000/h; a number alone is per second
    #[arg(long, value_name = "N/UNIT", value_parser = parse_rate)]
    pub(crate) rate: Option<Duration>,
    /// Ignore robots.txt
    #[arg(long)]
    pub(crate) ignore_robots: bool,
}

/// Which resources, by rules in the order in which they are given.
#[derive(Clone, Debug, Default)]
pub(crate) struct FilterArgs {
    pub(crate) filter: Filter,
    pub(crate) uris: Option<Arc<UriList>>,
    pub(crate) categories: Vec<String>,
}

/// Arguments as clap parses them; [`FilterArgs`] restores the order between them.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filters (the first rule that matches decides)")]
struct RawFilterArgs {
    /// Copy resources matching this path, `uri:` or `type:` pattern, and no others except by other
    /// rules
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,
    /// Leave out resources matching this path, `uri:` or `type:` pattern, as in .gitignore:
    /// '*.tmp', /drafts/, 'type:image/*'
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Add a rule as in filter files: "+ PATTERN" includes, "- PATTERN" leaves out
    #[arg(long, value_name = "RULE", allow_hyphen_values = true)]
    filter: Vec<String>,
    /// Read rules from a file, one per line; lines that begin with # are comments
    #[arg(long, value_name = "FILE")]
    filter_from: Vec<PathBuf>,
    /// Copy only the resources whose URIs are in this file, one per line; lines that begin with #
    /// are comments
    #[arg(long, value_name = "FILE")]
    uris_from: Option<PathBuf>,
    /// Copy only resources of this category, by its URI or name, from a Source of ResourceSync 0.1;
    /// repeatable: of any of them
    #[arg(long, value_name = "TEXT|URI", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    category: Vec<String>,
    /// Leave out smaller resources, if the size is listed: 1000, 10K, 2M
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    min_size: Option<u64>,
    /// Leave out larger resources, if the size is listed
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_size: Option<u64>,
    /// Leave out resources modified before, if the time is listed: 2026, 2026-01-31,
    /// 2026-01-31T12:00:00Z
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    modified_since: Option<W3cDatetime>,
    /// Leave out resources modified at or after, if the time is listed
    #[arg(long, value_name = "DATE", value_parser = parse_date)]
    modified_before: Option<W3cDatetime>,
}

impl FilterArgs {
    fn made(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let raw = RawFilterArgs::from_arg_matches(matches)?;
        let files: Vec<_> = raw.filter_from.iter().chain(&raw.uris_from).cloned().collect();
        Self::of(matches, raw).map_err(|message| {
            use clap::error::ErrorKind::{Io, ValueValidation};
            // Only after reading failed: a pipe gives its content once.
            let is_denied = files.iter().filter(|path| is_regular(path)).any(|path| {
                let opened = std::fs::File::open(path);
                opened.is_err_and(|error| crate::program::exit::is_denied(&error))
            });
            clap::Error::raw(if is_denied { Io } else { ValueValidation }, message + "\n")
        })
    }

    fn of(matches: &ArgMatches, raw: RawFilterArgs) -> Result<Self, String> {
        let rules =
            ordered_rules(matches, [&raw.include, &raw.exclude, &raw.filter], &raw.filter_from)?;
        let filter = Filter::new(rules.iter().map(String::as_str))?;
        let filter = if raw.include.is_empty() { filter } else { filter.only() };
        let filter = filter
            .sized(raw.min_size, raw.max_size)
            .modified(raw.modified_since, raw.modified_before);
        let uris = raw.uris_from.as_deref().map(UriList::read).transpose()?.map(Arc::new);
        Ok(Self { filter, uris, categories: raw.category })
    }
}

/// Whether opening a path waits for nobody. A folder that may not be searched hides what the path is.
fn is_regular(path: &std::path::Path) -> bool {
    match std::fs::metadata(path) {
        Ok(stat) => stat.is_file(),
        Err(error) => crate::program::exit::is_denied(&error),
    }
}

impl FromArgMatches for FilterArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Self::made(matches)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Args for FilterArgs {
    fn augment_args(command: Command) -> Command {
        RawFilterArgs::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        RawFilterArgs::augment_args_for_update(command)
    }
}

fn parse_date(text: &str) -> Result<W3cDatetime, String> {
    W3cDatetime::parse(text.as_bytes()).map_err(|error| {
        format!("{error}; expected a date such as `2026-01-31` or `2026-01-31T12:00:00Z`")
    })
}

fn parse_bandwidth(text: &str) -> Result<Bandwidth, String> {
    Bandwidth::parse(text)
        .map(|limit| limit.with_clock(local_minute))
        .map_err(|error| error.to_string())
}

/// Minute of the week by the clock on the wall.
fn local_minute() -> u32 {
    let now = jiff::Zoned::now();
    let day = now.weekday().to_monday_zero_offset().unsigned_abs();
    (u32::from(day) * 24 + u32::from(now.hour().unsigned_abs())) * 60
        + u32::from(now.minute().unsigned_abs())
}

/// The time between two requests.
pub(crate) fn parse_rate(text: &str) -> Result<Duration, String> {
    let (number, unit) = text.split_once('/').unwrap_or((text, "s"));
    let seconds = match unit.trim() {
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        _ => 0.0,
    };
    match number.trim().parse::<f64>() {
        Ok(number) if seconds > 0.0 && (0.001..1e6).contains(&number) => {
            Ok(Duration::from_secs_f64(seconds / number))
        }
        _ => Err("expected requests per time such as `5/s`, `30/m` or `1000/h`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Program {
        #[command(flatten)]
        sync: SyncArgs,
    }

    fn filter(arguments: &[&str]) -> Result<String, String> {
        let all = ["sync", "http://h/", "folder"].iter().chain(arguments);
        let parsed = Program::try_parse_from(all).map_err(|error| error.to_string())?;
        Ok(format!("{:?}", parsed.sync.mirror.filter.filter))
    }

    #[test]
    fn filters_keep_the_order_in_which_they_are_given() {
        let same = filter(&["--include", "a", "--exclude", "*", "--include", "b"]).unwrap();
        let made = Filter::new(["+ a", "- *", "+ b"]).unwrap().only();
        assert_eq!(same, format!("{made:?}"));
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("rules");
        std::fs::write(&file, "# mine\n- x\n+ y\n").unwrap();
        let file = file.to_str().unwrap();
        let mixed = filter(&[
            "--filter",
            "- first",
            "--filter-from",
            file,
            "--exclude",
            "last",
            "--max-size",
            "2K",
        ])
        .unwrap();
        let made =
            Filter::new(["- first", "- x", "+ y", "- last"]).unwrap().sized(None, Some(2_048));
        assert_eq!(mixed, format!("{made:?}"));
    }

    #[test]
    fn invalid_values_are_refused_with_an_example() {
        for (arguments, part) in [
            (["--filter", "nonsense"], "begins with neither"),
            (["--exclude", "[a"], "is not a rule"),
            (["--filter-from", "/nowhere/at/all"], "/nowhere/at/all"),
            (["--uris-from", "/nowhere/at/all"], "/nowhere/at/all"),
            (["--min-size", "big"], "10K"),
            (["--modified-since", "yesterday"], "2026-01-31"),
            (["--bwlimit", "12"], "512K"),
            (["--rate", "0/s"], "30/m"),
            (["--rate", "1/day"], "30/m"),
        ] {
            let error = filter(&arguments).unwrap_err();
            assert!(error.contains(part), "{arguments:?}: {error}");
        }
        assert_eq!(parse_rate("30/m"), Ok(Duration::from_secs(2)));
        assert_eq!(parse_rate("4"), Ok(Duration::from_millis(250)));
        assert_eq!(parse_size("1.5K"), Ok(1_536));
        assert!(local_minute() < 7 * 24 * 60);
    }
}
