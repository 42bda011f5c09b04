//! A node of an XMPP service: its newest items, then new ones as they come.

use super::args::{MAX_RETRY, RETRY, SubscribeArgs};
use super::lines;
use crate::program::errors::UsageError;
use abreast_xmpp::{Account, ErrorKind, Event, Item, Node, Session};
use anyhow::{Result, bail};
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;

/// Most items that are read after each connection; older ones are left out.
const CATCH_UP: usize = 1_000;
/// Items that are asked for where a service does not list them.
const NEWEST: u32 = 10;
/// Most items that are remembered, so that none is printed again.
const REMEMBERED: usize = 10_000;

/// Reads a node.
pub(super) struct Follower {
    account: Account,
    node: Node,
    /// Items still wanted.
    left: u64,
    /// Print the node's existing items after this number; `None` prints only new items.
    from: Option<u64>,
    /// Whether the list of existing items was read.
    has_begun: bool,
    known: Known,
    /// Connections in a row that failed.
    failures: u32,
    was_connected: bool,
}

/// Items that were printed or left out. Item names need not ascend: other programs may publish to
/// the node, and a restored Source reuses numbers.
#[derive(Debug, Default)]
struct Known {
    items: HashMap<String, Fate>,
    /// Names of the items, the oldest first.
    names: VecDeque<String>,
}

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// The item was printed with this fingerprint of its payload. An item with another payload is new.
    Printed(u64),
    LeftOut,
}

impl Known {
    /// Whether an item is a new one; not so from now on.
    fn is_new(&mut self, item: &Item) -> bool {
        let mut hasher = DefaultHasher::new();
        item.payload.hash(&mut hasher);
        let printed = Fate::Printed(hasher.finish());
        self.put(&item.id, printed) != Some(printed)
    }

    fn put(&mut self, id: &str, fate: Fate) -> Option<Fate> {
        let before = self.items.insert(id.to_owned(), fate);
        if before.is_none() {
            self.names.push_back(id.to_owned());
            if self.names.len() > REMEMBERED
                && let Some(oldest) = self.names.pop_front()
            {
                self.items.remove(&oldest);
            }
        }
        before
    }

    /// The listed items to read, the lowest number first, and the new items that are left out. The items
    /// to read are new items and known items, which may have been replaced, at most [`CATCH_UP`] each.
    fn due(&mut self, mut ids: Vec<String>) -> (Vec<String>, Vec<String>) {
        ids.sort_by_key(|id| number(id));
        ids.retain(|id| self.items.get(id) != Some(&Fate::LeftOut));
        let (mut known, mut new): (Vec<_>, Vec<_>) =
            ids.into_iter().partition(|id| self.items.contains_key(id));
        let left_out: Vec<_> = new.drain(..new.len().saturating_sub(CATCH_UP)).collect();
        for id in &left_out {
            self.put(id, Fate::LeftOut);
        }
        known.drain(..known.len().saturating_sub(CATCH_UP));
        known.append(&mut new);
        known.sort_by_key(|id| number(id));
        (known, left_out)
    }
}

impl Follower {
    pub(super) fn new(args: &SubscribeArgs) -> Result<Self> {
        let node: Node = args.url.parse().map_err(|error| crate::config::xmpp::usage(&error))?;
        let Some(account) = args.xmpp.account(args.access.ca_file.as_deref())? else {
            bail!(UsageError(format!(
                "`{node}` is read with an account of XMPP (help: --xmpp-jid me@example.org --xmpp-password-file FILE)"
            )));
        };
        if args.set.is_some() || args.framework {
            bail!(UsageError(
                "a node has no sets and one topic (help: leave `--set` and `--framework` out)"
                    .to_owned()
            ));
        }
        Ok(Self {
            account,
            node,
            left: args.limit.unwrap_or(u64::MAX),
            from: args.from,
            has_begun: false,
            known: Known::default(),
            failures: 0,
            was_connected: false,
        })
    }

    /// Prints items; after a connection is lost, connects again.
    pub(super) async fn all(mut self) -> Result<u8> {
        loop {
            let error = match self.one().await {
                Ok(()) => return Ok(0),
                Err(error) => error,
            };
            // An error before the first connection is likely permanent, such as a wrong password.
            if !self.was_connected || !error.is_transient() {
                return Err(error.into());
            }
            tracing::warn!("{}; connecting again", error.message());
            let pause = RETRY.saturating_mul(1 << self.failures.min(10)).min(MAX_RETRY);
            tokio::time::sleep(pause).await;
            self.failures += 1;
        }
    }

