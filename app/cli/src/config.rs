//! Configuration of `serve`: file, then environment, then flags; unknown keys are refused.

use crate::faults::{Fault, Origins};
use abreast_core::filter::Filter;
use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use std::collections::HashSet;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

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
    /// The API.
    pub(crate) api: Option<crate::api::ApiFile>,
    /// The hub.
    pub(crate) hub: Option<crate::push::HubFile>,
    /// Notifications.
    pub(crate) notify: Option<crate::push::NotifyFile>,
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
    /// The origin of the resources: `folder` (default), or `records` of resources that live elsewhere, which come through
    /// the API.
    pub(crate) origin: Option<String>,
    /// The folder to publish.
    #[serde(default)]
    pub(crate) folder: PathBuf,
    /// The older spelling of `origin = "records"`, which is still read.
    pub(crate) records: Option<bool>,
    /// Rules for links of resources.
    #[serde(default)]
    pub(crate) links: Vec<crate::api::RuleFile>,
    /// Links of the set as a whole.
    #[serde(default)]
    pub(crate) set_links: Vec<crate::api::SetLinkFile>,
    /// Digests to compute: `md5` (default), `sha-256` or `both`.
    pub(crate) digests: Option<String>,
    /// How long a path must be quiet before it is read, such as `200ms` (default).
    pub(crate) debounce: Option<String>,
    /// Apply the same wait to files that were closed by their writer or moved into place. Default false.
    pub(crate) wait_for_quiet: Option<bool>,
    /// How long the deletion of most of a set waits for a confirmation, such as `7d` (default); `0s` for not at all.
    pub(crate) hold_deletions: Option<String>,
    /// Time between full scans, such as `1h` (default); `0s` for none but the first.
    pub(crate) rescan: Option<String>,
    /// Time between scans that read every file, even if it seems unchanged; `0s` (default) for none.
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
    /// Rules, `+ PATTERN` or `- PATTERN`: the first that matches decides, after `include` and `exclude`.
    #[serde(default)]
    pub(crate) filter: Vec<String>,
    /// Files with such rules, one a line.
    #[serde(default)]
    pub(crate) filter_from: Vec<PathBuf>,
    /// Keep old Resource Lists, and list old Change Lists. Default no.
    pub(crate) archives: Option<ArchivesFile>,
    /// Changes in one Change List, 1 to 50000; default 5000.
    pub(crate) changes_per_list: Option<u32>,
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

/// Every key, for the nearest one to a misspelt one.
pub(crate) const FILE_KEYS: &[&str] = &["listen", "base_url", "data", "api", "hub", "notify", "mirror", "set"];
pub(crate) const SET_KEYS: &[&str] = &[
    "name",
    "title",
    "description",
    "licence",
    "contact",
    "follow_links",
    "include",
    "exclude",
    "filter",
    "filter_from",
    "archives",
    "folder",
    "origin",
    "records",
    "links",
    "set_links",
    "digests",
    "debounce",
    "wait_for_quiet",
    "hold_deletions",
    "rescan",
    "reread",
    "events",
    "changes_per_list",
    "dumps",
    "versions",
];

pub(crate) const ARCHIVES_KEYS: &[&str] = &["every", "keep"];

/// Defaults of a set; `None` for keys without a default.
pub(crate) fn set_default_of(set: &toml::Table, key: &str) -> Option<toml::Value> {
    let watch = abreast_source::watch::WatchOptions::new(Path::new(""));
    let time = |duration: Duration| Some(humantime::format_duration(duration).to_string().into());
    match key {
        "name" => set.get("folder").and_then(toml::Value::as_str).map(|folder| {
            let folder = Path::new(folder);
            slug_of(&std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned())).into()
        }),
        "title" => set.get("name").cloned().or_else(|| set_default_of(set, "name")),
        "origin" => {
            let old = set.get("records").and_then(toml::Value::as_bool) == Some(true);
            Some(if old { "records" } else { "folder" }.into())
        }
        "wait_for_quiet" | "follow_links" => Some(false.into()),
        "events" => Some(true.into()),
        "links" | "set_links" | "include" | "exclude" | "filter" | "filter_from" => {
            Some(toml::Value::Array(Vec::new()))
        }
        "digests" => Some("md5".into()),
        "debounce" => time(watch.debounce),
        "hold_deletions" => time(watch.hold_deletions),
        "rescan" => time(watch.rescan),
        "reread" => time(watch.reread),
        "changes_per_list" => Some(i64::from(abreast_core::PageRule::default().changes).into()),
        "versions" => {
            let dumps = set.get("dumps")?.clone().try_into().ok()?;
            let dumps = crate::dumps::check(Some(&dumps), abreast_source::DigestPolicy::Md5, &mut Vec::new());
            let age = time(crate::dumps::versions_needed(dumps.as_ref())?.age?)?;
            Some(toml::Table::from_iter([("age".to_owned(), age)]).into())
        }
        _ => None,
    }
}

