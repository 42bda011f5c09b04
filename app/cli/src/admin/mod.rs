//! Reports of a running program to its operators: probes, metrics and status, on an address and on a
//! socket.

pub(crate) mod address;
pub(crate) mod ask;
pub(crate) mod followers;
pub(crate) mod served;
pub(crate) mod socket;
