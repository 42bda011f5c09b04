//! A copy that follows in a process, started again whenever it ends.

use crate::world::abreast;
use abreast_testkit::Running;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// What the runs of a copy reported.
#[derive(Debug, Default)]
struct Reported {
    /// Errors, notices and modes of runs, and how often each was reported.
    codes: BTreeMap<String, u64>,
    deleted: BTreeSet<String>,
    runs: u64,
    last: String,
}

pub(super) struct Copy {
    pub(super) name: &'static str,
    pub(super) folder: PathBuf,
    pub(super) kills: u64,
    /// Exit codes of what ended without a kill.
    pub(super) exits: Vec<Option<i32>>,
    command: Command,
    log: PathBuf,
    reported: Arc<Mutex<Reported>>,
    child: Running,
}

impl Copy {
    pub(super) fn start(name: &'static str, place: &Path, url: &str, arguments: &[&str]) -> Self {
        let (folder, log) = (place.join(name), place.join(format!("{name}.log")));
        let mut command = abreast();
        command.args(["sync", url]).arg(&folder).args(["--follow", "--json"]).args(arguments);
        command.env("ABREAST_LOG", "warn,abreast_destination=debug");
        let reported = Arc::<Mutex<Reported>>::default();
        let child = run(&mut command, &log, &reported);
        Self { name, folder, kills: 0, exits: Vec::new(), command, log, reported, child }
    }

    /// SIGKILL, and a new start.
    pub(super) fn kill(&mut self) {
        self.kills += 1;
        self.child.0.kill().unwrap();
        self.child.0.wait().unwrap();
        self.child = run(&mut self.command, &self.log, &self.reported);
    }

    /// Starts it again if it has ended, as a manager of services does.
    pub(super) fn tend(&mut self) {
        if let Some(status) = self.child.0.try_wait().unwrap() {
            self.exits.push(status.code());
            self.child = run(&mut self.command, &self.log, &self.reported);
        }
    }

    pub(super) fn runs(&self) -> u64 {
        self.reported.lock().unwrap().runs
    }

    pub(super) fn codes(&self) -> BTreeMap<String, u64> {
        self.reported.lock().unwrap().codes.clone()
    }

    /// Paths of files that it deleted.
    pub(super) fn deleted(&self) -> BTreeSet<String> {
        self.reported.lock().unwrap().deleted.clone()
    }

    /// Its name, and the last that it reported.
    pub(super) fn last(&self) -> (&'static str, String) {
        (self.name, self.reported.lock().unwrap().last.clone())
    }

    /// How often its log has a message.
    pub(super) fn logged(&self, message: &str) -> usize {
        fs::read_to_string(&self.log).unwrap().matches(message).count()
    }
}

fn run(command: &mut Command, log: &Path, reported: &Arc<Mutex<Reported>>) -> Running {
    let log = fs::File::options().create(true).append(true).open(log).unwrap();
    let mut child = Running::start(command.stdout(Stdio::piped()).stderr(log));
    let out = BufReader::new(child.0.stdout.take().unwrap());
    let reported = Arc::clone(reported);
    std::thread::spawn(move || {
        // A kill may tear the last line.
        for line in out.lines().map_while(Result::ok) {
            if let Ok(line) = serde_json::from_str(&line) {
                reported.lock().unwrap().note(&line);
            }
        }
    });
    child
}

impl Reported {
    fn note(&mut self, line: &Value) {
        let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let code = match &*text("type") {
            "error" | "notice" => text("code"),
            "summary" => {
                self.runs += 1;
                text("mode")
            }
            "item" if text("change") == "deleted" => {
                self.deleted.insert(text("path"));
                return;
            }
            _ => return,
        };
        *self.codes.entry(code).or_default() += 1;
        self.last = line.to_string();
    }
}
