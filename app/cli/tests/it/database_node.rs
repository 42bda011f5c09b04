//! One node of a hub, whose store is in a database.

use crate::world::{abreast, get};
use abreast_testkit::http::unused_address;
use abreast_testkit::{Running, eventually};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A running `abreast hub`, with its configuration and its log in a folder.
pub(crate) struct Node {
    pub(crate) running: Running,
    /// `127.0.0.1:port`
    pub(crate) address: String,
    log: PathBuf,
}

impl Node {
    /// Writes a configuration with this name, and more lines of the table `database`.
    pub(crate) fn configure(place: &Path, name: &str, url: &str, database: &str) -> PathBuf {
        let config = place.join(format!("{name}.toml"));
        let scratch = place.join(format!("scratch-{name}"));
        let text = format!(
            "data = \"{url}\"\nscratch = \"{}\"\nnode = \"{name}\"\nbase_url = \"http://hub.example.org/\"\n\
             [hub]\nallow_topics = [\"http://example.org/\"]\nprivate_callbacks = true\n[database]\n{database}\n",
            scratch.display()
        );
        std::fs::write(&config, text).unwrap();
        config
    }

    /// Starts a node, and waits until it is ready.
    pub(crate) fn start(place: &Path, name: &str, url: &str, database: &str) -> Self {
        let config = Self::configure(place, name, url, database);
        Self::start_from(&config, &place.join(format!("{name}.log")))
    }

    /// Starts a node with a configuration file, and waits until it is ready.
    pub(crate) fn start_from(config: &Path, log: &Path) -> Self {
        let address = unused_address().to_string();
        let mut command = abreast();
        command.arg("hub").arg("--config").arg(config).args(["--listen", &address]);
        command.stderr(File::options().create(true).append(true).open(log).unwrap());
        let node = Self { running: Running::start(&mut command), address, log: log.to_owned() };
        eventually("the node is ready", || node.readiness().0 == 200);
        node
    }

    /// Status and text of `/readyz`; 0 without an answer.
    pub(crate) fn readiness(&self) -> (u16, String) {
        let (status, body) = get(&self.address, "/readyz").unwrap_or_default();
        (status, String::from_utf8(body).unwrap())
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Sends a signal to the process.
    pub(crate) fn signal(&self, signal: &str) {
        let pid = self.running.0.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }
}
