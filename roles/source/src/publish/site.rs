//! The documents of a static site.

/// One document of a static site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteDocument {
    /// Path of the document below the public base.
    pub path: String,
    /// Stage of the build that writes the document.
    pub stage: SiteStage,
    /// Whether the bytes never change while the set has the same log and the same addresses.
    pub closed: bool,
}

/// Stages in which the documents of a static site are written. Documents have links to documents of
/// earlier stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SiteStage {
    /// Lists and pages, which have links to resources and to each other.
    List,
    /// Documents where readers of a protocol start.
    EntryPoint,
    /// Documents with links to entry points: pages for people, and documents for discovery.
    Discovery,
    /// The document that shows which sets a site has. It has no time, and is the same in every
    /// build of these sets.
    Identity,
}
