//! A node of an XMPP service: its newest items, then new ones as they come.

use super::{MAX_RETRY, RETRY, SubscribeArgs, lines};
use crate::config::UsageError;
use abreast_xmpp::{Account, Event, Item, Node, Session};
use anyhow::{Result, bail};
use std::io::Write as _;

/// Items asked for after each connection; what is older is no longer noticed.
const CATCH_UP: u32 = 10;

/// Reads a node.
pub(super) struct Follower {
    account: Account,
    node: Node,
    /// Items still wanted.
    left: u64,
    /// The last item that was printed; `None` before the first connection of one that wants only
    /// new items.
    last: Option<String>,
    /// The items that were asked for last: their events may still come.
    caught: Vec<String>,
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
        let last = args.from.map(|from| from.to_string());
        Ok(Self { account, node, left: args.limit.unwrap_or(u64::MAX), last, caught: Vec::new() })
    }

    /// Prints items; after a connection is lost, connects again.
    pub(super) async fn all(mut self) -> Result<u8> {
        let mut failures = 0_u32;
        let mut was_connected = false;
        loop {
            let error = match self.one(&mut was_connected).await {
                Ok(()) => return Ok(0),
                Err(error) => error,
            };
            // What was wrong from the beginning does not get better by itself.
            if !was_connected || !error.is_transient() {
                let help = error.help().map(|help| format!(" (help: {help})")).unwrap_or_default();
                let task = format!("cannot read {}{help}", self.node);
                return Err(anyhow::Error::new(error).context(task));
            }
            tracing::warn!("{error}; connecting again");
            tokio::time::sleep(RETRY.saturating_mul(1 << failures.min(10)).min(MAX_RETRY)).await;
            failures += 1;
        }
    }

    /// One connection.
    async fn one(&mut self, was_connected: &mut bool) -> Result<(), abreast_xmpp::Error> {
        let (session, mut events) = Session::connect(&self.account, self.node.service()).await?;
        session.check_service(self.node.service()).await?;
        session.subscribe(&self.node).await?;
        session.be_present().await?;
        *was_connected = true;
        if !self.catch_up(&session).await? {
            return Ok(());
        }
        loop {
            let goes_on = match events.next().await? {
                Event::Item(item) if item.node == self.node.name() => {
                    self.note_return(&item);
                    !self.is_new(&item) || self.print(item)
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

    /// Prints the items that came while nothing was connected. `false` when no more are wanted.
    async fn catch_up(&mut self, session: &Session) -> Result<bool, abreast_xmpp::Error> {
        let mut items = session.items(&self.node, CATCH_UP).await?;
        // Services do not agree on the order.
        items.sort_by_key(|item| number(&item.id));
        self.caught = items.iter().map(|item| item.id.clone()).collect();
        let Some(last) = self.last.clone() else {
            self.last = Some(items.pop().map_or_else(String::new, |item| item.id));
            return Ok(true);
        };
        let is_known = |item: &Item| item.id == last || number(&item.id) <= number(&last);
        if items.len() as u32 >= CATCH_UP && !items.iter().any(is_known) {
            tracing::warn!("items after `{last}` are missing: only the newest {CATCH_UP} are read");
        }
        for item in items {
            if self.is_new(&item) && !self.print(item) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// An item that comes with a lower number: the Source counts from the beginning again.
    fn note_return(&mut self, item: &Item) {
        let last = self.last.as_deref().unwrap_or_default();
        let is_lower = number(&item.id) != 0 && number(&item.id) < number(last);
        if is_lower && !self.caught.contains(&item.id) {
            tracing::warn!("item `{}` came after `{last}`; continuing from there", item.id);
            self.last = Some(String::new());
        }
    }

    fn is_new(&self, item: &Item) -> bool {
        let last = self.last.as_deref().unwrap_or_default();
        item.id != last && (number(&item.id) == 0 || number(&item.id) > number(last))
    }

    /// Prints an item. `false` when no more are wanted.
    fn print(&mut self, item: Item) -> bool {
        let line = lines::item(&self.node.to_string(), &item.id, item.payload.as_deref());
        self.last = Some(item.id);
        self.left -= 1;
        let mut out = crate::terminal::output();
        writeln!(out, "{line}").and_then(|()| out.flush()).is_ok() && self.left > 0
    }
}

/// Items of a Source like ours are named by positions of its log; others have no order.
fn number(id: &str) -> u64 {
    id.parse().unwrap_or(0)
}
