//! Compressed inputs, unpacked while they are read.

use abreast_webtypes::BYTES_BEHIND_GZIP;
use ruzstd::decoding::BlockDecodingStrategy;
use ruzstd::decoding::FrameDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::rc::Rc;

/// Most bytes of a packed stream's window in memory: as much as `xz -9` and `zstd --ultra -22`
/// need.
const WINDOW: u64 = 128 << 20;
/// Unpacked bytes from which the ratio is checked, and the largest ratio of unpacked to packed
/// bytes.
const RATIO_FROM: u64 = 64 << 20;
const MAX_RATIO: u64 = 1_000;

/// The unpacked bytes of a file. `compression` is a file name extension, such as `gz`; `None` for
/// an unknown compression.
pub fn unpacked(file: File, compression: &str) -> Option<Box<dyn Read>> {
    let packed = Rc::<Cell<u64>>::default();
    let input = BufReader::with_capacity(1 << 16, Counted { file, read: Rc::clone(&packed) });
    let unpacked: Box<dyn Read> = match compression {
        "gz" => Box::new(abreast_webtypes::GzipReader::new(input)),
        "bz2" => Box::new(bzip2::bufread::MultiBzDecoder::new(input)),
        "xz" => {
            let limit = (WINDOW >> 10) as u32;
            Box::new(lzma_rust2::XzReader::new_mem_limit(input, true, limit))
        }
        "zst" => Box::new(Zstandard { input, decoder: decoder(), in_frame: false }),
        _ => return None,
    };
    Some(Box::new(Bounded { unpacked, packed, given: 0, from: RATIO_FROM }))
}

/// The compression of a file by its first ten bytes, in the form of [`unpacked`].
pub(crate) fn compression_of(start: &[u8]) -> Option<&'static str> {
    let is_bzip2 = start.starts_with(b"BZh") && start.get(4..10) == Some(b"1AY&SY");
    match start {
        [0x1f, 0x8b, ..] => Some("gz"),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some("xz"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("zst"),
        _ if is_bzip2 => Some("bz2"),
        _ => None,
    }
}

/// A file with a count of the bytes read.
struct Counted {
    file: File,
    read: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
    }
}

/// Fails if the ratio of unpacked to packed bytes is suspiciously large.
struct Bounded<R> {
    unpacked: R,
    packed: Rc<Cell<u64>>,
    given: u64,
    from: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.unpacked.read(buffer).map_err(broken)?;
        self.given += read as u64;
        if self.given > self.from && self.given / MAX_RATIO > self.packed.get() {
            return Err(wrong(format!("it unpacks to more than {MAX_RATIO} times its size")));
        }
        Ok(read)
    }
}

/// A failure of a decoder: the fault of the file, then the decoder's own message.
fn broken(error: io::Error) -> io::Error {
    if error.to_string() == BYTES_BEHIND_GZIP {
        return error;
    }
    let what = match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            "the compressed data ends in the middle: the file is truncated"
        }
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::Other => {
            "the compressed data is damaged"
        }
        _ => return error,
    };
    io::Error::new(error.kind(), format!("{what} ({error})"))
}

fn wrong(problem: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}

/// Frames of Zstandard, one after the other.
struct Zstandard<R> {
    input: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

fn decoder() -> FrameDecoder {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(WINDOW);
    decoder
}

impl<R: BufRead> Read for Zstandard<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame {
                if self.input.fill_buf()?.is_empty() {
                    return Ok(0);
                }
                match self.decoder.init(&mut self.input) {
                    Ok(()) => self.in_frame = true,
                    Err(FrameDecoderError::ReadFrameHeaderError(
                        ReadFrameHeaderError::SkipFrame { length, .. },
                    )) => {
                        let length = u64::from(length);
                        let mut skipped = (&mut self.input).take(length);
                        if io::copy(&mut skipped, &mut io::sink())? < length {
                            return Err(io::ErrorKind::UnexpectedEof.into());
                        }
                        continue;
                    }
                    Err(error) => return Err(wrong(error)),
                }
            }
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                self.decoder
                    .decode_blocks(&mut self.input, BlockDecodingStrategy::UptoBlocks(1))
                    .map_err(wrong)?;
            }
            let read = self.decoder.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            let stated = self.decoder.get_checksum_from_data();
            if stated.is_some() && stated != self.decoder.get_calculated_checksum() {
                return Err(wrong("a checksum in it is not right"));
            }
            self.in_frame = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek as _, Write as _};

    fn packed(compression: &str, bytes: &[u8]) -> Vec<u8> {
        match compression {
            "gz" => {
                let mut out =
                    flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                out.write_all(bytes).unwrap();
                out.finish().unwrap()
            }
            "bz2" => {
                let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
                out.write_all(bytes).unwrap();
                out.finish().unwrap()
            }
            "xz" => {
                let options = lzma_rust2::XzOptions::with_preset(1);
                let mut out = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
                out.write_all(bytes).unwrap();
                out.finish().unwrap()
            }
            _ => {
                let level = ruzstd::encoding::CompressionLevel::Fastest;
                ruzstd::encoding::compress_to_vec(bytes, level)
            }
        }
    }

    fn read(compression: &str, packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(packed).unwrap();
        file.rewind().unwrap();
        let mut bytes = Vec::new();
        unpacked(file, compression).unwrap().read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn every_compression_is_read_in_any_number_of_parts() {
        let text: Vec<u8> = (0..40_000_u32).flat_map(u32::to_le_bytes).collect();
        for compression in ["gz", "bz2", "xz", "zst"] {
            let one = packed(compression, &text);
            assert_eq!(read(compression, &one).unwrap(), text, "{compression}");
            assert_eq!(compression_of(&one[..10]), Some(compression));
            let two = [one.clone(), packed(compression, b"end")].concat();
            let both = [text.as_slice(), b"end"].concat();
            assert_eq!(read(compression, &two).unwrap(), both, "{compression}");
            if matches!(compression, "gz" | "xz") {
                let padded = [&two[..], &[0; 512]].concat();
                assert_eq!(read(compression, &padded).unwrap(), both, "{compression}");
            }
            for length in [1, 3, 11, one.len() / 2, one.len() - 1] {
                assert!(read(compression, &one[..length]).is_err(), "{compression} {length}");
            }
            for place in [one.len() / 3, one.len() / 2, one.len() - 1] {
                let mut broken = one.clone();
                broken[place] ^= 0x55;
                let result = read(compression, &broken);
                assert!(result.map_or(true, |read| read == text), "{compression} {place}");
            }
        }
        assert_eq!(compression_of(b"BZh:a <http://b> 1 ."), None);
        assert!(unpacked(tempfile::tempfile().unwrap(), "Z").is_none());
    }

    #[test]
    fn what_unpacks_to_too_much_is_refused() {
        let packed = Rc::new(Cell::new(3));
        let mut bomb = Bounded { unpacked: io::repeat(0), packed, given: 0, from: 1_000 };
        let error = io::copy(&mut bomb, &mut io::sink()).unwrap_err();
        assert!(error.to_string().contains("more than 1000 times"), "{error}");
    }
}
