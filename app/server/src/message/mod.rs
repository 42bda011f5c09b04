//! Parts of requests and answers that no route owns: bodies, conditions, ranges, negotiation and problems.

pub(crate) mod body;
pub(crate) mod conditional;
pub(crate) mod negotiate;
pub(crate) mod present;
pub(crate) mod range;
pub(crate) mod respond;
pub(crate) mod stored_body;
