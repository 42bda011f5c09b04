//! From an address to a logged-in stream: TCP, TLS, SASL, the resource [rfc6120 §13].

use crate::account::Account;
use crate::error::{Error, ErrorKind};
use crate::stanza::{Elements, Stanza, in_parentheses};
use crate::tls;
use crate::wire::{Connection, Shared, Wire};
use futures_util::{SinkExt as _, StreamExt as _};
use sasl::common::{ChannelBinding, Credentials};
use std::borrow::Cow;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_xmpp::error::AuthError;
use tokio_xmpp::minidom::Element;
use tokio_xmpp::parsers::ns;
use tokio_xmpp::parsers::starttls::{Nonza, Request};
use tokio_xmpp::parsers::stream_error::{DefinedCondition, ReceivedStreamError};
use tokio_xmpp::xmlstream::{
    FallibleStreamElement, PendingFeaturesRecv, RecvFeaturesError, StreamHeader, Timeouts,
    XmppStream, XmppStreamElement, initiate_stream,
};

/// Most addresses of a server that are tried.
const ADDRESSES: usize = 8;

/// A logged-in stream.
pub(crate) struct Stream {
    pub(crate) elements: Elements,
    pub(crate) wire: Shared,
    /// Address of the account, with the resource.
    pub(crate) jid: String,
}

/// Connects and logs in, within the time limit of the account.
pub(crate) async fn connect(account: &Account) -> Result<Stream, Error> {
    let limit = account.connect_timeout;
    tokio::time::timeout(limit, connect_now(account)).await.unwrap_or_else(|_| {
        let message = format!(
            "the XMPP server {} did not answer within {} s",
            account.server(),
            limit.as_secs_f32()
        );
        Err(Error::new(ErrorKind::Timeout, message).with_help(
            "name the port where clients of XMPP begin without TLS, usually 5222: `server` (--xmpp-server)",
        ))
    })
}

async fn connect_now(account: &Account) -> Result<Stream, Error> {
    let server = account.server();
    let (stream, address) = dial(account, &server).await?;
    let wire = Wire::new(Connection::Plain(stream), account.max_received);
    let pending = open(wire, account).await?;
    let (features, stream) =
        pending.recv_features().await.map_err(|error| refused(account, &error))?;
    let (features, stream) = if features.can_starttls() {
        let stream = start_tls(stream, account).await?;
        let wire = Wire::new(Connection::Secure(Box::new(stream)), account.max_received);
        let pending = open(wire, account).await?;
        pending.recv_features().await.map_err(|error| refused(account, &error))?
    } else if address.ip().is_loopback() {
        (features, stream)
    } else {
        let message = format!("the XMPP server {server} offers no TLS");
        return Err(Error::new(ErrorKind::Tls, message).with_help(
            "switch TLS on at the server; without it only servers on this machine are used",
        ));
    };
    let credentials = Credentials::default()
        .with_username(account.jid.node().map_or("", |node| node.as_str()))
        .with_password(account.password.as_str())
        .with_channel_binding(ChannelBinding::None);
    let stream = tokio_xmpp::client_login(stream, features.sasl_mechanisms, credentials)
        .await
        .map_err(|error| not_logged_in(account, error))?;
    let pending =
        stream.send_header(header(account)).await.map_err(|error| broken(account, &error))?;
    let (_, elements) =
        pending.recv_features::<Element>().await.map_err(|error| refused(account, &error))?;
    bind(elements, account).await
}

/// Connects to the first address of the server that accepts the connection.
async fn dial(account: &Account, server: &str) -> Result<(TcpStream, SocketAddr), Error> {
    let failed = |error: std::io::Error| {
        Error::new(
            ErrorKind::Connection,
            format!("cannot connect to the XMPP server {server}: {error}"),
        )
        .with_help(
            "check that it runs and can be reached; `server` (--xmpp-server) names another host and port",
        )
    };
    let found = tokio::net::lookup_host(server).await.map_err(failed)?;
    let addresses: Vec<_> = found.take(ADDRESSES).collect();
    let (stream, address) = first(&addresses, account.connect_timeout).await.map_err(failed)?;
    stream.set_nodelay(true).map_err(failed)?;
    Ok((stream, address))
}

/// The first address that accepts a connection. All share three quarters of the time, so that an
/// unresponsive address leaves time for the others, and for the login.
async fn first(
    addresses: &[SocketAddr],
    time: Duration,
) -> std::io::Result<(TcpStream, SocketAddr)> {
    let share = time * 3 / 4 / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
    let mut last = std::io::Error::other("it has no address");
    for address in addresses {
        match tokio::time::timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok((stream, *address)),
            Ok(Err(error)) => last = error,
            Err(_) => {
                last = std::io::Error::new(
                    std::io::ErrorKind::TimedOut,
                    format!("{address} did not answer within {} s", share.as_secs_f32()),
                );
            }
        }
    }
    Err(last)
}

fn header(account: &Account) -> StreamHeader<'_> {
    let to = Some(Cow::Borrowed(account.jid.domain().as_str()));
    StreamHeader { to, from: None, id: None }
}

async fn open(wire: Wire, account: &Account) -> Result<PendingFeaturesRecv<Wire>, Error> {
    let timeouts =
        Timeouts { read_timeout: account.silence, response_timeout: account.silence / 4 };
    initiate_stream(wire, ns::JABBER_CLIENT, header(account), timeouts)
        .await
        .map_err(|error| broken(account, &error))
}

