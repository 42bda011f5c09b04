//! A node of an XMPP service: its newest items, then new ones as they come.

use super::{MAX_RETRY, RETRY, SubscribeArgs, lines};
use crate::config::UsageError;
use abreast_xmpp::{Account, ErrorKind, Event, Item, Node, Session};
use anyhow::{Result, bail};
use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;

/// Most items that are read after each connection; older ones are left out.
const CATCH_UP: usize = 1_000;
/// Items that are asked for where a service does not list them.
const NEWEST: u32 = 10;
/// Most items that are remembered, so that none is printed again.
const REMEMBERED: usize = 1_000;

/// Reads a node.
pub(super) struct Follower {
    account: Account,
    node: Node,
    /// Items still wanted.
    left: u64,
    printed: Printed,
    /// Connections in a row that failed.
    failures: u32,
    was_connected: bool,
}

/// What was printed.
#[derive(Debug, Default)]
struct Printed {
    /// The last item with a number; `None` before the first connection of one that wants only new
    /// items.
    last: Option<u64>,
    /// The last items, with fingerprints of their payloads: where an item is replaced, it is another
    /// one.
    names: VecDeque<(String, u64)>,
    /// The numbers of items that were listed last: their events may still come.
    listed: HashSet<u64>,
}

impl Printed {
    /// Whether an item is to be printed; `false` for the same one from now on.
    fn is_new(&mut self, item: &Item) -> bool {
        let number = number(&item.id);
        let is_known = match number {
            Some(number) => self.last.is_some_and(|last| number <= last),
            None => self.names.contains(&name_of(item)),
        };
        if is_known {
            return false;
        }
        self.last = number.or(self.last);
        if self.names.len() >= REMEMBERED {
            self.names.pop_front();
        }
        self.names.push_back(name_of(item));
        true
    }

    /// An item that comes with a lower number: the Source counts from the beginning again, unless it
    /// publishes again what it was not sure to have published.
    fn note_return(&mut self, item: &Item) {
        let (Some(number), Some(last)) = (number(&item.id), self.last) else { return };
        if number < last && !self.listed.contains(&number) && !self.names.contains(&name_of(item)) {
            tracing::warn!("item `{number}` came after `{last}`; continuing from there");
            self.last = Some(0);
        }
    }

    /// The listed items that may be new, the lowest number first.
    fn missing(&mut self, mut ids: Vec<String>) -> Vec<String> {
        ids.sort_by_key(|id| number(id));
        self.listed = ids.iter().filter_map(|id| number(id)).collect();
        let last = self.last.unwrap_or(0);
        ids.retain(|id| number(id).is_none_or(|number| number > last));
        ids
    }
}

impl Follower {
    pub(super) fn new(args: &SubscribeArgs) -> Result<Self> {
        let node: Node = args.url.parse().map_err(|error| crate::xmpp::usage(&error))?;
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
            printed: Printed { last: args.from, ..Printed::default() },
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
            // What was wrong from the beginning does not get better by itself.
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
                    self.printed.note_return(&item);
                    !self.printed.is_new(&item) || self.print(&item)
                }
                // Without it nothing would come any more; where the node is gone, this fails.
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

    /// Prints the items that came while nothing was connected, one by one: all of them may be larger
    /// than a stanza. `false` when no more are wanted.
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
        let begins = self.printed.last.is_none();
        let mut missing = self.printed.missing(ids);
        if begins {
            // Only what comes from now on is wanted. Items without a number are read to be known.
            self.printed.last = Some(self.printed.listed.iter().copied().max().unwrap_or(0));
            missing.retain(|id| number(id).is_none());
        }
        let left_out = missing.len().saturating_sub(CATCH_UP);
        if left_out > 0 {
            tracing::warn!("{left_out} items are left out: only the newest {CATCH_UP} are read");
        }
        for id in missing.drain(..).skip(left_out) {
            let Some(item) = session.item(&self.node, &id).await? else { continue };
            if self.printed.is_new(&item) && !begins && !self.print(&item) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Prints an item. `false` when no more are wanted.
    fn print(&mut self, item: &Item) -> bool {
        let line = lines::item(&self.node.to_string(), &item.id, item.payload.as_deref());
        self.left -= 1;
        let mut out = crate::terminal::output();
        writeln!(out, "{line}").and_then(|()| out.flush()).is_ok() && self.left > 0
    }
}

/// Items of a Source like ours are named by positions of its log; others have no order.
fn number(id: &str) -> Option<u64> {
    id.parse().ok().filter(|number| *number > 0)
}

/// An item among others: its name, and a fingerprint of its payload.
fn name_of(item: &Item) -> (String, u64) {
    let mut hasher = DefaultHasher::new();
    item.payload.hash(&mut hasher);
    (item.id.clone(), hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str, payload: &str) -> Item {
        Item::new("n", id, Some(payload.to_owned()))
    }

    #[test]
    fn no_item_is_printed_twice() {
        let mut printed = Printed { last: Some(9), ..Printed::default() };
        for (id, payload, expected) in [
            ("8", "a", false),
            ("9", "a", false),
            ("10", "a", true),
            ("10", "a", false),
            ("x", "a", true),
            ("y", "a", true),
            // The same after a connection is lost.
            ("x", "a", false),
            ("x", "b", true),
            ("11", "a", true),
            ("10", "a", false),
        ] {
            assert_eq!(printed.is_new(&item(id, payload)), expected, "{id} {payload}");
        }
    }

    #[test]
    fn few_names_are_remembered() {
        let mut printed = Printed::default();
        for number in 0..2 * REMEMBERED {
            assert!(printed.is_new(&item(&format!("n{number}"), "")));
        }
        assert_eq!(printed.names.len(), REMEMBERED);
    }

    #[test]
    fn listed_items_are_read_by_their_numbers() {
        let mut printed = Printed { last: Some(9), ..Printed::default() };
        let ids = ["10", "9", "x", "100", "8", "11"].map(str::to_owned).to_vec();
        assert_eq!(printed.missing(ids), ["x", "10", "11", "100"]);
        // One that was listed and comes late is no sign of another log.
        assert!(printed.is_new(&item("100", "")));
        printed.note_return(&item("11", ""));
        assert_eq!(printed.last, Some(100));
        printed.note_return(&item("3", ""));
        assert_eq!(printed.last, Some(0));
    }

    #[test]
    fn items_that_are_published_again_are_no_return() {
        let mut printed = Printed { last: Some(4), ..Printed::default() };
        for id in ["5", "6", "7"] {
            assert!(printed.is_new(&item(id, id)));
        }
        // The hub was killed before it noted that it had published them.
        for (id, payload, expected) in
            [("6", "6", false), ("7", "7", false), ("8", "8", true), ("6", "of another log", true)]
        {
            printed.note_return(&item(id, payload));
            assert_eq!(printed.is_new(&item(id, payload)), expected, "{id} {payload}");
        }
    }
}
