//! Verification of intent, and denial [websub §5.2, §5.3].

use crate::request::lease::parse_seconds;
use crate::request::pairs::{pairs, push};
use abreast_webtypes::{MAX_URI_LENGTH, excerpt};
use std::borrow::Cow;
use thiserror::Error;

/// Most bytes in a challenge from a hub.
pub const MAX_CHALLENGE_LENGTH: usize = 1_024;
/// Most bytes of an answer that a hub reads; a longer answer does not confirm the request.
pub const MAX_ANSWER_LENGTH: usize = 4 * 1_024;
/// Bytes of a query that a subscriber reads.
const MAX_QUERY_LENGTH: usize = 4 * MAX_URI_LENGTH;

/// The mode that a hub verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The start or renewal of a subscription.
    Subscribe,
    /// The end of a subscription.
    Unsubscribe,
}

impl Mode {
    /// The mode as value of `hub.mode`.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Subscribe => "subscribe",
            Self::Unsubscribe => "unsubscribe",
        }
    }
}

/// URL of a hub's verification request: the callback with its own query, followed by `hub.`
/// parameters [websub §5.1.1].
///
/// Parameters of the callback with the same key are not replaced.
pub fn verification_url(
    callback: &str,
    mode: Mode,
    topic: &str,
    challenge: &str,
    lease_seconds: Option<u64>,
) -> String {
    let mut url = begin(callback);
    push(&mut url, "hub.mode", mode.token());
    push(&mut url, "hub.topic", topic);
    push(&mut url, "hub.challenge", challenge);
    if let Some(seconds) = lease_seconds {
        push(&mut url, "hub.lease_seconds", &seconds.to_string());
    }
    url
}

/// The request by which a hub reports that a subscription is refused, or has ended [websub §5.2].
///
/// # Examples
/// ```
/// use abreast_websub::{Intent, denied_url};
///
/// let topic = "https://library.example/feed";
/// let url = denied_url("https://mirror.example/in?box=7", topic, Some("members only"));
/// let (_, query) = url.split_once('?').expect("the URL has a query");
/// let Intent::Denied { reason, .. } = Intent::parse(query)? else {
///     unreachable!("the mode is `denied`")
/// };
/// assert_eq!(reason.as_deref(), Some("members only"));
/// # Ok::<(), abreast_websub::IntentError>(())
/// ```
pub fn denied_url(callback: &str, topic: &str, reason: Option<&str>) -> String {
    let mut url = begin(callback);
    push(&mut url, "hub.mode", "denied");
    push(&mut url, "hub.topic", topic);
    if let Some(reason) = reason {
        push(&mut url, "hub.reason", reason);
    }
    url
}

fn begin(callback: &str) -> String {
    let mut url = String::with_capacity(callback.len() + 256);
    url.push_str(callback);
    match callback.find('?') {
        None => url.push('?'),
        // A second `?` is part of the query like any other character.
        Some(at) if at + 1 < callback.len() && !callback.ends_with('&') => url.push('&'),
        Some(_) => {}
    }
    url
}

/// Whether an answer confirms a request: a status of 2xx, and the challenge as the whole body
/// [websub §5.3.1].
///
/// # Examples
/// ```
/// use abreast_websub::is_confirmed;
///
/// assert!(is_confirmed(200, b"5f2a", "5f2a"));
/// // A subscriber that refuses, and a server that sends a page for any request.
/// assert!(!is_confirmed(404, b"5f2a", "5f2a"));
/// assert!(!is_confirmed(200, b"<html>5f2a</html>", "5f2a"));
/// ```
pub fn is_confirmed(status: u16, answer: &[u8], challenge: &str) -> bool {
    (200..300).contains(&status) && !challenge.is_empty() && answer == challenge.as_bytes()
}

