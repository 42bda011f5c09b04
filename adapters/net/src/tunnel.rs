//! How is a way through a proxy asked for? `CONNECT` and SOCKS 5.

use std::fmt::Write as _;
use std::io;
use std::net::IpAddr;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use crate::error::{Error, ErrorKind};
use crate::proxy::Proxy;

/// Longest answer to `CONNECT`.
const MAX_HEAD: usize = 8 << 10;

/// Asks an HTTP proxy for a connection to `authority`; the next byte is the server's.
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
    if let Some(value) = proxy.authorization().as_ref().and_then(|login| login.value().to_str().ok().map(str::to_owned))
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
        // Byte by byte, once a connection: what follows belongs to the server.
        head.push(stream.read_u8().await.map_err(|e| cut_off(url, e))?);
    }
    let status = std::str::from_utf8(&head).ok().and_then(|head| {
        head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.split(['\r', ' ']).next()?.parse::<u16>().ok()
    });
    match status {
        Some(200..=299) => Ok(()),
        Some(407) => Err(Error::new(ErrorKind::Proxy, url, "the proxy wants other credentials")
            .with_status(407, false, None)
            .with_help("give user and password in the proxy's URL: http://USER:PASSWORD@HOST:PORT")),
        Some(status) => Err(Error::new(ErrorKind::Proxy, url, format!("the proxy answered {status} to CONNECT"))
            .with_status(status, matches!(status, 429 | 502..=504), None)),
        None => Err(Error::new(ErrorKind::Proxy, url, "the proxy does not speak HTTP/1.1")),
    }
}

/// Asks a SOCKS 5 proxy for a connection to a host and port [rfc1928, rfc1929].
pub(crate) async fn socks5(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    proxy: &Proxy,
    host: &str,
    port: u16,
    url: &str,
) -> Result<(), Error> {
    let refuse = |message: String| Error::new(ErrorKind::Proxy, url, message);
    let cut = |e| cut_off(url, e);
    let methods: &[u8] = if proxy.login.is_some() { &[5, 2, 0, 2] } else { &[5, 1, 0] };
    stream.write_all(methods).await.map_err(cut)?;
    stream.flush().await.map_err(cut)?;
    let mut chosen = [0; 2];
    stream.read_exact(&mut chosen).await.map_err(cut)?;
    match (chosen, &proxy.login) {
        ([5, 0], _) => {}
        ([5, 2], Some((user, password))) => {
            let mut login = vec![1];
            for text in [user, password] {
                let length = u8::try_from(text.len()).map_err(|_| refuse("the proxy's login is too long".into()))?;
                login.push(length);
                login.extend_from_slice(text.as_bytes());
            }
            stream.write_all(&login).await.map_err(cut)?;
            stream.flush().await.map_err(cut)?;
            let mut answer = [0; 2];
            stream.read_exact(&mut answer).await.map_err(cut)?;
            if answer[1] != 0 {
                return Err(refuse("the proxy wants other credentials".into()).with_status(407, false, None));
            }
        }
        ([5, _], _) => {
            return Err(refuse("the proxy wants other credentials".into())
                .with_status(407, false, None)
                .with_help("give user and password in the proxy's URL: socks5h://USER:PASSWORD@HOST:PORT"));
        }
        _ => return Err(refuse("the proxy does not speak SOCKS 5".into())),
    }
    let mut request = vec![5, 1, 0];
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => {
            request.push(1);
            request.extend_from_slice(&address.octets());
        }
        Ok(IpAddr::V6(address)) => {
            request.push(4);
            request.extend_from_slice(&address.octets());
        }
        Err(_) => {
            request.push(3);
            request.push(u8::try_from(host.len()).map_err(|_| refuse("the host name is too long".into()))?);
            request.extend_from_slice(host.as_bytes());
        }
    }
    request.extend_from_slice(&port.to_be_bytes());
    stream.write_all(&request).await.map_err(cut)?;
    stream.flush().await.map_err(cut)?;
    let mut answer = [0; 4];
    stream.read_exact(&mut answer).await.map_err(cut)?;
    let bound = match answer {
        [5, 0, _, 1] => 4,
        [5, 0, _, 4] => 16,
        [5, 0, _, 3] => usize::from(stream.read_u8().await.map_err(cut)?),
        [5, reason, ..] => {
            let (what, passes) = match reason {
                2 => ("does not allow this connection", false),
                3 | 4 => ("cannot reach the server", true),
                5 => ("was refused by the server", true),
                6 => ("gave up waiting for the server", true),
                _ => ("failed", false),
            };
            let error = refuse(format!("the proxy {what} (SOCKS reply {reason})"));
            return Err(if passes { error.passing() } else { error });
        }
        _ => return Err(refuse("the proxy does not speak SOCKS 5".into())),
    };
    let mut rest = vec![0; bound + 2];
    stream.read_exact(&mut rest).await.map_err(cut)?;
    Ok(())
}

fn cut_off(url: &str, e: io::Error) -> Error {
    Error::new(ErrorKind::Proxy, url, "the proxy cut the connection off").passing().with_cause(e)
}
