//! The table of limits in `docs/limits.md`, made from the constants of the code.
//!
//! A limit is a constant whose name has one of [`WORDS`], with the comment above it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use anyhow::Result;

use crate::process::root;
use crate::tree;

/// The parts of the program, in the order of the table, and their folders.
const PARTS: [(&str, &str); 13] = [
    ("Formats", "formats"),
    ("Core", "core/src"),
    ("HTTP client", "adapters/net/src"),
    ("XMPP", "adapters/xmpp/src"),
    ("RDF on disk", "adapters/statements/src"),
    ("Store, contents, folders", "adapters"),
    ("Source", "roles/source/src"),
    ("Hub", "roles/hub/src"),
    ("Destination", "roles/destination/src"),
    ("Validator", "roles/validator/src"),
    ("Maintenance", "roles/maintenance/src"),
    ("Server", "app/server/src"),
    ("Command line", "app/cli/src"),
];

const WORDS: [&str; 6] = ["MAX", "MOST", "LIMIT", "LONGEST", "LARGEST", "RATIO"];

const HEAD: &str = "# Limits

Every limit that is fixed in the program. Input above a limit is refused or left out, or it waits. Limits that users set, and their
defaults, are in `abreast help` of each command and in [configuration.md](configuration.md).

This file is made from the code by `cargo xtask generate`.
";

/// A constant with its comment.
struct Limit {
    meaning: String,
    value: String,
    file: String,
}

/// The text of the file.
pub(crate) fn table() -> Result<String> {
    let mut text = HEAD.to_owned();
    let mut seen = Vec::new();
    let mut values = Values::new();
    for (_, folder) in PARTS {
        for path in tree::files(&root().join(folder), &[".rs"])? {
            note_values(tree::before_tests(&fs::read_to_string(&path)?), &mut values);
        }
    }
    for (part, folder) in PARTS {
        let mut rows = Vec::new();
        for path in tree::files(&root().join(folder), &[".rs"])? {
            let file = tree::shown(&path);
            let is_test = ["/tests", "/examples/", "fuzz_property", "/simulation/", "testing"]
                .iter()
                .any(|part| file.contains(part));
            if is_test || seen.contains(&file) {
                continue;
            }
            rows.extend(limits(tree::before_tests(&fs::read_to_string(&path)?), &file, &values));
            seen.push(file);
        }
        if rows.is_empty() {
            continue;
        }
        let _ = write!(text, "\n## {part}\n\n| limit | value | decided in |\n|---|---|---|\n");
        for Limit { meaning, value, file } in rows {
            let _ = writeln!(text, "| {meaning} | {value} | [{file}](../{file}) |");
        }
    }
    Ok(text)
}

/// The values of all constants by their names, so that one that is defined by another gets a number.
type Values = BTreeMap<String, String>;

fn note_values(text: &str, values: &mut Values) {
    for line in text.lines() {
        let constant = line.split_once("const ").and_then(|(_, rest)| rest.split_once(':'));
        let Some((name, rest)) = constant else { continue };
        let Some((_, value)) = rest.split_once('=') else { continue };
        let value = value.trim().trim_end_matches(';');
        if value == name {
            continue;
        }
        // Two of one name are not distinguished: neither has a value then.
        let known = values.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        if known != value {
            known.clear();
        }
    }
}

/// The limits of one file, in order.
fn limits(text: &str, file: &str, values: &Values) -> Vec<Limit> {
    let (mut found, mut meaning) = (Vec::new(), String::new());
    // A constant may continue in the next lines.
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(comment) = line.strip_prefix("///") {
            meaning.push_str(if meaning.is_empty() { "" } else { " " });
            meaning.push_str(comment.trim());
            continue;
        }
        let constant = line.split_once("const ").filter(|(before, _)| {
            before.is_empty()
                || *before == "pub "
                || *before == "pub(crate) "
                || *before == "pub(super) "
        });
        if let Some((_, constant)) = constant {
            let mut whole = constant.to_owned();
            while !whole.ends_with(';') {
                let Some(more) = lines.next() else { break };
                whole.push(' ');
                whole.push_str(more);
            }
            found.extend(limit(&whole, &meaning, file, values));
        }
        meaning.clear();
    }
    found
}

