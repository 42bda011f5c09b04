//! Selection of a proxy for a URL.

use std::net::IpAddr;

use percent_encoding::percent_decode_str;
use url::Url;

use crate::address::error::{Error, ErrorKind};
use crate::address::origin::{Origin, Target};
use crate::address::secret::Authorization;

/// The protocol between client and proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProxyProtocol {
    /// HTTP: `CONNECT` for https, whole URLs for http.
    Http,
    /// HTTP over TLS, as for `Http`.
    Https,
    /// SOCKS 5 with addresses, which are resolved here.
    Socks,
    /// SOCKS 5 with hosts that the proxy resolves.
    SocksNames,
}

/// A proxy; `Debug` hides its password.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Proxy {
    pub(crate) speaks: ProxyProtocol,
    pub(crate) host: String,
    pub(crate) port: u16,
    /// User and password.
    pub(crate) login: Option<(String, String)>,
}

impl Proxy {
    fn parse(text: &str) -> Result<Self, Error> {
        // The text may contain a password, so messages do not repeat it.
        let wrong = |message: &str| {
            Error::new(ErrorKind::Proxy, "", format!("the proxy cannot be used: {message}"))
                .with_help("write it as http://HOST:PORT, https://HOST:PORT, socks5://HOST:PORT or socks5h://HOST:PORT")
        };
        let with_scheme =
            if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
        if !text.contains("://") && text.contains(":/") {
            return Err(wrong("`//` is missing after its scheme"));
        }
        let url =
            Url::parse(&with_scheme).map_err(|e| wrong("its URL cannot be read").with_cause(e))?;
        let (speaks, usual) = match url.scheme() {
            "http" => (ProxyProtocol::Http, 80),
            "https" => (ProxyProtocol::Https, 443),
            "socks5" => (ProxyProtocol::Socks, 1080),
            "socks5h" => (ProxyProtocol::SocksNames, 1080),
            _ => return Err(wrong("its scheme is none of http, https, socks5 and socks5h")),
        };
        let host = url
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| wrong("it has no host"))?;
        let decode = |text| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let login = (!url.username().is_empty())
            .then(|| (decode(url.username()), decode(url.password().unwrap_or_default())));
        Ok(Self {
            speaks,
            host: host.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: url.port().unwrap_or(usual),
            login,
        })
    }

    pub(crate) fn is_http(&self) -> bool {
        matches!(self.speaks, ProxyProtocol::Http | ProxyProtocol::Https)
    }

    pub(crate) fn authorization(&self) -> Option<Authorization> {
        self.login.as_ref().map(|(user, password)| Authorization::basic(user, password))
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Proxy({:?} {}:{})", self.speaks, self.host, self.port)
    }
}

/// Proxies by the scheme of the server's URL. Default: all servers are connected to directly.
#[derive(Clone, Debug, Default)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    bypass: Vec<Bypass>,
}

impl Proxies {
    /// One proxy for all servers: `http://`, `https://`, `socks5://` or `socks5h://`, with user and
    /// password before the host if the proxy requires them.
    ///
    /// # Errors
    /// `net.proxy` when the URL cannot be used; the message does not repeat it.
    pub fn through(url: &str) -> Result<Self, Error> {
        let proxy = Proxy::parse(url)?;
        Ok(Self { http: Some(proxy.clone()), https: Some(proxy), bypass: Vec::new() })
    }

    /// Reads environment variables as curl does: `http_proxy` (in lower case only, because CGI
    /// servers set `HTTP_PROXY` from a request's header), `https_proxy`, `all_proxy` and `no_proxy`
    /// in lower or upper case.
    ///
    /// # Examples
    /// ```
    /// use abreast_net::Proxies;
    ///
    /// let proxies = Proxies::from_environment(|name| match name {
    ///     "https_proxy" => Some("http://proxy.library.example:3128".to_owned()),
    ///     "no_proxy" => Some("library.example".to_owned()),
    ///     _ => None,
    /// })?;
    /// assert!(proxies.covers("https://repo.example/"));
    /// assert!(!proxies.covers("https://catalogue.library.example/"));
    /// # Ok::<(), abreast_net::Error>(())
    /// ```
    ///
    /// # Errors
    /// `net.proxy` when a URL cannot be used.
    pub fn from_environment(get: impl Fn(&str) -> Option<String>) -> Result<Self, Error> {
        let first = |names: &[&str]| {
            names.iter().find_map(|name| get(name)).filter(|value| !value.trim().is_empty())
        };
        let proxy =
            |names: &[&str]| first(names).map(|value| Proxy::parse(value.trim())).transpose();
        let all = proxy(&["all_proxy", "ALL_PROXY"])?;
        let found = Self {
            http: proxy(&["http_proxy"])?.or_else(|| all.clone()),
            https: proxy(&["https_proxy", "HTTPS_PROXY"])?.or(all),
            bypass: Vec::new(),
        };
        Ok(found.bypassing(&first(&["no_proxy", "NO_PROXY"]).unwrap_or_default()))
    }

