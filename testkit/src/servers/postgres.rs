//! A PostgreSQL server for tests, on a free port of this machine.

use crate::http::unused_address;
use crate::network::Place;
use crate::{Running, eventually};
use std::fs::{self, File};
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// The user of its databases, without a password.
const USER: &str = "abreast";

/// The server. It is stopped when the test ends.
pub struct Postgres {
    programs: PathBuf,
    folder: TempDir,
    port: u16,
    /// User and group that it runs as: it refuses to run as root.
    user: Option<(u32, u32)>,
    /// Parameters of the server, as `name=value`.
    settings: Vec<String>,
    /// The machine, if it is not this one.
    place: Option<Place>,
    running: Option<Running>,
}

impl Postgres {
    /// Makes an empty server with the programs of a folder, and starts it.
    pub fn start(programs: &Path) -> Self {
        Self::start_with(programs, &[])
    }

    /// As [`Self::start`], with parameters of the server, as `name=value`.
    pub fn start_with(programs: &Path, settings: &[&str]) -> Self {
        Self::start_in(programs, settings, None)
    }

    /// As [`Self::start`], on a machine of a network.
    pub fn start_at(programs: &Path, place: &Place) -> Self {
        Self::start_in(programs, &[], Some(place.clone()))
    }

    fn start_in(programs: &Path, settings: &[&str], place: Option<Place>) -> Self {
        let folder = TempDir::new().unwrap();
        let user = is_root().then(|| (number("-u"), number("-g")));
        own(&folder, user);
        let port = unused_address().port();
        let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let programs = programs.to_owned();
        let mut server = Self { programs, folder, port, user, settings, place, running: None };
        let mut command = server.program("initdb");
        command.args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"]);
        command.args(["--username", USER, "--pgdata"]).arg(server.data());
        let made = command.stderr(Stdio::piped()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        if server.place.is_some() {
            let hosts = File::options().append(true).open(server.data().join("pg_hba.conf"));
            hosts.unwrap().write_all(b"host all all samenet trust\n").unwrap();
        }
        server.run();
        server
    }

    /// Port of the server.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// URL of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@{}:{}/{database}", self.host(), self.port)
    }

