//! A relay in front of a database: it loses commits, or the answers to them, or passes nothing on, as
//! a network that was cut.

use abreast_core::testing::Random;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval at which a cut connection is tried again.
const TICK: Duration = Duration::from_millis(10);

/// The relay. Its connections end when it is dropped.
pub struct Relay {
    port: u16,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    server: u16,
    seed: u64,
    /// Of so many commits one is lost, and of one the answer.
    share: u64,
    lost: AtomicU64,
    is_cut: AtomicBool,
    is_stopped: AtomicBool,
}

impl Relay {
    /// Starts a relay to a port. Of `share` commits, one does not reach the database, and the answer
    /// to another one is lost; the connection is closed then.
    pub fn start(server: u16, share: u64, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (is_cut, is_stopped) = (AtomicBool::new(false), AtomicBool::new(false));
        let shared =
            Arc::new(Shared { server, seed, share, lost: AtomicU64::new(0), is_cut, is_stopped });
        let of_thread = Arc::clone(&shared);
        let thread = Some(std::thread::spawn(move || accept(&listener, &of_thread)));
        Self { port, shared, thread }
    }

    /// The URL of a database, through this relay.
    pub fn url(&self, url: &str) -> String {
        let (own, relayed) = (format!(":{}/", self.shared.server), format!(":{}/", self.port));
        url.replace(&own, &relayed)
    }

    /// How many answers to commits were lost.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(SeqCst)
    }

    /// Holds all bytes back, and new connections too, until the relay is no longer cut.
    pub fn cut(&self, is_cut: bool) {
        self.shared.is_cut.store(is_cut, SeqCst);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, SeqCst);
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn wait_while_cut(&self) {
        while self.is_cut.load(SeqCst) && !self.is_stopped.load(SeqCst) {
            std::thread::sleep(TICK);
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for (number, client) in listener.incoming().flatten().enumerate() {
        if shared.is_stopped.load(SeqCst) {
            break;
        }
        let (shared, random) = (Arc::clone(shared), Random::new(shared.seed + number as u64));
        std::thread::spawn(move || {
            shared.wait_while_cut();
            let Ok(database) = TcpStream::connect(("127.0.0.1", shared.server)) else { return };
            std::thread::scope(|scope| {
                scope.spawn(|| copy(&database, &client, &shared));
                forward(&client, &database, random, &shared);
            });
        });
    }
}

fn copy(mut from: &TcpStream, mut to: &TcpStream, shared: &Shared) {
    let mut bytes = [0; 8_192];
    while let Ok(read) = from.read(&mut bytes) {
        shared.wait_while_cut();
        if read == 0 || to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn forward(mut client: &TcpStream, mut database: &TcpStream, mut random: Random, shared: &Shared) {
    let mut bytes = [0; 8_192];
    while let Ok(read) = client.read(&mut bytes) {
        shared.wait_while_cut();
        let is_commit = bytes[..read].windows(7).any(|window| window == b"COMMIT\0");
        let fault = if is_commit { random.below(shared.share) } else { u64::MAX };
        if read == 0 || fault == 0 || database.write_all(&bytes[..read]).is_err() {
            break;
        }
        if fault == 1 {
            // The client is cut off at once; the database may commit.
            let _ = client.shutdown(Shutdown::Both);
            std::thread::sleep(Duration::from_millis(20));
            shared.lost.fetch_add(1, SeqCst);
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = database.shutdown(Shutdown::Both);
}
