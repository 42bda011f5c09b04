//! Mirrors in a configuration file: jobs with the options of `sync`, and the origin of each value.
//!
//! A job is turned into a command line, so it has the same options, and is checked the same way.
//! What is given by flag or in the environment comes first and is left out of it.

use crate::config::File;
use crate::errors::ExitCodeError;
use crate::errors::SecretError;
use crate::errors::UsageError;
use crate::faults::{Fault, Origins};
use crate::hidden_logins::{hidden_value, shown, warn_of_secrets};
use anyhow::{Context as _, Result, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Most jobs of one file.
const JOBS_MAX: usize = 1_000;
/// Keys of a job that are no options.
pub(crate) const PLACES: &[&str] = &["name", "url", "folder"];
/// Options that select jobs or the output of one run. They are not allowed in files.
const NOT_FOR_FILES: &[&str] = &[
    "places",
    "config",
    "all",
    "json",
    "quiet",
    "verbose",
    "dry_run",
    "test_filter",
    "help",
    "version",
];

/// Options with secrets that are sent to a Source.
pub(crate) const SECRETS: [&str; 5] =
    ["user", "password_file", "password_command", "token_file", "token_command"];
/// Keys that begin a login.
const LOGINS: [&str; 3] = ["user", "token_file", "token_command"];

/// One `[[mirror]]` of a configuration file.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) name: String,
    table: toml::Table,
    /// Where it is in the file.
    path: String,
    /// Faults of its keys.
    pub(crate) own_faults: Vec<Fault>,
    origins: Arc<Origins>,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Flag,
    Environment,
    File,
    Default,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Flag => "flag",
            Self::Environment => "environment",
            Self::File => "file",
            Self::Default => "default",
        })
    }
}

/// One setting that holds.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) key: String,
    /// `None`: it is not set and has no default.
    pub(crate) value: Option<toml::Value>,
    pub(crate) origin: Origin,
}

/// Why a job's options cannot be used.
#[derive(Debug)]
enum JobError {
    Value(String),
    Clap(clap::Error),
}

impl From<clap::Error> for JobError {
    fn from(error: clap::Error) -> Self {
        Self::Clap(error)
    }
}

impl std::fmt::Display for JobError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Value(text) => f.write_str(text),
            Self::Clap(error) => f.write_str(&shortly(error)),
        }
    }
}

/// The fault is none of the value itself.
fn is_about_others(error: &clap::Error) -> bool {
    use clap::error::ErrorKind::{ArgumentConflict, MissingRequiredArgument};
    matches!(error.kind(), ArgumentConflict | MissingRequiredArgument)
}

/// The command line that jobs are turned into.
pub(crate) fn command<A: Args>() -> Command {
    A::augment_args(Command::new("abreast").disable_version_flag(true))
}

fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|arg| arg.get_long().is_some() && !NOT_FOR_FILES.contains(&arg.get_id().as_str()))
}

/// No flags at all: only the environment counts.
pub(crate) fn nothing_given(command: &clap::Command) -> Result<clap::ArgMatches> {
    Ok(command.clone().try_get_matches_from(["abreast", "--all", "--config", "-"])?)
}

/// Finds faults in the options of a job, such as files that cannot be read.
pub(crate) type Problems = fn(&Job, &Command, &ArgMatches, &File) -> Vec<Fault>;

/// The jobs of a configuration file.
///
/// # Errors
/// All faults of the file except faults of publishing and faults of a single job.
pub(crate) fn read<A: Args + FromArgMatches>(
    path: &Path,
    command: &Command,
    given: &ArgMatches,
    problems: Problems,
) -> Result<Vec<Job>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read `{}`", path.display()))?;
    warn_of_secrets(path, &text);
    let mut file = crate::config::read(&text);
    file.origins.name(path);
    of_file::<A>(&file, command, given, problems)
        .with_context(|| format!("cannot use the configuration `{}`", path.display()))
}

