//! A session: a connection, the requests that wait for responses, the received events.

use crate::account::{Account, SENT_MAX};
use crate::connect::{Stream, connect};
use crate::error::{Error, ErrorKind};
use crate::events::{self, Event};
use crate::stanza::{Stanza, escaped};
use futures_util::StreamExt as _;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio_xmpp::minidom::Element;
use tokio_xmpp::xmlstream::ReadError;

/// Most requests that wait to be written.
const REQUESTS: usize = 16;
/// Most events that wait to be read. Further events are dropped, and the reader is notified with
/// [`Event::Missed`].
const EVENTS: usize = 32;
/// Most bytes of waiting events; a single event is not larger than a stanza.
const EVENT_BYTES: usize = 8 << 20;
/// How long a stanza may take to be written.
const WRITE_TIME: Duration = Duration::from_secs(30);
/// How long the end of the stream may take to be written.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// A connection to a server, for requests. It is closed on drop.
#[derive(Debug)]
pub struct Session {
    requests: mpsc::Sender<Request>,
    ended: Arc<OnceLock<Error>>,
    jid: String,
    request_timeout: Duration,
    max_sent: usize,
    /// Items that a new node stores.
    pub(crate) kept_items: u32,
    number: AtomicU64,
}

/// The events that a session receives.
#[derive(Debug)]
pub struct Events {
    arrived: mpsc::Receiver<Event>,
    /// Bytes of the waiting events.
    bytes: Arc<AtomicUsize>,
    missed: Arc<AtomicBool>,
    ended: Arc<OnceLock<Error>>,
}

/// A stanza to be written, and the task that waits for the answer.
#[derive(Debug)]
struct Request {
    stanza: Vec<u8>,
    answer: Option<(String, Waiting)>,
}

/// A request that waits for its response.
#[derive(Debug)]
struct Waiting {
    from: String,
    /// The length of the request.
    length: usize,
    answer: oneshot::Sender<Result<Element, Error>>,
}

impl Session {
    /// Connects and logs in. Events are accepted from `service` only. Returns an error within the
    /// account's time limit, and never reconnects.
    ///
    /// # Errors
    /// No connection, no secure one, or the account is not accepted.
    pub async fn connect(account: &Account, service: &str) -> Result<(Self, Events), Error> {
        let stream = connect(account).await?;
        let (requests, to_do) = mpsc::channel(REQUESTS);
        let (sender, arrived) = mpsc::channel(EVENTS);
        let (ended, missed) = (Arc::new(OnceLock::new()), Arc::new(AtomicBool::new(false)));
        let bytes = Arc::new(AtomicUsize::new(0));
        let session = Self {
            requests,
            ended: Arc::clone(&ended),
            jid: stream.jid.clone(),
            request_timeout: account.request_timeout,
            max_sent: account.max_sent.min(SENT_MAX),
            kept_items: account.kept_items,
            number: AtomicU64::new(0),
        };
        let link = Link {
            stream,
            server: account.server(),
            service: service.to_owned(),
            waiting: HashMap::new(),
            events: sender,
            bytes: Arc::clone(&bytes),
            missed: Arc::clone(&missed),
            asked: false,
        };
        let why = Arc::clone(&ended);
        tokio::spawn(async move {
            let mut link = link;
            let error = link.run(to_do).await;
            // Requests that were not written yet were not refused: their callers may retry them.
            let _ = why.set(match error.kind() {
                ErrorKind::TooLarge => Error::new(ErrorKind::Connection, error.message()),
                _ => error.clone(),
            });
            link.give_up(&error);
            let close = link.stream.wire.write(b"</stream:stream>");
            let _ = tokio::time::timeout(CLOSE_TIME, close).await;
        });
        Ok((session, Events { arrived, bytes, missed, ended }))
    }

    /// Address of the account, without the resource.
    pub(crate) fn bare(&self) -> &str {
        self.jid.split('/').next().unwrap_or_default()
    }

