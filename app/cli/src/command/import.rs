//! `abreast import`: records of resources that live elsewhere, from lines of JSON, a table or a
//! Sitemap.

use crate::command::import_args::{Format, ImportArgs};
use crate::program::errors::ExitCodeError;
use crate::program::errors::UsageError;
use crate::program::logging;
use crate::store::log_access::{BatchCounts, LogAccess};
use crate::store::stores::Task;
use abreast_core::{ChangeLog as _, Meter, NewSet, SetId, SystemClock};
use abreast_server::api::model::{ChangeWord, RecordRequest};
use abreast_server::api::{JsonLines, ReadError, Table, change_of};
use abreast_source::projection::resourcesync::{ListError, ListReader, ListedChange, ListedRecord};
use abreast_store::SqliteLog;
use abreast_webtypes::count;
use anyhow::{Context as _, Result, bail};
use serde_json::json;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Records the changes that are read.
pub(crate) fn run(args: &ImportArgs) -> ExitCode {
    let is_rdf = match args.format {
        _ if args.is_delta() => true,
        Some(format) => crate::command::rdf::syntax_of(format).is_some(),
        None => args.files.first().is_some_and(|path| crate::command::rdf::is_rdf(path)),
    };
    if is_rdf {
        return import_rdf(args);
    }
    let mut total = BatchCounts::default();
    let progress = args.progress.begin(false, args.json);
    let result = args.check(false).and_then(|()| import(args, &mut total, &progress.meter()));
    drop(progress);
    let code = match &result {
        Ok(()) => 0,
        Err(error) => match crate::program::exit::code(error) {
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
        crate::program::terminal::line(&line.to_string());
    } else if code == 0 || total.recorded + total.unchanged > 0 {
        let how = if args.dry_run { "would record" } else { "recorded" };
        crate::program::terminal::line(&format!(
            "{how} {}; unchanged: {}",
            count(total.recorded, "change"),
            total.unchanged
        ));
    }
    ExitCode::from(code)
}

/// Replaces all descriptions of a set by the contents of RDF files.
fn import_rdf(args: &ImportArgs) -> ExitCode {
    let progress = args.progress.begin(false, args.json);
    let meter = progress.meter();
    let result = args.check(true).and_then(|()| crate::command::rdf::import(args, &meter));
    drop(progress);
    let code = match &result {
        Ok(report) if report.left_out + report.invalid_statements > 0 => 3,
        Ok(_) => 0,
        Err(error) => crate::program::exit::code(error),
    };
    let report = match result {
        Ok(report) => report,
        Err(error) => {
            logging::failure(&error, code);
            if args.json {
                crate::program::terminal::line(
                    &json!({ "type": "summary", "exit_code": code }).to_string(),
                );
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
        crate::program::terminal::line(&line.to_string());
    } else {
        crate::program::terminal::line(&format!(
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

fn import(args: &ImportArgs, total: &mut BatchCounts, meter: &Meter) -> Result<()> {
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
        let meter = meter.clone();
        let Some(path) = file else {
            return Ok(Box::new(CountedRead { input: std::io::stdin().lock(), meter }));
        };
        let file = File::open(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let ending = extension(path).filter(|ending| PACKED.contains(&ending.as_str()));
        let Some(ending) = ending else {
            meter.expect(0, file.metadata().map_or(0, |facts| facts.len()));
            return Ok(Box::new(CountedRead { input: file, meter }));
        };
        let input = abreast_statements::unpacked(file, &ending)
            .with_context(|| format!("cannot unpack `{}`", path.display()))?;
        Ok(Box::new(CountedRead { input, meter }))
    };
    meter.begin("checking");
    if args.dry_run {
        return record(open()?, &mut Batches::checked(args, total)?.counted(meter));
    }
    // Check the whole file before recording any change. A pipe can only be read once, so it is not
    // checked first.
    if file.is_some_and(|path| path.is_file()) {
        let mut checked = BatchCounts::default();
        record(open()?, &mut Batches::checked(args, &mut checked)?.counted(meter))?;
    }
    let log = Some(LogAccess::open(&args.log, &args.set, Task::Record)?);
    let mut batches = Batches { log, ..Batches::checked(args, total)?.counted(meter) };
    meter.begin("importing");
    record(open()?, &mut batches)
}

/// A packed file that is cut or damaged is wrong input, and not a failure of the disk.
fn wrong_input(error: anyhow::Error) -> anyhow::Error {
    use std::io::ErrorKind::{InvalidData, UnexpectedEof};
    let is_wrong = |cause: &(dyn std::error::Error + 'static)| {
        let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        matches!(kind, Some(InvalidData | UnexpectedEof))
    };
    if !error.is::<ExitCodeError>() && crate::program::exit::of_machine(&error).any(is_wrong) {
        let message = format!("{error:#}");
        return ExitCodeError { message, code: crate::program::exit::USAGE }.into();
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

/// Adds help to an error in input that was read as ndjson because the format was not specified.
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

/// Input whose bytes are counted.
struct CountedRead<R> {
    input: R,
    meter: Meter,
}

impl<R: Read> Read for CountedRead<R> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.input.read(bytes)?;
        self.meter.add(0, read as u64);
        Ok(read)
    }
}

/// Collects records, and records them together.
struct Batches<'t> {
    /// `None`: the input is only checked.
    log: Option<LogAccess>,
    /// An empty set, by which records are checked.
    model: (SqliteLog, SetId),
    waiting: Vec<RecordRequest>,
    size: usize,
    /// Shows how many were read.
    meter: Meter,
    total: &'t mut BatchCounts,
}

impl<'t> Batches<'t> {
    /// For records that are only checked.
    fn checked(args: &ImportArgs, total: &'t mut BatchCounts) -> Result<Self> {
        let log = SqliteLog::temporary(Arc::new(SystemClock))?;
        let set = log.open_set(&NewSet { slug: "checked".to_owned(), ..NewSet::default() })?.id;
        let size = args.batch as usize;
        Ok(Self {
            log: None,
            model: (log, set),
            waiting: Vec::new(),
            size,
            meter: Meter::default(),
            total,
        })
    }

    fn counted(self, meter: &Meter) -> Self {
        Self { meter: meter.clone(), ..self }
    }

    fn push(&mut self, record: RecordRequest, place: &str) -> Result<()> {
        let uri = record.uri.as_deref().unwrap_or_default();
        if let Err(message) = abreast_source::links::absolute_uri(uri) {
            return Err(wrong(place, &format!("`uri`: {message}")));
        }
        if self.log.is_none() {
            let (log, set) = &self.model;
            change_of(&record, "", log, *set, false)
                .map_err(|fault| wrong(place, &fault.to_string()))?;
        }
        self.meter.add(1, 0);
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

/// The request that records a resource with the properties from a list.
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
