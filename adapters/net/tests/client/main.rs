//! The client against small scripted servers on the loopback interface.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod answers;
mod encodings;
mod http2;
mod limits;
mod pipelining;
mod pool;
mod proxies;
mod redirects;
mod retries;
mod sender;
mod sender_http2;
mod serve_http2;
mod signed;
mod slow;
mod tls;
mod wire;

use abreast_net::{Client, Error, Options, Request, Response, Shared};

/// A client that gives up on silence within a second.
fn client(options: Options) -> Client {
    Client::new(Shared::new(options))
}

fn quick() -> Options {
    Options {
        connect_timeout: std::time::Duration::from_secs(5),
        idle_timeout: std::time::Duration::from_secs(10),
        backoff_base: std::time::Duration::from_millis(1),
        ..Options::default()
    }
}

/// Sends a plain GET and reads the body.
async fn get(client: &Client, url: &str) -> Result<(Response, Vec<u8>), Error> {
    read(client, &Request::new(url)).await
}

async fn read(client: &Client, request: &Request<'_>) -> Result<(Response, Vec<u8>), Error> {
    let mut response = client.send(request).await?;
    let mut body = Vec::new();
    response.read_to(&mut body, 1 << 20).await?;
    Ok((response, body))
}

/// The code a plain GET of a server that always says this fails with.
async fn code_for(answer: impl Into<Vec<u8>>) -> &'static str {
    let server = abreast_testkit::http::Server::saying(answer);
    match get(&client(quick()), &server.url("/")).await {
        Ok((response, body)) => panic!("{:?} with {} bytes", response.status(), body.len()),
        Err(error) => error.code(),
    }
}
