//! The commands, one file or folder each.

pub(crate) mod args;
pub(crate) mod backup;
pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod config_command;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod drop;
pub(crate) mod explore;
pub(crate) mod explore_feeds;
pub(crate) mod health;
pub(crate) mod hub;
pub(crate) mod import;
pub(crate) mod import_args;
pub(crate) mod jobs;
pub(crate) mod log;
pub(crate) mod places;
pub(crate) mod rdf;
pub(crate) mod repair;
pub(crate) mod restore;
pub(crate) mod serve;
pub(crate) mod status;
pub(crate) mod subscribe;
pub(crate) mod sync;
pub(crate) mod token;
pub(crate) mod validate;
