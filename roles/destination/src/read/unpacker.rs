//! Documents that their publishers packed with gzip, unpacked within limits.

use crate::error::{Error, ExitCode};
use std::io::Write as _;

/// Unpacked bytes above which the ratio counts, and the largest ratio.
const RATIO_FREE_BYTES: u64 = 10 << 20;
const RATIO_MAX: u64 = 200;
/// Packed bytes unpacked at a time, so that no piece becomes large.
pub(super) const PACKED_PIECE: usize = 4 << 10;
/// How files packed with gzip begin.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Unpacks gzip that a server hands out as it is, as `sitemap.xml.gz` files are.
pub(super) struct Unpacker {
    decoder: flate2::write::GzDecoder<Vec<u8>>,
    packed: u64,
    unpacked: u64,
    most: u64,
}

impl Unpacker {
    pub(super) fn new(most: u64) -> Self {
        let decoder = flate2::write::GzDecoder::new(Vec::new());
        Self { decoder, packed: 0, unpacked: 0, most }
    }

    pub(super) fn unpack(&mut self, url: &str, piece: &[u8]) -> Result<&[u8], Error> {
        self.decoder.get_mut().clear();
        self.decoder.write_all(piece).map_err(|cause| broken(url).with_cause(cause))?;
        self.decoder.flush().map_err(|cause| broken(url).with_cause(cause))?;
        self.packed += piece.len() as u64;
        let out: &[u8] = self.decoder.get_ref();
        self.unpacked += out.len() as u64;
        if self.unpacked > self.most
            || self.unpacked > RATIO_FREE_BYTES && self.unpacked / self.packed > RATIO_MAX
        {
            let message = format!("cannot read {url}: it unpacks to too much");
            return Err(Error::new("http.size", ExitCode::SourceInvalid, message));
        }
        Ok(out)
    }

    pub(super) fn finish(mut self, url: &str) -> Result<(), Error> {
        self.decoder.try_finish().map_err(|cause| broken(url).with_cause(cause))
    }
}

fn broken(url: &str) -> Error {
    Error::new(
        "http.encoding",
        ExitCode::SourceInvalid,
        format!("cannot read {url}: the gzip is broken"),
    )
}
