//! The smallest HTTP client that polls a document or posts one: one kept connection, no allocation
//! to speak of.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;
use tokio::net::TcpSocket;

/// A connection that asks one server.
pub(crate) struct Http {
    stream: BufReader<TcpStream>,
    host: String,
}

/// A response.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) tag: Option<String>,
    pub(crate) body: Vec<u8>,
}

impl Http {
    /// Connects to `http://HOST:PORT/`.
    pub(crate) fn connect(base: &str) -> Result<Self> {
        let host = base.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let stream =
            TcpStream::connect(&host).with_context(|| format!("cannot connect to {host}"))?;
        Self::over(stream, host)
    }

    /// Connects from one address of this machine.
    pub(crate) fn connect_from(client: Ipv4Addr, server: SocketAddr) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let stream = runtime.block_on(async {
            let socket = TcpSocket::new_v4()?;
            socket.bind((client, 0).into())?;
            socket.connect(server).await?.into_std()
        });
        let stream = stream.with_context(|| format!("cannot connect to {server} from {client}"))?;
        stream.set_nonblocking(false)?;
        Self::over(stream, server.to_string())
    }

    fn over(stream: TcpStream, host: String) -> Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(120)))?;
        Ok(Self { stream: BufReader::new(stream), host })
    }

    /// GETs a path; `header` is nothing or whole lines.
    pub(crate) fn get(&mut self, path: &str, header: &str) -> Result<Answer> {
        self.ask(&format!("GET {path}"), header, &[])
    }

    /// POSTs a body to a path; `header` is whole lines.
    pub(crate) fn post(&mut self, path: &str, header: &str, body: &[u8]) -> Result<Answer> {
        self.send("POST", path, header, body)
    }

    /// PUTs a body to a path; `header` is whole lines.
    pub(crate) fn put(&mut self, path: &str, header: &str, body: &[u8]) -> Result<Answer> {
        self.send("PUT", path, header, body)
    }

    fn send(&mut self, method: &str, path: &str, header: &str, body: &[u8]) -> Result<Answer> {
        let header = format!("{header}Content-Length: {}\r\n", body.len());
        self.ask(&format!("{method} {path}"), &header, body)
    }

    fn ask(&mut self, what: &str, header: &str, body: &[u8]) -> Result<Answer> {
        let mut request =
            format!("{what} HTTP/1.1\r\nHost: {}\r\n{header}\r\n", self.host).into_bytes();
        request.extend_from_slice(body);
        self.stream.get_mut().write_all(&request)?;
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        let status = line.split(' ').nth(1).and_then(|text| text.parse().ok());
        let status: u16 =
            status.with_context(|| format!("{what}: the server answered `{}`", line.trim_end()))?;
        let (mut length, mut chunked, mut tag) = (0, false, None);
        loop {
            line.clear();
            if self.stream.read_line(&mut line)? == 0 {
                bail!("{what}: the connection ended in the header");
            }
            let Some((name, value)) = line.trim_end().split_once(':') else { break };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse()?,
                "transfer-encoding" => chunked = true,
                "etag" => tag = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        let mut body = Vec::new();
        if chunked {
            loop {
                line.clear();
                self.stream.read_line(&mut line)?;
                let size = usize::from_str_radix(line.trim(), 16)?;
                let at = body.len();
                body.resize(at + size, 0);
                self.stream.read_exact(&mut body[at..])?;
                line.clear();
                self.stream.read_line(&mut line)?;
                if size == 0 {
                    break;
                }
            }
        } else if !matches!(status, 204 | 304) {
            body.resize(length, 0);
            self.stream.read_exact(&mut body)?;
        }
        Ok(Answer { status, tag, body })
    }

    /// GETs a path that must be there.
    pub(crate) fn get_ok(&mut self, path: &str) -> Result<Vec<u8>> {
        let answer = self.get(path, "")?;
        if answer.status != 200 {
            bail!("GET {path}: {}", answer.status);
        }
        Ok(answer.body)
    }
}

/// Every `<loc>` of a document.
pub(crate) fn locs(document: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(document);
    text.split("<loc>")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once("</loc>")?.0.to_owned()))
        .collect()
}

/// The path of a URL.
pub(crate) fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("/", |slash| &rest[slash..])
}
