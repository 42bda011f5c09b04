//! The API of a server: settings, tokens, and uploads in progress.

use super::known_tokens::Tokens;
use super::token_place::TokenPlace;
use crate::limits::places::ClientPlaces;
use abreast_core::SetId;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Most uploads at a time; a single client may have half. A server with fewer than 512 connections
/// allows an eighth of its connections.
const UPLOADS: usize = 64;

/// The clients that may read through the API. Published documents are public in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readers {
    /// Every client, also without a token.
    #[default]
    Anyone,
    /// Only clients with a token.
    Tokens,
}

/// Settings of the API, from the configuration.
#[derive(Clone, Debug)]
pub struct ApiOptions {
    /// Whether changes may be recorded through the API.
    pub write: bool,
    /// The clients that may read.
    pub readers: Readers,
    /// The place of the tokens.
    pub tokens: TokenPlace,
    /// The server listens on this machine only: until the first token is created, local programs
    /// may write without one.
    pub local: bool,
    /// Most bytes of received content.
    pub max_content: u64,
    /// The folder for temporary files.
    pub temporary: PathBuf,
    /// Time limit for the body of a request; contents have more time, because they are larger.
    pub body_time: Duration,
}

impl ApiOptions {
    /// Default settings: writing is disabled, all may read, a body may take a minute, and temporary
    /// files are in the folder of the tokens.
    pub fn new(tokens: impl Into<PathBuf>) -> Self {
        let tokens = tokens.into();
        let temporary = tokens.parent().unwrap_or(Path::new(".")).to_owned();
        Self::at(TokenPlace::File(tokens), temporary)
    }

    /// As [`ApiOptions::new`], with tokens in another place and a folder for temporary files.
    pub const fn at(tokens: TokenPlace, temporary: PathBuf) -> Self {
        Self {
            write: false,
            readers: Readers::Anyone,
            temporary,
            tokens,
            local: false,
            max_content: 1 << 30,
            body_time: Duration::from_secs(60),
        }
    }
}

/// The API of a server.
pub struct Api {
    pub(crate) options: ApiOptions,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) uploads: ClientPlaces,
    pub(crate) keys: Arc<Mutex<KnownKeys>>,
}

/// Idempotency keys of requests, with a digest of each request.
type KnownKeys = HashMap<(SetId, String), [u8; 32]>;

impl Api {
    /// An API with these options.
    ///
    /// # Errors
    /// The tokens cannot be read.
    pub fn new(options: ApiOptions) -> io::Result<Self> {
        let tokens = Arc::new(Tokens::open(options.tokens.clone())?);
        Ok(Self { options, tokens, uploads: ClientPlaces::new(UPLOADS), keys: Arc::default() })
    }

    /// The same API with other settings. The place of the tokens remains; uploads in progress and
    /// idempotency keys are shared.
    #[must_use]
    pub fn with(&self, options: ApiOptions) -> Self {
        let (uploads, keys) = (self.uploads.clone(), Arc::clone(&self.keys));
        Self { options, tokens: Arc::clone(&self.tokens), uploads, keys }
    }

    /// Limits uploads, so that they use only a part of the connections.
    pub(crate) fn fit(&self, connections: usize) {
        self.uploads.limit(connections / 8);
    }
}
