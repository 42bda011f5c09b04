//! Reading of a configuration file as far as it can be read, with all faults.

use crate::config::faults::{FAULTS_MAX, Origins, USUAL_HELP, joined, unknown_key};
use crate::config::settings::{FILE, File, Key, Table};
use abreast_webtypes::without_login;
use anyhow::{Context as _, Result};
use serde::Deserialize as _;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

impl File {
    /// Reads a configuration file; its faults are kept, to be reported with those that are found
    /// later.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn read_with_faults(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read `{}`", path.display()))?;
        let mut file = crate::config::read(&text);
        file.origins.name(path);
        Ok(file)
    }

    /// Reads a configuration file.
    ///
    /// # Errors
    /// It cannot be read, or has keys that are unknown or values of a wrong type: all of them at
    /// once.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let file = Self::read_with_faults(path)?;
        file.refuse_faults()
            .with_context(|| format!("cannot use the configuration `{}`", path.display()))?;
        Ok(file)
    }

    fn refuse_faults(&self) -> Result<()> {
        match self.origins.faults() {
            [] => Ok(()),
            faults => Err(crate::config::faults::refused(faults.to_vec())),
        }
    }

    #[cfg(test)]
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let file = crate::config::read(text);
        file.refuse_faults()?;
        Ok(file)
    }
}

/// Reads a configuration file as far as it can be read; its faults are in `origins`.
pub(crate) fn read(text: &str) -> File {
    let (mut table, errors) = DeTable::parse_recoverable(text);
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let line_at = |span: Option<Range<usize>>| {
        starts.partition_point(|start| *start <= span.as_ref().map_or(0, |span| span.start))
    };
    let mut origins = Origins::default();
    for error in errors.iter().take(FAULTS_MAX) {
        let line = line_at(error.span());
        let unquoted = text.lines().nth(line.saturating_sub(1)).and_then(in_quotes);
        let (message, help) = match (error.message(), unquoted) {
            ("duplicate key", _) => (error.message(), "remove one of the two".to_owned()),
            (_, Some(quoted)) => quoted,
            (message, None) => (
                message,
                "a line is `key = value`, with text in quotes, `[table]`, `[[table]]` or a comment after `#`"
                    .to_owned(),
            ),
        };
        // The empty path: what else is wrong in the same line follows from this.
        origins.add(line, String::new(), format!("{message} (help: {help})"));
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
            origins.add(line, String::new(), in_our_words(error.message()));
            break File::default();
        };
        let key: Vec<&str> =
            path.split('.').filter(|part| part.parse::<usize>().is_err()).collect();
        let text = format!(
            "`{}`: {} (help: {})",
            key.join("."),
            in_our_words(error.message()),
            help_for(error.message(), &key)
        );
        // Text that is not TOML was replaced by a value of another type.
        if errors.iter().any(|error| line_at(error.span()) == line) {
            origins.faulty.insert(path);
        } else {
            origins.add(line, path, text);
        }
    };
    file.origins = origins;
    file
}

/// The error of a value, without the names of types of this program.
fn in_our_words(message: &str) -> String {
    let Some((found, expected)) = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "))
        .and_then(|rest| rest.split_once(", expected "))
    else {
        return message.to_owned();
    };
    let found = match found {
        "map" => "a table",
        "sequence" => "a list",
        other => other,
    };
    let is_number = is_whole_number(expected);
    let expected = match expected {
        _ if expected.contains("string") => "a text",
        "a boolean" => "`true` or `false`",
        "a sequence" => "a list",
        "a map" => "a table",
        _ if expected.starts_with("struct ") => "a table",
        _ if is_number => "a whole number of 0 or more",
        other => other,
    };
    format!("found {found}, expected {expected}")
}

fn is_whole_number(expected: &str) -> bool {
    let digits = expected.strip_prefix(['u', 'i']);
    expected.contains("integer")
        || digits.is_some_and(|rest| rest == "size" || rest.parse::<u8>().is_ok())
}

/// The way out of a value of a wrong type, at the key with these parts.
fn help_for(message: &str, key: &[&str]) -> String {
    let (found, expected) = message.rsplit_once("expected ").unwrap_or_default();
    let name = key.last().copied().unwrap_or_default();
    let number = found.split('`').nth(1).filter(|text| text.parse::<f64>().is_ok());
    match (expected, number) {
        (_, Some(number)) if expected.contains("string") && FILE.has(name, Key::is_time) => {
            format!("write a time with its unit, in quotes: {name} = \"{number}s\"")
        }
        (_, Some(port)) if expected.contains("string") && name == "listen" => {
            format!("write HOST:PORT in quotes: listen = \"127.0.0.1:{port}\"")
        }
        (_, Some(number)) if expected.contains("string") => {
            format!("put the value in quotes: {name} = \"{number}\"")
        }
        _ if expected.contains("string") => "put the value in quotes".to_owned(),
        ("a boolean", _) => "write `true` or `false`, without quotes".to_owned(),
        ("a sequence", _) if found.contains("map") => {
            format!("write `[[{0}]]`, not `[{0}]`", key.join("."))
        }
        ("a sequence", _) => {
            "write a list, such as `[\"one\", \"two\"]`, or `[[table]]` for tables".to_owned()
        }
        ("a map", _) => "write a table, such as `{ key = \"value\" }`".to_owned(),
        _ if expected.starts_with("struct ") => {
            "write a table, such as `{ key = \"value\" }`".to_owned()
        }
        _ if is_whole_number(expected) => "write a whole number, without quotes".to_owned(),
        _ => USUAL_HELP.to_owned(),
    }
}

