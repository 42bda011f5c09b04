//! The jobs of a configuration file, and the choice between them.

use super::job::{Job, PLACES};
use super::options::{self, options};
use super::places::overlapping;
use crate::config::File;
use crate::config::faults::Fault;
use crate::program::errors::UsageError;
use crate::values::hidden_logins::{shown, warn_of_secrets};
use anyhow::{Context as _, Result, bail};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::path::Path;
use std::sync::Arc;

/// Most jobs of one file.
const JOBS_MAX: usize = 1_000;

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

pub(super) fn of_file<A: Args + FromArgMatches>(
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
        let of_sync = options::command::<crate::config::sync_args::SyncArgs>();
        let nothing = options::nothing_given(&of_sync)?;
        let of_files = |job| problems(job, &of_sync, &nothing, file);
        faults.extend(jobs.iter().flat_map(of_files));
        return Err(crate::config::faults::refused(faults));
    }
    Ok(jobs)
}

/// The jobs of a file, and the faults that concern several jobs; [`Job::faults`] finds the faults of one job.
pub(crate) fn find(file: &File, command: &Command) -> (Vec<Job>, Vec<Fault>) {
    // `audit` takes those of its own from a job, and leaves the others alone.
    let of_sync = options::command::<crate::config::sync_args::SyncArgs>();
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
            let (text, nearest) = crate::config::faults::unknown_key(&key, &known, "`[[mirror]]`");
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
            && let Err(expected) = crate::values::address::http_url(url)
        {
            let help = crate::values::address::with_scheme(url)
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
