//! Unpacking of gzip, within limits.

pub(crate) mod gunzip;
pub(crate) mod unpacker;
