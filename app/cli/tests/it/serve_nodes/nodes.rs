//! Nodes of a Source with everything that they need, and clients.

use super::balancer::Balancer;
use crate::world::{abreast, former_abreast, get};
use crate::xmpp::publishing_account;
use abreast_testkit::http::unused_address;
use abreast_testkit::network::{Network, Place};
use abreast_testkit::postgres::Postgres;
use abreast_testkit::relay::Relay;
use abreast_testkit::s3::{S3Server, settings};
use abreast_testkit::xmpp::Prosody;
use abreast_testkit::{Running, eventually_ok, eventually_some, run};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

pub(super) const NODES: usize = 3;
/// Where the contents of all nodes are.
pub(super) const CONTENTS: &str = "s3://bucket/abreast";
/// The lease of a node, in seconds.
pub(super) const LEASE: u64 = 3;
/// The node whose keys of the bucket are in a file, and their names.
const WITH_FILE: usize = 1;
const KEYS: [&str; 2] = ["aws_access_key_id", "aws_secret_access_key"];
/// How long a connection to a node may take.
const CONNECTED: Duration = Duration::from_secs(1);
/// Of so many commits, one is lost, and of another the answer.
const LOST_COMMITS: u64 = 300;
/// The clock of each node, by libfaketime.
const CLOCKS: [&str; NODES] = ["+0", "+1h", "-1h"];

/// Nodes of a Source, with their load balancer, database and bucket.
pub(super) struct Nodes {
    pub(super) place: PathBuf,
    pub(super) bucket: S3Server,
    /// Between each node and the database.
    pub(super) relays: Vec<Relay>,
    pub(super) database: String,
    addresses: Vec<SocketAddr>,
    /// The machine of each node, if it is not this one.
    places: Vec<Place>,
    /// The roles of each node, if they have different ones.
    roles: Option<[&'static str; NODES]>,
    /// More lines of the configuration file.
    settings: &'static str,
    pub(super) running: Vec<Option<Running>>,
    pub(super) balancer: Balancer,
    pub(super) token: String,
    /// The lines of the configuration that publish over XMPP.
    publishing: String,
    /// Whether each node runs the program under test, not its earlier version.
    pub(super) is_upgraded: [bool; NODES],
}

/// Settings of nodes in addition to those of all tests.
#[derive(Default)]
pub(super) struct More<'m> {
    /// The roles of each node, if they have different ones.
    pub(super) roles: Option<[&'static str; NODES]>,
    /// Lines at the start of the configuration file.
    pub(super) settings: &'static str,
    /// The server over which the nodes publish.
    pub(super) xmpp: Option<&'m Prosody>,
    /// The network with a machine for each node, and the number of the machine of the bucket.
    pub(super) network: Option<(&'m Network, usize)>,
}

impl Nodes {
    pub(super) fn start(test: &str, place: &Path, server: &Postgres) -> Option<Self> {
        Self::start_with(test, place, server, More::default())
    }

    pub(super) fn start_with(
        test: &str,
        place: &Path,
        server: &Postgres,
        More { roles, settings, xmpp, network }: More<'_>,
    ) -> Option<Self> {
        let bucket = match network {
            None => S3Server::start(test)?,
            Some((network, machine)) => S3Server::start_at(test, network.place(machine))?,
        };
        let places: Vec<Place> = network
            .map(|(network, _)| (0..NODES).map(|number| network.place(number).clone()).collect())
            .unwrap_or_default();
        let database = server.create("serve");
        let token = ["token", "create", "--name", "writer", "--scope", "admin", "--data"];
        // The program under test would upgrade the tables.
        let mut program = former_abreast().unwrap_or_else(abreast);
        let token = run(program.args(token).arg(&database));
        assert!(token.status.success(), "{}", String::from_utf8_lossy(&token.stderr));
        let token = String::from_utf8(token.stdout).unwrap().trim().to_owned();
        let address = |number| {
            let own = unused_address();
            places.get(number).map_or(own, |place: &Place| place.address(own.port()))
        };
        let addresses: Vec<_> = (0..NODES).map(address).collect();
        let balancer = Balancer::start(addresses.clone());
        let running = (0..NODES).map(|_| None).collect();
        let place = place.to_owned();
        for folder in ["papers", "people"] {
            std::fs::create_dir(place.join(folder)).unwrap();
        }
        let relay = |number| Relay::start(server.port(), LOST_COMMITS, number as u64 + 1);
        // Machines of a network reach the database itself.
        let relays = (0..if places.is_empty() { NODES } else { 0 }).map(relay).collect();
        let publishing = xmpp.map(|server| publishing_account(server, &place)).unwrap_or_default();
        let mut nodes = Self {
            place,
            bucket,
            relays,
            database,
            addresses,
            places,
            roles,
            settings,
            running,
            balancer,
            token,
            publishing,
            is_upgraded: [false; NODES],
        };
        (0..NODES).for_each(|number| nodes.run(number));
        (0..NODES).for_each(|number| nodes.until_ready(number));
        Some(nodes)
    }

    pub(super) fn papers(&self) -> PathBuf {
        self.place.join("papers")
    }

    pub(super) fn people(&self) -> PathBuf {
        self.place.join("people")
    }

    /// The URL of the load balancer.
    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.balancer.address)
    }

