//! Findings: faults that are results of a check, not errors.

use std::fmt;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Information that needs no action.
    Note,
    /// Probable mistake that breaks no rule.
    Warning,
    /// Violation of a rule of a specification.
    Error,
}

/// One thing found, with a stable code.
///
/// # Examples
/// ```
/// use abreast_core::{Finding, Severity};
///
/// let finding = Finding {
///     severity: Severity::Error,
///     rule: "fixity.mismatch",
///     location: "https://repo.example/items/7.pdf".to_owned(),
///     message: "the content has another digest than the list".to_owned(),
/// };
/// assert_eq!(
///     finding.to_string(),
///     "https://repo.example/items/7.pdf: the content has another digest than the list \
///      [fixity.mismatch]",
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How much the finding matters.
    pub severity: Severity,
    /// Stable code, for example `fixity.mismatch`.
    pub rule: &'static str,
    /// Where: a URL, a path, or a document with line and column.
    pub location: String,
    /// Explanation of the finding, for people.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} [{}]", self.location, self.message, self.rule)
    }
}
