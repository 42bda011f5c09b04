//! The API of one server: settings, tokens, and bodies that are being received.

use super::tokens::Tokens;
use crate::places::ClientPlaces;
use abreast_core::SetId;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// Bodies on their way in at a time; one client alone has half of them. Of a server with fewer than 512 connections an
/// eighth of these.
const UPLOADS: usize = 64;

/// Who may read through the API. Published documents are public anyway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readers {
    /// Anyone.
    #[default]
    Anyone,
    /// Holder of a token.
    Tokens,
}

/// Settings of the API.
#[derive(Clone, Debug)]
pub struct ApiOptions {
    /// Whether changes are accepted.
    pub write: bool,
    /// Who may read.
    pub readers: Readers,
    /// The file of tokens.
    pub tokens: PathBuf,
    /// Only programs on this machine can connect: until the first token is made, they may write
    /// without one.
    pub local: bool,
    /// Largest content taken in, in bytes.
    pub max_content: u64,
    /// The folder of temporary files.
    pub temporary: PathBuf,
    /// Time for the body of a request; contents have more, as they are larger.
    pub body_time: Duration,
}

impl ApiOptions {
    /// Nothing is taken in, all may read; bodies have a minute, and are beside the tokens until they are read.
    pub fn new(tokens: impl Into<PathBuf>) -> Self {
        let tokens = tokens.into();
        Self {
            write: false,
            readers: Readers::Anyone,
            temporary: tokens.parent().unwrap_or(Path::new(".")).to_owned(),
            tokens,
            local: false,
            max_content: 1 << 30,
            body_time: Duration::from_secs(60),
        }
    }
}

/// The API of one server.
pub struct Api {
    pub(super) options: ApiOptions,
    pub(super) tokens: Tokens,
    pub(super) uploads: ClientPlaces,
    /// Idempotency keys of requests, and what they were used for.
    pub(super) keys: Mutex<HashMap<(SetId, String), [u8; 32]>>,
}

impl Api {
    /// An API with these options.
    ///
    /// # Errors
    /// The file of tokens cannot be read.
    pub fn new(options: ApiOptions) -> io::Result<Self> {
        let tokens = Tokens::open(options.tokens.clone())?;
        Ok(Self { options, tokens, uploads: ClientPlaces::new(UPLOADS), keys: Mutex::default() })
    }

    /// Bodies on their way in never take most of so many connections.
    pub(crate) fn fit(&self, connections: usize) {
        self.uploads.limit(connections / 8);
    }
}
