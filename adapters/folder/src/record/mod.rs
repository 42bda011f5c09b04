//! Small records with a digest: of copies, and of the last backup of a store.

pub(crate) mod copy_of;
pub(crate) mod last_backup;
pub(crate) mod owner;
pub(crate) mod sealed;
