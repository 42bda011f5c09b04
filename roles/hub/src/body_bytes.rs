//! Bytes of bodies, as logs hold them.

use bytes::Bytes;
use std::sync::Arc;

/// The bytes of a body, as logs hold them.
pub(crate) fn shared(body: &Bytes) -> Arc<[u8]> {
    Arc::from(&body[..])
}
