//! A database that several nodes share, and its conditions.

use abreast_core::NodeRole;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Oldest version of PostgreSQL that is tested, as a number of the server.
const VERSION_MIN: u32 = 150_000;
/// Largest difference between the clocks of the database and of this machine, in milliseconds.
const CLOCK_MAX: i64 = 5_000;

/// A database that several nodes share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatabaseStatus {
    /// Whether the database answers. If not, the other values are unknown.
    pub reachable: bool,
    /// Version of the server, as it reports it.
    pub version: Option<String>,
    /// Version of the server as a number, such as 150004 for 15.4.
    pub version_number: Option<u32>,
    /// The clock of the database minus the clock of this machine, in milliseconds.
    pub clock_difference_ms: Option<i64>,
    /// Whether the database accepts no changes.
    pub read_only: Option<bool>,
    /// Whether the connection uses TLS; absent if the server is on this machine.
    pub tls: Option<bool>,
    /// The parameter `synchronous_commit` of the server.
    pub synchronous_commit: Option<String>,
    /// The parameter `fsync` of the server.
    pub fsync: Option<bool>,
    /// Versions of the tables; empty before the first start of a node.
    pub tables: Vec<TablesStatus>,
    /// Version of the tables that this program makes.
    pub newest_tables: Option<i64>,
    /// The nodes, at most 500.
    pub nodes: Vec<NodeStatus>,
    /// Leases of parts of the work of a Source, at most 500.
    pub leases: Vec<LeaseStatus>,
    /// Address of the bucket with the contents of all nodes; absent before the first start of a Source.
    #[serde(default)]
    pub contents: Option<String>,
}

/// The tables of a part of the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TablesStatus {
    /// Name of the part of the store.
    pub part: String,
    /// Version of the tables of the part.
    pub version: i64,
}

/// A node that shares a database with others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Name of the node, from its configuration.
    pub name: String,
    /// `alive`, or `lost` after the end of its lease.
    pub state: String,
    /// Time of the first renewal of the lease.
    pub started: String,
    /// End of the lease, by the clock of the database.
    pub until: String,
    /// Number of the 1,024 parts of the targets that the node delivers.
    pub shards: u64,
    /// Names of the roles of the node, such as `watch`.
    #[serde(default)]
    pub roles: Vec<String>,
}

/// The lease of a part of the work, of which one node at a time does each part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseStatus {
    /// Name of the part, such as `watch/papers`.
    pub name: String,
    /// Name of the node that does the part.
    pub node: String,
    /// `held`, or `over` if no node does the part.
    pub state: String,
    /// Time at which another node may take the lease.
    pub until: String,
    /// State of the watch in one word, such as `watching`; absent for other work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watch: Option<String>,
    /// Number of resources whose deletion the watch holds.
    #[serde(default)]
    pub held_deletions: u64,
    /// Keys of some of these resources.
    #[serde(default)]
    pub held: Vec<String>,
}

/// A property of a database that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseCheck {
    /// Stable code, such as `database.clock`.
    pub code: &'static str,
    /// Whether the property is good.
    pub ok: bool,
    /// Whether a problem can stop deliveries or lose data at any time.
    pub urgent: bool,
    /// Text of the result, for people.
    pub message: String,
    /// How to solve the problem.
    pub help: &'static str,
}

impl DatabaseStatus {
    /// Checks the properties of a database that answered.
    pub fn checks(&self) -> Vec<DatabaseCheck> {
        let mut checks = vec![self.version_check(), self.tables_check()];
        if let Some(difference) = self.clock_difference_ms {
            checks.push(DatabaseCheck {
                code: "database.clock",
                ok: difference.abs() <= CLOCK_MAX,
                urgent: true,
                message: format!(
                    "the clock of the database differs by {:.1} s from this machine",
                    difference as f64 / 1e3
                ),
                help: "synchronise the clocks of all machines, for example with chrony",
            });
        }
        if let Some(read_only) = self.read_only {
            checks.push(DatabaseCheck {
                code: "database.changes",
                ok: !read_only,
                urgent: true,
                message: if read_only {
                    "the database accepts no changes".to_owned()
                } else {
                    "the database accepts changes".to_owned()
                },
                help: "name the primary in `data`; with several hosts, add target_session_attrs=read-write",
            });
        }
        if let Some(commit) = &self.synchronous_commit {
            checks.push(DatabaseCheck {
                code: "database.commit",
                ok: commit != "off",
                urgent: false,
                message: format!("synchronous_commit = {commit}"),
                help: "a crash of the server loses accepted notifications: set synchronous_commit to on",
            });
        }
        if let Some(fsync) = self.fsync {
            checks.push(DatabaseCheck {
                code: "database.fsync",
                ok: fsync,
                urgent: false,
                message: format!("fsync = {}", if fsync { "on" } else { "off" }),
                help: "a crash of the machine damages the database: set fsync to on",
            });
        }
        if let Some(tls) = self.tls {
            checks.push(DatabaseCheck {
                code: "database.tls",
                ok: tls,
                urgent: false,
                message: if tls {
                    "the connection uses TLS".to_owned()
                } else {
                    "the connection to another machine does not use TLS".to_owned()
                },
                help: "switch TLS on in the server, and add sslmode=require to the URL",
            });
        }
        checks.push(self.names_check());
        checks.extend(self.roles_check());
        checks
    }

