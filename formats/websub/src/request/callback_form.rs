//! Forms by which a Destination of ResourceSync 0.1 asks to be called back [rs-0.1 §5.2.2].
//!
//! The specification has `callbackURI` and nothing else. The other parameters are ours: `secret`,
//! `lease_seconds` and `mode`, with the meaning that they have in WebSub [websub §5.1].

use crate::request::address::check_callback;
use crate::request::form::{FormError, MAX_FORM_LENGTH, MAX_PARAMETERS, lease, once, secret, text};
use crate::request::pairs::{pairs, push, push_bytes};
use crate::{Request, Secret, Subscribe, Unsubscribe};
use abreast_webtypes::excerpt;
use std::borrow::Cow;

/// A request to be called back, or to be called back no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallbackRequest {
    /// Deliver change sets to a callback.
    Subscribe {
        /// Where to deliver, exactly as given.
        callback: String,
        /// Key of the signatures of deliveries.
        secret: Option<Secret>,
        /// How long, in seconds; see [`crate::LeaseLimits::grant`].
        lease_seconds: Option<u64>,
    },
    /// Stop the delivery to a callback.
    Unsubscribe {
        /// URL of the callback, as given.
        callback: String,
    },
}

impl CallbackRequest {
    /// Reads the body of a request. White space around the callback is ignored, as clients of 2012
    /// end their body with a line break; unknown parameters are ignored.
    ///
    /// Stricter: a parameter that is there twice with different values is refused, since two
    /// programs would take different ones, and so is a lease that is not a number. Lenient: an
    /// empty secret and an empty lease count as missing.
    ///
    /// # Examples
    /// ```
    /// use abreast_websub::CallbackRequest;
    ///
    /// let body = b"callbackURI=https%3A%2F%2Fmirror.example%2Fchanges\r\n";
    /// let CallbackRequest::Subscribe { callback, lease_seconds, .. } = CallbackRequest::parse(body)?
    /// else {
    ///     unreachable!("without a mode the request is a subscription")
    /// };
    /// assert_eq!((callback.as_str(), lease_seconds), ("https://mirror.example/changes", None));
    /// # Ok::<(), abreast_websub::FormError>(())
    /// ```
    ///
    /// # Errors
    /// See [`FormError`].
    pub fn parse(body: &[u8]) -> Result<Self, FormError> {
        if body.len() > MAX_FORM_LENGTH {
            return Err(FormError::TooLong);
        }
        let (mut callback, mut mode, mut key, mut seconds) = (None, None, None, None);
        let mut unknown = None;
        for (number, (name, value)) in pairs(body).enumerate() {
            if number == MAX_PARAMETERS {
                return Err(FormError::TooMany);
            }
            match name.trim_ascii() {
                b"callbackURI" => once(&mut callback, "callbackURI", value)?,
                b"mode" => once(&mut mode, "mode", value)?,
                b"secret" => once(&mut key, "secret", value)?,
                b"lease_seconds" => once(&mut seconds, "lease_seconds", value)?,
                b"" => {}
                name => {
                    unknown.get_or_insert_with(|| excerpt(&String::from_utf8_lossy(name)));
                }
            }
        }
        if let (None, Some(unknown)) = (&callback, unknown) {
            return Err(FormError::Unknown(unknown));
        }
        let callback = text("callbackURI", callback.as_deref())?.trim_ascii().to_owned();
        check_callback(&callback).map_err(FormError::CallbackUri)?;
        let mode = mode.filter(|mode| !mode.trim_ascii().is_empty());
        match mode.as_deref().map_or(&b"subscribe"[..], <[u8]>::trim_ascii) {
            b"subscribe" => Ok(Self::Subscribe {
                callback,
                secret: secret(key)?,
                lease_seconds: stated_lease(seconds)?,
            }),
            b"unsubscribe" => Ok(Self::Unsubscribe { callback }),
            other => Err(FormError::CallbackMode(excerpt(&String::from_utf8_lossy(other)))),
        }
    }

    /// The request as the body of a form. The form is the same as in the specification if the
    /// request has neither a secret nor a lease.
    pub fn to_form(&self) -> String {
        let mut out = String::new();
        match self {
            Self::Subscribe { callback, secret, lease_seconds } => {
                push(&mut out, "callbackURI", callback);
                if let Some(secret) = secret {
                    push_bytes(&mut out, "secret", secret.as_bytes());
                }
                if let Some(seconds) = lease_seconds {
                    push(&mut out, "lease_seconds", &seconds.to_string());
                }
            }
            Self::Unsubscribe { callback } => {
                push(&mut out, "callbackURI", callback);
                push(&mut out, "mode", "unsubscribe");
            }
        }
        out
    }

    /// The same request as one to a hub, about a topic [websub §5.1].
    ///
    /// # Examples
    /// ```
    /// use abreast_websub::{CallbackRequest, Request};
    ///
    /// let request =
    ///     CallbackRequest::Unsubscribe { callback: "https://mirror.example/changes".to_owned() };
    /// let Request::Unsubscribe(form) = request.about("https://repo.example/rs/changes.xml") else {
    ///     unreachable!("the mode stays the same")
    /// };
    /// assert_eq!(form.topic, "https://repo.example/rs/changes.xml");
    /// ```
    pub fn about(self, topic: &str) -> Request {
        let topic = topic.to_owned();
        match self {
            Self::Subscribe { callback, secret, lease_seconds } => {
                Request::Subscribe(Subscribe { topic, callback, secret, lease_seconds })
            }
            Self::Unsubscribe { callback } => Request::Unsubscribe(Unsubscribe { topic, callback }),
        }
    }
}

