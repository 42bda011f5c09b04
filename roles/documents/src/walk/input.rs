//! The bytes of a document: a file, bytes in memory or a response, unpacked and within limits.

use crate::model::error::Error;
use abreast_net::{Client, Request, Response, Retries, UnaskedEncoding};
use abreast_webtypes::GzipReader;
use bytes::Bytes;
use std::cell::Cell;
use std::future::Future;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Bytes from which the protocol is recognised.
const BEGIN: u64 = 64 << 10;
/// Interval of the checks whether the reading was cancelled.
const TICK: Duration = Duration::from_millis(50);
/// Types of the documents, in the order of preference; other types are accepted too.
const ACCEPT: &str =
    "application/xml, application/atom+xml, application/ld+json, application/json;q=0.9, */*;q=0.8";
const GZIP: &[u8] = b"\x1f\x8b";

/// The network, and when to stop.
pub(crate) struct Network<'c> {
    pub(crate) runtime: Runtime,
    pub(crate) client: Client,
    pub(crate) cancel: &'c AtomicBool,
    pub(crate) deadline: Instant,
}

impl Network<'_> {
    fn check(&self) -> Result<(), Error> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        if Instant::now() >= self.deadline {
            let message = "the time limit was reached";
            return Err(Error::document("", "documents.time", message, Some("raise --max-time")));
        }
        Ok(())
    }

    /// Runs a request until the caller stops the reading.
    fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        self.runtime.block_on(async {
            let mut work = pin!(work);
            loop {
                self.check()?;
                if let Ok(done) = tokio::time::timeout(TICK, &mut work).await {
                    return Ok(done);
                }
            }
        })
    }

    /// Sends a request, and repeats it after transient failures.
    pub(crate) fn open(&self, url: &str, is_own: bool) -> Result<Response, Error> {
        let request = Request {
            accept: Some(ACCEPT),
            accept_gzip: true,
            unasked_encoding: UnaskedEncoding::Decode,
            // The document of a remote party gives this address.
            public_only: !is_own,
            ..Request::new(url)
        };
        self.wait(async {
            let mut retries = Retries::default();
            loop {
                let sent = async {
                    let mut response = self.client.send(&request).await?.require_success()?;
                    response.refuse_challenge().await.map(|()| response)
                };
                match sent.await {
                    Ok(response) => return Ok(response),
                    Err(error) => retries.wait_after(&self.client, error).await?,
                }
            }
        })?
    }
}

/// The body of a response for a parser that reads.
pub(crate) struct Body<'n> {
    pub(crate) network: &'n Network<'n>,
    pub(crate) response: Response,
    pub(crate) piece: Bytes,
}

impl Read for Body<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            let next = self.network.wait(self.response.chunk()).map_err(io::Error::other)?;
            match next.map_err(|error| io::Error::other(Error::from(error)))? {
                Some(piece) => self.piece = piece,
                None => return Ok(0),
            }
        }
        let length = buffer.len().min(self.piece.len());
        buffer[..length].copy_from_slice(&self.piece.split_to(length));
        Ok(length)
    }
}

/// An input that ends with an error after too many bytes.
struct Limited<'l, R> {
    input: R,
    left: &'l Cell<u64>,
    url: &'l str,
}

impl<R: Read> Read for Limited<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        let Some(left) = self.left.get().checked_sub(length as u64) else {
            let message = "the documents have more bytes than the limit";
            let help = Some("raise --max-bytes");
            return Err(io::Error::other(Error::document(
                self.url,
                "documents.size",
                message,
                help,
            )));
        };
        self.left.set(left);
        Ok(length)
    }
}

/// Calls `read` with the first bytes of an input and with all its bytes, unpacked if they are gzip.
pub(crate) fn with_unpacked<T>(
    input: impl Read,
    url: &str,
    left: &Cell<u64>,
    read: impl FnOnce(&[u8], &mut dyn BufRead) -> Result<T, Error>,
) -> Result<T, Error> {
    let failed = |error| Error::input(url, error);
    let mut input = input;
    let begin = begin_of(&mut input).map_err(failed)?;
    let is_packed = begin.starts_with(GZIP);
    let whole = BufReader::with_capacity(BEGIN as usize, Cursor::new(begin.clone()).chain(input));
    if !is_packed {
        let mut limited = BufReader::new(Limited { input: whole, left, url });
        return read(&begin, &mut limited);
    }
    let mut unpacked = Limited { input: GzipReader::new(whole), left, url };
    let begin = begin_of(&mut unpacked).map_err(failed)?;
    read(&begin, &mut BufReader::new(Cursor::new(begin.clone()).chain(unpacked)))
}

fn begin_of(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut begin = Vec::new();
    input.by_ref().take(BEGIN).read_to_end(&mut begin)?;
    Ok(begin)
}
