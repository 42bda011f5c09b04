//! Reads a file in a separate thread, some parts ahead.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};

/// Bytes read at a time.
pub(crate) const READ: usize = 1 << 19;
/// Free bytes before each part, for the rest of the part before it.
const HEAD: usize = 1 << 16;
/// Parts that are read ahead.
const AHEAD: usize = 2;

/// The first bytes of a file, part by part.
pub(crate) struct ReadAhead {
    parts: Receiver<io::Result<Vec<u8>>>,
    /// Returns buffers to the thread.
    emptied: Sender<Vec<u8>>,
}

impl ReadAhead {
    /// Reads the first `end` bytes of a file.
    ///
    /// # Errors
    /// The system cannot create a thread or open another file.
    pub(crate) fn new(file: &File, end: u64) -> io::Result<Self> {
        let file = file.try_clone()?;
        let (sender, parts) = sync_channel(AHEAD);
        let (emptied, buffers) = channel::<Vec<u8>>();
        std::thread::Builder::new().name("read ahead".to_owned()).spawn(move || {
            let mut at = 0;
            while at < end {
                let length = (end - at).min(READ as u64);
                let mut part = buffers.try_recv().unwrap_or_default();
                part.resize(HEAD + length as usize, 0);
                let read = file.read_exact_at(&mut part[HEAD..], at).map(|()| part);
                at += length;
                let failed = read.is_err();
                if sender.send(read).is_err() || failed {
                    return;
                }
            }
        })?;
        Ok(Self { parts, emptied })
    }

    /// Appends the next part to `buffer[*used..]`; false at the end.
    pub(crate) fn read(&self, buffer: &mut Vec<u8>, used: &mut usize) -> io::Result<bool> {
        let Ok(part) = self.parts.recv() else { return Ok(false) };
        let (mut part, rest) = (part?, buffer.len() - *used);
        if let Some(start) = HEAD.checked_sub(rest) {
            part[start..HEAD].copy_from_slice(&buffer[*used..]);
            *used = start;
            std::mem::swap(buffer, &mut part);
        } else {
            buffer.drain(..std::mem::take(used));
            buffer.extend_from_slice(&part[HEAD..]);
        }
        // The thread may have ended, after the last part.
        let _ = self.emptied.send(part);
        Ok(true)
    }
}
