//! Storage for a document during its transfer. The document is read only after the end of the
//! transfer, so that readers never see an interrupted transfer.

use crate::copy::fingerprint::Fingerprint;
use crate::report::error::{Error, ExitCode};
use crate::request::pieces::{Answered, Asked, Pieces, Wanted};
use crate::request::requests::Requests;
use abreast_net::{UnpackError, Unpacker};
use std::hash::Hasher as _;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use tempfile::SpooledTempFile;

/// Number of bytes in memory; a longer document is in a temporary file without a name.
const MEMORY_MAX: usize = 4 << 20;
/// Length of the pieces that readers receive, in bytes.
const BLOCK_BYTES: usize = 64 << 10;

/// The received bytes of a document.
pub(crate) struct Spool<'r> {
    asked: &'r Asked<'r>,
    bytes: SpooledTempFile,
    length: u64,
    /// Whether the decision about the part to receive has been made.
    is_decided: bool,
    /// Whether the whole document was received.
    is_whole: bool,
}

impl<'r> Spool<'r> {
    pub(super) fn new(asked: &'r Asked<'r>) -> Self {
        let bytes = SpooledTempFile::new(MEMORY_MAX);
        let is_decided = matches!(asked.wanted, Wanted::Whole);
        Self { asked, bytes, length: 0, is_decided, is_whole: false }
    }

    /// The requested URL, before redirects.
    pub(super) const fn url(&self) -> &'r str {
        self.asked.url
    }

    /// Discards the bytes of an earlier transfer at the start of a new transfer.
    pub(crate) fn begin(&mut self) {
        *self = Self::new(self.asked);
    }

    /// Adds the next bytes of the transfer; returns whether more bytes are needed.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Result<bool, Error> {
        self.bytes.write_all(bytes).map_err(|cause| self.failed(cause))?;
        self.length += bytes.len() as u64;
        let Wanted::Begin { bytes, whole_if } = self.asked.wanted else { return Ok(true) };
        if self.is_decided || self.length < bytes as u64 {
            return Ok(true);
        }
        self.is_decided = true;
        let begin = self.first_bytes(bytes)?;
        Ok(whole_if(&self.unpacked(begin)))
    }

    /// The transfer has come to its proper end.
    pub(crate) const fn end(&mut self) {
        self.is_whole = true;
    }

    /// The first bytes of the document as they were sent, at most `most`.
    pub(super) fn first_bytes(&mut self, most: usize) -> Result<Vec<u8>, Error> {
        let mut begin = Vec::new();
        let mut read = || {
            self.bytes.rewind()?;
            (&mut self.bytes).take(most as u64).read_to_end(&mut begin)?;
            self.bytes.seek(SeekFrom::End(0))
        };
        read().map_err(|cause| self.failed(cause))?;
        Ok(begin)
    }

    /// The first bytes of a document, decompressed as far as possible if the document is
    /// compressed.
    fn unpacked(&self, begin: Vec<u8>) -> Vec<u8> {
        if !begin.starts_with(&Unpacker::MAGIC) {
            return begin;
        }
        let mut unpacked = Vec::new();
        let _ = Unpacker::new(self.asked.bytes_max).unpack(&begin, &mut |bytes| {
            unpacked.extend_from_slice(bytes);
            true
        });
        unpacked
    }

    /// Passes the document on in pieces; returns its fingerprint if the document was read
    /// completely.
    pub(super) fn hand_over(
        mut self,
        requests: &Requests<'_>,
        answered: &Answered,
        to: &mut dyn Pieces,
    ) -> Result<Option<i64>, Error> {
        let url = self.asked.url;
        to.begin(answered)?;
        let mut fingerprint = Fingerprint::new();
        let mut unpacker: Option<Unpacker> = None;
        let mut block = vec![0; BLOCK_BYTES];
        self.bytes.rewind().map_err(|cause| self.failed(cause))?;
        let mut is_first = true;
        loop {
            let count = self.bytes.read(&mut block).map_err(|cause| self.failed(cause))?;
            if count == 0 {
                break;
            }
            requests.check_continues()?;
            let bytes = &block[..count];
            fingerprint.write(bytes);
            if std::mem::take(&mut is_first) && bytes.starts_with(&Unpacker::MAGIC) {
                unpacker = Some(Unpacker::new(self.asked.bytes_max));
                to.is_packed(answered)?;
            }
            let Some(unpacker) = &mut unpacker else {
                if !to.piece(bytes)? {
                    return Ok(None);
                }
                continue;
            };
            let mut failed = None;
            let is_wanted = unpacker.unpack(bytes, &mut |piece| {
                to.piece(piece).unwrap_or_else(|error| {
                    failed = Some(error);
                    false
                })
            });
            if let Some(error) = failed {
                return Err(error);
            }
            if !is_wanted.map_err(|error| not_unpacked(url, error))? {
                return Ok(None);
            }
        }
        if !self.is_whole {
            return Ok(None);
        }
        if let Some(unpacker) = unpacker {
            unpacker.finish().map_err(|error| not_unpacked(url, error))?;
        }
        to.end()?;
        Ok(Some(fingerprint.finish().cast_signed()))
    }

    fn failed(&self, cause: std::io::Error) -> Error {
        let message = format!("cannot keep {} while it is received: {cause}", self.asked.url);
        Error::new("io", ExitCode::Io, message)
            .with_help("set TMPDIR to a folder with room for the documents of the Source")
            .with_cause(cause)
    }
}

