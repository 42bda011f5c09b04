//! Receiving connections and short messages.

pub(crate) mod accept;
pub(crate) mod certificate;
pub(crate) mod connection_slots;
pub(crate) mod http2;
pub(crate) mod listener;
