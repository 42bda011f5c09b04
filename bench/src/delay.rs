//! A long line on one machine: a proxy that holds every byte for half a round trip in each
//! direction.

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

/// A running proxy; ends with this value.
pub(crate) struct DelayProxy {
    _runtime: Runtime,
    pub(crate) address: SocketAddr,
    target: Arc<std::sync::Mutex<SocketAddr>>,
}

impl DelayProxy {
    /// Listens on a free port; `round_trip` is also what opening a connection costs.
    pub(crate) fn start(round_trip: Duration) -> Result<Self> {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        let target = Arc::new(std::sync::Mutex::new(address));
        let shared = Arc::clone(&target);
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let target = *shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                tokio::spawn(connection(client, target, round_trip));
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

async fn connection(client: TcpStream, target: SocketAddr, round_trip: Duration) {
    // The system completed the handshake at once; over a long line it takes a round trip.
    sleep(round_trip).await;
    let Ok(server) = TcpStream::connect(target).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    tokio::join!(
        one_way(client_in, server_out, round_trip / 2),
        one_way(server_in, client_out, round_trip / 2)
    );
}

async fn one_way(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    delay: Duration,
) {
    let (sender, mut receiver) = channel::<(Instant, Vec<u8>)>(ON_THE_WAY);
    let read = async move {
        let mut piece = vec![0; PIECE];
        while let Ok(length @ 1..) = from.read(&mut piece).await {
            if sender.send((Instant::now() + delay, piece[..length].to_vec())).await.is_err() {
                break;
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
