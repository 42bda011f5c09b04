//! Servers that take their time.

use std::io::Write;
use std::time::{Duration, Instant};

use abreast_net::{Options, Request};

use crate::{client, get, quick};
use abreast_testkit::http::{Server, hold, ok, trickle};

fn impatient() -> Options {
    Options {
        connect_timeout: Duration::from_millis(200),
        idle_timeout: Duration::from_secs(5),
        min_speed: 10_000,
        min_speed_window: Duration::from_millis(100),
        ..quick()
    }
}

#[tokio::test]
async fn body_of_a_byte_now_and_then_is_too_slow() {
    let server = Server::new(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n").unwrap();
        trickle(stream, b'a');
        false
    });
    let error = get(&client(impatient()), &server.url("/")).await.unwrap_err();
    assert_eq!((error.code(), error.is_transient()), ("net.slow", true));
}

#[tokio::test]
async fn header_that_never_ends_is_too_slow() {
    let server = Server::new(|_, stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\nX-Long: ").unwrap();
        trickle(stream, b'a');
        false
    });
    assert_eq!(get(&client(impatient()), &server.url("/")).await.unwrap_err().code(), "net.slow");
}

#[tokio::test]
async fn silence_before_and_within_an_answer_times_out() {
    for reply in ["", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe"] {
        let server = Server::new(move |_, stream| {
            let _ = stream.write_all(reply.as_bytes());
            hold(stream);
            false
        });
        let options =
            Options { min_speed: 0, idle_timeout: Duration::from_millis(200), ..impatient() };
        let error = get(&client(options), &server.url("/")).await.unwrap_err();
        assert_eq!((error.code(), error.is_transient()), ("net.timeout", true), "{reply:?}");
    }
}

#[tokio::test]
async fn time_to_think_is_not_held_against_the_speed() {
    let server = Server::new(|_, stream| {
        abreast_testkit::http::client_left(stream, Duration::from_millis(150));
        stream.write_all(ok("short").as_bytes()).is_ok()
    });
    let options = Options {
        idle_timeout: Duration::from_secs(5),
        min_speed_window: Duration::from_millis(30),
        ..impatient()
    };
    assert_eq!(get(&client(options), &server.url("/")).await.unwrap().1, b"short");
}

#[tokio::test]
async fn a_slow_reader_is_not_held_against_the_server() {
    let server =
        Server::new(|_, stream| stream.write_all(ok(&"a".repeat(1 << 20)).as_bytes()).is_ok());
    let client = client(Options {
        min_speed_window: Duration::from_millis(100),
        idle_timeout: Duration::from_millis(100),
        ..impatient()
    });
    let mut response = client.send(&Request::new(&server.url("/"))).await.unwrap();
    let mut total = 0;
    let mut busy = 0;
    while let Some(data) = response.chunk().await.unwrap() {
        total += data.len();
        if busy < 2 {
            // What a caller does with a piece may take longer than every limit.
            let until = Instant::now() + Duration::from_millis(150);
            while Instant::now() < until {
                std::thread::yield_now();
            }
            busy += 1;
        }
    }
    assert_eq!(total, 1 << 20);
}

#[tokio::test]
async fn tls_handshake_that_stalls_times_out() {
    let server = Server::raw(|mut stream| hold(&mut stream));
    let url = format!("https://{}/", server.address());
    let error = get(&client(impatient()), &url).await.unwrap_err();
    assert_eq!(error.code(), "net.timeout");
}

#[tokio::test]
async fn a_slow_host_does_not_hold_up_others() {
    let slow = Server::new(|_, stream| {
        hold(stream);
        false
    });
    let fast = Server::script(&[&ok("x")]);
    let client = client(Options { connections_per_host: 1, ..quick() });
    let stuck = slow.url("/");
    tokio::select! {
        biased;
        _ = async { tokio::join!(get(&client, &stuck), get(&client, &stuck)) } => panic!("the slow host answered"),
        () = async {
            for _ in 0..20 {
                assert_eq!(get(&client, &fast.url("/")).await.unwrap().1, b"x");
            }
        } => {}
    }
}
