//! Content identifiers: the digest of the bytes is their address, so equal bytes are stored once.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The address of stored bytes: their BLAKE3 digest.
///
/// # Examples
/// ```
/// use abreast_core::ContentId;
///
/// let name = "af".repeat(32);
/// let id: ContentId = name.parse()?;
/// assert_eq!(id.to_string(), name);
/// // One address has one name: digits in upper case are refused.
/// assert!(name.to_uppercase().parse::<ContentId>().is_err());
/// # Ok::<(), abreast_core::ParseContentIdError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContentId(pub [u8; Self::BYTES]);

impl ContentId {
    /// Size of an address in bytes.
    pub const BYTES: usize = 32;

    /// The address in that many bytes; `None` when they are not as many.
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The address as bytes, for storage in a database.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Display for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ContentId({self})")
    }
}

/// The text is not the address of stored bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an address of kept bytes is 64 digits of 0-9 and a-f")]
pub struct ParseContentIdError;

impl FromStr for ContentId {
    type Err = ParseContentIdError;

    /// Reads what [`fmt::Display`] writes; nothing else, so that one address has one name.
    fn from_str(text: &str) -> Result<Self, ParseContentIdError> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut id = [0; Self::BYTES];
        if text.len() != 2 * Self::BYTES {
            return Err(ParseContentIdError);
        }
        for (byte, pair) in id.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let (high, low) = (digit(pair[0]), digit(pair[1]));
            *byte = high.zip(low).map(|(high, low)| high << 4 | low).ok_or(ParseContentIdError)?;
        }
        Ok(Self(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_written_and_read_in_one_way() {
        let id = ContentId(std::array::from_fn(|place| (place * 7) as u8));
        let text = id.to_string();
        assert_eq!(text.len(), 64);
        assert_eq!(text.parse(), Ok(id));
        for bad in
            [&text[1..], &text.to_uppercase(), &format!("{text}0"), &format!("é{}", &text[2..])]
        {
            assert_eq!(bad.parse::<ContentId>(), Err(ParseContentIdError), "{bad}");
        }
        assert_eq!(ContentId::from_slice(id.as_bytes()), Some(id));
        assert_eq!(ContentId::from_slice(&[0; 31]), None);
    }
}
