//! Bytes of bodies in the form of the logs.

use bytes::Bytes;
use std::sync::Arc;

/// The bytes of a body in the form of the logs.
pub(crate) fn shared(body: &Bytes) -> Arc<[u8]> {
    Arc::from(&body[..])
}
