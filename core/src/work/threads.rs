//! Work for many items on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

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
            scope.spawn(|| {
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
