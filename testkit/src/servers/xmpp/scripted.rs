//! A server that follows a script: without TLS it lets everybody log in, and each stanza is answered by a
//! function of the test.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

const HEADER: &str = "<?xml version='1.0'?><stream:stream xmlns='jabber:client' \
                      xmlns:stream='http://etherx.jabber.org/streams' version='1.0' id='1'>";

/// What ends a stream because of a stanza that is too large.
pub const POLICY_VIOLATION: &str = "<stream:error><policy-violation xmlns='urn:ietf:params:xml:ns:xmpp-streams'/></stream:error></stream:stream>";

type Answer = dyn FnMut(&str) -> String + Send;

/// Connections that are logged in.
type Streams = Arc<Mutex<Vec<TcpStream>>>;

/// The server. It runs until the test's process ends.
pub struct Scripted {
    address: String,
    streams: Streams,
}

impl Scripted {
    /// Starts the server: `answer` returns what is sent for each stanza. After `</stream:stream>` in it the
    /// connection is closed.
    pub fn start(answer: impl FnMut(&str) -> String + Send + 'static) -> Self {
        Self::with_limit(usize::MAX, answer)
    }

    /// The same; a stanza of more than `limit` bytes is not read to its end: the stream ends.
    pub fn with_limit(limit: usize, answer: impl FnMut(&str) -> String + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let answer: Arc<Mutex<Answer>> = Arc::new(Mutex::new(answer));
        let streams = Streams::default();
        let known = Arc::clone(&streams);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, known) = (Arc::clone(&answer), Arc::clone(&known));
                std::thread::spawn(move || serve(stream, limit, &answer, &known));
            }
        });
        Self { address, streams }
    }

    /// Sends a stanza on every connection that is logged in.
    pub fn send(&self, stanza: &str) {
        for mut stream in self.streams.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            // One that was closed is none any more.
            let _ = stream.write_all(stanza.as_bytes());
        }
    }

    /// Closes every connection that is logged in.
    pub fn disconnect(&self) {
        for stream in self.streams.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Its address, `127.0.0.1:port`.
    pub fn address(&self) -> String {
        self.address.clone()
    }
}

/// Serves one connection; `None` when it ends.
fn serve(
    mut stream: TcpStream,
    limit: usize,
    answer: &Mutex<Answer>,
    known: &Streams,
) -> Option<()> {
    let mut read = String::new();
    for (end, reply) in [
        (
            "version=",
            format!(
                "{HEADER}<stream:features><mechanisms xmlns='urn:ietf:params:xml:ns:xmpp-sasl'>\
                 <mechanism>PLAIN</mechanism></mechanisms></stream:features>"
            ),
        ),
        ("</auth>", "<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>".to_owned()),
        (
            "version=",
            format!(
                "{HEADER}<stream:features><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'/></stream:features>"
            ),
        ),
        (
            "</iq>",
            "<iq type='result' id='bind'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'>\
             <jid>source@xmpp.test/a</jid></bind></iq>"
                .to_owned(),
        ),
    ] {
        while !(read.contains(end) && read.ends_with('>')) {
            more(&mut stream, &mut read)?;
        }
        read.clear();
        stream.write_all(reply.as_bytes()).ok()?;
    }
    known.lock().unwrap_or_else(PoisonError::into_inner).push(stream.try_clone().ok()?);
    loop {
        let Some(end) = end_of(&read) else {
            if read.len() > limit {
                stream.write_all(POLICY_VIOLATION.as_bytes()).ok()?;
                return None;
            }
            more(&mut stream, &mut read)?;
            continue;
        };
        let stanza: String = read.drain(..end).collect();
        if stanza.starts_with("</") {
            return None;
        }
        let reply = if stanza.len() > limit {
            POLICY_VIOLATION.to_owned()
        } else {
            (answer.lock().unwrap_or_else(PoisonError::into_inner))(&stanza)
        };
        stream.write_all(reply.as_bytes()).ok()?;
        if reply.contains("</stream:stream>") {
            return None;
        }
    }
}

fn more(stream: &mut TcpStream, read: &mut String) -> Option<()> {
    let mut bytes = [0; 16 << 10];
    let count = stream.read(&mut bytes).ok().filter(|count| *count > 0)?;
    read.push_str(&String::from_utf8_lossy(&bytes[..count]));
    Some(())
}

/// Where the first stanza ends, if it is there.
fn end_of(read: &str) -> Option<usize> {
    let first = read.find('>')? + 1;
    if read.starts_with("</") || read[..first].ends_with("/>") {
        return Some(first);
    }
    let name = read[1..first].split([' ', '>']).next()?;
    let end = format!("</{name}>");
    read.find(&end).map(|at| at + end.len())
}

/// An attribute of a stanza.
pub fn attribute<'a>(stanza: &'a str, name: &str) -> &'a str {
    let start = format!(" {name}=\"");
    let value = stanza.split_once(&start).map_or("", |(_, rest)| rest);
    value.split('"').next().unwrap_or_default()
}

fn answer(stanza: &str, kind: &str, inside: &str) -> String {
    let (id, to) = (attribute(stanza, "id"), attribute(stanza, "to"));
    format!("<iq type='{kind}' id='{id}' from='{to}'>{inside}</iq>")
}

/// The answer to a request that succeeds.
pub fn result(stanza: &str, inside: &str) -> String {
    answer(stanza, "result", inside)
}

/// The answer to a request that fails.
pub fn error(stanza: &str, kind: &str, condition: &str) -> String {
    let inside = format!(
        "<error type='{kind}'><{condition} xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/></error>"
    );
    answer(stanza, "error", &inside)
}

/// The answer of a service that takes everything.
pub fn accept(stanza: &str) -> String {
    if !stanza.starts_with("<iq") {
        return String::new();
    }
    let service = "<query xmlns='http://jabber.org/protocol/disco#info'><identity category='pubsub' type='service'/></query>";
    result(stanza, if stanza.contains("disco#info") { service } else { "" })
}

/// The event of an item of a node; `payload` is its one element.
pub fn event(service: &str, node: &str, id: &str, payload: &str) -> String {
    format!(
        "<message from='{service}'><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='{node}'>\
         <item id='{id}'>{payload}</item></items></event></message>"
    )
}
