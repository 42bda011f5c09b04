//! Configuration of `serve`: file, then environment, then flags; checked whole, with all faults
//! reported at once.

pub(crate) mod access;
pub(crate) mod admin;
pub(crate) mod api;
mod clients;
pub(crate) mod database;
pub(crate) mod dumps;
mod endpoint;
pub(crate) mod faults;
mod file;
pub(crate) mod filter_rules;
pub(crate) mod follow_args;
mod institution;
pub(crate) mod listen;
pub(crate) mod on_change_args;
pub(crate) mod publish_args;
pub(crate) mod push;
mod read;
mod resourcesync_0_1;
pub(crate) mod rule_args;
pub(crate) mod set;
pub(crate) mod settings;
mod slug;
pub(crate) mod source_args;
mod store_folder;
pub(crate) mod store_place;
pub(crate) mod sync_args;
pub(crate) mod target;
pub(crate) mod versions;
pub(crate) mod webhook;
mod webhook_body;
pub(crate) mod xmpp;

pub(crate) use file::is_of_environment;
pub(crate) use listen::{ListenConfig, address_of, check_address};
pub(crate) use read::read;
pub(crate) use set::{
    Descriptions, FolderOrigin, Origin, RdfOrigin, SetConfig, check_base, check_graph, check_iri,
};
pub(crate) use slug::slug_of;

use crate::config::database::DatabaseConfig;
use crate::config::faults::Fault;
pub(crate) use crate::config::settings::{File, SetFile};
use abreast_core::NodeRoles;
use anyhow::Result;
use set::check_set;
use std::collections::HashSet;
use std::path::PathBuf;
use store_folder::{misplaced_store, published_file};

/// The configuration of a Source, checked.
#[derive(Clone, Debug)]
pub(crate) struct ServeConfig {
    pub(crate) listen: ListenConfig,
    pub(crate) data: PathBuf,
    /// The database that several nodes share, if there is one; `data` is then the folder of temporary files.
    pub(crate) database: Option<DatabaseConfig>,
    /// The folder of the store in the file, if another one is used.
    pub(crate) data_in_file: Option<PathBuf>,
    /// The configuration file.
    pub(crate) file: Option<PathBuf>,
    /// The store may be new, even if another one has the history.
    pub(crate) new_store: bool,
    /// The address for operators.
    pub(crate) admin: Option<admin::AdminConfig>,
    /// Whether there are pages at `/admin`.
    pub(crate) admin_pages: bool,
    pub(crate) institution: abreast_source::publish::Institution,
    pub(crate) api: crate::config::api::ApiConfig,
    pub(crate) push: crate::config::push::PushConfig,
    pub(crate) sets: Vec<SetConfig>,
    /// The files that are missing at the start were removed on purpose.
    pub(crate) confirm_deletions: bool,
    /// How scans, dumps and snapshots are shown.
    pub(crate) progress: crate::program::progress::ProgressArgs,
}

impl ServeConfig {
    /// Whether the contents of any set are kept: versions, or descriptions of entities.
    pub(crate) fn keeps_contents(&self) -> bool {
        let is_shared = self.database.is_some();
        let keeps = |set: &SetConfig| set.keeps_contents(is_shared);
        self.sets.iter().any(keeps)
    }

    /// The roles of this process; all if it shares no database.
    pub(crate) fn roles(&self) -> NodeRoles {
        self.database.as_ref().map(|database| database.roles).unwrap_or_default()
    }

    /// Checks everything, and reports all faults at once.
    ///
    /// # Errors
    /// Each fault with its key, and its line if it is in a file.
    pub(crate) fn check(file: File) -> Result<Self> {
        let (config, mut faults, [missing, _]) = Self::check_parts(file);
        faults.extend(missing);
        config.filter(|_| faults.is_empty()).ok_or_else(|| crate::config::faults::refused(faults))
    }

    /// Refuses a store in a database, for commands that open a folder.
    ///
    /// # Errors
    /// The store is in a database.
    pub(crate) fn in_folder(self, help: &str) -> Result<Self> {
        match &self.database {
            Some(_) => Err(database::refusal(help)),
            None => Ok(self),
        }
    }

    /// As [`ServeConfig::check`], for a server: folders that are missing stop no other set, and secrets that are
    /// missing stop none.
    ///
    /// # Errors
    /// Each fault; missing folders only where there is no other set.
    pub(crate) fn check_to_serve(file: File) -> Result<Self> {
        let (config, faults, [missing, _]) = Self::check_parts(file);
        match config {
            Some(config) if faults.is_empty() && config.has_set_besides(&missing) => Ok(config),
            _ => {
                let faults = faults.into_iter().chain(missing).collect();
                Err(crate::config::faults::refused(faults))
            }
        }
    }

