//! The queue of items to fetch. A thread gets items of a single folder as long as possible, because
//! two threads that create files in the same folder wait for each other in the kernel.

use abreast_store::mirror::Task;
use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// A few items in the order of their URIs, handed out together so that folders repeat.
pub(crate) type Chunk = Vec<Task>;

/// Chunks waiting to be taken.
pub(crate) struct WorkQueue {
    waiting: Mutex<Waiting>,
    news: Notify,
}

struct Waiting {
    chunks: VecDeque<Chunk>,
    /// The folder that each thread is at.
    folders: Vec<String>,
    closed: bool,
}

impl WorkQueue {
    pub(crate) fn new(threads: usize) -> Self {
        let waiting = Waiting {
            chunks: VecDeque::new(),
            folders: vec![String::new(); threads],
            closed: false,
        };
        Self { waiting: Mutex::new(waiting), news: Notify::new() }
    }

    /// Adds a chunk to the queue; the caller counts the chunks that were handed out.
    pub(crate) fn put(&self, chunk: Chunk) {
        self.lock().chunks.push_back(chunk);
        self.news.notify_waiters();
    }

    /// Announces that no more chunks will be added.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.news.notify_waiters();
    }

    /// The next chunk for a thread; `None` at the end.
    pub(crate) async fn take(&self, thread: usize) -> Option<Chunk> {
        loop {
            let mut news = pin!(self.news.notified());
            // From here on, no notification is missed.
            news.as_mut().enable();
            {
                let mut waiting = self.lock();
                if let Some(chunk) = waiting.choose(thread) {
                    return Some(chunk);
                }
                if waiting.closed {
                    return None;
                }
            }
            news.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    /// A chunk of the thread's folder, else of a folder without other threads, else any chunk.
    fn choose(&mut self, thread: usize) -> Option<Chunk> {
        let own = &self.folders[thread];
        let place = self.chunks.iter().position(|chunk| folder_of(chunk) == own).or_else(|| {
            let free = |chunk: &Chunk| {
                let folder = folder_of(chunk);
                !self.folders.iter().any(|busy| busy == folder)
            };
            self.chunks.iter().position(free)
        });
        let chunk = self.chunks.remove(place.unwrap_or(0))?;
        folder_of(&chunk).clone_into(&mut self.folders[thread]);
        Some(chunk)
    }
}

/// The folder of a chunk's first item.
fn folder_of(chunk: &Chunk) -> &str {
    let uri = chunk.first().map_or("", |task| task.pending.uri.as_str());
    uri.rfind('/').map_or("", |slash| &uri[..slash])
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_store::mirror::{Pending, Task};

    fn chunk(uri: &str) -> Chunk {
        vec![Task {
            pending: Pending { uri: uri.to_owned(), ..Pending::default() },
            ..Task::default()
        }]
    }

    #[test]
    fn threads_keep_to_folders_of_their_own() {
        let queue = WorkQueue::new(2);
        for uri in ["u/a/1", "u/a/2", "u/b/1", "u/a/3", "u/b/2"] {
            queue.put(chunk(uri));
        }
        queue.close();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let take =
            |thread| runtime.block_on(queue.take(thread)).map(|chunk| chunk[0].pending.uri.clone());
        assert_eq!(take(0).as_deref(), Some("u/a/1"));
        assert_eq!(take(1).as_deref(), Some("u/b/1"));
        assert_eq!(take(0).as_deref(), Some("u/a/2"));
        assert_eq!(take(1).as_deref(), Some("u/b/2"));
        assert_eq!(take(1).as_deref(), Some("u/a/3"), "rather the other's folder than nothing");
        assert_eq!(take(0), None);
    }
}
