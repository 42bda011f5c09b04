//! Secrets and certificates in files of the user. They are read here with a limit, in the same way when they are used and
//! when a configuration is checked, so that the check finds every file that a run would refuse.

use abreast_net::SigningKey;
use anyhow::{Context as _, Result, bail};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// Most bytes of a secret.
pub(crate) const SECRET_MAX: u64 = 64 << 10;
/// Most bytes of a file with certificates and keys.
pub(crate) const CERTIFICATES_MAX: u64 = 4 << 20;
/// The folder of secrets in a container, which engines fill with files that all users can read.
const CONTAINER_SECRETS: &str = "/run/secrets";

/// The text of a file of at most `most` bytes.
///
/// # Errors
/// The file cannot be read, is empty, larger than `most` bytes, or not UTF-8.
pub(crate) fn text(path: &Path, most: u64) -> Result<String> {
    let text = String::from_utf8(bytes(path, most)?);
    text.with_context(|| format!("`{}` is not text in UTF-8", path.display()))
}

/// The bytes of a file of at most `most` bytes.
///
/// # Errors
/// The file cannot be read, is empty, or larger than `most` bytes.
pub(crate) fn bytes(path: &Path, most: u64) -> Result<Vec<u8>> {
    let shown = path.display();
    let task = || format!("cannot read `{shown}`");
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(task)?;
    file.take(most + 1).read_to_end(&mut bytes).with_context(task)?;
    if bytes.len() as u64 > most {
        bail!("`{shown}` is larger than {most} bytes");
    }
    if bytes.is_empty() {
        bail!("`{shown}` is empty");
    }
    Ok(bytes)
}

/// The text of a file with a secret; others had better not be able to read it.
///
/// # Errors
/// As [`text`].
pub(crate) fn secret(path: &Path, most: u64) -> Result<String> {
    use std::os::unix::fs::PermissionsExt as _;
    let shown = path.display();
    let about = std::fs::metadata(path).ok().filter(|_| !path.starts_with(CONTAINER_SECRETS));
    if about.is_some_and(|about| about.is_file() && about.permissions().mode() & 0o077 != 0) {
        tracing::warn!("`{shown}` can be read by other users: chmod 600 {shown}");
    }
    text(path, most)
}

/// Reads a private key that signs requests; others had better not be able to read it.
///
/// # Errors
/// As [`text`], and for a file that is not such a key.
pub(crate) fn signing_key(path: &Path) -> Result<SigningKey> {
    let text = secret(path, SECRET_MAX)?;
    SigningKey::parse(text.as_bytes())
        .with_context(|| format!("`{}` is not a key for signatures", path.display()))
}

/// Checks a file with certificates that are trusted.
///
/// # Errors
/// The file cannot be read, is too large, or does not contain a usable certificate.
pub(crate) fn check_certificates(path: &Path) -> Result<()> {
    bytes(path, CERTIFICATES_MAX)?;
    Ok(abreast_net::check_certificates(path)?)
}

/// As [`check_certificates`], as a problem of a key.
pub(crate) fn problem_of_certificates(key: &str, path: &Path, problems: &mut Vec<String>) {
    if let Err(error) = check_certificates(path) {
        let text = format!("{error:#}");
        let text = text.lines().next().unwrap_or_default();
        problems.push(format!("`{key}`: {text} (help: name a file with certificates in PEM)"));
    }
}

/// Whether reading the file takes nothing from its next reader: a pipe gives its content once.
pub(crate) fn is_repeatable(path: &Path) -> bool {
    std::fs::metadata(path).map_or(true, |about| about.is_file() || about.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_files_are_refused_with_their_reason() {
        let place = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = place.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        for (path, part) in [
            (place.path().join("none"), "No such file"),
            (place.path().to_owned(), "Is a directory"),
            (file("empty", b""), "is empty"),
            (file("large", &[b'x'; 11]), "is larger than 10 bytes"),
            (file("latin", b"caf\xe9"), "is not text in UTF-8"),
            ("/dev/zero".into(), "is larger than 10 bytes"),
        ] {
            let error = format!("{:#}", secret(&path, 10).unwrap_err());
            assert!(error.contains(part) && error.contains(path.to_str().unwrap()), "{error}");
        }
        assert_eq!(secret(&file("right", b"0123456789"), 10).unwrap(), "0123456789");
        let key =
            file("key.pem", b"-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n");
        for path in [place.path(), &key, &file("none.pem", b"text")] {
            assert!(check_certificates(path).is_err(), "{}", path.display());
        }
    }
}