    /// Whether a set can be published although these folders are missing. Another node may have them.
    fn has_set_besides(&self, missing: &[Fault]) -> bool {
        self.database.is_some() || missing.len() < self.sets.len()
    }

    /// As [`ServeConfig::check_to_serve`], with the faults one by one, those of secrets included, and the missing
    /// folders that a server waits for.
    pub(crate) fn check_all(file: File) -> (Vec<Fault>, Vec<Fault>) {
        let (config, mut faults, [folders, secrets]) = Self::check_parts(file);
        faults.extend(secrets);
        let stops_no_other = config.is_some_and(|config| config.has_set_besides(&folders));
        if faults.is_empty() && stops_no_other {
            return (faults, folders);
        }
        faults.extend(folders);
        (faults, Vec::new())
    }

    /// The configuration, unless nothing is to be published; its faults; the folders and the secrets that are missing.
    fn check_parts(mut file: File) -> (Option<Self>, Vec<Fault>, [Vec<Fault>; 2]) {
        let origins = std::mem::take(&mut file.origins);
        let mut faults = origins.faults().to_vec();
        let mut problems = Vec::new();
        let listen = ListenConfig::check(&file, &mut problems);
        let private = private_files(&file);
        let admin =
            admin::check(file.admin_listen.as_deref(), file.admin_token.as_deref(), &mut problems);
        if file.set.is_empty() {
            // Everything else that is missing is so for this reason.
            let help = if file.mirror.is_empty() {
                "name a folder, or add a `[[set]]` with `folder`"
            } else {
                "the file has mirrors only, which `abreast sync --config FILE` copies; to publish, add a `[[set]]` with `folder`"
            };
            faults.extend(
                origins.place("", vec![format!("`set`: nothing to publish (help: {help})")]),
            );
            return (None, faults, [Vec::new(), Vec::new()]);
        }
        if file.data.as_ref().is_some_and(|data| data.as_os_str().is_empty()) {
            problems
                .push("`data`: no folder is named (help: name one, or leave it out)".to_owned());
        }
        let database = DatabaseConfig::check(&file, &mut problems);
        let data = file.store_folder().unwrap_or_else(|| {
            if database.is_some() {
                return PathBuf::new();
            }
            let problem = "`data`: several sets, or one without a folder, need a folder for the store (help: --data DIR)";
            problems.push(problem.to_owned());
            PathBuf::new()
        });
        let institution = institution::check(file.institution, &mut problems);
        let api = crate::config::api::check(
            file.api,
            listen.address,
            file.base_url.as_deref(),
            database.is_none().then_some(&*data),
            &mut problems,
        );
        let mut push = crate::config::push::check(
            file.hub,
            file.notify,
            file.xmpp,
            listen.address,
            file.base_url.as_deref(),
            &mut problems,
        );
        faults.extend(origins.place("", problems));
        let mut webhook_check = webhook::WebhookCheck::new(push.options.private_callbacks);
        let mut slugs = HashSet::new();
        let mut sets: Vec<SetConfig> = Vec::new();
        let mut missing = [Vec::new(), Vec::new()];
        for (number, mut set) in file.set.into_iter().enumerate() {
            let mut problems = Vec::new();
            let mut unread = Vec::new();
            let webhooks = std::mem::take(&mut set.webhook);
            let webhooks = webhook_check.check(webhooks, &mut problems, &mut unread);
            let has_node = set.xmpp_node.is_some();
            let set = check_set(set, &mut slugs, &mut problems);
            if !webhooks.is_empty() {
                if push.notify.is_none() {
                    problems.push(
                        "`webhook`: notifications are switched off (help: leave out `notify.enabled`, and `hub.enabled` or \
                         name other hubs)"
                            .to_owned(),
                    );
                }
                push.webhooks.insert(set.slug.clone(), webhooks);
            }
            let wrong = match &push.xmpp {
                Some(xmpp) => match xmpp.node(&set.xmpp_node) {
                    Ok(node) => {
                        push.nodes.insert(set.slug.clone(), node);
                        None
                    }
                    // A service that is not an address is reported already.
                    Err(why) => xmpp.node("name").is_ok().then_some(why),
                },
                None if has_node => Some("there is no `[xmpp]` with an account".to_owned()),
                None => None,
            };
            problems.extend(wrong.map(|why| format!("`xmpp_node`: {why}")));
            if let Some(database) = &database {
                database.check_set(&set, &mut problems);
            }
            let twin = sets.iter().find(|other| other.xmpp_node == set.xmpp_node);
            if let Some(twin) = twin.filter(|_| push.xmpp.is_some()) {
                problems.push(format!(
                    "`xmpp_node`: `{}` is the node of the set `{}`, too (help: give each a node of its own)",
                    set.xmpp_node, twin.slug
                ));
            }
            // One that is missing is reported already.
            let folder_of = |set: &SetConfig| {
                let path = set.origin.folder().map(|folder| folder.path.clone());
                path.filter(|path| !path.as_os_str().is_empty())
            };
            let folder = folder_of(&set);
            let read = set.origin.path().filter(|path| !path.as_os_str().is_empty());
            problems.extend(read.and_then(|folder| misplaced_store(&data, folder)));
            for (key, file) in &private {
                problems.extend(read.and_then(|folder| published_file(key, file, folder)));
            }
            for (folder, other) in
                sets.iter().filter_map(|other| folder.clone().zip(folder_of(other)))
            {
                if folder.starts_with(&other) || other.starts_with(&folder) {
                    let (one, two) = (other.display(), folder.display());
                    problems.push(format!(
                        "`folder`: `{one}` and `{two}` overlap; their resources would be published twice (help: name \
                         one of them only, or folders beside each other)"
                    ));
                }
            }
            let place = format!("set.{number}");
            faults.extend(origins.place(&place, problems));
            for (missing, found) in missing.iter_mut().zip([&set.missing, &set.missing_secret]) {
                missing.extend(origins.place(&place, found.iter().cloned().collect()));
            }
            missing[1].extend(origins.place(&place, unread));
            sets.push(set);
        }
        let (data_in_file, new_store, confirm_deletions) = (None, false, false);
        let config = Self {
            listen,
            data,
            database,
            data_in_file,
            file: None,
            new_store,
            admin,
            admin_pages: file.admin_pages.unwrap_or(true),
            institution,
            api,
            push,
            sets,
            confirm_deletions,
            progress: crate::program::progress::ProgressArgs::hidden(),
        };
        (Some(config), faults, missing)
    }
}

