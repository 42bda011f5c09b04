//! Publishing: permissions, and acceptance of notifications. A notification is accepted once it is
//! durable.

use crate::answer::subscribe::Proof;
use crate::deliver::options::Redirect;
use crate::hub::Inner;
use crate::message::body_bytes::shared;
use crate::message::client::{Client, Publisher};
use crate::message::request::{HubAnswer, HubRequest};
use crate::message::text;
use crate::tasks::fetch::ChangeReporter;
use abreast_core::{LogError, NewNotification, Notification, Offset, Payload, TopicId};
use abreast_websub::{PublishedLinks, Request, is_form};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use tokio::sync::oneshot;

impl Inner {
    /// Handles a POST at the hub: a form, or a notification itself [rs-change-notification §4.2].
    pub(crate) async fn handle(self: &Arc<Self>, request: HubRequest) -> HubAnswer {
        if request.body.len() > self.options.max_body {
            self.counters.refused.fetch_add(1, Relaxed);
            let most = self.options.max_body;
            return HubAnswer::new(
                413,
                format!("the body is larger than the {most} bytes this hub takes\n"),
            );
        }
        if request.content_type.trim().is_empty() {
            self.counters.refused.fetch_add(1, Relaxed);
            let text = "`Content-Type` is missing\n  help: forms are `application/x-www-form-urlencoded`, \
                        notifications have a content type\n";
            return HubAnswer::new(415, text);
        }
        if !is_any_form(&request.content_type) {
            return self.notification(request).await;
        }
        if !is_form(&request.content_type) {
            return HubAnswer::new(415, "forms must be in UTF-8\n");
        }
        match Request::parse(&request.body) {
            Ok(Request::Subscribe(wish)) => match &self.options.redirect {
                Some(redirect) => elsewhere(redirect),
                None => self.subscribe(wish, request.client, Proof::Challenge).await,
            },
            Ok(Request::Unsubscribe(wish)) => self.unsubscribe(wish, request.client).await,
            Ok(Request::Publish(said)) => self.ping(said.topics, &request).await,
            Err(error) => text::no_request(&error),
        }
    }

    /// Handles a notification, whose topic is in its headers.
    async fn notification(self: &Arc<Self>, request: HubRequest) -> HubAnswer {
        let refuse = |status, text: String| {
            self.counters.refused.fetch_add(1, Relaxed);
            HubAnswer::new(status, text)
        };
        let links = match PublishedLinks::read(request.links.iter().map(String::as_str)) {
            Ok(links) => links,
            Err(error) => {
                let help = "send `Link: <topic>; rel=\"self\", <hub>; rel=\"hub\"`";
                return refuse(
                    400,
                    format!("the notification names no topic: {error}\n  help: {help}\n"),
                );
            }
        };
        if let Err(answer) = self.may_publish(&links, &request).await {
            self.counters.refused.fetch_add(1, Relaxed);
            return answer;
        }
        let topic = match self.topic(&links.topic).await {
            Ok(topic) => topic,
            Err(error) => return text::not_stored(&error),
        };
        let notification = NewNotification {
            media_type: request.content_type,
            links: links.others,
            payload: Payload::Bytes(shared(&request.body)),
        };
        match self.publish(topic, &links.topic, notification).await {
            // The status must be 200 [rs-change-notification §4.2].
            Ok(offset) => HubAnswer::new(200, format!("accepted as number {}\n", offset.0))
                .with("Abreast-Offset", offset.0.to_string()),
            Err(answer) => answer,
        }
    }

