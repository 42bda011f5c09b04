//! Other programs that mirror, as far as they are installed, and how each is started.

use crate::machine::version;
use crate::run::{Server, free_port, log_path};
use crate::settings::Settings;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Program and Debian package.
const PACKAGES: [(&str, &str); 10] = [
    ("nginx", "nginx"),
    ("rsync", "rsync"),
    ("wget2", "wget2"),
    ("curl", "curl"),
    ("aria2c", "aria2"),
    ("rclone", "rclone"),
    ("wrk", "wrk"),
    ("zip", "zip"),
    ("time", "time"),
    ("pg_ctlcluster", "postgresql"),
];

/// Finds a program where programs are.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/usr/bin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .chain(more)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Finds a program, installing its package when that is possible; else states what is missing.
pub(crate) fn find_or_install(name: &str) -> Result<PathBuf> {
    if let Some(path) = find(name) {
        return Ok(path);
    }
    let package =
        PACKAGES.iter().find(|(program, _)| *program == name).map_or(name, |(_, package)| package);
    let may_install =
        rustix::process::geteuid().is_root() && std::env::var_os("ABREAST_NO_INSTALL").is_none();
    if may_install && find("apt-get").is_some() {
        eprintln!("   installing {package}");
        let install = ["install", "-qq", "-y", "--no-install-recommends", package];
        for arguments in [&["update", "-qq"][..], &install[..]] {
            let mut command = Command::new("apt-get");
            command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
            let _ = command.output();
        }
    }
    find(name).with_context(|| {
        format!("`{name}` is not installed\n  help: install the Debian package {package}")
    })
}

/// The folder with the programs of PostgreSQL's server, which Debian has outside of `PATH`.
pub(crate) fn postgres_programs() -> Result<PathBuf> {
    let find_server = || {
        let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let folders = versions.map(|version| version.path().join("bin"));
        folders.filter(|folder| folder.join("initdb").is_file()).max()
    };
    if find_server().is_none() {
        find_or_install("pg_ctlcluster")?;
    }
    find_server().context(
        "`initdb` is not below /usr/lib/postgresql\n  help: install the Debian package postgresql",
    )
}

/// A program of the Python environment under `target/venv`.
pub(crate) fn python_program(settings: &Settings, name: &str) -> Result<PathBuf> {
    let path = settings.target.join("venv/bin").join(name);
    if path.is_file() {
        return Ok(path);
    }
    anyhow::bail!(
        "target/venv has no `{name}`\n  help: `cargo xtask test -p abreast-core` prepares it"
    )
}

/// A program that mirrors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Rsync,
    Wget2,
    Rclone,
    Resync,
}

impl Peer {
    pub(crate) const ALL: [Self; 4] = [Self::Rsync, Self::Wget2, Self::Rclone, Self::Resync];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rsync => "rsync",
            Self::Wget2 => "wget2",
            Self::Rclone => "rclone",
            Self::Resync => "resync",
        }
    }

    /// The program; prints a message on standard error if it is not available.
    pub(crate) fn program(self, settings: &Settings) -> Option<PathBuf> {
        let found = match self {
            Self::Resync => python_program(settings, "resync-sync"),
            _ => find_or_install(self.name()),
        };
        found.map_err(|error| eprintln!("   left out: {error}")).ok()
    }

    /// Name and version, as tables show it.
    pub(crate) fn shown(self, program: &Path) -> String {
        match self {
            // It has no option for that; this is the version the environment is made with.
            Self::Resync => "resync 2.0.1 (Python)".to_owned(),
            _ => format!("{} {}", self.name(), version(&program.to_string_lossy(), "--version")),
        }
    }

    /// Arguments for one mirror of `http`'s `data/` (`rsync` for rsync) into a folder.
    pub(crate) fn arguments(self, http: &str, rsync: &str, folder: &Path) -> Vec<String> {
        let folder = folder.display();
        let data = format!("{http}data/");
        let text = match self {
            Self::Rsync => format!("-rt --delete {rsync} {folder}/"),
            Self::Wget2 => {
                format!(
                    "-q -m -np -nH --cut-dirs=1 -R index.html* --no-robots --max-threads=16 -P {folder} {data}"
                )
            }
            Self::Rclone => {
                format!("copy -q --transfers 16 --checkers 16 --http-url {data} :http: {folder}")
            }
            Self::Resync => {
                format!("--baseline --noauth --sitemap {http}rs/resourcelist.xml {data}={folder}")
            }
        };
        text.split(' ').map(str::to_owned).collect()
    }
}

/// An rsync daemon with one module, `data`.
pub(crate) struct RsyncDaemon {
    _server: Server,
    pub(crate) url: String,
}

impl RsyncDaemon {
    pub(crate) fn start(settings: &Settings, program: &Path, data: &Path) -> Result<Self> {
        let port = free_port()?;
        let folder = settings.empty_folder("rsyncd")?;
        let config = folder.join("rsyncd.conf");
        let user = rustix::process::geteuid().as_raw();
        std::fs::write(
            &config,
            format!(
                "port={port}\naddress=127.0.0.1\nuse chroot=no\nlog file=/dev/null\n[data]\npath={}\nread only=yes\nuid={user}\n",
                data.display()
            ),
        )?;
        let mut command = Command::new(program);
        command.args(["--daemon", "--no-detach"]).arg(format!("--config={}", config.display()));
        let server = Server::start(&mut command, &log_path(&settings.folder, "rsyncd")?)?;
        crate::run::wait_until("starting rsync", std::time::Duration::from_secs(10), || {
            Ok(std::net::TcpStream::connect(("127.0.0.1", port)).is_ok())
        })?;
        Ok(Self { _server: server, url: format!("rsync://127.0.0.1:{port}/data/") })
    }
}
