//! The type of a rule: its requirement, its citation and its severity.

use abreast_core::Severity;

/// How strongly the specification demands the requirement of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// The specification uses the word must, or calls the requirement mandatory.
    Must,
    /// The specification uses the word should.
    Should,
    /// The specification recommends the requirement.
    Recommended,
    /// The requirement is from practical experience, not from a specification.
    Practice,
}

impl Level {
    /// Name of the level in tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::Recommended => "recommended",
            Self::Practice => "practice",
        }
    }
}

/// Mode of a validation, which determines the severities of findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Only faults that break readers are errors.
    Lenient,
    /// Each rule has its usual severity.
    #[default]
    Normal,
    /// A violation of a recommendation is a warning.
    Strict,
}

/// A requirement with a stable id, its citation and severities.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable id of specification, section and word; for example `RS-12.1-order`.
    pub id: &'static str,
    /// How strongly the specification demands the requirement.
    pub level: Level,
    /// Severity of a violation in the normal mode.
    pub severity: Severity,
    /// Severity of a violation in the lenient mode.
    pub lenient: Severity,
    /// Section of the specification, as in `rs-core §12.1`.
    pub cites: &'static str,
    /// Text of the requirement, for reports.
    pub title: &'static str,
    /// How to repair a violation of the rule.
    pub help: &'static str,
}

impl Rule {
    /// Severity of a violation in this mode.
    pub const fn severity_in(&self, mode: Mode) -> Severity {
        match mode {
            Mode::Lenient => self.lenient,
            Mode::Strict if matches!(self.level, Level::Recommended) => Severity::Warning,
            Mode::Normal | Mode::Strict => self.severity,
        }
    }
}

/// Name of a severity in reports and machine-readable output.
pub const fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}
