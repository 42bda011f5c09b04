//! The configuration file as it is written: its tables, and reading it.

use super::slug::slug_of;
use crate::errors::UsageError;
use crate::faults::Origins;
use anyhow::{Result, bail};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// The configuration file of `abreast serve`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// Address to listen on, `host:port`. Default `127.0.0.1:8080`.
    pub(crate) listen: Option<String>,
    /// Public base URL of everything published; every URL in documents starts with it.
    /// Default: `http://` and the listen address.
    pub(crate) base_url: Option<String>,
    /// Folder of the store. Default: `.abreast` in the published folder, if there is only one.
    pub(crate) data: Option<PathBuf>,
    /// Proxies whose `X-Forwarded-For` is believed: addresses and networks. Default: none.
    pub(crate) trusted_proxies: Option<Vec<String>>,
    /// Whether a proxy leaves the path of `base_url` in requests. Default false: it removes it.
    pub(crate) strip_prefix: Option<bool>,
    /// The API.
    pub(crate) api: Option<crate::api::ApiFile>,
    /// The hub.
    pub(crate) hub: Option<crate::push::HubFile>,
    /// Notifications.
    pub(crate) notify: Option<crate::push::NotifyFile>,
    /// The account that publishes change sets over XMPP.
    pub(crate) xmpp: Option<crate::xmpp::XmppFile>,
    /// The mirrors that `abreast sync` keeps; `jobs.rs` reads them.
    #[serde(default)]
    pub(crate) mirror: Vec<toml::Table>,
    /// The sets to publish.
    #[serde(default)]
    pub(crate) set: Vec<SetFile>,
    /// The line of each key in the file, and its errors.
    #[serde(skip)]
    pub(crate) origins: Origins,
}

/// One `[[set]]` of the configuration file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetFile {
    /// Name in URLs: small letters, digits, `.`, `_`, `-`. Default: made from the folder's name.
    pub(crate) name: Option<String>,
    /// Title for people. Default: the name.
    pub(crate) title: Option<String>,
    /// Description of the set for people: a few sentences.
    pub(crate) description: Option<String>,
    /// Terms of use: the address of a licence, or its name.
    pub(crate) licence: Option<String>,
    /// Whom to ask: a mail address, or that of a page.
    pub(crate) contact: Option<String>,
    /// The origin of the resources: `folder` (default), `records` of resources that live elsewhere,
    /// which come through the API, `rdf`: entities described in RDF, or `sparql`: entities described
    /// in an endpoint.
    pub(crate) origin: Option<String>,
    /// The folder to publish.
    #[serde(default)]
    pub(crate) folder: PathBuf,
    /// Of `origin = "rdf"`: the beginning of the IRIs of the entities, which their addresses here
    /// leave out.
    pub(crate) namespace: Option<String>,
    /// Of `origin = "rdf"` and `"sparql"`: leave out statements that are not valid, in place of reading
    /// nothing.
    #[serde(default)]
    pub(crate) leave_out_invalid: bool,
    /// Of `origin = "rdf"`: contexts of JSON-LD that files name, each as `URL=FILE`; none is fetched.
    #[serde(default)]
    pub(crate) context: Vec<String>,
    /// Of `origin = "rdf"` and `"sparql"`: the beginning of the IRIs of blank nodes that belong to
    /// several entities or to none. Default: they get none.
    pub(crate) skolemize: Option<String>,
    /// Of `origin = "rdf"`: relative IRIs in a file are resolved against this and the file's path in
    /// the folder. Default: relative IRIs are errors.
    pub(crate) base: Option<String>,
    /// Of `origin = "rdf"`: the named graphs to read; `default` is the default graph. Default: all.
    #[serde(default)]
    pub(crate) graphs: Vec<String>,
    /// Of `origin = "sparql"`: the endpoint.
    pub(crate) endpoint: Option<super::endpoint::EndpointFile>,
    /// The older spelling of `origin = "records"`, which is still read.
    pub(crate) records: Option<bool>,
    /// Rules for links of resources.
    #[serde(default)]
    pub(crate) links: Vec<crate::api::RuleFile>,
    /// Categories of files, by their paths.
    #[serde(default)]
    pub(crate) categories: Vec<super::resourcesync_0_1::CategoryFile>,
    /// What the documents of ResourceSync 0.1 state beyond the resources.
    pub(crate) resourcesync_0_1: Option<super::resourcesync_0_1::OptionsFile>,
    /// Links of the set as a whole.
    #[serde(default)]
    pub(crate) set_links: Vec<crate::api::SetLinkFile>,
    /// Digests to compute: `md5` (default), `sha-256` or `both`.
    pub(crate) digests: Option<String>,
    /// How long a path must be quiet before it is read, such as `200ms` (default).
    pub(crate) debounce: Option<String>,
    /// Wait also for files whose writer has finished, or that were moved into place. Default false.
    pub(crate) wait_for_quiet: Option<bool>,
    /// How long the deletion of most of a set waits for a confirmation, such as `7d` (default);
    /// `0s` for not at all.
    pub(crate) hold_deletions: Option<String>,
    /// Time between full scans, such as `1h` (default); `0s` for none but the first.
    pub(crate) rescan: Option<String>,
    /// Time between scans that read every file, even if it seems unchanged; `0s` (default) for
    /// none.
    pub(crate) reread: Option<String>,
    /// Use the system's file events. Default true; false on network file systems.
    pub(crate) events: Option<bool>,
    /// Follow relative symbolic links to published files within the folder. Default false.
    pub(crate) follow_links: Option<bool>,
    /// Publish what matches one of these patterns, and nothing else but what other rules take.
    #[serde(default)]
    pub(crate) include: Vec<String>,
    /// Do not publish what matches one of these patterns, as in `.gitignore`.
    #[serde(default)]
    pub(crate) exclude: Vec<String>,
    /// Rules, `+ PATTERN` or `- PATTERN`: the first that matches decides, after `include` and
    /// `exclude`.
    #[serde(default)]
    pub(crate) filter: Vec<String>,
    /// Files with such rules, one a line.
    #[serde(default)]
    pub(crate) filter_from: Vec<PathBuf>,
    /// Keep old Resource Lists, and list old Change Lists. Default no.
    pub(crate) archives: Option<ArchivesFile>,
    /// Changes in one Change List, 1 to 50000; default 5000.
    pub(crate) changes_per_list: Option<u32>,
    /// Record what the set has at first as changes, so that its change feeds alone are the whole
    /// history. Default false: a list of what there was is the beginning. Fixed once the set exists.
    pub(crate) initial_changes: Option<bool>,
    /// The type of files in change feeds, such as `Manifest`. Default: by their media types.
    pub(crate) object_type: Option<String>,
    /// Of sets of entities: the IRIs of the predicates of labels, or their names with a usual prefix,
    /// such as `skos:prefLabel`, for the feed of changes of labels. Default: the common ones.
    #[serde(default)]
    pub(crate) label_predicates: Vec<String>,
    /// The node that its change sets are published to, where `[xmpp]` names an account. Default: the
    /// set's name.
    pub(crate) xmpp_node: Option<String>,
    /// Dumps: packages of all resources, and of changes. Default none.
    pub(crate) dumps: Option<crate::dumps::DumpsFile>,
    /// Earlier versions to keep: a number, or bounds on count, age and size. Default none.
    pub(crate) versions: Option<crate::versions::VersionsFile>,
}

