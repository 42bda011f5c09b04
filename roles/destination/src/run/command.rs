//! A command in a process group of its own: its input, its output as lines, and its end.

use abreast_core::start_thread;
use abreast_webtypes::count;
use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Most lines of output that one run of a command adds to the log. Further lines are counted.
const LINES_MAX: usize = 100;
/// Longest line in the log, in bytes; the rest of a line is left out.
const LINE_BYTES_MAX: usize = 1_000;
/// Time between SIGTERM and SIGKILL.
const KILL_AFTER: Duration = Duration::from_secs(10);
/// Time for output that follows the end of a command, since another process can have its pipes.
const DRAIN_TIME: Duration = Duration::from_secs(1);
/// Longest interval of the checks whether a command has ended.
const TICK: Duration = Duration::from_millis(50);

/// What to run.
pub(crate) struct Spec<'a> {
    /// The command, for `sh -c`.
    pub(crate) command: &'a str,
    /// Variables in addition to those of this process; `None` removes one.
    pub(crate) variables: Vec<(&'static str, Option<OsString>)>,
    pub(crate) input: File,
    /// The longest duration.
    pub(crate) timeout: Duration,
}

/// A running command. Its process group is ended when the value is dropped.
pub(crate) struct Running {
    ended: Receiver<Result<(), String>>,
    output: Arc<Output>,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Starts the command. `wake` is called when it has ended.
    ///
    /// # Errors
    /// The shell cannot be started.
    pub(crate) fn start(
        spec: Spec<'_>,
        wake: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Self> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(spec.command).process_group(0);
        command.stdin(spec.input).stdout(Stdio::piped()).stderr(Stdio::piped());
        for (name, value) in &spec.variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut child = command.spawn()?;
        let output = Arc::<Output>::default();
        let (open, drained) = channel();
        if let Some(from) = child.stdout.take() {
            output.read(from, open.clone())?;
        }
        if let Some(from) = child.stderr.take() {
            output.read(from, open)?;
        }
        let (send, ended) = channel();
        let is_stopped = Arc::<AtomicBool>::default();
        let (stopped, timeout) = (Arc::clone(&is_stopped), spec.timeout);
        let thread = start_thread("command", move || {
            let result = wait(&mut child, timeout, &stopped);
            let until = Instant::now() + DRAIN_TIME;
            while drained.recv_timeout(until.saturating_duration_since(Instant::now()))
                != Err(RecvTimeoutError::Disconnected)
                && Instant::now() < until
            {}
            let _ = send.send(result);
            wake();
        })?;
        Ok(Self { ended, output, is_stopped, thread: Some(thread) })
    }

    /// The outcome, if the command has ended: an error unless its exit code was 0.
    pub(crate) fn poll(&self) -> Option<Result<(), String>> {
        self.ended.try_recv().ok()
    }

