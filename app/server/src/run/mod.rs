//! The server: start, requests, stop, and the choice of a route.

pub(crate) mod admin;
#[doc(hidden)]
pub mod fuzz_property;
pub(crate) mod route;
pub(crate) mod server;
