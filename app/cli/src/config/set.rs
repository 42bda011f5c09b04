//! One set of the configuration, checked: its name, its origin and its settings.

use super::slug::{RESERVED, slug_of};
use crate::config::settings::SetFile;
use abreast_core::Beginning;
use abreast_core::filter::Filter;
use abreast_rdf::Contexts;
use abreast_source::origin::rdf::RdfOptions;
use abreast_source::projection::emm::FeedOptions;
use abreast_source::projection::resourcesync_0_1;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A set, checked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SetConfig {
    pub(crate) slug: String,
    /// Why its folder cannot be opened now.
    pub(crate) missing: Option<String>,
    /// Why a secret of its endpoint cannot be read now.
    pub(crate) missing_secret: Option<String>,
    pub(crate) title: String,
    /// Title for people.
    pub(crate) about: abreast_source::publish::About,
    pub(crate) origin: Origin,
    pub(crate) links: crate::config::api::LinksConfig,
    pub(crate) archives: Option<abreast_source::archive::ArchiveRule>,
    pub(crate) changes_per_list: u32,
    pub(crate) beginning: Beginning,
    pub(crate) feeds: FeedOptions,
    pub(crate) resourcesync_0_1: resourcesync_0_1::Options,
    /// The node that its change sets are published to, if an account publishes them.
    pub(crate) xmpp_node: String,
    pub(crate) dumps: Option<abreast_source::dump::DumpOptions>,
    pub(crate) versions: Option<abreast_core::VersionPolicy>,
}

impl SetConfig {
    /// Whether both are the same set with the same settings. Folders that are missing now are waited for anyway.
    pub(crate) fn is_as(&self, other: &Self) -> bool {
        let settings = |set: &Self| Self { missing: None, ..set.clone() };
        settings(self) == settings(other)
    }

    /// Whether contents of the set are stored: versions, descriptions of entities, and all files of a folder that
    /// several nodes publish.
    pub(crate) fn keeps_contents(&self, is_shared: bool) -> bool {
        let is_stored = match &self.origin {
            Origin::Folder(_) => is_shared,
            Origin::Records => false,
            Origin::Rdf(_) => true,
        };
        is_stored || self.versions.is_some()
    }

    /// Whether the set is read from a folder or endpoint before it is published.
    pub(crate) fn is_read(&self) -> bool {
        match &self.origin {
            Origin::Folder(_) => true,
            Origin::Rdf(rdf) => !matches!(rdf.descriptions, Descriptions::Given),
            Origin::Records => false,
        }
    }
}

/// The origin of a set's resources.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    /// Files in a folder.
    Folder(FolderOrigin),
    /// Records of resources that live elsewhere, which come through the API.
    Records,
    /// Entities described in RDF.
    Rdf(RdfOrigin),
}

impl Origin {
    /// The path of the folder of files or descriptions, if there is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder) => Some(&folder.path),
            Self::Rdf(rdf) => match &rdf.descriptions {
                Descriptions::Folder(path) => Some(path),
                Descriptions::Endpoint(_) | Descriptions::Given => None,
            },
            Self::Records => None,
        }
    }

    /// The folder of files, if there is one.
    pub(crate) fn folder(&self) -> Option<&FolderOrigin> {
        match self {
            Self::Folder(folder) => Some(folder),
            Self::Records | Self::Rdf(_) => None,
        }
    }
}

/// Entities, and where their descriptions come from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RdfOrigin {
    pub(crate) descriptions: Descriptions,
    /// The beginning of the IRIs of blank nodes that belong to several entities or to none.
    pub(crate) skolemize: Option<String>,
    /// What relative IRIs in files are resolved against.
    pub(crate) base: Option<String>,
    /// The graphs whose statements count; empty for all.
    pub(crate) graphs: Vec<String>,
    /// Statements that are not valid are left out.
    pub(crate) leave_out_invalid: bool,
    /// The contexts that JSON-LD may name.
    pub(crate) contexts: Contexts,
    /// The predicates of labels; empty for the usual ones.
    pub(crate) label_predicates: Vec<String>,
    /// Languages of labels, the best first.
    pub(crate) languages: Vec<String>,
    pub(crate) namespace: String,
    pub(crate) digests: abreast_source::DigestPolicy,
    pub(crate) hold_deletions: Duration,
}

