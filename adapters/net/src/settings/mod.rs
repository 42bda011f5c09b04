//! What a user sets: options, credentials, proxies and pinned keys.

pub(crate) mod credentials;
pub(crate) mod options;
pub(crate) mod pin;
pub(crate) mod proxy;
pub(crate) mod retry_listener;