    /// Lines of output since the last call.
    pub(crate) fn take_lines(&self) -> Vec<String> {
        std::mem::take(&mut self.output.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of lines that were left out.
    pub(crate) fn left_out(&self) -> u64 {
        self.output.count.load(Ordering::Relaxed).saturating_sub(LINES_MAX as u64)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Waits for the end of a command, and ends its process group after `timeout` or a request to stop.
fn wait(child: &mut Child, timeout: Duration, stopped: &AtomicBool) -> Result<(), String> {
    let began = Instant::now();
    if let Some(status) = wait_until(child, Some(began + timeout), Some(stopped))? {
        return judge(status);
    }
    let why = if stopped.load(Ordering::Relaxed) {
        "it was stopped with this program".to_owned()
    } else {
        format!("it took longer than {}", count(timeout.as_secs(), "second"))
    };
    // The process is not reaped yet, so its number is not another group's.
    let group = Pid::from_child(child);
    let _ = kill_process_group(group, Signal::TERM);
    if wait_until(child, Some(Instant::now() + KILL_AFTER), None)?.is_none() {
        let _ = kill_process_group(group, Signal::KILL);
        wait_until(child, None, None)?;
    }
    Err(why)
}

/// The exit status; `None` if the command runs beyond `until`, or `stopped` is set.
fn wait_until(
    child: &mut Child,
    until: Option<Instant>,
    stopped: Option<&AtomicBool>,
) -> Result<Option<ExitStatus>, String> {
    let mut pause = Duration::from_millis(1);
    loop {
        let status = child.try_wait().map_err(|error| format!("cannot wait for it: {error}"))?;
        let is_over = until.is_some_and(|until| Instant::now() >= until)
            || stopped.is_some_and(|stopped| stopped.load(Ordering::Relaxed));
        if status.is_some() || is_over {
            return Ok(status);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(TICK);
    }
}

fn judge(status: ExitStatus) -> Result<(), String> {
    match (status.code(), status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(format!("it ended with exit code {code}")),
        (None, Some(signal)) => Err(format!("signal {signal} ended it")),
        (None, None) => Err("it ended without an exit code".to_owned()),
    }
}

/// The first lines of output.
#[derive(Default)]
struct Output {
    lines: Mutex<Vec<String>>,
    /// Number of lines so far.
    count: AtomicU64,
}

impl Output {
    /// Reads all output, so that the command never waits for this process. `open` is dropped at the
    /// end.
    fn read(
        self: &Arc<Self>,
        mut from: impl Read + Send + 'static,
        open: Sender<()>,
    ) -> std::io::Result<()> {
        let output = Arc::clone(self);
        start_thread("output", move || {
            let _open = open;
            let (mut block, mut line, mut is_begun) = ([0; 8_192], Vec::new(), false);
            loop {
                let read = match from.read(&mut block) {
                    Ok(0) => break,
                    Ok(read) => read,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                    Err(_) => break,
                };
                for part in block[..read].split_inclusive(|byte| *byte == b'\n') {
                    let (text, is_end) = match part.strip_suffix(b"\n") {
                        Some(text) => (text, true),
                        None => (part, false),
                    };
                    let room = LINE_BYTES_MAX.saturating_sub(line.len());
                    line.extend_from_slice(&text[..text.len().min(room)]);
                    is_begun = !is_end;
                    if is_end {
                        output.add(&line);
                        line.clear();
                    }
                }
            }
            if is_begun {
                output.add(&line);
            }
        })?;
        Ok(())
    }

    fn add(&self, line: &[u8]) {
        if self.count.fetch_add(1, Ordering::Relaxed) < LINES_MAX as u64 {
            let line = String::from_utf8_lossy(line).trim_end().to_owned();
            self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ended {
        result: Result<(), String>,
        lines: Vec<String>,
        left_out: u64,
    }

    fn run(command: &str, timeout: Duration) -> Ended {
        let mut input = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut input, &vec![b'x'; 1 << 20]).unwrap();
        std::io::Seek::rewind(&mut input).unwrap();
        let variables = vec![("ABREAST_SET", Some("papers".into())), ("ABREAST_JOB", None)];
        let (send, woken) = channel();
        let spec = Spec { command, variables, input, timeout };
        let running = Running::start(spec, move || send.send(()).unwrap()).unwrap();
        woken.recv_timeout(Duration::from_secs(60)).unwrap();
        let (lines, left_out) = (running.take_lines(), running.left_out());
        Ended { result: running.poll().unwrap(), lines, left_out }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn the_end_of_a_command_is_its_exit_code_or_its_signal() {
        assert_eq!(run("wc -c; echo \"$ABREAST_SET\"; echo no >&2", LONG).result, Ok(()));
        let ended = run("exit 7", LONG);
        assert_eq!(ended.result.unwrap_err(), "it ended with exit code 7");
        assert_eq!(run("kill -9 $$", LONG).result.unwrap_err(), "signal 9 ended it");
        // No input is read.
        assert_eq!(run("true", LONG).result, Ok(()));
        let ended = run("echo \"$ABREAST_SET\"; wc -c | tr -d ' '", LONG);
        assert_eq!(ended.lines, ["papers", "1048576"]);
    }

    #[test]
    fn output_is_read_to_its_end_and_its_first_lines_remain() {
        let ended = run("yes x | head -c 10000000; printf end", LONG);
        assert_eq!((ended.result, ended.lines.len()), (Ok(()), LINES_MAX));
        assert_eq!(ended.left_out, 5_000_000 + 1 - LINES_MAX as u64);
        let ended = run("head -c 5000 | tr x y; echo; echo next", LONG);
        assert_eq!(ended.lines, ["y".repeat(LINE_BYTES_MAX), "next".to_owned()]);
    }

    #[test]
    fn a_command_that_takes_too_long_ends_with_its_processes() {
        let began = Instant::now();
        let ended = run("sleep 1000 & echo $!; sleep 1000", Duration::from_millis(200));
        assert_eq!(ended.result.unwrap_err(), "it took longer than 0 seconds");
        assert!(began.elapsed() < KILL_AFTER);
        let pid = Pid::from_raw(ended.lines[0].parse().unwrap()).unwrap();
        let is_there =
            || match std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())) {
                Ok(stat) => !stat.contains(") Z"),
                Err(_) => false,
            };
        let until = Instant::now() + LONG;
        while is_there() {
            assert!(Instant::now() < until, "the process in the background is still there");
            std::thread::sleep(TICK);
        }
    }

    #[test]
    fn a_background_process_with_the_pipes_is_not_waited_for() {
        let began = Instant::now();
        let ended = run("sleep 20 & echo $!", LONG);
        assert_eq!(ended.result, Ok(()));
        assert!(began.elapsed() < Duration::from_secs(15));
        let pid = Pid::from_raw(ended.lines[0].parse().unwrap()).unwrap();
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }
}
