//! Streaming decompression of gzip bodies, with detection of decompression bombs.

use std::io::{self, BufRead, Read};

use crate::unpack::unpacker::{MAX_RATIO, RATIO_FROM, UnpackError};
use abreast_webtypes::{BYTES_BEHIND_GZIP, GzipReader};
use bytes::{Buf as _, Bytes, BytesMut};

/// Largest piece returned at once.
const PIECE: usize = 32 << 10;

/// A gzip stream that is unpacked while it arrives.
pub(crate) struct Gunzip {
    decoder: GzipReader<Feed>,
    packed: u64,
    unpacked: u64,
}

pub(crate) enum Piece {
    Data(Bytes),
    /// More packed bytes are needed.
    Hungry,
    End,
}

/// The packed bytes received so far; "would block" if more are expected.
struct Feed {
    bytes: Bytes,
    ended: bool,
}

impl Gunzip {
    pub(crate) fn new() -> Self {
        Self {
            decoder: GzipReader::new(Feed { bytes: Bytes::new(), ended: false }),
            packed: 0,
            unpacked: 0,
        }
    }

    /// Adds packed bytes. Call it only after `Hungry`.
    pub(crate) fn feed(&mut self, bytes: Bytes) {
        self.packed += bytes.len() as u64;
        self.decoder.get_mut().bytes = bytes;
    }

    /// Reports the end of the packed bytes.
    pub(crate) fn finish(&mut self) {
        self.decoder.get_mut().ended = true;
    }

    pub(crate) fn next(&mut self) -> Result<Piece, UnpackError> {
        let mut piece = BytesMut::zeroed(PIECE);
        match self.decoder.read(&mut piece) {
            Ok(0) => Ok(Piece::End),
            Ok(length) => {
                self.unpacked += length as u64;
                if self.unpacked > RATIO_FROM && self.unpacked / MAX_RATIO > self.packed {
                    return Err(UnpackError::Ratio);
                }
                piece.truncate(length);
                Ok(Piece::Data(piece.freeze()))
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(Piece::Hungry),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Err(UnpackError::Truncated),
            Err(e) if e.to_string() == BYTES_BEHIND_GZIP => Err(UnpackError::Followed),
            Err(e) => Err(UnpackError::Broken(e)),
        }
    }
}

impl BufRead for Feed {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.bytes.is_empty() && !self.ended {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(&self.bytes)
    }

    fn consume(&mut self, amount: usize) {
        self.bytes.advance(amount);
    }
}

impl Read for Feed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let length = self.fill_buf()?.read(into)?;
        self.consume(length);
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unpack::unpacker::tests::pack;

    fn unpack(pieces: &[&[u8]]) -> Result<Vec<u8>, UnpackError> {
        let (mut gunzip, mut out, mut pieces) = (Gunzip::new(), Vec::new(), pieces.iter());
        loop {
            match gunzip.next()? {
                Piece::Data(data) => out.extend_from_slice(&data),
                Piece::End => return Ok(out),
                Piece::Hungry => match pieces.next() {
                    Some(piece) => gunzip.feed(Bytes::copy_from_slice(piece)),
                    None => gunzip.finish(),
                },
            }
        }
    }

    #[test]
    fn any_split_and_any_number_of_members_gives_the_same_bytes() {
        let text: Vec<u8> =
            (0..100_000_u32).flat_map(|n| n.wrapping_mul(n).to_le_bytes()).collect();
        let members = [pack(&text), pack(b""), pack(b"end")].concat();
        let padded = [&members[..], &[0; 700]].concat();
        let expected = [&text[..], b"end"].concat();
        for packed in [members, padded] {
            for piece in [1, 1_000, packed.len()] {
                let pieces = packed.chunks(piece).collect::<Vec<_>>();
                assert!(unpack(&pieces).unwrap() == expected, "{piece}");
            }
        }
    }

    #[test]
    fn a_cut_stream_is_truncated_wherever_the_cut_is() {
        let packed = pack(b"some text that is long enough to be cut");
        for length in 0..packed.len() {
            assert!(
                matches!(unpack(&[&packed[..length]]), Err(UnpackError::Truncated)),
                "cut at {length}"
            );
        }
    }

    #[test]
    fn damage_and_rubbish_after_the_end_are_refused() {
        let mut damaged = pack(b"some text");
        let crc = damaged.len() - 6;
        damaged[crc] ^= 1;
        assert!(matches!(unpack(&[&damaged]), Err(UnpackError::Broken(_))));
        assert!(matches!(
            unpack(&[&pack(b"some text"), b"rubbish at the end"]),
            Err(UnpackError::Followed)
        ));
        assert!(matches!(unpack(&[b"<html>no gzip at all</html>"]), Err(UnpackError::Broken(_))));
    }

    #[test]
    fn high_ratios_are_allowed_below_a_minimum_size() {
        assert_eq!(unpack(&[&pack(&vec![0; 9 << 20])]).unwrap().len(), 9 << 20);
        assert!(matches!(unpack(&[&pack(&vec![0; 11 << 20])]), Err(UnpackError::Ratio)));
    }
}