/// What is wrong with a line whose value is text without quotes, or a boolean in other letters, and how to write it;
/// without a login.
fn in_quotes(line: &str) -> Option<(&'static str, String)> {
    let (key, value) = line.split_once('=')?;
    let (key, value) = (key.trim(), value.split(" #").next().unwrap_or_default().trim());
    let key = abreast_webtypes::visible(key);
    if let truth @ ("true" | "false") = &*value.to_ascii_lowercase() {
        return Some(("a boolean is in small letters", format!("write {key} = {truth}")));
    }
    // A number or a date that is written wrongly is not text, unless it is an address.
    let is_number = value.starts_with(|first: char| first.is_ascii_digit())
        && value.parse::<SocketAddr>().is_err()
        && value.parse::<IpAddr>().is_err();
    if is_number || value.is_empty() || value.contains(['"', '\'', '[', '{', ',', '=']) {
        return None;
    }
    let has_login = value.split_once('@').is_some_and(|(login, _)| login.contains(':'));
    let shown = if has_login { without_login(value) } else { value.into() };
    let shown = abreast_webtypes::visible(&shown);
    Some(("text must be in quotes", format!("{key} = \"{shown}\"")))
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

fn note_lines(
    table: &DeTable<'_>,
    path: &str,
    line_at: &LineAt<'_>,
    lines: &mut HashMap<String, usize>,
) {
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

/// Reports keys that are unknown or missing; the table has all others and the required ones after
/// it.
fn check_keys(
    table: &mut DeTable<'_>,
    known: &Table,
    path: &str,
    line_at: &LineAt<'_>,
    origins: &mut Origins,
) {
    let keys: Vec<_> =
        table.keys().map(|key| (key.get_ref().to_string(), line_at(Some(key.span())))).collect();
    let (names, mut meant) = (known.names(), Vec::new());
    for (key, line) in keys.iter().filter(|(key, _)| !names.contains(&key.as_str())) {
        table.remove(key.as_str());
        let place = if known.name.starts_with('[') {
            format!("`{}`", known.name)
        } else {
            known.name.to_owned()
        };
        let (text, nearest) = unknown_key(key, &names, &place);
        origins.add(*line, joined(path, key), text);
        if let Some(nearest) = nearest {
            origins.faulty.insert(joined(path, nearest));
            meant.push(nearest);
        }
    }
    for key in known.keys.iter().filter(|key| key.is_needed()).map(|key| key.name) {
        if keys.iter().any(|(known, _)| known == key) {
            continue;
        }
        if !meant.contains(&key) {
            let line = origins.lines.get(path).copied().unwrap_or(1);
            let place = known.name.replace('`', "");
            let text = format!("`{key}`: missing in `{place}` (help: {USUAL_HELP})");
            origins.add(line, joined(path, key), text);
        }
        insert_empty(table, key.to_owned());
    }
    for (key, inner) in known.keys.iter().filter_map(|key| Some((key.name, key.inner?))) {
        let Some(value) = table.get_mut(key) else { continue };
        // Read as a list, its tables would be taken for the values of its keys.
        if inner.name.starts_with('[')
            && !inner.name.starts_with("[[")
            && value.get_ref().is_array()
        {
            let (name, path) = (inner.name, joined(path, key));
            let line = origins.lines.get(&path).copied().unwrap_or(1);
            let text = format!(
                "`{key}`: found a list, expected a table (help: write `{name}`, not `[{name}]`)"
            );
            origins.add(line, path, text);
            table.remove(key);
            continue;
        }
        for (path, table) in tables_of(value.get_mut(), &joined(path, key)) {
            check_keys(table, inner, &path, line_at, origins);
        }
    }
}

/// A table is not read without the keys that it needs.
fn insert_empty(table: &mut DeTable<'_>, key: String) {
    table.insert(Spanned::new(0..0, key.into()), Spanned::new(0..0, DeValue::String("".into())));
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
    if FILE.has(&key, Key::is_needed) {
        insert_empty(table, key);
    }
    Some(path)
}
