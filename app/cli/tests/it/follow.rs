//! A copy that follows is notified of changes by a Source with its hub: by events and by callback,
//! over kills of the Source.

use crate::world::{Source, abreast};
use abreast_testkit::folder::{files, same};
use abreast_testkit::http::unused_address;
use abreast_testkit::{Running, eventually_ok};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// `abreast sync --follow`, and the codes of its notices.
struct Following {
    child: Running,
    notices: Receiver<String>,
}

impl Following {
    /// Polls are too rare to count.
    fn start(url: &str, copy: &Path, more: &[&str]) -> Self {
        let mut command = abreast();
        command.arg("sync").arg(url).arg(copy);
        command.args(["--follow", "--json", "--interval", "1h", "--retries", "0"]).args(more);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, notices) = channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let Ok(line) = serde_json::from_str::<serde_json::Value>(&line) else { continue };
                if line["type"] == "notice" {
                    let _ = tell.send(line["code"].as_str().unwrap_or_default().to_owned());
                }
            }
        });
        Self { child: Running(child), notices }
    }

    /// Waits for a notice.
    fn tells(&self, code: &str) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.notices.recv_timeout(end.saturating_duration_since(Instant::now())).unwrap()
            != code
        {}
    }

    fn stop(self) -> Option<i32> {
        self.stop_by(rustix::process::Signal::TERM)
    }

    fn stop_by(mut self, signal: rustix::process::Signal) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child.0);
        rustix::process::kill_process(pid, signal).unwrap();
        self.child.0.wait().unwrap().code()
    }
}

fn follows(original: &Path, copy: &Path) {
    eventually_ok("the copy follows", || same(&files(original), &files(copy)));
}

fn is_told(path: &str, how: &str, more: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let [original, copy, data] = ["original", "copy", "data"].map(|name| place.path().join(name));
    fs::create_dir_all(&original).unwrap();
    fs::write(original.join("first.txt"), "first").unwrap();
    let data = data.to_str().unwrap();
    let source = Source::start(&original, 0, &["--data", data]);
    let following = Following::start(&format!("{}{path}", source.url()), &copy, more);
    following.tells(how);
    for number in 0..5 {
        fs::write(original.join(format!("{number}.txt")), format!("number {number}")).unwrap();
        follows(&original, &copy);
    }
    fs::remove_file(original.join("first.txt")).unwrap();
    follows(&original, &copy);
    // What changes while the Source is down, and after it is back, comes without a poll.
    let port = source.port();
    source.kill();
    fs::write(original.join("1.txt"), "changed while nobody looked").unwrap();
    fs::remove_file(original.join("2.txt")).unwrap();
    let source = Source::start(&original, port, &["--data", data]);
    follows(&original, &copy);
    fs::write(original.join("last.txt"), "last").unwrap();
    follows(&original, &copy);
    assert_eq!(following.stop(), Some(0));
    assert_eq!(source.stop(), Some(0));
}

#[test]
fn a_copy_follows_by_events() {
    is_told("", "push.events", &[]);
}

#[test]
fn a_copy_follows_by_a_callback() {
    is_called("");
}

#[test]
fn a_copy_follows_by_a_callback_of_version_0_1() {
    is_called("set/v0.1/sitemap.xml");
}

fn is_called(path: &str) {
    let listen = unused_address().to_string();
    let url = format!("http://{listen}/in/");
    is_told(path, "push.callback", &["--callback-listen", &listen, "--callback-url", &url]);
}

#[test]
fn a_copy_that_follows_ends_at_each_signal() {
    use rustix::process::Signal;
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original");
    fs::create_dir_all(&original).unwrap();
    fs::write(original.join("first.txt"), "first").unwrap();
    let source = Source::start(&original, 0, &[]);
    for (number, signal) in [Signal::HUP, Signal::TERM, Signal::INT].into_iter().enumerate() {
        let copy = place.path().join(number.to_string());
        let following = Following::start(&source.url(), &copy, &[]);
        following.tells("push.events");
        follows(&original, &copy);
        let begun = Instant::now();
        assert_eq!(following.stop_by(signal), Some(0), "{signal:?}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{signal:?}: {:?}", begun.elapsed());
        // The state was left complete: the next run has nothing to do.
        let summary = crate::world::sync(&source.url(), &copy, 0, &[]);
        assert_eq!((&summary["created"], &summary["mode"]), (&0.into(), &"unchanged".into()));
    }
}
