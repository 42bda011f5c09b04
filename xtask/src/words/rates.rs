//! Constructions per crate and document, compared with the limits and with the list of exceptions.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::blocks;
use super::constructions::CONSTRUCTIONS;
use super::exceptions::{LIST, Listed, Unit};
use super::public_docs;
use crate::process::root;
use crate::tree;

/// Most lines that one fault prints.
const LINES_SHOWN: usize = 10;
/// Folders and files whose comments are not the product's.
const NOT_PRODUCT: [&str; 12] = [
    "tests",
    "benches",
    "examples",
    "fuzz",
    "testkit",
    "conformance",
    "bench",
    "xtask",
    "testing",
    "tests.rs",
    "testing.rs",
    "fuzz_property.rs",
];
/// Documents that describe the past.
const HISTORY: &str = "CHANGELOG.md";

/// A line of a file.
type Place = (String, usize);

/// The units of prose: crates by their folders, and documents by their paths.
#[derive(Default)]
pub(super) struct Rates {
    units: BTreeMap<String, Unit<Place>>,
}

impl Rates {
    /// Counts a file, if it has prose of the product.
    pub(super) fn add(&mut self, path: &str, text: &str) {
        if path.split('/').any(|part| NOT_PRODUCT.contains(&part)) || path == HISTORY {
            return;
        }
        let (unit, blocks, docs) = if is_document(path) {
            (path, blocks::of_markdown(text), public_docs::Places::default())
        } else if let Some((folder, _)) = path.split_once("/src/")
            && Path::new(path).extension().is_some_and(|ending| ending == "rs")
        {
            let code = tree::before_tests(text);
            (folder, blocks::of_rust(code), public_docs::places(code))
        } else {
            return;
        };
        let unit = self.units.entry(unit.to_owned()).or_default();
        unit.words += blocks.iter().map(Vec::len).sum::<usize>();
        let lines = CONSTRUCTIONS.iter().map(|kind| {
            let lines = blocks.iter().flat_map(|block| kind.lines_in(block)).collect();
            match kind.name {
                public_docs::PRONOUN => docs.pronouns.clone(),
                public_docs::SHORT => docs.short.clone(),
                _ => lines,
            }
        });
        for (places, lines) in unit.places.iter_mut().zip(lines) {
            places.extend(lines.into_iter().map(|line| (path.to_owned(), line)));
        }
    }

    pub(super) fn units(&self) -> &BTreeMap<String, Unit<Place>> {
        &self.units
    }

    /// Units with more places than allowed and listed, and numbers of the list that are too large.
    /// Of the places, those in `changed` lines are printed first.
    pub(super) fn faults(&self, listed: &Listed, changed: &HashSet<Place>) -> Vec<String> {
        let (mut faults, mut smaller) = (Vec::new(), Vec::new());
        let actual = Listed::of(&self.units);
        for (name, unit) in &self.units {
            for (kind, places) in CONSTRUCTIONS.iter().zip(&unit.places) {
                let exception = listed.get(name, kind.name);
                if places.len() <= exception.max(kind.allowed(unit.words)) {
                    continue;
                }
                faults.push(format!(
                    "  {name}: {} places of `{}` in {} words; at most {} per 1,000 words are \
                     allowed, and {LIST} lists {exception} places\n    help: {}{}",
                    places.len(),
                    kind.name,
                    unit.words,
                    kind.limit,
                    kind.help,
                    worst(unit, places, changed),
                ));
            }
        }
        for (name, kind, number) in listed.iter() {
            let now = actual.get(name, kind);
            if now < number {
                smaller.push(format!("\n    {name} {kind}: {number} listed, {now} found"));
            }
        }
        if !smaller.is_empty() {
            faults.push(format!(
                "  {LIST} lists more places than exist\n    help: run `cargo xtask words \
                 --record`{}",
                smaller.concat()
            ));
        }
        faults
    }

