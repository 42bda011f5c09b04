//! `abreast serve`: watches folders and publishes them until it is stopped.

mod open_sets;
mod reload;
mod removals;
mod running;

pub(crate) use running::Running;

use crate::command::args::ServeArgs;
use crate::config::{Descriptions, File, Origin, ServeConfig, SetFile, is_of_environment};
use crate::program::errors::UsageError;
use crate::program::signals::{Request, Signals};
use abreast_core::NodeRoles;
use anyhow::{Result, bail};
use std::path::{Path, PathBuf};

/// Folder and flags over the configuration file, not checked; and the folder of the store in the file.
fn read(args: &ServeArgs) -> Result<(File, Option<PathBuf>)> {
    let mut file = match &args.config {
        Some(path) => File::read_with_faults(path)?,
        None => File::default(),
    };
    if args.folder.is_some() || args.origin.is_some() {
        if args.config.as_ref().is_some_and(|path| is_of_environment(path)) {
            // The sets of a file that the environment names are replaced.
            file.set.clear();
        }
        if !file.set.is_empty() {
            bail!(UsageError(
                "both a folder and `[[set]]` in the configuration (help: leave one of them out)"
                    .into()
            ));
        }
        file.set.push(SetFile {
            name: args.name.clone(),
            title: args.title.clone(),
            follow_links: args.follow_links.then_some(true),
            filter: args.rules.rules.clone(),
            origin: args.origin.clone(),
            skolemize: args.skolemize.clone(),
            base: args.base.clone(),
            folder: args.folder.clone().unwrap_or_default(),
            digests: args.digests.clone(),
            debounce: args.debounce.clone(),
            wait_for_quiet: args.wait_for_quiet.then_some(true),
            rescan: args.rescan.clone(),
            reread: None,
            events: args.no_events.then_some(false),
            changes_per_list: args.changes_per_list,
            dumps: args.dumps.to_file(),
            versions: args.versions.to_file()?,
            ..SetFile::default()
        });
    }
    file.api = args.api.over(file.api);
    file.hub = args.push.over(file.hub);
    let data_in_file = file.data.clone();
    file.store_in(args.data.as_ref());
    args.node.over(&mut file);
    args.source_node.over(&mut file);
    args.listen.over(&mut file);
    args.admin.over(&mut file);
    Ok((file, data_in_file))
}

/// The configuration of a start.
fn config(args: &ServeArgs, file: File, data_in_file: Option<PathBuf>) -> Result<ServeConfig> {
    let mut config = ServeConfig::check_to_serve(file)?;
    if args.confirm_deletions && config.database.is_some() {
        bail!(UsageError(
            "`--confirm-deletions`: this node may watch the sets at any later time (help: confirm held deletions through the API)".into()
        ));
    }
    config.confirm_deletions = args.confirm_deletions;
    config.new_store = args.new_store;
    config.progress = args.progress.clone();
    config.data_in_file = data_in_file;
    config.file.clone_from(&args.config);
    Ok(config)
}

/// Runs until a signal.
pub(crate) fn run(args: &ServeArgs) -> Result<()> {
    let (mut start, data_in_file) = read(args)?;
    let config = config(args, start.clone(), data_in_file)?;
    if config.database.is_none() {
        start.data = start.store_folder();
    }
    let folders = config.sets.iter().filter_map(|set| set.origin.path());
    let folders: Vec<_> = folders.map(Path::to_owned).collect();
    crate::program::redirected::refuse_published_output(&folders)?;
    crate::program::open_files::raise_limit();
    let mut requests = Signals::listen()?.requests()?;
    let shown: Vec<_> = config
        .sets
        .iter()
        .map(|set| {
            let origin = match &set.origin {
                Origin::Folder(folder) => folder.path.display().to_string(),
                Origin::Records => "records".to_owned(),
                Origin::Rdf(rdf) => match &rdf.descriptions {
                    Descriptions::Folder(folder) => folder.display().to_string(),
                    Descriptions::Endpoint(sparql) => sparql.url.clone(),
                    Descriptions::Given => "entities".to_owned(),
                },
            };
            (set.slug.clone(), origin)
        })
        .collect();
    let writes = config.api.write;
    let data = match &config.database {
        Some(database) if database.roles == NodeRoles::default() => {
            format!("{} as node `{}`", database.shown(), database.node)
        }
        Some(database) => format!(
            "{} as node `{}` with the roles {}",
            database.shown(),
            database.node,
            database.roles
        ),
        None => config.data.display().to_string(),
    };
    let mut running = Running::start(config)?;
    let choice = if shown.len() > 1 { " --all-sets" } else { "" };
    for (slug, folder) in shown {
        crate::program::logging::ready(&format!(
            "publishing {folder} as {}{slug}/capabilitylist.xml",
            running.base_url
        ));
    }
    crate::program::logging::ready(&format!(
        "  all addresses  {} (a page for people; change feeds are at SET/emm/1.0, SET/emm/0.1 and SET/iiif)",
        running.base_url
    ));
    let new = if running.is_new { " (new: the history of its sets begins now)" } else { "" };
    crate::program::logging::ready(&format!("  store          {data}{new}"));
    crate::program::logging::ready(&format!("  listening on   {}", running.own_url));
    if writes {
        crate::program::logging::ready(&format!(
            "  changes go to  {}api/v1/ (docs/api.md)",
            running.base_url
        ));
    }
    crate::program::logging::ready(&format!(
        "  to mirror it   abreast sync {} FOLDER{choice}",
        running.base_url
    ));
    let signal = loop {
        match requests.next() {
            Request::Stop(signal) => break signal,
            Request::Reload => reload(&mut running, args, &start),
            Request::Scan => match running.scan() {
                Ok(0) => tracing::info!("nothing to scan: no set has a folder or an endpoint"),
                Ok(sets) => {
                    tracing::info!("scanning {}", abreast_webtypes::count(sets as u64, "set"));
                }
                Err(error) => tracing::error!("cannot scan all sets: {error}"),
            },
        }
    };
    tracing::info!(signal, "stopping: finishing requests in flight");
    running.stop();
    Ok(())
}

/// Opens the access log and reads the configuration again. A fault of the configuration is logged, and
/// changes nothing.
fn reload(running: &mut Running, args: &ServeArgs, start: &File) {
    running.reopen();
    let Some(path) = &args.config else {
        tracing::info!("nothing to reload: no configuration file; the access log is open again");
        return;
    };
    tracing::info!("reading `{}` again", path.display());
    running.reload(|| Ok(read(args)?.0), start);
}
