//! `abreast import`: records of resources that live elsewhere, from lines of JSON, a table or a
//! Sitemap.

use crate::config::UsageError;
use crate::log_access::{BatchCounts, ExitCodeError, LogAccess, LogAccessArgs};
use crate::logging;
use crate::rdf::JsonLdContext;
use crate::stores::Task;
use abreast_core::{ChangeLog as _, NewSet, SetId, SystemClock};
use abreast_server::api::model::{ChangeWord, RecordRequest};
use abreast_server::api::{JsonLines, ReadError, Table, change_of};
use abreast_source::projection::resourcesync::{ListError, ListReader, ListedChange, ListedRecord};
use abreast_store::MemoryLog;
use abreast_webtypes::count;
use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

const HELP: &str = "\
Examples:
  abreast import repository records.ndjson --server http://127.0.0.1:8080/
  abreast import repository sitemap.xml --data /var/lib/abreast
  abreast import authorities dump.nt.gz --data /var/lib/abreast --dry-run
  abreast import authorities --delta today.rdfp --data /var/lib/abreast
  abreast log papers --server https://a.example.org/ | abreast import papers --config /etc/abreast.toml

Formats: ndjson, one object a line as `abreast log` writes them; csv, whose first line names the columns uri, change,
lastmod, length, type, encoding, hash; sitemap, also a ResourceSync Resource List or Change List with its links.
With --server changes go through the API of a running server (token: --token-file or ABREAST_TOKEN); with --data or
--config into a store that no server has open. In a new set they become its base, before its log begins. A batch is
recorded completely or not at all; a second run records only what is still different. A file is checked as a whole first; of
standard input, batches before wrong input are recorded.
RDF (.nt, .nq, .ttl, .trig, .rdf, .owl, .jsonld, and .xml with the root rdf:RDF, also with .gz, .bz2, .xz or .zst) is the complete state of a set (docs/rdf.md); with --delta, or --add and --remove, it is a difference, of which all or
nothing is recorded.

Exit codes: 0 ok, 1 other, 2 usage or wrong input, 3 some batches were recorded before wrong input, or entities were left out, 5 try again later,
6 no secure connection, 10 a server has the store open, 12 not authorised, 13 disk or permission denied, 130 cancelled.";

/// How records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One JSON object per line
    Ndjson,
    /// A table whose first line has the column names
    Csv,
    /// A Sitemap, a Resource List or a Change List
    Sitemap,
    /// RDF in N-Triples
    Ntriples,
    /// RDF in N-Quads
    Nquads,
    /// RDF in Turtle
    Turtle,
    /// RDF in `TriG`
    Trig,
    /// RDF in XML
    Rdfxml,
    /// RDF in JSON-LD
    Jsonld,
}

/// Options of `import`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ImportArgs {
    /// Name of the set
    pub(crate) set: String,
    /// Input files, several for RDF only [default: standard input]
    #[arg(value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Format of the input [default: by the file's name, else ndjson]
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// RDF only: accept all deletions, however many
    #[arg(long)]
    pub(crate) confirm_deletions: bool,
    /// RDF only: the files are RDF Patch, which adds and removes statements (A and D), and not the
    /// complete state
    #[arg(long, conflicts_with = "format")]
    pub(crate) delta: bool,
    /// RDF only: add the statements in this file, and leave all others; repeatable
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    pub(crate) add: Vec<PathBuf>,
    /// RDF only: remove the statements in this file (blank nodes are not allowed), and leave all
    /// others; repeatable
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    pub(crate) remove: Vec<PathBuf>,
    /// RDF only: read only this named graph; `default` is the default graph; repeatable [default: all]
    #[arg(long, value_name = "IRI", value_parser = crate::config::check_graph)]
    pub(crate) graph: Vec<String>,
    /// RDF only: resolve relative IRIs against this one [default: relative IRIs are rejected]
    #[arg(long, value_name = "IRI", value_parser = crate::config::check_iri)]
    pub(crate) base: Option<String>,
    /// Ignore removals of statements that do not exist
    #[arg(long)]
    pub(crate) lenient: bool,
    /// RDF only: replace shared and unattached blank nodes by IRIs with this prefix
    #[arg(long, value_name = "URL", value_parser = crate::config::check_base)]
    pub(crate) skolemize: Option<String>,
    /// RDF only: leave out statements that are not valid, such as those with a space in an IRI, and import the others
    /// [default: one such statement is an error, and nothing is imported]
    #[arg(long)]
    pub(crate) leave_out_invalid: bool,
    /// RDF only: read this context of JSON-LD from a file; repeatable [default: contexts are never fetched]
    #[arg(long, value_name = "URL=FILE", value_parser = crate::rdf::context)]
    pub(crate) context: Vec<JsonLdContext>,
    /// Changes recorded in one transaction
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    batch: u32,
    /// Check the input, and for RDF report what would change; record nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object as the last line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) log: LogAccessArgs,
}

