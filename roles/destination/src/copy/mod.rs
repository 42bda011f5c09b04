//! The copy on disk: its state, its folder, its places, and the paths of its resources.

pub(crate) mod common_base;
pub(crate) mod fingerprint;
pub(crate) mod key;
pub(crate) mod last_audit;
pub(crate) mod marker;
pub(crate) mod names;
pub(crate) mod partial;
pub(crate) mod path_map;
pub(crate) mod place;
pub(crate) mod probe;
pub(crate) mod provisional;
pub(crate) mod published;
pub(crate) mod state;
pub(crate) mod state_folder;
pub(crate) mod transaction;
pub(crate) mod unusable;
