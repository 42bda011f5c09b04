//! Faults of a configuration file: all of them at once, each with its line, its key and a way out.
//!
//! The text is read into a table with places. Keys that are unknown, and values of a wrong type, are reported and taken out of
//! it, until the rest fits. What is checked later finds the lines of its keys here, and does not report again what
//! follows from a fault that is reported already.

use crate::config::File;
use serde::Deserialize as _;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Most faults of one file that are reported.
const FAULTS_MAX: usize = 100;
/// The way out where nothing nearer is known.
const USUAL_HELP: &str = "abreast.example.toml shows every key with a value";

/// The keys of a table: which there are, which must be there, and the tables in it.
struct Shape {
    name: &'static str,
    known: &'static [&'static str],
    required: &'static [&'static str],
    inner: &'static [(&'static str, &'static Shape)],
}

const fn plain(name: &'static str, known: &'static [&'static str], required: &'static [&'static str]) -> Shape {
    Shape { name, known, required, inner: &[] }
}

static FILE: Shape = Shape {
    name: "",
    known: crate::config::FILE_KEYS,
    required: &[],
    inner: &[("api", &API), ("hub", &HUB), ("notify", &NOTIFY), ("set", &SET)],
};
static API: Shape = plain("[api]", crate::api::API_KEYS, &[]);
static HUB: Shape = plain("[hub]", crate::push::HUB_KEYS, &[]);
static NOTIFY: Shape = plain("[notify]", crate::push::NOTIFY_KEYS, &[]);
static SET: Shape = Shape {
    name: "[[set]]",
    known: crate::config::SET_KEYS,
    required: &[],
    inner: &[
        ("links", &RULE),
        ("set_links", &SET_LINK),
        ("archives", &ARCHIVES),
        ("dumps", &DUMPS),
        ("versions", &VERSIONS),
    ],
};
static RULE: Shape = plain("[[set.links]]", crate::api::RULE_KEYS, &["match", "rel", "href"]);
static SET_LINK: Shape = plain("[[set.set_links]]", crate::api::SET_LINK_KEYS, &["rel", "href"]);
static ARCHIVES: Shape = plain("`archives`", crate::config::ARCHIVES_KEYS, &["every"]);
static DUMPS: Shape = plain("`dumps`", crate::dumps::DUMPS_KEYS, &[]);
static VERSIONS: Shape = plain("`versions`", crate::versions::VERSIONS_KEYS, &[]);

/// Keys that must be there: their tables cannot be read without them.
const NEEDED: &[&str] = &["match", "rel", "href", "every"];

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fault {
    line: Option<usize>,
    text: String,
}

/// What is known of the text of a configuration file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins {
    /// Lines of keys by their path, such as `set.0.folder`, and of tables.
    lines: HashMap<String, usize>,
    faults: Vec<Fault>,
    /// Paths of keys that have a fault, and of those that were meant.
    faulty: BTreeSet<String>,
}

impl Fault {
    fn new(line: Option<usize>, mut text: String) -> Self {
        if !text.contains("help: ") {
            text = format!("{text} (help: {USUAL_HELP})");
        }
        Self { line, text }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.text)
    }
}