/// Adds the defaults to the table of a set.
pub(crate) fn fill_in(key: &str, table: &mut toml::Table) {
    let defaults = match key {
        "archives" => vec![("keep", Some(52.into()))],
        "dumps" => crate::dumps::DUMPS_KEYS.iter().map(|key| (*key, crate::dumps::default_of(key))).collect(),
        _ => Vec::new(),
    };
    for (key, value) in defaults {
        if let Some(value) = value.filter(|_| !table.contains_key(key)) {
            table.insert(key.to_owned(), value);
        }
    }
}

/// Names of sets that would hide other addresses.
const RESERVED: &[&str] =
    &["api", "hub", "sourcedescription", "livez", "readyz", "metrics", "sdshare", "timegate", "timemap", "r", "m"];

impl File {
    /// The folder of a set.
    ///
    /// # Errors
    /// The set does not exist, or has no folder.
    pub(crate) fn folder_of(&self, name: &str) -> Result<PathBuf> {
        let is_meant =
            |set: &&SetFile| set.name.as_ref().map_or_else(|| slug_of(&set.folder) == name, |known| known == name);
        match self.set.iter().find(is_meant) {
            None => bail!(UsageError(format!("there is no set `{name}`"))),
            Some(set) if set.is_records() => {
                bail!(UsageError(format!("the set `{name}` has no folder: it is a set of records")))
            }
            Some(set) => Ok(set.folder.clone()),
        }
    }

    /// Reads a configuration file; its faults are kept, to be reported with those that are found later.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn read_with_faults(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        let mut file = crate::faults::read(&text);
        file.origins.name(path);
        Ok(file)
    }

    /// Reads a configuration file.
    ///
    /// # Errors
    /// It cannot be read, or has keys that are unknown or values of a wrong type: all of them at once.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let file = Self::read_with_faults(path)?;
        file.refuse_faults().with_context(|| format!("cannot use the configuration `{}`", path.display()))?;
        Ok(file)
    }

    fn refuse_faults(&self) -> Result<()> {
        match self.origins.faults() {
            [] => Ok(()),
            faults => bail!(UsageError(crate::faults::report(faults.to_vec()))),
        }
    }

    #[cfg(test)]
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let file = crate::faults::read(text);
        file.refuse_faults()?;
        Ok(file)
    }

    /// Flags and environment variables take precedence over the file.
    pub(crate) fn given(&mut self, listen: Option<&String>, base_url: Option<&String>, data: Option<&PathBuf>) {
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
    }
}

/// Wrong arguments or configuration: all errors, one per line.
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// A set, checked.
#[derive(Clone, Debug)]
pub(crate) struct SetConfig {
    pub(crate) slug: String,
    pub(crate) title: String,
    /// Title for people.
    pub(crate) about: abreast_source::publish::About,
    pub(crate) origin: Origin,
    pub(crate) links: crate::api::LinksConfig,
    pub(crate) archives: Option<abreast_source::archive::ArchiveRule>,
    pub(crate) changes_per_list: u32,
    pub(crate) dumps: Option<abreast_source::dump::DumpOptions>,
    pub(crate) versions: Option<abreast_core::VersionPolicy>,
}

/// The origin of a set's resources.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// Files in a folder.
    Folder(FolderOrigin),
    /// Records of resources that live elsewhere, which come through the API.
    Records,
}

impl Origin {
    /// The folder, if there is one.
    pub(crate) fn folder(&self) -> Option<&FolderOrigin> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Records => None,
        }
    }
}

