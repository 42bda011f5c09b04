//! The command line: one word, one job.

use crate::config::sync_args::{AuditArgs, SyncArgs};
use clap::{ArgMatches, Args, CommandFactory as _, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;

/// Publish changes of a collection, and keep copies in sync.
#[derive(Debug, Parser)]
#[command(name = "abreast", version, propagate_version = true, arg_required_else_help = true)]
#[command(
    after_help = "Start here: `abreast demo` shows a folder published, mirrored and kept in sync; `abreast demo --rdf`, names in RDF."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Log more to standard error; twice: every request. ABREAST_LOG sets filters such as
    /// `abreast=debug`, ABREAST_LOG_FORMAT chooses `text` or `json`.
    #[arg(short, long, action = clap::ArgAction::Count, global = true)]
    pub(crate) verbose: u8,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a configuration file with comments, from options or a few questions
    Init(Box<crate::command::init::InitArgs>),
    /// Publish a folder and its changes over HTTP: ResourceSync, SDShare and change feeds
    Serve(Box<ServeArgs>),
    /// Write a folder's documents as files, for any web server or bucket
    Build(Box<crate::command::build::BuildArgs>),
    /// Copy what a Source, an SDShare server or a change feed publishes, or bring the copy up to date
    Sync(Box<SyncArgs>),
    /// Compare a copy with its Source, SDShare server or change feed; read-only
    Audit(Box<AuditArgs>),
    /// Check the documents of a Source, feeds of SDShare or change feeds against their specifications
    Validate(Box<crate::command::validate::ValidateArgs>),
    /// Print what a Source publishes, as a tree
    Explore(Box<crate::command::explore::ExploreArgs>),
    /// Record entities from RDF, or resources stored elsewhere from JSON lines, a table or a Sitemap
    Import(Box<crate::command::import_args::ImportArgs>),
    /// Print the change log, one change per line
    Log(Box<crate::command::log::LogArgs>),
    /// Run a WebSub hub alone, or inspect one
    Hub(Box<crate::command::hub::HubArgs>),
    /// Print the notifications of a topic as they arrive, one per line
    Subscribe(Box<crate::command::subscribe::SubscribeArgs>),
    /// Check a store or a copy for damage; read-only
    Check(Box<crate::command::check::CheckArgs>),
    /// Repair a damaged store or copy
    Repair(Box<crate::command::repair::RepairArgs>),
    /// List, remove and rename the sets of a Source's store
    #[command(subcommand)]
    Set(crate::command::set::SetCommand),
    /// Remove a set with its history from a Source's store (`abreast set remove`)
    #[command(hide = true)]
    Drop(Box<crate::command::drop::DropArgs>),
    /// Back up a Source's store, also while it is being served
    Backup(Box<crate::command::backup::BackupArgs>),
    /// Restore a Source's store from a backup
    Restore(Box<crate::command::restore::RestoreArgs>),
    /// Move a stopped store from a folder to a database and a bucket, or back
    Migrate(Box<crate::command::migrate::MigrateArgs>),
    /// Report on stores, copies and hubs, running or stopped, with the next step for each problem
    Status(Box<crate::command::status::StatusArgs>),
    /// Ask a running program whether it is alive and ready, for probes
    Health(Box<crate::command::health::HealthArgs>),
    /// Check this machine, a folder or a Source for common problems
    Doctor(Box<crate::command::doctor::DoctorArgs>),
    /// Create, list and revoke tokens of the API
    #[command(subcommand)]
    Token(crate::command::token::TokenCommand),
    /// Check a configuration file, or print every setting and its origin
    #[command(subcommand)]
    Config(crate::command::config_command::ConfigCommand),
    /// Print the completion script for a shell
    Completions(crate::program::shell::CompletionsArgs),
    /// Print or write the manual pages
    Man(crate::program::shell::ManArgs),
    /// Demonstrate publishing and mirroring on a small generated collection
    Demo(DemoArgs),
}

/// The command line, with its help.
pub(crate) fn command() -> clap::Command {
    // Deferred: a run prints the help of a single command, if any.
    let deferred = |inner: clap::Command| inner.defer(reflowed);
    reflowed_alone(Cli::command()).mut_subcommands(deferred)
}

/// The command line for these words: without the environment variables whose options are alternatives
/// of options that the words have.
pub(crate) fn command_for(words: impl IntoIterator<Item = OsString>) -> clap::Command {
    let command = command();
    let Ok(found) = command.clone().ignore_errors(true).try_get_matches_from(words) else {
        return command;
    };
    let (mut path, mut given) = (Vec::new(), &found);
    while let Some((name, inner)) = given.subcommand() {
        path.push(name.to_owned());
        given = inner;
    }
    without_replaced(command, &path, given)
}

