//! API tokens, known by the digest of their random bytes only.
//!
//! The file does not contain a secret: a token cannot be computed from it. It is read again when it
//! changes.

use abreast_core::{Finding, Severity};
use abreast_folder::{corrected, sealed, unsealed};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Number of random bytes in a token.
const RANDOM_BYTES: usize = 32;
/// The prefix of every token, so that people and scanners recognise tokens.
pub const PREFIX: &str = "abreast_";
/// Most tokens in a file.
const MAX_TOKENS: usize = 10_000;

/// The scope of a token. Each scope includes the scopes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Reading resources, the log and the hub.
    Read,
    /// Recording changes, in addition to reading.
    Write,
    /// All operations, for all sets unless the token lists sets.
    Admin,
}

impl Scope {
    /// The scope as a word, as in files and in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Token {
    /// Name of the token, for users and logs.
    pub name: String,
    /// SHA-256 of the whole token, in hexadecimal digits.
    pub sha256: String,
    /// The operations that the token allows.
    pub scope: Scope,
    /// The sets that the token is for; empty for all sets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<String>,
    /// Time at which the token was created.
    pub created: String,
}

impl Token {
    /// Whether the token allows an operation for this set, or without a set.
    pub fn allows(&self, scope: Scope, set: Option<&str>) -> bool {
        self.scope >= scope
            && (self.sets.is_empty()
                || set.is_some_and(|set| self.sets.iter().any(|own| own == set)))
    }
}

#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct TokenFile {
    tokens: Vec<Token>,
}

/// The file of tokens in the folder of a store.
pub fn tokens_path(store: &Path) -> PathBuf {
    store.join("tokens.json")
}

/// Reads the tokens of a file; an absent file is read as empty.
///
/// # Errors
/// The file is damaged ([`io::ErrorKind::InvalidData`]), or cannot be read.
pub fn read_tokens(path: &Path) -> io::Result<Vec<Token>> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    tokens_of(&text).map_err(|error| {
        let folder = path.parent().unwrap_or(path).display();
        let message = format!(
            "the file of tokens `{}` is damaged: {error}\n  help: `abreast repair {folder}` restores it, or lists the tokens that are \
             lost; if it was edited, remove its last line",
            path.display()
        );
        io::Error::new(io::ErrorKind::InvalidData, message)
    })
}

/// The tokens in the content of a file or record.
pub(super) fn tokens_of(record: &[u8]) -> io::Result<Vec<Token>> {
    let file: TokenFile = serde_json::from_slice(unsealed(record)?)?;
    Ok(file.tokens)
}

/// The content of a file or record with these tokens.
pub(super) fn text_of(tokens: &[Token]) -> io::Result<Vec<u8>> {
    if tokens.len() > MAX_TOKENS {
        return Err(io::Error::other(format!("more than {MAX_TOKENS} tokens (help: revoke some)")));
    }
    Ok(sealed(serde_json::to_vec_pretty(&TokenFile { tokens: tokens.to_vec() })?))
}

/// Checks a file of tokens; returns the damage if there is any.
///
/// # Errors
/// The file cannot be read.
pub fn check_tokens(path: &Path) -> io::Result<Option<Finding>> {
    match read_tokens(path) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Some(Finding {
            severity: Severity::Error,
            rule: "tokens.record",
            location: path.display().to_string(),
            message: "the file of tokens is damaged: no token is valid".to_owned(),
        })),
        tokens => tokens.map(|_| None),
    }
}

/// Restores a damaged file of tokens if only one bit is wrong. Otherwise the tokens are lost: the
/// file is renamed, and replaced by an empty one. Returns a text about the repair, which `dry_run`
/// only plans.
///
/// # Errors
/// It cannot be read or written.
pub fn repair_tokens(path: &Path, dry_run: bool) -> io::Result<Option<String>> {
    if check_tokens(path)?.is_none() {
        return Ok(None);
    }
    let _lock = lock(path)?;
    let record = fs::read(path)?;
    if let Some(tokens) = corrected(&record).and_then(|record| tokens_of(&record).ok()) {
        if !dry_run {
            write_tokens(path, &tokens)?;
        }
        return Ok(Some("restore the file of tokens, one bit of which was different".to_owned()));
    }
    let text = String::from_utf8_lossy(&record);
    let names = text.lines().filter_map(|line| line.trim().strip_prefix("\"name\": "));
    let names: Vec<&str> = names.map(|name| name.trim_end_matches(',')).collect();
    if !dry_run {
        let aside = (1_u32..10_000)
            .map(|number| path.with_extension(format!("json.damaged-{number}")))
            .find(|aside| !aside.exists())
            .unwrap_or_default();
        fs::copy(path, aside)?;
        write_tokens(path, &[])?;
    }
    Ok(Some(format!(
        "drop the tokens of the API, which cannot be known any more: create them again with `abreast token create` ({})",
        if names.is_empty() { "their names are lost".to_owned() } else { names.join(", ") }
    )))
}

