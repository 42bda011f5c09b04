//! A job as a command line: its options, with the options from flags and the environment in front.

use super::job::Job;
use super::options::{is_flag, is_how_told, options};
use crate::program::errors::UsageError;
use crate::values::hidden_logins::shown;
use anyhow::Result;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use std::ffi::OsString;

/// Why a job's options cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum JobError {
    #[error("{0}")]
    Value(String),
    #[error("{}", shortly(.0))]
    Clap(#[from] clap::Error),
}

impl Job {
    /// The job's options with those given by flag and in the environment.
    pub(super) fn matches(
        &self,
        command: &Command,
        given: &ArgMatches,
    ) -> Result<ArgMatches, JobError> {
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
            // Alternatives of the higher source replace the ones of the file.
            let is_replaced = || {
                crate::values::alternatives::alternatives(&command, id)
                    .iter()
                    .any(|other| is_given(other))
            };
            if let Some(value) = self.table.get(id).filter(|_| !is_given(id) && !is_replaced()) {
                Self::words_of(arg, value, &mut words)?;
            }
        }
        words.extend(["--".into(), place("url").into(), place("folder").into()]);
        let mut replaced = crate::values::alternatives::replaced_variables(&command, given);
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

    pub(super) fn try_args<A: Args + FromArgMatches>(
        &self,
        command: &Command,
        given: &ArgMatches,
    ) -> Result<A, JobError> {
        Ok(A::from_arg_matches(&self.matches(command, given)?)?)
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
pub(super) fn shortly(error: &clap::Error) -> String {
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
