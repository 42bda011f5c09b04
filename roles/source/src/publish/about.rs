//! Human-readable description of a set.

use super::validation::Validation;
use abreast_core::Description;
use abreast_webtypes::Label;
use std::path::PathBuf;

/// Human-readable description of a set, shown on the page of the set and in feeds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Title of the set; if empty, the name of the set is shown.
    pub title: String,
    /// Description as plain text; an empty line separates paragraphs.
    pub description: Option<String>,
    /// Terms of use: the URL or the name of a licence.
    pub licence: Option<String>,
    /// Contact: a mail address or the URL of a page.
    pub contact: Option<String>,
    /// Languages of labels, the best first.
    pub languages: Vec<String>,
    /// Report of the last validation, as `abreast validate --format json` writes it.
    pub validation: Option<PathBuf>,
}

impl About {
    /// The result of the last validation, read from its report.
    pub(crate) fn validation(&self) -> Option<Validation> {
        Validation::read(self.validation.as_deref()?)
    }

    /// The label of an entity for readers of these languages, the best first, then of the languages of
    /// the set; `None` without a label that people can see.
    pub fn label<'d>(
        &self,
        description: Option<&'d Description>,
        reader: &[String],
    ) -> Option<&'d Label> {
        self.best(&description?.labels, reader)
    }

    /// The best of these labels for a reader.
    pub(crate) fn best<'l>(&self, labels: &'l [Label], reader: &[String]) -> Option<&'l Label> {
        Label::best(labels, reader.iter().chain(&self.languages))
    }
}
