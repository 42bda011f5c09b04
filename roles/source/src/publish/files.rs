//! Files of a projection, such as packages, that are published without being rendered.

use crate::made::shared::{SharedError, SharedFile, SharedGroup};
use crate::publish::{Body, Freshness, PublishedSet};
use abreast_core::contents::{Content, ErrorKind};
use abreast_webtypes::Timestamp;
use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// An open file that is published.
#[derive(Debug)]
pub struct PublishedFile {
    /// Content of the file: open files or bytes.
    pub content: FileContent,
    /// The same content in gzip, for clients that accept gzip.
    pub gzip: Option<FileContent>,
    /// Value of the `Content-Type` header.
    pub content_type: Cow<'static, str>,
    /// The set that publishes the file.
    pub set: Arc<PublishedSet>,
    /// Another URL of these bytes, if they have one.
    pub location: Option<String>,
    /// How long clients may cache the file.
    pub freshness: Freshness,
    /// Whether requests that do not accept the media type are refused.
    pub negotiated: bool,
    /// SHA-256 of the content, if it is known.
    pub digest: Option<[u8; 32]>,
}

/// The bytes of a file that is published.
#[derive(Debug)]
pub enum FileContent {
    /// An open file, which is sent as a whole.
    File(File),
    /// A part of an open file.
    Part {
        /// The whole file, of which a part is sent.
        file: File,
        /// Offset of the first byte of the part.
        start: u64,
        /// Length of the part in bytes.
        length: u64,
    },
    /// A file, or a part of the file, that several nodes serve.
    Shared {
        /// The whole file, in the store of all nodes.
        file: SharedContent,
        /// Offset of the first byte that is sent.
        start: u64,
        /// Number of bytes that are sent.
        length: u64,
    },
    /// A stored content that is not a file on this machine.
    Stored {
        /// Entity tag of the bytes, without quotes.
        tag: String,
        /// The stored content, open for reading.
        content: Content,
    },
    /// Bytes made for one request.
    Made {
        /// Entity tag of the bytes, without quotes.
        tag: String,
        /// The bytes, in memory or in a file.
        body: Body,
    },
}

/// The reason why a file cannot be sent; each text is for the client.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file does not exist.
    #[error("{0}")]
    NotFound(String),
    /// The query of the request is not supported.
    #[error("{0}")]
    BadQuery(String),
    /// The file is no longer available, or is never made.
    #[error("{0}")]
    Gone(String),
    /// The file would be larger than the limit.
    #[error("{0}")]
    TooLarge(String),
    /// The file is not available in the requested form.
    #[error("{0}")]
    NotAcceptable(String),
    /// The file is being made; the client should retry.
    #[error("{detail}")]
    Making {
        /// Description of the file that is being made.
        detail: String,
        /// Seconds until the client may retry.
        seconds: u32,
    },
    /// The file is temporarily unavailable.
    #[error("{detail}")]
    Later {
        /// The reason, for the client of the request.
        detail: String,
        /// Seconds until the client may retry.
        seconds: u32,
    },
    /// The file could not be made.
    #[error("{detail}")]
    Failed {
        /// The task that failed, for the client of the request.
        detail: String,
        /// The error that made the task fail.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl FileContent {
    /// A part of a file; other contents are returned as they are.
    pub(crate) fn part(self, start: u64, length: u64) -> Self {
        match self {
            Self::File(file) => Self::Part { file, start, length },
            Self::Shared { file, .. } => Self::Shared { file, start, length },
            content => content,
        }
    }

    /// A shared file as a whole.
    pub(crate) fn shared(group: &Arc<SharedGroup>, file: &SharedFile) -> Self {
        let (group, file, length) = (Arc::clone(group), file.clone(), file.length);
        Self::Shared { file: SharedContent { group, file }, start: 0, length }
    }
}

/// A file in the object store of several nodes.
pub struct SharedContent {
    group: Arc<SharedGroup>,
    file: SharedFile,
}

impl fmt::Debug for SharedContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedContent").field("file", &self.file).finish_non_exhaustive()
    }
}

impl SharedContent {
    /// Entity tag of the whole file, without quotes; the same on all nodes.
    pub fn tag(&self) -> String {
        self.file.tag()
    }

    /// Length in bytes of the whole file.
    pub const fn length(&self) -> u64 {
        self.file.length
    }

    /// Modification time of the file, the same on all nodes.
    pub const fn modified(&self) -> Timestamp {
        Timestamp::from_micros(self.file.modified)
    }

    /// Opens the copy on this node, which is fetched first if it is missing. Blocks.
    ///
    /// # Errors
    /// The file was removed, or cannot be fetched now.
    pub fn open(&self) -> Result<File, FileError> {
        Ok(self.group.hold(&self.file).and_then(|held| Ok(held.open()?))?)
    }

    /// A URL in the object store with which anybody can read the whole file by GET, as this media type, until
    /// its time is over; `None` if the store does not sign URLs, or did not answer a moment ago. Blocks.
    ///
    /// # Errors
    /// The credentials of the store cannot be read.
    pub fn signed_url(
        &self,
        media_type: &str,
        valid: Duration,
    ) -> Result<Option<String>, FileError> {
        Ok(self.group.signed_url(&self.file, media_type, valid)?)
    }
}

impl From<SharedError> for FileError {
    fn from(error: SharedError) -> Self {
        if let Some(seconds) = error.retry() {
            let detail = "the file cannot be read from the object store now".to_owned();
            return Self::Later { detail, seconds };
        }
        match &error {
            SharedError::Store(cause) if cause.kind() == ErrorKind::NotFound => {
                Self::NotFound("the file was removed a moment ago".to_owned())
            }
            _ => {
                let detail = "the shared file cannot be read or published".to_owned();
                Self::Failed { detail, cause: Box::new(error) }
            }
        }
    }
}
