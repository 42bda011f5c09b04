//! What was found, and how does it get into `docs/benchmarks.md` and `bench/results`?

use crate::machine;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;

/// What the page says before the first bench.
const PREFACE: &str = "\
# Benchmarks

Written by `cargo xtask bench`; each section says when, where and with which command. Every figure stands beside a
limit or a peer measured in the same run, in turn. Given are the median and (smallest – largest) of the rounds;
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
    started: f64,
}

impl Report {
    pub(crate) fn new(name: &'static str, title: &'static str, settings: &Settings) -> Self {
        let mut command = format!("cargo xtask bench {name} --rounds {}", settings.rounds);
        if settings.quick {
            command.push_str(" --quick");
        }
        let raw = format!(
            "{}\n",
            json!({"bench": name, "date": machine::date(), "machine": machine::line(), "command": command})
        );
        Self { name, title, command, body: String::new(), targets: String::new(), raw, started: machine::load() }
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
        self.target(what, found, &format!("≥ {}{unit}", plain(bound)), unit, found.median() >= bound);
    }

    /// Something that should be at most `bound`.
    pub(crate) fn at_most(&mut self, what: &str, found: &Samples, bound: f64, unit: &str) {
        self.target(what, found, &format!("≤ {}{unit}", plain(bound)), unit, found.median() <= bound);
    }

    fn target(&mut self, what: &str, found: &Samples, bound: &str, unit: &str, good: bool) {
        let verdict = match (found.is_empty(), good) {
            (true, _) => "not measured",
            (false, true) => "pass",
            (false, false) => "**fail**",
        };
        let shown = if found.is_empty() { "–".to_owned() } else { format!("{}{unit}", found.text()) };
        let _ = writeln!(self.targets, "| {what} | {shown} | {bound} | {verdict} |");
        eprintln!("   {verdict}: {what}: {shown}, target {bound}");
    }

    fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n", self.title);
        if !self.targets.is_empty() {
            let _ = writeln!(text, "| target | found | wanted | |\n|---|---|---|---|\n{}", self.targets);
        }
        text.push_str(&self.body);
        let _ = writeln!(
            text,
            "{}. {}; load {} before, {} after. `{}`",
            machine::date(),
            machine::line(),
            number(self.started),
            number(machine::load()),
            self.command
        );
        text
    }

    /// Puts the section into the page, in place of the one before.
    pub(crate) fn write(&self, settings: &Settings) -> Result<()> {
        let section = self.markdown();
        println!("{section}");
        if settings.quick {
            return Ok(());
        }
        let page = settings.root.join("docs/benchmarks.md");
        let before = match fs::read_to_string(&page) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", page.display())),
        };
        let names: Vec<&str> = crate::BENCHES.iter().map(|(name, _, _)| *name).collect();
        fs::write(&page, replaced(&before, &names, self.name, &section))
            .with_context(|| format!("cannot write {}", page.display()))?;
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

/// The page with one section replaced, the others as they were, in the order of `names`.
fn replaced(page: &str, names: &[&str], name: &str, section: &str) -> String {
    let mut text = PREFACE.to_owned();
    for other in names {
        let (start, end) = (format!("<!-- bench:{other} -->\n"), format!("<!-- /bench:{other} -->\n"));
        let found = || page.split_once(&start)?.1.split_once(&end).map(|(inside, _)| inside);
        let inside = if *other == name { Some(section) } else { found() };
        if let Some(inside) = inside {
            let _ = write!(text, "\n{start}{inside}{end}");
        }
    }
    text
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
}
