//! Forms that subscribers and publishers post to a hub [websub §5.1, §6].

use crate::request::address::{AddressError, check_callback, check_topic};
use crate::request::lease::parse_seconds;
use crate::request::pairs::{pairs, push, push_bytes};
use crate::{MAX_SECRET_LENGTH, Secret};
use abreast_webtypes::excerpt;
use std::borrow::Cow;
use thiserror::Error;

/// Bytes of a form; longer ones are refused.
pub const MAX_FORM_LENGTH: usize = 64 * 1_024;
/// Most topics that one form can report as changed.
pub const MAX_TOPICS: usize = 100;
/// Most parameters in a form, including ignored parameters.
pub(crate) const MAX_PARAMETERS: usize = 1_000;

/// A request to a hub, by its mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Request to subscribe to a topic.
    Subscribe(Subscribe),
    /// Request to end a subscription.
    Unsubscribe(Unsubscribe),
    /// Report of changed topics, sent by a publisher.
    Publish(Publish),
}

/// A request to subscribe to a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscribe {
    /// The topic's URL, exactly as given.
    pub topic: String,
    /// Where to deliver, exactly as given.
    pub callback: String,
    /// Key of the signatures of deliveries to this callback.
    pub secret: Option<Secret>,
    /// How long, in seconds; see [`crate::LeaseLimits::grant`].
    pub lease_seconds: Option<u64>,
}

/// A request to end a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsubscribe {
    /// URL of the topic, as in [`Subscribe`].
    pub topic: String,
    /// URL of the callback, as in [`Subscribe`].
    pub callback: String,
}

/// Topics that a publisher reports as changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publish {
    /// URLs of the changed topics, without repetition, at most [`MAX_TOPICS`].
    pub topics: Vec<String>,
}

/// Why a hub cannot accept a form.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FormError {
    /// The form has more than [`MAX_FORM_LENGTH`] bytes.
    #[error("the form is longer than {MAX_FORM_LENGTH} bytes")]
    TooLong,
    /// The form has more parameters than 1,000.
    #[error("the form has more than {MAX_PARAMETERS} parameters")]
    TooMany,
    /// A parameter that must be there is not, or is empty.
    #[error("`{0}` is missing or empty")]
    Missing(&'static str),
    /// A parameter that may be there once is there twice, with different values.
    #[error("`{0}` is there more than once, with different values")]
    Twice(&'static str),
    /// A value is not UTF-8.
    #[error("`{0}` is not UTF-8")]
    NotText(&'static str),
    /// Not a mode we know.
    #[error("`hub.mode` is \"{0}\"; expected subscribe, unsubscribe or publish")]
    Mode(String),
    /// The topic cannot be one.
    #[error("`hub.topic` cannot be a topic: {0}")]
    Topic(AddressError),
    /// The callback cannot be one.
    #[error("`hub.callback` cannot be a callback: {0}")]
    Callback(AddressError),
    /// The callback of a form of ResourceSync 0.1 cannot be one.
    #[error("`callbackURI` cannot be a callback: {0}")]
    CallbackUri(AddressError),
    /// Not a mode that such a form may have.
    #[error("`mode` is \"{0}\"; expected subscribe or unsubscribe")]
    CallbackMode(String),
    /// The secret has 200 bytes or more.
    #[error(
        "the secret has {0} bytes; it must have fewer than 200\n  help: 32 random bytes in hex are plenty"
    )]
    Secret(usize),
    /// A form of ResourceSync 0.1 without `callbackURI`, but with this other parameter.
    #[error("`callbackURI` is missing, and `{0}` is unknown\n  help: names are case-sensitive")]
    Unknown(String),
    /// The lease is not a number of seconds.
    #[error("`lease_seconds` is \"{0}\"; expected a number of seconds")]
    Lease(String),
    /// The form reports more topics than [`MAX_TOPICS`].
    #[error("more than {MAX_TOPICS} topics in one form\n  help: send several")]
    Topics,
}

