//! Limits on requests to the hub's store.

use super::{NewTarget, NewVerification};
use abreast_core::{ErrorKind, LogError, NewNotification, Payload, TopicId};

/// Longest URL of a topic, callback or hub, in bytes.
pub const URL_BYTES_MAX: usize = 8 * 1024;
/// Longest body of a notification, in bytes.
pub const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Most bytes in the `Link` values of a notification.
pub const LINK_BYTES_MAX: usize = 16 * 1024;
/// Longest media type, challenge and reason, in bytes.
pub const NAME_BYTES_MAX: usize = 1024;
/// Longest secret in bytes [websub §5.1].
pub const SECRET_BYTES_MAX: usize = 199;
/// Most topics in one store.
pub const TOPICS_MAX: usize = 100_000;
/// Most verifications that are not settled.
pub const VERIFICATIONS_MAX: i64 = 100_000;

pub(crate) fn check_topic_url(url: &str, topics: usize) -> Result<(), LogError> {
    within("topic's URL", url.len(), URL_BYTES_MAX)?;
    if topics >= TOPICS_MAX {
        return Err(refused(format!(
            "{TOPICS_MAX} topics are there, no more can be made\n  help: let the hub take fewer, or remove some"
        )));
    }
    Ok(())
}

pub(crate) fn check_notification(notification: &NewNotification) -> Result<(), LogError> {
    within("media type", notification.media_type.len(), NAME_BYTES_MAX)?;
    within("list of links", notification.links.len(), LINK_BYTES_MAX)?;
    match &notification.payload {
        Payload::Bytes(bytes) => within("body", bytes.len(), BODY_BYTES_MAX),
        Payload::Changes { after, last } if after < last && i64::try_from(last.0).is_ok() => Ok(()),
        Payload::Changes { after, last } => Err(refused(format!(
            "a notification cannot contain the changes after {after} to {last}"
        ))),
    }
}

pub(crate) fn check_target(target: &NewTarget) -> Result<(), LogError> {
    within("address", target.address.len(), URL_BYTES_MAX)?;
    within("secret", target.secret.as_ref().map_or(0, |secret| secret.0.len()), SECRET_BYTES_MAX)
}

pub(crate) fn check_verification(verification: &NewVerification) -> Result<(), LogError> {
    within("topic's URL", verification.topic_url.len(), URL_BYTES_MAX)?;
    within("callback's URL", verification.callback.len(), URL_BYTES_MAX)?;
    within("challenge", verification.challenge.len(), NAME_BYTES_MAX)?;
    within("reason", verification.reason.as_ref().map_or(0, String::len), NAME_BYTES_MAX)?;
    if verification.lease_seconds.is_some_and(|seconds| i64::try_from(seconds).is_err()) {
        return Err(refused("a lease cannot be that long".into()));
    }
    within(
        "secret",
        verification.secret.as_ref().map_or(0, |secret| secret.0.len()),
        SECRET_BYTES_MAX,
    )
}

pub(crate) fn no_topic(topic: TopicId) -> LogError {
    LogError::new(ErrorKind::NoSet, format!("the store has no topic number {}", topic.0))
}

fn within(what: &str, bytes: usize, limit: usize) -> Result<(), LogError> {
    if bytes <= limit {
        return Ok(());
    }
    Err(refused(format!("the {what} has {bytes} bytes\n  help: at most {limit} can be stored")))
}

pub(crate) fn refused(message: String) -> LogError {
    LogError::new(ErrorKind::Refused, message)
}
