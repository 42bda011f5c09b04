//! Values and rows that both kinds of databases have.

use abreast_core::contents::ContentHasher;
use serde::{Deserialize, Serialize};

/// A value of a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

/// A row, with the values in the order of the table's columns.
pub(crate) type Row = Vec<Value>;

impl Value {
    /// Estimated bytes of the value in memory.
    pub(crate) const fn size(&self) -> usize {
        match self {
            Self::Null | Self::Int(_) => 8,
            Self::Text(text) => text.len() + 24,
            Self::Bytes(bytes) => bytes.len() + 24,
        }
    }

    pub(crate) const fn int(&self) -> Option<i64> {
        if let Self::Int(number) = self { Some(*number) } else { None }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        if let Self::Bytes(bytes) = self { Some(bytes) } else { None }
    }
}

/// The number of rows, and a digest that does not depend on their order: two databases return the
/// rows of a table in different orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowsDigest {
    pub(crate) rows: u64,
    sum: u128,
}

impl RowsDigest {
    /// Adds a row.
    pub(crate) fn add<'v>(&mut self, values: impl Iterator<Item = &'v Value>) {
        let mut hasher = ContentHasher::default();
        for value in values {
            let (kind, number, bytes): (u8, i64, &[u8]) = match value {
                Value::Null => (0, 0, &[]),
                Value::Int(number) => (1, *number, &[]),
                Value::Text(text) => (2, text.len() as i64, text.as_bytes()),
                Value::Bytes(bytes) => (3, bytes.len() as i64, bytes),
            };
            hasher.update(&[kind]);
            hasher.update(&number.to_le_bytes());
            hasher.update(bytes);
        }
        let mut half = [0; 16];
        half.copy_from_slice(&hasher.finish().0.as_bytes()[..16]);
        self.rows += 1;
        self.sum = self.sum.wrapping_add(u128::from_le_bytes(half));
    }

    /// The digest as a text.
    pub(crate) fn text(&self) -> String {
        format!("{}-{:032x}", self.rows, self.sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(rows: &[&[Value]]) -> RowsDigest {
        let mut digest = RowsDigest::default();
        for row in rows {
            digest.add(row.iter());
        }
        digest
    }

    #[test]
    fn the_digest_covers_values_and_not_their_order() {
        let text = |text: &str| Value::Text(text.to_owned());
        let (one, two) = ([text("a"), Value::Int(1)], [text("b"), Value::Null]);
        assert_eq!(digest(&[&one, &two]), digest(&[&two, &one]));
        assert_ne!(digest(&[&one, &two]), digest(&[&one, &one]));
        assert_ne!(digest(&[&one]), digest(&[&one, &one]));
        assert_ne!(digest(&[&[text("ab"), text("")]]), digest(&[&[text("a"), text("b")]]));
        assert_ne!(digest(&[&[Value::Null]]), digest(&[&[Value::Int(0)]]));
        assert_ne!(digest(&[&[text("a")]]), digest(&[&[Value::Bytes(b"a".to_vec())]]));
    }
}