impl FormError {
    /// A stable code: programs match on it, wording may change.
    ///
    /// # Examples
    /// ```
    /// use abreast_websub::Request;
    ///
    /// let form = b"hub.mode=subscribe&hub.topic=https%3A%2F%2Flibrary.example%2Ffeed";
    /// let error = Request::parse(form).expect_err("the form has no callback");
    /// assert_eq!(error.code(), "websub.missing");
    /// assert_eq!(error.to_string(), "`hub.callback` is missing or empty");
    /// ```
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLong => "websub.size",
            Self::TooMany => "websub.parameters",
            Self::Missing(_) | Self::Unknown(_) => "websub.missing",
            Self::Lease(_) => "websub.lease",
            Self::Twice(_) => "websub.twice",
            Self::NotText(_) => "websub.encoding",
            Self::Mode(_) | Self::CallbackMode(_) => "websub.mode",
            Self::Topic(_) | Self::Topics => "websub.topic",
            Self::Callback(_) | Self::CallbackUri(_) => "websub.callback",
            Self::Secret(_) => "websub.secret",
        }
    }
}

/// The parameters that mean something.
#[derive(Default)]
struct Fields<'a> {
    mode: Option<Cow<'a, [u8]>>,
    topics: Vec<Cow<'a, [u8]>>,
    urls: Vec<Cow<'a, [u8]>>,
    callback: Option<Cow<'a, [u8]>>,
    secret: Option<Cow<'a, [u8]>>,
    lease: Option<Cow<'a, [u8]>>,
}

impl Request {
    /// Reads the body of a request. Unknown parameters are ignored [websub §5.1].
    ///
    /// Stricter: a parameter that is there twice with different values is refused, since two
    /// programs would take different ones. Lenient: an empty secret and a lease that is not a
    /// number count as missing.
    ///
    /// # Errors
    /// See [`FormError`].
    pub fn parse(body: &[u8]) -> Result<Self, FormError> {
        if body.len() > MAX_FORM_LENGTH {
            return Err(FormError::TooLong);
        }
        let mut fields = Fields::read(body)?;
        let mode = fields.mode.take();
        let mode = text("hub.mode", mode.as_deref())?;
        match &*mode {
            "subscribe" | "unsubscribe" => fields.subscription(mode == "subscribe"),
            "publish" => fields.publish(),
            other => Err(FormError::Mode(excerpt(other))),
        }
    }

    /// The request as the body of a form.
    ///
    /// # Examples
    /// ```
    /// use abreast_websub::{Publish, Request};
    ///
    /// // A repository reports a change to its hub.
    /// let topics = vec!["https://repo.example/changelist.xml".to_owned()];
    /// let form = Request::Publish(Publish { topics }).to_form();
    /// assert!(form.starts_with("hub.mode=publish&hub.url=https%3A%2F%2Frepo.example%2Fchangelist.xml"));
    /// ```
    pub fn to_form(&self) -> String {
        let mut out = String::new();
        match self {
            Self::Subscribe(subscribe) => {
                push(&mut out, "hub.mode", "subscribe");
                push(&mut out, "hub.topic", &subscribe.topic);
                push(&mut out, "hub.callback", &subscribe.callback);
                if let Some(secret) = &subscribe.secret {
                    push_bytes(&mut out, "hub.secret", secret.as_bytes());
                }
                if let Some(seconds) = subscribe.lease_seconds {
                    push(&mut out, "hub.lease_seconds", &seconds.to_string());
                }
            }
            Self::Unsubscribe(unsubscribe) => {
                push(&mut out, "hub.mode", "unsubscribe");
                push(&mut out, "hub.topic", &unsubscribe.topic);
                push(&mut out, "hub.callback", &unsubscribe.callback);
            }
            Self::Publish(publish) => {
                push(&mut out, "hub.mode", "publish");
                for topic in &publish.topics {
                    // Deployed hubs read one or the other [websub §6].
                    push(&mut out, "hub.url", topic);
                    push(&mut out, "hub.topic", topic);
                }
            }
        }
        out
    }
}

