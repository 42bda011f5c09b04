//! Programs that a test runs, and the files that they leave in folders.

use abreast_testkit::folder::{files, same};
use abreast_testkit::{Running, eventually, eventually_ok, run};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// `abreast` with arguments, none of the caller's settings.
pub(crate) fn abreast() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_abreast"));
    without_settings(&mut command);
    command
}

/// The program of an earlier version, if the caller has one: nodes are upgraded from it.
#[cfg(all(feature = "postgres", feature = "s3", feature = "xmpp"))]
pub(crate) fn former_abreast() -> Option<Command> {
    let mut command = Command::new(std::env::var_os("ABREAST_TEST_FORMER")?);
    without_settings(&mut command);
    Some(command)
}

/// Removes the caller's settings of `abreast` from the environment of a command.
pub(crate) fn without_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().to_lowercase();
        if text.ends_with("_proxy")
            || text == "netrc"
            || text.starts_with("abreast_") && !text.starts_with("abreast_test_")
        {
            command.env_remove(name);
        }
    }
    // What a server offers stands on standard output then, although that is not a terminal.
    command.env("ABREAST_LOG_FORMAT", "text");
}

/// `abreast serve`, listening.
pub(crate) struct Source {
    pub(crate) child: Running,
    /// `127.0.0.1:port`
    pub(crate) address: String,
    hint: String,
}

/// The time after which files that a test wrote are at rest, so that the first scan of a server records them: the debounce
/// of [`Source::command`], or the default one, and the granularity of file times.
fn rest_before(command: &Command) -> Duration {
    let has_default = !command.get_args().any(|argument| argument == "--debounce");
    Duration::from_millis(if has_default { 250 } else { 80 })
}

impl Source {
    /// Serves a folder on a free port, or on the given one.
    pub(crate) fn start(folder: &Path, port: u16, more: &[&str]) -> Self {
        Self::run(&mut Self::command(folder, port, more))
    }

    /// As [`Source::start`], without waiting until it is ready.
    pub(crate) fn start_unready(folder: &Path, port: u16, more: &[&str]) -> Self {
        Self::listening(&mut Self::command(folder, port, more))
    }

    /// The same, with its log in a file.
    pub(crate) fn start_logged(folder: &Path, log: &Path, more: &[&str]) -> Self {
        let log = std::fs::File::create(log).unwrap();
        Self::listening_with(&mut Self::command(folder, 0, more), log.into())
    }

    /// Begins to serve, and is killed before it can, or just after.
    pub(crate) fn kill_at_start(folder: &Path, port: u16, more: &[&str], after: Duration) {
        Self::kill_soon(Self::command(folder, port, more), after);
    }

    fn kill_soon(mut command: Command, after: Duration) {
        let child = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        std::thread::sleep(after);
        drop(child);
    }

    fn command(folder: &Path, port: u16, more: &[&str]) -> Command {
        let mut command = abreast();
        command.arg("serve").arg(folder).arg("--listen").arg(format!("127.0.0.1:{port}"));
        command.args(["--name", "set", "--debounce", "30ms"]).args(more);
        command
    }

    /// Serves the sets of a configuration file on a free port.
    pub(crate) fn start_config(config: &str) -> Self {
        Self::start_config_at(config, 0)
    }

    /// The same on the given port.
    pub(crate) fn start_config_at(config: &str, port: u16) -> Self {
        Self::run(&mut Self::of_config(config, port))
    }

    /// As [`Source::kill_at_start`], with a configuration file.
    pub(crate) fn kill_config_at_start(config: &str, port: u16, after: Duration) {
        Self::kill_soon(Self::of_config(config, port), after);
    }

    fn of_config(config: &str, port: u16) -> Command {
        let mut command = abreast();
        command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--config", config]);
        command
    }

    /// A server by a command, once it is ready.
    pub(crate) fn run(command: &mut Command) -> Self {
        Self::listening(command).ready()
    }

