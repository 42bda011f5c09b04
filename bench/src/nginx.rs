//! nginx on a folder: how it is set up, and what it was asked.

use crate::run::{Server, free_port, log_path, wait_until};
use crate::settings::Settings;
use anyhow::{Context, Result};
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A running nginx.
pub(crate) struct Nginx {
    server: Server,
    pub(crate) port: u16,
    log: Option<PathBuf>,
    /// Bytes of the log counted before.
    counted: u64,
}

/// How nginx is run.
pub(crate) struct NginxOptions<'a> {
    /// Names its working folder.
    pub(crate) name: &'a str,
    /// The folder served.
    pub(crate) root: &'a Path,
    pub(crate) workers: usize,
    /// Keep a log of requests, to count them.
    pub(crate) count: bool,
    /// Files with a certificate and its key: TLS, with HTTP/2.
    pub(crate) tls: Option<[&'a Path; 2]>,
}

/// Requests by their answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requests {
    pub(crate) all: u64,
    pub(crate) bodies: u64,
    pub(crate) bytes: u64,
}

impl Nginx {
    pub(crate) fn start(
        settings: &Settings,
        program: &Path,
        options: &NginxOptions<'_>,
    ) -> Result<Self> {
        let folder = settings.empty_folder(&format!("nginx-{}", options.name))?;
        let port = free_port()?;
        let log = folder.join("access.log");
        // Lines wait in memory for at most a second, so that counting costs no write for each
        // request.
        let access = if options.count {
            format!("{} short buffer=1m flush=1s", log.display())
        } else {
            "off".to_owned()
        };
        let (protocol, certificate) = match options.tls {
            Some([certificate, key]) => (
                " ssl http2",
                format!(
                    "ssl_certificate {}; ssl_certificate_key {}; http2_max_concurrent_streams 128;",
                    certificate.display(),
                    key.display()
                ),
            ),
            None => ("", String::new()),
        };
        let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
        let (here, root) = (folder.display(), options.root.display());
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {here}/{kind}; "))
            .concat();
        let config = format!(
            "{user}daemon off; worker_processes {}; pid {here}/nginx.pid; error_log {here}/error.log; worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{ types {{ application/xml xml; text/html html; text/turtle ttl; }} default_type application/octet-stream;
  sendfile on; tcp_nopush on; keepalive_requests 10000000; keepalive_timeout 60; gzip_static on; {temporary}
  log_format short '$request_method $status $body_bytes_sent'; access_log {access};
  server {{ listen 127.0.0.1:{port}{protocol} reuseport backlog=4096; {certificate} root {root}; autoindex on;
    location = /.well-known/resourcesync {{ default_type application/xml; }} }} }}
",
            options.workers
        );
        let path = folder.join("nginx.conf");
        fs::write(&path, config).with_context(|| format!("cannot write {}", path.display()))?;
        let mut command = Command::new(program);
        command.arg("-p").arg(&folder).arg("-c").arg(&path);
        let server = Server::start(
            &mut command,
            &log_path(&settings.folder, &format!("nginx-{}", options.name))?,
        )?;
        wait_until("starting nginx", Duration::from_secs(10), || {
            Ok(TcpStream::connect(("127.0.0.1", port)).is_ok())
        })?;
        Ok(Self { server, port, log: options.count.then_some(log), counted: 0 })
    }

    /// `http://127.0.0.1:PORT/`
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    pub(crate) fn cpu(&self) -> f64 {
        self.server.cpu()
    }

    /// Requests since this was last asked; waits until the log is written.
    pub(crate) fn new_requests(&mut self) -> Result<Requests> {
        let mut sum = Requests::default();
        let Some(path) = &self.log else { return Ok(sum) };
        std::thread::sleep(Duration::from_millis(1_200));
        let mut log = fs::File::open(path)?;
        log.seek(SeekFrom::Start(self.counted))?;
        let mut text = String::new();
        self.counted += log.read_to_string(&mut text)? as u64;
        for line in text.lines() {
            let mut words = line.split(' ');
            let (method, status, bytes) = (words.next(), words.next(), words.next());
            sum.all += 1;
            sum.bodies += u64::from(method == Some("GET") && matches!(status, Some("200" | "206")));
            sum.bytes += bytes.and_then(|bytes| bytes.parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(sum)
    }
}
