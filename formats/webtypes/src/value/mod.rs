//! Values of attributes and headers: times and digests.

pub(crate) mod datetime;
pub(crate) mod digest;
pub(crate) mod digest_field;
pub(crate) mod hash_fault;
pub mod md5_lanes;