    /// Adds servers to connect to directly, separated by commas: hosts with all their subdomains,
    /// addresses, networks such as `10.0.0.0/8`, or `*` for all servers.
    ///
    /// # Examples
    /// ```
    /// use abreast_net::Proxies;
    ///
    /// let proxies = Proxies::through("socks5h://127.0.0.1:9050")?.bypassing("10.0.0.0/8,localhost");
    /// assert!(!proxies.covers("http://10.20.0.7/feed"));
    /// assert!(proxies.covers("http://museum.example/feed"));
    /// # Ok::<(), abreast_net::Error>(())
    /// ```
    #[must_use]
    pub fn bypassing(mut self, list: &str) -> Self {
        self.bypass.extend(list.split([',', ' ']).filter_map(Bypass::parse));
        self
    }

    /// Whether requests to this URL go through a proxy.
    pub fn covers(&self, url: &str) -> bool {
        Target::split(url)
            .and_then(|target| Origin::parse(target.origin))
            .is_ok_and(|origin| self.for_origin(&origin).is_some())
    }

    pub(crate) fn for_origin(&self, origin: &Origin) -> Option<&Proxy> {
        let proxy = if origin.https { &self.https } else { &self.http }.as_ref()?;
        (!self.bypass.iter().any(|bypass| bypass.covers(&origin.host, origin.port)))
            .then_some(proxy)
    }
}

/// One entry of `no_proxy`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Bypass {
    All,
    Network(IpAddr, u8),
    Host(String, Option<u16>),
}

impl Bypass {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('.').to_ascii_lowercase();
        if text.is_empty() {
            return None;
        }
        if text == "*" {
            return Some(Self::All);
        }
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Some(Self::Network(address, 128));
        }
        if let Some((address, bits)) = text.split_once('/') {
            return Some(Self::Network(address.parse().ok()?, bits.parse().ok()?));
        }
        match text.rsplit_once(':') {
            Some((host, port)) => Some(Self::Host(host.to_owned(), Some(port.parse().ok()?))),
            None => Some(Self::Host(text, None)),
        }
    }

    fn covers(&self, host: &str, port: u16) -> bool {
        match self {
            Self::All => true,
            Self::Network(network, bits) => {
                host.parse::<IpAddr>().is_ok_and(|address| same_network(*network, address, *bits))
            }
            Self::Host(own, own_port) => {
                let host = host.to_ascii_lowercase();
                let below = host
                    .strip_suffix(own.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
                below && own_port.is_none_or(|own| own == port)
            }
        }
    }
}

fn same_network(network: IpAddr, address: IpAddr, bits: u8) -> bool {
    let (network, address) = match (network.to_canonical(), address.to_canonical()) {
        (IpAddr::V4(one), IpAddr::V4(two)) => {
            (u128::from(one.to_bits()) << 96, u128::from(two.to_bits()) << 96)
        }
        (IpAddr::V6(one), IpAddr::V6(two)) => (one.to_bits(), two.to_bits()),
        _ => return false,
    };
    let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
    network & mask == address & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(proxies: &Proxies, url: &str) -> Option<String> {
        proxies
            .for_origin(&Origin::parse(url).unwrap())
            .map(|proxy| format!("{}:{}", proxy.host, proxy.port))
    }

    #[test]
    fn proxy_by_scheme_comes_from_the_environment() {
        let from = |values: &[(&str, &str)]| {
            Proxies::from_environment(|name| {
                values
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, value)| (*value).to_owned())
            })
            .unwrap()
        };
        let found =
            from(&[("http_proxy", "one.example:3128"), ("HTTPS_PROXY", "http://two.example")]);
        assert_eq!(used(&found, "http://museum.example").as_deref(), Some("one.example:3128"));
        assert_eq!(used(&found, "https://museum.example").as_deref(), Some("two.example:80"));
        assert_eq!(used(&from(&[("HTTP_PROXY", "trap.example")]), "http://museum.example"), None);
        let found = from(&[
            ("ALL_PROXY", "socks5h://three.example"),
            ("https_proxy", ""),
            ("NO_PROXY", "museum.example"),
        ]);
        assert_eq!(used(&found, "https://other.example").as_deref(), Some("three.example:1080"));
        assert_eq!(used(&found, "http://museum.example"), None);
    }

    #[test]
    fn servers_named_in_no_proxy_are_reached_directly() {
        let list = ".museum.example, archive.example:8080,10.0.0.0/8,::1,192.0.2.7";
        let proxies = Proxies::through("http://p.example").unwrap().bypassing(list);
        for url in [
            "http://museum.example",
            "https://A.Museum.example:444",
            "http://archive.example:8080",
            "http://10.1.2.3",
            "http://[::1]:81",
            "http://192.0.2.7",
        ] {
            assert_eq!(used(&proxies, url), None, "{url}");
        }
        for url in [
            "http://notmuseum.example",
            "http://archive.example",
            "http://11.1.2.3",
            "http://192.0.2.8",
            "http://[::2]",
        ] {
            assert!(used(&proxies, url).is_some(), "{url}");
        }
        assert_eq!(used(&proxies.bypassing("*"), "http://notmuseum.example"), None);
    }

    #[test]
    fn a_proxys_password_is_in_no_text() {
        let proxies = Proxies::through("http://me:hush%21@p.example:1").unwrap();
        assert!(!format!("{proxies:?}").contains("hush"));
        assert_eq!(proxies.http.unwrap().login, Some(("me".into(), "hush!".into())));
        for wrong in
            ["ftp://me:hush@p.example", "http://me:hush@", "http://me:hush@p.example:99999"]
        {
            let error = Proxies::through(wrong).unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hush"), "{wrong}");
        }
    }
}