impl<'a> Fields<'a> {
    fn read(body: &'a [u8]) -> Result<Self, FormError> {
        let mut fields = Self::default();
        for (number, (name, value)) in pairs(body).enumerate() {
            if number == MAX_PARAMETERS {
                return Err(FormError::TooMany);
            }
            match &*name {
                b"hub.mode" => once(&mut fields.mode, "hub.mode", value)?,
                b"hub.callback" => once(&mut fields.callback, "hub.callback", value)?,
                b"hub.secret" => once(&mut fields.secret, "hub.secret", value)?,
                b"hub.lease_seconds" => once(&mut fields.lease, "hub.lease_seconds", value)?,
                b"hub.topic" => fields.topics.push(value),
                b"hub.url" => fields.urls.push(value),
                _ => {}
            }
        }
        Ok(fields)
    }

    fn subscription(self, subscribe: bool) -> Result<Request, FormError> {
        let first = self.topics.first();
        if self.topics.iter().any(|topic| Some(topic) != first) {
            return Err(FormError::Twice("hub.topic"));
        }
        let topic = text("hub.topic", first.map(|topic| &**topic))?.into_owned();
        check_topic(&topic).map_err(FormError::Topic)?;
        let callback = text("hub.callback", self.callback.as_deref())?.into_owned();
        check_callback(&callback).map_err(FormError::Callback)?;
        if !subscribe {
            return Ok(Request::Unsubscribe(Unsubscribe { topic, callback }));
        }
        Ok(Request::Subscribe(Subscribe {
            topic,
            callback,
            secret: secret(self.secret)?,
            lease_seconds: lease(self.lease),
        }))
    }

    fn publish(self) -> Result<Request, FormError> {
        let mut topics: Vec<String> = Vec::new();
        for topic in self.urls.iter().chain(&self.topics) {
            let topic = text("hub.url", Some(topic))?;
            if topics.iter().any(|known| *known == topic) {
                continue;
            }
            if topics.len() == MAX_TOPICS {
                return Err(FormError::Topics);
            }
            check_topic(&topic).map_err(FormError::Topic)?;
            topics.push(topic.into_owned());
        }
        if topics.is_empty() {
            return Err(FormError::Missing("hub.url"));
        }
        Ok(Request::Publish(Publish { topics }))
    }
}

/// A secret that is not too long; `None` when it is missing or empty.
pub(crate) fn secret(value: Option<Cow<'_, [u8]>>) -> Result<Option<Secret>, FormError> {
    let secret = value.map(Cow::into_owned).unwrap_or_default();
    if secret.len() > MAX_SECRET_LENGTH {
        return Err(FormError::Secret(secret.len()));
    }
    Ok(Secret::new(secret))
}

/// A lease; `None` when it is missing or not a number.
pub(crate) fn lease(value: Option<Cow<'_, [u8]>>) -> Option<u64> {
    value.and_then(|lease| parse_seconds(&String::from_utf8_lossy(&lease)))
}

pub(crate) fn once<'a>(
    place: &mut Option<Cow<'a, [u8]>>,
    name: &'static str,
    value: Cow<'a, [u8]>,
) -> Result<(), FormError> {
    match place {
        Some(before) if *before != value => Err(FormError::Twice(name)),
        _ => {
            *place = Some(value);
            Ok(())
        }
    }
}

pub(crate) fn text<'a>(
    name: &'static str,
    value: Option<&'a [u8]>,
) -> Result<Cow<'a, str>, FormError> {
    let value = value.filter(|value| !value.is_empty()).ok_or(FormError::Missing(name))?;
    std::str::from_utf8(value).map(Cow::Borrowed).map_err(|_| FormError::NotText(name))
}

/// Whether a `Content-Type` describes a form. The encoding must be UTF-8 [websub §5.1].
///
/// # Examples
/// ```
/// use abreast_websub::is_form;
///
/// assert!(is_form("application/x-www-form-urlencoded; charset=UTF-8"));
/// assert!(!is_form("application/x-www-form-urlencoded; charset=ISO-8859-1"));
/// assert!(!is_form("application/json"));
/// ```
pub fn is_form(content_type: &str) -> bool {
    let mut parts = content_type.split(';').map(str::trim_ascii);
    parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/x-www-form-urlencoded"))
        && parts.all(|part| match part.split_once('=') {
            Some((name, value)) if name.trim_ascii().eq_ignore_ascii_case("charset") => {
                value.trim_ascii().trim_matches('"').eq_ignore_ascii_case("utf-8")
            }
            _ => true,
        })
}

#[cfg(test)]
mod tests;
