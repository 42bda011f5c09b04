//! Connections through a proxy: `CONNECT` and SOCKS 5.
//!
//! `CONNECT` is implemented here, because the status of its response decides whether a retry is
//! useful (407, 429, 502 to 504).

use std::fmt::Write as _;
use std::io;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio_socks::Error as SocksError;
use tokio_socks::tcp::Socks5Stream;

use crate::address::error::{Error, ErrorKind};
use crate::settings::proxy::Proxy;
use crate::transport::connection::Stream;

/// Longest response to `CONNECT`, in bytes.
const MAX_HEAD: usize = 8 << 10;

/// Requests a connection to `authority` from an HTTP proxy. The next byte is the server's.
pub(crate) async fn http_connect(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    proxy: &Proxy,
    authority: &str,
    user_agent: &str,
    url: &str,
) -> Result<(), Error> {
    let mut request = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n");
    if user_agent.bytes().all(|b| matches!(b, b' '..=b'~')) {
        let _ = write!(request, "User-Agent: {user_agent}\r\n");
    }
    if let Some(value) = proxy
        .authorization()
        .as_ref()
        .and_then(|login| login.value().to_str().ok().map(str::to_owned))
    {
        let _ = write!(request, "Proxy-Authorization: {value}\r\n");
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await.map_err(|e| cut_off(url, e))?;
    stream.flush().await.map_err(|e| cut_off(url, e))?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= MAX_HEAD {
            return Err(Error::new(ErrorKind::Proxy, url, "the proxy's answer is too long"));
        }
        // Byte by byte, because the bytes after the head belong to the server. Once a connection,
        // so the cost is small.
        head.push(stream.read_u8().await.map_err(|e| cut_off(url, e))?);
    }
    let status = std::str::from_utf8(&head).ok().and_then(|head| {
        head.strip_prefix("HTTP/1.")?
            .split(' ')
            .nth(1)?
            .split(['\r', ' '])
            .next()?
            .parse::<u16>()
            .ok()
    });
    match status {
        Some(200..=299) => Ok(()),
        Some(407) => Err(Error::new(ErrorKind::Proxy, url, "the proxy wants other credentials")
            .with_status(407, false, None)
            .with_help(
                "give user and password in the proxy's URL: http://USER:PASSWORD@HOST:PORT",
            )),
        Some(status) => Err(Error::new(
            ErrorKind::Proxy,
            url,
            format!("the proxy answered {status} to CONNECT"),
        )
        .with_status(status, matches!(status, 429 | 502..=504), None)),
        None => Err(Error::new(ErrorKind::Proxy, url, "the proxy does not speak HTTP/1.1")),
    }
}

/// Requests a connection to a host and port from a SOCKS 5 proxy [rfc1928, rfc1929].
pub(crate) async fn socks5(
    stream: Stream,
    proxy: &Proxy,
    host: &str,
    port: u16,
    url: &str,
) -> Result<Stream, Error> {
    let asked = match &proxy.login {
        None => Socks5Stream::connect_with_socket(stream, (host, port)).await,
        Some((user, password)) => {
            Socks5Stream::connect_with_password_and_socket(stream, (host, port), user, password)
                .await
        }
    };
    asked.map(Socks5Stream::into_inner).map_err(|error| refused(error, url))
}

fn refused(error: SocksError, url: &str) -> Error {
    let refuse = |message: &str| Error::new(ErrorKind::Proxy, url, message);
    match error {
        SocksError::Io(error) => cut_off(url, error),
        SocksError::NoAcceptableAuthMethods
        | SocksError::UnknownAuthMethod
        | SocksError::AuthorizationRequired
        | SocksError::PasswordAuthFailure(_) => {
            refuse("the proxy wants other credentials").with_status(407, false, None).with_help(
                "give user and password in the proxy's URL: socks5h://USER:PASSWORD@HOST:PORT",
            )
        }
        SocksError::InvalidResponseVersion
        | SocksError::InvalidReservedByte
        | SocksError::UnknownAddressType => refuse("the proxy does not speak SOCKS 5"),
        SocksError::NetworkUnreachable
        | SocksError::HostUnreachable
        | SocksError::ConnectionRefused
        | SocksError::TtlExpired => {
            refuse("the proxy cannot reach the server").passing().with_cause(error)
        }
        error => refuse("the proxy refused the connection").with_cause(error),
    }
}

fn cut_off(url: &str, e: io::Error) -> Error {
    Error::new(ErrorKind::Proxy, url, "the proxy cut the connection off").passing().with_cause(e)
}
