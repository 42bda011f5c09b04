//! `abreast config`: all faults of a configuration file, and every setting that holds with where it
//! comes from.

use crate::command::jobs::{self, Origin, Setting};
use crate::config::database::DatabaseConfig;
use crate::config::faults::Fault;
use crate::config::settings::{self, FILE, Key, SET};
use crate::config::sync_args::SyncArgs;
use crate::config::{File, ServeConfig};
use crate::program::errors::UsageError;
use crate::program::terminal::warning;
use crate::values::hidden_logins::hidden_value;
use abreast_webtypes::count_of;
use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use toml::{Table, Value};

const HELP: &str = "\
Examples:
  abreast config check /etc/abreast.toml
  abreast config show /etc/abreast.toml --origin
  abreast config show /etc/abreast.toml papers --json

`check` reports all faults at once, each with its line. A missing folder is a warning if other sets have theirs. `show` prints TOML that can be read back; logins in URLs are hidden.
Precedence: flags, then environment, then file, then defaults.
Exit codes: 0 usable, 2 not.";

/// Commands for a configuration file.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Report all errors in a configuration file
    #[command(after_help = HELP)]
    Check(CheckArgs),
    /// Print all settings as TOML, defaults included
    #[command(after_help = HELP)]
    Show(ShowArgs),
}

/// Options of `config check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The configuration file
    #[arg(env = "ABREAST_CONFIG", required_unless_present = "config")]
    file: Option<PathBuf>,
    /// The configuration file, as in other commands
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// Options of `config show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The configuration file
    #[arg(env = "ABREAST_CONFIG", required_unless_present = "config")]
    file: Option<PathBuf>,
    /// The configuration file, as in other commands; all arguments are jobs
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Jobs to print [default: all, and the settings of `serve`]
    job: Vec<String>,
    /// Print the origin of each value: environment, file or default
    #[arg(long)]
    origin: bool,
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
}

/// Runs `config`.
pub(crate) fn run(command: &ConfigCommand) -> Result<ExitCode> {
    match command {
        ConfigCommand::Check(args) => check(args),
        ConfigCommand::Show(args) => show(args),
    }
}

impl CheckArgs {
    fn file(&self) -> Result<&Path> {
        match chosen(self.config.as_deref(), self.file.as_deref())? {
            (file, None) => Ok(file),
            (config, Some(other)) => bail!(UsageError(format!(
                "`{}` and `{}` are two configuration files (help: check one at a time)",
                config.display(),
                other.display()
            ))),
        }
    }
}

impl ShowArgs {
    /// The configuration file, and the jobs to print.
    fn file_and_jobs(&self) -> Result<(&Path, Vec<String>)> {
        let (file, first_job) = chosen(self.config.as_deref(), self.file.as_deref())?;
        let first_job = first_job.map(|job| job.to_string_lossy().into_owned());
        Ok((file, first_job.into_iter().chain(self.job.iter().cloned()).collect()))
    }
}

/// The configuration file, and the first argument if that is not the file.
fn chosen<'a>(
    config: Option<&'a Path>,
    first: Option<&'a Path>,
) -> Result<(&'a Path, Option<&'a Path>)> {
    match (config, first) {
        (Some(config), first) => {
            Ok((config, first.filter(|first| !crate::config::is_of_environment(first))))
        }
        (None, Some(file)) => Ok((file, None)),
        (None, None) => bail!(UsageError("no configuration file is given".to_owned())),
    }
}

/// All faults of a configuration file, each once and in one text.
///
/// # Errors
/// The command line of `sync` cannot be made.
pub(crate) fn faults_of(file: File) -> Result<Vec<String>> {
    Ok(crate::config::faults::each_once(checked(file)?.faults)
        .iter()
        .map(ToString::to_string)
        .collect())
}

/// What a configuration file has, and what is wrong with it.
struct Checked {
    faults: Vec<Fault>,
    /// Missing folders, which do not stop other sets.
    missing: Vec<Fault>,
    sets: usize,
    jobs: usize,
    only_hub: bool,
    /// The URL of the database, without a password.
    database: Option<String>,
}

fn checked(file: File) -> Result<Checked> {
    let command = jobs::command::<SyncArgs>();
    let given = jobs::nothing_given(&command)?;
    let mut faults = file.origins.faults().to_vec();
    let (jobs, found) = jobs::find(&file, &command);
    faults.extend(found);
    for job in &jobs {
        faults.extend(job.faults::<SyncArgs>(&command, &given));
        faults.extend(crate::command::sync::problems(job, &command, &given, &file));
    }
    faults.extend(jobs::in_published_folders(&jobs, &file));
    // A file of jobs alone is not one to serve from, and a hub may be alone, too.
    let sets = file.set.len();
    let only_hub = !file.origins.has("set") && file.origins.has("hub");
    let mut missing = Vec::new();
    let database = DatabaseConfig::of_file(&file).ok().flatten();
    let database = database.map(|database| database.shown());
    if only_hub {
        faults.extend(crate::command::hub::faults(file));
    } else if sets > 0 || jobs.is_empty() {
        let (found, folders) = ServeConfig::check_all(file);
        faults.extend(found);
        missing = folders;
    }
    Ok(Checked { faults, missing, sets, jobs: jobs.len(), only_hub, database })
}

