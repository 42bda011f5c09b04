//! Access to a server: through which proxy, with which credentials and certificates; for every
//! command with a network.
//!
//! Secrets come from files, commands or the environment, never from the command line, where every
//! user of the machine could read them; and they are for the Source's own scheme, host and port.

use crate::program::errors::UsageError;
use crate::program::errors::{SecretError, SecretForSeveral};
use crate::program::small_file::{self, CERTIFICATES_MAX, SECRET_MAX};
use abreast_net::{Authorization, ClientCertificate, Options, Pin, Proxies, RequestSigner};
use abreast_webtypes::Origin;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Longest `.netrc` read.
const NETRC_MAX: u64 = 1 << 20;

/// Stands for the file in the variable NETRC, or, if NETRC is not set, `.netrc` in the home folder.
const USUAL_NETRC: &str = "~/.netrc";

/// Proxies, credentials, certificates.
#[derive(Clone, Debug, Default, Args)]
#[command(
    next_help_heading = "Access (secrets: ABREAST_TOKEN and ABREAST_PASSWORD are read as well)"
)]
pub(crate) struct AccessArgs {
    /// Use this proxy: http://, https://, socks5:// or socks5h://HOST:PORT [default: http_proxy,
    /// https_proxy, all_proxy]
    #[arg(long, value_name = "URL", env = "ABREAST_PROXY", hide_env_values = true)]
    pub(crate) proxy: Option<String>,
    /// Reach these hosts, addresses and networks directly, separated by commas; * for all [default:
    /// no_proxy]
    #[arg(long, value_name = "LIST")]
    pub(crate) no_proxy: Option<String>,
    /// Log in to the Source as this user; password from --password-file, --password-command or
    /// ABREAST_PASSWORD
    #[arg(long, value_name = "NAME", env = "ABREAST_USER")]
    pub(crate) user: Option<String>,
    /// Read the password from a file
    #[arg(long, value_name = "FILE", requires = "user", conflicts_with = "password_command")]
    pub(crate) password_file: Option<PathBuf>,
    /// Run a shell command that prints the password
    #[arg(long, value_name = "COMMAND", requires = "user")]
    pub(crate) password_command: Option<String>,
    /// Read a bearer token for the Source from a file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["user", "password_file", "password_command", "token_command"])]
    pub(crate) token_file: Option<PathBuf>,
    /// Run a shell command that prints a bearer token for the Source
    #[arg(long, value_name = "COMMAND", conflicts_with_all = ["user", "password_file", "password_command"])]
    pub(crate) token_command: Option<String>,
    /// Use credentials by host from a .netrc file [default file: NETRC, else .netrc in the home
    /// folder]
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = USUAL_NETRC, require_equals = true)]
    pub(crate) netrc: Option<PathBuf>,
    /// Present this certificate to the Source (PEM, with its chain)
    #[arg(long, value_name = "FILE")]
    pub(crate) client_cert: Option<PathBuf>,
    /// Use this private key for --client-cert (PEM) [default: the same file]
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    pub(crate) client_key: Option<PathBuf>,
    /// Also trust the certificates in this PEM file, of authorities or of servers
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
    /// Trust this host by its public key alone, whatever its certificate; repeatable
    #[arg(long, value_name = "HOST=sha256/BASE64", value_parser = parse_pin)]
    pub(crate) pin: Vec<Pin>,
    /// Request everything by HTTP/1.1, also from servers that speak HTTP/2
    #[arg(long)]
    pub(crate) no_http2: bool,
    /// Send no request by HTTP/1.1 on a connection before earlier ones are answered
    #[arg(long)]
    pub(crate) no_pipelining: bool,
    /// Add the operator of this program to the User-Agent of each request: a mail address, or the
    /// address of a page
    #[arg(long, value_name = "CONTACT", env = "ABREAST_CONTACT", value_parser = parse_contact)]
    pub(crate) contact: Option<String>,
    /// Sign each request with this Ed25519 key (PEM or JWK), for servers that let known programs pass
    /// (RFC 9421, Web Bot Auth)
    #[arg(long, value_name = "FILE", env = "ABREAST_SIGN_KEY", requires = "sign_agent")]
    pub(crate) sign_key: Option<PathBuf>,
    /// Name the server that publishes the public key, https://HOST, in each signed request
    #[arg(long, value_name = "URL", env = "ABREAST_SIGN_AGENT", requires = "sign_key")]
    pub(crate) sign_agent: Option<String>,
    /// The login is of a file, for its own server; one of the environment can be for another.
    #[arg(skip)]
    pub(crate) ignores_environment: bool,
    /// Nothing is sent: files are checked, and commands that print secrets are not run.
    #[arg(skip)]
    pub(crate) is_check: bool,
}

