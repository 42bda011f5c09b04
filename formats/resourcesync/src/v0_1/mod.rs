//! ResourceSync 0.1 (alpha draft of August 2012).

mod document;
mod relations;

pub use crate::v1_1::{Change, Error, Finding, Limits, Root, Step, Tolerance};
pub use document::{Document, Entry, Head, Link, Meta};
pub use relations::{
    CALLBACK_PROTOCOL, CHANGE_SET, DUMP, MIRROR, OAI_PMH_PROTOCOL, PARTIAL, SUBJECT, SUBJECT_NAME,
    XMPP_PROTOCOL,
};
