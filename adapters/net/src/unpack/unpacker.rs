//! Files compressed with gzip, such as `sitemap.xml.gz`, unpacked within limits.

use abreast_webtypes::BYTES_BEHIND_GZIP;
use flate2::write::GzDecoder;
use std::io::{self, Write as _};

/// Unpacked bytes from which the ratio is checked.
pub(crate) const RATIO_FROM: u64 = 10 << 20;
/// Largest ratio of unpacked to packed bytes.
pub(crate) const MAX_RATIO: u64 = 200;
/// Packed bytes unpacked at a time, so that no piece becomes large.
const PACKED_PIECE: usize = 4 << 10;

/// Unpacks a gzip file: all its members [rfc1952 §2.2], and zeros after the last one, with which
/// some programs fill blocks.
#[derive(Debug)]
pub struct Unpacker {
    decoder: GzDecoder<Vec<u8>>,
    /// Whether the last member is complete and no other was started.
    is_between: bool,
    /// Whether the header of a further member is being read.
    is_later: bool,
    packed: u64,
    unpacked: u64,
    most: u64,
}

/// Why a file cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub enum UnpackError {
    /// The file is not gzip, or is damaged.
    #[error("the gzip data is damaged ({0})")]
    Broken(io::Error),
    /// There are other bytes after the last member.
    #[error("{BYTES_BEHIND_GZIP}")]
    Followed,
    /// The file is truncated, or its last member is damaged.
    #[error("the gzip data ends in the middle: it is truncated, or its last part is damaged")]
    Truncated,
    /// The ratio of unpacked to packed bytes is suspiciously large.
    #[error("it unpacks to more than {MAX_RATIO} times its size")]
    Ratio,
    /// The unpacked bytes exceed the given limit.
    #[error("it unpacks to more than {0} bytes")]
    Length(u64),
}

impl Unpacker {
    /// The first two bytes of every gzip file.
    pub const MAGIC: [u8; 2] = [0x1f, 0x8b];

    /// Creates an unpacker for at most `most` bytes.
    pub fn new(most: u64) -> Self {
        let decoder = GzDecoder::new(Vec::new());
        Self { decoder, is_between: false, is_later: false, packed: 0, unpacked: 0, most }
    }

    /// Unpacks the next packed bytes, and passes them to `take` in pieces until it returns `false`.
    /// Returns whether all pieces were taken.
    ///
    /// # Examples
    /// ```
    /// use abreast_net::Unpacker;
    /// use flate2::{Compression, write::GzEncoder};
    /// use std::io::Write as _;
    ///
    /// let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    /// packed.write_all(b"<urlset/>")?;
    /// let packed = packed.finish()?;
    /// let (mut unpacker, mut list) = (Unpacker::new(1 << 20), Vec::new());
    /// let is_complete = unpacker.unpack(&packed, &mut |piece| {
    ///     list.extend_from_slice(piece);
    ///     true
    /// })?;
    /// assert!(is_complete);
    /// assert_eq!(list, b"<urlset/>");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The file is broken, or unpacks to too much.
    pub fn unpack(
        &mut self,
        packed: &[u8],
        take: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<bool, UnpackError> {
        for piece in packed.chunks(PACKED_PIECE) {
            if !take(self.piece(piece)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn piece(&mut self, mut packed: &[u8]) -> Result<&[u8], UnpackError> {
        self.decoder.get_mut().clear();
        self.packed += packed.len() as u64;
        while !packed.is_empty() {
            if self.is_between {
                let zeros = packed.iter().take_while(|byte| **byte == 0).count();
                packed = &packed[zeros..];
                match packed.first() {
                    None => break,
                    Some(first) if *first != Self::MAGIC[0] => return Err(UnpackError::Followed),
                    Some(_) => {}
                }
                let out = std::mem::take(self.decoder.get_mut());
                self.decoder = GzDecoder::new(out);
                (self.is_between, self.is_later) = (false, true);
            }
            let written = self.decoder.write(packed);
            match written.map_err(|cause| self.broken(cause))? {
                0 => {
                    self.decoder.try_finish().map_err(UnpackError::Broken)?;
                    self.is_between = true;
                }
                count => packed = &packed[count..],
            }
        }
        if !self.is_between {
            self.decoder.flush().map_err(UnpackError::Broken)?;
        }
        let out: &[u8] = self.decoder.get_ref();
        self.unpacked += out.len() as u64;
        if self.unpacked > RATIO_FROM && self.unpacked / MAX_RATIO > self.packed {
            return Err(UnpackError::Ratio);
        }
        if self.unpacked > self.most { Err(UnpackError::Length(self.most)) } else { Ok(out) }
    }

    /// If the bytes are not the header of a member, they are garbage after the file.
    fn broken(&self, cause: io::Error) -> UnpackError {
        if self.is_later && self.decoder.header().is_none() {
            UnpackError::Followed
        } else {
            UnpackError::Broken(cause)
        }
    }

    /// Reports the end of the file.
    ///
    /// # Errors
    /// It is truncated, or its last member is damaged.
    pub fn finish(mut self) -> Result<(), UnpackError> {
        if self.is_between {
            return Ok(());
        }
        self.decoder.try_finish().map_err(|_| UnpackError::Truncated)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn pack(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn unpacked(packed: &[u8], piece: usize, most: u64) -> Result<Vec<u8>, UnpackError> {
        let (mut unpacker, mut all) = (Unpacker::new(most), Vec::new());
        for piece in packed.chunks(piece) {
            let is_on = unpacker.unpack(piece, &mut |bytes| {
                all.extend_from_slice(bytes);
                true
            })?;
            assert!(is_on);
        }
        unpacker.finish().map(|()| all)
    }

    #[test]
    fn all_members_are_read_and_zeros_behind_them_left_out() {
        let text: Vec<u8> =
            (0..20_000_u32).flat_map(|number| number.wrapping_mul(number).to_le_bytes()).collect();
        let members = [pack(&text), pack(b""), pack(b"end")].concat();
        let padded = [&members[..], &[0; 700]].concat();
        let expected = [&text[..], b"end"].concat();
        for packed in [&members, &padded] {
            for piece in [1, 7, 1_000, 1 << 20] {
                assert!(unpacked(packed, piece, u64::MAX).unwrap() == expected, "{piece}");
            }
        }
        let cut = &members[..members.len() - 3];
        assert!(matches!(unpacked(cut, 100, u64::MAX), Err(UnpackError::Truncated)));
        let followed = [&padded[..], b"no gzip"].concat();
        assert!(matches!(unpacked(&followed, 100, u64::MAX), Err(UnpackError::Followed)));
        for more in [&b"x"[..], b"\x1f\x8a is no gzip", b"no gzip at all"] {
            for piece in [1, 7, 1_000] {
                let followed = [&members[..], more].concat();
                let error = unpacked(&followed, piece, u64::MAX).unwrap_err();
                assert!(matches!(error, UnpackError::Followed), "{more:?} {piece}: {error}");
            }
        }
    }

    #[test]
    fn what_unpacks_to_too_much_is_refused() {
        let text = vec![b'x'; 12 << 20];
        assert!(matches!(unpacked(&pack(&text), 1_000, u64::MAX), Err(UnpackError::Ratio)));
        let text = vec![b'x'; 1_000];
        assert!(matches!(unpacked(&pack(&text), 1_000, 999), Err(UnpackError::Length(999))));
    }
}
