//! The list of exceptions, `xtask/prose.toml`: places that exist and may only become fewer.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use anyhow::{Context, Result, bail};

use super::constructions::CONSTRUCTIONS;
use crate::process::root;

/// Path of the list, from the root of the repository.
pub(super) const LIST: &str = "xtask/prose.toml";

const HEADER: &str = "\
# Places of constructions beyond the limits of `xtask/src/words/constructions.rs`, by crate and
# document. `cargo xtask words` checks the numbers, and `cargo xtask words --record` writes them.
# The sum of each construction may only become smaller: a moved file moves its places.
# After a conflict in this file, choose one side and record.

";

/// Words of a crate or document, and the places of each of [`CONSTRUCTIONS`].
pub(super) struct Unit<P> {
    pub(super) words: usize,
    pub(super) places: [Vec<P>; CONSTRUCTIONS.len()],
}

impl<P> Default for Unit<P> {
    fn default() -> Self {
        Self { words: 0, places: std::array::from_fn(|_| Vec::new()) }
    }
}

/// Number of places by unit and construction.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listed(BTreeMap<String, BTreeMap<String, usize>>);

impl Listed {
    /// The list that the repository has, or `None` if there is no such file.
    pub(super) fn read() -> Result<Option<Self>> {
        let path = root().join(LIST);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {LIST}"))?;
        Ok(Some(Self(toml::from_str(&text).with_context(|| format!("cannot parse {LIST}"))?)))
    }

    /// The list for these units: numbers beyond the limits.
    pub(super) fn of<P>(units: &BTreeMap<String, Unit<P>>) -> Self {
        let mut listed = BTreeMap::<String, BTreeMap<String, usize>>::new();
        for (name, unit) in units {
            for (kind, places) in CONSTRUCTIONS.iter().zip(&unit.places) {
                if places.len() > kind.allowed(unit.words) {
                    let numbers = listed.entry(name.clone()).or_default();
                    numbers.insert(kind.name.to_owned(), places.len());
                }
            }
        }
        Self(listed)
    }

    /// Places that a unit may have of a construction; 0 if the list has no number.
    pub(super) fn get(&self, unit: &str, kind: &str) -> usize {
        self.0.get(unit).and_then(|numbers| numbers.get(kind)).copied().unwrap_or_default()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str, usize)> {
        self.0.iter().flat_map(|(unit, numbers)| {
            numbers.iter().map(move |(kind, number)| (unit.as_str(), kind.as_str(), *number))
        })
    }

    /// Writes this list in place of `old`. Fails if a construction has more places in total.
    pub(super) fn replace(&self, old: Option<&Self>) -> Result<()> {
        if let Some(old) = old {
            let grown = self.grown(old);
            if !grown.is_empty() {
                bail!(
                    "{LIST} cannot list more places than before: {}\n  help: run `cargo xtask \
                     words`, and rewrite the lines that it prints",
                    grown.join(", ")
                );
            }
        }
        fs::write(root().join(LIST), self.text()).with_context(|| format!("cannot write {LIST}"))
    }

    /// Constructions with a larger sum than in `old`.
    fn grown(&self, old: &Self) -> Vec<String> {
        let sum = |list: &Self, name| -> usize {
            list.iter().filter(|(_, kind, _)| *kind == name).map(|(_, _, number)| number).sum()
        };
        let sums =
            CONSTRUCTIONS.iter().map(|kind| (kind.name, sum(old, kind.name), sum(self, kind.name)));
        let grown = sums.filter(|(_, before, now)| now > before);
        grown.map(|(kind, before, now)| format!("{kind} {now} instead of {before}")).collect()
    }

    fn text(&self) -> String {
        let mut text = HEADER.to_owned();
        for (unit, numbers) in &self.0 {
            let numbers: Vec<String> =
                numbers.iter().map(|(kind, number)| format!("{kind} = {number}")).collect();
            let _ = writeln!(text, "\"{unit}\" = {{ {} }}", numbers.join(", "));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> Listed {
        Listed(toml::from_str(text).unwrap())
    }

    #[test]
    fn a_list_is_written_as_it_is_read() {
        let one = list("\"docs/a.md\" = { gone = 2, what = 3 }\ncore = { keep = 1 }");
        assert_eq!(list(&one.text()), one);
        assert_eq!((one.get("docs/a.md", "what"), one.get("core", "what")), (3, 0));
    }

    #[test]
    fn places_may_move_between_units_but_not_become_more() {
        let old = list("core = { gone = 3 }");
        assert!(list("core = { gone = 1 }\n\"formats/rdf\" = { gone = 2 }").grown(&old).is_empty());
        assert_eq!(list("core = { gone = 4 }").grown(&old), ["gone 4 instead of 3"]);
        assert_eq!(list("core = { what = 1 }").grown(&old), ["what 1 instead of 0"]);
    }
}
