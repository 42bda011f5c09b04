//! Results of the benchmarks, in `docs/benchmarks.md` and `bench/results`.

use crate::machine;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use crate::targets;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;

/// The introduction of the page.
const PREFACE: &str = "\
# Benchmarks

Written by `cargo xtask bench`; each section states time, machine and command. Every figure is printed next to a
limit or a peer measured in the same run, in turn. Figures are the median and (smallest – largest) of the rounds;
ratios are taken round by round. A mirror counts only if it equals the source byte for byte. How the benches
work: [bench/README.md](../bench/README.md); raw figures: [bench/results](../bench/results).
";

/// One bench's section.
pub(crate) struct Report {
    name: &'static str,
    title: &'static str,
    command: String,
    body: String,
    targets: String,
    raw: String,
    /// The load before, and what creating a file cost then, in microseconds.
    started: (f64, f64),
}

impl Report {
    pub(crate) fn new(
        name: &'static str,
        title: &'static str,
        settings: &Settings,
    ) -> Result<Self> {
        let mut command = format!("cargo xtask bench {name} --rounds {}", settings.rounds);
        if settings.quick {
            command.push_str(" --quick");
        }
        let raw = format!(
            "{}\n",
            json!({"bench": name, "date": machine::date(), "machine": machine::line(), "command": command})
        );
        let started = (machine::load(), settings.creation_cost()?);
        Ok(Self { name, title, command, body: String::new(), targets: String::new(), raw, started })
    }

    /// A paragraph.
    pub(crate) fn text(&mut self, text: &str) {
        let _ = writeln!(self.body, "{text}\n");
    }

    /// A table, each row as long as the head.
    pub(crate) fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        let _ = writeln!(self.body, "| {} |\n|{}", head.join(" | "), "---|".repeat(head.len()));
        for row in rows {
            let _ = writeln!(self.body, "| {} |", row.join(" | "));
        }
        self.body.push('\n');
    }

    /// One measurement, for `bench/results`.
    pub(crate) fn raw(&mut self, value: &Value) {
        let _ = writeln!(self.raw, "{value}");
        eprintln!("   {value}");
    }

    /// Something that should be at least `bound`.
    pub(crate) fn at_least(&mut self, what: &str, found: &Samples, bound: f64, unit: &str) {
        self.target(
            what,
            found,
            &format!("≥ {}{unit}", plain(bound)),
            unit,
            found.median() >= bound,
        );
    }

    /// Something that should be at most `bound`.
    pub(crate) fn at_most(&mut self, what: &str, found: &Samples, bound: f64, unit: &str) {
        self.target(
            what,
            found,
            &format!("≤ {}{unit}", plain(bound)),
            unit,
            found.median() <= bound,
        );
    }

    fn target(&mut self, what: &str, found: &Samples, bound: &str, unit: &str, good: bool) {
        let verdict = match (found.is_empty(), good) {
            (true, _) => "not measured",
            (false, true) => "pass",
            (false, false) => "**fail**",
        };
        let shown =
            if found.is_empty() { "–".to_owned() } else { format!("{}{unit}", found.text()) };
        let _ = writeln!(self.targets, "| {what} | {shown} | {bound} | {verdict} |");
        eprintln!("   {verdict}: {what}: {shown}, target {bound}");
    }

    fn markdown(&self, settings: &Settings) -> Result<String> {
        let mut text = format!("## {}\n\n", self.title);
        if !self.targets.is_empty() {
            let _ = writeln!(
                text,
                "| target | found | wanted | |\n|---|---|---|---|\n{}",
                self.targets
            );
        }
        text.push_str(&self.body);
        let _ = writeln!(
            text,
            "{}. {}; load {} before, {} after; creating a file {} µs before, {} µs after. `{}`",
            machine::date(),
            machine::line(),
            number(self.started.0),
            number(machine::load()),
            number(self.started.1),
            number(settings.creation_cost()?),
            self.command
        );
        Ok(text)
    }

    /// Puts the section into the page, in place of the one before.
    pub(crate) fn write(&self, settings: &Settings, order: &[&str]) -> Result<()> {
        let section = self.markdown(settings)?;
        println!("{section}");
        if settings.quick || settings.is_partial() {
            return Ok(());
        }
        let page = settings.root.join("docs/benchmarks.md");
        let before = match fs::read_to_string(&page) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read {}", page.display()));
            }
        };
        let text = targets::summarised(&replaced(&before, order, self.name, &section));
        fs::write(&page, text).with_context(|| format!("cannot write {}", page.display()))?;
        let results = settings.root.join("bench/results");
        fs::create_dir_all(&results)?;
        let path = results.join(format!("{}.jsonl", self.name));
        fs::write(&path, &self.raw).with_context(|| format!("cannot write {}", path.display()))
    }
}

