//! The sets and folders of a configuration file.

use super::database::database_url;
use super::slug::slug_of;
use crate::config::settings::{File, SetFile};
use crate::program::errors::UsageError;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// Whether the environment selects this configuration file.
pub(crate) fn is_of_environment(path: &Path) -> bool {
    std::env::var_os("ABREAST_CONFIG").is_some_and(|named| Path::new(&named) == path)
}

impl File {
    /// The folder of a set.
    ///
    /// # Errors
    /// The set does not exist, or has no folder.
    pub(crate) fn folder_of(&self, name: &str) -> Result<PathBuf> {
        let is_meant = |set: &&SetFile| {
            set.name.as_ref().map_or_else(|| slug_of(&set.folder) == name, |known| known == name)
        };
        match self.set.iter().find(is_meant) {
            None => bail!(UsageError(format!("there is no set `{name}`"))),
            Some(set) if set.is_records() || set.is_rdf() => {
                let kind = if set.is_rdf() { "entities" } else { "records" };
                bail!(UsageError(format!("the set `{name}` has no files: it is a set of {kind}")))
            }
            Some(set) => Ok(set.folder.clone()),
        }
    }

    /// The names of the sets.
    pub(crate) fn set_names(&self) -> Vec<String> {
        let name = |set: &SetFile| set.name.clone().unwrap_or_else(|| slug_of(&set.folder));
        self.set.iter().map(name).collect()
    }

    /// The folder of the store, or of a node: the one named, or `.abreast` in the published folder if there is
    /// only one.
    pub(crate) fn store_folder(&self) -> Option<PathBuf> {
        if self.data.as_deref().is_some_and(|data| database_url(data).is_some()) {
            return self.scratch.clone();
        }
        match (&self.data, self.set.as_slice()) {
            (Some(data), _) => Some(data.clone()),
            (None, [only]) if !only.is_without_folder() => Some(only.folder.join(".abreast")),
            (None, _) => None,
        }
    }

    /// Whether the store is in a folder, not in a database.
    pub(crate) fn is_in_folder(&self) -> bool {
        self.data.as_deref().is_none_or(|data| database_url(data).is_none())
    }

    /// The folder of the store in a flag or the environment takes precedence over the file.
    pub(crate) fn store_in(&mut self, data: Option<&PathBuf>) {
        if data.is_some() {
            self.data = data.cloned();
            self.origins.forget("data");
        }
    }
}

impl SetFile {
    /// Whether its resources are records, in either spelling.
    pub(crate) fn is_records(&self) -> bool {
        self.origin.as_deref().map_or(self.records == Some(true), |origin| origin == "records")
    }

    /// Whether its resources are entities.
    pub(crate) fn is_rdf(&self) -> bool {
        matches!(self.origin.as_deref(), Some("rdf" | "sparql"))
    }

    /// Whether its entities are in an endpoint.
    pub(crate) fn is_sparql(&self) -> bool {
        self.origin.as_deref() == Some("sparql")
    }

    /// Whether no folder is published.
    fn is_without_folder(&self) -> bool {
        self.is_records() || (self.is_rdf() && self.folder.as_os_str().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::listen::{ListenArgs, ListenConfig};
    use clap::{Args as _, FromArgMatches as _};

    #[test]
    fn unknown_keys_are_refused_with_line_and_nearest_name() {
        let error =
            File::parse("listen = \"127.0.0.1:1\"\nbase_ulr = \"x\"\n[[set]]\nfoldr = \"a\"\n")
                .unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 2: unknown key `base_ulr` (help: did you mean `base_url`?)\n\
             line 4: unknown key `foldr` in `[[set]]` (help: did you mean `folder`?)"
        );
    }

    #[test]
    fn an_empty_list_of_proxies_replaces_none() {
        let mut file = File::parse("trusted_proxies = [\"127.0.0.1\"]\n").unwrap();
        let of = |proxies: &[&str]| {
            let given = proxies.iter().map(|proxy| format!("--trusted-proxy={proxy}"));
            let line = std::iter::once("serve".to_owned()).chain(given);
            let command = ListenArgs::augment_args(clap::Command::new("serve"));
            ListenArgs::from_arg_matches(&command.get_matches_from(line)).unwrap()
        };
        of(&[""]).over(&mut file);
        assert_eq!(file.trusted_proxies.as_deref(), Some(&["127.0.0.1".to_owned()][..]));
        of(&["::1", " 10.0.0.0/8", ""]).over(&mut file);
        let mut problems = Vec::new();
        let found = ListenConfig::check(&file, &mut problems).trusted_proxies;
        assert_eq!(Ok(found), abreast_server::TrustedProxies::parse(["::1", "10.0.0.0/8"]));
        assert!(problems.is_empty(), "{problems:?}");
    }
}