async fn start_tls(
    mut stream: XmppStream<Wire>,
    account: &Account,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, Error> {
    let no_tls = |why: &str| {
        Error::new(
            ErrorKind::Tls,
            format!("the XMPP server {} does not begin TLS: {why}", account.server()),
        )
    };
    let request = XmppStreamElement::Starttls(Nonza::Request(Request));
    stream.send(&request).await.map_err(|error| broken(account, &error))?;
    let answer = stream.next().await.ok_or_else(|| no_tls("it closed the connection"))?;
    let answer = answer.and_then(FallibleStreamElement::into_read_error);
    match answer.map_err(|error| broken(account, &error))? {
        XmppStreamElement::Starttls(Nonza::Proceed(_)) => {}
        _ => return Err(no_tls("it refuses")),
    }
    match stream.into_inner().into_connection() {
        Some(Connection::Plain(stream)) => tls::secure(stream, account).await,
        // Unprotected bytes must not be treated as protected.
        _ => Err(no_tls("it sent more than its answer")),
    }
}

/// Binds a resource that the server chooses.
async fn bind(
    mut elements: tokio_xmpp::xmlstream::XmlStream<Wire, Element>,
    account: &Account,
) -> Result<Stream, Error> {
    let mut wire = elements.get_stream().shared();
    let request = format!("<iq type=\"set\" id=\"bind\"><bind xmlns=\"{}\"/></iq>", ns::BIND);
    wire.write(request.as_bytes()).await.map_err(|error| broken(account, &error))?;
    loop {
        let element =
            elements.next().await.ok_or_else(|| broken(account, &"it closed the connection"))?;
        let element = element.map_err(|error| broken(account, &error))?;
        wire.renew();
        let stanza = Stanza::of(&element);
        if stanza.is_answer_to("bind") {
            stanza.result(account.jid.domain().as_str())?;
            let bound = element
                .get_child("bind", ns::BIND)
                .and_then(|bind| bind.get_child("jid", ns::BIND));
            let jid = bound.map(Element::text).filter(|jid| !jid.is_empty());
            let jid = jid.ok_or_else(|| broken(account, &"it binds no resource"))?;
            return Ok(Stream { elements, wire, jid });
        }
    }
}

fn not_logged_in(account: &Account, error: tokio_xmpp::Error) -> Error {
    let (address, server) = (account.address(), account.server());
    let why = match error {
        tokio_xmpp::Error::Auth(AuthError::Fail(condition)) => name_of(&format!("{condition:?}")),
        tokio_xmpp::Error::Auth(AuthError::NoMechanism) => {
            "it offers no way to log in that is supported (SCRAM-SHA-256, SCRAM-SHA-1, PLAIN)"
                .to_owned()
        }
        tokio_xmpp::Error::Auth(AuthError::Sasl(error)) => {
            abreast_webtypes::visible(&error.to_string()).into_owned()
        }
        other => return broken(account, &other),
    };
    Error::new(
        ErrorKind::Login,
        format!("the XMPP server {server} does not accept {address}: {why}"),
    )
    .with_help("check the address and the password")
}

/// The name of a condition from the name of its variant: `not-authorized` from `NotAuthorized`.
fn name_of(variant: &str) -> String {
    let mut name = String::with_capacity(variant.len() + 2);
    for character in variant.chars() {
        if character.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(character.to_ascii_lowercase());
    }
    name
}

/// Error for a stream that the server did not open.
fn refused(account: &Account, error: &RecvFeaturesError) -> Error {
    let RecvFeaturesError::StreamError(ReceivedStreamError(stream)) = error else {
        return broken(account, error);
    };
    let text = stream.get_best_text(vec!["en"]).map(|(_, text)| text.as_str());
    let (condition, text) = (&stream.condition, in_parentheses(text));
    let (address, server) = (account.address(), account.server());
    if *condition == DefinedCondition::HostUnknown {
        let message =
            format!("the XMPP server {server} has no domain of {address}: {condition}{text}");
        return Error::new(ErrorKind::Login, message).with_help(
            "check the address of the account, and whether `server` (--xmpp-server) is the server of its domain",
        );
    }
    let message = format!("the XMPP server {server} ended the connection: {condition}{text}");
    Error::new(ErrorKind::Connection, message)
}

fn broken(account: &Account, error: &dyn std::fmt::Display) -> Error {
    let error = error.to_string();
    let error = abreast_webtypes::visible(&error);
    Error::new(
        ErrorKind::Connection,
        format!("the connection to the XMPP server {} failed: {error}", account.server()),
    )
    .with_help("check that `server` (--xmpp-server) is the address of an XMPP server for clients")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpSocket;

    #[tokio::test]
    async fn an_address_that_does_not_answer_leaves_time_for_the_next() {
        let full = TcpSocket::new_v4().unwrap();
        full.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let full = full.listen(1).unwrap();
        let silent = full.local_addr().unwrap();
        // Once its queue is full, further connections are not answered.
        let mut queue = Vec::new();
        let wait = Duration::from_millis(200);
        while let Ok(stream) = tokio::time::timeout(wait, TcpStream::connect(silent)).await {
            queue.push(stream.unwrap());
        }
        let good = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let good = good.local_addr().map(|address| (good, address)).unwrap();
        let found = first(&[silent, good.1], Duration::from_millis(800)).await.unwrap();
        assert_eq!(found.1, good.1);
        let error = first(&[silent], Duration::from_millis(200)).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "{error}");
        assert!(first(&[], Duration::from_secs(1)).await.is_err());
    }
}
