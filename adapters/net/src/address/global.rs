//! Distinguishes globally reachable IP addresses from private and special ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::{Host, Url};

/// The hosts that can reach an address, as far as the address shows it, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// Only from the machine that has the address.
    Machine,
    /// Only from the network that has the address.
    Network,
    /// All hosts; also for a name, which may have any address.
    Anywhere,
}

impl Reach {
    /// The reach of the host in an absolute URL; [`Reach::Anywhere`] for any other text.
    ///
    /// # Examples
    /// ```
    /// use abreast_net::Reach;
    ///
    /// assert_eq!(Reach::of("http://localhost:8080/feed"), Reach::Machine);
    /// assert_eq!(Reach::of("http://192.168.1.20/feed"), Reach::Network);
    /// assert_eq!(Reach::of("https://museum.example/feed"), Reach::Anywhere);
    /// ```
    pub fn of(url: &str) -> Self {
        let address = match Url::parse(url) {
            Ok(url) => match url.host() {
                Some(Host::Ipv4(v4)) => IpAddr::V4(v4),
                Some(Host::Ipv6(v6)) => IpAddr::V6(v6).to_canonical(),
                Some(Host::Domain(name)) if is_localhost(name) => return Self::Machine,
                _ => return Self::Anywhere,
            },
            Err(_) => return Self::Anywhere,
        };
        match address {
            _ if is_global(address) => Self::Anywhere,
            _ if address.is_loopback() || address.is_unspecified() => Self::Machine,
            _ => Self::Network,
        }
    }
}

/// Whether a name always means this machine.
fn is_localhost(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    let last = name.rsplit('.').next().unwrap_or(name);
    last.eq_ignore_ascii_case("localhost")
}

/// Whether an address can be reached from the Internet. Addresses of this machine, of its network
/// and of its provider's services are not, and neither are the ranges for tests, documentation and
/// multicast in IANA's registries of special-purpose addresses.
///
/// An IPv6 address with an embedded IPv4 address, for a translator, is treated as this IPv4
/// address.
///
/// # Examples
/// ```
/// use abreast_net::is_global;
/// use std::net::IpAddr;
///
/// let is = |address: &str| address.parse::<IpAddr>().map(is_global);
/// assert!(is("1.1.1.1")?);
/// assert!(!is("10.0.0.7")? && !is("169.254.169.254")? && !is("::1")?);
/// // 10.0.0.7, by way of a translator.
/// assert!(!is("64:ff9b::10.0.0.7")?);
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
pub fn is_global(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => is_global_v4(v4),
        IpAddr::V6(v6) => is_global_v6(v6),
    }
}

fn is_global_v4(v4: Ipv4Addr) -> bool {
    let [a, b, c, _] = v4.octets();
    let special = match a {
        0 | 10 | 127 | 224..=255 => true,
        // Shared address space of carriers.
        100 => (64..128).contains(&b),
        169 => b == 254,
        172 => (16..32).contains(&b),
        192 => b == 168 || (b == 0 && (c == 0 || c == 2)) || (b == 88 && c == 99),
        198 => b == 18 || b == 19 || (b == 51 && c == 100),
        203 => b == 0 && c == 113,
        _ => false,
    };
    !special
}

fn is_global_v6(v6: Ipv6Addr) -> bool {
    let parts = v6.segments();
    let carried = |high: u16, low: u16| {
        is_global_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)))
    };
    match parts {
        // Translation to IPv4, and its old form.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0, 0, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => carried(high, low),
        // Only 2000::/3 is allocated, with ranges for protocols, tunnels and documents.
        [0x2001, second, ..] => second >= 0x200 && second != 0xdb8,
        [0x3fff, second, ..] => second >= 0x1000,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::{Reach, is_global};

    #[test]
    fn an_address_shows_from_where_its_host_is_reached() {
        for (reach, urls) in [
            (
                Reach::Machine,
                &[
                    "http://127.0.0.1:8080/",
                    "http://127.1/x",
                    "https://localhost/",
                    "http://LOCALHOST.:80/",
                    "http://a.localhost/",
                    "http://[::1]/",
                    "http://[::ffff:127.0.0.1]/",
                    "http://0.0.0.0/",
                ][..],
            ),
            (
                Reach::Network,
                &[
                    "http://10.0.0.1/",
                    "http://192.168.1.1:80/",
                    "http://169.254.169.254/",
                    "http://[fd00::1]/",
                    "http://[fe80::1]/",
                ],
            ),
            (
                Reach::Anywhere,
                &[
                    "http://8.8.8.8/",
                    "https://papers.example.org/",
                    "http://localhost.example/",
                    "x",
                ],
            ),
        ] {
            for url in urls {
                assert_eq!(Reach::of(url), reach, "{url}");
            }
        }
    }

    #[test]
    fn special_addresses_are_not_global() {
        for text in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.8.8.8",
            "169.254.169.254",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::808:808",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:c0a8:101::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_global(text.parse().unwrap()), "{text}");
        }
    }

    #[test]
    fn other_addresses_are() {
        for text in [
            "1.1.1.1",
            "93.184.216.34",
            "100.128.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.20.0.1",
            "223.255.255.254",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2002:808:808::1",
            "2606:2800:220:1::1",
            "2a00:1450:4001:80e::200e",
        ] {
            assert!(is_global(text.parse().unwrap()), "{text}");
        }
    }
}