fn without_replaced(command: clap::Command, path: &[String], given: &ArgMatches) -> clap::Command {
    if let Some((name, rest)) = path.split_first() {
        return command.mut_subcommand(name, |inner| without_replaced(inner, rest, given));
    }
    let replaced = crate::values::alternatives::replaced_variables(&command, given);
    replaced.into_iter().fold(command, |command, id| command.mut_arg(id, |arg| arg.env(None)))
}

/// Joins the lines of each paragraph after the options: clap wraps them to the width of the
/// terminal.
fn reflowed(command: clap::Command) -> clap::Command {
    reflowed_alone(command).mut_subcommands(reflowed)
}

fn reflowed_alone(command: clap::Command) -> clap::Command {
    match command.get_after_help().map(ToString::to_string) {
        Some(help) => command.after_help(joined(&help)),
        None => command,
    }
}

fn joined(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut flows = false;
    for line in text.lines() {
        let plain = !line.is_empty() && !line.starts_with(' ');
        match (out.is_empty(), flows && plain) {
            (true, _) => {}
            (false, true) => out.push(' '),
            (false, false) => out.push('\n'),
        }
        out.push_str(&folded(line));
        flows = plain;
    }
    out
}

/// Columns of an example: more would be wrapped by clap, and fail when it is pasted.
const EXAMPLE_WIDTH: usize = 76;

/// An example of several lines, each but the last with a backslash at its end, so that it can be pasted.
fn folded(line: &str) -> String {
    if !line.starts_with("  abreast ") || line.len() <= EXAMPLE_WIDTH {
        return line.to_owned();
    }
    let mut out = String::from(" ");
    let mut width = out.len();
    for word in words_of(line) {
        if width + word.len() + 3 > EXAMPLE_WIDTH && out.len() > 1 {
            out.push_str(" \\\n     ");
            width = 5;
        }
        out.push(' ');
        out.push_str(word);
        width += word.len() + 1;
    }
    out
}