    /// The command of a node whose contents are in this bucket.
    pub(super) fn command(&self, number: usize, contents: &str) -> Command {
        let relay = self.relays.get(number);
        let database =
            relay.map_or_else(|| self.database.clone(), |relay| relay.url(&self.database));
        let (config, scratch) = (
            self.place.join(format!("{number}.toml")),
            self.place.join(format!("scratch-{number}")),
        );
        let text = format!(
            "{}data = \"{}\"\ncontents = \"{contents}\"\nscratch = \"{}\"\nnode = \"{number}\"\nbase_url = \"{}\"\n\
             [database]\nlease = \"{LEASE}s\"\n[api]\nwrite = true\n[hub]\nprivate_callbacks = true\n{}\
             [[set]]\nname = \"papers\"\nfolder = \"{}\"\ndebounce = \"30ms\"\ndumps = {{ changes = true }}\n\
             [[set]]\nname = \"notes\"\norigin = \"records\"\n\
             [[set]]\nname = \"people\"\norigin = \"rdf\"\nfolder = \"{}\"\nnamespace = \"http://example.org/p/\"\n\
             [[set]]\nname = \"things\"\norigin = \"rdf\"\nnamespace = \"http://example.org/t/\"\n",
            self.settings,
            database,
            scratch.display(),
            self.url(),
            self.publishing,
            self.papers().display(),
            self.place.join("people").display(),
        );
        std::fs::write(&config, text).unwrap();
        let is_upgraded = self.is_upgraded.get(number).is_none_or(|upgraded| *upgraded);
        let former = if is_upgraded { None } else { former_abreast() };
        let is_former = former.is_some();
        let mut command = former.unwrap_or_else(abreast);
        // One node has its keys in a file, and none has certificates of the system, as in a container. An
        // earlier version may need both.
        let has_file = number == WITH_FILE && !is_former;
        for (name, value) in settings(self.bucket.address()) {
            if !has_file || !KEYS.contains(&&*name) {
                command.env(name.to_uppercase(), value);
            }
        }
        if has_file {
            let file = self.place.join("credentials");
            let lines = KEYS.map(|key| format!("{key} = test\n")).concat();
            std::fs::write(&file, format!("[default]\n{lines}")).unwrap();
            command.env("AWS_SHARED_CREDENTIALS_FILE", file);
        }
        if !is_former {
            for name in ["SSL_CERT_FILE", "SSL_CERT_DIR"] {
                command.env(name, self.place.join("missing"));
            }
        }
        if let (Some(library), Some(clock)) =
            (std::env::var_os("ABREAST_TEST_FAKETIME"), CLOCKS.get(number))
        {
            command.env("LD_PRELOAD", library).env("FAKETIME", clock);
            command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("NO_FAKE_STAT", "1");
        }
        command.arg("serve").arg("--config").arg(config);
        command
    }

