//! Addresses: the server of a URL, redirects, public and private addresses, and errors that name a URL.

pub(crate) mod error;
pub(crate) mod global;
pub(crate) mod origin;
pub(crate) mod redirect;
pub(crate) mod secret;
pub(crate) mod userinfo;
