//! `abreast import` of RDF: files replace the complete contents of a set of entities.

use crate::command::import_args::{Format, ImportArgs};
use crate::config::database::THROUGH_A_SERVER;
use crate::config::{Descriptions, File, Origin, RdfOrigin, ServeConfig};
use crate::program::errors::ExitCodeError;
use crate::program::errors::UsageError;
use crate::store::data_folder::refuse_published;
use crate::store::log_access::Remote;
use crate::store::open_set::open_log;
use crate::store::rdf_files::temporary_folder;
use crate::store::stores::{Stores, Task};
use crate::store::unwritable_store::Readable;
use crate::values::json_ld::contexts;
use abreast_contents::{Contents, View};
use abreast_core::contents::ContentStore;
use abreast_core::{Beginning, ChangeLog, Clock as _, Meter, NewSet, SetId, SystemClock};
use abreast_rdf::{Contexts, Syntax};
use abreast_source::OpenKept;
use abreast_source::origin::rdf::{
    Delta, DeltaRow, RdfBytes, RdfError, RdfInput, RdfReport, RdfTarget, apply, each_row, replace,
};
use abreast_statements::{Error, GraphFilter, SortOptions, syntax_of_file};
use abreast_store::SqliteLog;
use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// Exit code: deletions are held.
const HELD: u8 = 7;
/// Most bytes of statements that are sent to a server.
const SENT_BYTES: usize = 256 << 20;
const TOO_LARGE: &str = "more than 256 MiB of statements are not sent to a server\n  help: stop it, and import them with --data or --config";
/// The server answers when it has recorded everything.
const ANSWER_TIME: Duration = Duration::from_secs(3_600);

/// The syntax that a format stands for.
pub(crate) fn syntax_of(format: Format) -> Option<Syntax> {
    match format {
        Format::Ntriples => Some(Syntax::NTriples),
        Format::Nquads => Some(Syntax::NQuads),
        Format::Turtle => Some(Syntax::Turtle),
        Format::Trig => Some(Syntax::TriG),
        Format::Rdfxml => Some(Syntax::RdfXml),
        Format::Jsonld => Some(Syntax::JsonLd),
        Format::Ndjson | Format::Csv | Format::Sitemap => None,
    }
}

/// Whether a file is RDF: by its name, or of XML by its root.
pub(crate) fn is_rdf(path: &Path) -> bool {
    matches!(syntax_of_file(path), Ok(Some(_)))
}

/// Replaces the complete contents of a set by the entities in files.
///
/// # Errors
/// The input has errors or would delete too many entities, in which case nothing is recorded; or the
/// store fails.
pub(crate) fn import(args: &ImportArgs, meter: &Meter) -> Result<RdfReport> {
    if let Some(server) = &args.log.server {
        return send(args, server);
    }
    let Opened { place, log, set, origin } = open(args)?;
    let base = args.base.clone().or_else(|| origin.base.clone());
    let (contents, temporary) = match &place {
        Place::Store(stores) => (stores.contents()?, temporary_folder(stores)?),
        Place::Rehearsal { folder, .. } => {
            let contents = Contents::open(&folder.path().join("contents"));
            let contents = contents.context("cannot open temporary contents")?;
            (Arc::new(contents) as Arc<dyn ContentStore>, folder.path().to_owned())
        }
    };
    let mut options = origin.options(temporary);
    options.confirm_deletions = args.confirm_deletions;
    options.dry_run = args.dry_run;
    options.meter = meter.clone();
    options.skolemize = args.skolemize.clone().or(options.skolemize);
    options.sort.leave_out_invalid |= args.leave_out_invalid;
    options.sort.contexts = contexts(options.sort.contexts, &args.context);
    if !args.graph.is_empty() {
        options.sort.graphs.clone_from(&args.graph);
    }
    let kept = match &place {
        Place::Rehearsal { kept, .. } => kept.as_ref(),
        Place::Store(_) => None,
    };
    let target = RdfTarget { log: &*log, set, contents: &*contents, kept, options: &options };
    if args.is_delta() {
        let report = apply(target, deltas(args, base.as_deref()), args.lenient, SystemClock.now())
            .map_err(refused)?;
        report.warn();
        return Ok(report);
    }
    let report =
        replace(target, inputs(args, base.as_deref())?, SystemClock.now()).map_err(refused)?;
    report.warn();
    Ok(report)
}