    /// The domain of the account's server.
    pub(crate) fn domain(&self) -> &str {
        self.bare().rsplit('@').next().unwrap_or_default()
    }

    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// Sends a request and returns the response.
    pub(crate) async fn request(
        &self,
        to: &str,
        kind: &str,
        payload: &[u8],
    ) -> Result<Element, Error> {
        let id = self.number.fetch_add(1, Relaxed).to_string();
        let mut stanza =
            format!("<iq type=\"{kind}\" to=\"{}\" id=\"{id}\">", escaped(to)).into_bytes();
        stanza.extend_from_slice(payload);
        stanza.extend_from_slice(b"</iq>");
        self.check_size(stanza.len())?;
        let (answer, answered) = oneshot::channel();
        let waiting = Waiting { from: to.to_owned(), length: stanza.len(), answer };
        let exchange = async {
            self.send(stanza, Some((id, waiting))).await?;
            answered.await.unwrap_or_else(|_| Err(self.why()))
        };
        let answer =
            tokio::time::timeout(self.request_timeout, exchange).await.unwrap_or_else(|_| {
                let seconds = self.request_timeout.as_secs_f32();
                let message = format!("{to} did not answer within {seconds} s");
                Err(Error::new(ErrorKind::Timeout, message).with_help(
                    "check that the service runs; the server may have put the request aside",
                ))
            })?;
        Stanza::of(&answer).result(to)?;
        Ok(answer)
    }

    /// Checks the size of a stanza, or of its part.
    pub(crate) fn check_size(&self, bytes: usize) -> Result<(), Error> {
        if bytes <= self.max_sent {
            return Ok(());
        }
        let message = format!("a stanza of {bytes} bytes is larger than {}", self.max_sent);
        Err(Error::new(ErrorKind::TooLarge, message))
    }

    pub(crate) async fn announce(&self, stanza: &str) -> Result<(), Error> {
        self.send(stanza.as_bytes().to_vec(), None).await
    }

    async fn send(&self, stanza: Vec<u8>, answer: Option<(String, Waiting)>) -> Result<(), Error> {
        self.requests.send(Request { stanza, answer }).await.map_err(|_| self.why())
    }

    fn why(&self) -> Error {
        why(&self.ended)
    }
}

impl Events {
    /// The next event.
    ///
    /// # Errors
    /// The connection has ended; the error contains the reason.
    pub async fn next(&mut self) -> Result<Event, Error> {
        // Events that arrived before the loss are returned first.
        if let Ok(event) = self.arrived.try_recv() {
            return Ok(self.taken(event));
        }
        if self.missed.swap(false, Relaxed) {
            return Ok(Event::Missed);
        }
        let event = self.arrived.recv().await.ok_or_else(|| why(&self.ended))?;
        Ok(self.taken(event))
    }

    /// Frees the bytes of an event that was read.
    fn taken(&self, event: Event) -> Event {
        self.bytes.fetch_sub(event.length(), Relaxed);
        event
    }
}

fn why(ended: &OnceLock<Error>) -> Error {
    ended
        .get()
        .cloned()
        .unwrap_or_else(|| Error::new(ErrorKind::Connection, "the session has ended"))
}

/// The task that owns the connection.
struct Link {
    stream: Stream,
    server: String,
    service: String,
    waiting: HashMap<String, Waiting>,
    events: mpsc::Sender<Event>,
    bytes: Arc<AtomicUsize>,
    missed: Arc<AtomicBool>,
    /// Whether the server was pinged.
    asked: bool,
}

impl Link {
    /// Runs until the connection ends, and returns why.
    async fn run(&mut self, mut requests: mpsc::Receiver<Request>) -> Error {
        loop {
            let step = tokio::select! {
                element = self.stream.elements.next() => self.received(element).await,
                request = requests.recv() => match request {
                    Some(request) => self.send(request).await,
                    None => return Error::new(ErrorKind::Connection, "the session was closed"),
                },
            };
            if let Err(error) = step {
                requests.close();
                return error;
            }
        }
    }

    async fn send(&mut self, request: Request) -> Result<(), Error> {
        // Remove requests whose callers stopped waiting, so that the table does not grow.
        self.waiting.retain(|_, waiting| !waiting.answer.is_closed());
        if let Some((id, waiting)) = request.answer {
            if waiting.answer.is_closed() {
                return Ok(());
            }
            self.waiting.insert(id, waiting);
        }
        let failed = match self.write(&request.stanza).await {
            Ok(()) => return Ok(()),
            Err(failed) => failed,
        };
        // A server that refuses a stanza reports this before it closes the connection: read its
        // last elements.
        let reported = async {
            loop {
                match self.stream.elements.next().await {
                    Some(Ok(element)) => self.stanza(element).await?,
                    Some(Err(ReadError::ParseError(_))) => {}
                    _ => return Ok(()),
                }
            }
        };
        let reported = tokio::time::timeout(CLOSE_TIME, reported).await;
        Err(reported.ok().and_then(Result::err).unwrap_or(failed))
    }