fn of_file<A: Args + FromArgMatches>(
    file: &File,
    command: &Command,
    given: &ArgMatches,
    problems: Problems,
) -> Result<Vec<Job>> {
    let (jobs, found) = find(file, command);
    let mut faults = file.origins.faults().to_vec();
    faults.extend(found);
    if !faults.is_empty() {
        faults.extend(jobs.iter().flat_map(|job| job.faults::<A>(command, given)));
        let of_sync = self::command::<crate::sync_args::SyncArgs>();
        let nothing = nothing_given(&of_sync)?;
        let of_files = |job| problems(job, &of_sync, &nothing, file);
        faults.extend(jobs.iter().flat_map(of_files));
        return Err(crate::faults::refused(faults));
    }
    Ok(jobs)
}

/// The jobs of a file, and the faults that concern several jobs; [`Job::faults`] finds the faults of one job.
pub(crate) fn find(file: &File, command: &Command) -> (Vec<Job>, Vec<Fault>) {
    // `audit` takes those of its own from a job, and leaves the others alone.
    let of_sync = self::command::<crate::sync_args::SyncArgs>();
    let mut known: Vec<&str> = PLACES.to_vec();
    known.extend(options(command).chain(options(&of_sync)).map(|arg| arg.get_id().as_str()));
    let origins = Arc::new(file.origins.clone());
    let mut faults = Vec::new();
    let mut jobs: Vec<Job> = Vec::new();
    for (number, table) in file.mirror.iter().enumerate() {
        let path = format!("mirror.{number}");
        let (mut table, mut own_faults) = (table.clone(), Vec::new());
        let mut meant = Vec::new();
        for key in
            table.keys().filter(|key| !known.contains(&key.as_str())).cloned().collect::<Vec<_>>()
        {
            table.remove(&key);
            let (text, nearest) = crate::faults::unknown_key(&key, &known, "`[[mirror]]`");
            meant.extend(nearest);
            own_faults.extend(origins.fault(&format!("{path}.{key}"), text));
        }
        for key in PLACES {
            let text = match table.get(*key) {
                Some(toml::Value::String(text)) if !text.is_empty() => continue,
                None if *key == "name" || meant.contains(key) => continue,
                None => format!(
                    "`{key}`: missing in `[[mirror]]` number {} (help: add `{key} = \"...\"`)",
                    number + 1
                ),
                Some(value) => {
                    format!("`{key}`: {value} is not text, or is empty (help: put it in quotes)")
                }
            };
            own_faults.extend(origins.fault(&format!("{path}.{key}"), text));
        }
        let word = |key: &str| table.get(key).and_then(toml::Value::as_str);
        let of_folder = || {
            word("folder")
                .map(Path::new)
                .and_then(Path::file_name)
                .map(|name| name.to_string_lossy().into_owned())
        };
        let name =
            word("name").map(str::to_owned).or_else(of_folder).filter(|name| !name.is_empty());
        let is_unnamed = name.is_none();
        let name = name.unwrap_or_else(|| format!("number {}", number + 1));
        if let Some(url) = word("url").filter(|url| !url.is_empty())
            && let Err(expected) = crate::address::http_url(url)
        {
            let help = crate::address::with_scheme(url)
                .map_or("write it with its scheme and host".to_owned(), |meant| {
                    format!("did you mean `{meant}`?")
                });
            let text = format!("`url`: `{}` cannot be used: {expected} (help: {help})", shown(url));
            own_faults.extend(origins.fault(&format!("{path}.url"), text));
        }
        if !is_unnamed && jobs.iter().any(|job| job.name == name) {
            let text = format!(
                "`name`: two jobs are called `{name}` (help: give each `[[mirror]]` a `name` of its own)"
            );
            faults.extend(origins.fault(&format!("{path}.name"), text));
        }
        jobs.push(Job { name, table, path, own_faults, origins: Arc::clone(&origins) });
    }
    if jobs.len() > JOBS_MAX {
        let text = format!("`mirror`: more than {JOBS_MAX} jobs (help: make a second file)");
        faults.extend(origins.fault("mirror", text));
        jobs.truncate(JOBS_MAX);
    }
    faults.extend(overlapping(&jobs, file));
    (jobs, faults)
}