fn input(path: &Path, args: &ImportArgs, base: Option<&str>) -> Result<RdfInput, Error> {
    let input = match args.format.and_then(syntax_of) {
        None => RdfInput::open(path)?,
        Some(syntax) => RdfInput::open_as(path, syntax)?,
    };
    Ok(RdfInput { base: base.map(str::to_owned), ..input })
}

/// Sends all entities, or a difference, to a running server.
fn send(args: &ImportArgs, server: &str) -> Result<RdfReport> {
    for (name, is_given) in [
        ("confirm-deletions", args.confirm_deletions),
        ("leave-out-invalid", args.leave_out_invalid),
        ("skolemize", args.skolemize.is_some()),
    ] {
        if is_given {
            bail!(UsageError(format!(
                "`--{name}` is not for a running server (help: stop it and use --data or --config, or leave it out)"
            )));
        }
    }
    let mut sort = SortOptions::new("");
    sort.graphs.clone_from(&args.graph);
    sort.contexts = contexts(Contexts::bundled(), &args.context);
    let mut graphs = GraphFilter::new(&sort);
    let (mut body, base) = (Vec::new(), args.base.as_deref());
    let add = |body: &mut Vec<u8>, sign: &[u8], statement: &[u8]| {
        if body.len() + statement.len() > SENT_BYTES {
            return Err(std::io::Error::other(TOO_LARGE));
        }
        for part in [sign, statement, b"\n"] {
            body.extend_from_slice(part);
        }
        Ok(())
    };
    let (query, content_type, retries) = if args.is_delta() {
        body.extend_from_slice(b"TX .\n");
        for (number, delta) in deltas(args, base).enumerate() {
            let mut begin = body.len();
            each_row(opened(delta)?, number as u64, &sort, &mut graphs, &mut |row| match row {
                DeltaRow::Add(statement) => add(&mut body, b"A ", statement),
                DeltaRow::Remove(statement) => add(&mut body, b"D ", statement),
                DeltaRow::Begin => {
                    begin = body.len();
                    Ok(())
                }
                DeltaRow::Abort => {
                    body.truncate(begin);
                    Ok(())
                }
            })
            .map_err(refused)?;
        }
        body.extend_from_slice(b"TC .\n");
        let query = if args.lenient { "as=difference&lenient=true" } else { "as=difference" };
        // Sent again after it was recorded, it would not apply.
        (query, rdf_patch::MEDIA_TYPE, u32::from(args.lenient) * 5)
    } else {
        for (number, input) in inputs(args, base)?.into_iter().enumerate() {
            let add_all = Delta::Add(opened(input)?);
            each_row(add_all, number as u64, &sort, &mut graphs, &mut |row| match row {
                DeltaRow::Add(statement) => add(&mut body, b"", statement),
                _ => Ok(()),
            })
            .map_err(refused)?;
        }
        ("as=state", "application/n-triples", 5)
    };
    graphs.check().map_err(|error| refused(error.into()))?;
    let server = Remote::new(&args.log, server, &args.set, ANSWER_TIME)?.with_retries(retries);
    let query = format!("{query}{}", if args.dry_run { "&dry-run=true" } else { "" });
    let answer: Answer = server.import(&query, content_type, body)?;
    Ok(RdfReport {
        entities: answer.entities,
        created: answer.created,
        updated: answer.updated,
        deleted: answer.deleted,
        unchanged: answer.unchanged,
        left_out: answer.left_out,
        invalid_statements: answer.invalid_statements,
        shared_blank_nodes: answer.shared_blank_nodes,
        unreached_blank_nodes: answer.unreached_blank_nodes,
        ..RdfReport::default()
    })
}

