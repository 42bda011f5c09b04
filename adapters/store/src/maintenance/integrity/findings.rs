//! The findings of a check.

use abreast_core::{Finding, Severity};
use std::collections::BTreeMap;

/// Most findings of the same code that are reported in detail.
const TOLD_MAX: u64 = 100;

/// The findings of a check, each code at most a hundred times.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    counts: BTreeMap<&'static str, u64>,
}

impl Findings {
    /// Adds an error; counts it only, after a hundred with the same code.
    pub fn add(
        &mut self,
        rule: &'static str,
        location: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.put(Severity::Error, rule, location.into(), message.into());
    }

    /// Adds a finding that needs no repair.
    pub fn note(
        &mut self,
        rule: &'static str,
        location: impl Into<String>,
        message: impl Into<String>,
    ) {
        self.put(Severity::Note, rule, location.into(), message.into());
    }

    fn put(&mut self, severity: Severity, rule: &'static str, location: String, message: String) {
        let count = self.counts.entry(rule).or_default();
        *count += 1;
        if *count <= TOLD_MAX {
            self.list.push(Finding { severity, rule, location, message });
        }
    }

    /// The reported findings, at most a hundred of each code.
    pub fn list(&self) -> &[Finding] {
        &self.list
    }

    /// How often each code was found.
    pub const fn counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.counts
    }

    /// Whether there is a finding with one of these codes.
    pub fn has(&self, rules: &[&str]) -> bool {
        rules.iter().any(|rule| self.counts.contains_key(rule))
    }

    /// Whether the store is undamaged: all findings are notes.
    pub fn is_consistent(&self) -> bool {
        self.list.iter().all(|finding| finding.severity == Severity::Note)
    }
}