/// Where a copy keeps something: its folder, or its address in an object store.
fn places_of(job: &Job, file: &File) -> Vec<(&'static str, PathBuf)> {
    let word = |key: &str| {
        job.table.get(key).and_then(toml::Value::as_str).filter(|text| !text.is_empty())
    };
    let mut places = Vec::new();
    if let Some(target) = word("folder").filter(|target| *target != "-") {
        let place = match target.strip_prefix("set:") {
            Some(set) => file.folder_of(set).ok().map(|folder| real(&folder)),
            // Its own name space, and kept apart from folders by its scheme.
            None if target.contains("://") => Some(PathBuf::from(target.trim_end_matches('/'))),
            None => Some(real(crate::target::folder_of(target))),
        };
        places.extend(place.map(|place| ("folder", place)));
    }
    places.extend(word("state").map(|state| ("state", real(Path::new(state)))));
    places
}

/// A path without links as far as it exists.
fn real(path: &Path) -> PathBuf {
    let Ok(path) = std::path::absolute(path) else { return path.to_owned() };
    for above in path.ancestors() {
        if let (Ok(found), Ok(rest)) = (std::fs::canonicalize(above), path.strip_prefix(above)) {
            return found.join(rest).components().collect();
        }
    }
    path
}

/// Jobs whose copies or states lie in other copies or states.
fn overlapping(jobs: &[Job], file: &File) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut known: Vec<(&Job, &str, PathBuf)> = Vec::new();
    for job in jobs {
        let own = places_of(job, file);
        for (key, place) in &own {
            let other = known
                .iter()
                .find(|(_, _, other)| place.starts_with(other) || other.starts_with(place));
            if let Some((other, _, _)) = other {
                let text = format!(
                    "`{key}`: job `{}` and job `{}` overlap in `{}` (help: give each a folder of its own, none inside another)",
                    job.name,
                    other.name,
                    shown(&place.display().to_string())
                );
                faults.extend(job.origins.fault(&format!("{}.{key}", job.path), text));
            }
        }
        known.extend(own.into_iter().map(|(key, place)| (job, key, place)));
    }
    faults
}

/// Copies in a folder that the same file publishes, where that is not asked for.
pub(crate) fn in_published_folders(jobs: &[Job], file: &File) -> Vec<Fault> {
    let published = file.set.iter().filter(|set| !set.folder.as_os_str().is_empty());
    let published: Vec<PathBuf> = published.map(|set| real(&set.folder)).collect();
    let mut faults = Vec::new();
    for job in jobs {
        let is_asked_for = job.table.get("republish").and_then(toml::Value::as_bool) == Some(true)
            || job
                .table
                .get("folder")
                .and_then(toml::Value::as_str)
                .is_some_and(|folder| folder.starts_with("set:"));
        let copies = places_of(job, file).into_iter().filter(|(key, _)| *key == "folder");
        for (key, place) in copies.filter(|_| !is_asked_for) {
            if let Some(folder) = published.iter().find(|folder| place.starts_with(folder)) {
                let text = format!(
                    "`{key}`: the copy of job `{}` lies in `{}`, which is published (help: choose another folder; to publish the \
                     copy again, add `republish = true`)",
                    job.name,
                    shown(&folder.display().to_string())
                );
                faults.extend(job.origins.fault(&format!("{}.{key}", job.path), text));
            }
        }
    }
    faults
}

/// The jobs with these names, in this order, or all jobs if `all` is set and no name is given.
///
/// # Errors
/// No such job, or no choice between several.
pub(crate) fn choose(jobs: Vec<Job>, names: &[String], all: bool) -> Result<Vec<Job>> {
    let listed = jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>().join(", ");
    if jobs.is_empty() {
        bail!(UsageError("the configuration has no `[[mirror]]`".to_owned()));
    }
    if all {
        if !names.is_empty() {
            bail!(UsageError("give names of jobs or `--all`, not both".to_owned()));
        }
        return Ok(jobs);
    }
    if names.is_empty() && jobs.len() > 1 {
        bail!(UsageError(format!("which job? (help: name some of {listed}, or use `--all`)")));
    }
    if names.is_empty() {
        return Ok(jobs);
    }
    let find = |name: &String| match jobs.iter().find(|job| job.name == *name) {
        Some(job) => Ok(job.clone()),
        None => bail!(UsageError(format!("there is no job `{name}`; there are {listed}"))),
    };
    names.iter().map(find).collect()
}

