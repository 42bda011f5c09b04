//! How a provider renders its collection.

use super::adversity::Fault;
use super::kinds::{Atom, Dumps, Lists, Sitemaps};
use super::shapes::Shape;
use super::time::Precision;

/// How a provider renders its collection.
#[derive(Clone, Debug)]
pub enum Rendering {
    /// As a change feed of that shape.
    Activities(&'static Shape),
    /// As lists of ResourceSync 1.1.
    Lists(Lists),
    /// As dumps of ResourceSync 1.1, and lists perhaps.
    Dumps(Dumps),
    /// As documents of ResourceSync 0.1.
    Sitemaps(Sitemaps),
    /// As feeds of SDShare.
    Atom(Atom),
}

impl Rendering {
    /// Faults that it does not have.
    pub(super) fn withheld(&self) -> Vec<Fault> {
        match self {
            Self::Activities(shape) => shape.withheld.to_vec(),
            Self::Lists(lists) | Self::Dumps(Dumps { lists, .. }) => lists.withheld(),
            Self::Sitemaps(sitemaps) => sitemaps.withheld(),
            Self::Atom(_) => Atom::WITHHELD.to_vec(),
        }
    }

    /// Changes of a document, if that has not all of them.
    pub(super) fn changes_per_document(&self) -> Option<usize> {
        match self {
            Self::Lists(lists) | Self::Dumps(Dumps { lists, .. }) => lists.length(),
            Self::Sitemaps(sitemaps) => Some(sitemaps.length).filter(|length| *length > 0),
            Self::Activities(_) | Self::Atom(_) => None,
        }
    }

    pub(super) fn entry_path(&self) -> &'static str {
        match self {
            Self::Activities(_) => "/feed",
            Self::Lists(lists) => lists.entry_path(),
            Self::Dumps(dumps) => dumps.entry_path(),
            Self::Sitemaps(_) => "/s.xml",
            Self::Atom(_) => "/collection",
        }
    }

    /// What its lists are like, or its dumps, of ResourceSync 1.1.
    pub(super) fn lists(&self) -> Option<&Lists> {
        match self {
            Self::Lists(lists) | Self::Dumps(Dumps { lists, .. }) => Some(lists),
            Self::Activities(_) | Self::Sitemaps(_) | Self::Atom(_) => None,
        }
    }

    /// Whether it has packages.
    pub const fn has_packages(&self) -> bool {
        matches!(self, Self::Dumps(_))
    }

    /// How exact its times are.
    pub(super) fn precision(&self) -> Precision {
        match self {
            Self::Activities(shape) => shape.precision,
            Self::Lists(Lists { precision, .. })
            | Self::Dumps(Dumps { lists: Lists { precision, .. }, .. })
            | Self::Sitemaps(Sitemaps { precision, .. })
            | Self::Atom(Atom { precision, .. }) => *precision,
        }
    }

    /// Whether nothing but `Last-Modified` shows when its list of all entities was made.
    pub(super) fn needs_modified(&self) -> bool {
        match self {
            Self::Lists(lists) | Self::Dumps(Dumps { lists, .. }) => {
                !lists.has_at && !lists.is_live
            }
            Self::Sitemaps(sitemaps) => !sitemaps.has_modified && !sitemaps.is_live,
            Self::Activities(_) | Self::Atom(_) => false,
        }
    }

    /// Whether entities are deleted.
    pub(super) fn has_deletions(&self) -> bool {
        !matches!(self, Self::Activities(shape) if !shape.has_deletions)
    }

    /// Whether entities move, as one change.
    pub(super) fn has_moves(&self) -> bool {
        !matches!(self, Self::Activities(shape) if !shape.is_iiif_2)
    }

    /// Whether everything is listed again at times.
    pub(super) fn has_refreshes(&self) -> bool {
        matches!(self, Self::Activities(shape) if shape.is_iiif_2)
    }

    /// A name for messages.
    pub fn name(&self) -> String {
        match self {
            Self::Activities(shape) => shape.name.to_owned(),
            Self::Lists(lists) => format!("{lists:?}"),
            Self::Dumps(dumps) => format!("{dumps:?}"),
            Self::Sitemaps(sitemaps) => format!("{sitemaps:?}"),
            Self::Atom(atom) => format!("{atom:?}"),
        }
    }
}
