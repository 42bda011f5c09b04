//! The address to listen on, and the public URL.

use abreast_server::TrustedProxies;
use abreast_webtypes::without_login;
use std::net::{SocketAddr, ToSocketAddrs as _};

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
pub(crate) fn check_proxies(
    given: Option<&[String]>,
    problems: &mut Vec<String>,
) -> TrustedProxies {
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
        // What is there of the two is part of the help.
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
