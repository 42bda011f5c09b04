//! An open database: the writer's thread with its queue, the readers and the lock.

use crate::database::locked::DatabaseLock;
use crate::database::presence::Presence;
use crate::database::queue::{Queue, QueueItem};
use crate::database::readers::Readers;
use crate::database::writer::{Recorder, Writer};
use abreast_core::{ErrorKind, LogError};
use rusqlite::Connection;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

/// A database with a thread that writes. Closed when dropped.
pub(crate) struct OpenDatabase<J: QueueItem> {
    pub(crate) queue: Arc<Queue<J>>,
    pub(crate) readers: Readers,
    pub(crate) presence: Presence,
    running: Mutex<Option<(JoinHandle<()>, DatabaseLock)>>,
}

impl<J: QueueItem + Send + 'static> OpenDatabase<J> {
    /// Starts the writer of a locked database.
    pub(crate) fn start<R: Recorder<Job = J> + Send + 'static>(
        path: &Path,
        lock: DatabaseLock,
        connection: Connection,
        recorder: R,
    ) -> Result<Self, LogError> {
        let presence = Presence::of(path)?;
        let writer = Writer::new(connection, path.to_owned(), recorder)?;
        let queue = Arc::new(Queue::default());
        let for_writer = Arc::clone(&queue);
        let thread = std::thread::Builder::new()
            .name("store".into())
            .spawn(move || writer.run(&for_writer))
            .map_err(|cause| {
                let message = format!("cannot start the writing thread of {}", path.display());
                LogError::new(ErrorKind::Io, message).with_cause(cause)
            })?;
        let running = Mutex::new(Some((thread, lock)));
        Ok(Self { queue, readers: Readers::new(path.to_owned()), presence, running })
    }

    /// Waits for the result of a job, which the job sends.
    pub(crate) fn call<T>(
        &self,
        job: impl FnOnce(SyncSender<Result<T, LogError>>) -> J,
    ) -> Result<T, LogError> {
        let (sender, receiver) = sync_channel(1);
        self.queue.push(job(sender));
        receiver.recv().unwrap_or_else(|_| {
            Err(LogError::new(ErrorKind::Io, "the store stopped before it answered"))
        })
    }
}

impl<J: QueueItem> OpenDatabase<J> {
    /// Records the waiting jobs, then ends the writer. Later jobs are refused, reads continue.
    pub(crate) fn close(&self) {
        self.readers.close_idle(); // before the writer ends: see there
        self.queue.close();
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((thread, _lock)) = running
            && thread.thread().id() != std::thread::current().id() // dropped by a callback
            && thread.join().is_err()
        {
            tracing::error!("the store's writing thread panicked");
        }
    }
}

impl<J: QueueItem> Drop for OpenDatabase<J> {
    fn drop(&mut self) {
        self.close();
    }
}
