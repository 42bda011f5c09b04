//! Accounts, as the client takes them.

use super::{XmppArgs, XmppConfig};
use crate::config::access::Password;
use crate::program::errors::UsageError;
use abreast_destination::{SyncOptions, XmppOptions};
use abreast_xmpp::{Account, Node};
use anyhow::{Context as _, Result};
use std::path::Path;

impl XmppConfig {
    /// Checks what needs no password.
    pub(super) fn check(&self, problems: &mut Vec<String>) {
        let named = !self.jid.is_empty();
        if let Err(error) = Account::new(&self.jid, "")
            && named
        {
            let why = error.message();
            problems.push(format!("`xmpp.jid`: {why} (help: for example source@example.org)"));
        }
        // The default is below the domain of the account.
        if let Err(error) = self.node("name")
            && !self.service.ends_with('.')
        {
            problems
                .push(format!("`xmpp.service`: {error} (help: for example pubsub.example.org)"));
        }
        if let Some(Err(why)) = self.server.as_deref().map(super::server_address) {
            problems.push(format!("`xmpp.server`: {why}"));
        }
        if let Err(error) = self.password.check() {
            problems.push(format!(
                "`xmpp.password_file`: {error:#} (help: name a file with the password in its first line)"
            ));
        }
        if let Some(path) = &self.ca_file {
            crate::program::small_file::problem_of_certificates("xmpp.ca_file", path, problems);
        }
    }

    /// The address of a node.
    pub(crate) fn node(&self, name: &str) -> Result<String, String> {
        Node::new(&self.service, name)
            .map(|node| node.to_string())
            .map_err(|error| error.message().to_owned())
    }

    /// The account with its password.
    ///
    /// # Errors
    /// The password cannot be read.
    pub(crate) fn account(&self) -> Result<Account> {
        let password = self.password.read().context("cannot read the password of `xmpp.jid`")?;
        let mut account = Account::new(&self.jid, password).map_err(|error| usage(&error))?;
        account.server.clone_from(&self.server);
        account.ca_file.clone_from(&self.ca_file);
        account.max_sent = self.max_stanza;
        account.kept_items = self.kept_items;
        Ok(account)
    }
}

impl XmppArgs {
    /// Lets a copy receive change sets over XMPP, if an account is named.
    ///
    /// # Errors
    /// The node is not an address, or the password cannot be read.
    pub(crate) fn apply(&self, node: Option<&str>, options: &mut SyncOptions) -> Result<()> {
        let node = node.map(str::parse::<Node>).transpose().map_err(|error| usage(&error))?;
        let ca_file = options.net.extra_roots.clone();
        options.xmpp =
            self.account(ca_file.as_deref())?.map(|account| XmppOptions { account, node });
        Ok(())
    }

    /// The account, if one is named; `ca_file` has certificates to trust as well.
    ///
    /// # Errors
    /// The password cannot be read.
    pub(crate) fn account(&self, ca_file: Option<&Path>) -> Result<Option<Account>> {
        let Some(jid) = &self.xmpp_jid else { return Ok(None) };
        let source = self.password()?;
        let option = match source {
            Password::File(_) => "xmpp_password_file",
            Password::Command(_) => "xmpp_password_command",
            Password::Given(_) => "xmpp_jid",
        };
        let password = if self.is_check { source.check() } else { source.read() };
        let password = password.context("cannot read the password of `--xmpp-jid`");
        let password =
            password.map_err(|error| crate::config::access::unreadable(option, &error))?;
        let mut account = Account::new(jid, password).map_err(|error| usage(&error))?;
        account.server.clone_from(&self.xmpp_server);
        account.ca_file = ca_file.map(Path::to_owned);
        Ok(Some(account))
    }
}

/// An address that is not one.
pub(crate) fn usage(error: &abreast_xmpp::Error) -> anyhow::Error {
    UsageError(error.to_string()).into()
}