/// The words of a command, with their quotes.
fn words_of(line: &str) -> Vec<&str> {
    let (mut words, mut start, mut quote) = (Vec::new(), 0, None);
    for (at, c) in line.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c == ' ' => {
                words.push(&line[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    words.push(&line[start..]);
    words.retain(|word| !word.is_empty());
    words
}

const SERVE_HELP: &str = "\
Examples:
  abreast serve ./papers
  abreast serve /srv/papers --listen 0.0.0.0:8080 --base-url https://papers.example.org/
  abreast serve ./authorities --origin rdf --versions all
  abreast serve --config /etc/abreast.toml

Each set is published over ResourceSync (/SET/capabilitylist.xml, and 0.1 at /SET/v0.1/sitemap.xml), SDShare (/SET/sdshare) and as change feeds in
Activity Streams: /SET/emm/1.0, /SET/emm/0.1 (with --versions also /SET/emm/0.1/patches) and /SET/iiif.
Hidden files (.x) and temporary files of editors (x~, #x#) are not published; symbolic links are followed only
with --follow-links, and only to published files of the same folder.
Stops on SIGTERM or Ctrl-C after finishing requests in flight; a second signal ends it at once. SIGHUP reads the configuration file again, and
SIGUSR1 scans all folders (docs/reloading.md).
Exit codes: 0 stopped, 1 other, 2 usage, 10 the store is in use, 13 disk or permission denied, 130 ended by a second signal.";

/// Options of `serve`.
#[derive(Debug, Args)]
#[command(after_help = SERVE_HELP)]
pub(crate) struct ServeArgs {
    /// Folder to publish
    #[arg(required_unless_present_any = ["config", "origin"])]
    pub(crate) folder: Option<PathBuf>,
    /// Origin of the resources: files of a folder, entities that RDF files of a folder describe, or
    /// records that come through the API (needs --name and --data)
    #[arg(long, value_name = "KIND", value_parser = ["folder", "records", "rdf"])]
    pub(crate) origin: Option<String>,
    /// RDF only: replace shared and unattached blank nodes by IRIs with this prefix
    #[arg(long, value_name = "URL", value_parser = crate::config::check_base)]
    pub(crate) skolemize: Option<String>,
    /// RDF only: resolve relative IRIs in a file against this IRI and the file's path in the folder
    #[arg(long, value_name = "IRI")]
    pub(crate) base: Option<String>,
    /// Configuration file, for several sets and all settings
    #[arg(long, value_name = "FILE", env = "ABREAST_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Keep the store in this folder, or in the PostgreSQL database at this URL, which several nodes share [default:
    /// .abreast in the published folder]
    #[arg(long, value_name = "DIR|URL", env = "ABREAST_DATA", hide_env_values = true)]
    pub(crate) data: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) progress: crate::program::progress::ProgressArgs,
    /// Begin a new history, even where another store seems to have it
    #[arg(long)]
    pub(crate) new_store: bool,
    /// Name of the set in URLs [default: from the folder's name]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Title of the set on web pages [default: its name]
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Digests to compute: md5, sha-256 or both [default: md5]
    #[arg(long, value_name = "WHICH")]
    pub(crate) digests: Option<String>,
    /// Wait until a path was unchanged for this time, unless its writer closed it [default: 200ms]
    #[arg(long, value_name = "TIME")]
    pub(crate) debounce: Option<String>,
    /// Wait also for files whose writer has finished, or that were moved into place
    #[arg(long)]
    pub(crate) wait_for_quiet: bool,
    /// Accept the deletion of all files missing at the start, however many
    #[arg(long)]
    pub(crate) confirm_deletions: bool,
    /// Time between full scans; 0s scans once, at the start [default: 1h]
    #[arg(long, value_name = "TIME")]
    pub(crate) rescan: Option<String>,
    /// Use scans only, not the system's file events (for network file systems)
    #[arg(long)]
    pub(crate) no_events: bool,
    /// Follow relative symbolic links to published files within the folder
    #[arg(long)]
    pub(crate) follow_links: bool,
    /// Changes in one Change List, 1 to 50000 [default: 5000]
    #[arg(long, value_name = "N")]
    pub(crate) changes_per_list: Option<u32>,
    #[command(flatten)]
    pub(crate) listen: crate::config::listen::ListenArgs,
    #[command(flatten)]
    pub(crate) rules: crate::config::rule_args::RuleArgs,
    #[command(flatten)]
    pub(crate) api: crate::config::api::ApiArgs,
    #[command(flatten)]
    pub(crate) dumps: crate::config::dumps::DumpArgs,
    #[command(flatten)]
    pub(crate) versions: crate::config::versions::VersionArgs,
    #[command(flatten)]
    pub(crate) push: crate::config::push::PushArgs,
    #[command(flatten)]
    pub(crate) node: crate::config::database::NodeArgs,
    #[command(flatten)]
    pub(crate) source_node: crate::config::database::SourceNodeArgs,
    #[command(flatten)]
    pub(crate) admin: crate::config::admin::AdminArgs,
}

/// Options of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Publish people in RDF, copy them into N-Quads, and print the patch of a change
    #[arg(long)]
    pub(crate) rdf: bool,
    /// Keep running at the end, and print the addresses
    #[arg(long)]
    pub(crate) keep: bool,
    /// Create the folders here [default: a temporary folder, removed at the end]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn paragraphs_of_the_help_are_one_line_each() {
        assert_eq!(
            joined("Examples:\n  a\n  b\n\nOne\ntwo.\n\nThree"),
            "Examples:\n  a\n  b\n\nOne two.\n\nThree"
        );
    }

    /// The commands in a help text, as a shell reads them: up to a pipe, a redirection or `&&`.
    fn examples_in(help: &str) -> Vec<Vec<String>> {
        let mut found = Vec::new();
        let mut lines = help.lines();
        while let Some(line) = lines.next() {
            if !line.starts_with("  abreast ") {
                continue;
            }
            let mut command = line.to_owned();
            while let Some(begun) = command.strip_suffix('\\') {
                command = format!("{begun}{}", lines.next().unwrap_or_default());
            }
            let words = words_of(&command).into_iter();
            let words =
                words.take_while(|word| !matches!(*word, "|" | ">" | ">>" | "&&" | "&" | "#"));
            found.push(words.map(|word| word.replace(['\'', '"'], "")).collect());
        }
        found
    }

    #[test]
    fn examples_of_the_help_can_be_pasted() {
        fn walk(command: &mut clap::Command, width: usize, examples: &mut Vec<Vec<String>>) {
            let help = command.clone().term_width(width).render_long_help().to_string();
            examples.extend(examples_in(&help));
            let written = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert_eq!(
                examples_in(&help),
                examples_in(&written),
                "`{}` is wrapped at {width} columns",
                command.get_name()
            );
            for inner in command.get_subcommands_mut() {
                walk(inner, width, examples);
            }
        }
        let (mut checked, mut examples) = (0, Vec::new());
        for width in [80, 100, 200] {
            let mut command = command();
            command.build();
            walk(&mut command, width, &mut examples);
        }
        let place = tempfile::tempdir().unwrap();
        for words in examples {
            // Files of rules are read when the arguments are.
            let files =
                words.iter().position(|word| matches!(&**word, "--filter-from" | "--uris-from"));
            let mut words = words.clone();
            if let Some(at) = files {
                let file = place.path().join("rules");
                std::fs::write(&file, "").unwrap();
                words[at + 1] = file.display().to_string();
            }
            if let Err(error) = command().try_get_matches_from(&words) {
                panic!("{words:?}: {error}");
            }
            checked += 1;
        }
        assert!(checked > 150, "only {checked} examples");
    }

    #[test]
    fn each_heading_has_its_own_options_only() {
        fn of<A: Args>() -> Vec<(String, String)> {
            let command = A::augment_args(clap::Command::new("x"));
            let headed = |arg: &clap::Arg| {
                Some((arg.get_id().to_string(), arg.get_help_heading()?.to_owned()))
            };
            command.get_arguments().filter_map(headed).collect()
        }
        fn walk(command: &clap::Command, groups: &[(String, String)]) {
            for argument in command.get_arguments() {
                let Some(heading) = argument.get_help_heading() else { continue };
                let own = (argument.get_id().to_string(), heading.to_owned());
                assert!(
                    groups.contains(&own),
                    "{}: {} is under {heading}",
                    command.get_name(),
                    own.0
                );
            }
            command.get_subcommands().for_each(|inner| walk(inner, groups));
        }
        let groups = [
            of::<crate::config::access::AccessArgs>(),
            of::<crate::config::admin::AdminArgs>(),
            of::<crate::config::api::ApiArgs>(),
            of::<crate::config::database::SourceNodeArgs>(),
            of::<crate::config::database::NodeArgs>(),
            of::<crate::config::dumps::DumpArgs>(),
            of::<crate::config::follow_args::FollowArgs>(),
            of::<crate::config::listen::ListenArgs>(),
            of::<crate::config::on_change_args::OnChangeArgs>(),
            of::<crate::config::publish_args::PublishArgs>(),
            of::<crate::config::push::PushArgs>(),
            of::<crate::config::rule_args::RuleArgs>(),
            of::<crate::config::source_args::OfferArgs>(),
            of::<crate::config::source_args::ReadingArgs>(),
            of::<crate::config::sync_args::FilterArgs>(),
            of::<crate::config::sync_args::PaceArgs>(),
            of::<crate::config::target::TargetArgs>(),
            of::<crate::config::versions::VersionArgs>(),
        ];
        walk(&command(), &groups.concat());
    }

    #[test]
    fn options_of_a_copy_are_not_under_the_heading_of_notifications() {
        let command = command();
        let sync = command.find_subcommand("sync").unwrap();
        for name in ["config", "state", "set", "json", "quiet", "retries"] {
            let argument = sync.get_arguments().find(|argument| argument.get_id() == name).unwrap();
            assert_eq!(argument.get_help_heading(), None, "{name}");
        }
    }

    /// The commands in a line of a document: the words after `abreast`, up to the end of the code
    /// or of the command.
    fn commands_in(line: &str) -> impl Iterator<Item = Vec<&str>> {
        let commands = line.split("abreast ").skip(1);
        commands.map(|rest| {
            rest.split(['`', '|', '#', ';', '('])
                .next()
                .unwrap_or_default()
                .split_whitespace()
                .collect()
        })
    }

    #[test]
    fn documented_commands_have_the_options_that_they_are_given() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let documents = ["docs", "docs/recipes"]
            .into_iter()
            .flat_map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
        let documents = documents.map(|entry| entry.unwrap().path());
        let documents =
            documents.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
        let mut options = 0;
        for document in documents.chain([root.join("README.md")]) {
            let text = std::fs::read_to_string(&document).unwrap().replace("\\\n", "");
            for words in text.lines().flat_map(commands_in) {
                let cli = command();
                let mut words = words.into_iter().peekable();
                let mut own = &cli;
                while let Some(next) = words.peek().and_then(|word| own.find_subcommand(word)) {
                    own = next;
                    words.next();
                }
                for word in words.filter(|_| own.get_name() != cli.get_name()) {
                    let Some(long) = word.strip_prefix("--").filter(|long| !long.is_empty()) else {
                        continue;
                    };
                    let long = long
                        .split('=')
                        .next()
                        .unwrap()
                        .trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
                    let is_known = long == "help"
                        || own.get_arguments().any(|known| known.get_long() == Some(long));
                    assert!(
                        is_known,
                        "{}: `abreast {} {word}`",
                        document.display(),
                        own.get_name()
                    );
                    options += 1;
                }
            }
        }
        assert!(options > 100, "only {options} options were found");
    }
}
