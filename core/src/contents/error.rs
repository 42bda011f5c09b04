//! Errors of stores of contents, by the action that a caller can take.

use crate::ContentId;
use std::io;

/// The kind of failure, which decides about the caller's next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store does not have these bytes.
    NotFound,
    /// The reader has more bytes than the caller allowed.
    TooLong,
    /// The store cannot be used now, but later: another process has the folder open, or the object
    /// store is out of reach.
    Busy,
    /// No space, no inodes or no quota left.
    Full,
    /// A file or folder of the store is replaced by another object, for example a symbolic link.
    Foreign,
    /// The disk failed to make bytes durable: further contents are refused until the folder is
    /// opened again.
    Untrusted,
    /// The source of the bytes failed while it was read.
    Input,
    /// The stored bytes differ from their address.
    Damaged,
    /// Any other error of the system, or of the store's settings.
    Other,
}

/// A failure, with the task and the system's error.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    kind: ErrorKind,
    message: String,
    #[source]
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// A failure without a cause.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), cause: None }
    }

    /// Adds the error that made the task fail.
    #[must_use]
    pub fn with_cause(
        mut self,
        cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// The source of the bytes failed while it was read.
    pub fn input(cause: io::Error) -> Self {
        Self::new(ErrorKind::Input, "cannot read the bytes to keep").with_cause(cause)
    }

    /// The source has more bytes than the limit.
    pub fn too_long(limit: u64) -> Self {
        Self::new(ErrorKind::TooLong, format!("there are more than {limit} bytes to keep"))
    }

    /// The failure of reading an open content, for callers that act by its kind.
    pub fn of_read(id: &ContentId, cause: io::Error) -> Self {
        let cause = match cause.downcast::<Self>() {
            Ok(error) => return error,
            Err(cause) => cause,
        };
        let kind = match cause.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => ErrorKind::Damaged,
            io::ErrorKind::ResourceBusy | io::ErrorKind::TimedOut => ErrorKind::Busy,
            _ => ErrorKind::Other,
        };
        Self::new(kind, format!("cannot read the kept content {id}")).with_cause(cause)
    }

    /// The kind of failure, for the caller's decision.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }
}

/// The kind of the system's error is retained; an error without one gets the kind that fits best.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let of_system = error.cause.as_deref().and_then(|cause| cause.downcast_ref::<Self>());
        let kind = match (error.kind, of_system) {
            (_, Some(cause)) => cause.kind(),
            (ErrorKind::NotFound, None) => io::ErrorKind::NotFound,
            (ErrorKind::Damaged, None) => io::ErrorKind::InvalidData,
            (ErrorKind::Busy, None) => io::ErrorKind::ResourceBusy,
            (ErrorKind::Full, None) => io::ErrorKind::StorageFull,
            _ => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_passes_through_io_keeps_its_kind() {
        let id = ContentId([1; 32]);
        for kind in [
            ErrorKind::NotFound,
            ErrorKind::Damaged,
            ErrorKind::Busy,
            ErrorKind::Full,
            ErrorKind::Other,
        ] {
            let passed = io::Error::from(Error::new(kind, "on purpose"));
            assert_eq!(Error::of_read(&id, passed).kind(), kind);
        }
        let of_disk = io::Error::from(io::ErrorKind::InvalidData);
        assert_eq!(Error::of_read(&id, of_disk).kind(), ErrorKind::Damaged);
        let full = Error::new(ErrorKind::Full, "full").with_cause(io::Error::from_raw_os_error(28));
        assert_eq!(io::Error::from(full).kind(), io::ErrorKind::StorageFull);
    }
}
