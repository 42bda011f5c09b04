//! The sender with servers that choose HTTP/2.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use abreast_net::{
    Answer, BodyWanted, Error, HeaderLines, HeaderMap, Message, Method, Sender, SenderOptions,
};
use abreast_testkit::http::Server;
use h2::Reason;
use tokio::net::TcpListener;
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::http2::{Trust, answer, answer_all};

fn sender(trust: &Trust, options: SenderOptions) -> Sender {
    let extra_roots = Some(trust.roots.clone());
    Sender::new(SenderOptions { public_only: false, extra_roots, ..options }).unwrap()
}

fn trust() -> Trust {
    Trust::of("127.0.0.1")
}

async fn send(
    sender: &Sender,
    method: Method,
    address: SocketAddr,
    want: BodyWanted,
) -> Result<Answer, Error> {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "text/plain".parse().unwrap());
    let mut common = HeaderMap::new();
    common.append("link", "<http://e/a>; rel=\"hub\"".parse().unwrap());
    common.append("link", "<http://e/b>; rel=\"self\"".parse().unwrap());
    let common = HeaderLines::from(&common);
    let message = Message { headers, common: Some(&common), body: "news".into() };
    let to = sender.recipient(&format!("https://{address}/callback?a=%20"))?;
    sender.exchange(&to, &method, message, want).await
}

async fn post(sender: &Sender, address: SocketAddr) -> Result<Answer, Error> {
    send(sender, Method::POST, address, BodyWanted::Nothing(4_096)).await
}

#[tokio::test]
async fn messages_to_an_origin_share_a_connection() {
    const MESSAGES: usize = 20;
    let trust = trust();
    let all = Arc::new(Barrier::new(MESSAGES));
    let (address, connections) = trust
        .serve(move |_, requests| {
            let (all, number) = (Arc::clone(&all), Arc::new(AtomicUsize::new(0)));
            answer_all(requests, move |request, to| {
                let (all, is_first) = (Arc::clone(&all), number.fetch_add(1, SeqCst) == 0);
                async move {
                    let (head, mut body) = request.into_parts();
                    assert_eq!((head.method.as_str(), head.uri.path()), ("POST", "/callback"));
                    assert_eq!(head.uri.query(), Some("a=%20"));
                    assert_eq!(head.uri.scheme_str(), Some("https"));
                    assert_eq!(head.headers.get_all("link").iter().count(), 2);
                    assert_eq!(head.headers["content-type"], "text/plain");
                    assert_eq!(head.headers["content-length"], "4");
                    assert!(head.headers["user-agent"].to_str().unwrap().starts_with("abreast/"));
                    assert_eq!(body.data().await.unwrap().unwrap(), "news");
                    if !is_first {
                        all.wait().await;
                    }
                    answer(to, "ignored").await;
                }
            })
        })
        .await;
    let sender = sender(&trust, SenderOptions::default());
    assert_eq!(post(&sender, address).await.unwrap().status, 200);
    let mut sent = JoinSet::new();
    for _ in 0..MESSAGES {
        let sender = sender.clone();
        sent.spawn(async move { post(&sender, address).await.unwrap() });
    }
    while let Some(answer) = sent.join_next().await {
        let answer = answer.unwrap();
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b""[..]));
        assert!(answer.headers.is_empty());
    }
    assert_eq!(connections.load(SeqCst), 1);
}

#[tokio::test]
async fn answers_have_the_limits_of_http_1_1() {
    let trust = trust();
    let (address, connections) = trust
        .serve(|_, requests| answer_all(requests, |_, to| answer(to, vec![b'x'; 100_000])))
        .await;
    let sender = sender(&trust, SenderOptions::default());
    let get = async |most| send(&sender, Method::GET, address, most).await;
    assert_eq!(get(BodyWanted::Whole(100_000)).await.unwrap().body.len(), 100_000);
    assert_eq!(get(BodyWanted::Whole(99_999)).await.unwrap_err().code(), "http.size");
    assert_eq!(get(BodyWanted::Nothing(10)).await.unwrap().status, 200);
    assert_eq!(connections.load(SeqCst), 1);
}