    /// Ends all waiting requests with an error. If the server refused a stanza as too large, only
    /// the largest unanswered request gets this error: it is at least as large as the refused one.
    fn give_up(&mut self, error: &Error) {
        let largest = self.waiting.values().map(|waiting| waiting.length).max();
        for (_, waiting) in self.waiting.drain() {
            let is_refused = error.kind() == ErrorKind::TooLarge;
            let error = if is_refused && Some(waiting.length) != largest {
                let message = format!("{}, because of another request", error.message());
                Error::new(ErrorKind::Connection, message)
            } else {
                error.clone()
            };
            let _ = waiting.answer.send(Err(error));
        }
    }

    async fn write(&mut self, stanza: &[u8]) -> Result<(), Error> {
        match tokio::time::timeout(WRITE_TIME, self.stream.wire.write(stanza)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.broken(&error)),
            Err(_) => Err(self.broken(&"it takes nothing")),
        }
    }

    async fn received(&mut self, element: Option<Result<Element, ReadError>>) -> Result<(), Error> {
        self.stream.wire.renew();
        match element {
            Some(Ok(element)) => {
                self.asked = false;
                self.stanza(element).await
            }
            Some(Err(ReadError::SoftTimeout)) if !self.asked => {
                self.asked = true;
                self.write(b"<iq type=\"get\" id=\"ping\"><ping xmlns=\"urn:xmpp:ping\"/></iq>")
                    .await
            }
            Some(Err(ReadError::SoftTimeout)) => Err(self.broken(&"it is silent")),
            Some(Err(ReadError::HardError(error))) => Err(self.broken(&error)),
            Some(Err(ReadError::ParseError(error))) => {
                tracing::debug!(%error, "a stanza cannot be read");
                Ok(())
            }
            Some(Err(ReadError::StreamFooterReceived)) | None => {
                Err(self.broken(&"it closed the connection"))
            }
        }
    }

    async fn stanza(&mut self, element: Element) -> Result<(), Error> {
        let stanza = Stanza::of(&element);
        if let Some((condition, text)) = stanza.stream_error() {
            let kind = match condition.as_str() {
                "policy-violation" => ErrorKind::TooLarge,
                "not-authorized" => ErrorKind::Login,
                _ => ErrorKind::Connection,
            };
            let message =
                format!("the XMPP server {} ended the connection: {condition}{text}", self.server);
            return Err(Error::new(kind, message));
        }
        let id = stanza.attribute("id");
        if self.waiting.get(id).is_some_and(|waiting| {
            stanza.is_answer_to(id) && stanza.attribute("from").eq_ignore_ascii_case(&waiting.from)
        }) {
            if let Some(waiting) = self.waiting.remove(id) {
                let _ = waiting.answer.send(Ok(element));
            }
            return Ok(());
        }
        if stanza.is("iq") && matches!(stanza.attribute("type"), "get" | "set") {
            let (id, to) = (escaped(id), escaped(stanza.attribute("from")));
            let to = if to.is_empty() { to } else { format!(" to=\"{to}\"") };
            let answer = if element.has_child("ping", "urn:xmpp:ping") {
                format!("<iq type=\"result\" id=\"{id}\"{to}/>")
            } else {
                format!(
                    "<iq type=\"error\" id=\"{id}\"{to}><error type=\"cancel\"><service-unavailable \
                     xmlns=\"urn:ietf:params:xml:ns:xmpp-stanzas\"/></error></iq>"
                )
            };
            return self.write(answer.as_bytes()).await;
        }
        // Stanzas from other senders are ignored: anybody may send a message that resembles an
        // event.
        if stanza.is("message") && stanza.attribute("from").eq_ignore_ascii_case(&self.service) {
            for event in events::events(&element) {
                // After a lost event, no further ones are queued until the reader was notified of
                // the loss.
                let length = event.length();
                let has_room = self.bytes.load(Relaxed).saturating_add(length) <= EVENT_BYTES;
                if has_room && !self.missed.load(Relaxed) {
                    self.bytes.fetch_add(length, Relaxed);
                    if self.events.try_send(event).is_ok() {
                        continue;
                    }
                    self.bytes.fetch_sub(length, Relaxed);
                }
                self.missed.store(true, Relaxed);
            }
        }
        Ok(())
    }

    fn broken(&self, error: &dyn std::fmt::Display) -> Error {
        let error = error.to_string();
        // The TLS library reports a missing `close_notify`.
        let error =
            if error.contains("close_notify") { "it was closed without notice" } else { &error };
        let error = abreast_webtypes::visible(error);
        Error::new(
            ErrorKind::Connection,
            format!("the connection to the XMPP server {} ended: {error}", self.server),
        )
    }
}
