//! The product's own program: its path, and how it is started.

use crate::http::Http;
use crate::run::{Server, Usage, log_path, timed, wait_until};
use crate::settings::Settings;
use anyhow::{Context, Result, bail};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The first reading of a large folder takes as long as it takes, within reason.
const FIRST_SCAN: Duration = Duration::from_secs(600);

/// The release binary, built when it is not up to date.
pub(crate) fn binary(settings: &Settings) -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("ABREAST_BIN") {
        return Ok(PathBuf::from(path));
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--release", "-p", "abreast"])
        .current_dir(&settings.root)
        .status()
        .context("cannot run cargo")?;
    if !status.success() {
        bail!("`cargo build --release -p abreast` failed");
    }
    Ok(settings.target.join("release/abreast"))
}

/// A running `abreast serve`.
pub(crate) struct Source {
    pub(crate) server: Server,
    pub(crate) address: SocketAddr,
}

impl Source {
    /// Starts it and waits until it listens; `arguments` follow `serve`. It may still be reading
    /// its folder.
    pub(crate) fn start(
        settings: &Settings,
        program: &Path,
        name: &str,
        arguments: &[&str],
    ) -> Result<Self> {
        let log = log_path(&settings.folder, name)?;
        let mut command = Command::new(program);
        command.env("ABREAST_LOG_FORMAT", "text");
        command.arg("serve").args(arguments);
        if !arguments.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let mut server = Server::start(&mut command, &log)?;
        let mut address = None;
        wait_until("starting abreast serve", Duration::from_secs(60), || {
            let text = std::fs::read_to_string(&log)?;
            if server.has_ended() {
                bail!("abreast serve ended: {text}");
            }
            let printed =
                text.split("listening on").nth(1).and_then(|rest| rest.split("http://").nth(1));
            // The whole line, or the port may still lack digits.
            let printed = printed.and_then(|rest| rest.split_once('/')).map(|(address, _)| address);
            address = printed.and_then(|text| text.parse().ok());
            Ok(address.is_some())
        })?;
        Ok(Self { server, address: address.context("no address")? })
    }

    /// `http://127.0.0.1:PORT/`
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Waits until its folder is read and everything can be asked for.
    pub(crate) fn wait_ready(&self) -> Result<()> {
        let mut http = Http::connect(&self.url())?;
        wait_until("the first scan", FIRST_SCAN, || {
            let answer = http.get("/readyz", "")?;
            // Others of its sets may be ready.
            let is_read = !String::from_utf8_lossy(&answer.body).contains("is being read");
            Ok(answer.status == 200 && is_read)
        })
    }

    /// The position of the last change.
    pub(crate) fn position(&self) -> Result<u64> {
        Ok(self.metric("abreast_log_head_position")? as u64)
    }

    /// Requests answered; asking counts as one.
    pub(crate) fn responses(&self) -> Result<u64> {
        Ok(self.metric("abreast_http_responses_total")? as u64)
    }

    /// The sum of a metric over its labels.
    fn metric(&self, name: &str) -> Result<f64> {
        let text = Http::connect(&self.url())?.get_ok("/metrics")?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let values = text
            .lines()
            .filter(|line| line.starts_with(name))
            .filter_map(|line| line.rsplit(' ').next());
        let values: Vec<f64> = values.filter_map(|text| text.parse().ok()).collect();
        if values.is_empty() {
            bail!("the metrics have no `{name}`");
        }
        Ok(values.iter().sum())
    }

    /// Waits until the log has come to a position.
    pub(crate) fn wait_position(&self, position: u64) -> Result<()> {
        wait_until(
            "recording changes",
            Duration::from_secs(60),
            || Ok(self.position()? >= position),
        )
    }
}

/// Runs `abreast sync URL FOLDER` with more options.
pub(crate) fn sync(
    settings: &Settings,
    program: &Path,
    url: &str,
    folder: &Path,
    more: &[&str],
) -> Result<Usage> {
    let folder = folder.to_string_lossy();
    let mut arguments = vec!["sync", url, folder.as_ref()];
    arguments.extend(more);
    Ok(timed(program, &arguments, &settings.folder, &log_path(&settings.folder, "sync")?)?.0)
}
