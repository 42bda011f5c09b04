//! Faults in the options of a job, each with the line and key in the file.

use super::command_line::{JobError, shortly};
use super::job::{Job, PLACES};
use super::options::options;
use crate::config::faults::Fault;
use crate::program::errors::{ExitCodeError, SecretError};
use anyhow::Result;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

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

    /// An error of the job's options, with the line and the key in the file.
    pub(crate) fn refuse(&self, command: &Command, error: anyhow::Error) -> anyhow::Error {
        let code = crate::program::exit::code(&error);
        match self.fault_of(command, &error) {
            (Some(fault), _) => ExitCodeError { message: fault.to_string(), code }.into(),
            (None, _) => error,
        }
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
            return Err(crate::config::faults::refused(faults));
        }
        self.unchecked_args(command, given)
    }

    /// The option of the job whose flag a text contains.
    fn option_in<'c>(&self, command: &'c Command, text: &str) -> Option<&'c Arg> {
        let is_named = |arg: &&Arg| {
            let long = format!("--{}", arg.get_long().unwrap_or_default());
            text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).any(|word| word == long)
        };
        options(command).filter(is_named).find(|arg| self.table.contains_key(arg.get_id().as_str()))
    }

    /// Whether an option of the job cannot be alone.
    fn needs_other(&self, command: &Command, arg: &Arg) -> bool {
        let mut without = self.clone();
        let empty = command.clone().try_get_matches_from(["abreast", "--", "", ""]);
        let is_set = without.table.remove(arg.get_id().as_str()).is_some();
        is_set && empty.is_ok_and(|empty| without.matches(command, &empty).is_ok())
    }
}

/// The fault is none of the value itself.
fn is_about_others(error: &clap::Error) -> bool {
    use clap::error::ErrorKind::{ArgumentConflict, MissingRequiredArgument};
    matches!(error.kind(), ArgumentConflict | MissingRequiredArgument)
}