fn parse_pin(text: &str) -> Result<Pin, String> {
    Pin::parse(text).map_err(|error| error.to_string())
}

/// Longest contact, in bytes.
const CONTACT_MAX: usize = 200;

/// Checks a contact: it stands in a comment of a header [rfc9110 §10.1.5].
pub(crate) fn parse_contact(text: &str) -> Result<String, String> {
    let is_plain = |b: u8| b.is_ascii_graphic() && !matches!(b, b'(' | b')' | b'\\' | b'"');
    let is_page = text.starts_with("https://") || text.starts_with("http://");
    let is_mail =
        text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && host.contains('.'));
    if text.len() <= CONTACT_MAX && text.bytes().all(is_plain) && (is_page || is_mail) {
        Ok(text.to_owned())
    } else {
        Err("not a contact (help: a mail address such as harvest@example.org, or the https:// address of a page)".into())
    }
}

impl AccessArgs {
    /// Puts everything into the options of the HTTP client; gives back the Source's URL without
    /// credentials.
    ///
    /// # Errors
    /// A file or secret that cannot be read, or a proxy that cannot be used; no message has a
    /// secret in it.
    pub(crate) fn apply(&self, url: &str, net: &mut Options) -> Result<String> {
        self.try_apply(url, net).map_err(usage)
    }

    fn try_apply(&self, url: &str, net: &mut Options) -> Result<String> {
        self.apply_network(net)?;
        let (url, in_url) = without_login(url);
        if let Some(own) = self.own(&url, in_url)? {
            warn_if_readable_on_the_way(&url);
            net.credentials.add(&url, own)?;
        }
        if let Some(path) = &self.netrc {
            add_netrc(path, &url, net)?;
        }
        net.pins.clone_from(&self.pin);
        net.client_certificate = self.client_certificate(&url)?;
        Ok(url)
    }

    fn client_certificate(&self, url: &str) -> Result<Option<ClientCertificate>> {
        let Some(certificate) = self.client_cert.clone() else { return Ok(None) };
        let key = self.client_key.clone();
        let files = [("client_cert", Some(&certificate)), ("client_key", key.as_ref())];
        for (option, path) in files.into_iter().filter_map(|(option, path)| Some((option, path?))) {
            let read = small_file::bytes(path, CERTIFICATES_MAX);
            read.map_err(|error| unreadable(option, &error))?;
        }
        let key = key.unwrap_or_else(|| certificate.clone());
        let own = ClientCertificate { url: url.to_owned(), certificate, key };
        abreast_net::check_client_certificate(&own)
            .map_err(|error| unreadable("client_cert", &error.into()))?;
        Ok(Some(own))
    }

    /// Adds the access options for an endpoint that a set is read from: the credentials in files, or
    /// else the credentials of [`AccessArgs::apply_to_endpoint`].
    ///
    /// # Errors
    /// As [`AccessArgs::apply`].
    pub(crate) fn apply_to_origin(&self, url: &str, net: &mut Options) -> Result<String> {
        self.apply_network(net)?;
        if self.user.is_some() || self.token_file.is_some() {
            let plain = without_login(url).0;
            if let Some(own) = self.own(&plain, None)? {
                warn_if_readable_on_the_way(&plain);
                net.credentials.add(&plain, own)?;
            }
            return Ok(plain);
        }
        self.apply_to_endpoint(url, net)
    }

    fn apply_network(&self, net: &mut Options) -> Result<()> {
        if let Some(contact) = &self.contact {
            net.user_agent = format!("{} (+{contact})", Options::default().user_agent);
        }
        net.signer = self.signer()?;
        net.http2 = !self.no_http2;
        net.pipelining = !self.no_pipelining;
        if let Some(path) = &self.ca_file {
            small_file::check_certificates(path).map_err(|error| unreadable("ca_file", &error))?;
            net.extra_roots = Some(path.clone());
        }
        net.proxies = match &self.proxy {
            Some(proxy) => Proxies::through(proxy).context("cannot use `--proxy`")?.bypassing(
                &environment("no_proxy").or_else(|| environment("NO_PROXY")).unwrap_or_default(),
            ),
            None => Proxies::from_environment(environment)?,
        };
        if let Some(list) = &self.no_proxy {
            net.proxies = std::mem::take(&mut net.proxies).bypassing(list);
        }
        Ok(())
    }