impl ImportArgs {
    /// Whether statements are added and removed, and the others stay.
    pub(crate) fn is_delta(&self) -> bool {
        self.delta || !self.add.is_empty() || !self.remove.is_empty()
    }

    /// Refuses options that have no effect on such an input.
    fn check(&self, is_rdf: bool) -> Result<()> {
        let is_state = is_rdf && !self.is_delta();
        for (name, is_given, has_effect, input) in [
            ("confirm-deletions", self.confirm_deletions, is_rdf, "RDF"),
            ("graph", !self.graph.is_empty(), is_rdf, "RDF"),
            ("base", self.base.is_some(), is_rdf, "RDF"),
            ("context", !self.context.is_empty(), is_rdf, "RDF"),
            ("skolemize", self.skolemize.is_some(), is_state, "the complete state of an RDF set"),
            (
                "leave-out-invalid",
                self.leave_out_invalid,
                is_state,
                "the complete state of an RDF set",
            ),
            ("lenient", self.lenient, self.is_delta(), "a difference (--delta, --add, --remove)"),
        ] {
            if is_given && !has_effect {
                bail!(UsageError(format!(
                    "`--{name}` is only for {input} (help: leave it out, or state the format of the input with --format)"
                )));
            }
        }
        // The same for every format, and for a dry run: an import with `--data` makes no folder.
        self.log.data.as_deref().map_or(Ok(()), crate::data_folder::check_data)
    }
}

/// Records the changes that are read.
pub(crate) fn run(args: &ImportArgs) -> ExitCode {
    let is_rdf = match args.format {
        _ if args.is_delta() => true,
        Some(format) => crate::rdf::syntax_of(format).is_some(),
        None => args.files.first().is_some_and(|path| crate::rdf::is_rdf(path)),
    };
    if is_rdf {
        return import_rdf(args);
    }
    let mut total = BatchCounts::default();
    let result = args.check(false).and_then(|()| import(args, &mut total));
    let code = match &result {
        Ok(()) => 0,
        Err(error) => match crate::exit::code(error) {
            2 if !args.dry_run && total.recorded + total.unchanged > 0 => 3,
            code => code,
        },
    };
    if let Err(error) = &result {
        logging::failure(error, code);
    }
    if args.json {
        let line = json!({
            "type": "summary", "head": total.head, "recorded": total.recorded, "unchanged": total.unchanged,
            "dry_run": args.dry_run, "exit_code": code,
        });
        crate::terminal::line(&line.to_string());
    } else if code == 0 || total.recorded + total.unchanged > 0 {
        let how = if args.dry_run { "would record" } else { "recorded" };
        crate::terminal::line(&format!(
            "{how} {}; unchanged: {}",
            count(total.recorded, "change"),
            total.unchanged
        ));
    }
    ExitCode::from(code)
}

/// Makes RDF files the complete state of a set.
fn import_rdf(args: &ImportArgs) -> ExitCode {
    let result = args.check(true).and_then(|()| crate::rdf::import(args));
    let code = match &result {
        Ok(report) if report.left_out + report.invalid_statements > 0 => 3,
        Ok(_) => 0,
        Err(error) => crate::exit::code(error),
    };
    let report = match result {
        Ok(report) => report,
        Err(error) => {
            logging::failure(&error, code);
            if args.json {
                crate::terminal::line(&json!({ "type": "summary", "exit_code": code }).to_string());
            }
            return ExitCode::from(code);
        }
    };
    if args.json {
        let line = json!({
            "type": "summary", "entities": report.entities, "created": report.created, "updated": report.updated,
            "deleted": report.deleted, "unchanged": report.unchanged, "left_out": report.left_out,
            "invalid_statements": report.invalid_statements,
            "shared_blank_nodes": report.shared_blank_nodes,
            "unreached_blank_nodes": report.unreached_blank_nodes, "dry_run": args.dry_run, "exit_code": code,
        });
        crate::terminal::line(&line.to_string());
    } else {
        crate::terminal::line(&format!(
            "{}{}: {} new, {} changed, {} deleted, {} unchanged{}{}",
            if args.dry_run { "dry run, nothing was recorded: " } else { "" },
            count(report.entities, "entity"),
            report.created,
            report.updated,
            report.deleted,
            report.unchanged,
            if report.left_out > 0 {
                format!(", {} left out", report.left_out)
            } else {
                String::new()
            },
            if report.invalid_statements > 0 {
                format!("; invalid statements left out: {}", report.invalid_statements)
            } else {
                String::new()
            }
        ));
    }
    ExitCode::from(code)
}

