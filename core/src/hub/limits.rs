//! Limits on requests to the hub's store.

use super::target::NewTarget;
use super::verification::NewVerification;
use crate::{ErrorKind, LogError, NewNotification, Payload, TopicId};

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

/// Failed attempts that are stored for a target.
pub const ATTEMPTS_MAX: i64 = 8;
/// Dead letters that are stored for a target one by one; then the oldest are merged into ranges.
pub const DEAD_LETTERS_MAX: i64 = 10_000;
/// Dead letters that are stored for all targets; then the oldest are deleted.
pub const ALL_DEAD_LETTERS_MAX: i64 = 1_000_000;
/// Ended targets that are stored; then the oldest are deleted.
pub const ENDED_MAX: i64 = 10_000;
/// Longest stored error text, in bytes.
pub const ERROR_BYTES_MAX: usize = 500;
/// Failing targets that a summary describes.
pub const FAILING_TARGETS_MAX: i64 = 20;

/// Checks the URL of a topic to be created in a store that has this number of topics.
///
/// # Errors
/// When the URL is too long, or the store has [`TOPICS_MAX`] topics.
pub fn check_topic_url(url: &str, topics: usize) -> Result<(), LogError> {
    within("topic's URL", url.len(), URL_BYTES_MAX)?;
    if topics >= TOPICS_MAX {
        return Err(refused(format!(
            "{TOPICS_MAX} topics are there, no more can be made\n  help: let the hub take fewer, or remove some"
        )));
    }
    Ok(())
}

/// Checks that a notification can be recorded.
///
/// # Errors
/// When the notification has too long values, or an empty range of changes.
pub fn check_notification(notification: &NewNotification) -> Result<(), LogError> {
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

/// Checks that a target can be created or renewed.
///
/// # Errors
/// When the address or the secret is too long.
pub fn check_target(target: &NewTarget) -> Result<(), LogError> {
    within("address", target.address.len(), URL_BYTES_MAX)?;
    within("secret", target.secret.as_ref().map_or(0, |secret| secret.0.len()), SECRET_BYTES_MAX)
}

/// Checks that a request to be verified can be recorded.
///
/// # Errors
/// When a value is too long.
pub fn check_verification(verification: &NewVerification) -> Result<(), LogError> {
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

/// The error of every request for a topic that the store does not contain.
pub fn no_topic(topic: TopicId) -> LogError {
    LogError::new(ErrorKind::NoSet, format!("the store has no topic number {}", topic.0))
}

fn within(what: &str, bytes: usize, limit: usize) -> Result<(), LogError> {
    if bytes <= limit {
        return Ok(());
    }
    Err(refused(format!("the {what} has {bytes} bytes\n  help: at most {limit} can be stored")))
}

fn refused(message: String) -> LogError {
    LogError::new(ErrorKind::Refused, message)
}
