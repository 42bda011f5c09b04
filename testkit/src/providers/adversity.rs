//! What goes wrong at a provider.

use abreast_core::testing::Random;
use std::fmt;

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Fault {
    /// Entities change between two requests of a walk.
    Shifting,
    /// Several entities change at one time.
    EqualTimes,
    /// Documents end in the middle.
    Truncated,
    /// Transfers break off, and the next one has another version.
    Cut,
    /// Requests are answered 429, 500 or 503, or not at all.
    Errors,
    /// Entities cannot be fetched for a time.
    Unreachable,
    /// Documents cannot be read for a time.
    Lost,
    /// The clock that the answers have is behind or ahead, and differs from that of the changes.
    Skew,
    /// Answers have no `Date`.
    NoDate,
    /// Some changes have a time that is far ahead.
    Future,
    /// The number of entries of a page changes.
    PageSize,
    /// The server is restored from a backup.
    Restored,
    /// Documents lead back to others, or to themselves.
    Loops,
    /// A document of changes is missing for good.
    Holes,
    /// The newest page is empty.
    EmptyPage,
    /// The entry document is older than the others.
    OldEntry,
    /// Documents come from caches, each of another age.
    Caches,
    /// Changes and their ids are there twice.
    Duplicates,
    /// Changes are published some time after they happened.
    Late,
    /// The consumer is killed at any point.
    Kills,
}

const FAULTS: [(Fault, &str); 20] = [
    (Fault::Shifting, "shifting"),
    (Fault::EqualTimes, "equal times"),
    (Fault::Truncated, "truncated"),
    (Fault::Cut, "cut"),
    (Fault::Errors, "errors"),
    (Fault::Unreachable, "unreachable"),
    (Fault::Lost, "lost"),
    (Fault::Skew, "skew"),
    (Fault::NoDate, "no date"),
    (Fault::Future, "future"),
    (Fault::PageSize, "page size"),
    (Fault::Restored, "restored"),
    (Fault::Loops, "loops"),
    (Fault::Holes, "holes"),
    (Fault::EmptyPage, "empty page"),
    (Fault::OldEntry, "old entry"),
    (Fault::Caches, "caches"),
    (Fault::Duplicates, "duplicates"),
    (Fault::Late, "late"),
    (Fault::Kills, "kills"),
];

/// The faults of one seed.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults(u32);

impl Faults {
    /// Each with a chance of one in four.
    pub(super) fn draw(random: &mut Random) -> Self {
        let chosen = |_: &&(Fault, &str)| random.below(4) == 0;
        Self(FAULTS.iter().filter(chosen).fold(0, |all, (fault, _)| all | 1 << *fault as u32))
    }

    /// Whether it is one of them.
    pub const fn has(self, fault: Fault) -> bool {
        self.0 & 1 << fault as u32 != 0
    }

    /// One alone.
    pub const fn only(fault: Fault) -> Self {
        Self(1 << fault as u32)
    }

    /// Without one.
    #[must_use]
    pub const fn without(self, fault: Fault) -> Self {
        Self(self.0 & !(1 << fault as u32))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(FAULTS.iter().filter(|it| self.has(it.0)).map(|it| it.1)).finish()
    }
}
