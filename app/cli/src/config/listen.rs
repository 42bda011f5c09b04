//! Where and how a server listens: address, public URL, proxies, TLS and access log.

use crate::config::File;
use crate::config::clients::{self, ClientsConfig};
use crate::program::errors::UsageError;
use crate::program::small_file;
use abreast_net::{KeyDirectory, ServerCertificate};
use abreast_server::{
    AccessFormat, AccessLog, AccessLogOptions, CurrentSite, ServerOptions, TrustedProxies,
};
use abreast_webtypes::without_login;
use anyhow::{Context as _, Result};
use clap::Args;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;

/// The flags of a server, which take precedence over the keys of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ListenArgs {
    /// Listen on this address; port 0 selects a free one [default: 127.0.0.1:8080]
    #[arg(long, value_name = "HOST:PORT", env = "ABREAST_LISTEN")]
    listen: Option<String>,
    /// Build all published URLs from this public URL; a hub is at `hub` below it [default: the listen
    /// address]
    #[arg(long, value_name = "URL", env = "ABREAST_BASE_URL", value_parser = crate::values::address::base_url)]
    base_url: Option<String>,
    /// Believe the client address that these proxies report (X-Forwarded-For): addresses or
    /// networks, separated by commas
    #[arg(
        long = "trusted-proxy",
        value_name = "ADDRESS",
        env = "ABREAST_TRUSTED_PROXIES",
        value_delimiter = ','
    )]
    trusted_proxies: Vec<String>,
    /// Speak HTTPS with the certificate in this PEM file; it is read again when it changes
    #[arg(long, value_name = "FILE", env = "ABREAST_TLS_CERT")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", env = "ABREAST_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// Append a line for each request to this file; - is standard output
    #[arg(long, value_name = "FILE", env = "ABREAST_ACCESS_LOG")]
    access_log: Option<PathBuf>,
    /// Form of these lines: combined (as Apache and nginx) or json [default: combined]
    #[arg(long, value_name = "FORMAT", env = "ABREAST_ACCESS_LOG_FORMAT")]
    access_log_format: Option<String>,
    /// Publish the public part of this key that signs requests (PEM or JWK) at
    /// /.well-known/http-message-signatures-directory; repeatable, or separated by commas
    #[arg(
        long = "sign-key",
        value_name = "FILE",
        env = "ABREAST_SIGN_KEYS",
        value_delimiter = ','
    )]
    sign_keys: Vec<PathBuf>,
}

impl ListenArgs {
    /// Replaces keys of the file by flags and environment variables.
    pub(crate) fn over(&self, file: &mut File) {
        fn replace<T: Clone>(
            given: Option<&T>,
            key: &'static str,
            value: &mut Option<T>,
            origins: &mut crate::config::faults::Origins,
        ) {
            if let Some(given) = given {
                *value = Some(given.clone());
                origins.forget(key);
            }
        }
        let origins = &mut file.origins;
        replace(self.listen.as_ref(), "listen", &mut file.listen, origins);
        replace(self.base_url.as_ref(), "base_url", &mut file.base_url, origins);
        // An empty variable is none.
        let has_proxies = self.trusted_proxies.iter().any(|text| !text.trim().is_empty());
        let proxies = has_proxies.then_some(&self.trusted_proxies);
        replace(proxies, "trusted_proxies", &mut file.trusted_proxies, origins);
        replace(self.access_log.as_ref(), "access_log", &mut file.access_log, origins);
        let format = self.access_log_format.as_ref();
        replace(format, "access_log_format", &mut file.access_log_format, origins);
        let has_keys = self.sign_keys.iter().any(|file| !file.as_os_str().is_empty());
        let keys = has_keys.then_some(&self.sign_keys);
        replace(keys, "sign_keys", &mut file.sign_keys, origins);
        if self.tls_cert.is_some() || self.tls_key.is_some() {
            let tls = file.tls.get_or_insert_default();
            replace(self.tls_cert.as_ref(), "tls.cert", &mut tls.cert, origins);
            replace(self.tls_key.as_ref(), "tls.key", &mut tls.key, origins);
        }
    }
}

/// Where and how a server listens, checked.
#[derive(Clone, Debug)]
pub(crate) struct ListenConfig {
    pub(crate) address: SocketAddr,
    /// `None`: made from the address listened on.
    pub(crate) base_url: Option<String>,
    pub(crate) trusted_proxies: TrustedProxies,
    http2: bool,
    strip_prefix: bool,
    /// The files with certificate and key.
    tls: Option<[PathBuf; 2]>,
    access_log: Option<PathBuf>,
    access_log_format: AccessFormat,
    /// The public keys that sign requests of copies.
    keys: Option<KeyDirectory>,
    clients: ClientsConfig,
}

