//! One route a file, named as the URL reads.

pub(crate) mod document;
pub(crate) mod health;
pub(crate) mod home;
pub(crate) mod resource;
