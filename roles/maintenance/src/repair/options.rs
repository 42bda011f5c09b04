//! Options of a repair.

use crate::place::{Place, ReadShare, StateFolders, StoreRecord};
use abreast_core::Meter;

/// The folder to repair, and how much of its data is read.
#[derive(Clone, Debug)]
pub struct RepairOptions {
    /// The folder of a store or of a copy.
    pub place: Place,
    /// The copies of all sets in the folder, each with the path of its folder. They are repaired if the folder itself contains
    /// neither a store nor a copy; the caller locks their folder.
    pub sets: Vec<(String, StateFolders)>,
    /// The share of contents, files and packages whose bytes are read.
    pub read: ReadShare,
    /// Further records in the folder of a store.
    pub records: Vec<StoreRecord>,
    /// Whether to report the steps only, without changes.
    pub dry_run: bool,
    /// Shows how far the repair is.
    pub meter: Meter,
}

impl RepairOptions {
    /// Creates options that read no contents.
    pub fn new(place: impl Into<Place>) -> Self {
        let (place, sets, records) = (place.into(), Vec::new(), Vec::new());
        Self {
            place,
            sets,
            read: ReadShare::NONE,
            records,
            dry_run: false,
            meter: Meter::default(),
        }
    }
}