impl ListenConfig {
    /// Checks the keys of a file.
    pub(crate) fn check(file: &File, problems: &mut Vec<String>) -> Self {
        let base_url = file.base_url.as_deref();
        Self {
            address: check_address(file.listen.as_deref(), base_url, problems),
            base_url: file.base_url.clone(),
            trusted_proxies: check_proxies(file.trusted_proxies.as_deref(), problems),
            http2: file.http2.unwrap_or(true),
            strip_prefix: file.strip_prefix.unwrap_or(false),
            tls: check_tls(file, problems),
            access_log: file.access_log.clone().filter(|file| !file.as_os_str().is_empty()),
            access_log_format: check_format(file, problems),
            clients: clients::check(file, problems),
            keys: check_sign_keys(file.sign_keys.as_deref().unwrap_or_default(), problems),
        }
    }

    /// Options of a server with this number of connections.
    ///
    /// # Errors
    /// The certificate cannot be used.
    pub(crate) fn options(&self, connections: usize) -> Result<ServerOptions> {
        let certificate = match &self.tls {
            None => None,
            Some([certificate, key]) => {
                let read = ServerCertificate::read(certificate, key);
                Some(Arc::new(read.map_err(|error| UsageError(error.to_string()))?))
            }
        };
        Ok(ServerOptions {
            trusted_proxies: self.trusted_proxies.clone(),
            certificate,
            http2: self.http2,
            strip_prefix: self.strip_prefix,
            keys: self.keys.clone(),
            requests_per_client: self.clients.each,
            known_clients: self.clients.known.clone(),
            connections,
            ..ServerOptions::default()
        })
    }

    /// The access log, if there is one.
    pub(crate) fn access_log(&self) -> Option<AccessLogOptions> {
        let file = self.access_log.clone()?;
        Some(AccessLogOptions { file, format: self.access_log_format })
    }

    /// The public base URL of a server at this address.
    pub(crate) fn base_url(&self, address: SocketAddr) -> String {
        self.base_url.clone().unwrap_or_else(|| self.own_url(address))
    }

    /// The URL of the address itself.
    pub(crate) fn own_url(&self, address: SocketAddr) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{address}/")
    }
}

/// Opens the access log.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn open_access_log(options: Option<&AccessLogOptions>) -> Result<Option<AccessLog>> {
    let Some(options) = options else { return Ok(None) };
    AccessLog::open(options).map(Some).with_context(|| {
        format!(
            "cannot open the access log `{}` (help: the folder must exist, and this user must be allowed to write it)",
            options.file.display()
        )
    })
}

/// Opens the access log of a server again, and reads a changed certificate. Faults are logged; the server
/// continues with the former file and certificate.
pub(crate) fn reopen(
    site: &CurrentSite,
    access_log: Option<&AccessLogOptions>,
    certificate: Option<&ServerCertificate>,
) {
    match open_access_log(access_log) {
        Ok(log) => site.log_access(log),
        Err(error) => tracing::error!("{error:#}"),
    }
    if let Some(certificate) = certificate {
        abreast_server::reread(certificate);
    }
}

fn check_tls(file: &File, problems: &mut Vec<String>) -> Option<[PathBuf; 2]> {
    let tls = file.tls.as_ref()?;
    // One file may have both.
    match (tls.cert.clone(), tls.key.clone().or_else(|| tls.cert.clone())) {
        (Some(cert), Some(key)) => {
            if let Err(error) = ServerCertificate::read(&cert, &key) {
                problems.push(format!("`tls.cert`: {error}"));
            }
            Some([cert, key])
        }
        (_, key) => {
            let given = key.map_or("nothing", |_| "a key only");
            problems.push(format!(
                "`tls.cert`: TLS needs a certificate, and has {given} (help: `cert` is a PEM file with the certificate, `key` one with its private key)"
            ));
            None
        }
    }
}

fn check_sign_keys(files: &[PathBuf], problems: &mut Vec<String>) -> Option<KeyDirectory> {
    let mut keys = Vec::new();
    for file in files.iter().filter(|file| !file.as_os_str().is_empty()) {
        match small_file::signing_key(file) {
            Ok(key) => keys.push(key),
            Err(error) => problems.push(format!("`sign_keys`: {error:#}")),
        }
    }
    (!keys.is_empty()).then(|| KeyDirectory::new(keys))
}

