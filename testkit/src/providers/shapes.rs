//! The shapes of feeds.

use super::adversity::Fault;
use super::time::Precision;

/// What a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paging {
    /// So many activities from a place in the list on.
    Offset,
    /// The newest activities up to a time; the one after the last is the last one.
    Until,
    /// A range of positions of the log, of which others may have become void.
    Positions,
}

/// The shape of a feed.
#[derive(Debug)]
pub struct Shape {
    /// Its name.
    pub name: &'static str,
    /// Its context.
    pub context: &'static str,
    /// The member that has the time of an activity, if there is one.
    pub date: Option<&'static str>,
    /// How exact times are.
    pub precision: Precision,
    /// The first page has the newest activity.
    pub is_newest_first: bool,
    /// Only the last activity of each entity is listed.
    pub is_latest_only: bool,
    /// What a page is.
    pub paging: Paging,
    /// The Entry Point names the last page.
    pub has_last: bool,
    /// Pages name the one before.
    pub has_prev: bool,
    /// References are relative strings; objects otherwise.
    pub is_bare: bool,
    /// Types are arrays of names with a prefix.
    pub has_listed_types: bool,
    /// Objects link to their descriptions.
    pub has_links: bool,
    /// Every change is an `Update`.
    pub has_only_updates: bool,
    /// Entities are deleted, and the feed says so.
    pub has_deletions: bool,
    /// Entities move, and everything is listed again at times.
    pub is_iiif_2: bool,
    /// Pages are of a collection that is nowhere.
    pub is_lost: bool,
    /// Faults that feeds of this shape do not have.
    pub withheld: &'static [Fault],
}

const EMM: Shape = Shape {
    name: "EMM 1.0",
    context: "https://emm-spec.org/1.0/context.json",
    date: Some("published"),
    precision: Precision::Micro,
    is_newest_first: false,
    is_latest_only: false,
    paging: Paging::Positions,
    has_last: true,
    has_prev: true,
    is_bare: false,
    has_listed_types: false,
    has_links: true,
    has_only_updates: false,
    has_deletions: true,
    is_iiif_2: false,
    is_lost: false,
    withheld: &[Fault::PageSize, Fault::EmptyPage],
};

const IIIF: Shape = Shape {
    name: "IIIF 2",
    context: "http://iiif.io/api/discovery/1/context.json",
    date: Some("endTime"),
    precision: Precision::Second,
    paging: Paging::Offset,
    is_iiif_2: true,
    has_links: false,
    withheld: &[],
    ..EMM
};

const MARVA: Shape = Shape {
    name: "Marva",
    context: "https://www.w3.org/ns/activitystreams",
    paging: Paging::Offset,
    has_last: false,
    has_prev: false,
    is_bare: true,
    has_links: false,
    has_only_updates: true,
    has_deletions: false,
    withheld: &[],
    ..EMM
};

/// The shapes that are found.
pub const SHAPES: [Shape; 12] = [
    Shape {
        name: "Library of Congress",
        context: "https://www.w3.org/ns/activitystreams#",
        precision: Precision::Day,
        is_newest_first: true,
        is_latest_only: true,
        paging: Paging::Offset,
        has_last: false,
        has_prev: false,
        is_bare: true,
        has_listed_types: true,
        withheld: &[],
        ..EMM
    },
    Shape {
        name: "Getty",
        date: Some("endTime"),
        precision: Precision::Second,
        paging: Paging::Offset,
        has_links: false,
        withheld: &[],
        ..EMM
    },
    Shape {
        name: "Libris",
        is_newest_first: true,
        paging: Paging::Until,
        has_last: false,
        has_prev: false,
        // Its pages have nothing after the time that they are asked for.
        withheld: &[Fault::PageSize, Fault::EmptyPage, Fault::Future],
        ..EMM
    },
    Shape {
        name: "Blue Core",
        precision: Precision::Second,
        paging: Paging::Offset,
        has_prev: false,
        has_deletions: false,
        is_lost: true,
        withheld: &[],
        ..EMM
    },
    Shape {
        name: "IIIF 0",
        date: None,
        is_latest_only: true,
        has_only_updates: true,
        has_deletions: false,
        is_iiif_2: false,
        ..IIIF
    },
    Shape {
        name: "IIIF 1",
        is_latest_only: true,
        has_only_updates: true,
        has_deletions: false,
        is_iiif_2: false,
        withheld: &[],
        ..IIIF
    },
    IIIF,
    Shape {
        name: "EMM 0.1",
        context: "https://ld4.github.io/entity_metadata_management/0.1/context.json",
        ..EMM
    },
    Shape { name: "EMM 1.0, newest", is_newest_first: true, ..EMM },
    Shape { name: "EMM 1.0, latest", is_latest_only: true, ..EMM },
    MARVA,
    Shape { name: "Marva, newest first", is_newest_first: true, ..MARVA },
];
