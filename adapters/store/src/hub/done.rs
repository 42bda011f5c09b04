//! Callbacks for the results of requests.

use abreast_core::LogError;

/// Called once, from another thread, with the result of a request.
pub type Done<T> = Box<dyn FnOnce(Result<T, LogError>) + Send>;
