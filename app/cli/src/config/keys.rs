//! The keys of the configuration file, and the defaults of a set.

use super::slug::slug_of;
use std::path::Path;
use std::time::Duration;

/// Every key, for the nearest one to a misspelt one.
pub(crate) const FILE_KEYS: &[&str] = &[
    "listen",
    "base_url",
    "data",
    "trusted_proxies",
    "strip_prefix",
    "api",
    "hub",
    "notify",
    "xmpp",
    "mirror",
    "set",
];
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
    "namespace",
    "skolemize",
    "leave_out_invalid",
    "context",
    "base",
    "graphs",
    "endpoint",
    "records",
    "links",
    "categories",
    "resourcesync_0_1",
    "set_links",
    "digests",
    "debounce",
    "wait_for_quiet",
    "hold_deletions",
    "rescan",
    "reread",
    "events",
    "changes_per_list",
    "initial_changes",
    "object_type",
    "label_predicates",
    "xmpp_node",
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
        "xmpp_node" => set.get("name").cloned().or_else(|| set_default_of(set, "name")),
        "title" => set.get("name").cloned().or_else(|| set_default_of(set, "name")),
        "origin" => {
            let old = set.get("records").and_then(toml::Value::as_bool) == Some(true);
            Some(if old { "records" } else { "folder" }.into())
        }
        "wait_for_quiet" | "follow_links" | "initial_changes" | "leave_out_invalid" => {
            Some(false.into())
        }
        "events" => Some(true.into()),
        "links" | "categories" | "set_links" | "graphs" | "context" | "label_predicates"
        | "include" | "exclude" | "filter" | "filter_from" => Some(toml::Value::Array(Vec::new())),
        "digests" => Some("md5".into()),
        "debounce" => time(watch.debounce),
        "hold_deletions" => time(watch.hold_deletions),
        "rescan" => time(watch.rescan),
        "reread" => time(watch.reread),
        "changes_per_list" => Some(i64::from(abreast_core::PageRule::default().changes).into()),
        "versions" => {
            let dumps = set.get("dumps")?.clone().try_into().ok()?;
            let dumps = crate::dumps::check(
                Some(&dumps),
                abreast_source::DigestPolicy::Md5,
                &mut Vec::new(),
            );
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
        "endpoint" => super::ENDPOINT_KEYS
            .iter()
            .map(|key| (*key, super::endpoint::default_of(key)))
            .collect(),
        "resourcesync_0_1" => vec![("robots", Some(false.into()))],
        "dumps" => crate::dumps::DUMPS_KEYS
            .iter()
            .map(|key| (*key, crate::dumps::default_of(key)))
            .collect(),
        _ => Vec::new(),
    };
    for (key, value) in defaults {
        if let Some(value) = value.filter(|_| !table.contains_key(key)) {
            table.insert(key.to_owned(), value);
        }
    }
}
