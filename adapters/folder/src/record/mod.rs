//! Small records with a digest, and the recognition of copies.

pub(crate) mod copy_of;
pub(crate) mod sealed;
