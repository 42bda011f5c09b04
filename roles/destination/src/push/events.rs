//! Event streams, for copies without a callback [html-events §9.2].

use super::{Ended, Subscriber};
use crate::push::limits::NOTIFICATION_MAX;
use crate::request::admit::same_origin;
use abreast_net::{Request, Response, StatusCode};
use abreast_websub::EventReader;

impl Subscriber {
    /// Reads the event stream of the topic until the stream ends. Continues after the event
    /// `last_id`.
    pub(super) async fn stream(&self, topic: &str, last_id: &mut String) -> Ended {
        let request = Request {
            accept: Some("text/event-stream"),
            last_event_id: (!last_id.is_empty()).then_some(&**last_id),
            authorization: self.authorization_for(topic),
            no_cache: true,
            ..Request::new(topic)
        };
        let mut response =
            match self.streams.send(&request).await.and_then(Response::require_success) {
                Ok(response) => response,
                Err(error) if matches!(error.status(), Some(400 | 404 | 406)) => {
                    // The number, or the topic, means nothing any more.
                    last_id.clear();
                    return Ended::Broken(error.to_string());
                }
                Err(error) => return Ended::Broken(error.to_string()),
            };
        let kind = response.header("content-type").unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if response.status() != StatusCode::OK || !kind.eq_ignore_ascii_case("text/event-stream") {
            return Ended::NotOffered;
        }
        // Events from the host of the lists are trusted like the lists. Other events only show that
        // something has changed.
        let is_believed = same_origin(response.url(), &self.announcement.url);
        // Changes before the first event are in the lists.
        self.inbox.set_live(true);
        self.inbox.pull();
        self.inbox.note("push.events", topic, "changes are announced by an event stream");
        let mut reader = EventReader::with_limit(NOTIFICATION_MAX);
        loop {
            let piece = match response.chunk().await {
                Ok(Some(piece)) => piece,
                Ok(None) => {
                    return Ended::Broken(format!(
                        "the event stream {topic} has ended; it is requested again"
                    ));
                }
                Err(error) => return Ended::Broken(error.to_string()),
            };
            let fed = reader.feed(&piece);
            while let Some(event) = reader.next_event() {
                if is_believed && !event.data.is_empty() {
                    self.inbox.notify(event.data.into());
                } else {
                    self.inbox.hint();
                }
            }
            reader.last_id().clone_into(last_id);
            if let Err(error) = fed {
                // Continuing after this event would deliver the same event again.
                last_id.clear();
                return Ended::Broken(format!("cannot read the event stream {topic}: {error}"));
            }
        }
    }
}