fn not_unpacked(url: &str, cause: UnpackError) -> Error {
    let code = match cause {
        UnpackError::Broken(_) | UnpackError::Truncated | UnpackError::Followed => "http.encoding",
        UnpackError::Ratio | UnpackError::Length(_) => "http.size",
    };
    Error::new(code, ExitCode::SourceInvalid, format!("cannot read {url}: {cause}"))
        .with_cause(cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::options::SyncOptions;
    use abreast_net::Shared;
    use std::sync::atomic::AtomicBool;

    /// The received pieces of a document.
    #[derive(Default)]
    struct Taken {
        bytes: Vec<u8>,
        begun: usize,
        ended: usize,
        is_packed: bool,
    }

    impl Pieces for Taken {
        fn begin(&mut self, _: &Answered) -> Result<(), Error> {
            self.begun += 1;
            Ok(())
        }

        fn is_packed(&mut self, _: &Answered) -> Result<(), Error> {
            self.is_packed = true;
            Ok(())
        }

        fn piece(&mut self, bytes: &[u8]) -> Result<bool, Error> {
            self.bytes.extend_from_slice(bytes);
            Ok(true)
        }

        fn end(&mut self) -> Result<(), Error> {
            self.ended += 1;
            Ok(())
        }
    }

    fn handed_over(spool: Spool<'_>) -> (Taken, Option<i64>) {
        let options = SyncOptions::new("http://h/s.xml", "/tmp/copy");
        let (cancel, shared) = (AtomicBool::new(false), Shared::new(options.net_options()));
        let requests = Requests::new(&options, &cancel, &shared).unwrap();
        let mut taken = Taken::default();
        let fingerprint = spool.hand_over(&requests, &Answered::default(), &mut taken).unwrap();
        (taken, fingerprint)
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn only_the_last_transfer_is_handed_over() {
        let asked = Asked::whole("http://h/a", 1 << 30);
        // In memory, and in a file.
        for length in [10, MEMORY_MAX + BLOCK_BYTES / 2] {
            let mut spool = Spool::new(&asked);
            spool.begin();
            assert!(spool.add(&vec![b'a'; length]).unwrap());
            spool.begin();
            let body = vec![b'b'; length];
            for piece in body.chunks(100_000) {
                assert!(spool.add(piece).unwrap());
            }
            spool.end();
            let (taken, fingerprint) = handed_over(spool);
            assert_eq!((taken.begun, taken.ended), (1, 1));
            assert!(taken.bytes == body && fingerprint.is_some(), "{length}");
        }
    }

    #[test]
    fn a_begin_is_enough_unless_it_shows_otherwise() {
        let long = vec![b'x'; 100];
        let whole_if: &dyn Fn(&[u8]) -> bool = &|begin| begin.starts_with(b"all");
        for (begin, is_wanted) in [(&b"all of it"[..], true), (b"not that", false)] {
            for body in [[begin, &long].concat(), packed(&[begin, &long].concat())] {
                let asked = Asked {
                    wanted: Wanted::Begin { bytes: 40, whole_if },
                    ..Asked::whole("http://h/a", 1 << 30)
                };
                let mut spool = Spool::new(&asked);
                spool.begin();
                assert!(spool.add(&body[..30]).unwrap(), "it is not known yet");
                assert_eq!(spool.add(&body[30..60]).unwrap(), is_wanted);
                if is_wanted {
                    assert!(spool.add(&body[60..]).unwrap());
                    spool.end();
                }
                let (taken, fingerprint) = handed_over(spool);
                assert_eq!(taken.is_packed, body.starts_with(&Unpacker::MAGIC));
                assert!(taken.bytes.starts_with(begin));
                assert_eq!((taken.ended > 0, fingerprint.is_some()), (is_wanted, is_wanted));
            }
        }
    }

    #[test]
    fn nothing_of_a_body_is_received_where_only_the_answer_counts() {
        let asked = Asked::begin("http://h/a", 0, 1 << 30);
        let mut spool = Spool::new(&asked);
        spool.begin();
        assert!(!spool.add(b"").unwrap());
    }
}
