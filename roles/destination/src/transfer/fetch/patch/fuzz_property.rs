//! Properties of every patch: for fuzzing and for the tests of its seeds.

use super::{DIFFERENCE_MARK, apply_json};
use crate::plan::patch_format::Format;

/// Longest JSON that is made.
const JSON_MAX: u64 = 4_096;

/// The first byte selects the format; the bytes up to the next zero byte are the stored version,
/// and the rest is the patch. The result never exceeds its limit, JSON remains JSON, and a binary
/// difference results in its original.
///
/// # Panics
/// A property does not hold.
pub fn check(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else { return };
    let middle = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    let (kept, patch) = (&rest[..middle], rest.get(middle + 1..).unwrap_or_default());
    match kind {
        b'j' => {
            let Some(new) = apply_json(kept, patch, JSON_MAX) else { return };
            assert!(new.len() as u64 <= JSON_MAX);
            let read: Result<serde_json::Value, _> = serde_json::from_slice(&new);
            assert!(read.is_ok(), "{}", String::from_utf8_lossy(&new));
        }
        b'a' => {
            let length = bytes.len() as u64;
            assert!(
                Format::Append
                    .apply(kept.to_vec(), patch, Some(length))
                    .is_none_or(|new| new.len() as u64 == length)
            );
        }
        b'd' => {
            let mut made = head(patch.len());
            if bsdiff::diff(kept, patch, &mut made).is_ok() {
                assert_eq!(
                    Format::Difference
                        .apply(kept.to_vec(), &made, Some(patch.len() as u64))
                        .as_deref(),
                    Some(patch)
                );
            }
        }
        _ => {
            let length = usize::from(*kind);
            let patch = [&head(length), patch].concat();
            let new = Format::Difference.apply(kept.to_vec(), &patch, Some(length as u64));
            assert!(new.is_none_or(|new| new.len() == length));
        }
    }
}

fn head(length: usize) -> Vec<u8> {
    [&DIFFERENCE_MARK[..], &(length as u64).to_le_bytes()].concat()
}
