//! The client of a request: its address and its permission to publish, decided once and used by
//! every rule.

use std::fmt;
use std::net::IpAddr;

/// The client of a request, for permissions and limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    address: IpAddr,
    path: Path,
    publisher: Publisher,
}

/// The path of a request to the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    /// The client connected directly.
    Direct,
    /// The connection is from this machine: from the client, or from a local proxy that does not
    /// mark requests.
    Local,
    /// A trusted proxy reported the address.
    Reported,
    /// The address is a proxy's; the client's address is unknown.
    Hidden,
}

/// The permission of a client to publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Publisher {
    /// A part of this process.
    Local,
    /// The client sent a token with permission to publish.
    Token,
    /// The client did not send a token.
    Anonymous,
}

impl Client {
    /// A client that connected from this address, without a token.
    pub const fn direct(address: IpAddr) -> Self {
        Self {
            address: address.to_canonical(),
            path: Path::Direct,
            publisher: Publisher::Anonymous,
        }
    }

    /// A client that connected from an address of this machine. Through a local proxy, other
    /// clients may have this address too.
    pub const fn local(address: IpAddr) -> Self {
        Self { path: Path::Local, ..Self::direct(address) }
    }

    /// A client at the address that a trusted proxy reported.
    pub const fn reported(address: IpAddr) -> Self {
        Self { path: Path::Reported, ..Self::direct(address) }
    }

    /// A client behind a proxy with this address. The client's address is unknown, so limits count
    /// the proxy, and the client never counts as a topic's host.
    pub const fn behind(proxy: IpAddr) -> Self {
        Self { path: Path::Hidden, ..Self::direct(proxy) }
    }

    /// The same client with another permission.
    #[must_use]
    pub const fn as_publisher(self, publisher: Publisher) -> Self {
        Self { publisher, ..self }
    }

    /// The client's permission to publish notifications.
    pub const fn publisher(&self) -> Publisher {
        self.publisher
    }

    /// Whether the request came through a proxy.
    pub const fn is_forwarded(&self) -> bool {
        matches!(self.path, Path::Reported | Path::Hidden)
    }

    /// Whether the request came from an address of this machine, possibly through a proxy that does
    /// not mark requests.
    pub const fn is_local(&self) -> bool {
        matches!(self.path, Path::Local)
    }

    /// The address of the client itself, if it is known.
    pub const fn address(&self) -> Option<IpAddr> {
        match self.path {
            Path::Direct | Path::Local | Path::Reported => Some(self.address),
            Path::Hidden => None,
        }
    }

    /// The address of the client, or of the proxy if only that is known.
    pub const fn nearest(&self) -> IpAddr {
        self.address
    }

    /// The unit that limits count: an IPv4 address, or the /64 network of an IPv6 address.
    pub fn group(&self) -> IpAddr {
        abreast_net::client_group(self.address)
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.path {
            Path::Direct | Path::Local | Path::Reported => self.address.fmt(f),
            Path::Hidden => write!(f, "behind {}", self.address),
        }
    }
}