fn check(args: &CheckArgs) -> Result<ExitCode> {
    let path = args.file()?;
    let text = read(path)?;
    crate::values::hidden_logins::warn_of_secrets(path, &text);
    let mut file = crate::config::read(&text);
    file.origins.name(path);
    let Checked { mut faults, missing, sets, jobs, only_hub, database } = checked(file)?;
    if !faults.is_empty() {
        faults.extend(missing);
        let context = format!("cannot use the configuration `{}`", path.display());
        return Err(crate::config::faults::refused(faults).context(context));
    }
    for folder in crate::config::faults::each_once(missing) {
        warning(&format!("warning: {folder}; `serve` waits for it, and serves the other sets"));
    }
    let hub = if only_hub { ", a hub" } else { "" };
    let database = database.map_or(String::new(), |shown| format!(", the store in {shown}"));
    let (sets, mirrors) = (count_of(sets, "set"), count_of(jobs, "mirror"));
    crate::program::terminal::line(&format!(
        "{}: {sets} to publish, {mirrors}{hub}{database}",
        path.display()
    ));
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}

fn show(args: &ShowArgs) -> Result<ExitCode> {
    let (file, names) = args.file_and_jobs()?;
    let command = jobs::command::<SyncArgs>();
    let given = jobs::nothing_given(&command)?;
    let jobs = jobs::read::<SyncArgs>(file, &command, &given, crate::command::sync::problems)?;
    let table: Table = toml::from_str(&read(file)?).context("cannot read the configuration")?;
    let chosen = if names.is_empty() {
        // A file of mirrors alone publishes nothing.
        if jobs.is_empty() || table.contains_key("set") || table.contains_key("hub") {
            show_server(args, &table);
        }
        jobs
    } else {
        jobs::choose(jobs, &names, false)?
    };
    let faults: Vec<Fault> = chosen.iter().flat_map(|job| job.own_faults.clone()).collect();
    if !faults.is_empty() {
        return Err(crate::config::faults::refused(faults));
    }
    for job in &chosen {
        show_table(args, "[[mirror]]", Some(&job.name), &job.settings(&command, &given)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// All that `serve` and `hub` take from the file, the environment before it.
fn show_server(args: &ShowArgs, table: &Table) {
    let no_tables = Vec::new();
    let sets = table.get("set").and_then(Value::as_array).unwrap_or(&no_tables);
    let none = Table::new();
    let inner = |name: &str| table.get(name).and_then(Value::as_table).unwrap_or(&none);
    let word = |name: &str| {
        let given = FILE.keys.iter().find(|key| key.name == name).and_then(given);
        given.as_ref().and_then(Value::as_str).map(str::to_owned).or_else(|| text_of(table, name))
    };
    let (listen, base_url) = (word("listen"), word("base_url"));
    let address =
        crate::config::check_address(listen.as_deref(), base_url.as_deref(), &mut Vec::new());
    let scheme = if table.contains_key("tls") { "https" } else { "http" };
    let jid = text_of(inner("xmpp"), "jid");
    let domain = jid.as_deref().and_then(|jid| jid.rsplit('@').next());
    let default = |table: &str, key: &Key| match (table, key.name) {
        ("", "base_url") => (!address.ip().is_unspecified() && address.port() != 0)
            .then(|| format!("{scheme}://{address}/").into()),
        ("", "data") => match sets.as_slice() {
            [Value::Table(only)] => text_of(only, "folder")
                .map(|folder| Path::new(&folder).join(".abreast").display().to_string().into()),
            _ => None,
        },
        ("[hub]", "private_callbacks") => {
            Some(crate::config::api::is_local(address, base_url.as_deref()).into())
        }
        ("[xmpp]", "service") => domain.map(|domain| format!("pubsub.{domain}").into()),
        ("[xmpp]", "server") => domain.map(|domain| format!("{domain}:5222").into()),
        _ => key.default(),
    };
    let show = |title: &str, known: &settings::Table, values: &Table| {
        let keys = known.keys.iter().filter(|key| key.inner.is_none() && key.name != "mirror");
        let shown = keys
            .map(|key| setting(values, key.name, given(key), default(known.name, key)))
            .collect::<Vec<_>>();
        show_table(args, title, None, &shown);
    };
    show("serve", &FILE, table);
    for key in FILE.keys.iter().filter(|key| key.name != "set") {
        if let Some(known) = key.inner
            && (key.name != "xmpp" || table.contains_key("xmpp"))
        {
            // A list of tables may be empty.
            match table.get(key.name).and_then(Value::as_array) {
                Some(all) => {
                    all.iter()
                        .filter_map(Value::as_table)
                        .for_each(|one| show(known.name, known, one));
                }
                None if key.is_list() => {}
                None => show(known.name, known, inner(key.name)),
            }
        }
    }
    for set in sets.iter().filter_map(Value::as_table) {
        let shown = SET.keys.iter().map(|key| {
            let mut setting = setting(set, key.name, None, default_in(set, key));
            if let (Some(Value::Table(values)), Some(known)) = (&mut setting.value, key.inner) {
                known.fill_in(values);
            }
            setting
        });
        let shown: Vec<_> = shown.collect();
        let name = shown.iter().find(|setting| setting.key == "name");
        let name = name.and_then(|setting| setting.value.as_ref()).and_then(Value::as_str);
        show_table(args, SET.name, name, &shown);
    }
}

/// The value of the environment variable of a key.
fn given(key: &Key) -> Option<Value> {
    let text = std::env::var(key.env?).ok()?;
    match key.default() {
        Some(Value::Boolean(_)) => {
            let no = ["", "0", "f", "false", "n", "no", "off"];
            (!no.contains(&text.to_lowercase().as_str())).then_some(true.into())
        }
        Some(Value::Array(_)) => {
            let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
            let texts: Vec<_> = texts.map(Value::from).collect();
            (!texts.is_empty()).then_some(texts.into())
        }
        _ => Some(text.into()),
    }
}

/// The default of a key of a set.
fn default_in(set: &Table, key: &Key) -> Option<Value> {
    let name = || {
        let folder = PathBuf::from(text_of(set, "folder")?);
        Some(crate::config::slug_of(&std::fs::canonicalize(&folder).unwrap_or(folder)).into())
    };
    match key.name {
        "name" => name(),
        "title" | "xmpp_node" => set.get("name").cloned().or_else(name),
        "origin" if set.get("records").and_then(Value::as_bool) == Some(true) => {
            Some("records".into())
        }
        "versions" => {
            let dumps = set.get("dumps")?.clone().try_into().ok()?;
            let digests = abreast_source::DigestPolicy::Md5;
            let dumps = crate::config::dumps::check(Some(&dumps), digests, &mut Vec::new());
            let age = crate::config::dumps::versions_needed(dumps.as_ref())?.age?;
            let age = humantime::format_duration(age).to_string();
            Some(Table::from_iter([("age".to_owned(), age.into())]).into())
        }
        _ => key.default(),
    }
}

fn text_of(table: &Table, key: &str) -> Option<String> {
    table.get(key).and_then(Value::as_str).map(str::to_owned)
}

fn setting(file: &Table, key: &str, given: Option<Value>, default: Option<Value>) -> Setting {
    let (value, origin) = match (given, file.get(key)) {
        (Some(value), _) => (Some(value), Origin::Environment),
        (None, Some(value)) => (Some(value.clone()), Origin::File),
        (None, None) => (default, Origin::Default),
    };
    Setting { key: key.to_owned(), value: value.map(|value| without_logins(key, value)), origin }
}

fn without_logins(key: &str, value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(hidden_value(key, &text)),
        Value::Array(values) => {
            Value::Array(values.into_iter().map(|value| without_logins(key, value)).collect())
        }
        Value::Table(table) => Value::Table(
            table
                .into_iter()
                .map(|(key, value)| {
                    let value = without_logins(&key, value);
                    (key, value)
                })
                .collect(),
        ),
        other => other,
    }
}

/// A value as TOML on one line.
fn on_one_line(value: &Value) -> String {
    match value {
        // Strings of JSON are basic strings of TOML.
        Value::String(text) => {
            serde_json::Value::from(text.as_str()).to_string().replace('\u{7f}', "\\u007f")
        }
        Value::Array(values) => {
            format!("[{}]", values.iter().map(on_one_line).collect::<Vec<_>>().join(", "))
        }
        Value::Table(table) => {
            let inner: Vec<_> = table
                .iter()
                .map(|(key, value)| format!("{key} = {}", on_one_line(value)))
                .collect();
            if inner.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", inner.join(", ")) }
        }
        other => other.to_string(),
    }
}

/// The logins in the values are hidden already, so that the output can be read back.
fn show_table(args: &ShowArgs, table: &str, name: Option<&str>, settings: &[Setting]) {
    if args.json {
        for setting in settings {
            let line = serde_json::json!({
                "type": "setting", "table": table.trim_matches(['[', ']']), "name": name, "key": setting.key,
                "value": setting.value.as_ref().map(on_one_line), "origin": setting.origin.to_string(),
            });
            crate::program::terminal::page(&line.to_string());
        }
        return;
    }
    if table.starts_with('[') {
        crate::program::terminal::line("");
        crate::program::terminal::line(table);
    }
    for Setting { key, value, origin } in settings {
        let origin =
            if args.origin && value.is_some() { format!("  # {origin}") } else { String::new() };
        match value {
            Some(value) => {
                crate::program::terminal::page(&format!("{key} = {}{origin}", on_one_line(value)));
            }
            None => crate::program::terminal::line(&format!("# {key} is not set")),
        }
    }
}
