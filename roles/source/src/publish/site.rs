//! The documents of a static site.

/// One document of a static site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteDocument {
    /// Its path below the public base.
    pub path: String,
    /// The stage of the build that writes the document.
    pub stage: SiteStage,
    /// Whether its bytes never change while the set has the same log and the same addresses.
    pub closed: bool,
}

/// The stages in which the documents of a static site are written: each names documents of those
/// before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SiteStage {
    /// Lists and pages, which name resources and each other.
    List,
    /// Where readers of a protocol begin.
    EntryPoint,
    /// What leads to entry points: pages for people, and documents for discovery.
    Discovery,
    /// The one document that shows which sets a site has: it has no time, and is the same in every
    /// build of these sets.
    Identity,
}
