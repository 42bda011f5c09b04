//! The store in a PostgreSQL database, which several nodes share: `data` and `[database]`.

use crate::config::access::Password;
use crate::config::set::SetConfig;
use crate::config::settings::File;
use crate::program::errors::UsageError;
use crate::program::small_file;
use abreast_core::{NodeRole, NodeRoles};
use anyhow::Result;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Lease of a node that names none.
const LEASE: Duration = Duration::from_secs(15);
/// Least length of contents to which clients may be redirected: a redirect costs a second request.
const REDIRECT_MIN: u64 = 1 << 20;
/// Shortest and longest lease.
const LEASES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(600)];

/// The URL of a database, if `data` is one and not a folder.
pub(crate) fn database_url(data: &Path) -> Option<&str> {
    let text = data.to_str()?;
    ["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)).then_some(text)
}

/// The help of commands that a server can carry out as well.
pub(crate) const THROUGH_A_SERVER: &str = "go through a node: --server URL";

/// The refusal of a database, where a command needs a folder.
pub(crate) fn refusal(help: &str) -> anyhow::Error {
    UsageError(format!(
        "the store is in a database, and this command needs a store in a folder (help: {help})"
    ))
    .into()
}

/// The flags of a node, which take precedence over the keys of the file.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Several nodes")]
pub(crate) struct NodeArgs {
    /// Folder for temporary files of this node, if the store is in a database
    #[arg(long, value_name = "DIR", env = "ABREAST_SCRATCH")]
    scratch: Option<PathBuf>,
    /// Name of this node, if several share a database [default: the name of the machine]
    #[arg(long, value_name = "NAME", env = "ABREAST_NODE")]
    node: Option<String>,
}

/// The flags of a node of a Source, which take precedence over the keys of the file.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Several nodes")]
pub(crate) struct SourceNodeArgs {
    /// Bucket for the contents of sets, if the store is in a database: s3://BUCKET/PREFIX
    #[arg(long, value_name = "URL", env = "ABREAST_CONTENTS")]
    contents: Option<String>,
    /// Work of this node, separated by commas: publish, api, hub, watch [default: all]
    #[arg(long, value_name = "ROLES", env = "ABREAST_ROLES", value_delimiter = ',')]
    roles: Vec<String>,
}

impl SourceNodeArgs {
    /// Writes the flags over a file.
    pub(crate) fn over(&self, file: &mut File) {
        if self.contents.is_some() {
            file.contents.clone_from(&self.contents);
            file.origins.forget("contents");
        }
        // An empty variable does not replace the roles of the file.
        if self.roles.iter().any(|role| !role.is_empty()) {
            file.roles = Some(self.roles.clone());
            file.origins.forget("roles");
        }
    }
}

impl NodeArgs {
    /// Writes the flags over a file.
    pub(crate) fn over(&self, file: &mut File) {
        if self.scratch.is_some() {
            file.scratch.clone_from(&self.scratch);
            file.origins.forget("scratch");
        }
        if self.node.is_some() {
            file.node.clone_from(&self.node);
            file.origins.forget("node");
        }
    }
}

/// The database, and this node.
#[derive(Clone, Debug)]
#[cfg_attr(
    not(feature = "postgres"),
    expect(dead_code, reason = "only the feature `postgres` connects")
)]
pub(crate) struct DatabaseConfig {
    pub(crate) url: String,
    pub(crate) password: Option<Password>,
    pub(crate) ca_file: Option<PathBuf>,
    /// The bucket with the contents of sets, if there is one.
    pub(crate) contents: Option<String>,
    /// Length from which contents are answered by a redirect to the bucket.
    pub(crate) redirect_from: Option<u64>,
    /// The name of this node.
    pub(crate) node: String,
    pub(crate) lease: Duration,
    pub(crate) roles: NodeRoles,
}

/// Why no database can be opened, in programs without PostgreSQL.
pub(crate) const WITHOUT: &str = "this program was built without PostgreSQL";

