//! The client of a request: the peer of the connection, or the address that a trusted proxy reports.

use abreast_hub::Client;
use http::HeaderMap;
use ipnet::IpNet;
use std::net::IpAddr;

/// Header fields that proxies add: a request with any was forwarded.
const FORWARDED: [&str; 6] =
    ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];

/// Bits before the IPv4 address in an IPv6 address that contains one.
const MAPPED_BITS: u8 = 96;

/// The other end of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    address: IpAddr,
    /// Whether the address is on this machine.
    is_local: bool,
}

impl Peer {
    pub(crate) fn new(address: IpAddr, own: Option<IpAddr>) -> Self {
        let address = address.to_canonical();
        let is_own = own.is_some_and(|own| own.to_canonical() == address);
        Self { address, is_local: is_own || address.is_loopback() }
    }
}

/// Addresses of proxies whose `X-Forwarded-For` is trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Parses addresses and networks, such as `127.0.0.1` and `10.0.0.0/8`; empty texts are
    /// ignored.
    ///
    /// # Errors
    /// The first text that is neither an address nor a network.
    pub fn parse<'t>(texts: impl IntoIterator<Item = &'t str>) -> Result<Self, String> {
        let one = |text: &'t str| {
            text.parse::<IpNet>()
                .or_else(|_| text.parse::<IpAddr>().map(IpNet::from))
                .map(canonical)
                .map_err(|_| text.to_owned())
        };
        let texts = texts.into_iter().map(str::trim).filter(|text| !text.is_empty());
        texts.map(one).collect::<Result<_, _>>().map(Self)
    }

    /// Whether the other end of a connection is a trusted proxy.
    pub(crate) fn trusts_peer(&self, peer: Peer) -> bool {
        self.trusts(peer.address)
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The client of a request on a connection from `peer`.
    ///
    /// `X-Forwarded-For` is read from its end, where the nearest proxy appends: the first address
    /// that does not belong to a trusted proxy is the client. All other parts of these fields can
    /// come from the client itself.
    pub(crate) fn client(&self, peer: Peer, headers: &HeaderMap) -> Client {
        let Peer { address: peer, is_local } = peer;
        if !self.trusts(peer) {
            return match FORWARDED.iter().any(|name| headers.contains_key(*name)) {
                true => Client::behind(peer),
                false if is_local => Client::local(peer),
                false => Client::direct(peer),
            };
        }
        for line in headers.get_all("x-forwarded-for").iter().rev() {
            for text in line.to_str().unwrap_or_default().rsplit(',') {
                match text.trim().parse::<IpAddr>().map(|address| address.to_canonical()) {
                    Ok(address) if self.trusts(address) => {}
                    Ok(address) => return Client::reported(address),
                    Err(_) => return Client::behind(peer),
                }
            }
        }
        // All clients behind a proxy that does not report addresses are one group.
        Client::behind(peer)
    }
}

/// Converts networks of IPv4 addresses in IPv6 form (`::ffff:10.0.0.0/104`) to IPv4, the form of
/// client addresses.
fn canonical(network: IpNet) -> IpNet {
    let prefix = network.prefix_len().checked_sub(MAPPED_BITS);
    match (network.addr().to_canonical(), prefix) {
        (address @ IpAddr::V4(_), Some(prefix)) if !network.addr().is_ipv4() => {
            IpNet::new(address, prefix).unwrap_or(network)
        }
        _ => network,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    #[test]
    fn only_trusted_proxies_report_an_address() {
        let trusted = TrustedProxies::parse(["127.0.0.1", "10.0.0.0/8", "2001:db8::/32"]).unwrap();
        assert_eq!(TrustedProxies::parse(["10.0.0.0/8", "nginx"]), Err("nginx".to_owned()));
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let (direct, reported, behind) = (
            |text| Client::direct(address(text)),
            |text| Client::reported(address(text)),
            |text| Client::behind(address(text)),
        );
        let field = "x-forwarded-for";
        for (peer, headers, client) in [
            ("203.0.113.9", vec![], direct("203.0.113.9")),
            ("::ffff:203.0.113.9", vec![], direct("203.0.113.9")),
            ("203.0.113.9", vec![(field, "192.0.2.1")], behind("203.0.113.9")),
            ("203.0.113.9", vec![("via", "1.1 p")], behind("203.0.113.9")),
            ("127.0.0.1", vec![], behind("127.0.0.1")),
            ("127.0.0.1", vec![(field, "192.0.2.1")], reported("192.0.2.1")),
            ("127.0.0.1", vec![(field, "10.9.9.9, 192.0.2.1, 10.1.2.3")], reported("192.0.2.1")),
            ("127.0.0.1", vec![(field, "8.8.8.8"), (field, "192.0.2.1")], reported("192.0.2.1")),
            ("127.0.0.1", vec![(field, "192.0.2.1"), (field, "10.1.1.1")], reported("192.0.2.1")),
            ("127.0.0.1", vec![(field, "192.0.2.1, unknown")], behind("127.0.0.1")),
            ("127.0.0.1", vec![("forwarded", "for=192.0.2.1")], behind("127.0.0.1")),
            ("2001:db8::5", vec![(field, "2001:470::1")], reported("2001:470::1")),
        ] {
            let headers: HeaderMap = headers
                .into_iter()
                .map(|(name, value)| {
                    (HeaderName::from_static(name), HeaderValue::from_static(value))
                })
                .collect();
            let peer = Peer::new(address(peer), None);
            assert_eq!(trusted.client(peer, &headers), client, "{peer:?} {headers:?}");
        }
        let none = TrustedProxies::default();
        for (peer, own, is_local) in [
            ("127.0.0.1", "127.0.0.1", true),
            ("::ffff:192.0.2.1", "192.0.2.1", true),
            ("192.0.2.2", "192.0.2.1", false),
        ] {
            let peer = Peer::new(address(peer), Some(address(own)));
            assert_eq!(none.client(peer, &HeaderMap::new()).is_local(), is_local, "{peer:?}");
        }
        let written = TrustedProxies::parse([" 127.0.0.1", "", "10.0.0.0/8 ", " "]);
        let mapped = TrustedProxies::parse(["::ffff:127.0.0.1", "::ffff:10.0.0.0/104"]);
        let plain = TrustedProxies::parse(["127.0.0.1", "10.0.0.0/8"]);
        assert_eq!((&written, &mapped), (&plain, &plain));
        let wide = TrustedProxies::parse(["::/0"]).unwrap();
        assert!(wide.trusts(address("2001:db8::1")) && !wide.trusts(address("10.1.1.1")));
        let network = |text| direct(text).group();
        assert_eq!(network("2001:470:1:2:3::4"), network("2001:470:1:2:ffff::1"));
        assert_ne!(network("2001:470:1:2::1"), network("2001:470:1:3::1"));
    }
}
