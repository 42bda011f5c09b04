//! How is a connection to a server made?

use std::io;
use std::net::{IpAddr, SocketAddr};

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use crate::connection::{Connection, Stream};
use crate::error::{Error, ErrorKind};
use crate::origin::Origin;
use crate::shared::Shared;

/// Most addresses of one name that are tried.
const MAX_ADDRESSES: usize = 8;

/// Resolves, connects to each address in turn and does the TLS handshake, all within `connect_timeout`.
///
/// With `public_only`, private addresses are refused: a server that redirects to another host does not get to choose
/// what this machine alone can reach. The address connected to is what is judged, whatever its name resolved to before.
pub(crate) async fn connect(
    shared: &Shared,
    origin: &Origin,
    url: &str,
    public_only: bool,
) -> Result<Connection, Error> {
    let deadline = Instant::now() + shared.options.connect_timeout;
    let timed_out = |what: &str| {
        Error::new(ErrorKind::Timeout, url, format!("{what} took longer than {:?}", shared.options.connect_timeout))
    };
    let Ok(addresses) = timeout_at(deadline, resolve(shared, origin, url)).await else {
        return Err(timed_out("resolving the host name"));
    };
    let mut addresses = addresses?;
    // Addresses that the user fixed are the user's own choice.
    if public_only && shared.options.connect_to.is_empty() {
        addresses.retain(|address| !is_private(address.ip()));
        if addresses.is_empty() {
            let message = format!("the redirect leads to {}, which is a private address", origin.host);
            return Err(Error::new(ErrorKind::Redirect, url, message)
                .with_help("if the resource really is there, use its own URL"));
        }
    }
    let tcp = connect_any(&addresses, deadline).await.map_err(|e| {
        if e.kind() == io::ErrorKind::TimedOut {
            timed_out("connecting").with_cause(e)
        } else {
            Error::new(ErrorKind::Connect, url, format!("cannot connect to {} port {}", origin.host, origin.port))
                .with_help("check that the server is running and that the port is right")
                .with_cause(e)
        }
    })?;
    // Requests are small and written whole; waiting to fill a segment only adds latency.
    tcp.set_nodelay(true).map_err(|e| Error::new(ErrorKind::Connect, url, "cannot set up the socket").with_cause(e))?;
    let stream = if origin.https {
        match timeout_at(deadline, handshake(shared, origin, tcp, url)).await {
            Ok(stream) => stream?,
            Err(_) => return Err(timed_out("the TLS handshake")),
        }
    } else {
        Stream::Plain(tcp)
    };
    tracing::debug!(origin = origin.key, "connected");
    Connection::new(stream, &shared.options)
        .await
        .map_err(|e| Error::new(ErrorKind::Connect, url, "cannot set up the connection").with_cause(e))
}

async fn resolve(shared: &Shared, origin: &Origin, url: &str) -> Result<Vec<SocketAddr>, Error> {
    let name = (origin.host.as_str(), origin.port);
    let fixed: Vec<SocketAddr> = shared
        .options
        .connect_to
        .iter()
        .filter(|(from, _)| from.rsplit_once(':').is_some_and(|(h, p)| h == name.0 && p.parse() == Ok(name.1)))
        .map(|(_, to)| *to)
        .collect();
    if !fixed.is_empty() {
        return Ok(fixed);
    }
    if let Ok(address) = origin.host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, origin.port)]);
    }
    let failed = || {
        Error::new(ErrorKind::Dns, url, format!("cannot resolve the host name `{}`", origin.host))
            .with_help("check the spelling of the host and this machine's name servers")
    };
    let addresses: Vec<_> =
        tokio::net::lookup_host(name).await.map_err(|e| failed().with_cause(e))?.take(MAX_ADDRESSES).collect();
    if addresses.is_empty() { Err(failed()) } else { Ok(addresses) }
}

/// Not reachable from the Internet: this machine, its network, or its provider's services.
fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            // 100.64.0.0/10 is shared address space of carriers [rfc6598].
            let carrier = a == 100 && (64..128).contains(&b);
            v4.is_loopback() || v4.is_private() || v4.is_link_local() || v4.is_broadcast() || a == 0 || carrier
        }
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unspecified() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

/// Tries each address; each gets its share of the time left, so that a silent one cannot use up all of it.
async fn connect_any(addresses: &[SocketAddr], deadline: Instant) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for (tried, address) in addresses.iter().enumerate() {
        let now = Instant::now();
        let left = u32::try_from(addresses.len() - tried).unwrap_or(1);
        match timeout_at(now + deadline.duration_since(now) / left, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(e)) => last = e,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

async fn handshake(shared: &Shared, origin: &Origin, tcp: TcpStream, url: &str) -> Result<Stream, Error> {
    let config = shared.tls().map_err(|e| e.with_url(url))?;
    let name = ServerName::try_from(origin.host.clone())
        .map_err(|e| Error::new(ErrorKind::Tls, url, "the host name cannot be in a certificate").with_cause(e))?;
    match TlsConnector::from(config).connect(name, tcp).await {
        Ok(stream) => Ok(Stream::Tls(Box::new(stream))),
        Err(e) if e.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<rustls::Error>) => {
            Err(Error::new(ErrorKind::Tls, url, "the server's certificate or TLS is not acceptable")
                .with_help("have the server's certificate mended, or name the authority that signed it as extra roots")
                .with_cause(e))
        }
        Err(e) => Err(Error::new(ErrorKind::Connect, url, "the TLS handshake was cut off").with_cause(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_are_known() {
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "::1",
            "fe80::1",
            "fd00::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(is_private(text.parse().unwrap()), "{text}");
        }
        for text in ["93.184.216.34", "100.128.0.1", "172.32.0.1", "2606:2800:220:1::1"] {
            assert!(!is_private(text.parse().unwrap()), "{text}");
        }
    }
}
