//! The arguments of `status` and `health`: URLs, folders, or the parts of a configuration.

use crate::command::jobs;
use crate::config::File;
use crate::config::database::{DatabaseConfig, database_url};
use crate::config::sync_args::SyncArgs;
use crate::program::errors::UsageError;
use abreast_destination::{TargetPlace, target_folder};
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// A program, store or copy.
#[derive(Debug)]
pub(crate) struct Place {
    /// The argument, or the name of the job.
    pub(crate) name: String,
    /// Name of the job, if the place is one.
    pub(crate) job: Option<String>,
    /// The configuration file with the job.
    pub(crate) config: Option<PathBuf>,
    at: At,
}

#[derive(Debug)]
enum At {
    Url(String),
    /// The folder, and the address for operators with the file of its token, if one is configured.
    Folder {
        folder: PathBuf,
        address: Option<(String, Option<PathBuf>)>,
    },
    Database(Box<DatabaseConfig>),
}

impl Place {
    /// The copy of a job, or of a run without a job, by the folder of its database.
    pub(crate) fn of_copy(folder: PathBuf, job: Option<String>) -> Self {
        let name = job.clone().unwrap_or_else(|| folder.display().to_string());
        Self { name, job, config: None, at: At::Folder { folder, address: None } }
    }

    /// The URL to ask: the place itself, or the configured address for operators.
    pub(crate) fn url(&self) -> Option<String> {
        match &self.at {
            At::Url(url) => Some(url.clone()),
            At::Database(_) => None,
            At::Folder { address, .. } => address.as_ref().map(|(listen, _)| url_of(listen)),
        }
    }

    /// The URL, if the place itself is one.
    pub(crate) fn own_url(&self) -> Option<&str> {
        match &self.at {
            At::Url(url) => Some(url),
            At::Folder { .. } | At::Database(_) => None,
        }
    }

    /// The database, if the place is one.
    pub(crate) fn database(&self) -> Option<&DatabaseConfig> {
        match &self.at {
            At::Database(database) => Some(database),
            At::Url(_) | At::Folder { .. } => None,
        }
    }

    /// The file with the token of the configured address.
    pub(crate) fn token_file(&self) -> Option<&Path> {
        match &self.at {
            At::Folder { address: Some((_, token)), .. } => token.as_deref(),
            _ => None,
        }
    }

    /// The folder; empty for a URL or a database.
    pub(crate) fn folder(&self) -> &Path {
        match &self.at {
            At::Url(_) | At::Database(_) => Path::new(""),
            At::Folder { folder, .. } => folder,
        }
    }
}

/// The URL at which this machine reaches what listens there.
fn url_of(listen: &str) -> String {
    let port = listen.rsplit_once(':').map_or("", |(_, port)| port);
    match listen.rsplit_once(':').map(|(host, _)| host) {
        Some("0.0.0.0") => format!("http://127.0.0.1:{port}"),
        Some("[::]") => format!("http://[::1]:{port}"),
        _ => format!("http://{listen}"),
    }
}

/// The places of the arguments: with a configuration, these jobs. If none is given: its store and its jobs; with
/// `for_probe`, the store if it has sets, else the jobs that follow.
///
/// # Errors
/// The configuration cannot be used, or it does not contain the job.
pub(crate) fn of(names: &[String], config: Option<&Path>, for_probe: bool) -> Result<Vec<Place>> {
    let Some(path) = config.filter(|_| !names.iter().any(|name| is_http(name))) else {
        let here = [".".to_owned()];
        let names = if names.is_empty() { &here } else { names };
        return Ok(names.iter().map(|name| plain(name)).collect());
    };
    let file = File::read(path)?;
    let command = jobs::command::<SyncArgs>();
    let nothing = jobs::nothing_given(&command)?;
    let (found, faults) = jobs::find(&file, &command);
    if !faults.is_empty() {
        return Err(crate::config::faults::refused(faults));
    }
    let mut places = Vec::new();
    let has_store = !file.set.is_empty() || (file.mirror.is_empty() && file.data.is_some());
    // A probe asks the node of this machine.
    let database = if for_probe { None } else { DatabaseConfig::of_file(&file)? };
    if names.is_empty() && has_store {
        if let Some(database) = database {
            let at = At::Database(Box::new(database));
            let name = path.display().to_string();
            places.push(Place { name, job: None, config: Some(path.to_owned()), at });
        } else if let Some(folder) = file.store_folder() {
            let listen = file.admin_listen.clone();
            let address = listen.map(|listen| (listen, file.admin_token.clone()));
            let name = path.display().to_string();
            places.push(Place {
                name,
                job: None,
                config: None,
                at: At::Folder { folder, address },
            });
        }
        if for_probe {
            return Ok(places);
        }
    }
    let chosen = if names.is_empty() { found } else { jobs::choose(found, names, false)? };
    for job in chosen {
        let args: SyncArgs = job.unchecked_args(&command, &nothing)?;
        if names.is_empty() && for_probe && !args.follow {
            continue;
        }
        let Some(target) = args.mirror.places.get(1) else { continue };
        let folder = match TargetPlace::of(target) {
            TargetPlace::Set(set) => file.folder_of(set)?,
            _ => target_folder(target).to_owned(),
        };
        let folder = args.mirror.state.clone().unwrap_or(folder);
        let address = args.admin.admin_listen.map(|listen| (listen, args.admin.admin_token_file));
        places.push(Place {
            name: job.name.clone(),
            job: Some(job.name),
            config: Some(path.to_owned()),
            at: At::Folder { folder, address },
        });
    }
    if places.is_empty() {
        bail!(UsageError(format!(
            "`{}` has neither sets nor jobs{} (help: name a URL or a folder)",
            path.display(),
            if for_probe { " that follow" } else { "" }
        )));
    }
    Ok(places)
}

fn is_http(name: &str) -> bool {
    name.starts_with("http://") || name.starts_with("https://")
}

fn plain(name: &str) -> Place {
    let at = if is_http(name) {
        At::Url(name.to_owned())
    } else if let Some(url) = database_url(Path::new(name)) {
        At::Database(Box::new(DatabaseConfig::of_url(url)))
    } else {
        At::Folder { folder: target_folder(name).to_owned(), address: None }
    };
    Place { name: name.to_owned(), job: None, config: None, at }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_all_networks_is_asked_on_this_machine() {
        for (listen, url) in [
            ("0.0.0.0:9180", "http://127.0.0.1:9180"),
            ("[::]:9180", "http://[::1]:9180"),
            ("10.0.0.1:80", "http://10.0.0.1:80"),
        ] {
            assert_eq!(url_of(listen), url);
        }
    }
}
