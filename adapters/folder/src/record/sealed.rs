//! Small records, each replaced as a whole, whose last line is the digest of the lines before it.
//!
//! A flipped bit in such a record is found before anything follows from it. Records of earlier
//! versions do not have this line, and are read as they are.

use super::owner::own_as_folder;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// First word of the last line, before the digest.
const MARK: &str = "blake3 ";
/// Bytes of the last line.
const LENGTH: usize = MARK.len() + 64 + 1;
/// Largest record, in bytes, that is corrected by trying each bit.
const CORRECTED_MAX: usize = 32 * 1024;

/// Appends the line with the digest to a text.
pub fn sealed(mut text: Vec<u8>) -> Vec<u8> {
    if text.last() != Some(&b'\n') {
        text.push(b'\n');
    }
    let seal = seal_of(&text);
    text.extend_from_slice(seal.as_bytes());
    text
}

/// The text of a record without the line of its digest, or the whole record if an earlier version
/// wrote it without a digest.
///
/// # Errors
/// Text and digest differ ([`io::ErrorKind::InvalidData`]).
pub fn unsealed(record: &[u8]) -> io::Result<&[u8]> {
    let Some((text, seal)) = parts(record) else { return Ok(record) };
    let right = seal_of(text);
    if seal == right.as_bytes() {
        return Ok(text);
    }
    let is_seal = seal.starts_with(MARK.as_bytes()) && seal.ends_with(b"\n");
    if is_seal || other_bits(seal, right.as_bytes()) < 16 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "its digest is another one"));
    }
    Ok(record)
}

/// Whether a record has a digest that matches its text.
pub fn is_sealed(record: &[u8]) -> bool {
    parts(record).is_some_and(|(text, seal)| seal == seal_of(text).as_bytes())
}

/// A record as it was before one of its bits changed, which its digest proves; `None` if more bits
/// changed, it does not have a digest, or it is too large.
pub fn corrected(record: &[u8]) -> Option<Vec<u8>> {
    let (text, seal) = parts(record).filter(|_| record.len() <= CORRECTED_MAX)?;
    let right = seal_of(text);
    if other_bits(right.as_bytes(), seal) <= 1 {
        return Some([text, right.as_bytes()].concat());
    }
    let mut found = record.to_vec();
    for bit in 0..text.len() * 8 {
        found[bit / 8] ^= 1 << (bit % 8);
        if is_sealed(&found) {
            return Some(found);
        }
        found[bit / 8] ^= 1 << (bit % 8);
    }
    None
}

/// Reads the text of a record.
///
/// # Errors
/// It is damaged ([`io::ErrorKind::InvalidData`]), is missing, or cannot be read.
pub fn read_sealed(path: &Path) -> io::Result<Vec<u8>> {
    let mut record = fs::read(path)?;
    let length = unsealed(&record)?.len();
    record.truncate(length);
    Ok(record)
}

/// Replaces a record durably: after a crash, the file has either the former or the new text.
///
/// # Errors
/// It cannot be written.
pub fn write_sealed(path: &Path, text: Vec<u8>) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let mut file = fs::File::create(&new)?;
    file.write_all(&sealed(text))?;
    own_as_folder(&file, path)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn other_bits(one: &[u8], other: &[u8]) -> u32 {
    one.iter().zip(other).map(|(one, other)| (one ^ other).count_ones()).sum()
}

fn parts(record: &[u8]) -> Option<(&[u8], &[u8])> {
    record.split_at_checked(record.len().checked_sub(LENGTH)?)
}

fn seal_of(text: &[u8]) -> String {
    format!("{MARK}{}\n", blake3::hash(text).to_hex())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_written_by_root_belong_to_the_owner_of_the_folder() {
        use std::os::unix::fs::{MetadataExt as _, chown};
        let place = tempfile::tempdir().unwrap();
        if chown(place.path(), Some(12_345), Some(12_346)).is_err() {
            // Only root can do this, and needs it.
            return;
        }
        let path = place.path().join("record");
        for of_root in [false, true, false] {
            if of_root {
                chown(&path, Some(0), Some(0)).unwrap();
            }
            write_sealed(&path, b"a".to_vec()).unwrap();
            let found = fs::metadata(&path).unwrap();
            assert_eq!((found.uid(), found.gid()), (12_345, 12_346), "{of_root}");
        }
        assert_eq!(crate::other_owner(place.path()), Some((12_345, 12_346)));
        assert_eq!(crate::other_owner(&place.path().join("missing")), Some((12_345, 12_346)));
    }

    #[test]
    fn each_flipped_bit_is_found_and_corrected() {
        let record = sealed(b"{\"tokens\":[]}".to_vec());
        assert_eq!(unsealed(&record).unwrap(), b"{\"tokens\":[]}\n");
        assert_eq!(unsealed(b"as before\n").unwrap(), b"as before\n");
        for bit in 0..record.len() * 8 {
            let mut damaged = record.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_sealed(&damaged), "bit {bit}");
            assert_eq!(unsealed(&damaged).unwrap_err().kind(), io::ErrorKind::InvalidData);
            assert_eq!(corrected(&damaged).as_ref(), Some(&record), "bit {bit}");
        }
        let mut damaged = record.clone();
        (damaged[0], damaged[1]) = (b' ', b' ');
        assert_eq!(corrected(&damaged), None);
        assert_eq!(corrected(b"as before\n"), None);
    }

    #[test]
    fn records_are_replaced_as_a_whole() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("record");
        assert_eq!(read_sealed(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        for text in ["one\n", "two\n"] {
            write_sealed(&path, text.into()).unwrap();
            assert_eq!(read_sealed(&path).unwrap(), text.as_bytes());
        }
        fs::write(&path, "from before\n").unwrap();
        assert_eq!(read_sealed(&path).unwrap(), b"from before\n");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
