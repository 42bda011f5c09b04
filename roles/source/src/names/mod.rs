//! Names of a set's resources: keys, paths and URIs, and the rules for published paths.

pub(crate) mod aliases;
pub(crate) mod copies;
pub(crate) mod fingerprint;
pub(crate) mod keys;
pub(crate) mod media_type;
pub(crate) mod naming;
pub(crate) mod opened;
pub(crate) mod path_state;
pub(crate) mod private;
pub(crate) mod urls;
