//! Keyed hash that detects whether the statements of an entity have changed since the last
//! comparison. The hash is stored as the fingerprint of the resource.
//!
//! The value consists of a random key for each comparison, and the POLYVAL (RFC 8452) of the
//! statements with this key. For any two texts of L bytes, the probability of equal values is
//! L/2^131. An author of both texts cannot produce equal values, because the key is never
//! published. A cryptographic hash without a key takes several times as long.

use polyval::Polyval;
use polyval::universal_hash::UniversalHash as _;
use std::io;

/// Length of a key, in bytes.
const KEY: usize = 16;

/// A key and the hash of statements with this key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyedHash(pub(super) [u8; 2 * KEY]);

impl KeyedHash {
    /// Creates a random key, with the hash of no statements.
    pub(super) fn random() -> io::Result<Self> {
        let mut hash = Self::default();
        getrandom::fill(&mut hash.0[..KEY]).map_err(|error| {
            io::Error::other(format!("the system has no random bytes: {error}"))
        })?;
        Ok(hash)
    }

    /// Parses a stored fingerprint; `None` if the fingerprint has another form. A key of zeros is
    /// refused, because all statements would have the same hash.
    pub(super) fn of_witness(witness: &[u8]) -> Option<Self> {
        let hash = Self(witness.try_into().ok()?);
        (hash.0[..KEY] != [0; KEY]).then_some(hash)
    }

    /// Computes the hash of statements with the same key.
    pub(super) fn of(mut self, statements: &[u8]) -> Self {
        let mut key = [0; KEY];
        key.copy_from_slice(&self.0[..KEY]);
        let mut hash = Polyval::new(&key.into());
        hash.update_padded(statements);
        // The length is included because the last block is padded with zeros.
        hash.update_padded(&(statements.len() as u64).to_le_bytes());
        self.0[KEY..].copy_from_slice(&hash.finalize());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_statements_have_another_hash() {
        let key = KeyedHash::random().unwrap();
        let statements = b"<a> <p> <b> .\n".repeat(20);
        let expected = key.of(&statements);
        assert_eq!(expected.of(&statements), expected, "the key is part of it");
        let mut seen = vec![expected, key.of(b"")];
        for length in 1..statements.len() {
            seen.push(key.of(&statements[..length]));
        }
        for place in 0..statements.len() {
            for bit in [1, 0x80] {
                let mut other = statements.clone();
                other[place] ^= bit;
                seen.push(key.of(&other));
            }
            let zeros = vec![0; place + 1];
            seen.push(key.of(&zeros));
        }
        let count = seen.len();
        seen.sort_unstable_by_key(|hash| hash.0);
        seen.dedup();
        assert_eq!(seen.len(), count);
        assert_ne!(KeyedHash::random().unwrap().of(&statements), expected, "another key");
        assert_eq!(KeyedHash::of_witness(&expected.0), Some(expected));
        assert_eq!(KeyedHash::of_witness(b""), None);
        assert_eq!(KeyedHash::of_witness(&[0; 2 * KEY]), None);
    }
}
