//! Programs and collections that the tests use, and which of them are installed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};

use anyhow::{Result, bail};

use crate::process::{find_program, lock, run_quietly, target};
use crate::{apt, python, testdata, wheel};

/// The server of SPARQL.
const OXIGRAPH: &str = "ABREAST_TEST_OXIGRAPH";

/// A Python that imports Airflow and Dagster.
const SCHEDULERS: &str = "ABREAST_TEST_SCHEDULERS";

/// Programs and collections for a run of the tests.
#[derive(Default)]
pub(crate) struct Tools {
    /// Environment variable and the path it is given.
    pub(crate) found: Vec<(&'static str, PathBuf)>,
    /// Missing tools.
    pub(crate) missing: Vec<Missing>,
}

/// Something the tests would use and cannot.
pub(crate) struct Missing {
    pub(crate) what: &'static str,
    pub(crate) variables: Vec<&'static str>,
    pub(crate) reason: String,
}

impl Tools {
    /// Searches for everything, installs what is not there, and keeps what could not be fetched
    /// with the reason.
    pub(crate) fn prepare() -> Result<Self> {
        let _lock = lock()?;
        let mut tools = Self::default();
        tools.add("the web server nginx", &["ABREAST_TEST_NGINX"], || {
            Ok(vec![program("nginx", "nginx")?])
        });
        tools.add("the web server Caddy", &["ABREAST_TEST_CADDY"], || {
            Ok(vec![program("caddy", "caddy")?])
        });
        tools.add("the web server Apache", &["ABREAST_TEST_APACHE"], || {
            Ok(vec![program("apache2", "apache2-bin")?])
        });
        tools.add("curl", &["ABREAST_TEST_CURL"], || Ok(vec![program("curl", "curl")?]));
        tools.add("jq", &["ABREAST_TEST_JQ"], || Ok(vec![program("jq", "jq")?]));
        tools.add("SQLite", &["ABREAST_TEST_SQLITE3"], || Ok(vec![program("sqlite3", "sqlite3")?]));
        tools
            .add("OpenSSL", &["ABREAST_TEST_OPENSSL"], || Ok(vec![program("openssl", "openssl")?]));
        tools.add("the NATS server", &["ABREAST_TEST_NATS"], || {
            Ok(vec![program("nats-server", "nats-server")?])
        });
        tools.add("the Kafka client kcat", &["ABREAST_TEST_KCAT"], || {
            Ok(vec![program("kcat", "kcat")?])
        });
        tools.add("the XMPP server Prosody", &["ABREAST_TEST_PROSODY"], || {
            Ok(vec![program("prosody", "prosody")?])
        });
        tools.add("the browser Chromium", &["ABREAST_TEST_CHROMIUM"], || {
            Ok(vec![program("chromium", "chromium")?])
        });
        tools.add("the database PostgreSQL", &["ABREAST_TEST_POSTGRES"], || Ok(vec![postgres()?]));
        tools.add("the proxy PgBouncer", &["ABREAST_TEST_PGBOUNCER"], || {
            Ok(vec![program("pgbouncer", "pgbouncer")?])
        });
        tools.add("libfaketime", &["ABREAST_TEST_FAKETIME"], || Ok(vec![faketime()?]));
        tools.add("strace", &["ABREAST_TEST_STRACE"], || Ok(vec![strace()?]));
        tools.add("rsync", &["ABREAST_TEST_RSYNC"], || Ok(vec![program("rsync", "rsync")?]));
        tools.add(
            "programs in Python: resync for ResourceSync, Flask-WebSub for hubs, slixmpp for XMPP, pywb for archives, memento_client for versions, \
             moto for S3, oxigraph for SPARQL, playwright and axe for pages, duckdb, pandas and polars for tables, nats and confluent_kafka for queues",
            &["ABREAST_TEST_PYTHON", "ABREAST_TEST_RESYNC_SYNC", "ABREAST_TEST_RESYNC_BUILD", "ABREAST_TEST_S3", OXIGRAPH],
            || {
                let bin = python::environment()?;
                Ok(["python", "resync-sync", "resync-build", "moto_server", "oxigraph"].map(|name| bin.join(name)).to_vec())
            },
        );
        // The installation takes a minute, in which the compiler works.
        let schedulers =
            (std::env::var_os(SCHEDULERS).is_none()).then(|| thread::spawn(python::schedulers));
        tools.add("the package for Python", &["ABREAST_TEST_WHEEL"], || {
            Ok(vec![wheel::build_for_tests(&target().join("wheels-of-tests"))?])
        });
        tools.add("the schedulers Airflow and Dagster", &[SCHEDULERS], || {
            let bin = match schedulers.map(JoinHandle::join) {
                Some(Ok(bin)) => bin?,
                _ => bail!("the installation broke off"),
            };
            Ok(vec![bin.join("python")])
        });
        tools.add("this program, which packs", &["ABREAST_TEST_XTASK"], || {
            Ok(vec![std::env::current_exe()?])
        });
        for collection in &testdata::COLLECTIONS {
            tools.add(collection.title, &[collection.variable], || Ok(vec![collection.prepare()?]));
        }
        Ok(tools)
    }

