//! `abreast import` of RDF: files become the complete state of a set of entities.

use crate::config::{File, Origin, ServeConfig, UsageError};
use crate::import::{Format, ImportArgs};
use crate::log_access::ExitCodeError;
use crate::open_set::open_log;
use crate::stores::{Stores, Task};
use abreast_core::{Beginning, ChangeLog as _, Clock as _, NewSet, SetId, SystemClock};
use abreast_rdf::Syntax;
use abreast_source::origin::rdf::{
    RdfBytes, RdfError, RdfInput, RdfOptions, RdfReport, RdfTarget, replace,
};
use abreast_statements::Error;
use abreast_store::SqliteLog;
use anyhow::{Context as _, Result, bail};
use std::path::{Path, PathBuf};

/// Exit code: deletions are held.
const HELD: u8 = 7;

/// An empty folder for temporary files, in the store's folder: they may be as large as the input.
///
/// # Errors
/// It cannot be made or emptied.
pub(crate) fn temporary_folder(stores: &Stores) -> Result<PathBuf> {
    let path = stores.path("temporary");
    std::fs::create_dir_all(&path)
        .with_context(|| format!("cannot make the folder `{}`", path.display()))?;
    Ok(path)
}

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

/// Whether the name of a file is one of RDF.
pub(crate) fn is_rdf(path: &Path) -> bool {
    Syntax::of_file_name(&path.to_string_lossy()).is_some()
}

/// Makes files the complete state of a set.
///
/// # Errors
/// The input is wrong, or would delete too much: nothing is recorded then. Or the store fails.
pub(crate) fn import(args: &ImportArgs) -> Result<RdfReport> {
    if args.dry_run {
        bail!(UsageError("`--dry-run` is not known for RDF (help: leave it out)".into()));
    }
    let Opened { stores, log, set, digests } = open(args)?;
    let contents = stores.contents()?;
    let mut options = RdfOptions::new(temporary_folder(&stores)?);
    options.confirm_deletions = args.confirm_deletions;
    options.digests = digests;
    let target = RdfTarget { log: &log, set, contents: &contents, options: &options };
    let inputs = args.files.iter().map(|path| input(path, args.format));
    let inputs: Vec<_> = match args.files.as_slice() {
        [] => vec![Ok(standard_input(args.format)?)],
        _ => inputs.collect(),
    };
    let report = replace(target, inputs, SystemClock.now()).map_err(refused)?;
    report.warn();
    Ok(report)
}

fn input(path: &Path, format: Option<Format>) -> std::io::Result<RdfInput> {
    match format.and_then(syntax_of) {
        None => RdfInput::open(path),
        Some(syntax) => Ok(RdfInput {
            name: path.display().to_string(),
            syntax,
            base: None,
            bytes: RdfBytes::File(std::fs::File::open(path)?),
        }),
    }
}

fn standard_input(format: Option<Format>) -> Result<RdfInput> {
    let syntax = format.and_then(syntax_of).context("standard input has no name")?;
    let bytes = RdfBytes::Stream(Box::new(std::io::stdin()));
    Ok(RdfInput { name: "standard input".to_owned(), syntax, base: None, bytes })
}

/// The error of a command, with its exit code.
pub(crate) fn refused(error: RdfError) -> anyhow::Error {
    match error {
        RdfError::Deletions { .. } => ExitCodeError {
            message: format!("{error}\n  help: if that is right, add --confirm-deletions"),
            code: HELD,
        }
        .into(),
        RdfError::Statements(Error::Input { .. } | Error::TooLarge(_) | Error::Line { .. }) => {
            let cause = std::error::Error::source(&error)
                .map_or(String::new(), |cause| format!(": {cause}"));
            ExitCodeError { message: format!("cannot import {error}{cause}"), code: 2 }.into()
        }
        error => anyhow::Error::new(error),
    }
}

struct Opened {
    stores: Stores,
    log: SqliteLog,
    set: SetId,
    digests: abreast_source::DigestPolicy,
}

fn open(args: &ImportArgs) -> Result<Opened> {
    if let Some(path) = &args.log.config {
        let config = ServeConfig::check(File::read_with_faults(path)?)?;
        let Some(set) = config.sets.iter().find(|set| set.slug == args.set) else {
            bail!(UsageError(format!("there is no set `{}` in `{}`", args.set, path.display())));
        };
        let Origin::Rdf(origin) = &set.origin else {
            bail!(UsageError(format!(
                "the set `{}` is not one of entities (help: `origin = \"rdf\"`)",
                args.set
            )));
        };
        if origin.folder.is_some() {
            bail!(UsageError(format!(
                "the set `{}` follows the files of its folder (help: change these, or leave out `folder`)",
                args.set
            )));
        }
        let mut stores = Stores::open(&config.data, Task::Record)?;
        let log = stores.log()?;
        let id = open_log(&log, set)?;
        stores.keep();
        return Ok(Opened { stores, log, set: id, digests: origin.digests });
    }
    let Some(data) = &args.log.data else {
        bail!(UsageError(
            "where is the store? (help: --config FILE or --data DIR; RDF is not sent to a server)"
                .into()
        ));
    };
    let mut stores = Stores::open(data, Task::Record)?;
    let log = stores.log()?;
    let new = NewSet { slug: args.set.clone(), beginning: Beginning::Log, ..NewSet::default() };
    let id = log
        .open_set(&new)
        .with_context(|| format!("cannot import RDF into the set `{}`", args.set))?
        .id;
    stores.keep();
    Ok(Opened { stores, log, set: id, digests: abreast_source::DigestPolicy::default() })
}
