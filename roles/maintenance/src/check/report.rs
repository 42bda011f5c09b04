//! The report of a check.

use crate::check::advice::{advice, advice_of_shared};
use crate::place::Error;
use abreast_core::{Finding, Severity};
use abreast_store::integrity::Findings;
use serde::Serialize;
use std::collections::BTreeMap;

/// Findings, notes and failures of a check.
#[derive(Debug, Default)]
pub struct CheckReport {
    pub(crate) findings: Findings,
    /// Facts about the checked data, such as the size of each set.
    pub notes: Vec<String>,
    /// Reasons why data could not be checked.
    pub failures: Vec<Error>,
    /// Whether the check reached its end.
    pub is_complete: bool,
    /// Whether the caller stopped the check.
    pub is_cancelled: bool,
    /// Whether several nodes share the store, which has other help.
    pub(crate) is_shared: bool,
}

/// A finding with its help.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "finding")]
pub struct ReportedFinding<'f> {
    /// Stable code, such as `contents.digest`.
    pub code: &'static str,
    /// `error`, or `note` if nothing is damaged.
    pub severity: &'static str,
    /// The path, or the path and the content.
    pub location: &'f str,
    /// Explanation of the finding, for people.
    pub message: &'f str,
    /// How to remove the cause of the finding.
    pub help: &'f str,
}

/// Totals of a check, as the last line of its JSON.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename = "summary")]
pub struct CheckSummary<'r> {
    /// Whether everything was checked and nothing is damaged.
    pub ok: bool,
    /// Whether the check reached its end.
    pub complete: bool,
    /// Number of findings of each code.
    pub counts: &'r BTreeMap<&'static str, u64>,
    /// Facts about the checked data.
    pub notes: &'r [String],
}

impl CheckReport {
    /// The findings, at most a hundred of each code.
    pub fn findings(&self) -> impl Iterator<Item = ReportedFinding<'_>> {
        self.findings.list().iter().map(|Finding { severity, rule, location, message }| {
            let severity = if *severity == Severity::Note { "note" } else { "error" };
            // The help of an error is more specific than that of its code.
            let (message, own) = abreast_destination::without_help(message);
            let advice = if self.is_shared { advice_of_shared } else { advice };
            let help = own.unwrap_or_else(|| advice(rule));
            ReportedFinding { code: rule, severity, location, message, help }
        })
    }

    /// Whether nothing is damaged, as far as it was checked.
    pub fn is_consistent(&self) -> bool {
        self.findings.is_consistent()
    }

    /// The totals of the check.
    pub fn summary(&self) -> CheckSummary<'_> {
        CheckSummary {
            ok: self.is_complete && self.is_consistent(),
            complete: self.is_complete,
            counts: self.findings.counts(),
            notes: &self.notes,
        }
    }
}