fn import(args: &ImportArgs, total: &mut BatchCounts) -> Result<()> {
    let file = match args.files.as_slice() {
        [] => None,
        [file] => Some(file),
        [_, ..] => {
            bail!(UsageError("only RDF can be imported from several files (help: name one)".into()))
        }
    };
    let record =
        |input, batches: &mut Batches<'_>| record(args, file, input, batches).map_err(wrong_input);
    let open = || -> Result<Box<dyn Read>> {
        Ok(match file {
            Some(path) => {
                let file = File::open(path)
                    .with_context(|| format!("cannot read `{}`", path.display()))?;
                match extension(path).filter(|ending| PACKED.contains(&ending.as_str())) {
                    Some(ending) => abreast_statements::unpacked(file, &ending)
                        .with_context(|| format!("cannot unpack `{}`", path.display()))?,
                    None => Box::new(file),
                }
            }
            None => Box::new(std::io::stdin().lock()),
        })
    };
    if args.dry_run {
        return record(open()?, &mut Batches::checked(args, total)?);
    }
    // What is wrong in a file is known before any of it is recorded. A pipe can only be read once.
    if file.is_some_and(|path| path.is_file()) {
        let mut checked = BatchCounts::default();
        record(open()?, &mut Batches::checked(args, &mut checked)?)?;
    }
    let log = Some(LogAccess::open(&args.log, &args.set, Task::Record)?);
    let mut batches = Batches { log, ..Batches::checked(args, total)? };
    record(open()?, &mut batches)
}

/// A packed file that is cut or damaged is wrong input, and not a failure of the disk.
fn wrong_input(error: anyhow::Error) -> anyhow::Error {
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};
    let is_wrong = |cause: &(dyn std::error::Error + 'static)| {
        let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        matches!(kind, Some(InvalidData | UnexpectedEof))
    };
    if !error.is::<ExitCodeError>() && crate::exit::of_machine(&error).any(is_wrong) {
        let message = format!("{error:#}");
        return ExitCodeError { message, code: crate::exit::USAGE }.into();
    }
    error
}

/// Hands over the records of an input.
fn record(
    args: &ImportArgs,
    file: Option<&PathBuf>,
    input: Box<dyn Read>,
    batches: &mut Batches<'_>,
) -> Result<()> {
    let name = file.map_or_else(|| "standard input".to_owned(), |path| path.display().to_string());
    match args.format.or_else(|| format_of(args)).unwrap_or(Format::Ndjson) {
        Format::Ndjson => {
            ndjson(input, &name, batches).map_err(|error| unclear(args, error))?;
        }
        Format::Csv => csv(input, &name, batches)?,
        Format::Sitemap => sitemap(input, &name, batches)?,
        Format::Ntriples
        | Format::Nquads
        | Format::Turtle
        | Format::Trig
        | Format::Rdfxml
        | Format::Jsonld => {}
    }
    batches.flush()?;
    batches.log.as_mut().map_or(Ok(()), LogAccess::finish)
}

/// Endings of packed files, which are unpacked as they are read.
const PACKED: [&str; 4] = ["gz", "bz2", "xz", "zst"];

/// The format by the name of the input, without the ending of a packed file.
fn format_of(args: &ImportArgs) -> Option<Format> {
    let path = args.files.first()?;
    let ending = match extension(path)? {
        packed if PACKED.contains(&packed.as_str()) => extension(&path.with_extension(""))?,
        ending => ending,
    };
    match ending.as_str() {
        "csv" => Some(Format::Csv),
        "xml" => Some(Format::Sitemap),
        "ndjson" | "jsonl" | "json" => Some(Format::Ndjson),
        _ => None,
    }
}

/// The ending of a name in lower case.
fn extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