/// A server's response to an import.
#[derive(Deserialize)]
struct Answer {
    entities: u64,
    created: u64,
    updated: u64,
    deleted: u64,
    unchanged: u64,
    /// Servers of before the field refused such entities.
    #[serde(default)]
    left_out: u64,
    #[serde(default)]
    invalid_statements: u64,
    shared_blank_nodes: u64,
    unreached_blank_nodes: u64,
}

/// The inputs for a complete import: files, or standard input.
fn inputs(args: &ImportArgs, base: Option<&str>) -> Result<Vec<Result<RdfInput, Error>>> {
    Ok(match args.files.as_slice() {
        [] => vec![Ok(standard_input(args.format, base)?)],
        files => files.iter().map(|path| input(path, args, base)).collect(),
    })
}

fn opened<T>(input: Result<T, Error>) -> Result<T> {
    input.map_err(|error| refused(error.into()))
}

/// The inputs of a delta, in the order in which they apply: removals first.
fn deltas<'a>(
    args: &'a ImportArgs,
    base: Option<&'a str>,
) -> impl Iterator<Item = Result<Delta, Error>> + 'a {
    let patches = args.files.iter().map(|path| patch(path).map(Delta::Patch));
    let removed = args.remove.iter().map(move |path| input(path, args, base).map(Delta::Remove));
    let added = args.add.iter().map(move |path| input(path, args, base).map(Delta::Add));
    let from_input = || {
        let bytes = RdfBytes::Stream(Box::new(std::io::stdin()));
        let name = "standard input".to_owned();
        Ok(Delta::Patch(RdfInput { name, syntax: Syntax::NQuads, base: None, bytes }))
    };
    let is_input = args.delta && args.files.is_empty();
    patches.chain(is_input.then(from_input)).chain(removed).chain(added)
}

/// A file of RDF Patch, perhaps compressed.
fn patch(path: &Path) -> Result<RdfInput, Error> {
    let input = RdfInput::open_as(path, Syntax::NQuads)?;
    let ending = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let RdfBytes::File(file) = &input.bytes else { return Ok(input) };
    let file = file.try_clone().map_err(|cause| Error::Open { name: input.name.clone(), cause })?;
    Ok(match abreast_statements::unpacked(file, &ending) {
        Some(bytes) => RdfInput { bytes: RdfBytes::Stream(bytes), ..input },
        None => input,
    })
}

fn standard_input(format: Option<Format>, base: Option<&str>) -> Result<RdfInput> {
    let syntax = format.and_then(syntax_of).context("standard input has no name")?;
    let bytes = RdfBytes::Stream(Box::new(std::io::stdin()));
    let base = base.map(str::to_owned);
    Ok(RdfInput { name: "standard input".to_owned(), syntax, base, bytes })
}

/// The error of a command, with its exit code.
pub(crate) fn refused(error: RdfError) -> anyhow::Error {
    match error {
        RdfError::Deletions { .. } => ExitCodeError {
            message: format!("{error}\n  help: if that is right, add --confirm-deletions"),
            code: HELD,
        }
        .into(),
        RdfError::Unsettled(_) => ExitCodeError { message: error.to_string(), code: 5 }.into(),
        error if error.is_of_input() => {
            let mut message = format!("cannot import {error}");
            let mut causes = Vec::new();
            let mut next = std::error::Error::source(&error);
            while let Some(cause) = next {
                causes.push(cause);
                next = cause.source();
            }
            // `Input` has the text of its first cause in its own.
            for cause in &causes {
                let text = cause.to_string();
                if !message.contains(&text) {
                    message = format!("{message}: {text}");
                }
            }
            let code = if causes.into_iter().any(crate::program::exit::is_denied) {
                crate::program::exit::DISK
            } else {
                crate::program::exit::USAGE
            };
            ExitCodeError { message, code }.into()
        }
        error => anyhow::Error::new(error),
    }
}