/// The log and the secrets that keys of the file name, with these keys.
fn private_files(file: &File) -> Vec<(String, PathBuf)> {
    let of_endpoints = file.set.iter().filter_map(|set| set.endpoint.as_ref()).flat_map(|own| {
        [("endpoint.password_file", &own.password_file), ("endpoint.token_file", &own.token_file)]
    });
    let of_webhooks = file.set.iter().flat_map(|set| &set.webhook);
    let of_webhooks = of_webhooks.map(|webhook| ("set.webhook.secret_file", &webhook.secret_file));
    let (tls, xmpp) = (file.tls.as_ref(), file.xmpp.as_ref());
    let own = [
        ("access_log", file.access_log.as_ref().filter(|log| log.as_os_str() != "-")),
        ("admin_token_file", file.admin_token.as_ref()),
        ("tls.key", tls.and_then(|tls| tls.key.as_ref().or(tls.cert.as_ref()))),
        ("xmpp.password_file", xmpp.and_then(|xmpp| xmpp.password_file.as_ref())),
    ];
    let all = own
        .into_iter()
        .chain(of_endpoints.chain(of_webhooks).map(|(key, file)| (key, file.as_ref())));
    all.filter_map(|(key, file)| Some((key.to_owned(), file?.clone()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_problems_are_reported_at_once() {
        let file = File::parse(
            "listen = \"0.0.0.0:80\"\n[[set]]\nname = \"API\"\nfolder = \"/nowhere/at/all\"\nrescan = \"often\"\n\
             [[set]]\nname = \"r\"\nrecords = true\ndumps = {}\n\
             [[set]]\nname = \"s\"\norigin = \"nowhere\"\n[[set]]\nname = \"t\"\norigin = \"records\"\nrecords = true\n",
        )
        .unwrap();
        let error = ServeConfig::check(file).unwrap_err().to_string();
        for part in [
            "`base_url`",
            "`folder`: cannot open `/nowhere/at/all`",
            "`name`: `API`",
            "`rescan`: `often`",
            "`dumps`: a set of",
            "`origin`: `nowhere` is not known",
            "`records`: `origin` is given as well",
        ] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }

    #[test]
    fn records_are_an_origin_in_both_spellings() {
        for spelling in ["origin = \"records\"", "records = true"] {
            let file = File::parse(&format!(
                "data = \"/nowhere\"\n[[set]]\nname = \"known\"\n{spelling}\n"
            ))
            .unwrap();
            let config = ServeConfig::check(file).unwrap();
            assert!(config.sets[0].origin.folder().is_none(), "{spelling}");
        }
    }
}
