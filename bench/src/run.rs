//! Runs of programs with their time and resource usage, and servers that end with the benchmark.

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// No single run may take longer.
const RUN_SECONDS: u32 = 900;
/// How long a server may take to end before it is killed.
const END: Duration = Duration::from_secs(10);

/// Time and resources of one run of a program.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    /// Wall time.
    pub(crate) seconds: f64,
    /// User and system time of the program and its children.
    pub(crate) cpu: f64,
    /// Peak of resident memory of the largest process.
    pub(crate) memory_mib: f64,
}

impl Usage {
    pub(crate) fn json(&self) -> Value {
        json!({"seconds": self.seconds, "cpu": self.cpu, "memory_mib": self.memory_mib})
    }
}

/// Runs a program to its end under `time`; output goes to `log` and is returned. It must succeed.
pub(crate) fn timed(
    program: &Path,
    arguments: &[impl AsRef<OsStr>],
    folder: &Path,
    log: &Path,
) -> Result<(Usage, String)> {
    let (usage, status, text) = measured(program, arguments, folder, log)?;
    if !status.success() {
        let end = &text[text.len() - text.len().min(2_000)..];
        bail!("{} ended with {status}\n{end}", program.display());
    }
    Ok((usage, text))
}

/// Like [`timed`], whatever status it ends with.
pub(crate) fn measured(
    program: &Path,
    arguments: &[impl AsRef<OsStr>],
    folder: &Path,
    log: &Path,
) -> Result<(Usage, ExitStatus, String)> {
    let figures = log.with_extension("time");
    let mut command = Command::new("/usr/bin/time");
    command
        .arg("-o")
        .arg(&figures)
        .args(["-f", "%U %S %M", "timeout", "-k", "5"])
        .arg(RUN_SECONDS.to_string());
    command
        .arg(program)
        .args(arguments)
        .current_dir(folder)
        .env("RCLONE_CONFIG", "/dev/null")
        .stdin(Stdio::null());
    let output = File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
    command.stdout(output.try_clone()?).stderr(output);
    let start = Instant::now();
    let status = command
        .status()
        .context("cannot run /usr/bin/time\n  help: install the Debian package time")?;
    let seconds = start.elapsed().as_secs_f64();
    let text = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    let figures = fs::read_to_string(&figures)?;
    // A line before them states that the program failed.
    let figures = figures.lines().last().unwrap_or_default();
    let numbers: Vec<f64> =
        figures.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [user, system, memory] = numbers[..] else { bail!("`time` printed `{figures}`") };
    Ok((Usage { seconds, cpu: user + system, memory_mib: memory / 1024.0 }, status, text))
}

/// Writes all that is waiting to the disk, so that no run pays for the one before.
pub(crate) fn settle() {
    rustix::fs::sync();
}

/// A server, ended with this value.
pub(crate) struct Server {
    child: Child,
}

impl Server {
    /// Starts a program; its output goes to `log`.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let output =
            File::create(log).with_context(|| format!("cannot create {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {}", command.get_program().display()))?;
        Ok(Self { child })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Peak of resident memory so far.
    pub(crate) fn peak_memory_mib(&self) -> Result<f64> {
        Ok(self.status("VmHWM:")? / 1024.0)
    }

    /// Resident memory now.
    pub(crate) fn memory_kib(&self) -> Result<f64> {
        self.status("VmRSS:")
    }

    fn status(&self, name: &str) -> Result<f64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.id()))?;
        let line = text
            .lines()
            .find(|line| line.starts_with(name))
            .with_context(|| format!("no {name}"))?;
        Ok(line.split_whitespace().nth(1).context("no figure")?.parse()?)
    }

    /// CPU seconds so far of it and its children.
    pub(crate) fn cpu(&self) -> f64 {
        let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.id()))
            .unwrap_or_default();
        let own = self.id().to_string();
        children.split_whitespace().chain([own.as_str()]).map(cpu_of).sum()
    }

    /// Asks it to end and waits; kills it when it does not.
    pub(crate) fn stop(&mut self) {
        if self.has_ended() {
            return;
        }
        let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(id) = id {
            let _ = kill_process(id, Signal::TERM);
        }
        let start = Instant::now();
        while start.elapsed() < END {
            if self.has_ended() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// CPU seconds of this process so far.
pub(crate) fn own_cpu() -> f64 {
    cpu_of("self")
}

/// CPU seconds of one process and the children it has waited for, in ticks of 10 ms.
fn cpu_of(id: &str) -> f64 {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let fields: Vec<&str> =
        text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks: f64 = (11..15).filter_map(|field| fields.get(field)?.parse::<f64>().ok()).sum();
    ticks / 100.0
}

/// Polls `ready` until it returns true.
pub(crate) fn wait_until(
    what: &str,
    limit: Duration,
    mut ready: impl FnMut() -> Result<bool>,
) -> Result<()> {
    let start = Instant::now();
    while !ready()? {
        if start.elapsed() > limit {
            bail!("{what}: not within {} s", limit.as_secs());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

/// A port that was free a moment ago, for servers that cannot choose one.
pub(crate) fn free_port() -> Result<u16> {
    Ok(std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

/// A log file named after what it is the log of.
pub(crate) fn log_path(folder: &Path, name: &str) -> Result<PathBuf> {
    let logs = folder.join("logs");
    fs::create_dir_all(&logs)?;
    Ok(logs.join(format!("{name}.log")))
}
