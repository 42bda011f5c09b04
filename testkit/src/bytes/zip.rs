//! ZIP files written byte by byte, also such as no program should write.

use std::io::Write as _;

const DEFLATED: u16 = 8;

/// A ZIP file that is being written.
#[derive(Default)]
pub struct Zip {
    out: Vec<u8>,
    directory: Vec<u8>,
    count: u16,
    /// The extra field of the members that are added next.
    extra: Vec<u8>,
}

impl Zip {
    /// An archive without members.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the members added next this time, in seconds since 1970 in UTC.
    pub fn modified(&mut self, seconds: i32) -> &mut Self {
        self.extra = [&b"UT\x05\x00\x01"[..], &seconds.to_le_bytes()].concat();
        self
    }

    /// Adds a stored member.
    pub fn add(&mut self, name: &str, bytes: &[u8]) -> &mut Self {
        self.member(name, 0, 0, 0, bytes, crc(bytes), bytes.len())
    }

    /// Adds a compressed member.
    pub fn deflated(&mut self, name: &str, bytes: &[u8]) -> &mut Self {
        self.deflated_as(name, bytes, bytes.len())
    }

    /// Adds a compressed member whose headers state another length.
    pub fn deflated_as(&mut self, name: &str, bytes: &[u8], length: usize) -> &mut Self {
        self.member(name, DEFLATED, 0, 0, &deflate(bytes), crc(bytes), length)
    }

    /// Adds a stored member that is marked as encrypted.
    pub fn encrypted(&mut self, name: &str, bytes: &[u8]) -> &mut Self {
        self.member(name, 0, 1, 0, bytes, crc(bytes), bytes.len())
    }

    /// Adds a member whose headers state a compression method.
    pub fn method(&mut self, name: &str, method: u16, bytes: &[u8]) -> &mut Self {
        self.member(name, method, 0, 0, bytes, crc(bytes), bytes.len())
    }

    /// Adds a symbolic link.
    pub fn symlink(&mut self, name: &str, target: &str) -> &mut Self {
        self.member(
            name,
            0,
            0,
            0o120_777 << 16,
            target.as_bytes(),
            crc(target.as_bytes()),
            target.len(),
        )
    }

    /// Adds a folder.
    pub fn folder(&mut self, name: &str) -> &mut Self {
        self.member(name, 0, 0, 0o40_755 << 16, b"", 0, 0)
    }

    #[expect(clippy::too_many_arguments, reason = "what a header has in it")]
    fn member(
        &mut self,
        name: &str,
        method: u16,
        flags: u16,
        attributes: u32,
        packed: &[u8],
        crc: u32,
        length: usize,
    ) -> &mut Self {
        let offset = self.out.len() as u32;
        let mut shared = Vec::new();
        for word in [20, flags, method, 0, 0x5c21] {
            shared.extend_from_slice(&u16::to_le_bytes(word));
        }
        for long in [crc, packed.len() as u32, length as u32] {
            shared.extend_from_slice(&long.to_le_bytes());
        }
        shared.extend_from_slice(&(name.len() as u16).to_le_bytes());
        shared.extend_from_slice(&(self.extra.len() as u16).to_le_bytes());
        self.out.extend_from_slice(b"PK\x03\x04");
        self.out.extend_from_slice(&shared);
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(&self.extra);
        self.out.extend_from_slice(packed);
        self.entry(&shared, name, attributes, offset);
        self
    }

    fn entry(&mut self, shared: &[u8], name: &str, attributes: u32, offset: u32) {
        // Made on Unix, so that the attributes count.
        self.directory.extend_from_slice(b"PK\x01\x02\x14\x03");
        self.directory.extend_from_slice(shared);
        self.directory.extend_from_slice(&[0; 6]);
        self.directory.extend_from_slice(&attributes.to_le_bytes());
        self.directory.extend_from_slice(&offset.to_le_bytes());
        self.directory.extend_from_slice(name.as_bytes());
        self.directory.extend_from_slice(&self.extra);
        self.count += 1;
    }

    /// Writes the directory; returns the bytes of the file.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.out);
        let at = out.len() as u32;
        out.extend_from_slice(&self.directory);
        out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&(self.directory.len() as u32).to_le_bytes());
        out.extend_from_slice(&at.to_le_bytes());
        out.extend_from_slice(&0_u16.to_le_bytes());
        out
    }

    /// A file whose directory has many entries for one and the same member.
    pub fn overlapping(count: u16, bytes: &[u8]) -> Vec<u8> {
        let mut zip = Self::new();
        zip.deflated("r0", bytes);
        let shared = zip.out[4..30].to_vec();
        for number in 1..count {
            let name = format!("r{number}");
            let mut shared = shared.clone();
            shared[22..24].copy_from_slice(&(name.len() as u16).to_le_bytes());
            zip.entry(&shared, &name, 0, 0);
        }
        zip.finish()
    }
}

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
