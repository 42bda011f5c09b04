//! Requests to a hub and their verification.

pub(crate) mod address;
pub(crate) mod callback_form;
pub(crate) mod form;
pub(crate) mod lease;
pub(crate) mod pairs;
pub(crate) mod secret;
pub(crate) mod verification;
