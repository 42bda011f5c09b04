//! The body of a webhook: changes of a set in JSON.

use abreast_core::{ErrorKind, LogError, Position};
use abreast_server::api::model::RecordAnswer;
use abreast_source::publish::{PublishedSet, Publisher};
use serde::Serialize;
use std::io;
use std::ops::ControlFlow;

/// Most changes in a request to a webhook.
const WEBHOOK_CHANGES_MAX: usize = 1_000;
/// Most bytes of the changes in a request to a webhook, unless a single change has more.
const WEBHOOK_BYTES_MAX: usize = 1 << 20;

#[derive(Serialize)]
struct Body<'a> {
    set: &'a str,
    /// The changes are after this position.
    after: u64,
    /// Position of the last change.
    position: u64,
    changes: Vec<RecordAnswer>,
}

/// The changes of a set at positions `after < p <= last`, or the first changes up to the limit of a request;
/// and the position of the last change in the body.
pub(super) fn webhook_body(
    publisher: &Publisher,
    set: &PublishedSet,
    after: Position,
    last: Position,
) -> Result<(Vec<u8>, Position), LogError> {
    let (resources, mut changes) = (set.urls.resources(), Vec::new());
    let (mut bytes, mut before, mut end) = (Length(0), after, last);
    publisher.log().read(set.id, after, &mut |record| {
        if record.position > last {
            return ControlFlow::Break(());
        }
        let change = RecordAnswer::of_change(record, &resources);
        // An error is reported when the body is written.
        let _ = serde_json::to_writer(&mut bytes, &change);
        let is_full = changes.len() >= WEBHOOK_CHANGES_MAX || bytes.0 > WEBHOOK_BYTES_MAX;
        if is_full && !changes.is_empty() {
            end = before;
            return ControlFlow::Break(());
        }
        before = record.position;
        changes.push(change);
        ControlFlow::Continue(())
    })?;
    let body = Body { set: &set.slug, after: after.0, position: end.0, changes };
    let unwritten = |error: serde_json::Error| {
        LogError::new(ErrorKind::Io, "a change cannot be written as JSON").with_cause(error)
    };
    let body = serde_json::to_vec(&body).map_err(unwritten)?;
    Ok((body, end))
}

/// Counts the bytes that are written.
struct Length(usize);

impl io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
