//! `abreast validate`: flags into options, findings into an exit code.

use crate::config::access::AccessArgs;
use crate::config::sync_args::parse_rate;
use crate::program::errors::UsageError;
use crate::values::address::is_url;
use crate::values::sizes::parse_size;
use abreast_maintenance::replace_file;
use abreast_validator::{
    Document, Mode, Options, Report, Severity, Share, Unreachable, html, ndjson, text, validate,
};
use anyhow::bail;
use clap::{Args, ValueEnum};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const HELP: &str = "\
Examples:
  abreast validate https://papers.example.org/
  abreast validate https://papers.example.org/changelist.xml --no-walk --strict
  abreast validate resourcelist.xml package.zip dump.warc.gz --format json
  abreast validate https://papers.example.org/sdshare
  abreast validate https://id.example.org/authorities/emm/1.0
  abreast validate https://papers.example.org/ --sample all --format html > report.html

URL may be any ResourceSync document, a page that links to one, or a site's root: the whole Source is read from
there, up and down, each address once. From a feed of SDShare everything below it is read, and all pages from an Entry Point or
page of a change feed (EMM 0.1 and 1.0, IIIF Change Discovery). From a Sitemap or change set of ResourceSync 0.1 its lists, change
sets and dump are read. Files (documents, feeds, patches, also in gzip, ZIP packages
and WARC dumps) are checked one by one.

Exit codes: 0 no findings of that severity, 1 errors found (or as --fail-on states), 2 usage; if no document can be read: 4 the
address has no document, 5 try again later, 6 no secure connection, 12 not authorised; 130 cancelled.";

/// Options of `validate`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ValidateArgs {
    /// Addresses of a Source, or files
    #[arg(required = true, value_name = "URL|FILE")]
    pub(crate) starts: Vec<String>,
    /// Check the given documents only
    #[arg(long)]
    pub(crate) no_walk: bool,
    /// Fetch resources of each set and compare them with the lists: a number, all or none
    #[arg(long, value_name = "N|all|none", default_value = "40", value_parser = Share::parse)]
    pub(crate) sample: Share,
    /// Fetch and check packages of each dump: a number, all or none
    #[arg(long, value_name = "N|all|none", default_value = "2", value_parser = Share::parse)]
    pub(crate) packages: Share,
    /// Seed of the samples: the same number selects the same resources [default: random]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Report also deviations from recommendations
    #[arg(long, conflicts_with = "lenient")]
    pub(crate) strict: bool,
    /// Report as errors only faults that break readers
    #[arg(long)]
    pub(crate) lenient: bool,
    /// Format of the report
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Write the report to this file, which is replaced when the report is complete and at least one document was read
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Exit with code 1 for findings of this severity or a higher one: note, warning, error
    #[arg(long, value_enum, default_value_t = FailOn::Error)]
    pub(crate) fail_on: FailOn,
    /// Findings printed of one rule in one document
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) max_findings: usize,
    // Last: the heading in it would be that of all options after it.
    #[command(flatten)]
    pub(crate) walk: WalkArgs,
}

/// Where a walk may go, and where it ends; also for `explore`.
#[derive(Debug, Args)]
pub(crate) struct WalkArgs {
    /// Parallel requests to one host
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) connections: u16,
    /// Also check documents on this host; repeatable
    #[arg(long, value_name = "HOST", value_parser = crate::values::address::host)]
    pub(crate) allow_host: Vec<String>,
    /// Retries after a transient failure
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) retries: u32,
    /// Limit requests to one host: 5/s, 30/m, 1000/h; a number alone is per second
    #[arg(long, value_name = "N/UNIT", value_parser = parse_rate)]
    pub(crate) rate: Option<Duration>,
    /// Read at most this many documents and packages
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) max_documents: usize,
    /// Read at most this much, unpacked
    #[arg(long, value_name = "SIZE", default_value = "16G", value_parser = parse_size)]
    pub(crate) max_bytes: u64,
    /// Largest package or resource to fetch
    #[arg(long, value_name = "SIZE", default_value = "256M", value_parser = parse_size)]
    pub(crate) max_size: u64,
    /// Time limit
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = humantime::parse_duration)]
    pub(crate) max_time: Duration,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
}

impl WalkArgs {
    /// Credentials are for the first URL's server.
    pub(crate) fn options(&self, mut starts: Vec<String>) -> anyhow::Result<Options> {
        let mut net = abreast_net::Options::default();
        // Report an unusable address as a finding if other addresses are usable.
        let faults: Vec<anyhow::Error> =
            starts.iter().filter_map(|start| usable(start).err()).collect();
        if faults.len() == starts.len()
            && let Some(fault) = faults.into_iter().next()
        {
            return Err(fault);
        }
        if let Some(first) = starts.iter_mut().find(|start| is_url(start)) {
            *first = self.access.apply(first, &mut net)?;
        }
        let mut options = Options::new(starts);
        options.net = net;
        options.connections = usize::from(self.connections);
        options.allow_hosts.clone_from(&self.allow_host);
        options.net.retries = self.retries;
        options.net.request_interval = self.rate.unwrap_or_default();
        options.max_documents = self.max_documents;
        options.max_bytes = self.max_bytes;
        options.max_file_bytes = self.max_size;
        options.max_time = self.max_time;
        Ok(options)
    }
}