#[tokio::test]
async fn a_connection_that_ended_is_replaced_at_once() {
    let trust = trust();
    let (address, connections) = trust
        .serve(|_, mut requests| async move {
            let (_, to) = requests.accept().await.unwrap().unwrap();
            requests.graceful_shutdown();
            let refuse = async {
                while let Some(Ok((_, mut to))) = requests.accept().await {
                    to.send_reset(Reason::REFUSED_STREAM);
                }
            };
            tokio::join!(answer(to, "bye"), refuse);
        })
        .await;
    let sender = sender(&trust, SenderOptions::default());
    for number in 1..=6 {
        assert_eq!(post(&sender, address).await.unwrap().status, 200);
        assert_eq!(connections.load(SeqCst), number);
        // The end has arrived, or not.
        tokio::time::sleep(Duration::from_millis(20 * (number % 2) as u64)).await;
    }
}

#[tokio::test]
async fn a_server_that_requires_http_1_1_gets_it() {
    let trust = trust();
    let old = Server::script(&["HTTP/1.1 204 No Content\r\n\r\n"]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let accept = TlsAcceptor::from(trust.certificate.speaking(&["h2", "http/1.1"]));
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    let behind = old.address();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let accept = accept.clone();
            counted.fetch_add(1, SeqCst);
            tokio::spawn(async move {
                let mut stream = accept.accept(stream).await.unwrap();
                if stream.get_ref().1.alpn_protocol() == Some(b"h2") {
                    let mut requests = h2::server::handshake(stream).await.unwrap();
                    while let Some(Ok((_, mut to))) = requests.accept().await {
                        to.send_reset(Reason::HTTP_1_1_REQUIRED);
                    }
                } else {
                    let mut behind = tokio::net::TcpStream::connect(behind).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut stream, &mut behind).await;
                }
            });
        }
    });
    let sender = sender(&trust, SenderOptions::default());
    for _ in 0..3 {
        assert_eq!(post(&sender, address).await.unwrap().status, 204);
    }
    assert_eq!((old.seen().len(), connections.load(SeqCst)), (3, 2));
    assert_eq!(old.seen()[0].line(), "POST /callback?a=%20 HTTP/1.1");
}

#[tokio::test]
async fn a_connection_without_an_answer_is_not_used_again() {
    let trust = trust();
    let (address, connections) = trust
        .serve(|number, requests| {
            answer_all(requests, move |_, to| async move {
                if number == 0 {
                    std::future::pending::<()>().await;
                }
                answer(to, "late").await;
            })
        })
        .await;
    let timeout = Duration::from_secs(1);
    let sender = sender(&trust, SenderOptions { timeout, ..SenderOptions::default() });
    assert_eq!(post(&sender, address).await.unwrap_err().code(), "net.timeout");
    assert_eq!(post(&sender, address).await.unwrap().status, 200);
    assert_eq!(connections.load(SeqCst), 2);
}

#[tokio::test]
async fn the_server_chooses_among_the_protocols_that_are_spoken() {
    // What a client offers in the handshake, it speaks: both kinds of clients, with each setting.
    for (http2, protocols, expected) in [
        (true, &["h2", "http/1.1"][..], "h2"),
        (true, &["http/1.1"], "http/1.1"),
        (true, &[], ""),
        (false, &["h2", "http/1.1"], "http/1.1"),
    ] {
        let trust = trust();
        let (address, chosen) = trust.serve_either(protocols).await;
        let sender = sender(&trust, SenderOptions { http2, ..SenderOptions::default() });
        assert_eq!(post(&sender, address).await.unwrap().status, 200, "{protocols:?}");
        let options = abreast_net::Options {
            extra_roots: Some(trust.roots.clone()),
            http2,
            ..crate::quick()
        };
        let url = format!("https://{address}/");
        assert_eq!(crate::get(&crate::client(options), &url).await.unwrap().1, b"either");
        let expected = [expected.to_owned(), expected.to_owned()];
        assert_eq!(*chosen.lock().unwrap(), expected, "{http2} {protocols:?}");
    }
}