/// The message of a hub to a callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Intent {
    /// Whether this is wanted. If so the answer is 2xx with the challenge as its body, else 404
    /// [websub §5.3.1].
    Verify {
        /// Mode that the hub must ask for.
        mode: Mode,
        /// The topic, as it was given in the request.
        topic: String,
        /// Text that the subscriber must answer.
        challenge: String,
        /// The lease granted, in seconds.
        lease_seconds: Option<u64>,
    },
    /// The subscription is refused, or has ended.
    Denied {
        /// Topic that the hub must ask for.
        topic: String,
        /// The reason, if given; for people, at most 200 characters.
        reason: Option<String>,
    },
}

/// Why a query does not verify a request.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IntentError {
    /// More bytes than four URIs may have.
    #[error("the query is longer than {MAX_QUERY_LENGTH} bytes")]
    TooLong,
    /// A parameter is not there, or is empty.
    #[error("`{0}` is missing")]
    Missing(&'static str),
    /// A parameter is not UTF-8.
    #[error("`{0}` is not UTF-8")]
    NotText(&'static str),
    /// Not a mode we know.
    #[error("`hub.mode` is \"{0}\"; expected subscribe, unsubscribe or denied")]
    Mode(String),
    /// The challenge has more than [`MAX_CHALLENGE_LENGTH`] bytes.
    #[error("`hub.challenge` is longer than {MAX_CHALLENGE_LENGTH} bytes")]
    Challenge,
}

impl Intent {
    /// Reads the query of a request at a callback, the callback's own parameters among it.
    ///
    /// The last of several parameters with one key counts: a hub appends its parameters to the
    /// callback's own.
    ///
    /// # Errors
    /// See [`IntentError`].
    pub fn parse(query: &str) -> Result<Self, IntentError> {
        if query.len() > MAX_QUERY_LENGTH {
            return Err(IntentError::TooLong);
        }
        let last = |name: &'static str| {
            let value =
                pairs(query.as_bytes()).filter(|(other, _)| **other == *name.as_bytes()).last();
            let value =
                value.map(|(_, value)| value.into_owned()).filter(|value| !value.is_empty());
            value
                .map(|value| String::from_utf8(value).map_err(|_| IntentError::NotText(name)))
                .transpose()
        };
        let must = |name: &'static str| last(name)?.ok_or(IntentError::Missing(name));
        let mode = must("hub.mode")?;
        let topic = must("hub.topic")?;
        let mode = match mode.as_str() {
            "subscribe" => Mode::Subscribe,
            "unsubscribe" => Mode::Unsubscribe,
            "denied" => {
                let reason = last("hub.reason")?.map(|reason| visible(&reason));
                return Ok(Self::Denied { topic, reason });
            }
            other => return Err(IntentError::Mode(excerpt(other))),
        };
        let challenge = must("hub.challenge")?;
        if challenge.len() > MAX_CHALLENGE_LENGTH {
            return Err(IntentError::Challenge);
        }
        // Lenient: an unreadable lease counts as missing, and the subscriber renews as if the hub
        // had granted the requested lease.
        let lease_seconds = last("hub.lease_seconds")?.as_deref().and_then(parse_seconds);
        Ok(Self::Verify { mode, topic, challenge, lease_seconds })
    }
}

