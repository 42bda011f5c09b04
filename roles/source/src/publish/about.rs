//! Human-readable description of a set.

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
}
