//! Check that every citation names a section that exists. Citations are written `[key §section]`.
//!
//! `docs/specs.toml` has a table for each key with `title`, `date`, `url` and `sections`. One pair
//! of brackets may hold several citations, separated by commas; a section alone belongs to the key
//! before it, and a key alone cites the whole specification.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context, Result, bail};
use toml::{Table, Value};

use crate::process::{is_set, root};
use crate::tree;

/// The specifications and their sections.
type Specifications = BTreeMap<String, BTreeSet<String>>;

/// Where the keys are explained.
const SPECS: &str = "docs/specs.toml";

/// `cargo xtask citations`.
pub(crate) fn run() -> Result<()> {
    let path = root().join(SPECS);
    if !path.exists() {
        if is_set("CI") {
            bail!("{SPECS} does not exist\n  help: it lists each specification with its sections");
        }
        println!("not checked: {SPECS} does not exist");
        return Ok(());
    }
    let specifications = read_specifications(&fs::read_to_string(&path)?)?;
    let (mut count, mut faults) = (0, Vec::new());
    for file in tree::files(&root(), &[".rs", ".md", "manifest.toml"])? {
        if file.starts_with(root().join("xtask")) {
            continue; // its comments and tests explain the form
        }
        let text = fs::read_to_string(&file)
            .with_context(|| format!("cannot read {}", tree::shown(&file)))?;
        for (number, line) in text.lines().enumerate() {
            for citation in citations_in(line) {
                count += 1;
                if let Some(fault) = fault(&citation, &specifications) {
                    faults.push(format!("  {}:{}: {fault}", tree::shown(&file), number + 1));
                }
            }
        }
    }
    if !faults.is_empty() {
        bail!(
            "{} of {count} citations are wrong\n{}\n  help: see {SPECS}",
            faults.len(),
            faults.join("\n")
        );
    }
    println!("{count} citations of {} specifications", specifications.len());
    Ok(())
}

fn read_specifications(text: &str) -> Result<Specifications> {
    let table: Table = text.parse().with_context(|| format!("cannot read {SPECS} as TOML"))?;
    table
        .into_iter()
        .map(|(key, entry)| {
            for field in ["title", "date", "url"] {
                if entry.get(field).is_none() {
                    bail!("{SPECS}: `{key}` has no `{field}`");
                }
            }
            let sections = entry
                .get("sections")
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                .unwrap_or_default();
            let sections = sections.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            Ok((key, sections))
        })
        .collect()
}

/// Key and section of every citation in a line: in brackets, or as a test case's `cites = "…"`.
fn citations_in(line: &str) -> Vec<(String, Option<String>)> {
    let mut found = Vec::new();
    let in_brackets = line.split('[').skip(1).filter_map(|rest| rest.split(']').next());
    let cites = line
        .trim_start()
        .strip_prefix("cites")
        .and_then(|rest| rest.trim_start().strip_prefix('='));
    let in_quotes = cites.into_iter().flat_map(|rest| rest.split('"').skip(1).step_by(2));
    for group in in_brackets.chain(in_quotes).filter(|group| group.contains('§')) {
        let mut key = String::new();
        for part in group.split(',').map(str::trim) {
            let (before, section) =
                part.split_once('§').map_or((part, None), |(before, rest)| (before, Some(rest)));
            if !before.trim().is_empty() {
                before.trim().clone_into(&mut key);
            }
            let section = section.map(|section| section.trim().to_owned());
            found.push((key.clone(), section));
        }
    }
    // `["§1"]` in a list of sections is no citation.
    found.retain(|(key, _)| {
        key.starts_with(|c: char| c.is_ascii_alphabetic()) && !key.contains('"')
    });
    found
}

fn fault(
    (key, section): &(String, Option<String>),
    specifications: &Specifications,
) -> Option<String> {
    let Some(sections) = specifications.get(key) else {
        let known = specifications.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
        return Some(format!("there is no specification `{key}`; expected one of {known}"));
    };
    let section = section.as_ref()?;
    (!sections.contains(section)).then(|| format!("`{key}` has no section `{section}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECIFICATIONS: &str = "[rs-core]\ntitle = \"T\"\ndate = \"D\"\nurl = \"U\"\nsections = [\"7\", \"12.1\"]\n\
        [sdshare]\ntitle = \"T\"\ndate = \"D\"\nurl = \"U\"\nsections = [\"Snapshots Feed\"]\n";

    fn faults(line: &str) -> Vec<String> {
        let specifications = read_specifications(SPECIFICATIONS).unwrap();
        citations_in(line).iter().filter_map(|citation| fault(citation, &specifications)).collect()
    }

    #[test]
    fn sections_that_exist_are_good() {
        assert!(
            faults("/// As asked [rs-core §12.1]; also [rs-core §7, §12.1, sdshare].").is_empty()
        );
        assert!(faults("/// Headings are sections too [sdshare §Snapshots Feed].").is_empty());
        assert!(faults("cites = \"rs-core §7\"").is_empty());
    }

    #[test]
    fn unknown_keys_and_sections_are_faults() {
        assert_eq!(faults("//! [rs-core §99]"), ["`rs-core` has no section `99`"]);
        assert_eq!(faults("//! [rs-code §7]").len(), 1);
        assert_eq!(faults("cites = [\"rs-core §7\", \"rs-core §8\"]").len(), 1);
    }

    #[test]
    fn other_brackets_are_not_citations() {
        assert!(faults("let x = list[0]; // [link] and `[a]`").is_empty());
    }

    #[test]
    fn a_specification_without_its_date_is_refused() {
        let error = read_specifications("[emm]\ntitle = \"T\"\nurl = \"U\"").unwrap_err();
        assert!(error.to_string().contains("`emm` has no `date`"));
    }
}
