//! Other hubs, nodes of XMPP services and webhooks, to which notifications are submitted: which ones,
//! until when, and whether they accept them.

use crate::deliver::failing::FailingHub;
use crate::deliver::table::host_of;
use crate::deliver::webhooks::Webhooks;
use crate::hub::Hub;
use abreast_core::hub::{Ending, HubStore, NewTarget, Target, TargetId, TargetKind};
use abreast_core::{LogError, TopicId};
use std::collections::{HashMap, HashSet};

/// Targets read from the store at once.
const PAGE: usize = 1_000;

/// How another hub, or a node, gets the notifications of a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmissionKind {
    /// The hub receives each notification itself, as ResourceSync requires
    /// [rs-change-notification §4.2].
    Fat,
    /// The hub is notified that the topic changed, and fetches the topic.
    Form,
    /// The target is a node of an XMPP service, to which each notification is published
    /// [rs-0.1 §5.2.1].
    Node,
    /// The target is a webhook, which gets changes as JSON; only [`Hub::keep_webhooks`] adds one.
    Webhook,
}

impl SubmissionKind {
    const fn target(self) -> TargetKind {
        match self {
            Self::Fat => TargetKind::FatSubmission,
            Self::Form => TargetKind::FormSubmission,
            Self::Node => TargetKind::Node,
            Self::Webhook => TargetKind::Webhook,
        }
    }
}

/// Replaces the hubs, nodes and webhooks that are notified of topics by `wanted`. Submissions to all
/// others end. If a hub is notified in another form, the new submission continues at the offset of
/// the old one. Requires that no hub of this process uses the store; other nodes follow the change.
///
/// # Errors
/// When the store fails.
pub fn keep_submissions(
    store: &dyn HubStore,
    wanted: &[(String, SubmissionKind)],
) -> Result<(), LogError> {
    each_submission(store, |target| {
        let at_address = || wanted.iter().filter(|(address, _)| *address == target.address);
        if at_address().any(|(_, kind)| kind.target() == target.kind) {
            return Ok(());
        }
        // A webhook and a hub can have the same address.
        let is_form = |kind: TargetKind| {
            matches!(kind, TargetKind::FatSubmission | TargetKind::FormSubmission)
        };
        let other_form = at_address().map(|(_, kind)| kind.target()).find(|kind| is_form(*kind));
        if let Some(kind) = other_form.filter(|_| is_form(target.kind)) {
            store.put_target(NewTarget {
                cursor: Some(target.cursor),
                ..new(target.topic, kind, &target.address)
            })?;
        }
        tracing::info!(hub = shown(&target), "what is no longer configured is no longer notified");
        store.end_target(target.id, Ending::NotConfigured).map(drop)
    })
}

/// The address of a target in the log: of a webhook its host.
fn shown(target: &Target) -> String {
    let address = &target.address;
    if target.kind == TargetKind::Webhook { host_of(address) } else { address.clone() }
}

fn new(topic: TopicId, kind: TargetKind, address: &str) -> NewTarget {
    NewTarget {
        topic,
        kind,
        address: address.to_owned(),
        secret: None,
        lease_until: None,
        cursor: None,
    }
}

fn each_submission(
    store: &dyn HubStore,
    mut work: impl FnMut(Target) -> Result<(), LogError>,
) -> Result<(), LogError> {
    let mut after = TargetId(0);
    loop {
        let page = store.all_targets(after, PAGE)?;
        let Some(last) = page.last() else { return Ok(()) };
        after = last.id;
        for target in page.into_iter().filter(|target| target.kind != TargetKind::Subscription) {
            work(target)?;
        }
    }
}