/// An error in input that was taken for ndjson because nothing states a format.
fn unclear(args: &ImportArgs, error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<ExitCodeError>() {
        Ok(error) if args.format.is_none() && format_of(args).is_none() => {
            let message = format!("{}\n  help: {UNCLEAR}", error.message);
            ExitCodeError { message, ..error }.into()
        }
        Ok(error) => error.into(),
        Err(error) => error,
    }
}

const UNCLEAR: &str = "it was read as ndjson, since its name states no format; state it with --format, or by an ending: .ndjson, .csv, \
    .xml (Sitemap or RDF/XML), or of RDF .nt, .nq, .ttl, .trig, .rdf, .owl, .jsonld";

/// Collects records, and records them together.
struct Batches<'t> {
    /// `None`: the input is only checked.
    log: Option<LogAccess>,
    /// An empty set, by which records are checked.
    model: (MemoryLog, SetId),
    waiting: Vec<RecordRequest>,
    size: usize,
    total: &'t mut BatchCounts,
}

impl<'t> Batches<'t> {
    /// For records that are only checked.
    fn checked(args: &ImportArgs, total: &'t mut BatchCounts) -> Result<Self> {
        let log = MemoryLog::new(Arc::new(SystemClock));
        let set = log.open_set(&NewSet { slug: "checked".to_owned(), ..NewSet::default() })?.id;
        let size = args.batch as usize;
        Ok(Self { log: None, model: (log, set), waiting: Vec::new(), size, total })
    }

    fn push(&mut self, record: RecordRequest, place: &str) -> Result<()> {
        let uri = record.uri.as_deref().unwrap_or_default();
        if let Err(message) = abreast_source::links::absolute_uri(uri) {
            return Err(wrong(place, &format!("`uri`: {message}")));
        }
        if self.log.is_none() {
            let (log, set) = &self.model;
            change_of(&record, "", log, *set, false).map_err(|message| wrong(place, &message))?;
        }
        self.waiting.push(record);
        if self.waiting.len() >= self.size { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let records = std::mem::take(&mut self.waiting);
        let Some(log) = &mut self.log else {
            self.total.recorded += records.len() as u64;
            return Ok(());
        };
        let counted = log.record(&records)?;
        self.total.head = counted.head;
        self.total.recorded += counted.recorded;
        self.total.unchanged += counted.unchanged;
        Ok(())
    }
}

fn wrong(place: &str, message: &str) -> anyhow::Error {
    ExitCodeError { message: format!("cannot import {place}: {message}"), code: 2 }.into()
}

fn ndjson(input: impl Read, name: &str, batches: &mut Batches<'_>) -> Result<()> {
    let mut lines = JsonLines::new(input)?;
    while let Some((line, record)) = lines.read().map_err(|error| not_read(name, error))? {
        batches.push(record, &format!("{name}, line {line}"))?;
    }
    Ok(())
}

fn csv(input: impl Read, name: &str, batches: &mut Batches<'_>) -> Result<()> {
    let mut table = Table::new(input)?;
    while let Some((line, record)) = table.read().map_err(|error| not_read(name, error))? {
        batches.push(record, &format!("{name}, line {line}"))?;
    }
    Ok(())
}

fn not_read(name: &str, error: ReadError) -> anyhow::Error {
    match error {
        ReadError::Wrong(problem) => {
            ExitCodeError { message: format!("cannot import {name}, {problem}"), code: 2 }.into()
        }
        ReadError::Io(error) => anyhow::Error::new(error).context(format!("cannot read {name}")),
    }
}

fn sitemap(input: impl Read, name: &str, batches: &mut Batches<'_>) -> Result<()> {
    let failed = |error: ListError| wrong(name, &format!("{:#}", anyhow::Error::from(error)));
    let mut list = ListReader::new(input).map_err(failed)?;
    while let Some(record) = list.read().map_err(failed)? {
        let place = format!("{name}, line {}", record.line);
        batches.push(request_of(record), &place)?;
    }
    Ok(())
}

/// The state of a resource as a list states it.
fn request_of(record: ListedRecord) -> RecordRequest {
    RecordRequest {
        uri: Some(record.uri),
        change: record.change.map(|change| match change {
            ListedChange::Deleted => ChangeWord::Deleted,
            ListedChange::Created => ChangeWord::Created,
            ListedChange::Updated => ChangeWord::Updated,
        }),
        lastmod: record.lastmod.map(|lastmod| lastmod.to_string()),
        length: record.length,
        media_type: record.media_type,
        encoding: record.encoding,
        hash: record.hash,
        links: (!record.links.is_empty()).then_some(record.links),
        ..RecordRequest::default()
    }
}
