//! Connections of HTTP/2 as a server has them.

use std::convert::Infallible;
use std::net::IpAddr;
use std::time::Duration;

use abreast_net::{ConnectionSlots, Http2Limits, serve_http2};
use bytes::Bytes;
use h2::Reason;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};

fn request(path: &str) -> http::Request<()> {
    http::Request::get(format!("http://host{path}")).body(()).unwrap()
}

#[tokio::test]
async fn a_client_that_gives_up_many_requests_loses_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let place = ConnectionSlots::new(100).enter(IpAddr::from([127, 0, 0, 1])).await;
        let service = service_fn(|request: http::Request<hyper::body::Incoming>| {
            let mut in_flight = place.asked();
            async move {
                let has_place = in_flight.take_place().await;
                match request.uri().path() {
                    _ if !has_place => {}
                    "/later" => tokio::time::sleep(Duration::from_secs(2)).await,
                    _ => std::future::pending().await,
                }
                let status = if has_place { 200 } else { 503 };
                let answer = http::Response::builder().status(status);
                Ok::<_, Infallible>(answer.body(Full::new(Bytes::from_static(b"answer"))).unwrap())
            }
        });
        let limits = Http2Limits {
            requests: 100,
            header_bytes: 4_096,
            idle: Duration::from_secs(30),
            stall: Duration::from_secs(30),
        };
        serve_http2(TokioIo::new(stream), service, limits, &place, std::future::pending()).await;
    });
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut requests, connection) = h2::client::handshake(stream).await.unwrap();
    let driver = tokio::spawn(connection);
    let later = requests.send_request(request("/later"), true).unwrap().0;
    let mut given_up = 0;
    while given_up < 1_000 {
        let Ok(mut ready) = requests.clone().ready().await else { break };
        let Ok((answer, mut stream)) = ready.send_request(request("/slow"), true) else { break };
        if tokio::time::timeout(Duration::from_millis(2), answer).await.is_ok() {
            break; // Refused.
        }
        stream.send_reset(Reason::CANCEL);
        given_up += 1;
    }
    assert!((100..200).contains(&given_up), "{given_up}");
    // Other requests on the connection are completed.
    let mut answer = later.await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.body_mut().data().await.unwrap().unwrap().len(), 5);
    drop((requests, answer));
    let _ = driver.await;
    tokio::time::timeout(Duration::from_secs(10), server).await.unwrap().unwrap();
}
