//! Nodes of XMPP services [rs-0.1 §5.2.1]. Items are hints: changes that were published while no
//! connection existed are in the documents, which are read after each gap.

use super::{Ended, Subscriber};
use crate::push::announcement::{Announcement, PushOffer};
use crate::report::options::{Push, XmppOptions};
use abreast_xmpp::{Account, Error, ErrorKind, Event, Item, Node, Session};

/// The node in the documents of the Source.
fn offered(announcement: &Announcement) -> Option<Node> {
    announcement.offers.iter().find_map(|offer| match offer {
        PushOffer::Xmpp { service, node } => Node::new(service, node).ok(),
        PushOffer::Callback { .. } => None,
    })
}

impl Subscriber {
    /// The node and the account for notifications, if both exist.
    pub(super) fn node(&self) -> Option<(&Account, Node)> {
        let XmppOptions { account, node } =
            self.xmpp.as_ref().filter(|_| self.way == Push::Auto)?;
        Some((account, node.clone().or_else(|| offered(&self.announcement))?))
    }

    /// Follows a node until that ends. `last_id` is the last item that was received.
    pub(super) async fn follow_node(
        &self,
        account: &Account,
        node: &Node,
        last_id: &mut String,
    ) -> Ended {
        match self.read_node(account, node, last_id).await {
            Ok(()) => Ended::Broken(format!("{node}: the subscription was ended")),
            Err(error) if error.kind() == ErrorKind::Login => Ended::Refused(error.to_string()),
            Err(error) => Ended::Broken(error.to_string()),
        }
    }

    async fn read_node(
        &self,
        account: &Account,
        node: &Node,
        last_id: &mut String,
    ) -> Result<(), Error> {
        let (session, mut events) = Session::connect(account, node.service()).await?;
        self.join(&session, node, last_id).await?;
        self.inbox.set_live(true);
        self.inbox.note("push.xmpp", &node.to_string(), "change sets are pushed over XMPP");
        loop {
            match events.next().await? {
                Event::Item(item) if item.node == node.name() => self.received(item, last_id),
                Event::Unsubscribed { node: of } if of == node.name() => {
                    self.inbox.pull();
                    return Ok(());
                }
                Event::Emptied { node: of } if of == node.name() => self.inbox.pull(),
                Event::Missed => self.inbox.pull(),
                // An event of another node, or a retraction: each new item retracts the oldest one,
                // whose changes are still in the documents.
                _ => {}
            }
        }
    }

    /// Subscribes to the node, and finds out whether items were missed. Events arrive from the
    /// moment of presence; the newest item is requested after that moment, so that no item is
    /// missed.
    async fn join(
        &self,
        session: &Session,
        node: &Node,
        last_id: &mut String,
    ) -> Result<(), Error> {
        session.check_service(node.service()).await?;
        session.subscribe(node).await?;
        session.be_present().await?;
        // If the service does not deliver the item, changes may have been missed.
        let newest = session.items(node, 1).await?.unwrap_or_default();
        let newest = newest.into_iter().map(|item| item.id).max_by_key(|id| number(id));
        let newest = newest.unwrap_or_default();
        if last_id.is_empty() || *last_id != newest {
            self.inbox.pull();
        }
        *last_id = newest;
        Ok(())
    }

    fn received(&self, item: Item, last_id: &mut String) {
        tracing::debug!(node = item.node, id = item.id, "an item was pushed over XMPP");
        match taken(last_id, &item.id, item.payload.as_deref()) {
            Taken::Nothing => return,
            Taken::Asked => self.inbox.hint(),
            Taken::Applied => {
                let payload = item.payload.unwrap_or_default();
                self.inbox.notify(payload.into_bytes().into());
            }
        }
        *last_id = item.id;
    }
}

/// The action that an item requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Taken {
    Nothing,
    /// The documents are read.
    Asked,
    /// The changes in the item are applied.
    Applied,
}

/// The action that an item requires, after the item `last_id`. Others than the Source may be able
/// to publish to the node. So new and updated resources are fetched from the Source, and deletions
/// are applied only from the documents.
fn taken(last_id: &str, id: &str, payload: Option<&str>) -> Taken {
    match payload {
        // A repeated item contains nothing new.
        _ if number(id) != 0 && id == last_id => Taken::Nothing,
        // The item is late, or the Source has restarted its numbers.
        _ if number(id) != 0 && number(id) < number(last_id) => Taken::Asked,
        Some(payload) if !["expires", "deleted"].iter().any(|sign| payload.contains(sign)) => {
            Taken::Applied
        }
        _ => Taken::Asked,
    }
}

/// The position of an item in the log of the Source, if the Source is this program; items of other
/// Sources are not ordered.
fn number(id: &str) -> u64 {
    id.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_that_delete_or_go_back_are_asked_for() {
        let updated = Some("<url><lastmod>2026-01-01T00:00:00Z</lastmod></url>");
        let deleted = Some("<url><sm:expires>2026-01-01T00:00:00Z</sm:expires></url>");
        let odd = Some("<url><lastmod rs:type='deleted'>2026-01-01T00:00:00Z</lastmod></url>");
        for (last, id, payload, expected) in [
            ("7", "8", odd, Taken::Asked),
            ("", "7", updated, Taken::Applied),
            ("7", "8", updated, Taken::Applied),
            ("7", "x", updated, Taken::Applied),
            ("7", "7", updated, Taken::Nothing),
            ("7", "8", deleted, Taken::Asked),
            ("7", "8", None, Taken::Asked),
            ("7", "3", updated, Taken::Asked),
        ] {
            assert_eq!(taken(last, id, payload), expected, "{last} {id} {payload:?}");
        }
    }
}