/// At most 200 characters, none of which moves a cursor.
fn visible(text: &str) -> String {
    const LENGTH: usize = 200;
    let shown: Cow<'_, str> = if text.chars().any(char::is_control) {
        text.chars()
            .map(|character| if character.is_control() { ' ' } else { character })
            .collect::<String>()
            .into()
    } else {
        text.into()
    };
    shown.chars().take(LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_callbacks_own_query_is_kept() {
        for (callback, url) in [
            ("http://e/in", "http://e/in?hub.mode=subscribe"),
            ("http://e/in?", "http://e/in?hub.mode=subscribe"),
            ("http://e/in??", "http://e/in??&hub.mode=subscribe"),
            ("http://e/in?a=%41&b", "http://e/in?a=%41&b&hub.mode=subscribe"),
            ("http://e/in?hub.mode=mine&", "http://e/in?hub.mode=mine&hub.mode=subscribe"),
        ] {
            let rest = "&hub.topic=http%3A%2F%2Fe%2Ft%3Fa%26b%3D%2525&hub.challenge=c";
            let made = verification_url(callback, Mode::Subscribe, "http://e/t?a&b=%25", "c", None);
            assert_eq!(made, format!("{url}{rest}"));
        }
        let made = verification_url("http://e", Mode::Unsubscribe, "t", "c", Some(300));
        assert_eq!(
            made,
            "http://e?hub.mode=unsubscribe&hub.topic=t&hub.challenge=c&hub.lease_seconds=300"
        );
    }

    #[test]
    fn only_exactly_the_challenge_confirms() {
        assert!(is_confirmed(200, b"abc", "abc") && is_confirmed(204, b"abc", "abc"));
        for (status, answer) in [
            (200, &b""[..]),
            (200, b"abd"),
            (200, b"abc\n"),
            (200, b" abc"),
            (200, b"ABC"),
            (200, b"hub.challenge=abc"),
            (302, b"abc"),
            (404, b"abc"),
            (500, b"abc"),
            (100, b"abc"),
        ] {
            assert!(!is_confirmed(status, answer, "abc"), "{status} {answer:?}");
        }
        assert!(!is_confirmed(200, b"", ""), "an empty challenge proves nothing");
    }

    #[test]
    fn denials_are_read() {
        let url = denied_url("http://e/in?a=1", "http://e/t", Some("no\r\nroom & more"));
        let query = url.split_once('?').unwrap().1;
        let denied = Intent::Denied {
            topic: "http://e/t".to_owned(),
            reason: Some("no  room & more".to_owned()),
        };
        assert_eq!(Intent::parse(query), Ok(denied));
        let denied = Intent::Denied { topic: "t".to_owned(), reason: None };
        assert_eq!(Intent::parse("hub.mode=denied&hub.topic=t&hub.reason="), Ok(denied));
    }

    #[test]
    fn odd_queries_are_refused() {
        for (query, error) in [
            ("", IntentError::Missing("hub.mode")),
            ("hub.mode=subscribe", IntentError::Missing("hub.topic")),
            ("hub.mode=subscribe&hub.topic=t", IntentError::Missing("hub.challenge")),
            ("hub.mode=subscribe&hub.topic=%ff&hub.challenge=c", IntentError::NotText("hub.topic")),
            (
                "hub.mode=publish&hub.topic=t&hub.challenge=c",
                IntentError::Mode("publish".to_owned()),
            ),
        ] {
            assert_eq!(Intent::parse(query), Err(error), "{query}");
        }
        let long = format!(
            "hub.mode=subscribe&hub.topic=t&hub.challenge={}",
            "c".repeat(MAX_CHALLENGE_LENGTH + 1)
        );
        assert_eq!(Intent::parse(&long), Err(IntentError::Challenge));
        assert_eq!(Intent::parse(&"a".repeat(MAX_QUERY_LENGTH + 1)), Err(IntentError::TooLong));
    }

    proptest! {
        #[test]
        fn subscriber_reads_the_hubs_verification(
            own in "[!$-;=?-\\[\\]-~]{0,30}",
            topic in "[ -~äö]{1,30}",
            challenge in "[ -~]{1,30}",
            lease_seconds: Option<u64>,
            subscribe: bool,
        ) {
            let mode = if subscribe { Mode::Subscribe } else { Mode::Unsubscribe };
            let callback = format!("http://e/in?{own}");
            let url = verification_url(&callback, mode, &topic, &challenge, lease_seconds);
            prop_assert!(url.starts_with(&callback));
            prop_assert!(url[callback.len()..].bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#'));
            let read = Intent::parse(url.split_once('?').unwrap().1);
            prop_assert_eq!(read, Ok(Intent::Verify { mode, topic, challenge, lease_seconds }));
        }

        #[test]
        fn no_query_panics(query: String) {
            let _ = Intent::parse(&query);
        }
    }
}