impl Job {
    /// All faults of the job's keys and values.
    pub(crate) fn faults<A: Args + FromArgMatches>(
        &self,
        command: &Command,
        given: &ArgMatches,
    ) -> Vec<Fault> {
        let mut faults = self.own_faults.clone();
        let mut note = |key: &str, text: &str| {
            faults.extend(
                self.origins
                    .fault(&format!("{}.{key}", self.path), format!("job `{}`: {text}", self.name)),
            );
        };
        let mut rest = self.clone();
        rest.table.retain(|key, _| PLACES.contains(&key));
        // Each value by itself first, whatever it needs beside it.
        for (key, value) in self.table.iter().filter(|(key, _)| !PLACES.contains(&key.as_str())) {
            let mut one = rest.clone();
            one.table.retain(|key, _| PLACES.contains(&key));
            one.table.insert(key.clone(), value.clone());
            let wrong = match one.try_args::<A>(command, given) {
                Err(JobError::Value(text)) => Some(text),
                Err(JobError::Clap(error)) if !is_about_others(&error) => {
                    Some(format!("`{key}`: {}", shortly(&error)))
                }
                _ => None,
            };
            match wrong {
                Some(text) => note(key, &text),
                None => drop(rest.table.insert(key.clone(), value.clone())),
            }
        }
        // Contradictions and missing keys; without the reported key, the rest is checked again.
        while let Err(wrong) = rest.try_args::<A>(command, given) {
            let text = wrong.to_string();
            let named = rest.option_in(command, &text);
            let Some(key) =
                named.or_else(|| options(command).find(|arg| rest.needs_other(command, arg)))
            else {
                note("", &text);
                break;
            };
            let key = key.get_id().as_str();
            note(
                key,
                &format!("`{key}`: {text} (help: leave one of them out, or add what is missing)"),
            );
            rest.table.remove(key);
        }
        faults
    }

    /// A failure of the job's options as a fault of the file, with the key that it names.
    pub(crate) fn fault_of(
        &self,
        command: &Command,
        error: &anyhow::Error,
    ) -> (Option<Fault>, Option<String>) {
        let secret = error.downcast_ref::<SecretError>();
        let text = secret.map_or_else(|| format!("{error:#}"), |secret| secret.text.clone());
        let key = match secret {
            Some(secret) => Some(secret.option),
            None => self.option_in(command, &text).map(|arg| arg.get_id().as_str()),
        };
        let key = key.filter(|key| self.table.contains_key(*key)).map(str::to_owned);
        let named = key.as_ref().map(|key| format!("`{key}`: ")).unwrap_or_default();
        let path = format!("{}.{}", self.path, key.as_deref().unwrap_or_default());
        let text = format!("job `{}`: {named}{text}", self.name);
        (self.origins.fault(path.trim_end_matches('.'), text), key)
    }

    /// The key of the job in the line of a fault.
    pub(crate) fn key_of(&self, fault: &Fault) -> Option<String> {
        let is_there = |key: &&String| self.origins.is_at(&format!("{}.{key}", self.path), fault);
        self.table.keys().find(is_there).cloned()
    }

    /// An error of the job's options, with the line and the key in the file.
    pub(crate) fn refuse(&self, command: &Command, error: anyhow::Error) -> anyhow::Error {
        let code = crate::exit::code(&error);
        match self.fault_of(command, &error) {
            (Some(fault), _) => ExitCodeError { message: fault.to_string(), code }.into(),
            (None, _) => error,
        }
    }