/// A lease; `None` when it is missing or empty.
fn stated_lease(value: Option<Cow<'_, [u8]>>) -> Result<Option<u64>, FormError> {
    let Some(value) = value.filter(|value| !value.trim_ascii().is_empty()) else {
        return Ok(None);
    };
    let text = excerpt(&String::from_utf8_lossy(&value));
    if value.trim_ascii().starts_with(b"-") {
        return Err(FormError::Lease(text));
    }
    lease(Some(value)).map(Some).ok_or(FormError::Lease(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AddressError, MAX_SECRET_LENGTH};
    use proptest::prelude::*;

    fn subscribe(callback: &str) -> CallbackRequest {
        CallbackRequest::Subscribe { callback: callback.into(), secret: None, lease_seconds: None }
    }

    #[test]
    fn the_request_of_the_specification_is_read() {
        for body in [
            "callbackURI=http://aggregator.example/callback",
            "callbackURI=http://aggregator.example/callback\r\n",
            "callbackURI=http://aggregator.example/callback\n\n",
            "callbackURI=http%3A%2F%2Faggregator.example%2Fcallback",
            "x=1&callbackURI=+http://aggregator.example/callback&mode=&secret=&lease_seconds=",
            "callbackURI=http://aggregator.example/callback&mode=subscribe\n",
        ] {
            let read = CallbackRequest::parse(body.as_bytes());
            assert_eq!(read, Ok(subscribe("http://aggregator.example/callback")), "{body}");
        }
        assert_eq!(subscribe("http://e/c").to_form(), "callbackURI=http%3A%2F%2Fe%2Fc");
    }

    #[test]
    fn odd_requests_are_refused() {
        for (body, error) in [
            ("", FormError::Missing("callbackURI")),
            ("callbackURI=", FormError::Missing("callbackURI")),
            ("hub.callback=http://e/", FormError::Unknown("hub.callback".into())),
            ("callbackUri=http://e/", FormError::Unknown("callbackUri".into())),
            ("callbackURI=http://e/&lease_seconds=abc", FormError::Lease("abc".into())),
            ("callbackURI=http://e/&lease_seconds=-5", FormError::Lease("-5".into())),
            ("callbackURI=http://e/1&callbackURI=http://e/2", FormError::Twice("callbackURI")),
            ("callbackURI=http://e/&mode=subscribe&mode=unsubscribe", FormError::Twice("mode")),
            ("callbackURI=http://e/&secret=a&secret=b", FormError::Twice("secret")),
            ("callbackURI=http://e/&mode=publish", FormError::CallbackMode("publish".into())),
            ("callbackURI=%ff", FormError::NotText("callbackURI")),
        ] {
            assert_eq!(CallbackRequest::parse(body.as_bytes()), Err(error), "{body}");
        }
        for callback in [
            "ftp://e/",
            "/callback",
            "javascript:alert(1)",
            "http://u:p@e/",
            "http://e/%0d%0aHost:x",
        ] {
            let read = CallbackRequest::parse(format!("callbackURI={callback}").as_bytes());
            assert!(matches!(read, Err(FormError::CallbackUri(_))), "{callback} {read:?}");
        }
        let long = format!("callbackURI=http://e/&secret={}", "x".repeat(MAX_SECRET_LENGTH + 1));
        assert_eq!(
            CallbackRequest::parse(long.as_bytes()),
            Err(FormError::Secret(MAX_SECRET_LENGTH + 1))
        );
        let long = "x".repeat(MAX_FORM_LENGTH + 1);
        assert_eq!(CallbackRequest::parse(long.as_bytes()), Err(FormError::TooLong));
        let many = "a&".repeat(MAX_PARAMETERS + 1);
        assert_eq!(CallbackRequest::parse(many.as_bytes()), Err(FormError::TooMany));
        let long = format!("callbackURI=http://e/{}", "x".repeat(60_000));
        assert!(matches!(
            CallbackRequest::parse(long.as_bytes()),
            Err(FormError::CallbackUri(AddressError::TooLong))
        ));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            path in "[!$-;=?-\\[\\]-~]{0,30}",
            secret: Option<Vec<u8>>,
            lease_seconds: Option<u64>,
            ends: bool,
        ) {
            let callback = format!("http://e/{path}");
            prop_assume!(check_callback(&callback).is_ok());
            let secret = secret.filter(|secret| secret.len() <= MAX_SECRET_LENGTH).and_then(Secret::new);
            let request = if ends {
                CallbackRequest::Unsubscribe { callback }
            } else {
                CallbackRequest::Subscribe { callback, secret, lease_seconds }
            };
            prop_assert_eq!(CallbackRequest::parse(request.to_form().as_bytes()), Ok(request));
        }

        #[test]
        fn no_body_panics(body: Vec<u8>) {
            let _ = CallbackRequest::parse(&body);
        }
    }
}