fn limit(constant: &str, meaning: &str, file: &str, values: &Values) -> Option<Limit> {
    let (name, rest) = constant.split_once(':')?;
    let (kind, value) = rest.split_once('=')?;
    let is_limit = name.split('_').any(|word| WORDS.contains(&word));
    if !is_limit || meaning.is_empty() || ["&str", "Self"].contains(&kind.trim()) {
        return None;
    }
    let value = value.trim().trim_end_matches(';');
    let is_bytes =
        ["byte", "Byte", "large", "MiB", "length"].iter().any(|word| meaning.contains(word))
            || name.contains("BYTES");
    let value = match (number(value, values), kind.trim()) {
        (Some(number), _) if is_bytes => bytes(number),
        (Some(number), _) => grouped(number),
        (None, "Duration") => seconds(value, values).unwrap_or_else(|| format!("`{value}`")),
        (None, _) => format!("`{value}`"),
    };
    let meaning = meaning.replace('|', "\\|").replace("[`", "`").replace("`]", "`");
    Some(Limit { meaning: meaning.trim_end_matches('.').to_owned(), value, file: file.to_owned() })
}

/// The value of numbers and other constants with `*`, `/`, `<<` and `+`; parentheses are not read.
fn number(text: &str, values: &Values) -> Option<u64> {
    let number = |text| number(text, values);
    if let Some((left, right)) = text.split_once('+') {
        return number(left)?.checked_add(number(right)?);
    }
    if let Some((left, right)) = text.split_once("<<") {
        return number(left)?.checked_shl(u32::try_from(number(right)?).ok()?);
    }
    if let Some((left, right)) = text.rsplit_once(['*', '/']) {
        let (left, right) = (number(left)?, number(right)?);
        let is_product = text.rfind('*') > text.rfind('/');
        return if is_product { left.checked_mul(right) } else { left.checked_div(right) };
    }
    let name = text.trim().rsplit("::").next()?;
    match name.replace('_', "").parse() {
        Ok(number) => Some(number),
        Err(_) => number(values.get(name)?),
    }
}

fn seconds(text: &str, values: &Values) -> Option<String> {
    let inside = |name: &str| number(text.strip_prefix(name)?.strip_suffix(')')?, values);
    let shown = |number: u64, one: &str, many: &str| {
        if number == 1 { format!("1 {one}") } else { format!("{} {many}", grouped(number)) }
    };
    if let Some(milliseconds) = inside("Duration::from_millis(") {
        return Some(shown(milliseconds, "ms", "ms"));
    }
    let seconds = inside("Duration::from_secs(")?;
    Some(match seconds {
        0 => "0 seconds".to_owned(),
        seconds if seconds.is_multiple_of(86_400) => shown(seconds / 86_400, "day", "days"),
        seconds if seconds.is_multiple_of(3_600) => shown(seconds / 3_600, "hour", "hours"),
        seconds if seconds.is_multiple_of(60) => shown(seconds / 60, "minute", "minutes"),
        seconds => shown(seconds, "second", "seconds"),
    })
}

fn bytes(number: u64) -> String {
    for (shift, unit) in [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")] {
        if number >= 1 << shift && number.is_multiple_of(1 << shift) {
            return format!("{} {unit}", number >> shift);
        }
    }
    grouped(number)
}

/// A number with commas between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_become_rows() {
        let text = "/// Bytes of a batch.\nconst MAX_BATCH: u64 = 16 * 1024 * 1024;\n/// Longest wait.\n\
            pub(crate) const LONGEST_WAIT: Duration =\n    Duration::from_secs(15 * 60);\n/// Pages.\nconst PAGES_MAX: usize = 50_000;\n\
            const MAX_BARE: u8 = 1;\n/// No limit.\nconst OTHER: u8 = 1;\n/// Batches, as [`OTHER`].\nconst MOST: usize = 2 * x::OTHER + 64 / 4;\n\
            /// A name.\nconst MAX_NAME: &str = \"x\";\n";
        let mut values = Values::new();
        note_values(text, &mut values);
        let rows: Vec<_> =
            limits(text, "x.rs", &values).into_iter().map(|row| (row.meaning, row.value)).collect();
        let expected = [
            ("Bytes of a batch", "16 MiB"),
            ("Longest wait", "15 minutes"),
            ("Pages", "50,000"),
            ("Batches, as `OTHER`", "18"),
        ];
        assert_eq!(rows, expected.map(|(meaning, value)| (meaning.to_owned(), value.to_owned())));
    }
}