    /// Signs requests, if there is a key.
    fn signer(&self) -> Result<Option<RequestSigner>> {
        let (Some(path), Some(agent)) = (&self.sign_key, &self.sign_agent) else { return Ok(None) };
        let key = small_file::signing_key(path).map_err(|error| unreadable("sign_key", &error))?;
        let signer = RequestSigner::new(key, agent);
        signer.map(Some).map_err(|error| unreadable("sign_agent", &error.into()))
    }

    /// Adds the credentials for another server that a run writes to, and returns the URL without
    /// credentials. They come from the URL or, for a single server, from ABREAST_ENDPOINT_TOKEN, from
    /// ABREAST_ENDPOINT_USER and ABREAST_ENDPOINT_PASSWORD, or from the .netrc file.
    ///
    /// # Errors
    /// A file that cannot be read, or a URL without a host; no message has a secret in it.
    pub(crate) fn apply_to_endpoint(&self, url: &str, net: &mut Options) -> Result<String> {
        let (url, in_url) = without_login(url);
        let of_environment = |name| environment(name).filter(|_| !self.is_check);
        let token = of_environment("ABREAST_ENDPOINT_TOKEN");
        let user = of_environment("ABREAST_ENDPOINT_USER");
        let own = match (in_url, token, user) {
            (Some(own), ..) => Some(own),
            (None, Some(token), _) => {
                for_one_server("ABREAST_ENDPOINT_TOKEN", &url)?;
                Some(Authorization::bearer(&token)?)
            }
            (None, None, Some(user)) => {
                for_one_server("ABREAST_ENDPOINT_USER", &url)?;
                let password = environment("ABREAST_ENDPOINT_PASSWORD").unwrap_or_default();
                Some(Authorization::basic(&user, &password))
            }
            (None, None, None) => None,
        };
        if let Some(own) = own {
            warn_if_readable_on_the_way(&url);
            net.credentials.add(&url, own)?;
        }
        if let Some(path) = &self.netrc {
            add_netrc(path, &url, net)?;
        }
        Ok(url)
    }

    /// The credentials for the Source itself: from the options, else from its URL, else from the
    /// environment.
    fn own(&self, url: &str, in_url: Option<Authorization>) -> Result<Option<Authorization>> {
        let environment_user = environment("ABREAST_USER");
        let of_environment = !self.ignores_environment
            && environment_user.is_some()
            && self.user == environment_user;
        // A password in the environment is that of the user there, if there is one.
        let has_password = !self.ignores_environment
            || environment_user.is_none()
            || self.user == environment_user;
        let is_given = self.token_file.is_some()
            || self.token_command.is_some()
            || (self.user.is_some() && !of_environment);
        if !is_given && in_url.is_some() {
            return Ok(in_url);
        }
        if let Some(user) = &self.user {
            if of_environment {
                self.for_one_server("ABREAST_USER", url)?;
            }
            let password = match (&self.password_file, &self.password_command) {
                (Some(file), _) => self.secret("password_file", &Password::File(file.clone()))?,
                (None, Some(command)) => {
                    self.secret("password_command", &Password::Command(command.clone()))?
                }
                (None, None) => match environment("ABREAST_PASSWORD").filter(|_| has_password) {
                    Some(password) => {
                        self.for_one_server("ABREAST_PASSWORD", url)?;
                        password
                    }
                    // A run may have the password in its environment.
                    None if self.is_check => String::new(),
                    None => bail!(UsageError(
                        "`--user` has no password (help: give it by --password-file, --password-command or ABREAST_PASSWORD)"
                            .to_owned()
                    )),
                },
            };
            return Ok(Some(Authorization::basic(user, &password)));
        }
        let (option, source) = match (&self.token_file, &self.token_command) {
            (Some(file), _) => ("token_file", Password::File(file.clone())),
            (None, Some(command)) => ("token_command", Password::Command(command.clone())),
            (None, None) => {
                let Some(token) = environment("ABREAST_TOKEN") else { return Ok(None) };
                self.for_one_server("ABREAST_TOKEN", url)?;
                return Ok(Some(Authorization::bearer(&token)?));
            }
        };
        let token = self.secret(option, &source)?;
        if token.is_empty() {
            return Err(unreadable(
                option,
                &anyhow::anyhow!("the first line is empty: there is no token"),
            ));
        }
        let token = Authorization::bearer(&token);
        token.map(Some).map_err(|error| unreadable(option, &error.into()))
    }

    fn secret(&self, option: &'static str, source: &Password) -> Result<String> {
        let secret = if self.is_check { source.check() } else { source.read() };
        secret.map_err(|error| unreadable(option, &error))
    }

