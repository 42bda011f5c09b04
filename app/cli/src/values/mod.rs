//! Values of options and settings: addresses, sizes, contexts of JSON-LD.

pub(crate) mod address;
pub(crate) mod alternatives;
pub(crate) mod hidden_logins;
pub(crate) mod json_ld;
pub(crate) mod sizes;
