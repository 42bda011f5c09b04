//! One module for each route, with the name that its URL has.

pub(crate) mod callback;
pub(crate) mod diagnosis;
pub(crate) mod document;
pub(crate) mod entity;
pub(crate) mod file;
pub(crate) mod former;
pub(crate) mod health;
pub(crate) mod hub;
pub(crate) mod memento;
pub(crate) mod timegate;
pub(crate) mod timemap;
pub(crate) mod topic;
