//! Programs run for a test, and what they leave in folders.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// `abreast` with arguments, none of the caller's settings.
pub(crate) fn abreast() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_abreast"));
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
    command
}

/// A program that is killed when the test ends.
pub(crate) struct Running(pub(crate) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `abreast serve`, listening.
pub(crate) struct Source {
    pub(crate) child: Running,
    /// `127.0.0.1:port`
    pub(crate) address: String,
}

impl Source {
    /// Serves a folder on a free port, or on the given one.
    pub(crate) fn start(folder: &Path, port: u16, more: &[&str]) -> Self {
        Self::run(Self::command(folder, port, more))
    }

    /// As [`Source::start`], without waiting until it is ready.
    pub(crate) fn start_unready(folder: &Path, port: u16, more: &[&str]) -> Self {
        Self::listening(Self::command(folder, port, more))
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
        Self::run(Self::of_config(config, port))
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

    fn run(command: Command) -> Self {
        let source = Self::listening(command);
        eventually("the Source is ready", || source.status("/readyz") == Some(200));
        source
    }

    fn listening(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut address = None;
        for line in out.lines() {
            let line = line.unwrap();
            if let Some(url) = line.trim().strip_prefix("listening on") {
                address = Some(url.trim().trim_start_matches("http://").trim_end_matches('/').to_owned());
                break;
            }
        }
        Self { child: Running(child), address: address.expect("serve tells where it listens") }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.rsplit(':').next().unwrap().parse().unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
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
    pub(crate) fn stop(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.0.wait().unwrap().code()
    }

    fn status(&self, path: &str) -> Option<u16> {
        get(&self.address, path).map(|(status, _)| status)
    }

    /// A document's bytes, if it answers with 200.
    pub(crate) fn get(&self, path: &str) -> Option<Vec<u8>> {
        get(&self.address, path).filter(|(status, _)| *status == 200).map(|(_, body)| body)
    }
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
    let length: usize =
        head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok())?;
    let body = answer.split_off(split + 4);
    (body.len() == length).then_some(())?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body))
}

/// Runs a command to its end.
pub(crate) fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

/// Runs `abreast sync`, expecting an exit code; tells the summary.
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

/// Runs `abreast audit --full`, and tells its exit code.
pub(crate) fn audit(url: &str, folder: &Path) -> i32 {
    run(abreast().args(["audit", url]).arg(folder).args(["--full", "--quiet"])).status.code().unwrap()
}

/// Every visible file with its bytes. Symbolic links and hidden names are left out.
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = fs::read_dir(&next) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') || name.ends_with('~') {
                continue;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file()
                && let Ok(bytes) = fs::read(entry.path())
            {
                found.insert(entry.path().strip_prefix(folder).unwrap().to_owned(), bytes);
            }
        }
    }
    found
}

/// Whether two maps are the same; the first differences if not.
pub(crate) fn same<K: Ord + Debug, V: PartialEq>(
    original: &BTreeMap<K, V>,
    copy: &BTreeMap<K, V>,
) -> Result<(), String> {
    let missing: Vec<_> = original.keys().filter(|key| !copy.contains_key(*key)).take(5).collect();
    let extra: Vec<_> = copy.keys().filter(|key| !original.contains_key(*key)).take(5).collect();
    let differ: Vec<_> = original
        .iter()
        .filter(|(key, value)| copy.get(*key).is_some_and(|other| other != *value))
        .map(|(key, _)| key)
        .take(5)
        .collect();
    if missing.is_empty() && extra.is_empty() && differ.is_empty() {
        return Ok(());
    }
    Err(format!("missing {missing:?}, extra {extra:?}, differ {differ:?}"))
}

/// The two folders hold the same files; tells the first differences if not.
pub(crate) fn assert_equal(original: &Path, copy: &Path) {
    if let Err(differences) = same(&files(original), &files(copy)) {
        panic!("{differences}");
    }
}

/// Waits until something is so; fails after a minute.
pub(crate) fn eventually(what: &str, mut so: impl FnMut() -> bool) {
    eventually_ok(what, || if so() { Ok(()) } else { Err("not so") });
}

/// As [`eventually`], and tells at the end why it was not so the last time.
pub(crate) fn eventually_ok<E: Display>(what: &str, mut so: impl FnMut() -> Result<(), E>) {
    let begun = Instant::now();
    while let Err(why) = so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}: {why}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Runs `abreast sync` until the copy is as the original.
pub(crate) fn catch_up(url: &str, original: &Path, copy: &Path, more: &[&str]) {
    eventually_ok("the copy follows", || {
        let summary = sync(url, copy, 0, more);
        same(&files(original), &files(copy)).map_err(|why| format!("{why}; the last run: {summary}"))
    });
}

/// How often a test kills: as ABREAST_TEST_KILLS says, or its own number.
pub(crate) fn kills(own: u64) -> u64 {
    let kills = asked("ABREAST_TEST_KILLS").unwrap_or(own);
    eprintln!("repeat with ABREAST_TEST_KILLS={kills}");
    kills
}

/// What a test's numbers are drawn from: ABREAST_TEST_SEED, or its own.
pub(crate) fn seed(own: u64) -> u64 {
    let seed = asked("ABREAST_TEST_SEED").unwrap_or(own);
    eprintln!("repeat with ABREAST_TEST_SEED={seed}");
    seed
}

/// A number in the environment.
pub(crate) fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|number| number.parse().unwrap_or_else(|_| panic!("{name} is no number: {number}")))
}

/// A value that `cargo xtask test` provides; without it the test is counted as skipped, with the reason.
pub(crate) fn provided(test: &str, name: &str) -> Option<PathBuf> {
    if let Some(value) = std::env::var_os(name) {
        return Some(value.into());
    }
    let line = format!("{test}: {name} is not set; run `cargo xtask test`\n");
    if let Some(log) = std::env::var_os("ABREAST_TEST_SKIP_LOG") {
        let mut log = fs::File::options().append(true).create(true).open(log).unwrap();
        log.write_all(line.as_bytes()).unwrap();
    }
    eprint!("skipped: {line}");
    None
}

/// A small generator of random numbers; the same seed gives the same numbers.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}
