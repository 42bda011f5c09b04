//! An XMPP server for tests: Prosody with a service of nodes, on a free port of this machine.

pub mod scripted;

use crate::http::unused_address;
use crate::servers::tls::{Authority, Certificate};
use crate::{Running, eventually};
use std::fs;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// The domain of its accounts.
pub const DOMAIN: &str = "xmpp.test";
/// Its service of nodes.
pub const SERVICE: &str = "pubsub.xmpp.test";
/// Accounts, all with [`PASSWORD`]; the first may create nodes.
pub const ACCOUNTS: [&str; 3] = ["source", "reader", "stranger"];
/// The password of the accounts.
pub const PASSWORD: &str = "hush";

/// The server. It is killed when the test ends.
pub struct Prosody {
    program: PathBuf,
    folder: TempDir,
    port: u16,
    running: Option<Running>,
}

impl Prosody {
    /// Starts the server, with a certificate for [`DOMAIN`] of an authority of its own.
    pub fn start(program: &Path) -> Self {
        let authority = Authority::default();
        Self::start_with(program, &authority.server(&[DOMAIN], false), authority.pem(), "")
    }

    /// Starts the server with a certificate and with settings of its own, in its own language.
    pub fn start_with(
        program: &Path,
        certificate: &Certificate,
        authority: &str,
        settings: &str,
    ) -> Self {
        let folder = TempDir::new().unwrap();
        let place = folder.path();
        fs::write(place.join("cert.pem"), certificate.pem()).unwrap();
        fs::write(place.join("key.pem"), certificate.key_pem()).unwrap();
        fs::write(place.join("ca.pem"), authority).unwrap();
        let accounts = place.join("data/xmpp%2etest/accounts");
        fs::create_dir_all(&accounts).unwrap();
        for name in ACCOUNTS {
            let account = format!("return {{ [\"password\"] = \"{PASSWORD}\"; }};\n");
            fs::write(accounts.join(format!("{name}.dat")), account).unwrap();
        }
        let port = unused_address().port();
        let path = place.display();
        let configuration = format!(
            "run_as_root = true\ndaemonize = false\npidfile = \"{path}/pid\"\ndata_path = \"{path}/data\"\n\
             log = {{ {{ levels = {{ min = \"info\" }}; to = \"file\"; filename = \"{path}/log\" }} }}\n\
             interfaces = {{ \"127.0.0.1\" }}\nc2s_ports = {{ {port} }}\ns2s_ports = {{}}\n\
             c2s_direct_tls_ports = {{}}\ncomponent_ports = {{}}\nhttp_ports = {{}}\nhttps_ports = {{}}\n\
             modules_enabled = {{ \"roster\", \"saslauth\", \"tls\", \"disco\", \"ping\" }}\n\
             modules_disabled = {{ \"s2s\" }}\nauthentication = \"internal_plain\"\n\
             c2s_require_encryption = true\nadmins = {{ \"source@{DOMAIN}\" }}\n\
             ssl = {{ key = \"{path}/key.pem\"; certificate = \"{path}/cert.pem\" }}\n{settings}\n\
             VirtualHost \"{DOMAIN}\"\nComponent \"{SERVICE}\" \"pubsub\"\n"
        );
        fs::write(place.join("prosody.cfg.lua"), configuration).unwrap();
        let mut server = Self { program: program.to_owned(), folder, port, running: None };
        server.restart();
        server
    }

    /// Kills the server, if it runs, and starts it again with what it has stored.
    pub fn restart(&mut self) {
        self.kill();
        let mut command = Command::new(&self.program);
        command.arg("--config").arg(self.folder.path().join("prosody.cfg.lua")).arg("-F");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.running = Some(Running::start(&mut command));
        let port = self.port;
        eventually("Prosody answers", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    }

    /// Kills the server and starts it again without its nodes: it reads and writes all items of a node
    /// for each that is published.
    pub fn restart_without_nodes(&mut self) {
        self.kill();
        let nodes = self.folder.path().join("data").join(SERVICE.replace('.', "%2e"));
        fs::remove_dir_all(nodes).unwrap();
        self.restart();
    }

    /// Kills the server.
    pub fn kill(&mut self) {
        self.running = None;
    }

    /// Its address, `127.0.0.1:port`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The certificate of its authority.
    pub fn ca_file(&self) -> PathBuf {
        self.folder.path().join("ca.pem")
    }

    /// What it logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }
}
