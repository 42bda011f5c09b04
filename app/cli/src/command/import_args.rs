//! Options of `abreast import`.

use crate::config::database::database_url;
use crate::program::errors::UsageError;
use crate::program::progress::ProgressArgs;
use crate::store::log_access::LogAccessArgs;
use crate::values::json_ld::JsonLdContext;
use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

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
    #[arg(long, value_name = "URL=FILE", value_parser = crate::values::json_ld::context)]
    pub(crate) context: Vec<JsonLdContext>,
    /// Changes recorded in one transaction
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) batch: u32,
    /// Check the input, and for RDF report what would change; record nothing
    #[arg(short = 'n', long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object as the last line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
    #[command(flatten)]
    pub(crate) log: LogAccessArgs,
}

impl ImportArgs {
    /// Whether statements are added and removed, and the others stay.
    pub(crate) fn is_delta(&self) -> bool {
        self.delta || !self.add.is_empty() || !self.remove.is_empty()
    }

    /// Refuses options that have no effect on such an input.
    pub(crate) fn check(&self, is_rdf: bool) -> Result<()> {
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
        let data = self.log.data.as_deref();
        // Records can be imported into a database.
        let data = data.filter(|data| is_rdf || database_url(data).is_none());
        data.map_or(Ok(()), crate::store::data_folder::check_data)
    }
}
