//! A load balancer in front of nodes: connections go to one node after the other, and to the next one
//! if a node refuses them.

use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::Duration;

/// A stopped node accepts connections, and does not answer.
const SILENCE: Duration = Duration::from_secs(3);
/// The machine of a node does not answer.
const CONNECTED: Duration = Duration::from_secs(1);

pub(super) struct Balancer {
    pub(super) address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Balancer {
    pub(super) fn start(nodes: Vec<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (nodes, turn) = (Arc::new(nodes), Arc::new(AtomicUsize::new(0)));
            for client in listener.incoming() {
                if stopped.load(SeqCst) {
                    break;
                }
                let Ok(client) = client else { continue };
                let (nodes, turn) = (Arc::clone(&nodes), Arc::clone(&turn));
                std::thread::spawn(move || connect(&client, &nodes, &turn));
            }
        });
        Self { address, stop, thread: Some(thread) }
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.stop.store(true, SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn connect(client: &TcpStream, nodes: &[SocketAddr], turn: &AtomicUsize) {
    let next = || nodes[turn.fetch_add(1, SeqCst) % nodes.len()];
    let mut nodes = (0..nodes.len()).map(|_| next());
    let connect = |node| TcpStream::connect_timeout(&node, CONNECTED).ok();
    let Some(node) = nodes.find_map(connect) else { return };
    let _ = node.set_read_timeout(Some(SILENCE));
    std::thread::scope(|scope| {
        scope.spawn(|| pass(client, &node));
        pass(&node, client);
    });
}

fn pass(mut from: &TcpStream, mut to: &TcpStream) {
    let _ = io::copy(&mut from, &mut to);
    let _ = to.shutdown(Shutdown::Write);
    let _ = from.shutdown(Shutdown::Read);
}
