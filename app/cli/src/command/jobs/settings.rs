//! The settings of a job and their origins.

use super::job::{Job, Origin, PLACES};
use super::options::{is_flag, options};
use crate::program::errors::UsageError;
use crate::values::hidden_logins::hidden_value;
use anyhow::Result;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Command};

/// One setting that holds.
#[derive(Debug)]
pub(crate) struct Setting {
    pub(crate) key: String,
    /// `None`: it is not set and has no default.
    pub(crate) value: Option<toml::Value>,
    pub(crate) origin: Origin,
}

impl Job {
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
