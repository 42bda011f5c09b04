//! Connecting to a server: DNS, address checks, proxies, TLS.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;

use crate::address::error::{Error, ErrorKind};
use crate::address::global::is_global;
use crate::address::origin::Origin;
use crate::settings::proxy::{Proxy, ProxyProtocol};
use crate::transport::channel::Opened;
use crate::transport::connection::{Connection, Stream};
use crate::transport::http2::Http2Connection;
use crate::transport::shared::Shared;
use crate::transport::tls::without_http2;
use crate::transport::tunnel::{http_connect, socks5};

/// Time after which a slow name resolution is reported.
const SLOW_LOOKUP: Duration = Duration::from_secs(2);
/// Most addresses of a host name that are tried.
const MAX_ADDRESSES: usize = 8;

/// Resolves, connects to each address in turn and does the TLS handshake, all within
/// `connect_timeout`. The server chooses between HTTP/1.1 and HTTP/2 if `may_be_http2`.
///
/// With `public_only`, private addresses are refused: a redirect must not reach servers that only
/// this machine can reach. The check applies to the address of the connection itself, so that a
/// name cannot resolve to another address after the check.
pub(crate) async fn connect(
    shared: &Shared,
    origin: &Origin,
    url: &str,
    public_only: bool,
    may_be_http2: bool,
) -> Result<Opened, Error> {
    let deadline = Instant::now() + shared.options.connect_timeout;
    let timed_out = |what: &str| {
        Error::new(
            ErrorKind::Timeout,
            url,
            format!("{what} took longer than {:?}", shared.options.connect_timeout),
        )
    };
    let proxy = shared.options.proxies.for_origin(origin);
    let tcp = match proxy {
        None => direct(shared, origin, url, public_only, deadline).await?,
        Some(proxy) => {
            refuse_private_behind_proxy(origin, url, public_only)?;
            let addresses =
                match timeout_at(deadline, resolve(shared, &proxy.host, proxy.port, url)).await {
                    Ok(addresses) => addresses?,
                    Err(_) => return Err(timed_out("resolving the proxy's name")),
                };
            connect_any(&addresses, deadline).await.map_err(|e| {
                Error::new(
                    ErrorKind::Proxy,
                    url,
                    format!("cannot connect to the proxy {} port {}", proxy.host, proxy.port),
                )
                .passing()
                .with_help("check that the proxy is running, or name hosts to reach directly in `no_proxy`")
                .with_cause(e)
            })?
        }
    };
    // Requests are small and written whole; waiting to fill a segment only adds latency.
    tcp.set_nodelay(true).map_err(|e| {
        Error::new(ErrorKind::Connect, url, "cannot set up the socket").with_cause(e)
    })?;
    let mut stream = Stream::Plain(tcp);
    if let Some(proxy) = proxy {
        stream =
            match timeout_at(deadline, through(shared, proxy, origin, stream, url, public_only))
                .await
            {
                Ok(stream) => stream?,
                Err(_) => return Err(timed_out("the proxy's answer").passing()),
            };
    }
    if origin.https {
        let made = handshake(shared, origin, stream, url, may_be_http2);
        stream = match timeout_at(deadline, made).await {
            Ok(stream) => stream?,
            Err(_) => return Err(timed_out("the TLS handshake")),
        };
    }
    let is_http2 = stream.is_http2();
    tracing::debug!(origin = origin.key, is_http2, "connected");
    let opened = if is_http2 {
        Http2Connection::new(stream, shared).await.map(|made| Opened::Http2(Arc::new(made)))
    } else {
        Connection::new(stream, shared).await.map(|made| Opened::Http1(Box::new(made)))
    };
    opened.map_err(|e| {
        Error::new(ErrorKind::Connect, url, "cannot set up the connection").with_cause(e)
    })
}

/// Whether the server at an http address answers a TLS handshake, with any certificate. Not tested
/// behind a proxy.
pub(crate) async fn speaks_tls(
    shared: &Shared,
    plain: &Origin,
    url: &str,
    public_only: bool,
) -> bool {
    if shared.options.proxies.for_origin(plain).is_some() {
        return false;
    }
    let Ok(origin) = Origin::parse(&format!("https://{}:{}", bracketed(&plain.host), plain.port))
    else {
        return false;
    };
    match connect(shared, &origin, url, public_only, false).await {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::Tls && !crate::transport::tls::is_no_tls(&error),
    }
}

/// Connects to one of the server's addresses.
async fn direct(
    shared: &Shared,
    origin: &Origin,
    url: &str,
    public_only: bool,
    deadline: Instant,
) -> Result<TcpStream, Error> {
    let timed_out = |what: &str| {
        Error::new(
            ErrorKind::Timeout,
            url,
            format!("{what} took longer than {:?}", shared.options.connect_timeout),
        )
    };
    let Ok(addresses) = timeout_at(deadline, resolve(shared, &origin.host, origin.port, url)).await
    else {
        return Err(timed_out("resolving the host name"));
    };
    let mut addresses = addresses?;
    // Addresses in `connect_to` are the user's choice.
    if public_only && shared.options.connect_to.is_empty() {
        addresses.retain(|address| !is_private(address.ip()));
        if addresses.is_empty() {
            return Err(leads_to_private(origin, url));
        }
    }
    connect_any(&addresses, deadline).await.map_err(|e| {
        if e.kind() == io::ErrorKind::TimedOut {
            timed_out("connecting").with_cause(e)
        } else {
            Error::new(
                ErrorKind::Connect,
                url,
                format!("cannot connect to {} port {}", origin.host, origin.port),
            )
            .with_help("check that the server is running and that the port is right")
            .with_cause(e)
        }
    })
}

