//! What are the bytes of a file, surely? Hash kept only if the file stayed the same meanwhile.

use abreast_core::State;
use abreast_folder::{Dir, ErrorKind, Stat};
use abreast_webtypes::{Algorithm, Digests, Timestamp};
use md5::{Digest as _, Md5};
use sha2::Sha256;
use std::io::{self, Read};

/// Which digests a set publishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DigestPolicy {
    /// MD5: the cheapest that the specifications name.
    #[default]
    Md5,
    /// SHA-256: about three times the cost of MD5 without hardware support.
    Sha256,
    /// Both.
    Both,
}

/// How looking at a file ended.
#[expect(clippy::large_enum_variant, reason = "nearly every file is stable")]
pub(crate) enum Hashed {
    /// Read whole, and unchanged while it was read.
    Stable(State, Stat),
    /// It changed while it was read: look again later.
    Changing,
    /// It is not there any more, or is no regular file now.
    Gone,
}

const CHUNK: usize = 256 * 1024;

/// Reads files and hashes them; keeps its buffer.
pub(crate) struct Hasher {
    policy: DigestPolicy,
    buffer: Vec<u8>,
}

impl Hasher {
    pub(crate) fn new(policy: DigestPolicy) -> Self {
        Self { policy, buffer: vec![0; CHUNK] }
    }

    /// Hashes one file of a folder.
    ///
    /// # Errors
    /// When it cannot be opened or read for another reason than being gone.
    pub(crate) fn hash(&mut self, dir: &Dir, name: &[u8]) -> io::Result<Hashed> {
        let (mut file, before) = match dir.open_read(name) {
            Ok(opened) => opened,
            Err(error) if is_gone(error.kind()) => return Ok(Hashed::Gone),
            Err(error) => return Err(error.into()),
        };
        let mut md5 = matches!(self.policy, DigestPolicy::Md5 | DigestPolicy::Both).then(Md5::new);
        let mut sha256 = matches!(self.policy, DigestPolicy::Sha256 | DigestPolicy::Both).then(Sha256::new);
        let mut length = 0_u64;
        loop {
            let read = match file.read(&mut self.buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            length += read as u64;
            if length > before.size {
                return Ok(Hashed::Changing);
            }
            if let Some(md5) = &mut md5 {
                md5.update(&self.buffer[..read]);
            }
            if let Some(sha256) = &mut sha256 {
                sha256.update(&self.buffer[..read]);
            }
            // A file shorter than the buffer ends with its stated size: no second read only to see the end.
            if length == before.size && before.size < CHUNK as u64 {
                break;
            }
        }
        let after = Stat::of(&file)?;
        if length != before.size || witness_of(&after) != witness_of(&before) {
            return Ok(Hashed::Changing);
        }
        let mut digests = Digests::default();
        if let Some(md5) = md5 {
            digests.set(Algorithm::Md5, &md5.finalize());
        }
        if let Some(sha256) = sha256 {
            digests.set(Algorithm::Sha256, &sha256.finalize());
        }
        let state = State {
            modified: modified_of(&after),
            length: Some(length),
            media_type: Some(media_type_of(name).to_owned()),
            encoding: None,
            digests,
            links: Vec::new(),
        };
        Ok(Hashed::Stable(state, after))
    }
}

/// Nothing to publish stands there: no file, or none that is published.
pub(crate) const fn is_gone(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotFolder | ErrorKind::NotFile | ErrorKind::Symlink)
}

/// Last-Modified, in whole seconds as HTTP tells it.
pub(crate) fn modified_of(stat: &Stat) -> Timestamp {
    Timestamp::from_seconds(stat.mtime_ns.div_euclid(1_000_000_000))
}

/// What tells a changed file from an unchanged one without reading it: size, times and inode.
/// ctime moves even when a program restores mtime.
pub(crate) fn witness_of(stat: &Stat) -> [u8; 32] {
    let mut out = [0; 32];
    out[0..8].copy_from_slice(&stat.size.to_le_bytes());
    out[8..16].copy_from_slice(&stat.mtime_ns.to_le_bytes());
    out[16..24].copy_from_slice(&stat.ctime_ns.to_le_bytes());
    out[24..32].copy_from_slice(&stat.inode.to_le_bytes());
    out
}

/// The media type by the name's extension.
pub fn media_type_of(name: &[u8]) -> &'static str {
    let extension = name.iter().rposition(|byte| *byte == b'.').map_or(&b""[..], |dot| &name[dot + 1..]);
    match extension {
        // Types of the field that general tables lack.
        b"ttl" => "text/turtle",
        b"nt" => "application/n-triples",
        b"nq" => "application/n-quads",
        b"trig" => "application/trig",
        b"jsonld" => "application/ld+json",
        b"rdf" | b"owl" => "application/rdf+xml",
        b"" => "application/octet-stream",
        _ => std::str::from_utf8(extension)
            .ok()
            .and_then(|extension| mime_guess::from_ext(extension).first_raw())
            .unwrap_or("application/octet-stream"),
    }
}
