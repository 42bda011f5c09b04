//! Short messages to many hosts.

pub(crate) mod sender;