    fn host(&self) -> IpAddr {
        self.place.as_ref().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), Place::ip)
    }

    /// Makes an empty database, and returns its URL.
    pub fn create(&self, database: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE {database}"));
        self.url(database)
    }

    /// Runs SQL in a database; returns the rows, with columns separated by `|`.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let answer = self.psql(database, sql);
        assert!(answer.status.success(), "{sql}: {}", String::from_utf8_lossy(&answer.stderr));
        String::from_utf8(answer.stdout).unwrap().trim_end().to_owned()
    }

    /// Ends the server at once, as a loss of power does, and starts it again.
    pub fn crash(&mut self) {
        self.stop();
        self.run();
    }

    /// Ends the server at once.
    pub fn stop(&mut self) {
        let Some(mut running) = self.running.take() else { return };
        let pid = running.0.id().to_string();
        // A server that has not started yet may miss a signal.
        let ended = (0..100).any(|_| {
            let _ = Command::new("kill").args(["-QUIT", &pid]).stderr(Stdio::null()).status();
            std::thread::sleep(Duration::from_millis(100));
            running.0.try_wait().unwrap().is_some()
        });
        assert!(ended || std::thread::panicking(), "the server does not end");
    }

    /// Starts the stopped server, with the data that it has.
    pub fn run(&mut self) {
        let mut command = self.program("postgres");
        command.arg("-D").arg(self.data()).args(["-p", &self.port.to_string(), "-F"]);
        command.args(["-c", &format!("listen_addresses={}", self.host())]);
        command.args(["-c", "unix_socket_directories="]);
        command.args(["-c", "max_connections=200"]);
        for setting in &self.settings {
            command.args(["-c", setting]);
        }
        if let Some(place) = &self.place {
            command = place.command(&command, self.user);
            command.stdin(Stdio::null()).stdout(Stdio::null());
        }
        let log = File::options().create(true).append(true).open(self.log_file()).unwrap();
        command.stderr(log);
        self.running = Some(Running::start(&mut command));
        eventually("the server starts", || self.psql("postgres", "SELECT 1").status.success());
    }

    /// Makes a user who needs a password, and the owner of all databases without one.
    pub fn require_password(&self, user: &str, password: &str) {
        self.sql("postgres", &format!("CREATE USER {user} PASSWORD '{password}'"));
        let file = PathBuf::from(self.sql("postgres", "SHOW hba_file"));
        self.write(
            &file,
            &format!("host all {user} 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust"),
        );
        self.reload();
    }

    /// Offers TLS with a certificate and its key, in PEM.
    pub fn offer_tls(&self, certificate: &str, key: &str) {
        self.write(&self.data().join("server.crt"), certificate.trim_end());
        let file = self.data().join("server.key");
        self.write(&file, key.trim_end());
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
        self.set("ssl", "on");
    }

    /// Changes a parameter of the running server.
    pub fn set(&self, name: &str, value: &str) {
        self.sql("postgres", &format!("ALTER SYSTEM SET {name} = {value}"));
        self.reload();
    }

    fn reload(&self) {
        let loaded = "SELECT pg_conf_load_time()";
        let before = self.sql("postgres", loaded);
        self.sql("postgres", "SELECT pg_reload_conf()");
        eventually("the configuration is read", || self.sql("postgres", loaded) != before);
    }

    /// Writes lines into a file as the user of the server.
    fn write(&self, file: &Path, lines: &str) {
        self.sql(
            "postgres",
            &format!(
                "COPY (SELECT unnest(string_to_array($text${lines}$text$, E'\\n'))) TO '{}'",
                file.display()
            ),
        );
    }

    /// Stops the processes of the server without ending them, as if the machine did not answer.
    pub fn suspend(&self) {
        self.signal("-STOP");
    }

    /// Continues after [`Self::suspend`].
    pub fn resume(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let parent = self.running.as_ref().unwrap().0.id().to_string();
        let send = |to: &str| {
            // A process may have ended.
            let _ = Command::new("kill").args([signal, to]).stderr(Stdio::null()).status().unwrap();
        };
        send(&parent);
        let children = Command::new("pgrep").args(["-P", &parent]).output().unwrap();
        String::from_utf8(children.stdout).unwrap().lines().for_each(send);
    }

    /// A file that the server may write.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The log of the server.
    pub fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap()
    }

    fn log_file(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// A folder that the user of the server can read.
    fn owned_folder(&self) -> TempDir {
        let folder = TempDir::new().unwrap();
        own(&folder, self.user);
        folder
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn psql(&self, database: &str, sql: &str) -> std::process::Output {
        let mut command = self.program("psql");
        command.args(["-qAtX", "-v", "ON_ERROR_STOP=1", "-c", sql]).arg(self.url(database));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap()
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.programs.join(name));
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null()).env_remove("LC_ALL");
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }
}

/// PgBouncer in front of a server, which gives each transaction any of three connections. It is
/// killed when the test ends.
pub struct PgBouncer {
    port: u16,
    _folder: TempDir,
    _running: Running,
}

impl PgBouncer {
    /// Starts the program in front of a server.
    pub fn start(program: &Path, server: &Postgres) -> Self {
        let folder = server.owned_folder();
        let port = unused_address().port();
        let configuration = format!(
            "[databases]\n* = host=127.0.0.1 port={} user={USER}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
             default_pool_size = 3\nmax_client_conn = 500\n",
            server.port
        );
        let file = folder.path().join("pgbouncer.ini");
        fs::write(&file, configuration).unwrap();
        let mut command = Command::new(program);
        command.arg(file).stdout(Stdio::null()).stderr(Stdio::null());
        if let Some((user, group)) = server.user {
            command.uid(user).gid(group);
        }
        let running = Running::start(&mut command);
        eventually("PgBouncer starts", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { port, _folder: folder, _running: running }
    }

    /// URL of a database through the proxy.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Gives a folder to a user.
fn own(folder: &TempDir, user: Option<(u32, u32)>) {
    let Some((user, group)) = user else { return };
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    chown(folder.path(), Some(user), Some(group)).unwrap();
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout == b"0\n"
}

fn number(kind: &str) -> u32 {
    let id = Command::new("id").args([kind, "postgres"]).output().unwrap();
    String::from_utf8(id.stdout).unwrap().trim().parse().expect("the package makes the user")
}
