//! The type of a rule: its requirement, its citation and its severity.

use abreast_core::Severity;

/// How strongly the specification speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// The specification states must, or calls something mandatory.
    Must,
    /// The specification states should.
    Should,
    /// The specification recommends it.
    Recommended,
    /// No specification asks for it; experience does.
    Practice,
}

impl Level {
    /// The word for tables.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
            Self::Recommended => "recommended",
            Self::Practice => "practice",
        }
    }
}

/// How the user wants to be judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Faults that break readers count.
    Lenient,
    /// As each rule states.
    #[default]
    Normal,
    /// Recommendations are required.
    Strict,
}

/// One rule, with a stable id.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Stable id: specification, section, word; for example `RS-12.1-order`.
    pub id: &'static str,
    /// How strongly the specification speaks.
    pub level: Level,
    /// How much a breach matters.
    pub severity: Severity,
    /// How much it matters in lenient mode.
    pub lenient: Severity,
    /// Where it is written, as in `rs-core §12.1`.
    pub cites: &'static str,
    /// The requirement.
    pub title: &'static str,
    /// How to repair a breach.
    pub help: &'static str,
}

impl Rule {
    /// How much a breach matters in a mode.
    pub const fn severity_in(&self, mode: Mode) -> Severity {
        match mode {
            Mode::Lenient => self.lenient,
            Mode::Strict if matches!(self.level, Level::Recommended) => Severity::Warning,
            Mode::Normal | Mode::Strict => self.severity,
        }
    }
}

/// The word for a severity.
pub const fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}
