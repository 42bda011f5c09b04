//! Files of a projection: published as they are, not rendered, such as packages.

use crate::publish::{Body, Freshness, PublishedSet};
use std::borrow::Cow;
use std::fs::File;
use std::sync::Arc;
use thiserror::Error;

/// A file that is published, open.
#[derive(Debug)]
pub struct PublishedFile {
    /// The bytes of the file, or where they are.
    pub content: FileContent,
    /// The same compressed by gzip, for clients that accept that.
    pub gzip: Option<FileContent>,
    /// The value of the `Content-Type` header.
    pub content_type: Cow<'static, str>,
    /// The set that publishes the file.
    pub set: Arc<PublishedSet>,
    /// Another URL of these bytes, if they have one.
    pub location: Option<String>,
    /// How long clients may keep it.
    pub freshness: Freshness,
    /// Whether a client that does not accept its Content-Type is refused.
    pub negotiated: bool,
    /// SHA-256 of its bytes, if it is known.
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
    /// Bytes made for one request.
    Made {
        /// The entity tag, without quotes.
        tag: String,
        /// The bytes, in memory or in a file.
        body: Body,
    },
}

/// The reason why a file cannot be sent; each text is for the client.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FileError {
    /// There is no such file.
    #[error("{0}")]
    NotFound(String),
    /// The query cannot be answered.
    #[error("{0}")]
    BadQuery(String),
    /// There was such a file, or could have been.
    #[error("{0}")]
    Gone(String),
    /// It would be larger than allowed.
    #[error("{0}")]
    TooLarge(String),
    /// It cannot be sent in this form.
    #[error("{0}")]
    NotAcceptable(String),
    /// It is being made; the request is understood, and to be repeated.
    #[error("{detail}")]
    Making {
        /// What is made.
        detail: String,
        /// Seconds until it may be asked for again.
        seconds: u32,
    },
    /// It cannot be sent now.
    #[error("{detail}")]
    Later {
        /// The reason, for the client of the request.
        detail: String,
        /// Seconds until it may be asked for again.
        seconds: u32,
    },
    /// It could not be made.
    #[error("{detail}")]
    Failed {
        /// The task that failed, for the client of the request.
        detail: String,
        /// The error that made the task fail.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}