    fn for_one_server(&self, name: &'static str, url: &str) -> Result<()> {
        if self.is_check { Ok(()) } else { for_one_server(name, url) }
    }
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

pub(crate) fn unreadable(option: &'static str, error: &anyhow::Error) -> anyhow::Error {
    let is_denied = error.chain().any(crate::program::exit::is_denied);
    SecretError { option, text: format!("{error:#}"), is_denied }.into()
}

/// Turns an error in the value of an option into a usage error, unless the error has its own exit code.
fn usage(error: anyhow::Error) -> anyhow::Error {
    let is_denied = error.chain().any(crate::program::exit::is_denied);
    if is_denied || error.is::<SecretForSeveral>() || error.is::<SecretError>() {
        return error;
    }
    UsageError(format!("{error:#}")).into()
}

/// Refuses a secret of the environment for a second server: it was set with one in mind.
fn for_one_server(name: &'static str, url: &str) -> Result<()> {
    static SERVERS: Mutex<BTreeMap<&str, Origin>> = Mutex::new(BTreeMap::new());
    let Some(origin) = Origin::of(url) else { return Ok(()) };
    let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let first = servers.entry(name).or_insert_with(|| origin.clone());
    refuse_several(name, [&*first, &origin])
}

/// What to do in place of a secret for several servers.
fn alternative_to(name: &str) -> &'static str {
    if name.starts_with("ABREAST_ENDPOINT_") {
        "write the login into each URL, or use a .netrc file, in place of it"
    } else {
        "set `token_file`, or `user` and `password_file`, in each `[[mirror]]`, or use a .netrc file, in place of it; or run the \
         jobs one at a time"
    }
}

/// Refuses a secret that is given once, for servers of which any differs from the first.
pub(crate) fn refuse_several<'o>(
    name: &str,
    servers: impl IntoIterator<Item = &'o Origin>,
) -> Result<()> {
    let mut servers = servers.into_iter();
    let Some(first) = servers.next() else { return Ok(()) };
    match servers.find(|server| *server != first) {
        None => Ok(()),
        Some(other) => Err(SecretForSeveral(format!(
            "`{name}` would be sent to {first} and {other}\n  help: {}",
            alternative_to(name)
        ))
        .into()),
    }
}

/// Where a password comes from.
#[derive(Clone)]
pub(crate) enum Password {
    /// The first line of a file.
    File(PathBuf),
    /// The first line that a shell command prints.
    Command(String),
    /// The environment, which has it already.
    Given(String),
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password(…)")
    }
}

impl Password {
    /// The password.
    ///
    /// # Errors
    /// The file cannot be read, or the command fails.
    pub(crate) fn read(&self) -> Result<String> {
        let text = self.read_text()?;
        Ok(if matches!(self, Self::Given(_)) { text } else { first_line(&text) })
    }

    /// As [`Password::read`], without a warning about the permissions of the file, for repeated reads.
    ///
    /// # Errors
    /// As [`Password::read`].
    #[cfg(feature = "postgres")]
    pub(crate) fn read_again(&self) -> Result<String> {
        match self {
            Self::File(file) => Ok(first_line(&small_file::text(file, SECRET_MAX)?)),
            Self::Command(_) | Self::Given(_) => self.read(),
        }
    }

    /// All lines, if each is a password.
    ///
    /// # Errors
    /// As [`Password::read`].
    pub(crate) fn read_text(&self) -> Result<String> {
        match self {
            Self::File(file) => small_file::secret(file, SECRET_MAX),
            Self::Command(command) => printed_by(command),
            Self::Given(password) => Ok(password.clone()),
        }
    }

    /// As [`Password::read_text`]; `None` where commands would run or pipes be emptied.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn check_text(&self) -> Result<Option<String>> {
        let is_repeatable = match self {
            Self::File(file) => small_file::is_repeatable(file),
            Self::Command(_) => false,
            Self::Given(_) => true,
        };
        is_repeatable.then(|| self.read_text()).transpose()
    }

    /// As [`Password::read`], without running commands or taking from pipes: for these, any text.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(crate) fn check(&self) -> Result<String> {
        match self {
            Self::File(file) if small_file::is_repeatable(file) => self.read(),
            Self::File(_) | Self::Command(_) => Ok("secret".to_owned()),
            Self::Given(password) => Ok(password.clone()),
        }
    }
}

