//! CPU cost of a request, compared with a bare loop over hyper's connection API.
//!
//! `cargo run --release -p abreast-net --example throughput [requests per round] [rounds] [body
//! bytes]`
//!
//! Both ask a small server on another thread for the same body over eight connections on one
//! thread; the CPU time is that thread's own. Rounds alternate, so that a busy machine slows both.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use abreast_net::{Client, Options, Request, Shared};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::client::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::time::{ClockId, clock_gettime};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

type Failure = Box<dyn std::error::Error + Send + Sync>;

const CONNECTIONS: usize = 8;

#[expect(clippy::print_stdout, reason = "this program's purpose")]
fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |text| text.parse());
    let (requests, rounds, body_bytes) = (number(100_000)?, number(5)?, number(4_096)?);
    let address = serve(body_bytes)?;
    println!(
        "{requests} requests a round, {body_bytes} bytes each, {CONNECTIONS} connections, one thread"
    );
    let mut ratios = Vec::new();
    for round in 0..rounds {
        let bare = measure(|| bare(address, requests, body_bytes))?;
        let ours = measure(|| ours(address, requests, body_bytes))?;
        let ratio = bare.0.as_secs_f64() / ours.0.as_secs_f64();
        ratios.push(ratio);
        for (name, (cpu, wall)) in [("bare hyper", bare), ("abreast-net", ours)] {
            println!(
                "round {round}  {name:12} {:>7.0} requests/CPU s  {:>5.1} us  {:>7.0} requests/s",
                requests as f64 / cpu.as_secs_f64(),
                cpu.as_secs_f64() * 1e6 / requests as f64,
                requests as f64 / wall.as_secs_f64(),
            );
        }
    }
    ratios.sort_by(f64::total_cmp);
    println!("requests per CPU second, ours to bare: median {:.2}", ratios[ratios.len() / 2]);
    Ok(())
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

fn serve(body_bytes: usize) -> Result<SocketAddr, Failure> {
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    let runtime = runtime()?;
    std::thread::spawn(move || {
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener)?;
            let body = Bytes::from(vec![b'a'; body_bytes]);
            loop {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                let body = body.clone();
                let answer = service_fn(move |_| {
                    let mut answer = hyper::Response::new(Full::new(body.clone()));
                    answer
                        .headers_mut()
                        .insert("etag", http::HeaderValue::from_static("\"0123456789abcdef\""));
                    answer
                        .headers_mut()
                        .insert("content-type", http::HeaderValue::from_static("application/xml"));
                    std::future::ready(Ok::<_, Infallible>(answer))
                });
                tokio::spawn(
                    hyper::server::conn::http1::Builder::new()
                        .serve_connection(TokioIo::new(stream), answer),
                );
            }
            #[expect(unreachable_code, reason = "names the type of the block")]
            Ok::<(), std::io::Error>(())
        })
    });
    Ok(address)
}

/// CPU time of this thread and wall time.
fn measure<F: Future<Output = Result<(), Failure>>>(
    work: impl Fn() -> F,
) -> Result<(Duration, Duration), Failure> {
    let cpu = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let (start_cpu, start) = (cpu(), Instant::now());
    runtime()?.block_on(work())?;
    Ok((cpu().saturating_sub(start_cpu), start.elapsed()))
}

async fn finish(mut tasks: JoinSet<Result<(), Failure>>) -> Result<(), Failure> {
    while let Some(result) = tasks.join_next().await {
        result??;
    }
    Ok(())
}

async fn ours(address: SocketAddr, requests: usize, body_bytes: usize) -> Result<(), Failure> {
    let client = Client::new(Shared::new(Options {
        connections_per_host: CONNECTIONS,
        ..Options::default()
    }));
    let mut tasks = JoinSet::new();
    for _ in 0..CONNECTIONS {
        let (client, url) = (client.clone(), format!("http://{address}/some/folder/resource.xml"));
        tasks.spawn(async move {
            let mut body = Vec::new();
            for _ in 0..requests / CONNECTIONS {
                body.clear();
                let mut response = client.send(&Request::new(&url)).await?;
                response.read_to(&mut body, 1 << 20).await?;
                assert_eq!(body.len(), body_bytes);
            }
            Ok(())
        });
    }
    finish(tasks).await
}

async fn bare(address: SocketAddr, requests: usize, body_bytes: usize) -> Result<(), Failure> {
    let mut tasks = JoinSet::new();
    for _ in 0..CONNECTIONS {
        tasks.spawn(async move {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            tokio::spawn(connection);
            let host = http::HeaderValue::from_str(&address.to_string())?;
            let mut buffer = Vec::new();
            for _ in 0..requests / CONNECTIONS {
                buffer.clear();
                let mut request = hyper::Request::new(Empty::<Bytes>::new());
                *request.uri_mut() = "/some/folder/resource.xml".parse()?;
                request.headers_mut().insert("host", host.clone());
                request
                    .headers_mut()
                    .insert("user-agent", http::HeaderValue::from_static("bare/0.1.0"));
                request
                    .headers_mut()
                    .insert("accept-encoding", http::HeaderValue::from_static("identity"));
                sender.ready().await?;
                let mut body = sender.send_request(request).await?.into_body();
                while let Some(frame) = body.frame().await {
                    if let Ok(data) = frame?.into_data() {
                        buffer.extend_from_slice(&data);
                    }
                }
                assert_eq!(buffer.len(), body_bytes);
            }
            Ok(())
        });
    }
    finish(tasks).await
}
