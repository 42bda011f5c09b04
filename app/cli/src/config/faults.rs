//! Faults of a configuration file. All faults are reported together, each with line, key and help.
//!
//! The text is parsed into a table with line numbers. Unknown keys and values with a wrong type are
//! reported and removed until the rest of the table can be deserialised. Later checks get the line
//! numbers of keys from here, and do not report consequences of faults that were already reported.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

/// Maximum number of reported faults for a file.
pub(crate) const FAULTS_MAX: usize = 100;
/// Keys that a fault lists when none is near.
const LISTED_MAX: usize = 12;
/// The way out where nothing nearer is known.
pub(crate) const USUAL_HELP: &str = "abreast.example.toml shows every key with a value";

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fault {
    /// The file; unknown in tests, and for flags.
    file: Option<Arc<str>>,
    line: Option<usize>,
    text: String,
}

/// Line numbers and keys of a configuration file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins {
    /// Lines of keys by their path, such as `set.0.folder`, and of tables.
    pub(crate) lines: HashMap<String, usize>,
    pub(crate) faults: Vec<Fault>,
    /// Paths of keys that have a fault, and of the keys that the help proposes instead.
    pub(crate) faulty: BTreeSet<String>,
    file: Option<Arc<str>>,
    /// Keys set by flags or the environment, not by the file.
    given: BTreeSet<String>,
}

impl Fault {
    fn new(line: Option<usize>, mut text: String) -> Self {
        if !text.contains("help: ") {
            text = format!("{text} (help: {USUAL_HELP})");
        }
        Self { file: None, line, text }
    }

    fn of_file(self, file: Option<&Arc<str>>) -> Self {
        Self { file: file.cloned(), ..self }
    }
}

impl Origins {
    /// Whether a fault is in the line of a key.
    pub(crate) fn is_at(&self, path: &str, fault: &Fault) -> bool {
        self.lines.get(path).is_some_and(|line| Some(*line) == fault.line)
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{}:{line}: ", abreast_webtypes::visible(file))?,
            (None, Some(line)) => write!(f, "line {line}: ")?,
            (_, None) => {}
        }
        f.write_str(&self.text)
    }
}

/// All faults as one text, in the order of the file; each once.
pub(crate) fn report(faults: Vec<Fault>) -> String {
    let faults = each_once(faults);
    let more = faults.len().saturating_sub(FAULTS_MAX);
    let mut lines: Vec<String> = faults.iter().take(FAULTS_MAX).map(Fault::to_string).collect();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

/// The faults in the order of the file, each once.
pub(crate) fn each_once(mut faults: Vec<Fault>) -> Vec<Fault> {
    faults.sort();
    faults.dedup();
    faults
}

/// All faults as one error. Where permission is denied, that is its exit code.
pub(crate) fn refused(faults: Vec<Fault>) -> anyhow::Error {
    let denied = std::io::Error::from(rustix::io::Errno::ACCESS).to_string();
    let is_denied = faults.iter().any(|fault| fault.text.contains(&denied));
    let message = report(faults);
    if is_denied {
        return crate::program::errors::ExitCodeError { message, code: crate::program::exit::DISK }
            .into();
    }
    crate::program::errors::UsageError(message).into()
}

/// An unknown key, with the nearest known one.
pub(crate) fn unknown_key<'a>(
    key: &str,
    known: &[&'a str],
    place: &str,
) -> (String, Option<&'a str>) {
    let nearest = abreast_webtypes::nearest(key, known);
    let place = if place.is_empty() { String::new() } else { format!(" in {place}") };
    let help = match nearest {
        Some(nearest) => format!(" (help: did you mean `{nearest}`?)"),
        None if known.len() <= LISTED_MAX => format!(" (help: the keys are {})", known.join(", ")),
        None => String::new(),
    };
    (format!("unknown key `{}`{place}{help}", abreast_webtypes::visible(key)), nearest)
}

impl Origins {
    /// The faults of the text itself.
    pub(crate) fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Whether the file has this key, right or wrong.
    pub(crate) fn has(&self, path: &str) -> bool {
        self.lines.contains_key(path)
    }

    /// Marks a key as overridden by a flag or the environment.
    pub(crate) fn forget(&mut self, path: &str) {
        self.lines.remove(path);
        self.given.insert(path.to_owned());
    }

    /// Which file this is, as faults name it.
    pub(crate) fn name(&mut self, file: &Path) {
        let file: Arc<str> = file.display().to_string().into();
        for fault in &mut self.faults {
            fault.file = Some(Arc::clone(&file));
        }
        self.file = Some(file);
    }

    /// The file, if it has a name.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.file.as_deref().map(Path::new)
    }

    /// The line of a key, else of the table that it is missing in: for one of the file itself, the
    /// first table.
    fn line_of(&self, path: &str) -> Option<usize> {
        let mut near = path;
        loop {
            if let Some(line) = self.lines.get(near) {
                return Some(*line);
            }
            match near.rsplit_once('.') {
                Some((outer, _)) => near = outer,
                None => break,
            }
        }
        let is_missing = self.file.is_some() && !self.given.contains(near);
        // A key that several sets need is missing since the second one.
        let first =
            ["set.1", "set.0", "hub", "mirror.0"].iter().find_map(|table| self.lines.get(*table));
        is_missing.then(|| first.copied().unwrap_or(1))
    }

    /// Turns problems in a table into faults with lines. The text of each problem starts with its key,
    /// such as `` `rescan`: ``.
    pub(crate) fn place(&self, table: &str, problems: Vec<String>) -> impl Iterator<Item = Fault> {
        problems.into_iter().filter_map(|problem| self.place_one(table, problem))
    }

    fn place_one(&self, table: &str, problem: String) -> Option<Fault> {
        let key =
            problem.strip_prefix('`').and_then(|rest| rest.split('`').next()).unwrap_or_default();
        let key = match key.strip_prefix("set.") {
            // `set.links` 2 of a set.
            Some(links) => {
                let number =
                    problem.split(' ').nth(1).and_then(|number| number.parse::<usize>().ok());
                number.map_or(links.to_owned(), |number| {
                    format!("{links}.{}", number.saturating_sub(1))
                })
            }
            None => key.to_owned(),
        };
        self.fault(&joined(table, &key), problem)
    }

    /// A fault of the key at this path, unless it follows from one that is reported already.
    pub(crate) fn fault(&self, path: &str, problem: String) -> Option<Fault> {
        let below = format!("{path}.");
        if self.faulty.contains(path)
            || self.faulty.range(below.clone()..).next().is_some_and(|p| p.starts_with(&below))
        {
            return None;
        }
        let line = self.line_of(path);
        let is_reported = self.faulty.contains("")
            && line.is_some_and(|line| self.faults.iter().any(|fault| fault.line == Some(line)));
        (!is_reported).then(|| Fault::new(line, problem).of_file(self.file.as_ref()))
    }

    pub(crate) fn add(&mut self, line: usize, path: String, text: String) {
        self.faulty.insert(path);
        self.faults.push(Fault::new(Some(line), text));
    }
}

pub(crate) fn joined(table: &str, key: &str) -> String {
    match (table.is_empty(), key.is_empty()) {
        (true, _) => key.to_owned(),
        (false, true) => table.to_owned(),
        (false, false) => format!("{table}.{key}"),
    }
}
