//! Gzip as it is found: several members, and zeros behind the last one.

use flate2::bufread::GzDecoder;
use std::io::{self, BufRead, Read};

/// Most zeros between and behind members, in bytes.
pub const MAX_GZIP_PADDING: u64 = 1 << 20;
/// The fault of a file with other bytes behind its last member [rfc1952 §2.2].
pub const BYTES_BEHIND_GZIP: &str = "there are bytes behind the end of the gzip data";
/// First byte of each member.
const FIRST_BYTE: u8 = 0x1f;

/// Unpacks gzip from its beginning to its end: all members [rfc1952 §2.2], and zeros behind the last one,
/// which some programs fill blocks with. Anything else behind it is an error, and so are more zeros than
/// [`MAX_GZIP_PADDING`].
///
/// An input that answers [`io::ErrorKind::WouldBlock`] can be read again when it has more.
///
/// ```
/// use flate2::{Compression, write::GzEncoder};
/// use std::io::{Read as _, Write as _};
///
/// let mut packed = Vec::new();
/// for part in ["two ", "members"] {
///     let mut member = GzEncoder::new(&mut packed, Compression::fast());
///     member.write_all(part.as_bytes())?;
///     member.finish()?;
/// }
/// packed.extend([0; 512]);
/// let mut text = String::new();
/// abreast_webtypes::GzipReader::new(&packed[..]).read_to_string(&mut text)?;
/// assert_eq!(text, "two members");
/// # std::io::Result::Ok(())
/// ```
pub struct GzipReader<R: BufRead> {
    /// Absent while a member is replaced by the next one.
    decoder: Option<GzDecoder<R>>,
    /// Whether a member ended and no other started yet.
    is_between: bool,
    /// A member ended, and the next one has given nothing yet.
    is_begin: bool,
    padding: u64,
}

impl<R: BufRead> GzipReader<R> {
    /// Unpacks from where the input is.
    pub fn new(packed: R) -> Self {
        Self {
            decoder: Some(GzDecoder::new(packed)),
            is_between: false,
            is_begin: false,
            padding: 0,
        }
    }

    /// The compressed input, for callers that feed more bytes.
    pub fn get_mut(&mut self) -> &mut R {
        self.decoder.as_mut().expect("is only absent within `read`").get_mut()
    }

    /// Skips zeros, and returns whether another member follows.
    fn next_member(&mut self) -> io::Result<bool> {
        loop {
            let packed = self.get_mut().fill_buf()?;
            let zeros = packed.iter().take_while(|byte| **byte == 0).count();
            let packed_byte = packed.get(zeros).copied();
            let (is_end, has_more) = (packed.is_empty(), packed_byte.is_some());
            self.get_mut().consume(zeros);
            self.padding += zeros as u64;
            if self.padding > MAX_GZIP_PADDING {
                let message = format!("more than {MAX_GZIP_PADDING} zeros behind a member");
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            let is_other = has_more && packed_byte != Some(FIRST_BYTE);
            if is_other {
                return Err(behind());
            }
            if is_end || has_more {
                return Ok(has_more);
            }
        }
    }
}

impl<R: BufRead> Read for GzipReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.is_between {
                if !self.next_member()? {
                    return Ok(0);
                }
                let decoder = self.decoder.take().expect("is only absent here");
                self.decoder = Some(GzDecoder::new(decoder.into_inner()));
                (self.is_between, self.is_begin) = (false, true);
            }
            let read = self.decoder.as_mut().expect("is only absent above").read(buffer);
            let count = match read {
                // The bytes do not contain the head of a member.
                Err(error) if self.is_begin && error.kind() == io::ErrorKind::InvalidInput => {
                    return Err(behind());
                }
                read => read?,
            };
            self.is_begin = false;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            self.is_between = true;
        }
    }
}

fn behind() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, BYTES_BEHIND_GZIP)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_behind_the_last_member_are_named() {
        let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut member, b"x").unwrap();
        let packed = member.finish().unwrap();
        for more in [&b"x"[..], b"\n", b"\0\0<html>", b"\x1f\x8a is no gzip", b"no gzip at all"] {
            let all = [&packed[..], more].concat();
            for piece in [1, 8, 100] {
                let input = io::BufReader::with_capacity(piece, &all[..]);
                let error = io::copy(&mut GzipReader::new(input), &mut io::sink()).unwrap_err();
                assert_eq!(error.to_string(), BYTES_BEHIND_GZIP, "{more:?} {piece}");
            }
        }
    }

    #[test]
    fn endless_zeros_end() {
        let mut member = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        io::Write::write_all(&mut member, b"x").unwrap();
        let packed = member.finish().unwrap();
        let endless = (&packed[..]).chain(io::BufReader::new(io::repeat(0)));
        let error = io::copy(&mut GzipReader::new(endless), &mut io::sink()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
