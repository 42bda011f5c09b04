//! Hashes a package while it is received, in a separate thread, so that hashing and receiving run
//! in parallel.

use crate::request::verify::Hasher;
use abreast_core::start_thread;
use abreast_webtypes::Digests;
use bytes::Bytes;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Number of bytes that are hashed before a thread is started, since many packages are shorter.
const HERE_BYTES: usize = 1 << 20;
/// Maximum number of pieces in the queue of the thread. If the queue is full, receiving waits. Each
/// piece has the length of a read.
const WAITING_PIECES: usize = 32;

/// Hashes pieces in the order in which they are added.
#[derive(Default)]
pub(super) struct BackgroundDigest {
    hasher: Hasher,
    here: usize,
    away: Option<(SyncSender<Bytes>, JoinHandle<Hasher>)>,
}

impl BackgroundDigest {
    /// Continues a digest.
    pub(super) fn new(hasher: Hasher) -> Self {
        Self { hasher, here: 0, away: None }
    }

    /// Takes the next piece.
    pub(super) fn update(&mut self, piece: Bytes) {
        if self.hasher.is_idle() {
            return;
        }
        if self.away.is_none() && self.here >= HERE_BYTES {
            self.go_away();
        }
        if let Some((pieces, _)) = &self.away {
            // If the thread has ended, it has panicked, and `finish` reports the panic.
            let _ = pieces.send(piece);
        } else {
            self.here += piece.len();
            self.hasher.update(&piece);
        }
    }

    /// The digests of all pieces.
    pub(super) fn finish(mut self) -> Digests {
        self.come_back();
        std::mem::take(&mut self.hasher).finish()
    }

    fn go_away(&mut self) {
        let (pieces, waiting) = sync_channel::<Bytes>(WAITING_PIECES);
        let mut hasher = self.hasher.clone();
        let begun = start_thread("digest", move || {
            for piece in waiting {
                hasher.update(&piece);
            }
            hasher
        });
        match begun {
            Ok(thread) => self.away = Some((pieces, thread)),
            // This thread hashes instead, and a later piece tries to start a thread
            // again.
            Err(_) => self.here = 0,
        }
    }

    fn come_back(&mut self) {
        if let Some((pieces, thread)) = self.away.take() {
            drop(pieces);
            match thread.join() {
                Ok(hasher) => self.hasher = hasher,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    }
}

impl Drop for BackgroundDigest {
    fn drop(&mut self) {
        if let Some((pieces, thread)) = self.away.take() {
            drop(pieces);
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_all_pieces_in_their_order() {
        let bytes: Vec<u8> =
            (0..3_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for (length, step) in [(0, 1), (1_000, 7), (3_000_000, 70_001)] {
            let mut listed = Digests::default();
            listed.parse_into(b"md5:5d41402abc4b2a76b9719d911017c592").unwrap();
            let (mut before, mut whole) =
                (Hasher::for_listed(&listed), Hasher::for_listed(&listed));
            before.update(b"begun");
            whole.update(b"begun");
            whole.update(&bytes[..length]);
            let mut digest = BackgroundDigest::new(before);
            bytes[..length]
                .chunks(step)
                .for_each(|piece| digest.update(Bytes::copy_from_slice(piece)));
            assert_eq!(digest.away.is_some(), length > HERE_BYTES);
            assert_eq!(digest.finish(), whole.finish());
        }
    }
}