/// A folder that is published, and how it is read.
#[derive(Clone, Debug)]
pub(crate) struct FolderOrigin {
    pub(crate) path: PathBuf,
    pub(crate) digests: abreast_source::DigestPolicy,
    pub(crate) debounce: Duration,
    pub(crate) wait_for_quiet: bool,
    pub(crate) hold_deletions: Duration,
    pub(crate) rescan: Duration,
    pub(crate) reread: Duration,
    pub(crate) events: bool,
    pub(crate) follow_links: bool,
    pub(crate) filter: Arc<Filter>,
}

impl SetFile {
    /// Whether its resources are records, in either spelling.
    pub(crate) fn is_records(&self) -> bool {
        self.origin.as_deref().map_or(self.records == Some(true), |origin| origin == "records")
    }

    /// Checks `origin` and the older `records`.
    fn check_origin(&self, problems: &mut Vec<String>) {
        match (self.origin.as_deref(), self.records) {
            (None | Some("folder" | "records"), None) => {}
            (None, Some(_)) => {
                let name = self.name.as_deref().unwrap_or_default();
                let help = if self.is_records() { "write `origin = \"records\"`" } else { "leave it out" };
                tracing::warn!("set `{name}`: `records` is the older spelling of `origin` (help: {help})");
            }
            (Some("folder" | "records"), Some(_)) => {
                problems.push("`records`: `origin` is given as well (help: leave `records` out)".to_owned());
            }
            (Some(other), _) => problems.push(format!("`origin`: `{other}` is not known (help: folder or records)")),
        }
    }
}

/// The configuration of a Source, checked.
#[derive(Clone, Debug)]
pub(crate) struct ServeConfig {
    pub(crate) listen: SocketAddr,
    /// `None`: made from the address listened on.
    pub(crate) base_url: Option<String>,
    pub(crate) data: PathBuf,
    pub(crate) api: crate::api::ApiConfig,
    pub(crate) push: crate::push::PushConfig,
    pub(crate) sets: Vec<SetConfig>,
    /// The files that are missing at the start were removed on purpose.
    pub(crate) confirm_deletions: bool,
}

impl ServeConfig {
    /// Whether any set keeps versions.
    pub(crate) fn keeps_versions(&self) -> bool {
        self.sets.iter().any(|set| set.versions.is_some())
    }

    /// Checks everything, and reports all faults at once.
    ///
    /// # Errors
    /// Each fault with its key, and its line if it is in a file.
    pub(crate) fn check(file: File) -> Result<Self> {
        Self::check_all(file).map_err(|faults| UsageError(crate::faults::report(faults)).into())
    }

