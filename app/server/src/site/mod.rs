//! The data that requests use: sets, the API with its tokens, heads of logs, and the files of a set.

pub(crate) mod administration;
pub(crate) mod api;
pub(crate) mod current;
pub(crate) mod heads;
pub(crate) mod known_tokens;
pub(crate) mod resource;
pub(crate) mod served;
pub(crate) mod sessions;
pub(crate) mod stored_resource;
pub(crate) mod token_place;
pub(crate) mod tokens;
