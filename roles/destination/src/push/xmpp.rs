//! Nodes of XMPP services [rs-0.1 §5.2.1]. What is pushed is a hint: what was missed while nothing
//! was connected is in the documents, which are read after each gap.

use super::{Ended, Subscriber};
use crate::options::{Push, SyncOptions, XmppOptions};
use crate::read::{Announcement, PushOffer};
use abreast_xmpp::{Account, Error, Event, Item, Node, Session};
use std::convert::Infallible;

/// Stands for the announcement of a Source, where the user names a node.
pub(super) fn announcement(options: &SyncOptions) -> Option<Announcement> {
    let node = options.xmpp.as_ref().and_then(|xmpp| xmpp.node.as_ref());
    let (url, offers) = (options.url.clone(), Vec::new());
    node.map(|_| Announcement { url, topic_in: |_, _| Ok(None), offers })
}

/// The node that the documents of the Source name.
fn offered(announcement: &Announcement) -> Option<Node> {
    announcement.offers.iter().find_map(|offer| match offer {
        PushOffer::Xmpp { service, node } => Node::new(service, node).ok(),
        PushOffer::Callback { .. } => None,
    })
}

impl Subscriber {
    /// The node to follow, and the account to do so with, where there are both.
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
            Ok(never) => match never {},
            Err(error) => {
                let help = error.help().map(|help| format!("\n  help: {help}")).unwrap_or_default();
                Ended::Broken(format!("{node}: {error}{help}"))
            }
        }
    }

    async fn read_node(
        &self,
        account: &Account,
        node: &Node,
        last_id: &mut String,
    ) -> Result<Infallible, Error> {
        let (session, mut events) = Session::connect(account, node.service()).await?;
        self.join(&session, node, last_id).await?;
        self.inbox.set_live(true);
        self.inbox.note("push.xmpp", &node.to_string(), "change sets are pushed over XMPP");
        loop {
            match events.next().await? {
                Event::Item(item) if item.node == node.name() => self.received(item, last_id),
                Event::Item(_) => {}
                // Which changes are missing is in the documents.
                _ => self.inbox.pull(),
            }
        }
    }

    /// Subscribes, and finds out whether anything was missed. Events come from the moment of being
    /// present: the newest item is asked for after that, so that nothing falls between.
    async fn join(
        &self,
        session: &Session,
        node: &Node,
        last_id: &mut String,
    ) -> Result<(), Error> {
        session.check_service(node.service()).await?;
        session.subscribe(node).await?;
        session.be_present().await?;
        let newest = session
            .items(node, 1)
            .await?
            .into_iter()
            .map(|item| item.id)
            .max_by_key(|id| number(id));
        let newest = newest.unwrap_or_default();
        if last_id.is_empty() || *last_id != newest {
            self.inbox.pull();
        }
        *last_id = newest;
        Ok(())
    }

    fn received(&self, item: Item, last_id: &mut String) {
        // One that comes again, or late, brings nothing new.
        if number(&item.id) != 0 && number(&item.id) <= number(last_id) {
            return;
        }
        match item.payload {
            Some(payload) => self.inbox.notify(payload.into_bytes().into()),
            None => self.inbox.pull(),
        }
        *last_id = item.id;
    }
}

/// Items of a Source like this one are named by positions of its log; others have no order.
fn number(id: &str) -> u64 {
    id.parse().unwrap_or(0)
}
