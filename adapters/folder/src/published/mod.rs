//! A published folder: its files, and which of them are visible.

pub(crate) mod folder;
pub(crate) mod follow;
pub(crate) mod selection;
