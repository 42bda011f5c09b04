//! A server that does what a test says: subscribers, topics and other hubs.

use abreast_testkit::http;
pub(crate) use abreast_testkit::http::Request as Got;
use std::collections::HashMap;
use std::io::Write;
use std::net::TcpStream;

/// What a hub sends, apart from questions.
pub(crate) trait Delivery {
    fn is_delivery(&self) -> bool;
    fn offset(&self) -> u64;
    /// Parameters of the query, decoded.
    fn query(&self) -> HashMap<String, String>;
}

impl Delivery for Got {
    fn is_delivery(&self) -> bool {
        self.method() == "POST"
    }

    fn offset(&self) -> u64 {
        self.header("abreast-offset").unwrap().parse().unwrap()
    }

    fn query(&self) -> HashMap<String, String> {
        let query = self.target().split_once('?').map_or("", |(_, query)| query);
        query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(k, v)| (decode(k), decode(v)))
            .collect()
    }
}

pub(crate) fn decode(text: &str) -> String {
    let (mut out, bytes) = (Vec::new(), text.as_bytes());
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'%' => {
                out.push(u8::from_str_radix(&text[at + 1..at + 3], 16).unwrap());
                at += 2;
            }
            b'+' => out.push(b' '),
            byte => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8(out).unwrap()
}

pub(crate) fn encode(text: &str) -> String {
    text.bytes()
        .map(|b| {
            if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") }
        })
        .collect()
}

/// What is answered.
#[derive(Clone)]
pub(crate) enum Reply {
    Status(u16),
    Full(u16, Vec<(&'static str, String)>, Vec<u8>),
    /// Nothing, until the other side goes away or the test ends.
    Hang,
    /// Bytes as they are; then the connection is closed.
    Raw(Vec<u8>),
    /// 200 and a body without end.
    Endless,
}

pub(crate) struct Server(http::Server);

impl Server {
    pub(crate) fn new(answer: impl Fn(&Got) -> Reply + Send + Sync + 'static) -> Self {
        Self(http::Server::new(move |got, stream| send(stream, got, answer(got)).unwrap_or(false)))
    }

    /// Confirms whatever it is asked and takes whatever it is sent.
    pub(crate) fn willing() -> Self {
        Self::confirming(|_| Reply::Status(204))
    }

    /// Confirms whatever it is asked; deliveries are answered as configured.
    pub(crate) fn confirming(answer: impl Fn(&Got) -> Reply + Send + Sync + 'static) -> Self {
        Self::new(move |got| if got.is_delivery() { answer(got) } else { confirm(got) })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        self.0.url(path)
    }

    pub(crate) fn seen(&self) -> Vec<Got> {
        self.0.seen()
    }

    pub(crate) fn connections(&self) -> usize {
        self.0.connections()
    }

    pub(crate) fn deliveries(&self) -> Vec<Got> {
        self.seen().into_iter().filter(Got::is_delivery).collect()
    }

    pub(crate) fn questions(&self) -> Vec<Got> {
        self.seen().into_iter().filter(|got| !got.is_delivery()).collect()
    }

    /// Waits until the requests so far are enough.
    pub(crate) fn wait(&self, what: &str, enough: impl Fn(&[Got]) -> bool) -> Vec<Got> {
        self.0.wait(what, enough)
    }

    pub(crate) fn wait_deliveries(&self, count: usize) -> Vec<Got> {
        let seen = self.wait(&format!("{count} deliveries"), |seen| {
            seen.iter().filter(|got| got.is_delivery()).count() >= count
        });
        seen.into_iter().filter(Got::is_delivery).collect()
    }

    pub(crate) fn wait_questions(&self, count: usize) -> Vec<Got> {
        let seen = self.wait(&format!("{count} questions"), |seen| {
            seen.iter().filter(|got| !got.is_delivery()).count() >= count
        });
        seen.into_iter().filter(|got| !got.is_delivery()).collect()
    }
}

/// The challenge as the answer.
pub(crate) fn confirm(got: &Got) -> Reply {
    let challenge = got.query().get("hub.challenge").cloned().unwrap_or_default();
    Reply::Full(
        200,
        vec![("Content-Type", "application/octet-stream".to_owned())],
        challenge.into_bytes(),
    )
}

/// Sends a reply; returns whether the connection is kept.
fn send(stream: &mut TcpStream, got: &Got, reply: Reply) -> std::io::Result<bool> {
    match reply {
        Reply::Status(status) => {
            write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\n\r\n")?;
        }
        Reply::Full(status, headers, body) => {
            let headers: String =
                headers.iter().flat_map(|(name, value)| [*name, ": ", value, "\r\n"]).collect();
            return Ok(http::send(stream, &format!("{status} X"), &headers, &body));
        }
        Reply::Raw(bytes) => {
            stream.write_all(&bytes)?;
            return Ok(false);
        }
        Reply::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
            loop {
                stream.write_all(&[b'x'; 8_192])?;
            }
        }
        Reply::Hang => {
            got.hold(stream);
            return Ok(false);
        }
    }
    Ok(true)
}
