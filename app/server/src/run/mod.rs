//! The server: start, requests, stop, and the choice of a route.

pub(crate) mod admin;
pub(crate) mod dispatch;
#[doc(hidden)]
pub mod fuzz_property;
pub(crate) mod options;
pub(crate) mod route;
pub(crate) mod server;
pub(crate) mod shared;
