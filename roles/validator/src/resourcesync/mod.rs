//! Documents of ResourceSync 1.1.

pub(crate) mod chain;
pub(crate) mod checker;
pub(crate) mod collect;
pub(crate) mod discover;
pub(crate) mod entry;
pub(crate) mod judge;
pub(crate) mod kind;
pub(crate) mod markup;
pub(crate) mod notification;
pub(crate) mod package;
pub(crate) mod relate;
pub(crate) mod related;
pub(crate) mod topic;
pub(crate) mod uniform;
