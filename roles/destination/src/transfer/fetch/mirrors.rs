//! The order of requests to a resource's own URL and its mirrors [rs-core §14.1, §14.2].
//!
//! The resource's own URL is first, then the mirrors by their priority. A mirror to which the
//! Source gives the priority 1 precedes the own URL, and so do all mirrors while the own host
//! demands a pause. The bytes from a mirror are accepted only if they have the digest in the
//! Source's list, so mirrors are not used for resources without a digest.

use abreast_store::mirror::Pending;
use std::borrow::Cow;

/// One address for a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place<'a> {
    pub(crate) url: Cow<'a, str>,
    /// Only if its address is public.
    pub(crate) public_only: bool,
    pub(crate) is_mirror: bool,
    /// Whether caches must not answer with a stored response.
    pub(crate) past_caches: bool,
}

impl<'a> Place<'a> {
    /// The resource's own address.
    pub(crate) fn own(item: &'a Pending) -> Self {
        Self { url: item.href().into(), ..Self::default() }
    }
}
