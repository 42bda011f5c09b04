//! The policy for earlier versions of a set: the key `versions` of a `[[set]]`, the equivalent flags of
//! `serve`, and how both take effect.

use crate::config::settings::{AllVersions, VersionsFile, VersionsTable};
use crate::values::sizes::{Size, parse_size};
use abreast_core::contents::ContentStore;
use abreast_core::{ChangeLog, Lease, SetId, VersionPolicy};
use abreast_source::OpenKept;
use abreast_source::versions::{Collector, KeptSet};
use anyhow::{Context as _, Result};
use clap::Args;
use std::sync::Arc;

/// The same as flags.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Versions")]
pub(crate) struct VersionArgs {
    /// Keep this many versions of each resource, the current one included, or `all` [default: none]
    #[arg(long, value_name = "N|all", env = "ABREAST_VERSIONS")]
    pub(crate) versions: Option<String>,
    /// Keep versions this long after they were superseded, such as 365d
    #[arg(long, value_name = "TIME")]
    pub(crate) versions_age: Option<String>,
    /// Keep at most this many bytes of versions, such as 10GB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) versions_size: Option<u64>,
}

impl VersionArgs {
    /// Converts the flags to the form of the configuration file.
    ///
    /// # Errors
    /// The count is not a number and not `all`.
    pub(crate) fn to_file(&self) -> Result<Option<VersionsFile>> {
        if self.versions.is_none() && self.versions_age.is_none() && self.versions_size.is_none() {
            return Ok(None);
        }
        let count = match self.versions.as_deref() {
            None | Some("all") => None,
            Some(count) => Some(count.parse().with_context(|| {
                format!("`--versions`: `{count}` is not a number and not `all`")
            })?),
        };
        let (age, size) = (self.versions_age.clone(), self.versions_size.map(Size));
        Ok(Some(VersionsFile::Table(VersionsTable { count, age, size })))
    }
}

/// The policy, checked; every problem is added to the others.
pub(crate) fn check(
    file: Option<VersionsFile>,
    problems: &mut Vec<String>,
) -> Option<VersionPolicy> {
    let table = match file? {
        VersionsFile::Count(count) => {
            VersionsTable { count: Some(count), ..VersionsTable::default() }
        }
        VersionsFile::All(AllVersions::All) => VersionsTable::default(),
        VersionsFile::Table(table) => table,
    };
    let mut policy = VersionPolicy { count: table.count, ..VersionPolicy::default() };
    if table.count == Some(0) {
        problems.push(
            "`versions.count`: 0, but the current version is always kept (help: leave `versions` out to keep none)"
                .to_owned(),
        );
    }
    if let Some(age) = table.age {
        match humantime::parse_duration(&age) {
            Ok(age) => policy.age = Some(age),
            Err(error) => {
                problems.push(format!(
                    "`versions.age`: `{age}` is not a duration: {error} (help: write it as `365d`)"
                ));
            }
        }
    }
    policy.bytes = table.size.map(|size| size.0);
    Some(policy)
}

/// Records in the log whether earlier versions of a set are stored; if so, returns the rule for their
/// removal.
pub(crate) fn keep(
    log: &dyn ChangeLog,
    set: SetId,
    slug: &str,
    policy: Option<VersionPolicy>,
) -> Result<Option<KeptSet>> {
    log.keep_versions(set, policy.is_some())
        .with_context(|| format!("cannot keep versions of the set `{slug}`"))?;
    Ok(policy.map(|policy| KeptSet { set, slug: slug.to_owned(), policy }))
}

/// How dumps read the bytes of earlier versions.
pub(crate) fn reader(contents: Option<&Arc<dyn ContentStore>>) -> Option<OpenKept> {
    let contents = Arc::clone(contents?);
    Some(Arc::new(move |id| contents.open_read(id).map_err(Into::into)))
}

/// Starts the removal of versions that no policy retains.
pub(crate) fn collect(
    log: Arc<dyn ChangeLog>,
    contents: Option<&Arc<dyn ContentStore>>,
    sets: Vec<KeptSet>,
    lease: Lease,
) -> Result<Option<Collector>> {
    let Some(contents) = contents else { return Ok(None) };
    let started = Collector::start(log, Arc::clone(contents), sets, lease);
    started.map(Some).context("cannot start the thread that collects old versions")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::time::Duration;

    fn checked(text: &str) -> (Option<VersionPolicy>, Vec<String>) {
        #[derive(Deserialize)]
        struct Set {
            versions: Option<VersionsFile>,
        }
        let mut problems = Vec::new();
        let set: Set = toml::from_str(text).unwrap();
        (check(set.versions, &mut problems), problems)
    }

    #[test]
    fn a_number_or_any_of_three_bounds_make_a_policy() {
        let policy = |count, days: Option<u64>, bytes| {
            let age = days.map(|days| Duration::from_secs(days * 86_400));
            (Some(VersionPolicy { count, age, bytes }), Vec::new())
        };
        assert_eq!(checked(""), (None, Vec::new()));
        assert_eq!(checked("versions = 10"), policy(Some(10), None, None));
        assert_eq!(checked("versions = {}"), policy(None, None, None));
        assert_eq!(
            checked("versions = { count = 2, age = \"365d\", size = \"10GB\" }"),
            policy(Some(2), Some(365), Some(10_000_000_000))
        );
    }

    #[test]
    fn every_problem_is_reported() {
        let (_, problems) = checked("versions = { count = 0, age = \"long\" }");
        assert_eq!(problems.len(), 2, "{problems:?}");
    }

    #[test]
    fn flags_equal_the_file() {
        let flags = |versions: Option<&str>, size: Option<u64>| VersionArgs {
            versions: versions.map(str::to_owned),
            versions_age: None,
            versions_size: size,
        };
        let policy = |flags: VersionArgs| check(flags.to_file().unwrap(), &mut Vec::new());
        assert_eq!(policy(flags(None, None)), None);
        assert_eq!(policy(flags(Some("all"), None)), Some(VersionPolicy::default()));
        assert_eq!(policy(flags(Some("3"), None)).and_then(|policy| policy.count), Some(3));
        assert_eq!(policy(flags(None, Some(1_000))).and_then(|policy| policy.bytes), Some(1_000));
        assert!(flags(Some("few"), None).to_file().is_err());
    }

    #[test]
    fn versions_are_a_number_all_or_a_table() {
        #[derive(Debug, Deserialize)]
        struct Set {
            #[expect(dead_code, reason = "it is only read")]
            versions: VersionsFile,
        }
        for (text, count) in [("5", Some(5)), ("\"all\"", None), ("{ count = 5 }", Some(5))] {
            let (policy, problems) = checked(&format!("versions = {text}"));
            assert_eq!((policy.unwrap().count, problems.len()), (count, 0));
        }
        for wrong in ["-1", "\"some\"", "true"] {
            let error = toml::from_str::<Set>(&format!("versions = {wrong}")).unwrap_err();
            assert!(error.message().starts_with("expected a number"), "{error}");
        }
    }
}