fn check_format(file: &File, problems: &mut Vec<String>) -> AccessFormat {
    match file.access_log_format.as_deref() {
        None | Some("combined") => AccessFormat::Combined,
        Some("json") => AccessFormat::Json,
        Some(other) => {
            problems.push(format!(
                "`access_log_format`: `{other}` is unknown (help: combined or json)"
            ));
            AccessFormat::default()
        }
    }
}

/// The listen address. If it does not imply the public URL, that must be given.
pub(crate) fn check_address(
    listen: Option<&str>,
    base_url: Option<&str>,
    problems: &mut Vec<String>,
) -> SocketAddr {
    let default = SocketAddr::from(([127, 0, 0, 1], 8080));
    let listen = match listen.map(address_of) {
        None => default,
        Some(Ok(address)) => address,
        Some(Err(reason)) => {
            problems.push(reason);
            default
        }
    };
    if base_url.is_none() && listen.ip().is_unspecified() {
        problems.push(format!(
            "`base_url`: listening on every address ({listen}) needs the public URL (help: for example --base-url https://example.org/)"
        ));
    }
    if let Some(base) = base_url
        && let Err(expected) = crate::values::address::base_url(base)
    {
        problems.push(format!(
            "`base_url`: `{}` cannot be used: {expected} (help: for example https://example.org/)",
            without_login(base)
        ));
    }
    listen
}

/// The proxies whose reports of client addresses are believed.
fn check_proxies(given: Option<&[String]>, problems: &mut Vec<String>) -> TrustedProxies {
    let texts = given.unwrap_or_default().iter().map(String::as_str);
    TrustedProxies::parse(texts).unwrap_or_else(|text| {
        problems.push(format!(
            "`trusted_proxies`: `{text}` is not an address (help: for example 127.0.0.1 or 10.0.0.0/8)"
        ));
        TrustedProxies::default()
    })
}

/// Where to listen: an address or a host name with a port.
pub(crate) fn address_of(text: &str) -> Result<SocketAddr, String> {
    let (host, port) = text.rsplit_once(':').unwrap_or(("", text));
    if host.is_empty() || port.parse::<u16>().is_err() {
        // The help repeats the host and the port that were given.
        let port = port.parse().unwrap_or(8080_u16);
        let host = text.trim_end_matches(':');
        let help = if host.is_empty() || host.starts_with(':') || host.parse::<u16>().is_ok() {
            format!("127.0.0.1:{port} for this machine alone, 0.0.0.0:{port} for all addresses")
        } else {
            // The host of a URL or of an IPv6 address, which is in brackets.
            let host = host.split_once("://").map_or(host, |(_, rest)| rest);
            let host = host.split('/').next().unwrap_or_default();
            let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
            let name = match host.split_once(']') {
                Some((address, _)) => format!("{address}]"),
                None => host.split(':').next().unwrap_or_default().to_owned(),
            };
            format!("for example {name}:8080")
        };
        return Err(format!("`listen`: `{text}` is not HOST:PORT (help: {help})"));
    }
    let refused = |reason: &dyn std::fmt::Display| {
        format!(
            "`listen`: cannot use `{text}`: {reason} (help: HOST is an address of this machine, such as 127.0.0.1, or localhost)"
        )
    };
    let mut found = text.to_socket_addrs().map_err(|error| refused(&error))?;
    found.next().ok_or_else(|| refused(&"the name has no address"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_name_is_an_address_to_listen_on() {
        assert_eq!(address_of("localhost:8080").unwrap().port(), 8080);
        for (text, help) in [
            (":21010", "127.0.0.1:21010 for this machine alone, 0.0.0.0:21010"),
            ("21010", "127.0.0.1:21010 for this machine alone"),
            ("", "127.0.0.1:8080 for this machine alone"),
            ("localhost", "for example localhost:8080"),
            ("127.0.0.1:", "for example 127.0.0.1:8080"),
            ("127.0.0.1:http", "for example 127.0.0.1:8080"),
            ("127.0.0.1:99999", "for example 127.0.0.1:8080"),
            ("[::1]", "for example [::1]:8080"),
            ("[::1]:http", "for example [::1]:8080"),
            ("http://x", "for example x:8080"),
            ("http://x/", "for example x:8080"),
            ("http://x:80/", "for example x:8080"),
            ("http://me:secret@x:80/", "for example x:8080"),
        ] {
            let refused = address_of(text).unwrap_err();
            assert!(refused.contains("is not HOST:PORT (help: "), "{refused}");
            assert!(refused.contains(help), "{text}: {refused}");
        }
    }
}