/// All faults as one text, in the order of the file; each once.
pub(crate) fn report(mut faults: Vec<Fault>) -> String {
    faults.sort();
    faults.dedup();
    let more = faults.len().saturating_sub(FAULTS_MAX);
    let mut lines: Vec<String> = faults.iter().take(FAULTS_MAX).map(Fault::to_string).collect();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

/// An unknown key, with the nearest known one.
pub(crate) fn unknown_key<'a>(key: &str, known: &[&'a str], place: &str) -> (String, Option<&'a str>) {
    let nearest = known.iter().max_by(|one, two| strsim::jaro(one, key).total_cmp(&strsim::jaro(two, key))).copied();
    let place = if place.is_empty() { String::new() } else { format!(" in {place}") };
    let help = nearest.map_or(String::new(), |nearest| format!(" (help: did you mean `{nearest}`?)"));
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

    /// A key is no longer what the file says: it was given by flag or in the environment.
    pub(crate) fn forget(&mut self, path: &str) {
        self.lines.remove(path);
    }

    /// The faults among these problems below a table, each of which begins with its key, such as `` `rescan`: ``.
    pub(crate) fn place(&self, table: &str, problems: Vec<String>) -> impl Iterator<Item = Fault> {
        problems.into_iter().filter_map(|problem| self.place_one(table, problem))
    }

    fn place_one(&self, table: &str, problem: String) -> Option<Fault> {
        let key = problem.strip_prefix('`').and_then(|rest| rest.split('`').next()).unwrap_or_default();
        let key = match key.strip_prefix("set.") {
            // `set.links` 2 of a set.
            Some(links) => {
                let number = problem.split(' ').nth(1).and_then(|number| number.parse::<usize>().ok());
                number.map_or(links.to_owned(), |number| format!("{links}.{}", number.saturating_sub(1)))
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
        let mut near = path;
        let line = loop {
            if let Some(line) = self.lines.get(near) {
                break Some(*line);
            }
            match near.rsplit_once('.') {
                Some((outer, _)) => near = outer,
                None => break None,
            }
        };
        let is_reported = self.faulty.contains("")
            && line.is_some_and(|line| self.faults.iter().any(|fault| fault.line == Some(line)));
        (!is_reported).then(|| Fault::new(line, problem))
    }

    fn add(&mut self, line: usize, path: String, text: String) {
        self.faulty.insert(path);
        self.faults.push(Fault::new(Some(line), text));
    }
}

fn joined(table: &str, key: &str) -> String {
    match (table.is_empty(), key.is_empty()) {
        (true, _) => key.to_owned(),
        (false, true) => table.to_owned(),
        (false, false) => format!("{table}.{key}"),
    }
}

/// Reads a configuration file as far as it can be read; its faults are in `origins`.
pub(crate) fn read(text: &str) -> File {
    let (mut table, errors) = DeTable::parse_recoverable(text);
    let starts: Vec<usize> = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let line_at = |span: Option<Range<usize>>| {
        starts.partition_point(|start| *start <= span.as_ref().map_or(0, |span| span.start))
    };
    let mut origins = Origins::default();
    for error in errors.iter().take(FAULTS_MAX) {
        let help = match error.message() {
            "duplicate key" => "remove one of the two",
            _ => "a line is `key = value`, with text in quotes, `[table]`, `[[table]]` or a comment after `#`",
        };
        // The empty path: what else is wrong in the same line follows from this.
        origins.add(line_at(error.span()), String::new(), format!("{} (help: {help})", error.message()));
    }
    note_lines(table.get_ref(), "", &line_at, &mut origins.lines);
    check_keys(table.get_mut(), &FILE, "", &line_at, &mut origins);
    let mut file = loop {
        let error = match File::deserialize(toml::de::Deserializer::from(table.clone())) {
            Ok(file) => break file,
            Err(error) => error,
        };
        let found = error.span().and_then(|span| take_out(table.get_mut(), &span, ""));
        let line = line_at(error.span());
        let Some(path) = found.filter(|_| origins.faults.len() < FAULTS_MAX) else {
            origins.add(line, String::new(), error.message().to_owned());
            break File::default();
        };
        let key: Vec<&str> = path.split('.').filter(|part| part.parse::<usize>().is_err()).collect();
        let text = format!("`{}`: {} (help: {})", key.join("."), error.message(), help_for(error.message()));
        // What is no TOML was replaced by something of another type.
        if errors.iter().any(|error| line_at(error.span()) == line) {
            origins.faulty.insert(path);
        } else {
            origins.add(line, path, text);
        }
    };
    file.origins = origins;
    file
}

/// The way out of a value of a wrong type.
fn help_for(message: &str) -> &'static str {
    let expected = message.rsplit_once("expected ").map_or("", |(_, expected)| expected);
    match expected {
        _ if expected.contains("string") => "put the value in quotes",
        "a boolean" => "write `true` or `false`, without quotes",
        "a sequence" => "write a list, such as `[\"one\", \"two\"]`",
        _ if expected.starts_with(['u', 'i']) || expected.contains("integer") => "write a whole number, without quotes",
        _ => USUAL_HELP,
    }
}

type LineAt<'a> = dyn Fn(Option<Range<usize>>) -> usize + 'a;

/// The tables of a value with their paths: itself, or those in its array.
fn tables_of<'v, 'i>(value: &'v mut DeValue<'i>, path: &str) -> Vec<(String, &'v mut DeTable<'i>)> {
    match value {
        DeValue::Table(table) => vec![(path.to_owned(), table)],
        DeValue::Array(values) => values
            .iter_mut()
            .enumerate()
            .filter_map(|(number, value)| match value.get_mut() {
                DeValue::Table(table) => Some((format!("{path}.{number}"), table)),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn note_lines(table: &DeTable<'_>, path: &str, line_at: &LineAt<'_>, lines: &mut HashMap<String, usize>) {
    for (key, value) in table {
        let path = joined(path, key.get_ref());
        lines.insert(path.clone(), line_at(Some(key.span())));
        match value.get_ref() {
            DeValue::Table(table) => note_lines(table, &path, line_at, lines),
            DeValue::Array(values) => {
                for (number, value) in values.iter().enumerate() {
                    if let DeValue::Table(table) = value.get_ref() {
                        let path = format!("{path}.{number}");
                        lines.insert(path.clone(), line_at(Some(value.span())));
                        note_lines(table, &path, line_at, lines);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Reports keys that are unknown or missing; the table has all others and the required ones after it.
fn check_keys(table: &mut DeTable<'_>, shape: &Shape, path: &str, line_at: &LineAt<'_>, origins: &mut Origins) {
    let keys: Vec<_> = table.keys().map(|key| (key.get_ref().to_string(), line_at(Some(key.span())))).collect();
    let mut meant = Vec::new();
    for (key, line) in keys.iter().filter(|(key, _)| !shape.known.contains(&key.as_str())) {
        table.remove(key.as_str());
        let place = if shape.name.starts_with('[') { format!("`{}`", shape.name) } else { shape.name.to_owned() };
        let (text, nearest) = unknown_key(key, shape.known, &place);
        origins.add(*line, joined(path, key), text);
        if let Some(nearest) = nearest.filter(|nearest| strsim::jaro(nearest, key) > 0.7) {
            origins.faulty.insert(joined(path, nearest));
            meant.push(nearest);
        }
    }
    for key in shape.required {
        if !keys.iter().any(|(known, _)| known == key) {
            if !meant.contains(key) {
                let line = origins.lines.get(path).copied().unwrap_or(1);
                let place = shape.name.replace('`', "");
                origins.add(line, joined(path, key), format!("`{key}`: missing in `{place}` (help: {USUAL_HELP})"));
            }
            table.insert(Spanned::new(0..0, (*key).into()), Spanned::new(0..0, DeValue::String("".into())));
        }
    }
    for (key, inner) in shape.inner {
        let Some(value) = table.get_mut(*key) else { continue };
        for (path, table) in tables_of(value.get_mut(), &joined(path, key)) {
            check_keys(table, inner, &path, line_at, origins);
        }
    }
}

/// Takes the innermost key out whose value is at this place; its path.
fn take_out(table: &mut DeTable<'_>, span: &Range<usize>, path: &str) -> Option<String> {
    let mut own = None;
    for (key, value) in table.iter_mut() {
        let path = joined(path, key.get_ref());
        let is_here = key.span().contains(&span.start) || value.span().contains(&span.start);
        for (path, table) in tables_of(value.get_mut(), &path) {
            if let Some(found) = take_out(table, span, &path) {
                return Some(found);
            }
        }
        if is_here {
            own = Some((key.get_ref().to_string(), path));
        }
    }
    let (key, path) = own?;
    table.remove(key.as_str());
    if NEEDED.contains(&key.as_str()) {
        table.insert(Spanned::new(0..0, key.into()), Spanned::new(0..0, DeValue::String("".into())));
    }
    Some(path)
}
