//! Answers to publishers, subscribers and administrators.

pub(crate) mod accept;
pub(crate) mod admin;
pub(crate) mod callback;
pub(crate) mod submissions;
pub(crate) mod subscribe;