    /// One connection.
    async fn one(&mut self) -> Result<(), abreast_xmpp::Error> {
        let (session, mut events) = Session::connect(&self.account, self.node.service()).await?;
        session.check_service(self.node.service()).await?;
        session.subscribe(&self.node).await?;
        session.be_present().await?;
        self.was_connected = true;
        if !self.catch_up(&session).await? {
            return Ok(());
        }
        self.failures = 0;
        loop {
            let goes_on = match events.next().await? {
                Event::Item(item) if item.node == self.node.name() => {
                    !self.known.is_new(&item) || self.print(&item)
                }
                // Without a subscription no items arrive. Fails if the node was deleted.
                Event::Unsubscribed { node } if node == self.node.name() => {
                    session.subscribe(&self.node).await?;
                    self.catch_up(&session).await?
                }
                Event::Missed => self.catch_up(&session).await?,
                _ => true,
            };
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// Prints the items that were published while disconnected. Items are requested one by one, because
    /// the stanza with all items may be too large. Returns `false` if no more items are wanted.
    async fn catch_up(&mut self, session: &Session) -> Result<bool, abreast_xmpp::Error> {
        let ids = match session.item_ids(&self.node).await {
            Err(error) if matches!(error.kind(), ErrorKind::Refused | ErrorKind::Forbidden) => {
                tracing::warn!("{}; only the newest {NEWEST} items are read", error.message());
                let newest = session.items(&self.node, NEWEST).await?;
                if newest.is_none() {
                    tracing::warn!("the service hands out no items; only new ones are printed");
                }
                newest.into_iter().flatten().map(|item| item.id).collect()
            }
            ids => ids?,
        };
        let (due, left_out) = self.known.due(ids);
        let left_out = left_out.iter().filter(|id| self.is_wanted(id)).count();
        if left_out > 0 {
            tracing::warn!("only the newest {CATCH_UP} items are read; left out: {left_out}");
        }
        for id in due {
            let Some(item) = session.item(&self.node, &id).await? else { continue };
            if self.known.is_new(&item) && self.is_wanted(&item.id) && !self.print(&item) {
                return Ok(false);
            }
        }
        self.has_begun = true;
        Ok(true)
    }

    /// Whether an item that the node has is wanted, if it is new.
    fn is_wanted(&self, id: &str) -> bool {
        let is_after = |from| number(id).is_none_or(|number| number > from);
        self.has_begun || self.from.is_some_and(is_after)
    }

    /// Prints an item. `false` when no more are wanted.
    fn print(&mut self, item: &Item) -> bool {
        let line = lines::item(&self.node.to_string(), &item.id, item.payload.as_deref());
        self.left -= 1;
        let mut out = crate::program::terminal::output();
        writeln!(out, "{line}").and_then(|()| out.flush()).is_ok() && self.left > 0
    }
}

/// The number of an item, which is a position in the Source's log; `None` for items that other programs
/// published, which have no order.
fn number(id: &str) -> Option<u64> {
    id.parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str, payload: &str) -> Item {
        Item::new("n", id, Some(payload.to_owned()))
    }

    #[test]
    fn no_item_is_printed_twice_or_lost_whatever_its_number() {
        let mut known = Known::default();
        for (id, payload, expected) in [
            ("300", "a", true),
            ("x", "a", true),
            ("500", "a", true),
            ("7", "a", true),
            // The same item again: after a connection is lost, or the hub was killed before it noted
            // that it had published them.
            ("500", "a", false),
            ("300", "a", false),
            ("x", "a", false),
            // Replaced, as by a Source that was restored.
            ("x", "b", true),
            ("300", "of another log", true),
            ("18446744073709551615", "a", true),
            ("18446744073709551615", "a", false),
        ] {
            assert_eq!(known.is_new(&item(id, payload)), expected, "{id} {payload}");
        }
    }

    #[test]
    fn few_items_are_remembered() {
        let mut known = Known::default();
        for number in 0..2 * REMEMBERED {
            assert!(known.is_new(&item(&format!("n{number}"), "")));
        }
        assert_eq!((known.names.len(), known.items.len()), (REMEMBERED, REMEMBERED));
    }

    #[test]
    fn listed_items_are_read_by_number_also_lower_and_known_ones() {
        let mut known = Known::default();
        assert!(known.is_new(&item("9", "")) && known.is_new(&item("500", "")));
        let ids = ["10", "9", "x", "500", "8", "11"].map(str::to_owned).to_vec();
        assert_eq!(
            known.due(ids),
            (["x", "8", "9", "10", "11", "500"].map(str::to_owned).to_vec(), vec![])
        );
    }

    #[test]
    fn items_that_were_left_out_are_not_read_later() {
        let mut known = Known::default();
        let ids: Vec<_> = (1..=CATCH_UP + 3).map(|number| number.to_string()).collect();
        let (due, left_out) = known.due(ids.clone());
        assert_eq!((due.len(), left_out), (CATCH_UP, ["1", "2", "3"].map(str::to_owned).to_vec()));
        for id in &due {
            assert!(known.is_new(&item(id, "")));
        }
        let (due, left_out) = known.due(ids);
        assert_eq!((due.len(), left_out.len()), (CATCH_UP, 0));
        assert!(due.iter().all(|id| !known.is_new(&item(id, ""))));
    }
}
