//! WebSub's forms, verifications, signatures and streams; no disk, no network, no clock.
#![doc = include_str!("../README.md")]

mod address;
mod callback_form;
mod discover;
mod events;
mod form;
mod lease;
mod links;
mod pairs;
mod secret;
mod signature;
mod verification;

pub use address::{AddressError, check_callback, check_topic};
pub use callback_form::CallbackRequest;
pub use discover::{
    DiscoverError, Discovered, DiscoverySource, MAX_BODY_LENGTH, MAX_HUBS, discover, in_body,
    in_headers,
};
pub use events::{
    Event, EventError, EventReader, MAX_EVENT_LENGTH, write_comment, write_event, write_retry,
};
pub use form::{
    FormError, MAX_FORM_LENGTH, MAX_TOPICS, Publish, Request, Subscribe, Unsubscribe, is_form,
};
pub use lease::{LeaseLimits, renew_after};
pub use links::{LinksError, PublishedLinks, topic_links};
pub use secret::{MAX_SECRET_LENGTH, Secret};
pub use signature::{
    Key, MAX_SIGNATURE_LENGTH, Method, SIGNATURE_HEADER, Signature, SignatureError, verify,
};
pub use verification::{
    Intent, IntentError, MAX_ANSWER_LENGTH, MAX_CHALLENGE_LENGTH, Mode, denied_url, is_confirmed,
    verification_url,
};
