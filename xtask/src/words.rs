//! Words in the repository: no registry host, no path of one machine, and plain technical English.
//!
//! The idioms of [`idioms`] are searched in the documents, and in the comments and texts of the
//! program. The names of tests are short, and module headers are statements. Test files are
//! searched for the first two only: they quote what others write.
//!
//! The constructions of [`constructions`] are counted in the comments of each crate and in each
//! document; `xtask/prose.toml` lists the places that exist, which may only become fewer.

mod blocks;
mod changed;
mod constructions;
mod exceptions;
mod idioms;
mod public_docs;
mod rates;
mod text;

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::process::root;
use crate::tree;
use exceptions::{LIST, Listed};
use idioms::{house_types, idioms_in, long_test_names};
use rates::Rates;
use text::{markdown_prose, numbered, rust_prose};

/// Texts that no file may contain, and why. Written in two halves, so that this list does not find
/// itself.
const FORBIDDEN: [(&str, &str); 9] = [
    (concat!("pypi", ".org"), REGISTRY),
    (concat!("pythonhosted", ".org"), REGISTRY),
    (concat!("index.crates", ".io"), REGISTRY),
    (concat!("static.crates", ".io"), REGISTRY),
    (concat!("registry.npmjs", ".org"), REGISTRY),
    (concat!("deb.debian", ".org"), REGISTRY),
    (concat!("/root", "/."), MACHINE),
    (concat!("/work", "/main"), MACHINE),
    (concat!("/work", "/shared"), MACHINE),
];

const REGISTRY: &str = "a registry's host; the tools know where their packages come from";
const MACHINE: &str = "a path of one machine";

/// Lines that may keep their words: file, a part of the line, and the reason.
const EXCEPTIONS: [(&str, &str, &str); 9] = [
    ("adapters/store/src/maintenance/backup.rs", "anew", "a column of the database"),
    ("adapters/store/src/maintenance/integrity/sqlite.rs", "anew", "a column of the database"),
    ("adapters/store/src/log/sqlite/load.rs", "anew", "a column of the database"),
    ("adapters/store/src/maintenance/repair.rs", "ifnull(anew", "a column of the database"),
    ("adapters/store/src/maintenance/migrate/tables.rs", "anew", "a column of the database"),
    ("app/cli/src/command/check.rs", "\"sound\":", "a key of machine-readable output"),
    ("app/cli/src/command/check.rs", "\"looked\":", "a key of machine-readable output"),
    ("bench/src/benches/validate.rs", "\"said\":", "a key of machine-readable output"),
    ("xtask/src/coverage.rs", "\"says\"", "a key of the table"),
];

/// Files and folders that are not searched for idioms: decisions are superseded, never edited; the
/// others list the idioms.
const NOT_PROSE: [&str; 3] = ["docs/decisions/", "xtask/src/words.rs", "xtask/src/words/"];

/// `cargo xtask words [--record]`.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let record = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--record"] => true,
        _ => bail!("`words` takes `--record` or nothing"),
    };
    let (mut faults, mut rates) = (Vec::new(), Rates::default());
    let files = tree::files(&root(), &[])?;
    for file in files.iter().filter(|file| !file.ends_with("Cargo.lock")) {
        let bytes = fs::read(file)?;
        let (text, shown) = (String::from_utf8_lossy(&bytes), tree::shown(file));
        for (number, word, why) in forbidden_in(&text) {
            faults.push(format!("  {shown}:{number}: `{word}` is {why}"));
        }
        if NOT_PROSE.iter().any(|folder| shown.starts_with(folder)) {
            continue;
        }
        rates.add(&shown, &text);
        for (number, fault) in prose_faults(file, &shown, &text) {
            faults.push(format!("  {shown}:{number}: {fault}"));
        }
    }
    let listed = Listed::read()?;
    if record {
        Listed::of(rates.units()).replace(listed.as_ref())?;
        println!("{LIST} is written");
    } else {
        faults.extend(rates.faults(&listed.unwrap_or_default(), &changed::lines()));
    }
    print!("{}", rates.table());
    if !faults.is_empty() {
        bail!("prose has {} faults\n{}", faults.len(), faults.join("\n"));
    }
    println!("{} files contain no registry host, no machine path and no idiom", files.len());
    Ok(())
}

fn forbidden_in(text: &str) -> Vec<(usize, &'static str, &'static str)> {
    if !FORBIDDEN.iter().any(|(word, _)| text.contains(word)) {
        return Vec::new();
    }
    let lines = text.lines().enumerate();
    lines
        .flat_map(|(number, line)| {
            FORBIDDEN
                .iter()
                .filter(|(word, _)| line.contains(word))
                .map(move |(word, why)| (number + 1, *word, *why))
        })
        .collect()
}

/// Idioms, house names, headers and test names of one file.
fn prose_faults(file: &Path, shown: &str, text: &str) -> Vec<(usize, String)> {
    let is_test = shown.split('/').any(|part| ["tests", "tests.rs", "testkit"].contains(&part));
    let mut faults = Vec::new();
    let lines: Vec<(usize, String)> = match file.extension().and_then(|ending| ending.to_str()) {
        Some("rs") => {
            faults.extend(long_test_names(text));
            faults.extend(house_types(text));
            let header = text.lines().next().unwrap_or_default();
            if header.starts_with("//! ") && (header.contains("? ") || header.ends_with('?')) {
                faults.push((1, "a module header is a statement, not a question".to_owned()));
            }
            if is_test { Vec::new() } else { rust_prose(tree::before_tests(text)) }
        }
        Some("md") if !is_test => markdown_prose(text),
        Some("toml") if shown == "abreast.example.toml" => numbered(text),
        _ => Vec::new(),
    };
    for (number, line) in lines {
        let idioms = idioms_in(&line);
        if idioms.is_empty() {
            continue;
        }
        let original = text.lines().nth(number - 1).unwrap_or_default();
        if !EXCEPTIONS.iter().any(|(path, part, _)| *path == shown && original.contains(part)) {
            faults.extend(idioms.into_iter().map(|fault| (number, fault)));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registry_host_is_found_with_its_line() {
        let text = format!("one\nsee https://{}/project\n", FORBIDDEN[0].0);
        assert_eq!(forbidden_in(&text), [(2, FORBIDDEN[0].0, REGISTRY)]);
    }

    #[test]
    fn ordinary_text_has_no_faults() {
        assert!(forbidden_in("a root, its work and a registry").is_empty());
    }
}
