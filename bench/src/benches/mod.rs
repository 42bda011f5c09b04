//! One bench a file.

pub(crate) mod build;
pub(crate) mod changes;
pub(crate) mod contents;
pub(crate) mod documents;
pub(crate) mod dump;
pub(crate) mod emm_catch_up;
pub(crate) mod entities;
pub(crate) mod entity_patch;
pub(crate) mod feeds;
pub(crate) mod hostile;
pub(crate) mod http2;
pub(crate) mod hub;
pub(crate) mod hub_store;
pub(crate) mod index;
pub(crate) mod latency;
pub(crate) mod mirror;
pub(crate) mod parse;
pub(crate) mod parse_0_1;
pub(crate) mod publish;
pub(crate) mod rdf;
pub(crate) mod rdf_copy;
pub(crate) mod real;
pub(crate) mod scale;
pub(crate) mod serve;
pub(crate) mod validate;
pub(crate) mod xmpp;
