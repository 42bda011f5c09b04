//! Which mirrors does a configuration file ask for? Jobs with the options of `sync`, and where each value comes from.
//!
//! A job is turned into a command line, so it can say whatever that can, and is checked the same way. What is given by
//! flag or in the environment comes first and is left out of it.

use crate::config::Unusable;
use anyhow::{Context as _, Result, bail};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::Path;

/// Most jobs of one file.
const JOBS_MAX: usize = 1_000;
/// Keys of a job that are no options.
const PLACES: &[&str] = &["name", "url", "folder"];
/// Options that say which jobs are meant, or how this one run is told: not for files.
const NOT_FOR_FILES: &[&str] =
    &["places", "config", "all", "json", "quiet", "verbose", "dry_run", "test_filter", "help", "version"];

/// One `[[mirror]]` of a configuration file.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) name: String,
    table: toml::Table,
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

/// What one job's options are, as text for people.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) key: String,
    pub(crate) value: String,
    pub(crate) origin: Origin,
}

/// The command line that jobs are turned into.
pub(crate) fn command<A: Args>() -> Command {
    A::augment_args(Command::new("abreast").disable_version_flag(true))
}

fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| arg.get_long().is_some() && !NOT_FOR_FILES.contains(&arg.get_id().as_str()))
}

/// The jobs of a configuration file.
///
/// # Errors
/// Each unknown key with its line and the nearest known one; a job without `url` or `folder`; two of one name.
pub(crate) fn read(path: &Path, command: &Command) -> Result<Vec<Job>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
    warn_of_secrets(path, &text);
    let file = crate::config::File::parse(&text)
        .with_context(|| format!("cannot use the configuration `{}`", path.display()))?;
    parse(&text, file.mirror, command).with_context(|| format!("cannot use the configuration `{}`", path.display()))
}

fn parse(text: &str, tables: Vec<toml::Table>, command: &Command) -> Result<Vec<Job>> {
    let mut problems = String::new();
    let known: Vec<&str> = PLACES.iter().copied().chain(options(command).map(|arg| arg.get_id().as_str())).collect();
    let mut jobs: Vec<Job> = Vec::new();
    for (number, table) in tables.into_iter().enumerate() {
        for key in table.keys().filter(|key| !known.contains(&key.as_str())) {
            let _ = writeln!(problems, "{}", crate::config::unknown_key(text, key, &known, " in `[[mirror]]`"));
        }
        let word = |key: &str| table.get(key).and_then(toml::Value::as_str);
        for key in ["url", "folder"] {
            if word(key).is_none_or(str::is_empty) {
                let _ = writeln!(problems, "`[[mirror]]` number {}: `{key}` is missing", number + 1);
            }
        }
        let folder = word("folder").map(Path::new);
        let of_folder = || folder.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
        let name = word("name").map(str::to_owned).or_else(of_folder).unwrap_or_default();
        if jobs.iter().any(|job| job.name == name) {
            let _ = writeln!(problems, "two jobs are called `{name}`: give each `[[mirror]]` a `name` of its own");
        }
        jobs.push(Job { name, table });
    }
    if jobs.len() > JOBS_MAX {
        let _ = writeln!(problems, "more than {JOBS_MAX} jobs");
    }
    if !problems.is_empty() {
        bail!(Unusable(problems.trim_end().to_owned()));
    }
    Ok(jobs)
}

/// Those of these names, in this order; all of them when none is named and `all` is so.
///
/// # Errors
/// No such job, or no choice between several.
pub(crate) fn choose(jobs: Vec<Job>, names: &[String], all: bool) -> Result<Vec<Job>> {
    let listed = jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>().join(", ");
    if jobs.is_empty() {
        bail!(Unusable("the configuration has no `[[mirror]]`".to_owned()));
    }
    if all {
        if !names.is_empty() {
            bail!(Unusable("give names of jobs or `--all`, not both".to_owned()));
        }
        return Ok(jobs);
    }
    if names.is_empty() && jobs.len() > 1 {
        bail!(Unusable(format!("which job? (help: name some of {listed}, or use `--all`)")));
    }
    if names.is_empty() {
        return Ok(jobs);
    }
    let find = |name: &String| match jobs.iter().find(|job| job.name == *name) {
        Some(job) => Ok(job.clone()),
        None => bail!(Unusable(format!("there is no job `{name}`; there are {listed}"))),
    };
    names.iter().map(find).collect()
}

