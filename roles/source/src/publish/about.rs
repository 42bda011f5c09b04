//! The description of a set for people.

/// The description of a set for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Its title; the set's name when empty.
    pub title: String,
    /// Its content: text, paragraphs separated by an empty line.
    pub description: Option<String>,
    /// Terms of use: the address of a licence, or its name.
    pub licence: Option<String>,
    /// The contact: a mail address, or that of a page.
    pub contact: Option<String>,
}