    /// A table of all kinds: places per 1,000 words of comments and of documents, the limit, and
    /// the number of units with exceptions.
    pub(super) fn table(&self) -> String {
        let listed = Listed::of(&self.units);
        let mut table = "per 1,000 words   comments  documents  limit  exceptions\n".to_owned();
        for (at, kind) in CONSTRUCTIONS.iter().enumerate() {
            let rate = |of_documents: bool| {
                let units = || {
                    let all = self.units.iter();
                    all.filter(move |(name, _)| is_document(name) == of_documents)
                };
                let places: usize = units().map(|(_, unit)| unit.places[at].len()).sum();
                let words: usize = units().map(|(_, unit)| unit.words).sum();
                per_thousand(places, words)
            };
            let exceptions = listed.iter().filter(|(_, name, _)| *name == kind.name).count();
            let _ = writeln!(
                table,
                "{:<16}  {:>8.1}  {:>9.1}  {:>5.1}  {exceptions:>10}",
                kind.name,
                rate(false),
                rate(true),
                kind.limit
            );
        }
        table
    }
}

/// Whether a unit, or a file, is a document and not code.
fn is_document(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|ending| ending == "md")
}

#[expect(clippy::cast_precision_loss, reason = "words of a repository")]
fn per_thousand(places: usize, words: usize) -> f64 {
    places as f64 * 1_000.0 / words.max(1) as f64
}

/// The lines of places: changed lines first, then lines with the most constructions of any kind.
fn worst(unit: &Unit<Place>, places: &[Place], changed: &HashSet<Place>) -> String {
    let mut number = HashMap::<&Place, usize>::new();
    for place in unit.places.iter().flatten() {
        *number.entry(place).or_default() += 1;
    }
    let mut places: Vec<&Place> = places.iter().collect();
    places.sort();
    places.dedup();
    places.sort_by_key(|place| std::cmp::Reverse((changed.contains(*place), number[place])));
    let shown = places.into_iter().take(LINES_SHOWN).map(|(path, line)| {
        let text = fs::read_to_string(root().join(path)).unwrap_or_default();
        let text = text.lines().nth(line - 1).unwrap_or_default().trim().to_owned();
        format!("\n    {path}:{line}: {text}")
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates of a crate `core` with so many comments that have one place of `gone`.
    fn rates(places: usize) -> Rates {
        let mut rates = Rates::default();
        rates.add("core/src/log.rs", &"// The file is gone.\n\n".repeat(places));
        rates
    }

    fn listed(places: usize) -> Listed {
        Listed::of(&rates(places).units)
    }

    #[test]
    fn crates_and_documents_are_counted_and_tests_are_not() {
        let mut rates = rates(1);
        rates.add("core/src/lib.rs", "// One.\n#[cfg(test)]\nmod tests { // two three\n}");
        rates.add("core/tests/it.rs", "// The file is gone.");
        rates.add("docs/push.md", "The file is gone.");
        rates.add(HISTORY, "The file is gone.");
        let words: Vec<(&str, usize)> =
            rates.units.iter().map(|(name, unit)| (name.as_str(), unit.words)).collect();
        assert_eq!(words, [("core", 5), ("docs/push.md", 4)]);
    }

    #[test]
    fn more_places_than_listed_fail_with_the_changed_line_first() {
        let changed = HashSet::from([("core/src/log.rs".to_owned(), 3)]);
        let faults = rates(3).faults(&listed(2), &changed);
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains("core: 3 places of `gone`"), "{}", faults[0]);
        let lines: Vec<&str> = faults[0].lines().skip(2).collect();
        assert!(lines.len() == 3 && lines[0].contains("log.rs:3:"), "{lines:?}");
    }

    #[test]
    fn fewer_places_than_listed_ask_for_a_smaller_number() {
        assert!(rates(2).faults(&listed(2), &HashSet::new()).is_empty());
        let faults = rates(2).faults(&listed(3), &HashSet::new());
        assert_eq!(faults.len(), 1);
        assert!(faults[0].contains("core gone: 3 listed, 2 found"), "{}", faults[0]);
        let faults = rates(1).faults(&listed(3), &HashSet::new());
        assert!(faults[0].contains("core gone: 3 listed, 0 found"), "{}", faults[0]);
    }

    #[test]
    fn comments_on_public_items_have_no_allowance() {
        let mut rates = Rates::default();
        rates.add("core/src/log.rs", "/// Its name.\npub struct Name;\n");
        let faults = rates.faults(&Listed::default(), &HashSet::new());
        assert_eq!(faults.len(), 2, "{faults:?}");
    }
}
