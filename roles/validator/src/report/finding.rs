//! Findings, and the limit on their number.

use crate::report::rule::{Mode, Rule};
use abreast_core::Severity;
use abreast_webtypes::SyntaxError;

/// A fault in a document. Further faults of the same rule may be counted in the last finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Severity of the fault in the mode of the validation.
    pub severity: Severity,
    /// Rule that the document violates.
    pub rule: &'static Rule,
    /// The document: a URL or the path of a file, followed by `!/name` for a member of a package.
    pub url: String,
    /// Line of the fault, from 1; 0 if the fault concerns the whole document.
    pub line: u64,
    /// Column in characters, from 1; 0 if unknown.
    pub column: u64,
    /// Description of the fault, without citation and help.
    pub message: String,
    /// How to repair the fault: the help of the rule, unless this finding has another cause.
    pub help: &'static str,
    /// Number of further violations of the rule in the document that are only counted.
    pub more: u64,
}

/// Findings of a document; only the first few of each rule are stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings {
    url: String,
    mode: Mode,
    most_each: usize,
    list: Vec<Finding>,
    /// The number of stored findings and the index of the last one, by rule.
    kept: Vec<(&'static str, usize, usize)>,
}

impl Findings {
    pub(crate) fn new(url: &str, mode: Mode, most_each: usize) -> Self {
        Self { url: url.to_owned(), mode, most_each: most_each.max(1), ..Self::default() }
    }

    /// Adds a finding at a line and column. `message` is called only if the finding is stored.
    pub(crate) fn add<M: Into<String>>(
        &mut self,
        rule: &'static Rule,
        place: (u64, u64),
        message: impl FnOnce() -> M,
    ) {
        let at = self.kept.iter().position(|(id, _, _)| *id == rule.id);
        if let Some(at) = at
            && self.kept[at].1 >= self.most_each
        {
            let last = self.kept[at].2;
            self.list[last].more += 1;
            return;
        }
        let last = self.list.len();
        match at {
            Some(at) => (self.kept[at].1, self.kept[at].2) = (self.kept[at].1 + 1, last),
            None => self.kept.push((rule.id, 1, last)),
        }
        self.list.push(Finding {
            severity: rule.severity_in(self.mode),
            rule,
            url: self.url.clone(),
            line: place.0,
            column: place.1,
            message: message().into(),
            help: rule.help,
            more: 0,
        });
    }

    /// Adds several findings with their messages.
    pub(crate) fn add_all(&mut self, faults: Vec<(&'static Rule, (u64, u64), String)>) {
        for (rule, place, message) in faults {
            self.add(rule, place, || message);
        }
    }

    /// Adds a finding that occurred `count` times; only the first occurrence has a place.
    pub(crate) fn add_counted<M: Into<String>>(
        &mut self,
        rule: &'static Rule,
        place: (u64, u64),
        count: u64,
        message: impl FnOnce() -> M,
    ) {
        self.add(rule, place, message);
        if let Some((_, _, last)) = self.kept.iter().find(|(id, _, _)| *id == rule.id) {
            self.list[*last].more += count.saturating_sub(1);
        }
    }

    /// Adds the reason why copies refuse the document. If a finding at the place of the error
    /// exists, its message is extended instead.
    pub(crate) fn refuse(&mut self, rule: &'static Rule, error: &SyntaxError) {
        let place = (error.line(), error.column());
        let is_reason = |finding: &&mut Finding| {
            finding.rule.severity == Severity::Error
                && finding.line == place.0
                && (finding.column == place.1 || finding.column == 0)
        };
        if let Some(reason) = self.list.iter_mut().find(is_reason) {
            reason.message += "; copies refuse it";
            if !reason.message.contains(error.message()) {
                reason.message = format!("{}: {}", reason.message, error.message());
            }
            return;
        }
        let message = || format!("copies refuse it: {} ({})", error.message(), error.code());
        self.add(rule, place, message);
        if let Some(help) = error.help() {
            self.with_help(help);
        }
    }

    /// Appends the findings of another document.
    pub(crate) fn append(&mut self, other: Self) {
        self.list.extend(other.list);
    }

    /// Replaces the help of the last finding with a more specific one.
    pub(crate) fn with_help(&mut self, help: &'static str) {
        if let Some(last) = self.list.last_mut() {
            last.help = help;
        }
    }

    /// Message of the first finding of a rule.
    pub(crate) fn message_of(&self, rule: &Rule) -> Option<&str> {
        let found = self.list.iter().find(|finding| finding.rule.id == rule.id)?;
        Some(&found.message)
    }

    pub(crate) fn into_list(self) -> Vec<Finding> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_few_of_each_rule_are_kept_and_the_others_counted() {
        let mut found = Findings::new("u", Mode::Normal, 2);
        for line in 1..=5 {
            found.add(&crate::report::rules::ORDER, (line, 1), || line.to_string());
        }
        found.add(&crate::report::rules::AT, (9, 1), String::new);
        let list = found.into_list();
        let seen: Vec<_> =
            list.iter().map(|finding| (finding.rule.id, finding.line, finding.more)).collect();
        assert_eq!(seen, [("RS-12.1-order", 1, 0), ("RS-12.1-order", 2, 3), ("RS-A-at", 9, 0)]);
    }
}
