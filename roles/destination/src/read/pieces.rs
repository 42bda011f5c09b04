//! A document that is parsed while it comes, for readers of any protocol.

use crate::clock::now;
use crate::diagnostics::Pace;
use crate::error::{Error, ExitCode};
use crate::requests::{Begun, Requests, answered_else, net_error};
use abreast_net::{Request, Response, StatusCode};
use abreast_store::mirror::Document;
use abreast_webtypes::Timestamp;
use std::hash::{DefaultHasher, Hasher as _};
use std::io::Write as _;
use std::time::{Instant, UNIX_EPOCH};

/// Unpacked bytes above which the ratio counts, and the largest ratio.
const RATIO_FREE_BYTES: u64 = 10 << 20;
const RATIO_MAX: u64 = 200;
/// Packed bytes unpacked at a time, so that no piece becomes large.
const PACKED_PIECE: usize = 4 << 10;
/// How files packed with gzip begin.
pub(crate) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The head of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answered {
    /// The URL that answered, after redirects.
    pub(crate) url: String,
    /// The server's clock; ours where it does not state that.
    pub(crate) date: Timestamp,
    /// The server's clock, where it states that.
    pub(crate) stated_date: Option<Timestamp>,
    /// `Last-Modified` as an instant.
    pub(crate) last_modified: Option<Timestamp>,
    /// Validators, for the next conditional request; the fingerprint only of a document that was
    /// read to its end.
    pub(crate) validators: Document,
    /// `Content-Type`.
    pub(crate) media_type: Option<String>,
}

/// Whether reading continues after an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Go {
    /// Read on.
    On,
    /// Enough was read.
    Enough,
}

/// Takes a document in pieces.
pub(crate) trait Pieces {
    /// The document begins; again when a transfer broke off and is repeated: what came before does
    /// not count then.
    fn begin(&mut self, answered: &Answered) -> Result<(), Error>;

    /// The document is packed with gzip by its publisher and not for the transfer; its pieces come
    /// unpacked.
    fn is_packed(&mut self, _answered: &Answered) -> Result<(), Error> {
        Ok(())
    }

    /// The next piece; whether more is wanted.
    fn piece(&mut self, bytes: &[u8]) -> Result<bool, Error>;

    /// All of it was read.
    fn end(&mut self) -> Result<(), Error>;
}

/// Where [`read_pieces`] reads documents from: the network, or a model of a provider in a
/// simulation.
pub(crate) trait Documents {
    fn read_pieces(
        &self,
        requests: &Requests<'_>,
        url: &str,
        accept: &str,
        bytes_max: u64,
        to: &mut dyn Pieces,
    ) -> Result<Answered, Error>;
}

/// Documents of servers.
pub(crate) struct Network;

impl Documents for Network {
    fn read_pieces(
        &self,
        requests: &Requests<'_>,
        url: &str,
        accept: &str,
        bytes_max: u64,
        to: &mut dyn Pieces,
    ) -> Result<Answered, Error> {
        let request = Request { accept: Some(accept), ..requests.request(url) };
        let work = abreast_net::with_retries(&requests.client, url, async |_| {
            let Begun { mut response, begin } = requests.begin(&request).await?;
            if response.status() != StatusCode::OK {
                return Ok(Err(answered_else(url, response.status())));
            }
            response.set_limit(bytes_max);
            let answered = Answered::of(&response);
            if let Err(error) = to.begin(&answered) {
                return Ok(Err(error));
            }
            let mut more = to.piece(&begin);
            while let Ok(true) = more
                && let Some(chunk) = response.chunk().await?
            {
                more = to.piece(&chunk);
            }
            Ok(match more {
                Ok(true) => to.end().map(|()| answered),
                Ok(false) => Ok(answered),
                Err(error) => Err(error),
            })
        });
        match requests.run(work)? {
            Ok(answered) => answered,
            Err(error) => Err(net_error(error)),
        }
    }
}

/// Requests a document and hands it over in pieces, unpacked, at most so many bytes. While the
/// server answers that it is being made, it is asked again.
pub(crate) fn read_pieces(
    requests: &Requests<'_>,
    url: &str,
    accept: &str,
    bytes_max: u64,
    to: &mut dyn Pieces,
) -> Result<Answered, Error> {
    requests.documents.read_pieces(requests, url, accept, bytes_max, to)
}

/// Requests a document and hands it over in pieces, unpacked where its publisher packed it with
/// gzip. `None` when it has not changed since it was known.
pub(crate) fn read_document(
    requests: &Requests<'_>,
    url: &str,
    known: Option<&Document>,
    bytes_max: u64,
    to: &mut dyn Pieces,
) -> Result<Option<Answered>, Error> {
    let request = Request {
        if_none_match: known.and_then(|known| known.etag.as_deref()),
        if_modified_since: known.and_then(|known| known.last_modified.as_deref()),
        ..requests.request(url)
    };
    let work = abreast_net::with_retries(&requests.client, url, async |_| {
        let asked = Instant::now();
        let Begun { mut response, begin } = requests.begin(&request).await?;
        if known.is_some() {
            requests.fresh.note(&response);
        }
        let mut pace = Pace::of_head(asked);
        if response.status() == StatusCode::NOT_MODIFIED {
            requests.diagnostics.keep_pace(pace);
            return Ok(Ok(None));
        }
        if response.status() != StatusCode::OK {
            return Ok(Err(answered_else(url, response.status())));
        }
        response.set_limit(bytes_max);
        match receive(url, &mut response, begin, bytes_max, &mut pace, to).await {
            Ok(answered) => {
                requests.diagnostics.keep_pace(pace);
                Ok(Ok(Some(answered)))
            }
            Err(Stop::Net(error)) => Err(error),
            Err(Stop::Document(error)) => Ok(Err(error)),
        }
    });
    match requests.run(work)? {
        Ok(answer) => answer,
        Err(error) => Err(net_error(error)),
    }
}