fn plain(bound: f64) -> String {
    let text = format!("{bound:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Handwritten text within a section, kept when the section is written again.
const NOTES: (&str, &str) = ("<!-- notes -->\n", "<!-- /notes -->\n");

/// The page with one section replaced, everything else as it was; a new section is put in the order
/// of `names`. Between `<!-- notes -->` and `<!-- /notes -->` a section has what was written by
/// hand: that stays, behind the figures.
fn replaced(page: &str, names: &[&str], name: &str, section: &str) -> String {
    let page = if page.is_empty() { PREFACE } else { page };
    let begin = |name: &str| format!("<!-- bench:{name} -->\n");
    let (start, end) = (begin(name), format!("<!-- /bench:{name} -->\n"));
    let around = page.split_once(&start).and_then(|(before, rest)| {
        let (inside, after) = rest.split_once(&end)?;
        Some((before, inside, after))
    });
    if let Some((before, inside, after)) = around {
        let notes = inside.split_once(NOTES.0).and_then(|(_, rest)| rest.split_once(NOTES.1));
        let notes =
            notes.map_or(String::new(), |(notes, _)| format!("\n{}{notes}{}", NOTES.0, NOTES.1));
        return format!("{before}{start}{section}{notes}{end}{after}");
    }
    let mut later = names.iter().skip_while(|other| **other != name).skip(1);
    let at = later.find_map(|other| page.find(&begin(other)));
    let (before, after) = page.split_at(at.unwrap_or(page.len()));
    let (gap, after_gap) = (
        if before.ends_with("\n\n") { "" } else { "\n" },
        if after.is_empty() { "" } else { "\n" },
    );
    format!("{before}{gap}{start}{section}{end}{after_gap}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_section_is_replaced_and_the_others_stay() {
        let names = ["a", "b"];
        let page = replaced("", &names, "b", "old b\n");
        let page = replaced(&page, &names, "a", "the a\n");
        let page = replaced(&page, &names, "b", "new b\n");
        assert!(page.starts_with(PREFACE));
        assert!(
            page.contains("<!-- bench:a -->\nthe a\n<!-- /bench:a -->\n\n<!-- bench:b -->\nnew b\n<!-- /bench:b -->\n")
        );
        assert!(!page.contains("old b"));
    }

    #[test]
    fn handwritten_sections_are_kept() {
        let names = ["a", "b", "c"];
        let page = replaced("", &names, "b", "old b\n");
        let page =
            page.replace("old b\n", "old b\n\n<!-- notes -->\nWhy b is slow.\n<!-- /notes -->\n");
        let page = page.replacen("<!-- bench:b -->", "Written between.\n\n<!-- bench:b -->", 1);
        let page = replaced(&format!("{page}\nAt the end.\n"), &names, "b", "new b\n");
        let page = replaced(&page, &names, "b", "newer b\n");
        assert!(
            page.contains(
                "newer b\n\n<!-- notes -->\nWhy b is slow.\n<!-- /notes -->\n<!-- /bench:b -->"
            ),
            "{page}"
        );
        let page = replaced(&replaced(&page, &names, "c", "the c\n"), &names, "a", "the a\n");
        assert!(
            page.contains("Written between.\n\n<!-- bench:a -->")
                && page.contains("At the end.\n\n<!-- bench:c -->"),
            "{page}"
        );
        let page = replaced(&page, &names, "a", "again\n");
        for text in
            ["Written between.", "At the end.", "Why b is slow.", "the c", "newer b", "again"]
        {
            assert_eq!(page.matches(text).count(), 1, "{text}: {page}");
        }
    }
}