/// Changes the tokens of a file. Changes by several processes come one after the other, so that no
/// change is lost.
///
/// # Errors
/// The file cannot be read or written, or the change is refused; then the file stays as it is.
pub fn change_tokens<T, E: From<io::Error>>(
    path: &Path,
    change: impl FnOnce(&mut Vec<Token>) -> Result<T, E>,
) -> Result<T, E> {
    let _lock = lock(path)?;
    let mut tokens = read_tokens(path)?;
    let changed = change(&mut tokens)?;
    write_tokens(path, &tokens)?;
    Ok(changed)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Locks the folder of the file, because each change replaces the file.
fn lock(path: &Path) -> io::Result<fs::File> {
    let folder = fs::File::open(folder_of(path))?;
    folder.lock()?;
    Ok(folder)
}

/// Replaces a file of tokens.
///
/// # Errors
/// There are too many tokens, or the disk failed.
pub fn write_tokens(path: &Path, tokens: &[Token]) -> io::Result<()> {
    let text = text_of(tokens)?;
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&temporary)?;
    file.write_all(&text).and_then(|()| file.sync_all())?;
    // The server must be able to read the file, also if another user (such as root) writes it:
    // otherwise a revoked token would stay valid.
    abreast_folder::own_as_folder(&file, path)?;
    let folder = folder_of(path);
    fs::rename(&temporary, path)?;
    fs::File::open(folder)?.sync_all()
}

/// A new token: the secret, which is shown once, and the entry for the file of tokens.
///
/// # Errors
/// The system cannot provide random bytes.
pub fn new_token(
    name: &str,
    scope: Scope,
    sets: Vec<String>,
    created: &str,
) -> io::Result<(String, Token)> {
    let secret = format!("{PREFIX}{}", random_text()?);
    let sha256 = digest_of(&secret);
    Ok((secret, Token { name: name.to_owned(), sha256, scope, sets, created: created.to_owned() }))
}

/// A text that nobody can guess.
pub(super) fn random_text() -> io::Result<String> {
    use base64::Engine as _;
    let mut random = [0; RANDOM_BYTES];
    fs::File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(random))
}

pub(super) fn digest_of(secret: &str) -> String {
    use std::fmt::Write as _;
    Sha256::digest(secret).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::known_tokens::Tokens;
    use crate::site::token_place::TokenPlace;
    use std::os::unix::fs::MetadataExt as _;

    #[test]
    fn the_file_holds_no_secret_and_finds_the_token() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("tokens.json");
        assert!(read_tokens(&path).unwrap().is_empty());
        let (secret, token) =
            new_token("n", Scope::Write, vec!["a".into()], "2026-01-01T00:00:00Z").unwrap();
        write_tokens(&path, &[token]).unwrap();
        assert!(!fs::read_to_string(&path).unwrap().contains(&secret[PREFIX.len()..]));
        let tokens = Tokens::open(TokenPlace::File(path.clone())).unwrap();
        let found = tokens.find(&secret).unwrap();
        assert!(found.allows(Scope::Write, Some("a")) && found.allows(Scope::Read, Some("a")));
        assert!(!found.allows(Scope::Write, Some("b")) && !found.allows(Scope::Admin, Some("a")));
        assert!(!found.allows(Scope::Read, None), "a token of one set is none for all");
        assert!(
            tokens.find(&secret[..secret.len() - 1]).is_none()
                && tokens.find(&found.sha256).is_none()
        );
        let mode = fs::metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o077, 0);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn files_written_by_root_belong_to_the_owner_of_the_store() {
        let place = tempfile::tempdir().unwrap();
        if std::os::unix::fs::chown(place.path(), Some(12_345), Some(12_346)).is_err() {
            // Only root can do this, and needs it.
            return;
        }
        let path = place.path().join("tokens.json");
        for _ in 0..2 {
            write_tokens(&path, &[]).unwrap();
            let stat = fs::metadata(&path).unwrap();
            assert_eq!((stat.uid(), stat.gid(), stat.mode() & 0o777), (12_345, 12_346, 0o600));
        }
    }

    #[test]
    fn changes_at_the_same_time_are_all_kept() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("tokens.json");
        let create = |name: &str| {
            let token = new_token(name, Scope::Admin, Vec::new(), "").unwrap().1;
            change_tokens(&path, |tokens| {
                tokens.push(token);
                Ok::<_, io::Error>(())
            })
            .unwrap();
        };
        create("old");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let create = &create;
                scope.spawn(move || (0..20).for_each(|n| create(&format!("{thread}/{n}"))));
            }
            scope.spawn(|| {
                let revoke = |tokens: &mut Vec<Token>| {
                    tokens.retain(|token| token.name != "old");
                    Ok::<_, io::Error>(())
                };
                change_tokens(&path, revoke).unwrap();
            });
        });
        let tokens = read_tokens(&path).unwrap();
        assert_eq!(tokens.len(), 80);
        assert!(tokens.iter().all(|token| token.name != "old"));
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn two_tokens_are_never_the_same() {
        let one = new_token("n", Scope::Read, Vec::new(), "").unwrap().0;
        let two = new_token("n", Scope::Read, Vec::new(), "").unwrap().0;
        assert_ne!(one, two);
        assert_eq!(one.len(), PREFIX.len() + 43);
    }
}
