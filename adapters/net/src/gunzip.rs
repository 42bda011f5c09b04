//! Streaming decompression of gzip bodies, with detection of decompression bombs.

use std::io::{self, BufRead, Read};

use abreast_webtypes::GzipReader;
use bytes::{Buf as _, Bytes, BytesMut};

/// Largest piece handed out at once.
const PIECE: usize = 32 << 10;
/// Unpacked bytes from which on the ratio is judged.
pub(crate) const RATIO_FROM: u64 = 10 << 20;
/// Largest ratio of unpacked to packed bytes.
pub(crate) const MAX_RATIO: u64 = 200;

/// One gzip stream on its way in.
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

#[derive(Debug)]
pub(crate) enum GunzipError {
    /// It unpacks to suspiciously much.
    Bomb,
    /// It ends in the middle.
    Truncated,
    /// It is not gzip or is damaged.
    Broken(io::Error),
}

/// The packed bytes at hand; "would block" when more are to come.
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

    /// Hands in packed bytes; only when it is hungry.
    pub(crate) fn feed(&mut self, bytes: Bytes) {
        self.packed += bytes.len() as u64;
        self.decoder.get_mut().bytes = bytes;
    }

    /// No more packed bytes will come.
    pub(crate) fn finish(&mut self) {
        self.decoder.get_mut().ended = true;
    }

    pub(crate) fn next(&mut self) -> Result<Piece, GunzipError> {
        let mut piece = BytesMut::zeroed(PIECE);
        match self.decoder.read(&mut piece) {
            Ok(0) => Ok(Piece::End),
            Ok(length) => {
                self.unpacked += length as u64;
                if self.unpacked > RATIO_FROM && self.unpacked / MAX_RATIO > self.packed {
                    return Err(GunzipError::Bomb);
                }
                piece.truncate(length);
                Ok(Piece::Data(piece.freeze()))
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(Piece::Hungry),
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Err(GunzipError::Truncated),
            Err(e) => Err(GunzipError::Broken(e)),
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
pub(crate) mod tests {
    use super::*;
    use std::io::Write as _;

    pub(crate) fn pack(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn unpack(pieces: &[&[u8]]) -> Result<Vec<u8>, GunzipError> {
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
                matches!(unpack(&[&packed[..length]]), Err(GunzipError::Truncated)),
                "cut at {length}"
            );
        }
    }

    #[test]
    fn damage_and_rubbish_after_the_end_are_refused() {
        let mut damaged = pack(b"some text");
        let crc = damaged.len() - 6;
        damaged[crc] ^= 1;
        assert!(matches!(unpack(&[&damaged]), Err(GunzipError::Broken(_))));
        assert!(matches!(
            unpack(&[&pack(b"some text"), b"rubbish at the end"]),
            Err(GunzipError::Broken(_))
        ));
        assert!(matches!(unpack(&[b"<html>no gzip at all</html>"]), Err(GunzipError::Broken(_))));
    }

    #[test]
    fn high_ratios_are_allowed_below_a_minimum_size() {
        assert_eq!(unpack(&[&pack(&vec![0; 9 << 20])]).unwrap().len(), 9 << 20);
        assert!(matches!(unpack(&[&pack(&vec![0; 11 << 20])]), Err(GunzipError::Bomb)));
    }
}