/// `archives` of a `[[set]]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArchivesFile {
    /// Time between two archived Resource Lists, such as `7d`.
    pub(crate) every: String,
    /// How many of them are kept, 1 to 10000; default 52.
    pub(crate) keep: Option<u32>,
}

/// Whether a configuration file is the one that the environment names.
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

    /// The folder of the store: the one named, or `.abreast` in the published folder if there is
    /// only one.
    pub(crate) fn store_folder(&self) -> Option<PathBuf> {
        match (&self.data, self.set.as_slice()) {
            (Some(data), _) => Some(data.clone()),
            (None, [only]) if !only.is_without_folder() => Some(only.folder.join(".abreast")),
            (None, _) => None,
        }
    }

    /// Flags and environment variables take precedence over the file.
    pub(crate) fn given(
        &mut self,
        listen: Option<&String>,
        base_url: Option<&String>,
        data: Option<&PathBuf>,
        trusted_proxies: &[String],
    ) {
        if listen.is_some() {
            self.listen = listen.cloned();
            self.origins.forget("listen");
        }
        if base_url.is_some() {
            self.base_url = base_url.cloned();
            self.origins.forget("base_url");
        }
        if data.is_some() {
            self.data = data.cloned();
            self.origins.forget("data");
        }
        // An empty variable is none.
        if trusted_proxies.iter().any(|text| !text.trim().is_empty()) {
            self.trusted_proxies = Some(trusted_proxies.to_vec());
            self.origins.forget("trusted_proxies");
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
    use crate::config::{FILE_KEYS, SET_KEYS};

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
        file.given(None, None, None, &[String::new()]);
        assert_eq!(file.trusted_proxies.as_deref(), Some(&["127.0.0.1".to_owned()][..]));
        file.given(None, None, None, &["::1".to_owned(), " 10.0.0.0/8".to_owned(), String::new()]);
        let mut problems = Vec::new();
        let found = crate::config::check_proxies(file.trusted_proxies.as_deref(), &mut problems);
        assert_eq!(Ok(found), abreast_server::TrustedProxies::parse(["::1", "10.0.0.0/8"]));
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn the_example_configuration_shows_every_key() {
        let example = include_str!("../../../../abreast.example.toml");
        let uncommented: String = example
            .lines()
            .map(|line| {
                line.strip_prefix("#")
                    .filter(|rest| rest.contains(" = ") && !rest.starts_with(' '))
                    .unwrap_or(line)
            })
            .fold(String::new(), |text, line| text + line + "\n");
        let file = File::parse(&uncommented).unwrap();
        assert!(file.listen.is_some() && file.base_url.is_some() && file.data.is_some());
        for key in FILE_KEYS.iter().chain(SET_KEYS) {
            assert!(uncommented.contains(key), "{key}");
        }
        let tables: toml::Table = toml::from_str(&uncommented).unwrap();
        for (name, known) in [
            ("hub", crate::push::HUB_KEYS),
            ("notify", crate::push::NOTIFY_KEYS),
            ("xmpp", crate::xmpp::XMPP_KEYS),
        ] {
            let table = tables[name].as_table().unwrap();
            assert!(known.iter().all(|key| table.contains_key(*key)), "{name}");
        }
        assert_eq!(file.set.len(), 4);
    }
}
