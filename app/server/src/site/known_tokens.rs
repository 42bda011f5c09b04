//! The tokens that a running server knows, read again when they change.

use super::token_place::{Seen, TokenPlace};
use super::tokens::{Token, digest_of};
use abreast_core::Records;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Interval of checks whether the tokens changed.
const LOOK: Duration = Duration::from_millis(500);

/// The tokens of a running server.
pub(crate) struct Tokens {
    place: TokenPlace,
    known: Arc<Mutex<LoadedTokens>>,
}

struct LoadedTokens {
    looked: Instant,
    /// The state of the place when the tokens were read.
    seen: Option<Seen>,
    tokens: Arc<Vec<Token>>,
    /// The tokens were damaged at the start.
    is_damaged: bool,
}

impl Tokens {
    /// Reads the tokens. If they are damaged, no token is known. A thread follows tokens that several
    /// nodes share, because reading them takes a round trip.
    pub(crate) fn open(place: TokenPlace) -> io::Result<Self> {
        let (seen, tokens) = (place.seen(), place.read());
        let is_damaged =
            tokens.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::InvalidData);
        let tokens = match tokens {
            Err(error) if is_damaged => {
                tracing::error!("no token of the API is valid: {error}");
                Arc::default()
            }
            tokens => Arc::new(tokens?),
        };
        let looked = Instant::now();
        let known = Arc::new(Mutex::new(LoadedTokens { looked, seen, tokens, is_damaged }));
        if matches!(place, TokenPlace::Shared(_)) {
            let (place, known) = (place.clone(), Arc::downgrade(&known));
            std::thread::Builder::new()
                .name("tokens".to_owned())
                .spawn(move || follow(&place, &known))?;
        }
        Ok(Self { place, known })
    }

    /// The records that several nodes share, if the tokens are among them.
    pub(crate) fn shared_records(&self) -> Option<Arc<dyn Records>> {
        match &self.place {
            TokenPlace::File(_) => None,
            TokenPlace::Shared(records) => Some(Arc::clone(records)),
        }
    }

    /// Whether tokens are not known because they are damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        lock(&self.known).is_damaged
    }

    /// The stored tokens. If they cannot be read any more, the last known tokens remain valid.
    pub(crate) fn current(&self) -> Arc<Vec<Token>> {
        let mut known = lock(&self.known);
        if matches!(self.place, TokenPlace::File(_)) && known.looked.elapsed() >= LOOK {
            known.looked = Instant::now();
            let now = self.place.seen();
            if now != known.seen {
                known.take(now, self.place.read());
            }
        }
        Arc::clone(&known.tokens)
    }

    /// Whether a token was ever created, also if all are revoked.
    pub(crate) fn ever(&self) -> bool {
        let tokens = self.current();
        let was_seen = lock(&self.known).seen.is_some();
        // The existence of an unreadable file shows that access was restricted.
        was_seen
            || !tokens.is_empty()
            || matches!(self.place, TokenPlace::File(_)) && self.place.seen().is_some()
    }

    /// The token with this secret.
    pub(crate) fn find(&self, secret: &str) -> Option<Token> {
        let digest = digest_of(secret);
        // The digests are compared, not the secrets, so the duration of the comparison reveals
        // nothing useful.
        self.current().iter().find(|token| token.sha256 == digest).cloned()
    }
}

impl LoadedTokens {
    fn take(&mut self, seen: Option<Seen>, tokens: io::Result<Vec<Token>>) {
        match tokens {
            Ok(tokens) => {
                self.tokens = Arc::new(tokens);
                (self.seen, self.is_damaged) = (seen, false);
            }
            Err(error) => {
                tracing::error!("cannot read the tokens again: {error}; those known stay");
            }
        }
    }
}

/// Reads shared tokens again when they change, until the server ends.
fn follow(place: &TokenPlace, known: &Weak<Mutex<LoadedTokens>>) {
    loop {
        std::thread::sleep(LOOK);
        let Some(known) = known.upgrade() else { return };
        // A record is never deleted: without one, the store cannot be reached.
        let Some(now) = place.seen() else { continue };
        if lock(&known).seen != Some(now) {
            let tokens = place.read();
            lock(&known).take(Some(now), tokens);
        }
    }
}

fn lock(known: &Mutex<LoadedTokens>) -> MutexGuard<'_, LoadedTokens> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}
