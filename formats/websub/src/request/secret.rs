//! The secret that hub and subscriber share to authenticate deliveries [websub §5.1].

use std::fmt;

/// Bytes of a secret: fewer than 200 [websub §5.1]. Bytes as sent, not characters.
pub const MAX_SECRET_LENGTH: usize = 199;

/// A secret that is not shown by accident: `Debug` hides it.
///
/// # Examples
/// ```
/// use abreast_websub::Secret;
///
/// let secret = Secret::new("3f9c0d27").expect("at most 199 bytes");
/// assert_eq!(format!("{secret:?}"), "Secret(hidden)");
/// assert_eq!(Secret::new(""), None);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// The bytes as a secret; `None` for zero bytes, or for more than [`MAX_SECRET_LENGTH`].
    pub fn new(bytes: impl Into<Vec<u8>>) -> Option<Self> {
        let bytes = bytes.into();
        (1..=MAX_SECRET_LENGTH).contains(&bytes.len()).then_some(Self(bytes))
    }

    /// The bytes, for the computation of signatures.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The bytes, for a store.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_has_1_to_199_bytes_and_hides() {
        assert!(Secret::new("").is_none());
        assert!(Secret::new("ä".repeat(100)).is_none(), "200 bytes in 100 characters");
        let secret = Secret::new("x".repeat(MAX_SECRET_LENGTH)).unwrap();
        assert_eq!(format!("{secret:?}"), "Secret(hidden)");
        assert_eq!(secret.as_bytes().len(), secret.clone().into_bytes().len());
    }
}