    /// Checks the permission to publish in a topic. Parts of this process and clients with a token
    /// have it. For served topics, clients have it that act for the topic's host: the topic has a
    /// link to this hub, and the request comes from an address of the topic's host, or the topic
    /// itself has the same bytes.
    async fn may_publish(
        self: &Arc<Self>,
        links: &PublishedLinks,
        request: &HubRequest,
    ) -> Result<(), HubAnswer> {
        let url = &links.topic;
        if request.client.publisher() == Publisher::Local {
            return Ok(());
        }
        if self.engine.topic(url).is_some_and(|topic| self.engine.is_own(topic)) {
            return Err(HubAnswer::new(403, "that topic is published by this server itself\n"));
        }
        if request.client.publisher() == Publisher::Token {
            if self.options.allow_topics.is_empty() || self.options.allows(url) {
                return Ok(());
            }
            return Err(HubAnswer::new(403, "this hub does not take that topic\n"));
        }
        if !self.options.open && !self.options.allows(url) {
            let text = "publishing needs a token\n  help: send `Authorization: Bearer` with one, or let the hub take the topic\n";
            return Err(HubAnswer::new(401, text).with("WWW-Authenticate", "Bearer"));
        }
        if !links.hubs.is_empty() && !links.hubs.iter().any(|hub| self.options.is_own(hub)) {
            let text =
                format!("the notification names another hub; this one is {}\n", self.options.url);
            return Err(HubAnswer::new(400, text));
        }
        if !self.fetcher.knows(url, request.client) {
            self.may_make_us_ask(request.client)?;
        }
        let (fetcher, topic) = (Arc::clone(&self.fetcher), url.clone());
        let (client, body) = (request.client, request.body.clone());
        let checked =
            self.runtime.spawn(async move { fetcher.speaks_for(&topic, client, &body).await });
        match checked.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => Err(HubAnswer::new(403, format!("{why}\n"))),
            Err(_) => Err(HubAnswer::later(503, 5, "the hub stops\n")),
        }
    }

    /// Limits the requests that anonymous clients can make the hub send.
    fn may_make_us_ask(&self, client: Client) -> Result<(), HubAnswer> {
        let allowed = self.lock_rates().clients.take(client.group(), Instant::now());
        allowed.map_err(|wait| {
            HubAnswer::later(429, wait.as_secs() + 1, "too many requests; try again later\n")
        })
    }

    /// Handles reports of changed topics from a publisher. The topics are fetched from their URLs,
    /// so a report cannot forge content.
    async fn ping(self: &Arc<Self>, topics: Vec<String>, request: &HubRequest) -> HubAnswer {
        let publisher = request.client.publisher();
        if publisher == Publisher::Anonymous
            && let Err(answer) = self.may_make_us_ask(request.client)
        {
            return answer;
        }
        for topic in &topics {
            let known = self.engine.topic(topic);
            if publisher == Publisher::Anonymous
                && known.is_none()
                && !self.options.open
                && !self.options.allows(topic)
            {
                self.counters.refused.fetch_add(1, Relaxed);
                return HubAnswer::new(403, format!("this hub does not take the topic {topic}\n"));
            }
        }
        let reporter = match publisher {
            Publisher::Local | Publisher::Token => ChangeReporter::Known,
            Publisher::Anonymous => ChangeReporter::Stranger(request.client.group()),
        };
        for topic in topics {
            // Notifications of this server are in the log before clients can request them.
            if self.engine.topic(&topic).is_some_and(|topic| self.engine.is_own(topic)) {
                continue;
            }
            if let Err(answer) = self.remember_to_fetch(topic, reporter).await {
                return answer;
            }
        }
        HubAnswer::new(202, "accepted; the topic will be fetched\n")
    }

    async fn remember_to_fetch(
        self: &Arc<Self>,
        url: String,
        reporter: ChangeReporter,
    ) -> Result<(), HubAnswer> {
        self.fetcher
            .has_room(&url, reporter)
            .map_err(|(status, reason)| HubAnswer::later(status, 30, reason))?;
        if !self.engine.held.has_first() {
            self.log_has_room().await?;
        }
        let notification = NewNotification {
            media_type: "text/uri-list".to_owned(),
            links: String::new(),
            payload: Payload::Bytes(Arc::from(url.as_bytes())),
        };
        let offset = self.record(self.fetcher.topic, notification, |_| ()).await?;
        self.fetcher.add(&url, offset, reporter);
        Ok(())
    }

    /// Checks whether the node that fetches topics can be given another one.
    async fn log_has_room(&self) -> Result<(), HubAnswer> {
        let fetcher = Arc::clone(&self.fetcher);
        match tokio::task::spawn_blocking(move || fetcher.log_has_room()).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(HubAnswer::later(503, 30, "too many topics wait to be fetched\n")),
            Ok(Err(error)) => Err(text::not_stored(&error)),
            Err(_) => Err(HubAnswer::later(503, 5, "the hub stops\n")),
        }
    }

    async fn topic(self: &Arc<Self>, url: &str) -> Result<TopicId, LogError> {
        if let Some(topic) = self.engine.topic(url) {
            return Ok(topic);
        }
        let (engine, url) = (Arc::clone(&self.engine), url.to_owned());
        let opened = tokio::task::spawn_blocking(move || engine.open_topic(&url, false)).await;
        opened.map_err(|_| LogError::new(abreast_core::ErrorKind::Io, "the hub stops"))?
    }

    /// Records a notification and wakes its targets; ready when it is durable.
    pub(crate) async fn publish(
        self: &Arc<Self>,
        topic: TopicId,
        url: &str,
        notification: NewNotification,
    ) -> Result<Offset, HubAnswer> {
        let (inner, url, content) = (Arc::clone(self), url.to_owned(), notification.clone());
        let published = move |offset| {
            let time = inner.engine.now();
            inner.engine.cache.remember(topic, &url, &Notification { offset, time, content });
            inner.engine.published(topic, Some(offset));
            inner.counters.accepted.fetch_add(1, Relaxed);
        };
        self.record(topic, notification, published).await
    }

    async fn record(
        &self,
        topic: TopicId,
        notification: NewNotification,
        then: impl FnOnce(Offset) + Send + 'static,
    ) -> Result<Offset, HubAnswer> {
        if self.full.load(Relaxed) {
            return Err(HubAnswer::later(503, 600, "the hub's store is full\n"));
        }
        let bytes = match &notification.payload {
            Payload::Bytes(bytes) => bytes.len(),
            Payload::Changes { .. } => 0,
        };
        let _room = self.room(bytes)?;
        let (sender, receiver) = oneshot::channel();
        self.engine.store.publish_then(
            topic,
            notification,
            Box::new(move |result| {
                if let Ok(offset) = &result {
                    then(*offset);
                }
                drop(sender.send(result));
            }),
        );
        match receiver.await {
            Ok(Ok(offset)) => Ok(offset),
            Ok(Err(error)) => Err(text::not_stored(&error)),
            Err(_) => Err(HubAnswer::later(503, 5, "the hub stops\n")),
        }
    }
}

/// The response that sends subscribers to another hub [websub §5.1.2].
fn elsewhere(redirect: &Redirect) -> HubAnswer {
    let status = if redirect.permanent { 308 } else { 307 };
    HubAnswer::new(status, format!("ask the hub {}\n", redirect.url))
        .with("Location", redirect.url.as_str())
}

fn is_any_form(content_type: &str) -> bool {
    let kind = content_type.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/x-www-form-urlencoded")
}
