//! Values of attributes and headers: times, digests and labels.

pub(crate) mod datetime;
pub(crate) mod digest;
pub(crate) mod digest_field;
pub(crate) mod hash_fault;
pub(crate) mod label;
pub mod md5_lanes;
