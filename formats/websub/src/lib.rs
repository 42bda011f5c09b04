//! WebSub's forms, verifications, signatures and streams; no disk, no network, no clock.
#![doc = include_str!("../README.md")]

mod deliver;
mod discover;
mod request;

pub use deliver::events::{
    Event, EventError, EventReader, MAX_EVENT_LENGTH, write_comment, write_event, write_retry,
};
pub use deliver::signature::{
    Key, MAX_SIGNATURE_LENGTH, Method, SIGNATURE_HEADER, Signature, SignatureError, verify,
};
pub use deliver::webhook::{
    WEBHOOK_ID, WEBHOOK_SIGNATURE, WEBHOOK_TIMESTAMP, WebhookKey, WebhookSecretError,
};
pub use discover::header::{LinksError, PublishedLinks, topic_links};
pub use discover::{
    DiscoverError, Discovered, DiscoverySource, MAX_BODY_LENGTH, MAX_HUBS, discover, in_body,
    in_headers,
};
pub use request::address::{AddressError, check_callback, check_topic};
pub use request::callback_form::CallbackRequest;
pub use request::form::{
    FormError, MAX_FORM_LENGTH, MAX_TOPICS, Publish, Request, Subscribe, Unsubscribe, is_form,
};
pub use request::lease::{LeaseLimits, renew_after};
pub use request::secret::{MAX_SECRET_LENGTH, Secret};
pub use request::verification::{
    Intent, IntentError, MAX_ANSWER_LENGTH, MAX_CHALLENGE_LENGTH, Mode, denied_url, is_confirmed,
    verification_url,
};