    /// As [`ServeConfig::check`], with the faults one by one.
    pub(crate) fn check_all(file: File) -> Result<Self, Vec<Fault>> {
        let origins = file.origins;
        let mut faults = origins.faults().to_vec();
        let mut problems = Vec::new();
        let listen = check_address(file.listen.as_deref(), file.base_url.as_deref(), &mut problems);
        if file.set.is_empty() {
            // Everything else that is missing is so for this reason.
            let help = if file.mirror.is_empty() {
                "name a folder, or add a `[[set]]` with `folder`"
            } else {
                "the file has mirrors only, which `abreast sync --config FILE` copies; to publish, add a `[[set]]` with `folder`"
            };
            faults.extend(origins.place("", vec![format!("`set`: nothing to publish (help: {help})")]));
            return Err(faults);
        }
        let data = match (&file.data, file.set.as_slice()) {
            (Some(data), _) => {
                if data.as_os_str().is_empty() {
                    problems.push("`data`: no folder is named (help: name one, or leave it out)".to_owned());
                }
                data.clone()
            }
            (None, [only]) if !only.is_records() => only.folder.join(".abreast"),
            (None, _) => {
                problems.push(
                    "`data`: several sets, or one of records, need a folder for the store (help: --data DIR)"
                        .to_owned(),
                );
                PathBuf::new()
            }
        };
        let api = crate::api::check(file.api, listen, file.base_url.as_deref(), &data, &mut problems);
        let push = crate::push::check(file.hub, file.notify, listen, file.base_url.as_deref(), &mut problems);
        faults.extend(origins.place("", problems));
        let mut slugs = HashSet::new();
        let mut sets: Vec<SetConfig> = Vec::new();
        for (number, set) in file.set.into_iter().enumerate() {
            let mut problems = Vec::new();
            let set = check_set(set, &mut slugs, &mut problems);
            // One that is missing is reported already.
            let folder_of = |set: &SetConfig| {
                let path = set.origin.folder().map(|folder| folder.path.clone());
                path.filter(|path| !path.as_os_str().is_empty())
            };
            let folder = folder_of(&set);
            problems.extend(folder.as_ref().and_then(|folder| misplaced_store(&data, folder)));
            for (folder, other) in sets.iter().filter_map(|other| folder.clone().zip(folder_of(other))) {
                if folder.starts_with(&other) || other.starts_with(&folder) {
                    let (one, two) = (other.display(), folder.display());
                    problems.push(format!(
                        "`folder`: `{one}` and `{two}` overlap; their resources would be published twice (help: name \
                         one of them only, or folders beside each other)"
                    ));
                }
            }
            faults.extend(origins.place(&format!("set.{number}"), problems));
            sets.push(set);
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        Ok(Self { listen, base_url: file.base_url, data, api, push, sets, confirm_deletions: false })
    }
}

/// The listen address. If it does not imply the public URL, that must be given.
pub(crate) fn check_address(listen: Option<&str>, base_url: Option<&str>, problems: &mut Vec<String>) -> SocketAddr {
    let default = SocketAddr::from(([127, 0, 0, 1], 8080));
    let listen = match listen.map(address_of) {
        None => default,
        Some(Ok(address)) => address,
        Some(Err(reason)) => {
            problems.push(reason);
            default
        }
    };
    if base_url.is_none() && listen.ip().is_unspecified() {
        problems.push(format!(
            "`base_url`: listening on every address ({listen}) needs the public URL (help: for example --base-url https://example.org/)"
        ));
    }
    if let Some(base) = base_url
        && let Err(expected) = crate::address::base_url(base)
    {
        problems
            .push(format!("`base_url`: `{base}` cannot be used: {expected} (help: for example https://example.org/)"));
    }
    listen
}

/// The reason why the store may not be in that folder: it would be published, or would contain published files.
fn misplaced_store(data: &Path, folder: &Path) -> Option<String> {
    use std::os::unix::ffi::OsStrExt as _;
    // It need not exist yet: what exists of the way to it is resolved.
    let data = std::path::absolute(data).ok()?;
    let existing = data.ancestors().find(|ancestor| ancestor.exists())?;
    let rest = data.strip_prefix(existing).ok()?;
    let data = std::fs::canonicalize(existing).ok()?.join(rest);
    let (shown, published) = (data.display(), folder.display());
    if let Ok(inside) = data.strip_prefix(folder) {
        let visible = inside.iter().all(|name| abreast_source::is_published_name(name.as_bytes()));
        return visible.then(|| {
            format!(
                "`data`: the store `{shown}` lies in the published folder `{published}` and would be published with it \
                 (help: name a folder elsewhere, or one whose name begins with `.`)"
            )
        });
    }
    // Where rendered documents, archived ones, dumps and versions are kept.
    let inside = ["archives", "documents", "dumps", "contents"].iter().any(|own| folder.starts_with(data.join(own)));
    inside.then(|| {
        format!("`data`: the published folder `{published}` lies in the store `{shown}` (help: name another folder)")
    })
}

fn check_set(set: SetFile, slugs: &mut HashSet<String>, problems: &mut Vec<String>) -> SetConfig {
    let shown = set.folder.display().to_string();
    let records = set.is_records();
    set.check_origin(problems);
    let filter = crate::rule_args::check(&set, records, problems);
    let has_folder = !set.folder.as_os_str().is_empty();
    let folder = match std::fs::canonicalize(&set.folder) {
        _ if records => {
            if has_folder {
                problems.push(format!("`folder`: a set of records has none (help: leave out `{shown}`)"));
            }
            if set.name.is_none() {
                problems.push("`name`: a set of records needs one (help: add `name = \"records\"`)".to_owned());
            }
            PathBuf::new()
        }
        _ if !has_folder => {
            problems.push("`folder`: the set has none (help: name one, or set `origin = \"records\"`)".to_owned());
            set.folder
        }
        Ok(folder) if folder.is_dir() => folder,
        Ok(_) => {
            problems.push(format!("`folder`: `{shown}` is not a folder (help: name the folder that contains it)"));
            set.folder
        }
        Err(error) => {
            problems.push(format!("`folder`: cannot open `{shown}`: {error} (help: create it, or correct the path)"));
            set.folder
        }
    };
    let slug = set.name.unwrap_or_else(|| slug_of(&folder));
    let well_formed = !slug.is_empty()
        && slug.len() <= 64
        && slug.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
        && slug.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'));
    if !well_formed {
        problems.push(format!(
            "`name`: `{slug}` is not 1 to 64 of a-z, 0-9, `.`, `_`, `-`, beginning with a letter or digit (help: for \
             example `papers-2026`)"
        ));
    }
    if RESERVED.contains(&slug.as_str()) {
        problems
            .push(format!("`name`: `{slug}` is an address of the server itself (help: choose another with --name)"));
    }
    if !slugs.insert(slug.clone()) {
        problems.push(format!("`name`: two sets are called `{slug}` (help: give each a `name` of its own)"));
    }
    let mut duration = |key: &str, value: Option<String>, default: Duration| match value {
        None => default,
        Some(text) => humantime::parse_duration(&text).unwrap_or_else(|error| {
            problems.push(format!(
                "`{key}`: `{text}` is not a duration: {error} (help: write it as `200ms`, `30s` or `1h`)"
            ));
            default
        }),
    };
    let defaults = abreast_source::watch::WatchOptions::new(&folder);
    let debounce = duration("debounce", set.debounce, defaults.debounce);
    let hold_deletions = duration("hold_deletions", set.hold_deletions, defaults.hold_deletions);
    let rescan = duration("rescan", set.rescan, defaults.rescan);
    let reread = duration("reread", set.reread, defaults.reread);
    let archives = set.archives.map(|archives| abreast_source::archive::ArchiveRule {
        every: duration("archives.every", Some(archives.every), Duration::from_secs(7 * 24 * 3_600)),
        keep: archives.keep.unwrap_or(52) as usize,
    });
    if archives.is_some_and(|rule| !(1..=10_000).contains(&rule.keep) || rule.every < Duration::from_secs(1)) {
        problems.push("`archives`: `every` is less than `1s`, or `keep` not 1 to 10000 (help: for example `{ every = \"7d\", keep = 52 }`)".to_owned());
    }
    let digests = match set.digests.as_deref() {
        None | Some("md5") => abreast_source::DigestPolicy::Md5,
        Some("sha-256") => abreast_source::DigestPolicy::Sha256,
        Some("both") => abreast_source::DigestPolicy::Both,
        Some(other) => {
            problems.push(format!("`digests`: `{other}` is not known (help: md5, sha-256 or both)"));
            abreast_source::DigestPolicy::Md5
        }
    };
    let changes_per_list = set.changes_per_list.unwrap_or(abreast_core::PageRule::default().changes);
    if !(1..=50_000).contains(&changes_per_list) {
        problems.push(format!("`changes_per_list`: {changes_per_list} is out of range (help: 1 to 50000)"));
    }
    if records && set.dumps.is_some() {
        problems.push("`dumps`: a set of records has no bytes to package (help: leave it out)".to_owned());
    }
    let dumps = crate::dumps::check(set.dumps.as_ref(), digests, problems);
    let title = set.title.unwrap_or_else(|| slug.clone());
    let about = abreast_source::publish::About {
        title: title.clone(),
        description: set.description,
        licence: set.licence,
        contact: set.contact,
    };
    let versions =
        crate::versions::check(set.versions, problems).or_else(|| crate::dumps::versions_needed(dumps.as_ref()));
    let links = crate::api::check_links(&slug, set.links, set.set_links, problems);
    let origin = if records {
        Origin::Records
    } else {
        Origin::Folder(FolderOrigin {
            path: folder,
            digests,
            debounce,
            wait_for_quiet: set.wait_for_quiet.unwrap_or(false),
            hold_deletions,
            rescan,
            reread,
            events: set.events.unwrap_or(true),
            follow_links: set.follow_links.unwrap_or(false),
            filter,
        })
    };
    SetConfig { slug, title, about, origin, links, archives, changes_per_list, dumps, versions }
}

/// Where to listen: an address or a host name with a port.
fn address_of(text: &str) -> Result<SocketAddr, String> {
    let refused = |reason: &dyn std::fmt::Display| {
        format!("`listen`: `{text}` is not an address: {reason} (help: for example 127.0.0.1:8080 or localhost:8080)")
    };
    let mut found = text.to_socket_addrs().map_err(|error| refused(&error))?;
    found.next().ok_or_else(|| refused(&"the name has no address"))
}

/// A set's name made from a folder's name.
pub(crate) fn slug_of(folder: &Path) -> String {
    let name = folder.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let slug: String = name
        .chars()
        .map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-') { c } else { '-' })
        .collect();
    let slug = slug.trim_matches(['-', '.', '_']);
    let slug: String = slug.chars().take(64).collect();
    if slug.is_empty() || RESERVED.contains(&slug.as_str()) { "set".to_owned() } else { slug }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_refused_with_line_and_nearest_name() {
        let error = File::parse("listen = \"127.0.0.1:1\"\nbase_ulr = \"x\"\n[[set]]\nfoldr = \"a\"\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 2: unknown key `base_ulr` (help: did you mean `base_url`?)\n\
             line 4: unknown key `foldr` in `[[set]]` (help: did you mean `folder`?)"
        );
    }

    #[test]
    fn the_example_configuration_shows_every_key() {
        let example = include_str!("../../../abreast.example.toml");
        let uncommented: String = example
            .lines()
            .map(|line| {
                line.strip_prefix("#").filter(|rest| rest.contains(" = ") && !rest.starts_with(' ')).unwrap_or(line)
            })
            .fold(String::new(), |text, line| text + line + "\n");
        let file = File::parse(&uncommented).unwrap();
        assert!(file.listen.is_some() && file.base_url.is_some() && file.data.is_some());
        for key in FILE_KEYS.iter().chain(SET_KEYS) {
            assert!(uncommented.contains(key), "{key}");
        }
        let tables: toml::Table = toml::from_str(&uncommented).unwrap();
        for (name, known) in [("hub", crate::push::HUB_KEYS), ("notify", crate::push::NOTIFY_KEYS)] {
            let table = tables[name].as_table().unwrap();
            assert!(known.iter().all(|key| table.contains_key(*key)), "{name}");
        }
        assert_eq!(file.set.len(), 2);
    }

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
            let file = File::parse(&format!("data = \"/nowhere\"\n[[set]]\nname = \"known\"\n{spelling}\n")).unwrap();
            let config = ServeConfig::check(file).unwrap();
            assert!(config.sets[0].origin.folder().is_none(), "{spelling}");
        }
    }

    #[test]
    fn a_store_that_would_be_published_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(temporary.path()).unwrap();
        let folder = root.join("folder");
        std::fs::create_dir_all(folder.join("documents")).unwrap();
        std::os::unix::fs::symlink(&folder, root.join("alias")).unwrap();
        for refused in ["folder", "folder/store", "folder/new/store", "alias/store", "alias"] {
            assert!(misplaced_store(&root.join(refused), &folder).is_some(), "{refused}");
        }
        assert!(misplaced_store(&folder, &folder.join("documents")).is_some());
        assert!(misplaced_store(&folder, &folder.join("archives/x")).is_some());
        for allowed in
            ["folder/.abreast", "folder/.store/new", "folder/new/.store", "folders", "store", "alias/.abreast", ""]
        {
            assert_eq!(misplaced_store(&root.join(allowed), &folder), None, "{allowed}");
        }
    }

    #[test]
    fn a_host_name_is_an_address_to_listen_on() {
        assert_eq!(address_of("localhost:8080").unwrap().port(), 8080);
        assert!(address_of("localhost").is_err() && address_of(":8080").is_err());
    }

    #[test]
    fn names_of_sets_are_made_from_folders() {
        assert_eq!(slug_of(Path::new("/x/My Papers (2026)")), "my-papers--2026");
        assert_eq!(slug_of(Path::new("/")), "set");
        assert_eq!(slug_of(Path::new("/x/api")), "set");
    }
}
