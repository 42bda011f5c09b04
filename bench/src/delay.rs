//! A long line on one machine: a proxy that holds every byte for half a round trip in each
//! direction, and may lose packets.

use anyhow::Result;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::channel;
use tokio::time::{Instant, sleep, sleep_until};

/// Pieces on the way in one direction of one connection.
const ON_THE_WAY: usize = 4_096;
const PIECE: usize = 64 * 1024;
/// Bytes of a packet.
const PACKET: usize = 1_448;
/// Distance of the seeds of two directions.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A running proxy; ends with this value.
pub(crate) struct DelayProxy {
    _runtime: Runtime,
    pub(crate) address: SocketAddr,
    target: Arc<std::sync::Mutex<SocketAddr>>,
}

impl DelayProxy {
    /// Listens on a free port; `round_trip` is also what opening a connection costs.
    pub(crate) fn start(round_trip: Duration) -> Result<Self> {
        Self::losing(round_trip, 0.0)
    }

    /// The same, with a part of the packets lost. A lost packet comes a round trip later, and so do
    /// the packets of its connection behind it. The speed of a connection does not depend on losses.
    pub(crate) fn losing(round_trip: Duration, lost: f64) -> Result<Self> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        let target = Arc::new(std::sync::Mutex::new(address));
        let shared = Arc::clone(&target);
        let mut number = 0;
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let target = *shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                number += 1;
                let line = Line { round_trip, lost, seed: number };
                tokio::spawn(connection(client, target, line));
            }
        });
        Ok(Self { _runtime: runtime, address, target })
    }

    /// `http://127.0.0.1:PORT/`
    pub(crate) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Where new connections lead.
    pub(crate) fn lead_to(&self, target: SocketAddr) {
        *self.target.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = target;
    }
}

/// Properties of the line of a connection.
#[derive(Clone, Copy)]
struct Line {
    round_trip: Duration,
    lost: f64,
    /// Decides which packets are lost.
    seed: u64,
}

impl Line {
    /// Whether the next packet is lost (xorshift).
    fn loses(&mut self) -> bool {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        // 53 bits fit in the number.
        ((self.seed >> 11) as f64) < self.lost * (1_u64 << 53) as f64
    }
}

async fn connection(client: TcpStream, target: SocketAddr, line: Line) {
    // The system completed the handshake at once; over a long line it takes a round trip.
    sleep(line.round_trip).await;
    let Ok(server) = TcpStream::connect(target).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    tokio::join!(
        one_way(client_in, server_out, Line { seed: (line.seed * 2).wrapping_mul(SPREAD), ..line }),
        one_way(
            server_in,
            client_out,
            Line { seed: (line.seed * 2 + 1).wrapping_mul(SPREAD), ..line }
        )
    );
}

async fn one_way(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut line: Line,
) {
    let delay = line.round_trip / 2;
    let (sender, mut receiver) = channel::<(Instant, Vec<u8>)>(ON_THE_WAY);
    let read = async move {
        let mut piece = vec![0; PIECE];
        let mut due = Instant::now();
        while let Ok(length @ 1..) = from.read(&mut piece).await {
            due = due.max(Instant::now() + delay);
            // Pieces do not end where packets do, so that the part of lost packets is approximate.
            for packet in piece[..length].chunks(if line.lost > 0.0 { PACKET } else { PIECE }) {
                if line.loses() {
                    due = due.max(Instant::now() + delay + line.round_trip);
                }
                if sender.send((due, packet.to_vec())).await.is_err() {
                    return;
                }
            }
        }
    };
    let write = async move {
        while let Some((due, piece)) = receiver.recv().await {
            sleep_until(due).await;
            if to.write_all(&piece).await.is_err() {
                break;
            }
        }
        let _ = to.shutdown().await;
    };
    tokio::join!(read, write);
}
