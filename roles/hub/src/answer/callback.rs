//! Subscriptions of ResourceSync 0.1 [rs-0.1 §5.2.2]: another form, posted to an address for each
//! topic, with the same result.
//!
//! The specification delivers to any URL in a request. This hub sends a challenge as in WebSub, so
//! that the callback confirms the start and the end of deliveries [websub §5.3]. Receivers of 2012
//! cannot confirm: the hub does not ask callbacks that the operator lists by their exact URL.

use crate::answer::subscribe::Proof;
use crate::hub::Inner;
use crate::message::client::Client;
use crate::message::request::HubAnswer;
use crate::message::text;
use abreast_websub::{CallbackRequest, MAX_FORM_LENGTH, Request, is_form};
use std::sync::atomic::Ordering::Relaxed;

impl Inner {
    /// Handles a POST at the address for subscriptions to a topic.
    pub(crate) async fn call_back(
        &self,
        topic: &str,
        content_type: &str,
        body: &[u8],
        client: Client,
    ) -> HubAnswer {
        let answer = self.answer_callback(topic, content_type, body, client).await;
        if matches!(answer.status, 400..=499) {
            self.counters.refused.fetch_add(1, Relaxed);
        }
        answer
    }

    async fn answer_callback(
        &self,
        topic: &str,
        content_type: &str,
        body: &[u8],
        client: Client,
    ) -> HubAnswer {
        if body.len() > MAX_FORM_LENGTH {
            return HubAnswer::new(
                413,
                format!("the form is larger than the {MAX_FORM_LENGTH} bytes it may have\n"),
            );
        }
        // The example in the specification does not have a content type.
        if !content_type.trim().is_empty() && !is_form(content_type) {
            let text = "the body is not a form in UTF-8\n  help: send `callbackURI=URL` as \
                        `application/x-www-form-urlencoded`\n";
            return HubAnswer::new(415, text);
        }
        let request = match CallbackRequest::parse(body) {
            Ok(request) => request,
            Err(error) => return text::no_request(&error),
        };
        let proof = self.proof_of(&request);
        match request.about(topic) {
            Request::Subscribe(wish) => self.subscribe(wish, client, proof).await,
            Request::Unsubscribe(wish) => self.unsubscribe(wish, client).await,
            Request::Publish(_) => HubAnswer::new(400, "this is not a hub\n"),
        }
    }

    /// A listed callback with a secret belongs to a receiver that can answer a challenge; other
    /// clients must not choose its secret.
    fn proof_of(&self, request: &CallbackRequest) -> Proof {
        match request {
            CallbackRequest::Subscribe { callback, secret: None, .. }
                if self.options.trusts(callback) =>
            {
                Proof::Trusted
            }
            _ => Proof::Challenge,
        }
    }
}