/// Separates credentials before the host from the URL, so that the state, logs and messages do not
/// contain credentials.
pub(crate) fn without_login(url: &str) -> (String, Option<Authorization>) {
    let Ok(mut parsed) = url::Url::parse(url) else { return (url.to_owned(), None) };
    if parsed.username().is_empty() && parsed.password().is_none() {
        return (url.to_owned(), None);
    }
    let login = abreast_net::Authorization::of_url(url);
    // Only URLs without a host refuse this, and those have no login.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    (parsed.into(), login)
}

fn warn_if_readable_on_the_way(url: &str) {
    let Ok(parsed) = url::Url::parse(url) else { return };
    let here = match parsed.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    };
    if parsed.scheme() == "http" && !here {
        tracing::warn!("credentials are sent to {url} unencrypted: use https if the server has it");
    }
}

fn add_netrc(path: &Path, url: &str, net: &mut Options) -> Result<()> {
    let path = if path.as_os_str() == USUAL_NETRC { usual_netrc()? } else { path.to_owned() };
    let text = small_file::secret(&path, NETRC_MAX).map_err(|error| unreadable("netrc", &error))?;
    Ok(net.credentials.add_netrc(&text, url)?)
}

fn usual_netrc() -> Result<PathBuf> {
    let named = std::env::var_os("NETRC").map(PathBuf::from);
    let usual = || std::env::home_dir().map(|home| home.join(".netrc"));
    named
        .or_else(usual)
        .context("there is no home folder to search for .netrc (help: name the file, --netrc=FILE)")
}

/// The output of a command of the user. Its standard error is passed through.
fn printed_by(command: &str) -> Result<String> {
    let task = "cannot run the command that prints a secret";
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::inherit())
        .stdout(Stdio::piped())
        .spawn()
        .context(task)?;
    let mut text = String::new();
    let read =
        child.stdout.take().map(|out| out.take(SECRET_MAX).read_to_string(&mut text)).transpose();
    let status = child.wait().context(task)?;
    read.context("the command that prints a secret printed something that is not text")?;
    if !status.success() {
        bail!("the command that prints a secret failed ({status})");
    }
    Ok(text)
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_in_the_url_leaves_it() {
        let (url, login) = without_login("https://me:hush@museum.example/list?x#y");
        assert_eq!(url, "https://museum.example/list?x#y");
        assert!(login.is_some());
        assert_eq!(without_login("https://museum.example/%7e").0, "https://museum.example/%7e");
    }

    #[test]
    fn protocols_are_turned_off_one_by_one() {
        for (no_http2, no_pipelining) in [(false, false), (true, false), (false, true)] {
            let access = AccessArgs { no_http2, no_pipelining, ..AccessArgs::default() };
            let mut net = Options::default();
            access.apply("https://museum.example/", &mut net).unwrap();
            assert_eq!((net.http2, net.pipelining), (!no_http2, !no_pipelining));
        }
    }

    #[test]
    fn a_contact_is_a_mail_address_or_a_page() {
        for contact in ["harvest@example.org", "https://example.org/harvest?of=papers"] {
            let access = AccessArgs {
                contact: Some(parse_contact(contact).unwrap()),
                ..AccessArgs::default()
            };
            let mut net = Options::default();
            access.apply("https://museum.example/", &mut net).unwrap();
            assert!(net.user_agent.starts_with("abreast/"), "{}", net.user_agent);
            assert!(net.user_agent.ends_with(&format!(" (+{contact})")), "{}", net.user_agent);
        }
        for wrong in [
            "",
            "me",
            "@example.org",
            "me@localhost",
            "https://a b",
            "a@b.c)(",
            "https://é",
            "a\r\nb@c.d",
        ] {
            assert!(parse_contact(wrong).is_err(), "{wrong:?}");
        }
        assert!(parse_contact(&format!("https://{}", "a".repeat(CONTACT_MAX))).is_err());
    }

    #[test]
    fn secrets_come_from_files_and_commands() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("secret");
        std::fs::write(&file, "hush\nmore").unwrap();
        let of = |access: AccessArgs| {
            let mut net = Options::default();
            access.apply("https://museum.example/", &mut net).map(|_| net.credentials.is_empty())
        };
        let command =
            |text: &str| AccessArgs { token_command: Some(text.into()), ..AccessArgs::default() };
        assert!(!of(AccessArgs { token_file: Some(file), ..AccessArgs::default() }).unwrap());
        assert!(!of(command("echo hush")).unwrap());
        assert!(of(command("echo hush; exit 3")).is_err());
        assert!(
            of(AccessArgs { token_file: Some("/nowhere".into()), ..AccessArgs::default() })
                .is_err()
        );
        let error = of(command("printf 'hu\\001sh'")).unwrap_err();
        assert!(!format!("{error:?}").contains("hu\u{1}sh"));
    }
}
