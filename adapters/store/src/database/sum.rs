//! A checksum (CRC-32) of each row, compared whenever the row is read.

use rusqlite::types::ValueRef;

/// A checksum while it is computed.
#[derive(Default)]
pub(crate) struct Sum(crc32fast::Hasher);

impl Sum {
    pub(crate) fn number(&mut self, number: Option<i64>) {
        match number {
            Some(number) => {
                let mut bytes = [1; 9];
                bytes[1..].copy_from_slice(&number.to_le_bytes());
                self.0.update(&bytes);
            }
            None => self.0.update(&[0]),
        }
    }

    pub(crate) fn bytes(&mut self, bytes: Option<&[u8]>) {
        self.number(bytes.map(|bytes| bytes.len() as i64));
        self.0.update(bytes.unwrap_or_default());
    }

    pub(crate) fn value(&mut self, value: ValueRef<'_>) -> Option<()> {
        match value {
            ValueRef::Null => self.number(None),
            ValueRef::Integer(number) => self.number(Some(number)),
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => self.bytes(Some(bytes)),
            ValueRef::Real(_) => return None,
        }
        Some(())
    }

    pub(crate) fn finish(self) -> i64 {
        i64::from(self.0.finalize())
    }
}

pub(crate) fn damaged(column: usize) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(
        column,
        rusqlite::types::Type::Null,
        Box::new(Damaged),
    )
}

/// Error for a row that differs from its checksum.
#[derive(Debug, thiserror::Error)]
#[error("a row of the store is not as it was written")]
struct Damaged;