impl Job {
    /// The job's options with what was given by flag and in the environment.
    ///
    /// # Errors
    /// A value of the wrong type or form, with its key.
    pub(crate) fn matches(&self, command: &Command, given: &ArgMatches) -> Result<ArgMatches> {
        let place = |key: &str| self.table.get(key).and_then(toml::Value::as_str).unwrap_or_default();
        // The user's own come first, so that of rules the user's are looked at before the file's.
        let mut flags: Vec<(usize, OsString)> = Vec::new();
        for arg in options(command).chain(command.get_arguments().filter(|arg| is_how_told(arg))) {
            if given.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine) {
                flags_of(arg, given, &mut flags);
            }
        }
        flags.sort_by_key(|(index, _)| *index);
        let mut words: Vec<OsString> = vec!["abreast".into()];
        words.extend(flags.into_iter().map(|(_, word)| word));
        for arg in options(command) {
            let id = arg.get_id().as_str();
            let is_given = matches!(given.value_source(id), Some(ValueSource::CommandLine | ValueSource::EnvVariable));
            if let Some(value) = self.table.get(id).filter(|_| !is_given) {
                self.words_of(arg, value, &mut words)?;
            }
        }
        words.extend(["--".into(), place("url").into(), place("folder").into()]);
        command
            .clone()
            .try_get_matches_from(words)
            .map_err(|error| Unusable(format!("job `{}`: {}", self.name, told_shortly(&error))).into())
    }

    /// As options of a command.
    ///
    /// # Errors
    /// As [`Job::matches`].
    pub(crate) fn args<A: Args + FromArgMatches>(&self, command: &Command, given: &ArgMatches) -> Result<A> {
        A::from_arg_matches(&self.matches(command, given)?)
            .map_err(|error| Unusable(format!("job `{}`: {}", self.name, told_shortly(&error))).into())
    }

    fn words_of(&self, arg: &Arg, value: &toml::Value, words: &mut Vec<OsString>) -> Result<()> {
        let (key, long) = (arg.get_id().as_str(), arg.get_long().unwrap_or_default());
        let wrong = |expected: &str| Unusable(format!("job `{}`: `{key}` is {value}; expected {expected}", self.name));
        if is_flag(arg) {
            match value.as_bool() {
                Some(true) => words.push(format!("--{long}").into()),
                Some(false) => {}
                None => bail!(wrong("true or false")),
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
            toml::Value::Array(values) if matches!(arg.get_action(), ArgAction::Append) => values.as_slice(),
            value => std::slice::from_ref(value),
        };
        for value in values {
            let Some(text) = one(value) else { bail!(wrong("a text or a number")) };
            words.push(format!("--{long}={text}").into());
        }
        Ok(())
    }

    /// Every setting that is not its default, and with `all` the others, with where it comes from.
    ///
    /// # Errors
    /// As [`Job::matches`].
    pub(crate) fn settings(&self, command: &Command, given: &ArgMatches, all: bool) -> Result<Vec<Setting>> {
        let matches = self.matches(command, given)?;
        let mut settings = Vec::new();
        for key in PLACES {
            let value = if *key == "name" {
                Some(self.name.as_str())
            } else {
                self.table.get(*key).and_then(toml::Value::as_str)
            };
            let value = value.unwrap_or_default();
            settings.push(Setting {
                key: (*key).to_owned(),
                value: format!("\"{}\"", shown(value)),
                origin: Origin::File,
            });
        }
        for arg in options(command) {
            let id = arg.get_id().as_str();
            let origin = match given.value_source(id) {
                Some(ValueSource::CommandLine) => Origin::Flag,
                Some(ValueSource::EnvVariable) => Origin::Environment,
                _ if self.table.contains_key(id) => Origin::File,
                _ => match matches.value_source(id) {
                    Some(ValueSource::EnvVariable) => Origin::Environment,
                    _ => Origin::Default,
                },
            };
            if origin == Origin::Default && !all {
                continue;
            }
            let value = if is_flag(arg) {
                matches.get_flag(id).to_string()
            } else {
                let raw = matches.get_raw(id).into_iter().flatten();
                let texts: Vec<_> = raw.map(|text| format!("\"{}\"", shown(&text.to_string_lossy()))).collect();
                match (arg.get_action(), texts.as_slice()) {
                    (_, []) => "(none)".to_owned(),
                    (ArgAction::Append, texts) => format!("[{}]", texts.join(", ")),
                    (_, texts) => texts.join(" "),
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

/// The first line of clap's message, which says what is wrong; the rest is about a command line nobody typed.
fn told_shortly(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines =
        text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let told = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
    told.strip_prefix("error: ").unwrap_or(&told).to_owned()
}

/// A value without the login that a URL in it may have.
pub(crate) fn shown(value: &str) -> String {
    match url::Url::parse(value) {
        Ok(mut url) if !url.username().is_empty() || url.password().is_some() => {
            let _ = url.set_username("hidden");
            let _ = url.set_password(None);
            url.into()
        }
        _ => abreast_webtypes::visible(value).into_owned(),
    }
}

/// Others had better not read a file with passwords in URLs.
fn warn_of_secrets(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    let has_login = text
        .split('"')
        .any(|part| part.contains("://") && url::Url::parse(part).is_ok_and(|url| url.password().is_some()));
    let mode = std::fs::metadata(path).map_or(0, |about| about.permissions().mode());
    if has_login && mode & 0o077 != 0 {
        tracing::warn!("`{}` has a password in it and can be read by other users: chmod 600 it", path.display());
    }
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
        let file = crate::config::File::parse(text)?;
        parse(text, file.mirror, &command::<SyncArgs>())
    }

    fn given(words: &[&str]) -> ArgMatches {
        let words = ["abreast", "--all", "--config=x"].iter().chain(words);
        command::<SyncArgs>().try_get_matches_from(words).unwrap()
    }

    #[test]
    fn a_job_has_the_options_of_sync_and_flags_come_first() {
        let jobs = jobs(FILE).unwrap();
        assert_eq!(jobs.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), ["papers", "other"]);
        let command = command::<SyncArgs>();
        let args: SyncArgs = jobs[0].args(&command, &given(&[])).unwrap();
        assert_eq!(args.mirror.places, ["https://papers.example.org/", "/srv/papers"]);
        assert!(args.follow && !args.immutable && args.mirror.connections == 3);
        assert!(format!("{:?}", args.mirror.filter).contains("+ keep.tmp"));
        let args: SyncArgs = jobs[0].args(&command, &given(&["--connections", "7", "--json", "--exclude=a"])).unwrap();
        assert!(args.mirror.connections == 7 && args.mirror.json);
        let rules = format!("{:?}", args.mirror.filter);
        assert!(rules.find("- a") < rules.find("+ keep.tmp"), "the user's rules are looked at first: {rules}");
        let settings = jobs[0].settings(&command, &given(&["--connections=7"]), true).unwrap();
        let of = |key: &str| {
            let setting = settings.iter().find(|setting| setting.key == key).unwrap();
            (setting.value.as_str(), setting.origin)
        };
        assert_eq!(of("connections"), ("\"7\"", Origin::Flag));
        assert_eq!(of("max_delete"), ("\"5%\"", Origin::File));
        assert_eq!(of("retries"), ("\"5\"", Origin::Default));
        assert_eq!(of("filter"), (r#"["+ keep.tmp", "- *.tmp"]"#, Origin::File));
        let shown = format!("{:?}", jobs[1].settings(&command, &given(&[]), false).unwrap());
        assert!(!shown.contains("hush"), "{shown}");
    }

    #[test]
    fn what_a_job_cannot_say_is_refused_with_the_nearest_name() {
        let head = "[[mirror]]\nurl = \"http://h/\"\nfolder = \"f\"\n";
        for (more, part) in [
            ("conections = 3", "line 4: unknown key `conections` in `[[mirror]]`; did you mean `connections`?"),
            ("dry_run = true", "unknown key `dry_run`"),
            ("[[mirror]]\nurl = \"http://h/\"", "`folder` is missing"),
            ("[[mirror]]\nurl = \"http://h/\"\nfolder = \"x/f\"", "two jobs are called `f`"),
        ] {
            let error = jobs(&format!("{head}{more}\n")).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        for (more, part) in [
            ("connections = \"many\"", "many"),
            ("follow = \"yes\"", "true or false"),
            ("interval = [1]", "expected a text or a number"),
            ("filter = [\"nonsense\"]", "nonsense"),
            ("follow = true\nmax_bytes = \"1G\"", "max-bytes"),
        ] {
            let jobs = jobs(&format!("{head}{more}\n")).unwrap();
            let error = jobs[0].args::<SyncArgs>(&command::<SyncArgs>(), &given(&[])).unwrap_err().to_string();
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
