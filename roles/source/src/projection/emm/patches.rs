//! Entity Patches.

use super::paths::Feed;
use crate::projection::Rendered;
use crate::publish::PublishError;
use abreast_core::{ChangeLog, ChangeRecord};

pub(super) fn document(
    _feed: &Feed<'_>,
    _log: &dyn ChangeLog,
    _record: &ChangeRecord,
) -> Result<Rendered, PublishError> {
    Err(PublishError::NotFound)
}