/// Where an import works.
enum Place {
    Store(Stores),
    /// Temporary folder of a dry run, which does not write to the store.
    Rehearsal {
        folder: TempDir,
        /// The contents of the store.
        kept: Option<OpenKept>,
        _read: Option<Readable>,
    },
}

struct Opened {
    place: Place,
    log: Arc<dyn ChangeLog>,
    set: SetId,
    origin: RdfOrigin,
}

fn open(args: &ImportArgs) -> Result<Opened> {
    if let Some(path) = &args.log.config {
        let config =
            ServeConfig::check(File::read_with_faults(path)?)?.in_folder(THROUGH_A_SERVER)?;
        let Some(set) = config.sets.iter().find(|set| set.slug == args.set) else {
            bail!(UsageError(format!("there is no set `{}` in `{}`", args.set, path.display())));
        };
        let Origin::Rdf(origin) = &set.origin else {
            bail!(UsageError(format!(
                "the set `{}` is not one of entities (help: `origin = \"rdf\"`)",
                args.set
            )));
        };
        let follows = match &origin.descriptions {
            Descriptions::Given => None,
            Descriptions::Folder(_) => Some("the files of its folder"),
            Descriptions::Endpoint(_) => Some("its endpoint"),
        };
        if let Some(what) = follows {
            bail!(UsageError(format!(
                "the set `{}` follows {what} (help: change that, or let the set have neither `folder` nor `endpoint`)",
                args.set
            )));
        }
        let (mut place, log, known) = place_of(args, &config.data)?;
        let id = known.map_or_else(|| open_log(&*log, set), Ok)?;
        if let Place::Store(stores) = &mut place {
            crate::config::versions::keep(&*log, id, &set.slug, set.versions)?;
            stores.keep();
        }
        return Ok(Opened { place, log, set: id, origin: origin.clone() });
    }
    let Some(data) = &args.log.data else {
        bail!(UsageError(
            "where is the store? (help: --server URL of a running server, else --config FILE or --data DIR)".into()
        ));
    };
    let (mut place, log, known) = place_of(args, data)?;
    let new = NewSet {
        slug: args.set.clone(),
        beginning: Beginning::Log,
        incomplete: !args.is_delta(),
        ..NewSet::default()
    };
    let id = match known {
        Some(id) => id,
        None => {
            log.open_set(&new)
                .with_context(|| format!("cannot import RDF into the set `{}`", args.set))?
                .id
        }
    };
    if let Place::Store(stores) = &mut place {
        stores.keep();
    }
    Ok(Opened { place, log, set: id, origin: RdfOrigin::default() })
}

/// The place of an import, its log, and the set if that is not to be opened. A dry run reads the log of a store that is
/// there; a set that is not in it is an empty one in memory.
fn place_of(args: &ImportArgs, data: &Path) -> Result<(Place, Arc<dyn ChangeLog>, Option<SetId>)> {
    if !args.dry_run {
        let stores = Stores::open(data, Task::Record)?;
        let log = Arc::new(stores.log()?);
        return Ok((Place::Store(stores), log, None));
    }
    refuse_published(data)?;
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    if crate::store::served::has_store(data)? {
        let read = Readable::of(data, "source.db", SqliteLog::is_changed_by_opening)?;
        let log = crate::store::stores::open_log(&read.path)?;
        if let Some(set) = log.find_set(&args.set)? {
            // Opening would record the settings of the set. One of another kind it refuses, and records nothing.
            let known = log.head(set.id)?.in_log.then_some(set.id);
            let kept =
                View::open(&data.join("contents")).context("cannot read the kept contents")?;
            let kept: OpenKept = Arc::new(move |id| kept.open_read(id).map_err(Into::into));
            let place = Place::Rehearsal { folder, kept: Some(kept), _read: Some(read) };
            return Ok((place, Arc::new(log), known));
        }
    }
    let log = Arc::new(SqliteLog::temporary(Arc::new(SystemClock))?);
    Ok((Place::Rehearsal { folder, kept: None, _read: None }, log, None))
}
