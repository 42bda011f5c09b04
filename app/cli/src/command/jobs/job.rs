//! One job, and the origins of its values.

use crate::config::faults::{Fault, Origins};
use clap::ArgMatches;
use clap::parser::ValueSource;
use std::sync::Arc;

/// Keys of a job that are no options.
pub(crate) const PLACES: &[&str] = &["name", "url", "folder"];

/// Options with secrets that are sent to a Source.
pub(crate) const SECRETS: [&str; 5] =
    ["user", "password_file", "password_command", "token_file", "token_command"];
/// Keys that begin a login.
const LOGINS: [&str; 3] = ["user", "token_file", "token_command"];

/// One `[[mirror]]` of a configuration file.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(super) table: toml::Table,
    /// Where it is in the file.
    pub(super) path: String,
    /// Faults of its keys.
    pub(crate) own_faults: Vec<Fault>,
    pub(super) origins: Arc<Origins>,
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

impl Job {
    /// The key of the job in the line of a fault.
    pub(crate) fn key_of(&self, fault: &Fault) -> Option<String> {
        let is_there = |key: &&String| self.origins.is_at(&format!("{}.{key}", self.path), fault);
        self.table.keys().find(is_there).cloned()
    }

    /// The job without a key, and without the others that need it.
    pub(crate) fn without(mut self, key: &str) -> Self {
        let needing: &[&str] = match key {
            "password_file" | "password_command" => &["user"],
            "client_cert" => &["client_key"],
            "sign_agent" => &["sign_key"],
            "sign_key" => &["sign_agent"],
            "callback_listen" => &["callback_url"],
            key if key.starts_with("xmpp") => {
                &["xmpp", "xmpp_jid", "xmpp_password_file", "xmpp_password_command", "xmpp_server"]
            }
            _ => &[],
        };
        self.table.retain(|other, _| other != key && !needing.contains(&other));
        self
    }

    /// Whether the file has the job's login, which is for its Source: one of the environment can be for
    /// another.
    pub(crate) fn has_own_login(&self, given: &ArgMatches) -> bool {
        LOGINS.iter().any(|key| self.table.contains_key(*key))
            && SECRETS.iter().all(|id| given.value_source(id) != Some(ValueSource::CommandLine))
    }

    /// Where an option comes from that replaces the one of the file: a flag or the environment.
    pub(super) fn higher_source(&self, id: &str, given: &ArgMatches) -> Option<Origin> {
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
}