impl Default for RdfOrigin {
    fn default() -> Self {
        Self {
            descriptions: Descriptions::Given,
            skolemize: None,
            base: None,
            graphs: Vec::new(),
            leave_out_invalid: false,
            contexts: Contexts::bundled(),
            label_predicates: Vec::new(),
            languages: Vec::new(),
            namespace: String::new(),
            digests: abreast_source::DigestPolicy::default(),
            hold_deletions: RdfOptions::new(PathBuf::new()).hold_deletions,
        }
    }
}

impl RdfOrigin {
    /// Options for reading the set, with this folder for temporary files.
    pub(crate) fn options(&self, temporary: PathBuf) -> RdfOptions {
        let mut options = RdfOptions::new(temporary);
        options.digests = self.digests;
        options.hold_deletions = self.hold_deletions;
        options.label_predicates.clone_from(&self.label_predicates);
        options.languages.clone_from(&self.languages);
        options.skolemize.clone_from(&self.skolemize);
        options.base.clone_from(&self.base);
        options.sort.graphs.clone_from(&self.graphs);
        options.sort.leave_out_invalid = self.leave_out_invalid;
        options.sort.contexts = self.contexts.clone();
        options
    }
}

/// Where descriptions of entities come from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Descriptions {
    /// The files of a folder.
    Folder(PathBuf),
    /// An endpoint.
    Endpoint(Box<abreast_source::origin::sparql::SparqlOptions>),
    /// They are imported, or come through the API.
    Given,
}

/// A folder that is published, and how it is read.
#[derive(Clone, Debug, PartialEq)]
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

