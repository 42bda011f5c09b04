//! XMPP: `[xmpp]` of the configuration, and the account of commands that receive.

#[cfg(feature = "xmpp")]
mod account;

#[cfg(feature = "xmpp")]
pub(crate) use account::usage;

use crate::config::access::Password;
use crate::config::settings::XmppFile;
use crate::program::errors::UsageError;
#[cfg(not(feature = "xmpp"))]
use abreast_destination::SyncOptions;
use anyhow::Result;
#[cfg(feature = "xmpp")]
use anyhow::bail;
use clap::Args;
use std::path::PathBuf;

/// Most bytes of a stanza that is sent, by default.
const MAX_STANZA: u64 = 200_000;
/// The most that can be configured: receivers like ours take twice as much.
const MAX_STANZA_MOST: u64 = 2_000_000;
/// Items that a new node keeps, by default.
const KEPT_ITEMS: u64 = 1;

/// The account that publishes, checked.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "xmpp"), expect(dead_code, reason = "only the feature `xmpp` connects"))]
pub(crate) struct XmppConfig {
    jid: String,
    password: Password,
    pub(crate) service: String,
    server: Option<String>,
    ca_file: Option<PathBuf>,
    max_stanza: usize,
    kept_items: u32,
}

/// Checks `[xmpp]`; every problem is added to the others.
pub(crate) fn check(file: Option<XmppFile>, problems: &mut Vec<String>) -> Option<XmppConfig> {
    let file = file?;
    if cfg!(not(feature = "xmpp")) {
        problems.push(format!("`xmpp`: {WITHOUT} (help: {WITHOUT_HELP}, or remove the table)"));
        return None;
    }
    let jid = file.jid.unwrap_or_default();
    if jid.is_empty() {
        problems.push(
            "`xmpp.jid`: no account is named (help: for example source@example.org)".to_owned(),
        );
    }
    let password = match (file.password_file, file.password_command) {
        (Some(file), None) => Password::File(file),
        (None, Some(command)) => Password::Command(command),
        (file, _) => {
            let what =
                if file.is_some() { "two passwords are given" } else { "no password is given" };
            problems.push(format!(
                "`xmpp`: {what} (help: give either `password_file` or `password_command`)"
            ));
            Password::Command(String::new())
        }
    };
    let max_stanza = file.max_stanza.map_or(MAX_STANZA, |size| size.0);
    if !(10_000..=MAX_STANZA_MOST).contains(&max_stanza) {
        problems.push(format!(
            "`xmpp.max_stanza`: {max_stanza} is out of range (help: 10000 to {MAX_STANZA_MOST}, below the limit of the XMPP server)"
        ));
    }
    let kept_items = file.kept_items.unwrap_or(KEPT_ITEMS);
    if !(1..=1_000).contains(&kept_items) {
        problems.push(format!("`xmpp.kept_items`: {kept_items} is out of range (help: 1 to 1000)"));
    }
    let domain = jid.rsplit('@').next().unwrap_or_default();
    let config = XmppConfig {
        service: file.service.unwrap_or_else(|| format!("pubsub.{domain}")),
        jid,
        password,
        server: file.server,
        ca_file: file.ca_file,
        max_stanza: max_stanza as usize,
        kept_items: kept_items as u32,
    };
    config.check(problems);
    Some(config)
}

/// Why nothing of this works, in programs without it.
const WITHOUT: &str = "this program was built without XMPP";
const WITHOUT_HELP: &str = "build it with the default features, or use a released one";

#[cfg(not(feature = "xmpp"))]
impl XmppConfig {
    #[expect(clippy::unused_self, reason = "as with the feature `xmpp`")]
    fn check(&self, _problems: &mut [String]) {}

    /// The address of a node.
    #[expect(clippy::unused_self, reason = "as with the feature `xmpp`")]
    pub(crate) fn node(&self, _name: &str) -> Result<String, String> {
        Err(WITHOUT.to_owned())
    }
}

/// Checks the address of a server, `host:port`.
pub(crate) fn server_address(text: &str) -> Result<String, String> {
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_host = |host: &str| !host.is_empty() && !host.contains(['/', '@', ' ']);
    match text.rsplit_once(':') {
        Some((host, port)) if is_host(host) && is_port(port) => Ok(text.to_owned()),
        _ => {
            Err("it is not a host and a port (help: for example xmpp.example.org:5222)".to_owned())
        }
    }
}

