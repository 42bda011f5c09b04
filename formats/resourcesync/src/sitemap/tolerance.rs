//! Tolerance: the deviations from the specification that are accepted, and how they are reported.

/// The treatment of documents that deviate from the specification.
///
/// A deviation is never interpreted if a wrong interpretation could lose a change or resemble a
/// deletion.
///
/// # Examples
/// ```
/// use abreast_resourcesync::v1_1::{Entry, Limits, Reader, Tolerance};
///
/// let list = r#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
///   xmlns:rs="http://www.openarchives.org/rs/terms/">
///   <rs:md capability="resourceList" at="2026-03-01T00:00:00Z"/>
/// </urlset>"#;
/// let mut entry = Entry::default();
/// let mut usual = Reader::new(list.as_bytes());
/// usual.next(&mut entry)?;
/// assert_eq!(usual.findings()[0].code, "rs.capability-case");
/// let mut strict =
///     Reader::with_tolerance(list.as_bytes(), Limits::default(), Tolerance::Strict);
/// assert!(strict.next(&mut entry).is_err());
/// # Ok::<(), abreast_resourcesync::v1_1::ReadError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tolerance {
    /// Every deviation that would be a [`Finding`] is refused, with the finding's code.
    Strict,
    /// Unambiguous deviations are accepted and reported.
    #[default]
    Usual,
    /// As usual; in addition, entries that cannot be understood are left out and counted.
    Lenient,
}

/// An accepted deviation from the specification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// A stable code such as `rs.zone`.
    pub code: &'static str,
    /// Line of the first occurrence, from 1.
    pub line: u64,
    /// Explanation of the first occurrence.
    pub message: String,
    /// Number of occurrences in the document.
    pub count: u64,
}

/// Findings of a document, one for each code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Findings {
    pub(super) fn add(&mut self, code: &'static str, line: u64, message: impl FnOnce() -> String) {
        match self.0.iter_mut().find(|finding| finding.code == code) {
            Some(finding) => finding.count += 1,
            None => self.0.push(Finding { code, line, message: message(), count: 1 }),
        }
    }
}

/// Deviations noticed in the attributes of an element; nearly always empty.
#[derive(Default)]
pub struct Notes {
    /// Codes and messages, in the order of the attributes.
    pub list: Vec<(&'static str, String)>,
    /// Whether the user requested [`Tolerance::Lenient`].
    pub lenient: bool,
}

impl Notes {
    /// Adds a deviation with a stable code.
    pub fn add(&mut self, code: &'static str, message: String) {
        self.list.push((code, message));
    }
}