fn leads_to_private(origin: &Origin, url: &str) -> Error {
    let message = format!("the server leads to {}, which is a private address", origin.host);
    Error::new(ErrorKind::Redirect, url, message)
        .with_help("if the resource really is there, use its own URL")
}

/// Refuses a plainly private host in the URL; the proxy resolves other hosts.
fn refuse_private_behind_proxy(origin: &Origin, url: &str, public_only: bool) -> Result<(), Error> {
    let host = origin.host.trim_end_matches('.').to_ascii_lowercase();
    let private =
        host.parse().map_or(host == "localhost" || host.ends_with(".localhost"), is_private);
    if public_only && private { Err(leads_to_private(origin, url)) } else { Ok(()) }
}

/// Connects through a proxy, up to the server's first byte. An HTTP proxy forwards plain http
/// without a tunnel.
async fn through(
    shared: &Shared,
    proxy: &Proxy,
    origin: &Origin,
    tcp: Stream,
    url: &str,
    public_only: bool,
) -> Result<Stream, Error> {
    let mut stream = tcp;
    if proxy.speaks == ProxyProtocol::Https {
        let own = Origin::parse(&format!("https://{}:{}", bracketed(&proxy.host), proxy.port))?;
        stream = handshake(shared, &own, stream, url, false).await?;
    }
    match proxy.speaks {
        ProxyProtocol::Http | ProxyProtocol::Https if origin.https => {
            let authority = format!("{}:{}", bracketed(&origin.host), origin.port);
            http_connect(&mut stream, proxy, &authority, &shared.options.user_agent, url).await?;
        }
        ProxyProtocol::Http | ProxyProtocol::Https => {}
        ProxyProtocol::SocksNames => {
            stream = socks5(stream, proxy, &origin.host, origin.port, url).await?;
        }
        ProxyProtocol::Socks => {
            let mut addresses = resolve(shared, &origin.host, origin.port, url).await?;
            if public_only && shared.options.connect_to.is_empty() {
                addresses.retain(|address| !is_private(address.ip()));
            }
            let address = addresses.first().ok_or_else(|| leads_to_private(origin, url))?;
            stream = socks5(stream, proxy, &address.ip().to_string(), address.port(), url).await?;
        }
    }
    Ok(stream)
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

async fn resolve(
    shared: &Shared,
    host: &str,
    port: u16,
    url: &str,
) -> Result<Vec<SocketAddr>, Error> {
    let name = (host, port);
    let fixed: Vec<SocketAddr> = shared
        .options
        .connect_to
        .iter()
        .filter(|(from, _)| {
            from.rsplit_once(':').is_some_and(|(h, p)| h == name.0 && p.parse() == Ok(name.1))
        })
        .map(|(_, to)| *to)
        .collect();
    if !fixed.is_empty() {
        return Ok(fixed);
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let failed = || {
        Error::new(ErrorKind::Dns, url, format!("cannot resolve the host name `{host}`"))
            .with_help("check the spelling of the host and this machine's name servers")
    };
    let mut lookup = std::pin::pin!(tokio::net::lookup_host(name));
    let found = if let Ok(found) = tokio::time::timeout(SLOW_LOOKUP, lookup.as_mut()).await {
        found
    } else {
        tracing::warn!(
            "no answer yet from this machine's name servers about the host name `{host}`, still waiting"
        );
        lookup.await
    };
    let addresses: Vec<_> =
        found.map_err(|e| failed().with_cause(e))?.take(MAX_ADDRESSES).collect();
    if addresses.is_empty() { Err(failed()) } else { Ok(addresses) }
}

/// Whether an address cannot be reached from the Internet: this machine, its network, or its
/// provider's services.
fn is_private(address: IpAddr) -> bool {
    !is_global(address)
}

/// Tries each address with an equal share of the time left, so that a silent address does not
/// consume the time of the others.
pub(crate) async fn connect_any(
    addresses: &[SocketAddr],
    deadline: Instant,
) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for (tried, address) in addresses.iter().enumerate() {
        let now = Instant::now();
        let left = u32::try_from(addresses.len() - tried).unwrap_or(1);
        match timeout_at(now + deadline.duration_since(now) / left, TcpStream::connect(address))
            .await
        {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(e)) => last = e,
            Err(_) => last = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(last)
}

async fn handshake(
    shared: &Shared,
    origin: &Origin,
    stream: Stream,
    url: &str,
    may_be_http2: bool,
) -> Result<Stream, Error> {
    let mut config = shared.tls(origin).map_err(|e| e.with_url(url))?;
    if !may_be_http2 {
        config = without_http2(config);
    }
    let name = ServerName::try_from(origin.host.clone()).map_err(|e| {
        Error::new(ErrorKind::Tls, url, "the host name cannot be in a certificate").with_cause(e)
    })?;
    match TlsConnector::from(config).connect(name, stream).await {
        Ok(stream) => Ok(Stream::Tls(Box::new(stream))),
        Err(e) => Err(crate::transport::tls::failed(e, url)),
    }
}
