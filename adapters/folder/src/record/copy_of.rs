//! The record of the Sources of a copy, in the folder `.abreast`.
//!
//! A copy writes the record, and a Source whose folder contains the copy reads it: the Source does
//! not publish resources that were copied from itself.

use crate::entry::error::Error;
use crate::record::sealed::sealed;
use crate::{Dir, unsealed};

/// The record of a copy. Each line is an address, or `part`, an address, and the path of a folder
/// of the copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyOf {
    /// Addresses of the Source of the copy. The first two are the address that the user gave, and its first document.
    pub sources: Vec<String>,
    /// Folders of the copy that its Source copied from other Sources, with the address of each:
    /// their paths in the copy. The path is empty if this is the whole copy, or if the copy does
    /// not have separate folders.
    pub parts: Vec<(Vec<u8>, String)>,
    /// Whether the digest of the record is wrong.
    pub is_damaged: bool,
}

impl CopyOf {
    /// File name of the record in the state folder.
    pub const NAME: &str = "copy-of";
    /// Most addresses of a record, and most parts.
    pub const SOURCES_MAX: usize = 64;
    /// Most bytes that are read of a record.
    pub const BYTES_MAX: u64 = 32 << 10;
    /// Most bytes of the lines; the rest is for the digest.
    const LINES_MAX: usize = 31 << 10;

    /// Reads the record at a path in a folder.
    ///
    /// # Errors
    /// It is missing, or cannot be read.
    pub fn read(dir: &Dir, path: &[u8]) -> Result<Self, Error> {
        dir.read_begin(path, Self::BYTES_MAX).map(|record| Self::parse(&record))
    }

    /// Reads a record. The readable lines of a damaged record are used too: their addresses were
    /// copied from.
    pub fn parse(record: &[u8]) -> Self {
        let (text, is_damaged) = unsealed(record).map_or((record, true), |text| (text, false));
        let mut parsed = Self { is_damaged, ..Self::default() };
        for line in text.split(|byte| *byte == b'\n') {
            if let Some(part) = line.strip_prefix(b"part ") {
                let mut words = part.splitn(2, |byte| *byte == b' ');
                if let (Some(address), Some(path)) = (words.next(), words.next()) {
                    parsed.add_part(path.to_vec(), &String::from_utf8_lossy(address));
                }
            } else {
                parsed.add_source(String::from_utf8_lossy(line).trim());
            }
        }
        parsed
    }

    /// Adds an address of the Source of the copy, unless there are too many.
    pub fn add_source(&mut self, address: &str) {
        if is_line(address.as_bytes())
            && address.contains("://")
            && self.sources.len() < Self::SOURCES_MAX
            && (self.sources.len() < 2 || !self.sources.iter().any(|known| known == address))
        {
            self.sources.push(address.to_owned());
        }
    }

    /// Adds a folder of the copy with the address of its Source, unless there are too many.
    pub fn add_part(&mut self, path: Vec<u8>, address: &str) {
        let is_address = is_line(address.as_bytes()) && !address.contains(' ');
        let is_known = |(known, of): &(Vec<u8>, String)| *known == path && of == address;
        if is_address
            && !path.contains(&b'\n')
            && self.parts.len() < Self::SOURCES_MAX
            && !self.parts.iter().any(is_known)
        {
            self.parts.push((path, address.to_owned()));
        }
    }

    /// The bytes of the record, with its digest.
    pub fn to_record(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for source in &self.sources {
            add_line(&mut text, &[source.as_bytes()]);
        }
        for (path, address) in &self.parts {
            add_line(&mut text, &[b"part ", address.as_bytes(), b" ", path]);
        }
        sealed(text)
    }
}

/// Whether bytes can be a line of the record.
fn is_line(bytes: &[u8]) -> bool {
    !bytes.is_empty() && !bytes.contains(&b'\n')
}

fn add_line(text: &mut Vec<u8>, words: &[&[u8]]) {
    let length: usize = words.iter().map(|word| word.len()).sum();
    if text.len() + length < CopyOf::LINES_MAX {
        for word in words {
            text.extend_from_slice(word);
        }
        text.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let mut written = CopyOf::default();
        for address in ["http://a/", "http://a/", "http://b/", "http://b/", "", "a\nb"] {
            written.add_source(address);
        }
        written.add_part(b"x y/\xff".to_vec(), "http://c/");
        written.add_part(Vec::new(), "http://d/");
        written.add_part(b"x\ny".to_vec(), "http://c/");
        written.add_part(b"x".to_vec(), "http://c/ d");
        assert_eq!(written.sources, ["http://a/", "http://a/", "http://b/"]);
        let parts = [(&b"x y/\xff"[..], "http://c/"), (b"", "http://d/")];
        assert_eq!(written.parts, parts.map(|(path, url)| (path.to_vec(), url.to_owned())));
        assert_eq!(CopyOf::parse(&written.to_record()), written);
        // Of earlier versions.
        let earlier = CopyOf::parse(b"http://a/\nhttp://a/capabilitylist.xml\n");
        assert_eq!((earlier.sources.len(), earlier.is_damaged), (2, false));
    }

    #[test]
    fn a_damaged_record_is_noticed_and_read_as_far_as_possible() {
        let mut written = CopyOf::default();
        written.add_source("http://a/");
        written.add_part(b"x".to_vec(), "http://b/");
        let record = written.to_record();
        for bit in 0..record.len() * 8 {
            let mut damaged = record.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let read = CopyOf::parse(&damaged);
            assert!(read.is_damaged, "bit {bit}");
            let has_source = read.sources.iter().any(|source| source.starts_with("http://a/"));
            assert!(has_source || read.parts == written.parts, "bit {bit}");
            assert!(!read.sources.iter().any(|source| source.contains("blake3")), "bit {bit}");
        }
    }

    #[test]
    fn a_record_has_a_limit() {
        let mut long = CopyOf::default();
        for number in 0..1_000 {
            long.add_source(&format!("http://{number}/{}", "a".repeat(2_000)));
            long.add_part(vec![b'b'; 3_000], &format!("http://{number}/"));
        }
        assert_eq!((long.sources.len(), long.parts.len()), (64, 64));
        let record = long.to_record();
        assert!(record.len() as u64 <= CopyOf::BYTES_MAX && !CopyOf::parse(&record).is_damaged);
    }
}
