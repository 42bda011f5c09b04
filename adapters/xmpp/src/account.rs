//! The account of a client, and its limits.

use crate::error::{Error, ErrorKind};
use std::path::PathBuf;
use std::time::Duration;
use tokio_xmpp::jid::BareJid;

/// Most bytes of a stanza that is received, by default.
const RECEIVED_MAX: usize = 4 << 20;
/// Most bytes of a stanza that is sent, also with a larger [`Account::max_sent`]: services repeat
/// namespace prefixes at each element, and receivers such as this one accept at most 4 MiB.
pub const SENT_MAX: usize = 2_000_000;

/// An account on an XMPP server. Every limit has a default and cannot be disabled.
#[derive(Clone)]
#[non_exhaustive]
pub struct Account {
    pub(crate) jid: BareJid,
    pub(crate) password: String,
    /// The server to connect to, `host:port`. Default: the domain of the address, port 5222.
    pub server: Option<String>,
    /// A PEM file with certificates that are trusted in addition to the built-in ones.
    pub ca_file: Option<PathBuf>,
    /// Time limit to resolve, connect, negotiate TLS and log in. Default 10 s.
    pub connect_timeout: Duration,
    /// Time limit for the response to a request. Default 30 s.
    pub request_timeout: Duration,
    /// Silence after which the server is pinged; after another quarter of this time, the connection
    /// counts as lost. Default 60 s.
    pub silence: Duration,
    /// Most bytes of a stanza that is sent: servers end connections that send more than their
    /// limit, often 256 KiB. Default 200,000; at most [`SENT_MAX`].
    pub max_sent: usize,
    /// Most bytes of a stanza that is received. Default 4 MiB.
    pub max_received: usize,
    /// Items that a new node stores. Services may read and write all items for each publication, as
    /// Prosody does by default. Default 1.
    pub kept_items: u32,
}

impl Account {
    /// An account `user@domain` and its password.
    ///
    /// # Errors
    /// The address is not that of a user.
    pub fn new(address: &str, password: impl Into<String>) -> Result<Self, Error> {
        let wrong = |why: String| {
            Error::new(
                ErrorKind::Usage,
                format!("`{address}` is not the address of an account: {why}"),
            )
            .with_help("write it as user@example.org")
        };
        let jid = BareJid::new(address).map_err(|error| wrong(error.to_string()))?;
        if jid.node().is_none() {
            return Err(wrong("it names no user".to_owned()));
        }
        Ok(Self {
            jid,
            password: password.into(),
            server: None,
            ca_file: None,
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            silence: Duration::from_secs(60),
            max_sent: 200_000,
            max_received: RECEIVED_MAX,
            kept_items: 1,
        })
    }

    /// Address of the account, `user@domain`.
    pub fn address(&self) -> &str {
        self.jid.as_str()
    }

    /// Address of the server to connect to, `host:port`.
    pub fn server(&self) -> String {
        self.server.clone().unwrap_or_else(|| format!("{}:5222", self.jid.domain()))
    }
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account")
            .field("jid", &self.jid)
            .field("server", &self.server)
            .field("ca_file", &self.ca_file)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_a_user_at_a_domain_and_hides_its_password() {
        let account = Account::new("Source@Example.org", "hush").unwrap();
        assert_eq!(account.address(), "source@example.org");
        assert_eq!(account.server(), "example.org:5222");
        assert!(!format!("{account:?}").contains("hush"));
        for wrong in ["example.org", "", "a@", "@example.org", "a@b@c"] {
            let error = Account::new(wrong, "").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{wrong}");
        }
    }
}
