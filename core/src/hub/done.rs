//! Callbacks for the results of requests.

use crate::LogError;

/// Called once, from any thread, with the result of a request.
pub type Done<T> = Box<dyn FnOnce(Result<T, LogError>) + Send>;