    /// The job without a key, and without the others that need it.
    pub(crate) fn without(mut self, key: &str) -> Self {
        let needing: &[&str] = match key {
            "password_file" | "password_command" => &["user"],
            "client_cert" => &["client_key"],
            "callback_listen" => &["callback_url"],
            key if key.starts_with("xmpp") => {
                &["xmpp", "xmpp_jid", "xmpp_password_file", "xmpp_password_command", "xmpp_server"]
            }
            _ => &[],
        };
        self.table.retain(|other, _| other != key && !needing.contains(&other));
        self
    }

    /// The option of the job whose flag a text contains.
    fn option_in<'c>(&self, command: &'c Command, text: &str) -> Option<&'c Arg> {
        let is_named = |arg: &&Arg| {
            let long = format!("--{}", arg.get_long().unwrap_or_default());
            text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).any(|word| word == long)
        };
        options(command).filter(is_named).find(|arg| self.table.contains_key(arg.get_id().as_str()))
    }

    /// Whether the file has the job's login, which is for its Source: one of the environment can be for
    /// another.
    pub(crate) fn has_own_login(&self, given: &ArgMatches) -> bool {
        LOGINS.iter().any(|key| self.table.contains_key(*key))
            && SECRETS.iter().all(|id| given.value_source(id) != Some(ValueSource::CommandLine))
    }

    /// Where an option comes from that replaces the one of the file: a flag or the environment.
    fn higher_source(&self, id: &str, given: &ArgMatches) -> Option<Origin> {
        match given.value_source(id) {
            Some(ValueSource::CommandLine) => Some(Origin::Flag),
            Some(ValueSource::EnvVariable)
                if SECRETS.contains(&id) && self.has_own_login(given) =>
            {
                None
            }
            Some(ValueSource::EnvVariable) => Some(Origin::Environment),
            _ => None,
        }
    }

    /// The job's options with those given by flag and in the environment.
    fn matches(&self, command: &Command, given: &ArgMatches) -> Result<ArgMatches, JobError> {
        let place =
            |key: &str| self.table.get(key).and_then(toml::Value::as_str).unwrap_or_default();
        // The user's options come first, so that the user's rules are tried before those of the
        // file.
        let mut command = command.clone();
        let mut flags: Vec<(usize, OsString)> = Vec::new();
        for arg in options(&command).chain(command.get_arguments().filter(|arg| is_how_told(arg))) {
            if given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine) {
                flags_of(arg, given, &mut flags);
            }
        }
        flags.sort_by_key(|(index, _)| *index);
        let mut words: Vec<OsString> = vec!["abreast".into()];
        words.extend(flags.into_iter().map(|(_, word)| word));
        let is_given = |id: &str| self.higher_source(id, given).is_some();
        for arg in options(&command) {
            let id = arg.get_id().as_str();
            // Of alternatives, those of the higher source replace those of the file.
            let is_replaced = || {
                crate::alternatives::alternatives(&command, id).iter().any(|other| is_given(other))
            };
            if let Some(value) = self.table.get(id).filter(|_| !is_given(id) && !is_replaced()) {
                Self::words_of(arg, value, &mut words)?;
            }
        }
        words.extend(["--".into(), place("url").into(), place("folder").into()]);
        let mut replaced = crate::alternatives::replaced_variables(&command, given);
        if self.has_own_login(given) {
            replaced.push("user".to_owned());
        }
        for id in replaced {
            command = command.mut_arg(id, |arg| arg.env(None));
        }
        Ok(command.try_get_matches_from(words)?)
    }

    /// As options of a command, whose faults were found before.
    ///
    /// # Errors
    /// A value of the wrong type or form, or a contradiction.
    pub(crate) fn unchecked_args<A: Args + FromArgMatches>(
        &self,
        command: &Command,
        given: &ArgMatches,
    ) -> Result<A> {
        self.try_args(command, given)
            .map_err(|wrong| UsageError(format!("job `{}`: {wrong}", self.name)).into())
    }

    fn try_args<A: Args + FromArgMatches>(
        &self,
        command: &Command,
        given: &ArgMatches,
    ) -> Result<A, JobError> {
        Ok(A::from_arg_matches(&self.matches(command, given)?)?)
    }

    /// As options of a command.
    ///
    /// # Errors
    /// All faults of its values.
    pub(crate) fn args<A: Args + FromArgMatches>(
        &self,
        command: &Command,
        given: &ArgMatches,
    ) -> Result<A> {
        let faults = self.faults::<A>(command, given);
        if !faults.is_empty() {
            return Err(crate::faults::refused(faults));
        }
        self.unchecked_args(command, given)
    }

    /// Whether an option of the job cannot be alone.
    fn needs_other(&self, command: &Command, arg: &Arg) -> bool {
        let mut without = self.clone();
        let empty = command.clone().try_get_matches_from(["abreast", "--", "", ""]);
        let is_set = without.table.remove(arg.get_id().as_str()).is_some();
        is_set && empty.is_ok_and(|empty| without.matches(command, &empty).is_ok())
    }

    fn words_of(arg: &Arg, value: &toml::Value, words: &mut Vec<OsString>) -> Result<(), JobError> {
        let (key, long) = (arg.get_id().as_str(), arg.get_long().unwrap_or_default());
        let wrong = |expected: &str| {
            JobError::Value(format!("`{key}` is {value} (help: expected {expected})"))
        };
        if is_flag(arg) {
            match value.as_bool() {
                Some(true) => words.push(format!("--{long}").into()),
                Some(false) => {}
                None => return Err(wrong("true or false")),
            }
            return Ok(());
        }
        let one = |value: &toml::Value| match value {
            toml::Value::String(text) => Some(text.clone()),
            toml::Value::Integer(number) => Some(number.to_string()),
            toml::Value::Float(number) => Some(number.to_string()),
            toml::Value::Datetime(date) => Some(date.to_string()),
            _ => None,
        };
        let values = match value {
            toml::Value::Array(values) if matches!(arg.get_action(), ArgAction::Append) => {
                values.as_slice()
            }
            value => std::slice::from_ref(value),
        };
        for value in values {
            let Some(text) = one(value) else { return Err(wrong("a text or a number")) };
            words.push(format!("--{long}={text}").into());
        }
        Ok(())
    }

    /// Every setting with its origin; a setting without a value has an empty one.
    ///
    /// # Errors
    /// A value of the wrong type or form.
    pub(crate) fn settings(&self, command: &Command, given: &ArgMatches) -> Result<Vec<Setting>> {
        let matches = self
            .matches(command, given)
            .map_err(|wrong| UsageError(format!("job `{}`: {wrong}", self.name)))?;
        let text = |key: &str, text: &str| toml::Value::String(hidden_value(key, text));
        let mut settings = Vec::new();
        for key in PLACES {
            let value = if *key == "name" {
                Some(self.name.as_str())
            } else {
                self.table.get(*key).and_then(toml::Value::as_str)
            };
            let origin = if self.table.contains_key(*key) { Origin::File } else { Origin::Default };
            settings.push(Setting {
                key: (*key).to_owned(),
                value: value.map(|value| text(key, value)),
                origin,
            });
        }
        for arg in options(command) {
            let id = arg.get_id().as_str();
            let origin = match self.higher_source(id, given) {
                Some(origin) => origin,
                None if self.table.contains_key(id) => Origin::File,
                None => match matches.value_source(id) {
                    Some(ValueSource::EnvVariable) => Origin::Environment,
                    _ => Origin::Default,
                },
            };
            let value = if is_flag(arg) {
                Some(matches.get_flag(id).into())
            } else {
                let raw = matches.get_raw(id).into_iter().flatten();
                let mut texts: Vec<_> = raw.map(|raw| text(id, &raw.to_string_lossy())).collect();
                match arg.get_action() {
                    ArgAction::Append => Some(toml::Value::Array(texts)),
                    _ => texts.pop(),
                }
            };
            settings.push(Setting { key: id.to_owned(), value, origin });
        }
        Ok(settings)
    }
}

