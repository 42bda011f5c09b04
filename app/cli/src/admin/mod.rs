//! What a running program tells its operators: probes, metrics and status, on an address and on a
//! socket in the folder of its state.

pub(crate) mod address;
pub(crate) mod ask;
pub(crate) mod followers;
pub(crate) mod served;
pub(crate) mod socket;