impl DatabaseConfig {
    /// The database of a configuration file; `None` if the store is in a folder.
    pub(crate) fn check(file: &File, problems: &mut Vec<String>) -> Option<Self> {
        let own = file.database.clone().unwrap_or_default();
        let roles = check_roles(file.roles.as_deref(), problems);
        let Some(url) = file.data.as_deref().and_then(database_url) else {
            let keys = [
                file.database.is_some(),
                file.node.is_some(),
                file.scratch.is_some(),
                file.contents.is_some(),
                file.contents_redirect.is_some(),
            ];
            if keys.contains(&true) {
                problems.push(
                    "`data`: `database`, `node`, `scratch`, `contents` and `contents_redirect` are for a store in a database (help: \
                     data = \"postgres://USER@HOST/NAME\", or leave them out)"
                        .to_owned(),
                );
            }
            if roles != NodeRoles::default() {
                problems.push(
                    "`roles`: a store in a folder has one process, which does all work (help: leave out `roles`, or share a database: \
                     docs/nodes.md)"
                        .to_owned(),
                );
            }
            return None;
        };
        #[cfg(feature = "postgres")]
        if let Err(fault) = abreast_store::check_url(url) {
            problems.push(format!("`data`: {} (help: {})", fault.message, fault.help));
        }
        if file.scratch.is_none() {
            problems.push(
                "`scratch`: a node needs a folder for temporary files (help: for example scratch = \"/var/cache/abreast\")"
                    .to_owned(),
            );
        }
        let password = match (own.password_file, own.password_command) {
            (Some(_), Some(_)) => {
                problems.push(
                    "`database`: two passwords are given (help: give either `password_file` or `password_command`)"
                        .to_owned(),
                );
                None
            }
            (Some(file), None) => Some(Password::File(file)),
            (None, command) => command.map(Password::Command),
        };
        if let Some(path) = &own.ca_file {
            small_file::problem_of_certificates("database.ca_file", path, problems);
        }
        let lease = own.lease.as_deref().map_or(Ok(LEASE), humantime::parse_duration);
        let lease = lease.ok().filter(|lease| (LEASES[0]..=LEASES[1]).contains(lease));
        if lease.is_none() {
            problems.push("`database.lease`: it is not a time of 2s to 10m".to_owned());
        }
        let name = file.node.clone().unwrap_or_else(host_name);
        if !(1..=100).contains(&name.len()) || name.chars().any(char::is_control) {
            problems.push("`node`: a name has 1 to 100 characters".to_owned());
        }
        if cfg!(not(feature = "postgres")) {
            problems.push(format!(
                "`data`: {WITHOUT} (help: build it with the default features, or use a released one)"
            ));
        }
        let contents = file.contents.clone();
        if let Some(url) = contents.as_deref().filter(|url| !is_bucket(url)) {
            problems.push(format!(
                "`contents`: `{url}` is not the address of a bucket (help: write s3://BUCKET/PREFIX)"
            ));
        }
        let redirect_from = file.contents_redirect.map(|size| size.0);
        if redirect_from.is_some_and(|least| least < REDIRECT_MIN) {
            problems.push("`contents_redirect`: out of range (help: 1MiB or more)".to_owned());
        }
        if redirect_from.is_some() && contents.is_none() {
            problems.push(
                "`contents_redirect`: there is no bucket to redirect to (help: give `contents`, or leave it out)".to_owned(),
            );
        }
        Some(Self {
            url: url.to_owned(),
            password,
            ca_file: own.ca_file,
            contents,
            redirect_from,
            node: name,
            lease: lease.unwrap_or(LEASE),
            roles,
        })
    }

    /// Checks a set that several nodes publish.
    pub(crate) fn check_set(&self, set: &SetConfig, problems: &mut Vec<String>) {
        let has_files = set.dumps.is_some() || set.archives.is_some();
        if (set.keeps_contents(true) || has_files) && self.contents.is_none() {
            problems.push(
                "`contents`: the set has contents or files, which all nodes need (help: give `contents`, an address s3://BUCKET/PREFIX, at the top of the file)"
                    .to_owned(),
            );
        }
    }

    /// The database of a configuration file, for commands that need no more of the file.
    ///
    /// # Errors
    /// A setting of the database is wrong.
    pub(crate) fn of_file(file: &File) -> Result<Option<Self>> {
        let mut problems = Vec::new();
        let database = Self::check(file, &mut problems);
        if problems.is_empty() {
            return Ok(database);
        }
        Err(crate::config::faults::refused(file.origins.place("", problems).collect()))
    }

    /// The database at a URL of the command line.
    pub(crate) fn of_url(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            password: None,
            ca_file: None,
            contents: None,
            redirect_from: None,
            node: host_name(),
            lease: LEASE,
            roles: NodeRoles::default(),
        }
    }

    /// The URL for messages, without a password.
    pub(crate) fn shown(&self) -> String {
        // A parameter may be a password.
        let url = self.url.split('?').next().unwrap_or_default();
        crate::values::hidden_logins::shown(url)
    }
}

/// The roles in a configuration file, by default all.
fn check_roles(names: Option<&[String]>, problems: &mut Vec<String>) -> NodeRoles {
    let Some(names) = names else { return NodeRoles::default() };
    NodeRoles::parse(names).unwrap_or_else(|error| {
        let all = NodeRole::ALL.map(NodeRole::name).join(", ");
        problems.push(format!("`roles`: {error} (help: a list of {all}, or leave it out for all)"));
        NodeRoles::default()
    })
}