fn is_flag(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::SetFalse)
}

/// Options of one run that jobs do not have, but a command line may.
fn is_how_told(arg: &Arg) -> bool {
    matches!(arg.get_id().as_str(), "json" | "quiet" | "dry_run" | "test_filter")
}

fn flags_of(arg: &Arg, given: &ArgMatches, flags: &mut Vec<(usize, OsString)>) {
    let (id, long) = (arg.get_id().as_str(), arg.get_long().unwrap_or_default());
    if is_flag(arg) {
        flags.push((given.index_of(id).unwrap_or(0), format!("--{long}").into()));
        return;
    }
    let indices = given.indices_of(id).into_iter().flatten();
    for (index, value) in indices.zip(given.get_raw(id).into_iter().flatten()) {
        let mut word = OsString::from(format!("--{long}="));
        word.push(value);
        flags.push((index, word));
    }
}

/// clap's message without the parts about a command line: the value and its error, else the first
/// paragraph.
fn shortly(error: &clap::Error) -> String {
    use clap::error::{ContextKind, ContextValue};
    let of = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    if let (Some(value), Some(argument)) =
        (of(ContextKind::InvalidValue), of(ContextKind::InvalidArg))
    {
        let option = argument.split([' ', '=']).next().unwrap_or_default();
        let help = format!("help: `abreast sync --help` explains {option}");
        return match std::error::Error::source(error) {
            _ if value.is_empty() => format!("the value is empty ({help})"),
            Some(cause) => format!("`{}` cannot be used: {cause} ({help})", shown(value)),
            None => format!("`{}` cannot be used ({help})", shown(value)),
        };
    }
    let text = error.to_string();
    let lines = text
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let told = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    told.strip_prefix("error: ").unwrap_or(&told).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync_args::SyncArgs;

    const FILE: &str = r#"
        [[mirror]]
        name = "papers"
        url = "https://papers.example.org/"
        folder = "/srv/papers"
        connections = 3
        filter = ["+ keep.tmp", "- *.tmp"]
        max_delete = "5%"
        follow = true
        immutable = false

        [[mirror]]
        url = "https://me:hush@other.example/"
        folder = "/srv/other"
    "#;

    fn jobs(text: &str) -> Result<Vec<Job>> {
        of_file::<SyncArgs>(
            &crate::config::read(text),
            &command::<SyncArgs>(),
            &given(&[]),
            crate::sync::problems,
        )
    }

    fn given(words: &[&str]) -> ArgMatches {
        let words = ["abreast", "--all", "--config=x"].iter().chain(words);
        command::<SyncArgs>().try_get_matches_from(words).unwrap()
    }

    #[test]
    fn a_job_has_the_options_of_sync_and_flags_come_first() {
        let jobs = jobs(FILE).unwrap();
        assert_eq!(
            jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(),
            ["papers", "other"]
        );
        let command = command::<SyncArgs>();
        let args: SyncArgs = jobs[0].args(&command, &given(&[])).unwrap();
        assert_eq!(args.mirror.places, ["https://papers.example.org/", "/srv/papers"]);
        assert!(args.follow && !args.immutable && args.mirror.connections == 3);
        assert!(format!("{:?}", args.mirror.filter).contains("+ keep.tmp"));
        let args: SyncArgs = jobs[0]
            .args(&command, &given(&["--connections", "7", "--json", "--exclude=a"]))
            .unwrap();
        assert!(args.mirror.connections == 7 && args.mirror.json);
        let rules = format!("{:?}", args.mirror.filter);
        assert!(
            rules.find("- a") < rules.find("+ keep.tmp"),
            "the user's rules are tried first: {rules}"
        );
        let settings = jobs[0].settings(&command, &given(&["--connections=7"])).unwrap();
        let of = |key: &str| {
            let setting = settings.iter().find(|setting| setting.key == key).unwrap();
            (setting.value.as_ref().unwrap().to_string(), setting.origin)
        };
        assert_eq!(of("connections"), ("\"7\"".to_owned(), Origin::Flag));
        assert_eq!(of("max_delete"), ("\"5%\"".to_owned(), Origin::File));
        assert_eq!(of("retries"), ("\"5\"".to_owned(), Origin::Default));
        assert_eq!(of("filter"), (r#"["+ keep.tmp", "- *.tmp"]"#.to_owned(), Origin::File));
        let shown = format!("{:?}", jobs[1].settings(&command, &given(&[])).unwrap());
        assert!(!shown.contains("hush"), "{shown}");
    }

    #[test]
    fn wrong_keys_and_values_of_a_job_are_faults_of_that_job() {
        let head = "[[mirror]]\nurl = \"http://h/\"\nfolder = \"f\"\n";
        for (more, part) in [
            (
                "conections = 3",
                "line 4: unknown key `conections` in `[[mirror]]` (help: did you mean `connections`?)",
            ),
            ("dry_run = true", "unknown key `dry_run`"),
            ("[[mirror]]\nurl = \"http://h/\"", "line 4: `folder`: missing"),
        ] {
            let jobs = jobs(&format!("{head}{more}\n")).unwrap();
            let faults: Vec<String> =
                jobs.iter().flat_map(|job| &job.own_faults).map(ToString::to_string).collect();
            assert!(faults.len() == 1 && faults[0].contains(part), "{faults:?}");
        }
        let twice = format!("{head}[[mirror]]\nurl = \"http://h/\"\nfolder = \"x/f\"\n");
        let error = jobs(&twice).unwrap_err().to_string();
        assert!(error.contains("two jobs are called `f`"), "{error}");
        for (more, part) in [
            ("connections = \"many\"", "many"),
            ("follow = \"yes\"", "true or false"),
            ("interval = [1]", "expected a text or a number"),
            ("filter = [\"nonsense\"]", "nonsense"),
            ("follow = true\nmax_bytes = \"1G\"", "max-bytes"),
        ] {
            let jobs = jobs(&format!("{head}{more}\n")).unwrap();
            let error = jobs[0]
                .args::<SyncArgs>(&command::<SyncArgs>(), &given(&[]))
                .unwrap_err()
                .to_string();
            assert!(error.contains("job `f`") && error.contains(part), "{error}");
        }
    }

    #[test]
    fn the_jobs_of_the_example_configuration_are_usable() {
        let jobs = jobs(include_str!("../../../abreast.example.toml")).unwrap();
        for job in &jobs {
            job.args::<SyncArgs>(&command::<SyncArgs>(), &given(&[])).unwrap();
        }
        assert_eq!(jobs.len(), 2);
    }

    #[test]
    fn the_reference_has_the_options_of_jobs() {
        let page = include_str!("../../../docs/configuration.md");
        let (_, page) = page.split_once("## `[[mirror]]`").unwrap();
        let mut rows = page.lines().filter(|line| line.starts_with("| `"));
        for place in PLACES {
            assert!(rows.next().unwrap().starts_with(&format!("| `{place}` |")), "{place}");
        }
        for arg in options(&command::<SyncArgs>()) {
            let row = rows.next().unwrap();
            let cells: Vec<_> = row.split(" |").map(|cell| cell.trim_matches([' ', '|'])).collect();
            let code = |text: &str| format!("`{text}`");
            assert_eq!(cells[0], code(arg.get_id().as_str()));
            assert_eq!(cells[3], code(&format!("--{}", arg.get_long().unwrap())), "{row}");
            let env = arg.get_env().map(|env| code(env.to_str().unwrap())).unwrap_or_default();
            assert_eq!(cells[4], env, "{row}");
            if let ([default], false) = (arg.get_default_values(), is_flag(arg)) {
                assert_eq!(cells[2], code(default.to_str().unwrap()), "{row}");
            }
            assert_eq!(cells[1] == "boolean", is_flag(arg), "{row}");
        }
        assert_eq!(rows.next(), None);
    }

    #[test]
    fn jobs_are_chosen_by_name() {
        let names = |names: &[&str], all| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            choose(jobs(FILE).unwrap(), &names, all)
                .map(|jobs| jobs.into_iter().map(|job| job.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&["other", "papers"], false).unwrap(), ["other", "papers"]);
        assert_eq!(names(&[], true).unwrap(), ["papers", "other"]);
        for (chosen, all) in [(&[][..], false), (&["none"][..], false), (&["papers"][..], true)] {
            assert!(names(chosen, all).is_err());
        }
        assert!(choose(Vec::new(), &[], true).is_err());
    }
}