impl Hub {
    /// Submits all later notifications of a topic to another hub or a node, also after a restart. A
    /// node is created, or checked, at once. Blocks.
    ///
    /// # Errors
    /// When the store fails.
    pub fn submit_to(
        &self,
        topic_url: &str,
        address: &str,
        kind: SubmissionKind,
    ) -> Result<TargetId, LogError> {
        let engine = &self.inner().engine;
        let topic = engine.open_topic(topic_url, false)?;
        let kind = kind.target();
        let target = match self.store().find_target(topic, address, kind)? {
            Some(target) => target,
            None => self.store().put_target(new(topic, kind, address))?,
        };
        let id = target.id;
        engine.put(target);
        #[cfg(feature = "xmpp")]
        if kind == TargetKind::Node {
            let engine = std::sync::Arc::clone(engine);
            let preparing = engine.prepare_node(id, address.to_owned(), topic_url.to_owned());
            self.inner().runtime.spawn(preparing);
        }
        Ok(id)
    }

    /// Ends submissions of topics that are not published any more: at once, or for topics in
    /// `last_words` when their last notification was accepted. Blocks.
    ///
    /// # Errors
    /// When the store fails.
    pub fn release_submissions(
        &self,
        published: &HashSet<String>,
        last_words: &HashSet<String>,
    ) -> Result<(), LogError> {
        each_submission(&**self.store(), |target| {
            let url = self.store().topic(target.topic)?.map(|topic| topic.url).unwrap_or_default();
            if published.contains(&url) {
                return Ok(());
            }
            if last_words.contains(&url) {
                self.inner().engine.end_when_done(target.id);
                return Ok(());
            }
            self.end_submission(target.id)
        })
    }

    /// Ends publishing to all nodes except these, each for its topic, because a node may belong to
    /// another set now. Blocks.
    ///
    /// # Errors
    /// When the store fails.
    pub fn keep_nodes(&self, nodes: &HashMap<String, String>) -> Result<(), LogError> {
        each_submission(&**self.store(), |target| {
            let url = self.store().topic(target.topic)?.map(|topic| topic.url).unwrap_or_default();
            if target.kind != TargetKind::Node || nodes.get(&url) == Some(&target.address) {
                return Ok(());
            }
            self.end_submission(target.id)
        })
    }

    /// Replaces the webhooks: each address gets the later changes of its topic, signed with each of its
    /// keys, also after a restart. All other webhooks end. Keys are read when they are needed next.
    /// Blocks.
    ///
    /// # Errors
    /// When the store fails.
    pub fn keep_webhooks(&self, webhooks: Webhooks) -> Result<(), LogError> {
        let mut new: HashSet<_> = webhooks.keys().cloned().collect();
        self.inner().engine.webhooks.replace(webhooks);
        each_submission(&**self.store(), |target| {
            if target.kind != TargetKind::Webhook {
                return Ok(());
            }
            let url = self.store().topic(target.topic)?.map(|topic| topic.url).unwrap_or_default();
            if new.remove(&(url, target.address)) {
                return Ok(());
            }
            self.inner().engine.webhooks.forget(target.id);
            self.end_submission(target.id)
        })?;
        for (topic, address) in new {
            self.submit_to(&topic, &address, SubmissionKind::Webhook)?;
        }
        Ok(())
    }

    fn end_submission(&self, id: TargetId) -> Result<(), LogError> {
        self.store().end_target(id, Ending::NotConfigured)?;
        self.inner().engine.forget(id);
        Ok(())
    }

    /// Other hubs, nodes and webhooks that do not accept notifications at present. Reads memory only.
    pub fn failing_hubs(&self) -> Vec<FailingHub> {
        self.inner().engine.failing_hubs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_attempts_are_counted_in_words() {
        let notice = |attempts| {
            let hub = FailingHub {
                target: TargetId(7),
                topic: "http://h/topic".to_owned(),
                hub: "http://other/hub".to_owned(),
                attempts,
                since: None,
                status: None,
                kind: TargetKind::FatSubmission,
            };
            hub.to_string()
        };
        assert!(notice(1).contains("http://h/topic: 1 failed attempt; "), "{}", notice(1));
        assert!(notice(2).contains("http://h/topic: 2 failed attempts; "), "{}", notice(2));
    }
}