/// The account of commands that receive.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "XMPP")]
pub(crate) struct XmppArgs {
    /// Log in to XMPP as this account, user@example.org
    #[arg(long, value_name = "JID")]
    pub(crate) xmpp_jid: Option<String>,
    /// Read the account's password from a file
    #[arg(
        long,
        value_name = "FILE",
        requires = "xmpp_jid",
        conflicts_with = "xmpp_password_command"
    )]
    pub(crate) xmpp_password_file: Option<PathBuf>,
    /// Run a shell command that prints the account's password
    #[arg(long, value_name = "COMMAND", requires = "xmpp_jid")]
    pub(crate) xmpp_password_command: Option<String>,
    /// Connect to this XMPP server [default: the account's domain, port 5222]
    #[arg(long, value_name = "HOST:PORT", requires = "xmpp_jid", value_parser = server_address)]
    pub(crate) xmpp_server: Option<String>,
    /// As in `AccessArgs`.
    #[arg(skip)]
    pub(crate) is_check: bool,
}

impl XmppArgs {
    /// # Errors
    /// An account is named: this program cannot use it.
    #[cfg(not(feature = "xmpp"))]
    pub(crate) fn apply(&self, _node: Option<&str>, _options: &mut SyncOptions) -> Result<()> {
        if self.xmpp_jid.is_some() { Err(without()) } else { Ok(()) }
    }

    /// Where the password comes from.
    #[cfg(feature = "xmpp")]
    fn password(&self) -> Result<Password> {
        let environment = std::env::var("ABREAST_XMPP_PASSWORD").ok();
        match (&self.xmpp_password_file, &self.xmpp_password_command) {
            (Some(file), _) => Ok(Password::File(file.clone())),
            (None, Some(command)) => Ok(Password::Command(command.clone())),
            (None, None) => match environment.filter(|password| !password.is_empty()) {
                Some(password) => Ok(Password::Given(password)),
                None => bail!(UsageError(
                    "`--xmpp-jid` has no password (help: give it by --xmpp-password-file, --xmpp-password-command or \
                     ABREAST_XMPP_PASSWORD)"
                        .to_owned()
                )),
            },
        }
    }
}

/// The error of a command that needs XMPP.
#[cfg(not(feature = "xmpp"))]
pub(crate) fn without() -> anyhow::Error {
    UsageError(format!("{WITHOUT} (help: {WITHOUT_HELP})")).into()
}

#[cfg(feature = "xmpp")]
#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        let mut problems = Vec::new();
        check(Some(toml::from_str(text).expect("TOML")), &mut problems);
        problems
    }

    #[test]
    fn an_account_needs_an_address_and_a_password() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "secret\n").unwrap();
        let password = format!("password_file = {:?}\n", file.path());
        let right = &format!("jid = \"source@example.org\"\n{password}");
        assert_eq!(problems(right), [""; 0]);
        assert_eq!(problems(&format!("{right}max_stanza = 2000000")), [""; 0]);
        assert_eq!(abreast_xmpp::SENT_MAX as u64, MAX_STANZA_MOST);
        for (text, key) in [
            (password.clone(), "`xmpp.jid`"),
            (format!("jid = \"example.org\"\n{password}"), "`xmpp.jid`"),
            (
                "jid = \"a@example.org\"\npassword_file = \"/nowhere\"".to_owned(),
                "password_file`: cannot read",
            ),
            ("jid = \"a@example.org\"".to_owned(), "password_file"),
            (format!("{right}password_command = \"c\""), "password_file"),
            (format!("{right}max_stanza = 9999"), "`xmpp.max_stanza`"),
            (format!("{right}max_stanza = 2000001"), "`xmpp.max_stanza`"),
            (format!("{right}kept_items = 0"), "`xmpp.kept_items`"),
            (format!("{right}kept_items = 1001"), "`xmpp.kept_items`"),
            (format!("{right}ca_file = \"/nowhere\""), "`xmpp.ca_file`"),
            (format!("{right}service = \"a@b@c\""), "`xmpp.service`"),
            (format!("{right}server = \"http://h.example:5222/\""), "`xmpp.server`"),
            (format!("{right}server = \"h.example:99999\""), "`xmpp.server`"),
            (format!("{right}server = \"h.example\""), "`xmpp.server`"),
        ] {
            let found = problems(&text);
            assert!(found.len() == 1 && found[0].contains(key), "{text}: {found:?}");
        }
        assert_eq!(problems(&format!("{right}server = \"[2001:db8::1]:5222\"")), [""; 0]);
        let several = "service = \"a@b@c\"\nserver = \"h\"\nmax_stanza = 1\nca_file = \"/nowhere\"";
        assert_eq!(problems(several).len(), 6);
    }

    #[test]
    fn the_service_is_below_the_domain_of_the_account() {
        let text = "jid = \"source@example.org\"\npassword_file = \"p\"\n";
        let config = check(Some(toml::from_str(text).unwrap()), &mut Vec::new()).unwrap();
        assert_eq!(config.node("papers").unwrap(), "xmpp:pubsub.example.org?;node=papers");
        assert!(config.node("").is_err());
    }
}
