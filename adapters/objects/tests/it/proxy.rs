//! A connection to a server that is counted, or breaks off.

use abreast_testkit::http::Server;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The way to a server.
pub(crate) struct Proxy {
    server: Server,
    received: Arc<AtomicU64>,
    sendable: Arc<AtomicU64>,
}

impl Proxy {
    /// Passes on everything, until [`Self::break_after`].
    pub(crate) fn to(server: SocketAddr) -> Self {
        let (received, sendable) =
            (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(u64::MAX)));
        let (counted, allowed) = (Arc::clone(&received), Arc::clone(&sendable));
        let server = Server::raw(move |client| {
            let Ok(upstream) = TcpStream::connect(server) else { return };
            let (from, to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
            let allowed = Arc::clone(&allowed);
            let sending = std::thread::spawn(move || {
                pass(from, to, |read| {
                    allowed
                        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                            left.checked_sub(read)
                        })
                        .is_ok()
                });
            });
            pass(upstream, client, |read| {
                counted.fetch_add(read, Ordering::SeqCst);
                true
            });
            let _ = sending.join();
        });
        Self { server, received, sendable }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Number of bytes that the server sent.
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Ordering::SeqCst)
    }

    /// Cuts the connections when clients have sent this many bytes more.
    pub(crate) fn break_after(&self, bytes: u64) {
        self.sendable.store(bytes, Ordering::SeqCst);
    }

    /// Passes on everything again.
    pub(crate) fn repair(&self) {
        self.break_after(u64::MAX);
    }
}

/// Passes bytes on while this is allowed.
fn pass(mut from: TcpStream, mut to: TcpStream, mut may: impl FnMut(u64) -> bool) {
    let mut chunk = vec![0; 16 * 1024];
    while let Ok(read) = from.read(&mut chunk)
        && read > 0
        && may(read as u64)
        && to.write_all(&chunk[..read]).is_ok()
    {}
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