    fn version_check(&self) -> DatabaseCheck {
        let version = self.version.as_deref().unwrap_or("of an unknown version");
        DatabaseCheck {
            code: "database.version",
            ok: self.version_number.is_some_and(|number| number >= VERSION_MIN),
            urgent: false,
            message: format!("PostgreSQL {version}"),
            help: "versions before 15 are not tested: use a newer server",
        }
    }

    fn tables_check(&self) -> DatabaseCheck {
        let newest = self.newest_tables.unwrap_or(0);
        let is_newer = self.tables.iter().any(|tables| tables.version > newest);
        let shown = self.tables.iter().map(|tables| format!("{} {}", tables.part, tables.version));
        let shown: Vec<_> = shown.collect();
        DatabaseCheck {
            code: "database.tables",
            ok: !is_newer,
            urgent: true,
            message: if shown.is_empty() {
                "the database has no tables yet: the first start of a node makes them".to_owned()
            } else {
                format!("version of the tables: {}", shown.join(", "))
            },
            help: "a newer program made the tables: use that one",
        }
    }

    fn names_check(&self) -> DatabaseCheck {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for node in self.nodes.iter().filter(|node| node.state == "alive") {
            *counts.entry(&node.name).or_default() += 1;
        }
        let equal: Vec<_> = counts
            .iter()
            .filter(|(_, count)| **count > 1)
            .map(|(name, count)| format!("{count} nodes have the name `{name}`"))
            .collect();
        DatabaseCheck {
            code: "database.nodes",
            ok: equal.is_empty(),
            urgent: false,
            message: if equal.is_empty() {
                abreast_webtypes::count(counts.len() as u64, "node")
            } else {
                equal.join(", ")
            },
            help: "give each node its own `node`; after a crash, the former node is listed until the end of its lease",
        }
    }

    /// Checks that each role has a node; `None` if no node runs.
    fn roles_check(&self) -> Option<DatabaseCheck> {
        let alive: Vec<_> = self.nodes.iter().filter(|node| node.state == "alive").collect();
        let is_missing = |role: &NodeRole| {
            !alive.iter().any(|node| node.roles.iter().any(|name| name == role.name()))
        };
        let missing: Vec<_> = NodeRole::ALL.into_iter().filter(is_missing).collect();
        let shown: Vec<_> = missing.iter().map(|role| format!("`{role}`")).collect();
        (!alive.is_empty()).then(|| DatabaseCheck {
            code: "database.roles",
            ok: missing.is_empty(),
            urgent: true,
            message: if missing.is_empty() {
                "each role has a running node".to_owned()
            } else {
                format!("no running node has the role {}", shown.join(", "))
            },
            help: "start a node with the role: `roles` in the configuration, by default all",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> DatabaseStatus {
        DatabaseStatus {
            reachable: true,
            version: Some("15.4".to_owned()),
            version_number: Some(150_004),
            clock_difference_ms: Some(-5_000),
            read_only: Some(false),
            tls: None,
            synchronous_commit: Some("on".to_owned()),
            fsync: Some(true),
            tables: tables(1),
            newest_tables: Some(1),
            nodes: ["a", "b"].map(|name| node(name, "alive")).into(),
            leases: Vec::new(),
            contents: None,
        }
    }

    fn node(name: &str, state: &str) -> NodeStatus {
        let roles = NodeRole::ALL.map(|role| role.name().to_owned()).into();
        let (name, state) = (name.to_owned(), state.to_owned());
        NodeStatus { name, state, roles, ..NodeStatus::default() }
    }

    fn tables(version: i64) -> Vec<TablesStatus> {
        vec![TablesStatus { part: "store".to_owned(), version }]
    }

    fn bad(status: &DatabaseStatus) -> Vec<&'static str> {
        status.checks().into_iter().filter(|check| !check.ok).map(|check| check.code).collect()
    }

    #[test]
    fn each_fault_of_a_database_is_found() {
        assert_eq!(bad(&good()), [""; 0]);
        let lost = vec![node("a", "alive"), node("a", "lost")];
        assert_eq!(bad(&DatabaseStatus { nodes: lost, ..good() }), [""; 0]);
        assert_eq!(bad(&DatabaseStatus { nodes: Vec::new(), ..good() }), [""; 0]);
        let only = |roles: [&str; 2]| NodeStatus {
            roles: roles.map(str::to_owned).into(),
            ..node(roles[0], "alive")
        };
        let roles = vec![only(["publish", "api"]), only(["watch", "api"]), node("a", "lost")];
        let off = Some("off".to_owned());
        let equal = vec![node("a", "alive"), node("a", "alive")];
        for (status, code) in [
            (DatabaseStatus { version_number: Some(140_011), ..good() }, "database.version"),
            (DatabaseStatus { clock_difference_ms: Some(5_001), ..good() }, "database.clock"),
            (DatabaseStatus { clock_difference_ms: Some(-5_001), ..good() }, "database.clock"),
            (DatabaseStatus { read_only: Some(true), ..good() }, "database.changes"),
            (DatabaseStatus { tls: Some(false), ..good() }, "database.tls"),
            (DatabaseStatus { synchronous_commit: off, ..good() }, "database.commit"),
            (DatabaseStatus { fsync: Some(false), ..good() }, "database.fsync"),
            (DatabaseStatus { tables: tables(2), ..good() }, "database.tables"),
            (DatabaseStatus { nodes: equal, ..good() }, "database.nodes"),
            (DatabaseStatus { nodes: roles, ..good() }, "database.roles"),
        ] {
            assert_eq!(bad(&status), [code]);
        }
    }
}
