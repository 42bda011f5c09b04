//! Errors of an object store as errors of a store of contents.

use abreast_core::contents::{Error, ErrorKind};
use std::time::Duration;

const BUSY: &str = "\n  help: check the service and the network; the call can be repeated";
const DENIED: &str = "\n  help: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION, and that they permit to \
                      read, write, delete and list objects";
const NO_BUCKET: &str = "\n  help: create the bucket, or correct the address or AWS_REGION";
const NO_TLS: &str = "\n  help: give AWS_ENDPOINT an address with https://, or set AWS_ALLOW_HTTP=true for one without TLS";
const FULL: &str = "\n  help: free space in the object store, then try again";

/// The error for a task that the store refused.
pub(crate) fn failed(task: &str, cause: &object_store::Error) -> Error {
    use object_store::Error as E;
    let (kind, help) = match cause {
        _ if has_text(cause, "NoSuchBucket") => (ErrorKind::Other, NO_BUCKET),
        _ if has_text(cause, "URL scheme is not allowed") => (ErrorKind::Other, NO_TLS),
        E::NotFound { .. } => (ErrorKind::NotFound, ""),
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => (ErrorKind::Other, DENIED),
        E::Generic { .. } | E::JoinError { .. } => of_status(cause),
        // Two writers at the same time; the store asks to repeat the request.
        E::AlreadyExists { .. } => (ErrorKind::Busy, BUSY),
        _ => (ErrorKind::Other, ""),
    };
    // The text of the cause includes its own causes.
    Error::new(kind, format!("cannot {task}: {cause}{help}"))
}

/// The error for a task that took too long.
pub(crate) fn late(task: &str, limit: Duration) -> Error {
    let message = format!("cannot {task}: the object store did not answer within {limit:?}{BUSY}");
    Error::new(ErrorKind::Busy, message)
}

/// The error for a task while requests do not wait for the store.
pub(crate) fn silent(task: &str) -> Error {
    let message = format!("cannot {task}: the object store did not answer a moment ago{BUSY}");
    Error::new(ErrorKind::Busy, message)
}

/// Whether a request failed without an answer of the store.
pub(crate) fn is_unanswered(cause: &object_store::Error) -> bool {
    matches!(cause, object_store::Error::Generic { .. })
        && status(cause).is_none()
        && failed("", cause).kind() == ErrorKind::Busy
}

/// The store's answer to a request that failed, or no answer.
fn of_status(cause: &object_store::Error) -> (ErrorKind, &'static str) {
    match status(cause) {
        Some(507) => (ErrorKind::Full, FULL),
        Some(status) if (400..500).contains(&status) && !matches!(status, 408 | 425 | 429) => {
            (ErrorKind::Other, "")
        }
        _ => (ErrorKind::Busy, BUSY),
    }
}

/// The status in the text of an error, since the crate's type is private.
fn status(cause: &object_store::Error) -> Option<u16> {
    texts(cause).find_map(|text| {
        let (_, status) = text.split_once("status code: ")?;
        status.get(..3)?.parse().ok()
    })
}

/// Whether the text of an error or of a cause has a part, since the types of these errors are private.
fn has_text(cause: &object_store::Error, part: &str) -> bool {
    texts(cause).any(|text| text.contains(part))
}

/// The texts of an error and its causes.
fn texts(error: &object_store::Error) -> impl Iterator<Item = String> {
    let first: &dyn std::error::Error = error;
    std::iter::successors(Some(first), |error| error.source()).map(ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_kind_by_which_callers_act() {
        let generic =
            |text: &str| object_store::Error::Generic { store: "S3", source: text.into() };
        let of = |cause: object_store::Error| failed("put an object", &cause).kind();
        for (text, kind) in [
            ("error sending request", ErrorKind::Busy),
            (
                "Server returned non-2xx status code: 503 Service Unavailable: SlowDown",
                ErrorKind::Busy,
            ),
            ("Server returned non-2xx status code: 429 Too Many Requests: ", ErrorKind::Busy),
            ("Server returned non-2xx status code: 400 Bad Request: ", ErrorKind::Other),
            ("builder error: URL scheme is not allowed", ErrorKind::Other),
            ("Server returned non-2xx status code: 507 Insufficient Storage: ", ErrorKind::Full),
        ] {
            assert_eq!(of(generic(text)), kind, "{text}");
        }
        assert!(is_unanswered(&generic("error sending request")));
        assert!(!is_unanswered(&generic("Server returned non-2xx status code: 503 Slow: ")));
        let missing = |text: &str| object_store::Error::NotFound {
            path: "a".to_owned(),
            source: text.into(),
        };
        let text = failed("put an object", &generic("URL scheme is not allowed")).to_string();
        assert!(
            text.starts_with("cannot put an object: ") && text.ends_with("without TLS"),
            "{text}"
        );
        assert_eq!(of(missing("NoSuchKey")), ErrorKind::NotFound);
        assert_eq!(of(missing("<Code>NoSuchBucket</Code>")), ErrorKind::Other);
    }
}