/// Checks one set; `slugs` are the names of the sets before it.
pub(super) fn check_set(
    set: SetFile,
    slugs: &mut HashSet<String>,
    problems: &mut Vec<String>,
) -> SetConfig {
    let (records, rdf) = (set.is_records(), set.is_rdf());
    check_origin(&set, problems);
    let namespace = check_namespace(&set, problems);
    check_skolemize(&set, problems);
    check_document_base(&set, problems);
    check_graphs(&set, problems);
    if set.leave_out_invalid && !set.is_rdf() {
        problems.push(
            "`leave_out_invalid`: only RDF has statements (help: leave it out, or set `origin = \"rdf\"`)"
                .to_owned(),
        );
    }
    let contexts = check_contexts(&set, problems);
    let feeds = check_feeds(&set, problems);
    let filter = crate::config::rule_args::check(&set, records || rdf, problems);
    let mut missing = None;
    let folder = check_folder(&set, problems, &mut missing);
    let slug = set.name.unwrap_or_else(|| slug_of(&folder));
    check_slug(&slug, problems);
    if !slugs.insert(slug.clone()) {
        problems.push(format!(
            "`name`: two sets are called `{slug}` (help: give each a `name` of its own)"
        ));
    }
    let mut duration = |key: &str, value: Option<String>, default: Duration| {
        match value {
        None => default,
        Some(text) => humantime::parse_duration(&text).unwrap_or_else(|error| {
            problems.push(format!(
                "`{key}`: `{text}` is not a duration: {error} (help: write it as `200ms`, `30s` or `1h`)"
            ));
            default
        }),
    }
    };
    let defaults = abreast_source::watch::WatchOptions::new(&folder);
    let debounce = duration("debounce", set.debounce, defaults.debounce);
    let hold_deletions = duration("hold_deletions", set.hold_deletions, defaults.hold_deletions);
    let rescan = duration("rescan", set.rescan, defaults.rescan);
    let reread = duration("reread", set.reread, defaults.reread);
    let archives = set.archives.map(|archives| abreast_source::archive::ArchiveRule {
        every: duration(
            "archives.every",
            Some(archives.every),
            Duration::from_secs(7 * 24 * 3_600),
        ),
        keep: archives.keep.unwrap_or(52) as usize,
    });
    if archives.is_some_and(|rule| {
        !(1..=10_000).contains(&rule.keep) || rule.every < Duration::from_secs(1)
    }) {
        problems.push("`archives`: `every` is less than `1s`, or `keep` not 1 to 10000 (help: for example `{ every = \"7d\", keep = 52 }`)".to_owned());
    }
    let digests = match set.digests.as_deref() {
        None | Some("md5") => abreast_source::DigestPolicy::Md5,
        Some("sha-256") => abreast_source::DigestPolicy::Sha256,
        Some("both") => abreast_source::DigestPolicy::Both,
        Some(other) => {
            problems
                .push(format!("`digests`: `{other}` is not known (help: md5, sha-256 or both)"));
            abreast_source::DigestPolicy::Md5
        }
    };
    let changes_per_list =
        set.changes_per_list.unwrap_or(abreast_core::PageRule::default().changes);
    if !(1..=50_000).contains(&changes_per_list) {
        problems.push(format!(
            "`changes_per_list`: {changes_per_list} is out of range (help: 1 to 50000)"
        ));
    }
    if records && set.dumps.is_some() {
        problems.push(
            "`dumps`: a set of records has no bytes to package (help: leave it out)".to_owned(),
        );
    }
    let dumps = crate::config::dumps::check(set.dumps.as_ref(), digests, problems);
    if !set.languages.is_empty() && !rdf {
        problems.push(
            "`languages`: only entities have labels (help: leave it out, or set `origin = \"rdf\"`)"
                .to_owned(),
        );
    }
    let languages = check_languages(&set.languages, problems);
    let title = set.title.unwrap_or_else(|| slug.clone());
    let about = abreast_source::publish::About {
        title: title.clone(),
        description: set.description,
        licence: set.licence,
        contact: set.contact,
        validation: set.validation,
        languages,
    };
    let versions = crate::config::versions::check(set.versions, problems)
        .or_else(|| crate::config::dumps::versions_needed(dumps.as_ref()));
    let files = !(records || rdf);
    let categories =
        super::resourcesync_0_1::check_categories(&set.categories, files, &slug, problems);
    let resourcesync_0_1 = super::resourcesync_0_1::check(set.resourcesync_0_1, problems);
    let links =
        crate::config::api::check_links(&slug, set.links, categories, set.set_links, problems);
    let mut missing_secret = None;
    let origin = if records {
        Origin::Records
    } else if rdf {
        let descriptions = match set.endpoint {
            Some(endpoint) => {
                let options =
                    super::endpoint::check(endpoint, reread, problems, &mut missing_secret);
                Descriptions::Endpoint(Box::new(options))
            }
            None if folder.as_os_str().is_empty() => Descriptions::Given,
            None => Descriptions::Folder(folder),
        };
        Origin::Rdf(RdfOrigin {
            descriptions,
            skolemize: set.skolemize,
            base: set.base,
            graphs: set.graphs,
            leave_out_invalid: set.leave_out_invalid,
            contexts,
            label_predicates: feeds.label_predicates.clone(),
            languages: about.languages.clone(),
            namespace,
            digests,
            hold_deletions,
        })
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
    let xmpp_node = set.xmpp_node.unwrap_or_else(|| slug.clone());
    let in_log = rdf || set.initial_changes == Some(true);
    let beginning = if in_log { Beginning::Log } else { Beginning::Base };
    SetConfig {
        slug,
        missing,
        missing_secret,
        title,
        about,
        origin,
        links,
        archives,
        changes_per_list,
        beginning,
        feeds,
        resourcesync_0_1,
        xmpp_node,
        dumps,
        versions,
    }
}

/// Checks `initial_changes`, `object_type` and `label_predicates`.
fn check_feeds(set: &SetFile, problems: &mut Vec<String>) -> FeedOptions {
    let rdf = set.is_rdf();
    if rdf && set.initial_changes == Some(false) {
        problems.push(
            "`initial_changes`: entities are recorded as changes from the first one on (help: leave it out)"
                .to_owned(),
        );
    }
    if set.object_type.is_some() && rdf {
        problems.push(
            "`object_type`: entities have the types that are stated about them (help: leave it out)"
                .to_owned(),
        );
    }
    let is_type = |name: &str| {
        abreast_rdf::is_iri(name)
            || !name.is_empty()
                && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'))
    };
    if let Some(name) = set.object_type.as_deref().filter(|name| !is_type(name)) {
        problems.push(format!(
            "`object_type`: `{}` is neither a name nor an IRI (help: for example \"Manifest\")",
            name.escape_debug()
        ));
    }
    if !set.label_predicates.is_empty() && !rdf {
        problems.push(
            "`label_predicates`: only entities have labels (help: leave it out, or set `origin = \"rdf\"`)"
                .to_owned(),
        );
    }
    let mut label_predicates = Vec::new();
    for text in &set.label_predicates {
        match crate::values::address::property(text) {
            Ok(iri) => label_predicates.push(iri),
            Err(expected) => problems.push(format!(
                "`label_predicates`: `{}` cannot be used: {expected} (help: for example \
                 \"http://www.w3.org/2004/02/skos/core#prefLabel\" or \"skos:prefLabel\")",
                text.escape_debug()
            )),
        }
    }
    FeedOptions { object_type: set.object_type.clone(), label_predicates }
}

/// Checks `languages`; English without any.
fn check_languages(languages: &[String], problems: &mut Vec<String>) -> Vec<String> {
    if languages.is_empty() {
        return vec!["en".to_owned()];
    }
    for tag in languages {
        if !abreast_rdf::is_language_tag(tag) {
            problems.push(format!(
                "`languages`: `{}` is not a language tag (help: for example \"de\" or \"pt-BR\")",
                tag.escape_debug()
            ));
        }
    }
    languages.to_vec()
}

/// Checks `origin` and the older `records`.
fn check_origin(set: &SetFile, problems: &mut Vec<String>) {
    if set.is_sparql() != set.endpoint.is_some() {
        problems.push(
            "`endpoint`: a set with `origin = \"sparql\"` has one, and no other (help: for example `endpoint = { url = \
             \"https://id.example.org/sparql\" }`)"
                .to_owned(),
        );
    }
    match (set.origin.as_deref(), set.records) {
        (None | Some("folder" | "records" | "rdf" | "sparql"), None) => {}
        (None, Some(_)) => {
            let name = set.name.as_deref().unwrap_or_default();
            let help =
                if set.is_records() { "write `origin = \"records\"`" } else { "leave it out" };
            tracing::warn!(
                "set `{name}`: `records` is the older spelling of `origin` (help: {help})"
            );
        }
        (Some("folder" | "records" | "rdf" | "sparql"), Some(_)) => {
            problems.push(
                "`records`: `origin` is given as well (help: leave `records` out)".to_owned(),
            );
        }
        (Some(other), _) => {
            problems.push(format!(
                "`origin`: `{other}` is not known (help: folder, records, rdf or sparql)"
            ));
        }
    }
}

/// Checks `skolemize`.
fn check_skolemize(set: &SetFile, problems: &mut Vec<String>) {
    let Some(base) = &set.skolemize else { return };
    if !set.is_rdf() {
        problems.push(
            "`skolemize`: only entities have blank nodes (help: leave it out, or set `origin = \"rdf\"`)".to_owned(),
        );
    } else if set.endpoint.as_ref().is_some_and(|endpoint| endpoint.entities.is_some()) {
        problems.push(
            "`skolemize`: entities that are described part by part do not show which blank nodes they share (help: leave \
             `entities` or `skolemize` out)"
                .to_owned(),
        );
    } else if let Err(problem) = check_base(base) {
        problems.push(format!("`skolemize`: {problem}"));
    }
}

/// Reads `context`.
fn check_contexts(set: &SetFile, problems: &mut Vec<String>) -> Contexts {
    if !set.context.is_empty() && !set.is_rdf() {
        problems.push(
            "`context`: only RDF has contexts (help: leave it out, or set `origin = \"rdf\"`)"
                .to_owned(),
        );
    }
    let mut contexts = Vec::new();
    for text in &set.context {
        match crate::values::json_ld::context(text) {
            Ok(context) => contexts.push(context),
            Err(error) => problems.push(format!("`context`: {error}")),
        }
    }
    crate::values::json_ld::contexts(Contexts::bundled(), &contexts)
}

/// Checks `graphs`.
fn check_graphs(set: &SetFile, problems: &mut Vec<String>) {
    if !set.graphs.is_empty() && (!set.is_rdf() || set.is_sparql()) {
        problems.push(
            "`graphs`: only files of RDF have several (help: leave it out, or set `origin = \"rdf\"`; an endpoint has `graph`)"
                .to_owned(),
        );
    }
    for graph in set.graphs.iter().filter(|graph| *graph != "default") {
        if let Err(problem) = check_graph(graph) {
            problems.push(format!("`graphs`: {problem}"));
        }
    }
}

/// Checks the name of a graph.
pub(crate) fn check_graph(graph: &str) -> Result<String, String> {
    if graph == "default" || abreast_rdf::is_iri(graph) {
        return Ok(graph.to_owned());
    }
    Err(format!(
        "`{graph}` is not an IRI (rdf.graph) (help: the IRI of a named graph, or `default` for the default graph)"
    ))
}

/// Checks `base`.
fn check_document_base(set: &SetFile, problems: &mut Vec<String>) {
    let Some(base) = &set.base else { return };
    if !set.is_rdf() || set.is_sparql() {
        problems.push(
            "`base`: only files of RDF have one (help: leave it out, or set `origin = \"rdf\"`)"
                .to_owned(),
        );
    } else if !(abreast_rdf::is_iri(base) && base.contains("://") && base.ends_with('/')) {
        problems.push(format!(
            "`base`: `{base}` is not an IRI to which paths of files can be added (help: one that ends in `/`, such as \
             `https://id.example.org/data/`)"
        ));
    }
}

/// Checks the IRI of a document.
pub(crate) fn check_iri(iri: &str) -> Result<String, String> {
    if abreast_rdf::is_iri(iri) {
        return Ok(iri.to_owned());
    }
    Err(format!("`{iri}` is not an IRI (help: for example `https://id.example.org/data.ttl`)"))
}

/// Checks the beginning of IRIs of blank nodes.
pub(crate) fn check_base(base: &str) -> Result<String, String> {
    match abreast_source::links::absolute_uri(base) {
        Ok(()) if base.starts_with("http") => Ok(base.to_owned()),
        _ => Err(format!(
            "`{base}` is not the beginning of an IRI (help: for example `https://id.example.org`)"
        )),
    }
}

/// Checks `namespace`.
fn check_namespace(set: &SetFile, problems: &mut Vec<String>) -> String {
    let namespace = set.namespace.clone().unwrap_or_default();
    if !namespace.is_empty() && !set.is_rdf() {
        problems.push(
            "`namespace`: only entities have one (help: leave it out, or set `origin = \"rdf\"`)"
                .to_owned(),
        );
    } else if !namespace.is_empty()
        && let Err(reason) = abreast_source::links::absolute_uri(&namespace)
    {
        problems.push(format!(
            "`namespace`: `{namespace}`: {reason} (help: for example `http://id.example.org/`)"
        ));
    }
    namespace
}

/// Links that are followed one after the other, at most.
const LINKS_MAX: usize = 40;

/// The folder that is published, resolved; a set of records has none, and needs a name instead.
fn check_folder(
    set: &SetFile,
    problems: &mut Vec<String>,
    missing: &mut Option<String>,
) -> PathBuf {
    let shown = set.folder.display();
    let has_folder = !set.folder.as_os_str().is_empty();
    if set.is_records() {
        if has_folder {
            problems
                .push(format!("`folder`: a set of records has none (help: leave out `{shown}`)"));
        }
        if set.name.is_none() {
            problems.push(
                "`name`: a set of records needs one (help: add `name = \"records\"`)".to_owned(),
            );
        }
        return PathBuf::new();
    }
    if set.is_sparql() && has_folder {
        problems.push(format!(
            "`folder`: a set whose entities are in an endpoint has none (help: leave out `{shown}`)"
        ));
        return PathBuf::new();
    }
    if set.is_rdf() && !has_folder {
        if set.name.is_none() {
            problems.push(
                "`name`: a set without a folder needs one (help: add `name = \"entities\"`)"
                    .to_owned(),
            );
        }
        return PathBuf::new();
    }
    match std::fs::canonicalize(&set.folder) {
        _ if !has_folder => {
            problems.push(
                "`folder`: the set has none (help: name one, or set `origin = \"records\"`)"
                    .to_owned(),
            );
        }
        Ok(folder) if folder.is_dir() => match abreast_source::store_in(&folder) {
            None => return folder,
            Some(what) => problems.push(format!(
                "`folder`: `{shown}` is {what}, which is never published (help: name the folder of your files)"
            )),
        },
        Ok(_) => {
            problems.push(format!(
                "`folder`: `{shown}` is not a folder (help: name the folder that contains it)"
            ));
        }
        Err(error) => {
            *missing = Some(format!(
                "`folder`: cannot open `{shown}`: {error} (help: {})",
                crate::program::there::help(&error)
            ));
            return target_of(&set.folder);
        }
    }
    set.folder.clone()
}

/// Where links lead to that end nowhere: a set without a name has that of the folder that is missing.
fn target_of(folder: &Path) -> PathBuf {
    let mut folder = folder.to_owned();
    for _ in 0..LINKS_MAX {
        let Ok(target) = folder.read_link() else { break };
        folder = folder.parent().unwrap_or(Path::new("/")).join(target);
    }
    folder
}

/// Checks that a name can be a part of URLs, and hides no address of the server.
pub(crate) fn check_slug(slug: &str, problems: &mut Vec<String>) {
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
    if RESERVED.contains(&slug) {
        problems.push(format!(
            "`name`: `{slug}` is an address of the server itself (help: change `name`)"
        ));
    }
}