/// Why an answer was not read to its end.
pub(crate) enum Stop {
    Net(abreast_net::Error),
    Document(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Document(error)
    }
}

/// Hands over an answer of which `begin` was read already.
pub(crate) async fn receive(
    url: &str,
    response: &mut Response,
    begin: Vec<u8>,
    bytes_max: u64,
    pace: &mut Pace,
    to: &mut dyn Pieces,
) -> Result<Answered, Stop> {
    let mut answered = Answered::of(response);
    to.begin(&answered)?;
    let mut fingerprint = DefaultHasher::new();
    let mut unpacker: Option<Unpacker> = None;
    let (mut first, mut pending) = (true, begin);
    loop {
        let chunk = if pending.is_empty() {
            let waiting = Instant::now();
            let chunk = response.chunk().await.map_err(Stop::Net)?;
            pace.add(chunk.as_ref().map_or(0, bytes::Bytes::len), waiting.elapsed());
            chunk
        } else {
            Some(std::mem::take(&mut pending).into())
        };
        let Some(chunk) = chunk else { break };
        fingerprint.write(&chunk);
        if first && !chunk.is_empty() {
            first = false;
            if chunk.starts_with(&GZIP) {
                unpacker = Some(Unpacker::new(bytes_max));
                to.is_packed(&answered)?;
            }
        }
        match &mut unpacker {
            None => {
                if !to.piece(&chunk)? {
                    return Ok(answered);
                }
            }
            Some(unpacker) => {
                for piece in chunk.chunks(PACKED_PIECE) {
                    if !to.piece(unpacker.unpack(url, piece)?)? {
                        return Ok(answered);
                    }
                }
            }
        }
    }
    if let Some(unpacker) = unpacker {
        unpacker.finish(url)?;
    }
    to.end()?;
    answered.validators.fingerprint = fingerprint.finish().cast_signed();
    Ok(answered)
}

impl Answered {
    pub(crate) fn of(response: &Response) -> Self {
        let instant = |name: &str| {
            let time = httpdate::parse_http_date(response.header(name)?).ok()?;
            let since = time.duration_since(UNIX_EPOCH).ok()?;
            Some(Timestamp::from_seconds(i64::try_from(since.as_secs()).ok()?))
        };
        let (last_modified, stated_date) = (instant("last-modified"), instant("date"));
        Self {
            url: response.url().to_owned(),
            date: stated_date.unwrap_or_else(now),
            stated_date,
            last_modified,
            validators: Document {
                etag: response.header("etag").map(str::to_owned),
                last_modified: response
                    .header("last-modified")
                    .filter(|_| tells_states_apart(last_modified, stated_date))
                    .map(str::to_owned),
                fingerprint: 0,
            },
            media_type: response.header("content-type").map(str::to_owned),
        }
    }

    /// The latest instant that may be now: by our own clock, and by the server's, which is stated
    /// in whole seconds.
    pub(crate) fn latest_now(&self) -> Timestamp {
        now().max(self.stated_date.map_or(Timestamp::MIN, |date| date.plus_micros(1_000_000)))
    }

    /// Whether a document that is packed with gzip shows that by its name or its type.
    pub(crate) fn names_gzip(&self) -> bool {
        let path = self.url.split(['?', '#']).next().unwrap_or_default();
        path.to_ascii_lowercase().ends_with(".gz")
            || self.media_type.as_ref().is_some_and(|media_type| media_type.contains("gzip"))
    }
}

/// Whether `Last-Modified` is a validator. A document that was changed in the second of its answer
/// may change again in that second and keep the date [rfc9110 §8.8.2].
fn tells_states_apart(modified: Option<Timestamp>, date: Option<Timestamp>) -> bool {
    const CERTAIN_AFTER: i64 = 2_000_000;
    matches!((modified, date), (Some(modified), Some(date)) if date >= modified.plus_micros(CERTAIN_AFTER))
}

/// Unpacks gzip that a server hands out as it is, as `sitemap.xml.gz` files are.
struct Unpacker {
    decoder: flate2::write::GzDecoder<Vec<u8>>,
    packed: u64,
    unpacked: u64,
    most: u64,
}

impl Unpacker {
    fn new(most: u64) -> Self {
        let decoder = flate2::write::GzDecoder::new(Vec::new());
        Self { decoder, packed: 0, unpacked: 0, most }
    }

    fn unpack(&mut self, url: &str, piece: &[u8]) -> Result<&[u8], Error> {
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

    fn finish(mut self, url: &str) -> Result<(), Error> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_of_the_same_second_does_not_tell_states_apart() {
        let at = |seconds| Some(Timestamp::from_seconds(seconds));
        for (modified, date, certain) in [
            (at(100), at(100), false),
            (at(100), at(101), false),
            (at(100), at(102), true),
            (at(100), at(90), false),
            (at(100), None, false),
            (None, at(100), false),
        ] {
            assert_eq!(tells_states_apart(modified, date), certain, "{modified:?} {date:?}");
        }
    }
}
