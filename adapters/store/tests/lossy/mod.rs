//! A proxy that loses commits, or the answers to them.

use abreast_testkit::Random;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A proxy in front of the database, which closes some connections when a commit passes: before it
/// reaches the database, or after, so that only the answer is lost.
pub(crate) struct LossyProxy {
    pub(crate) port: u16,
    pub(crate) lost: Arc<AtomicU64>,
}

impl LossyProxy {
    pub(crate) fn start(server: u16, random: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let lost = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&lost);
        std::thread::spawn(move || {
            for (number, client) in listener.incoming().flatten().enumerate() {
                let Ok(database) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                let random = Random::new(random + number as u64);
                let counted = Arc::clone(&counted);
                let (answers, back) = (database.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || copy(answers, back));
                std::thread::spawn(move || forward(client, database, random, &counted));
            }
        });
        Self { port, lost }
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream) {
    let mut bytes = [0; 8_192];
    while let Ok(read) = from.read(&mut bytes) {
        if read == 0 || to.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn forward(mut client: TcpStream, mut database: TcpStream, mut random: Random, lost: &AtomicU64) {
    let mut bytes = [0; 8_192];
    while let Ok(read) = client.read(&mut bytes) {
        let is_commit = bytes[..read].windows(7).any(|window| window == b"COMMIT\0");
        let fault = if is_commit { random.below(8) } else { u64::MAX };
        if read == 0 || fault == 0 || database.write_all(&bytes[..read]).is_err() {
            break;
        }
        if fault == 1 {
            // The client is cut off at once; the database may commit.
            let _ = client.shutdown(Shutdown::Both);
            std::thread::sleep(Duration::from_millis(20));
            lost.fetch_add(1, Ordering::SeqCst);
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
    let _ = database.shutdown(Shutdown::Both);
}