    pub(super) fn run(&mut self, number: usize) {
        let log = self.place.join(format!("{number}.log"));
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        let mut command = self.command(number, CONTENTS);
        command.args(["--listen", &self.addresses[number].to_string()]);
        if let Some(roles) = self.roles {
            command.args(["--roles", roles[number]]);
        }
        if let Some(place) = self.places.get(number) {
            command = place.command(&command, None);
        }
        let node = Running::start(command.stdout(Stdio::null()).stderr(log));
        self.running[number] = Some(node);
    }

    /// The node with a lease.
    pub(super) fn holder(server: &Postgres, lease: &str) -> usize {
        let sql = format!(
            "SELECT node FROM abreast.leases WHERE name = '{lease}' \
             AND until > extract(epoch FROM clock_timestamp()) * 1000000"
        );
        eventually_some("a node has the lease", || server.sql("serve", &sql).trim().parse().ok())
    }

    pub(super) fn until_ready(&self, number: usize) {
        eventually_ok("the node is ready", || {
            match get(&self.addresses[number].to_string(), "/readyz") {
                Some((200, text)) if text == b"ready\n" => Ok(()),
                answer => {
                    let log = std::fs::read_to_string(self.place.join(format!("{number}.log")));
                    Err(format!("{answer:?}\n{}", log.unwrap_or_default()))
                }
            }
        });
    }

    pub(super) fn signal(&self, number: usize, signal: &str) {
        send_signal(self.running[number].as_ref().unwrap().0.id(), signal);
    }

    pub(super) fn client(&self) -> Client {
        let (addresses, host) = (self.addresses.clone(), self.balancer.address);
        Client { addresses, host, token: self.token.clone() }
    }

    /// The answer of a node that must answer.
    pub(super) fn read(&self, number: usize, path: &str) -> (u16, Vec<u8>) {
        get(&self.addresses[number].to_string(), path).unwrap()
    }

    /// Whether all nodes answer a request in the same way; each has 200.
    pub(super) fn are_equal(&self, path: &str) -> bool {
        let answers: Vec<_> = (0..NODES).map(|number| self.read(number, path)).collect();
        assert!(answers.iter().all(|(status, _)| *status == 200), "{path}: {}", answers[0].0);
        answers.iter().all(|answer| *answer == answers[0])
    }
}

/// A client that asks any node.
pub(super) struct Client {
    addresses: Vec<SocketAddr>,
    host: SocketAddr,
    token: String,
}

impl Client {
    /// Asks a node, which may not answer.
    pub(super) fn ask(
        &self,
        node: usize,
        request: &str,
        headers: &str,
        body: &str,
    ) -> Option<(u16, String)> {
        let (status, _, body) = self.exchange(node, request, headers, body)?;
        Some((status, body))
    }

    /// Asks a node, which may not answer; returns the status, the head and the body.
    pub(super) fn exchange(
        &self,
        node: usize,
        request: &str,
        headers: &str,
        body: &str,
    ) -> Option<(u16, String, String)> {
        let mut stream = TcpStream::connect_timeout(&self.addresses[node], CONNECTED).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
        let request = format!(
            "{request} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n{headers}\
             Content-Length: {}\r\n\r\n{body}",
            self.host,
            self.token,
            body.len()
        );
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        let answer = String::from_utf8_lossy(&answer);
        let (head, body) = answer.split_once("\r\n\r\n")?;
        Some((head.split(' ').nth(1)?.parse().ok()?, head.to_owned(), body.to_owned()))
    }
}

pub(super) fn send_signal(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}