/// Checks that an address or file can be asked for.
fn usable(start: &str) -> anyhow::Result<()> {
    if is_url(start) {
        crate::values::address::check_source(start)?;
        return Ok(());
    }
    if let Err(error) = std::fs::File::open(start)
        && crate::program::exit::is_denied(&error)
    {
        return Err(anyhow::Error::new(error).context(format!("cannot read `{start}`")));
    }
    let is_missing = match std::fs::metadata(start) {
        Ok(found) if found.is_dir() => bail!(UsageError(format!(
            "`{start}` is a folder, not a document\n  help: name a document in it, or a URL that begins with http:// or https://"
        ))),
        found => found.is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound),
    };
    if is_missing {
        // A name with a dot alone is a file's.
        let meant = crate::values::address::with_scheme(start)
            .filter(|_| start.contains(['/', ':']))
            .map_or_else(String::new, |meant| format!("; for a server, did you mean `{meant}`?"));
        let help = format!("name a file, or a URL that begins with http:// or https://{meant}");
        bail!(UsageError(format!("no such file: `{start}`\n  help: {help}")));
    }
    Ok(())
}

/// Format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text for people, by document
    Text,
    /// One JSON object per line: documents, findings, summary
    Json,
    /// A self-contained web page
    Html,
}

/// The least severe finding that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    Error,
    Warning,
    Note,
}

/// The options of the validation that the arguments ask for.
pub(crate) fn options(args: &ValidateArgs) -> anyhow::Result<Options> {
    let mut options = args.walk.options(args.starts.clone())?;
    options.walk = !args.no_walk;
    options.sample = args.sample;
    options.packages = args.packages;
    options.seed = args.seed.unwrap_or_else(seed_of_now);
    options.most_each = args.max_findings;
    options.mode = match (args.strict, args.lenient) {
        (true, _) => Mode::Strict,
        (_, true) => Mode::Lenient,
        _ => Mode::Normal,
    };
    Ok(options)
}

/// Runs `validate`.
pub(crate) fn run(args: &ValidateArgs) -> ExitCode {
    let options = match options(args) {
        Ok(options) => options,
        Err(error) => {
            let code = crate::program::exit::code(&error);
            crate::program::logging::failure(&error, code);
            return ExitCode::from(code);
        }
    };
    let cancel = crate::program::signals::cancel_on_signal();
    let report = validate(&options, &cancel);
    let told = match args.format {
        Format::Text => text(&report),
        Format::Json => ndjson(&report),
        Format::Html => html(&report),
    };
    let Some(file) = &args.output else {
        crate::program::terminal::report(told.trim_end());
        return ExitCode::from(exit_code(&report, args.fail_on));
    };
    if !(report.cancelled || report.saw_nothing())
        && let Err(error) = write_report(file, told.as_bytes())
    {
        let error = anyhow::Error::new(error).context(format!("cannot write `{}`", file.display()));
        let code = crate::program::exit::code(&error);
        crate::program::logging::failure(&error, code);
        return ExitCode::from(code);
    }
    ExitCode::from(exit_code(&report, args.fail_on))
}

/// Replaces a file, also behind a link; writes to devices and pipes.
fn write_report(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let target = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    if fs::metadata(&target).is_ok_and(|found| !found.is_file()) {
        return fs::OpenOptions::new().write(true).open(&target)?.write_all(bytes);
    }
    // The path in the error is that of a temporary file, which means nothing to people.
    replace_file(&target, bytes).map_err(|error| error.kind().into())
}

/// The exit code of a validation.
pub(crate) fn exit_code(report: &Report, fail_on: FailOn) -> u8 {
    let least = match fail_on {
        FailOn::Error => Severity::Error,
        FailOn::Warning => Severity::Warning,
        FailOn::Note => Severity::Note,
    };
    if report.cancelled {
        130
    } else if report.saw_nothing() {
        nothing_found(report)
    } else {
        u8::from(report.findings.iter().any(|found| found.severity >= least))
    }
}

/// The exit code when nothing at all could be read.
pub(crate) fn nothing_found(report: &Report) -> u8 {
    let is_file = |document: &Document| !is_url(&document.url);
    match report.unreachable {
        Some(Unreachable::Tls) => crate::program::exit::TLS,
        Some(Unreachable::Auth) => crate::program::exit::AUTH,
        Some(_) => crate::program::exit::NETWORK,
        None if report.documents.iter().all(is_file) => crate::program::exit::USAGE,
        None => crate::program::exit::SOURCE,
    }
}

/// A random sample, printed in the report so that it can be repeated.
fn seed_of_now() -> u64 {
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    now.as_millis() as u64 % 1_000_000
}
