//! A chain of patches in the file of planned bytes.
//!
//! Each patch is stored after its length. The item of a patched resource has the offset of its
//! chain. The chain contains the offset and the length of the version to which the first patch
//! applies, if that version is planned too; then the number of patches and the offset of each. All
//! numbers have eight bytes.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

/// Maximum length of a patch, in bytes.
pub(crate) const PATCH_BYTES_MAX: usize = 16 << 20;
/// Maximum number of patches of a resource.
pub(crate) const CHAIN_MAX: usize = 1_000;
/// Maximum total length of the patches and of the version to which they apply, in bytes.
const CHAIN_BYTES_MAX: u64 = 32 << 20;
/// The value that replaces the length of a version that is not in the file.
const NO_BASE: u64 = u64::MAX;

/// Offsets of the parts of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    /// Offset and length of the version to which the chain applies.
    pub(crate) base: Option<(u64, u64)>,
    /// Offsets of the patches.
    pub(crate) patches: Vec<u64>,
}

/// The parts of a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chain {
    /// The version to which the chain applies, if it is not stored in the copy yet.
    pub(crate) base: Option<Vec<u8>>,
    /// The patches, the oldest first.
    pub(crate) patches: Vec<Vec<u8>>,
}

impl Places {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let (begin, length) = self.base.unwrap_or((0, NO_BASE));
        let numbers = [begin, length, self.patches.len() as u64];
        numbers.iter().chain(&self.patches).flat_map(|number| number.to_le_bytes()).collect()
    }

    pub(super) fn read(file: &File, at: u64) -> io::Result<Self> {
        let [begin, length, count] = [0, 8, 16].map(|more| number(file, at.saturating_add(more)));
        let base = Some((begin?, length?)).filter(|(_, length)| *length != NO_BASE);
        let count = count?;
        if count > CHAIN_MAX as u64 {
            return Err(too_large());
        }
        let mut patches = vec![0; count as usize * 8];
        file.read_exact_at(&mut patches, at + 24)?;
        let (patches, _) = patches.as_chunks();
        Ok(Self { base, patches: patches.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect() })
    }

    pub(super) fn parts(&self, file: &File) -> io::Result<Chain> {
        let mut left = CHAIN_BYTES_MAX;
        let mut part = |begin: u64, length: u64| {
            left = left.checked_sub(length).ok_or_else(too_large)?;
            let mut bytes = vec![0; length as usize];
            file.read_exact_at(&mut bytes, begin).map(|()| bytes)
        };
        let base = self.base.map(|(begin, length)| part(begin, length)).transpose()?;
        let patch = |begin: &u64| part(begin.saturating_add(8), number(file, *begin)?);
        Ok(Chain { base, patches: self.patches.iter().map(patch).collect::<Result<_, _>>()? })
    }
}

fn number(file: &File, at: u64) -> io::Result<u64> {
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, at)?;
    Ok(u64::from_le_bytes(bytes))
}

fn too_large() -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, "the patches are too many or too large together")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_chain_is_read_as_it_was_written() {
        let mut file = tempfile::tempfile().unwrap();
        let mut all = b"base".to_vec();
        let mut begins = Vec::new();
        for patch in ["first", "", "third"] {
            begins.push(all.len() as u64);
            all.extend((patch.len() as u64).to_le_bytes());
            all.extend(patch.as_bytes());
        }
        let places = [
            Places { base: None, patches: begins.clone() },
            Places { base: Some((0, 4)), patches: begins },
        ];
        let at = places.each_ref().map(|places| {
            let at = all.len() as u64;
            all.extend(places.to_bytes());
            at
        });
        file.write_all(&all).unwrap();
        for (places, at) in places.iter().zip(at) {
            let read = Places::read(&file, at).unwrap();
            assert_eq!(read, *places);
            let chain = read.parts(&file).unwrap();
            assert_eq!(chain.base.as_deref(), places.base.map(|_| &b"base"[..]));
            assert_eq!(chain.patches, [&b"first"[..], b"", b"third"]);
        }
        // The chain of another file, or a damaged one.
        assert!(Places::read(&file, all.len() as u64 - 4).is_err());
        file.write_all(&[0xff; 24]).unwrap();
        assert!(Places::read(&file, all.len() as u64).is_err());
        let wrong = Places { base: Some((0, 1 << 40)), patches: Vec::new() };
        assert!(wrong.parts(&file).is_err());
        // The total length exceeds the limit, but each part can be read.
        file.set_len(CHAIN_BYTES_MAX).unwrap();
        let most = CHAIN_BYTES_MAX / 2;
        file.write_all_at(&most.to_le_bytes(), 0).unwrap();
        assert_eq!(Places { base: None, patches: vec![0] }.parts(&file).unwrap().patches.len(), 1);
        let error = Places { base: None, patches: vec![0; 3] }.parts(&file).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
