//! Compressing one record into one gzip member.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};

/// Most bytes in one stored block of the deflate format.
const STORED_MAX: usize = 65_535;
/// gzip, deflate, no flags, no time, unknown system.
const HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];

/// How much work is put into a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Packing {
    /// None: the bytes as they are, within a member.
    #[default]
    Stored,
    /// Deflate with a level from 1, fast, to 9, small.
    Deflate(u8),
}

/// A gzip member being written.
#[derive(Debug)]
pub struct Member<W: Write>(Inner<W>);

#[derive(Debug)]
enum Inner<W: Write> {
    Stored { out: W, crc: crc32fast::Hasher, length: u32 },
    Deflate(GzEncoder<W>),
}

impl<W: Write> Member<W> {
    /// Begins a gzip member at the end of an output.
    ///
    /// # Errors
    /// The output's own.
    pub fn begin(mut out: W, packing: Packing) -> io::Result<Self> {
        Ok(Self(match packing {
            Packing::Stored => {
                out.write_all(&HEADER)?;
                Inner::Stored { out, crc: crc32fast::Hasher::new(), length: 0 }
            }
            Packing::Deflate(level) => {
                Inner::Deflate(GzEncoder::new(out, Compression::new(u32::from(level.clamp(1, 9)))))
            }
        }))
    }

    /// Adds bytes of the record to the member.
    ///
    /// # Errors
    /// The output's own.
    pub fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.0 {
            Inner::Stored { out, crc, length } => {
                crc.update(bytes);
                // The format has room for the last 32 bits of the length.
                *length = length.wrapping_add(bytes.len() as u32);
                for block in bytes.chunks(STORED_MAX) {
                    write_block_head(out, 0, block.len())?;
                    out.write_all(block)?;
                }
                Ok(())
            }
            Inner::Deflate(encoder) => encoder.write_all(bytes),
        }
    }

    /// Ends the member with its checksum, and returns the output.
    ///
    /// # Errors
    /// The output's own.
    pub fn finish(self) -> io::Result<W> {
        match self.0 {
            Inner::Stored { mut out, crc, length } => {
                write_block_head(&mut out, 1, 0)?;
                out.write_all(&crc.finalize().to_le_bytes())?;
                out.write_all(&length.to_le_bytes())?;
                Ok(out)
            }
            Inner::Deflate(encoder) => encoder.finish(),
        }
    }
}

fn write_block_head(out: &mut impl Write, last: u8, length: usize) -> io::Result<()> {
    let length = length as u16;
    let [low, high] = length.to_le_bytes();
    let [not_low, not_high] = (!length).to_le_bytes();
    out.write_all(&[last, low, high, not_low, not_high])
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::bufread::GzDecoder;
    use std::io::Read as _;

    fn round(parts: &[&[u8]], packing: Packing) -> Vec<u8> {
        let mut member = Member::begin(Vec::new(), packing).unwrap();
        for part in parts {
            member.add(part).unwrap();
        }
        let packed = member.finish().unwrap();
        let mut out = Vec::new();
        GzDecoder::new(packed.as_slice()).read_to_end(&mut out).unwrap();
        out
    }

    #[test]
    fn compressed_bytes_are_restored() {
        let large = vec![7; 200_000];
        for packing in [Packing::Stored, Packing::Deflate(1), Packing::Deflate(200)] {
            assert_eq!(round(&[], packing), b"");
            assert_eq!(round(&[b"", b"he", b"llo"], packing), b"hello");
            assert_eq!(round(&[&large, b"x"], packing).len(), 200_001);
        }
    }
}