    /// The same, with its log at the end of a file.
    pub(crate) fn run_logged(command: &mut Command, log: &Path) -> Self {
        let log = std::fs::File::options().create(true).append(true).open(log).unwrap();
        Self::listening_with(command, log.into()).ready()
    }

    fn ready(self) -> Self {
        eventually("the Source and each of its sets are ready", || {
            self.answer("/readyz").is_some_and(|(status, text)| {
                status == 200 && !String::from_utf8_lossy(&text).contains("is being read")
            })
        });
        self
    }

    /// A server by a command, ready or not.
    pub(crate) fn listening(command: &mut Command) -> Self {
        Self::listening_with(command, Stdio::null())
    }

    fn listening_with(command: &mut Command, log: Stdio) -> Self {
        std::thread::sleep(rest_before(command));
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (mut address, mut hint) = (None, None);
        for line in out.lines() {
            let line = line.unwrap();
            if let Some(url) = line.trim().strip_prefix("listening on") {
                address =
                    Some(url.rsplit("://").next().unwrap().trim().trim_end_matches('/').to_owned());
            } else if let Some(command) = line.trim().strip_prefix("to mirror it") {
                hint = Some(command.trim().to_owned());
                break;
            }
        }
        let (address, hint) =
            address.zip(hint).expect("serve prints its address and how to mirror it");
        Self { child: Running(child), address, hint }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.rsplit(':').next().unwrap().parse().unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// The command that `serve` recommends for a copy.
    pub(crate) fn hint(&self) -> &str {
        &self.hint
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.0.kill().unwrap();
        self.child.0.wait().unwrap();
    }

    /// SIGTERM, and the exit code.
    pub(crate) fn stop(self) -> Option<i32> {
        stop(self.child)
    }

    /// Status and body of an answer.
    pub(crate) fn answer(&self, path: &str) -> Option<(u16, Vec<u8>)> {
        get(&self.address, path)
    }

    /// Status line and headers of an answer.
    pub(crate) fn head(&self, path: &str) -> Option<String> {
        let mut stream = TcpStream::connect(&self.address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
        write!(stream, "HEAD {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        Some(answer)
    }

    /// A document's bytes, if it answers with 200.
    pub(crate) fn get(&self, path: &str) -> Option<Vec<u8>> {
        get(&self.address, path).filter(|(status, _)| *status == 200).map(|(_, body)| body)
    }
}

/// SIGTERM, and the exit code.
pub(crate) fn stop(mut child: Running) -> Option<i32> {
    let pid = rustix::process::Pid::from_child(&child.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    child.0.wait().unwrap().code()
}

/// One GET on a connection of its own; `None` when the connection fails or ends early.
pub(crate) fn get(address: &str, path: &str) -> Option<(u16, Vec<u8>)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let split = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&answer[..split]).into_owned();
    let length: usize = head.lines().find_map(|line| {
        line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok()
    })?;
    let body = answer.split_off(split + 4);
    (body.len() == length).then_some(())?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body))
}

/// Runs `abreast sync`, expecting an exit code; returns the summary.
pub(crate) fn sync(url: &str, folder: &Path, code: i32, more: &[&str]) -> serde_json::Value {
    let output = run(abreast().args(["sync", url]).arg(folder).arg("--json").args(more));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        output.status.code(),
        Some(code),
        "abreast sync {url} {}\n{text}\n{}",
        folder.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    text.lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .rfind(|line| line["type"] == "summary")
        .unwrap_or_default()
}

/// Runs `abreast audit --full`, and returns its exit code.
pub(crate) fn audit(url: &str, folder: &Path) -> i32 {
    run(abreast().args(["audit", url]).arg(folder).args(["--full", "--quiet"]))
        .status
        .code()
        .unwrap()
}

/// Runs `abreast sync` until the copy is as the original.
pub(crate) fn catch_up(url: &str, original: &Path, copy: &Path, more: &[&str]) {
    eventually_ok("the copy follows", || {
        let summary = sync(url, copy, 0, more);
        same(&files(original), &files(copy))
            .map_err(|why| format!("{why}; the last run: {summary}"))
    });
}
