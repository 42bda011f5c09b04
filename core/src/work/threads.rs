//! Threads whose lines in the log have the set or the job of the thread that started them, and work
//! for many items on several threads.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};
use tracing::Span;

/// Starts a thread, in the span of the calling thread.
///
/// # Errors
/// The system cannot start a thread.
pub fn start_thread<T: Send + 'static>(
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let span = Span::current();
    Builder::new().name(name.into()).spawn(move || span.in_scope(work))
}

/// Starts a thread of a scope, in the span of the calling thread.
///
/// # Errors
/// The system cannot start a thread.
pub fn start_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> io::Result<ScopedJoinHandle<'scope, T>> {
    let span = Span::current();
    Builder::new().name(name.into()).spawn_scoped(scope, move || span.in_scope(work))
}

/// As [`start_scoped`], for work that nothing can replace.
///
/// # Panics
/// The system cannot start a thread.
pub fn spawn_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() -> T + Send + 'scope,
) -> ScopedJoinHandle<'scope, T> {
    let span = Span::current();
    scope.spawn(move || span.in_scope(work))
}

/// Does work for all items on at most `threads` threads, for requests that mostly wait. No further items are
/// started after the first error, which is returned.
///
/// # Errors
/// The work failed for an item.
///
/// # Examples
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// let sum = AtomicU64::new(0);
/// let add = |number: &u64| {
///     sum.fetch_add(*number, Ordering::Relaxed);
///     Ok::<(), std::io::Error>(())
/// };
/// abreast_core::on_threads(8, &[1, 2, 3], &add)?;
/// assert_eq!(sum.into_inner(), 6);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn on_threads<T: Sync, E: Send>(
    threads: usize,
    items: &[T],
    work: &(dyn Fn(&T) -> Result<(), E> + Sync),
) -> Result<(), E> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(items.len()) {
            spawn_scoped(scope, || {
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(error) = work(item) {
                        next.store(items.len(), Ordering::Relaxed);
                        failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}