/// Whether a text is `s3://BUCKET` or `s3://BUCKET/PREFIX`.
fn is_bucket(url: &str) -> bool {
    url::Url::parse(url).is_ok_and(|url| url.scheme() == "s3" && url.has_host())
}

/// The name of this machine.
fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> (Option<DatabaseConfig>, Vec<String>) {
        let mut problems = Vec::new();
        let database = DatabaseConfig::check(&File::parse(text).unwrap(), &mut problems);
        (database, problems)
    }

    #[test]
    fn a_store_in_a_folder_has_no_database() {
        let (database, found) = problems("data = \"/var/lib/abreast\"\n");
        assert!(database.is_none() && found.is_empty(), "{found:?}");
        let (_, found) = problems("data = \"/var/lib/abreast\"\nnode = \"a\"\n");
        assert!(found[0].contains("for a store in a database"), "{found:?}");
    }

    #[test]
    fn a_database_needs_a_folder_for_temporary_files() {
        let url = "data = \"postgresql://abreast@db.example.org/abreast\"\n";
        let (_, found) = problems(url);
        assert!(found[0].starts_with("`scratch`: a node needs a folder"), "{found:?}");
        let (database, found) = problems(&format!(
            "{url}scratch = \"/var/cache/abreast\"\nnode = \"a\"\n[database]\nlease = \"3s\"\n"
        ));
        assert!(found.is_empty(), "{found:?}");
        let database = database.unwrap();
        assert_eq!((&*database.node, database.lease), ("a", Duration::from_secs(3)));
        let (_, found) = problems(&format!(
            "{url}scratch = \"/x\"\n[database]\nlease = \"1s\"\npassword_file = \"/a\"\npassword_command = \"b\"\n"
        ));
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn redirects_need_a_bucket_and_large_contents() {
        let url = "data = \"postgres://abreast@db.example.org/abreast\"\nscratch = \"/x\"\n";
        let bucket = format!("{url}contents = \"s3://papers\"\n");
        let (database, found) = problems(&format!("{bucket}contents_redirect = \"16MiB\"\n"));
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(database.unwrap().redirect_from, Some(16 << 20));
        let (_, found) = problems(&format!("{bucket}contents_redirect = \"1MB\"\n"));
        assert_eq!(found, ["`contents_redirect`: out of range (help: 1MiB or more)"]);
        let (_, found) = problems(&format!("{url}contents_redirect = \"1MiB\"\n"));
        assert!(found[0].starts_with("`contents_redirect`: there is no bucket"), "{found:?}");
        let (_, found) = problems("data = \"/a\"\ncontents_redirect = \"1MiB\"\n");
        assert!(found[0].contains("for a store in a database"), "{found:?}");
    }

    #[test]
    fn roles_of_a_node_are_checked() {
        let url = "data = \"postgres://abreast@db.example.org/abreast\"\nscratch = \"/x\"\n";
        let (database, found) = problems(&format!("{url}roles = [\"watch\", \"api\"]\n"));
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(database.unwrap().roles.to_string(), "api, watch");
        assert_eq!(problems(url).0.unwrap().roles, NodeRoles::default());
        let help = "(help: a list of publish, api, hub, watch, or leave it out for all)";
        for (list, fault) in [
            ("[]", "the list is empty"),
            ("[\"hubs\"]", "`hubs` is not a role"),
            ("[\"hub\", \"hub\"]", "`hub` is in the list twice"),
        ] {
            let (_, found) = problems(&format!("{url}roles = {list}\n"));
            assert_eq!(found, [format!("`roles`: {fault} {help}")]);
        }
        let (_, found) = problems("data = \"/a\"\nroles = [\"hub\"]\n");
        assert!(found[0].starts_with("`roles`: a store in a folder has one process"), "{found:?}");
        let all = "data = \"/a\"\nroles = [\"hub\", \"api\", \"watch\", \"publish\"]\n";
        assert!(problems(all).1.is_empty());
    }

    #[test]
    #[cfg(feature = "postgres")]
    fn parameters_of_the_url_are_checked() {
        let (_, found) = problems(
            "data = \"postgres://a:hidden-word@db.example.org/a?sslmod=require\"\nscratch = \"/x\"\n",
        );
        assert_eq!(
            found,
            [
                "`data`: the URL of the database has the unknown parameter `sslmod` (help: did you mean `sslmode`?)"
            ]
        );
    }

    #[test]
    fn passwords_are_not_shown() {
        for url in [
            "postgres://abreast:hidden-word@db.example.org/abreast",
            "postgres://abreast:hidden-word@one.example:5432,two.example:5433/abreast",
            "postgres://db.example.org/abreast?user=a&password=hidden-word",
        ] {
            let shown = DatabaseConfig::of_url(url).shown();
            assert!(!shown.contains("hidden-word") && shown.contains("/abreast"), "{shown}");
        }
    }
}
