//! The topic of a set and its hubs: from the document that announces changes
//! [rs-change-notification §4.1], or from the topic itself if that document does not contain a hub
//! [websub §4].

use super::{Subscriber, is_https};
use crate::push::announcement::{Asking, Topic};
use crate::request::admit::Admission;
use abreast_net::{Request, Response, UnaskedEncoding};
use abreast_websub::{MAX_BODY_LENGTH, in_body, in_headers};
use std::time::Duration;

/// Maximum length of a Capability List in the search for the topic, in bytes.
const LIST_BYTES_MAX: u64 = 8 << 20;
/// Longest time that a topic may take to name its hubs.
const ASK_TIME: Duration = Duration::from_secs(30);

impl Subscriber {
    /// Finds the topic of the set and its hubs; `None` if the set does not have a topic.
    pub(super) async fn find(&self) -> Result<Option<Topic>, String> {
        let url = &self.announcement.url;
        let request = Request {
            authorization: self.authorization_for(url),
            accept_gzip: true,
            unasked_encoding: UnaskedEncoding::Decode,
            ..Request::new(url)
        };
        let mut body = Vec::new();
        let answer = self.client.fetch_to(&request, &mut body, LIST_BYTES_MAX).await;
        let answer = answer.map_err(|error| error.to_string())?;
        let Some(mut topic) = (self.announcement.topic_in)(&body, answer.url())
            .map_err(|error| format!("cannot read {url}\n  {error}"))?
        else {
            return Ok(None);
        };
        let mut admission = Admission::new(url, &self.allow_hosts, self.allow_downgrade);
        if let Err(refusal) = admission.check(&topic.url) {
            return Err(format!("the topic {}: {}", topic.url, refusal.message()));
        }
        // Streams need no hub.
        if topic.hubs.is_empty() && self.callback_base.is_some() {
            let asked = tokio::time::timeout(ASK_TIME, self.ask(&topic)).await;
            topic =
                asked.map_err(|_| format!("the topic {} does not answer in time", topic.url))??;
        }
        topic.hubs.sort_by_key(|hub| !is_https(hub));
        Ok(Some(topic))
    }

    /// Asks the topic itself. It may have moved, and may be known by another URL than the one it
    /// answers at.
    async fn ask(&self, topic: &Topic) -> Result<Topic, String> {
        let request = Request {
            authorization: self.authorization_for(&topic.url),
            ..Request::new(&topic.url)
        };
        let answer = self.client.send(&request).await.and_then(Response::require_success);
        let mut answer = answer.map_err(|error| error.to_string())?;
        let links = answer.values("link");
        let odd =
            |error| format!("the topic {} does not state how to subscribe: {error}", topic.url);
        if let Some(found) =
            in_headers(answer.url(), links.iter().map(String::as_str)).map_err(odd)?
        {
            return Ok(Topic { url: found.topic, hubs: found.hubs, asking: Asking::WebSub });
        }
        let mut body = Vec::new();
        // The part of the body after the limit is not read.
        while body.len() < MAX_BODY_LENGTH
            && let Ok(Some(piece)) = answer.chunk().await
        {
            body.extend_from_slice(&piece);
        }
        let found = in_body(answer.url(), answer.header("content-type").unwrap_or_default(), &body)
            .map_err(odd)?;
        Ok(found.map_or_else(
            || topic.clone(),
            |found| Topic { url: found.topic, hubs: found.hubs, asking: Asking::WebSub },
        ))
    }

    /// Whether only public addresses are allowed: the host is neither the host of the Source nor
    /// allowed by the user.
    pub(super) fn must_be_public(&self, url: &str) -> bool {
        let host = |url: &str| url::Url::parse(url).ok()?.host_str().map(str::to_ascii_lowercase);
        let Some(named) = host(url) else { return true };
        host(&self.announcement.url).as_ref() != Some(&named)
            && Admission::new(&self.announcement.url, &self.allow_hosts, true).check(url).is_err()
    }
}