    fn add(
        &mut self,
        what: &'static str,
        variables: &[&'static str],
        find: impl FnOnce() -> Result<Vec<PathBuf>>,
    ) {
        // A person may point at their own copy; what is set is used as it is.
        let set: Vec<PathBuf> =
            variables.iter().filter_map(std::env::var_os).map(PathBuf::from).collect();
        let paths = if set.len() == variables.len() { Ok(set) } else { find() };
        match paths {
            Ok(paths) => self.found.extend(variables.iter().copied().zip(paths)),
            Err(error) => {
                self.missing.push(Missing {
                    what,
                    variables: variables.to_vec(),
                    reason: format!("{error:#}"),
                });
            }
        }
    }
}

/// A strace that the system allows to trace other processes.
fn strace() -> Result<PathBuf> {
    let strace = program("strace", "strace")?;
    run_quietly(Command::new(&strace).args(["-f", "-c", "-o", "/dev/null", "true"]))?;
    Ok(strace)
}

fn program(name: &str, package: &str) -> Result<PathBuf> {
    if let Some(path) = find_program(name) {
        return Ok(path);
    }
    apt::install(&[package])?;
    match find_program(name) {
        Some(path) => Ok(path),
        None => bail!("the package {package} is installed, and there is still no program `{name}`"),
    }
}

/// The library that changes the clock of a program.
fn faketime() -> Result<PathBuf> {
    const LIBRARY: &str = "faketime/libfaketimeMT.so.1";
    let find = || {
        let folders = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
        folders.map(|folder| folder.path().join(LIBRARY)).find(|library| library.is_file())
    };
    if let Some(library) = find() {
        return Ok(library);
    }
    apt::install(&["faketime"])?;
    match find() {
        Some(library) => Ok(library),
        None => bail!("the package faketime is installed, and there is no `{LIBRARY}` in /usr/lib"),
    }
}

/// The folder with the programs of PostgreSQL's server, which Debian has outside of `PATH`.
fn postgres() -> Result<PathBuf> {
    let find = || {
        let installed = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let newest = installed
            .map(|version| version.path().join("bin"))
            .filter(|folder| is_whole(folder))
            .max();
        newest.or_else(|| {
            find_program("initdb")?.parent().filter(|folder| is_whole(folder)).map(PathBuf::from)
        })
    };
    if let Some(folder) = find() {
        return Ok(folder);
    }
    apt::install(&["postgresql"])?;
    match find() {
        Some(folder) => Ok(folder),
        None => {
            bail!("the package postgresql is installed, and there is still no program `initdb`")
        }
    }
}

/// Whether a folder has all programs that the tests start.
fn is_whole(folder: &Path) -> bool {
    ["initdb", "postgres", "psql"].iter().all(|program| folder.join(program).is_file())
}
