//! Documents that are received completely, and then passed in pieces to the readers of any
//! protocol.

use crate::report::clock::now;
use crate::report::error::{Error, ExitCode};
use crate::request::diagnostics::Pace;
use crate::request::package::download::Downloads;
use crate::request::package::listing::ListedPackage;
use crate::request::requests::{Begun, Requests, answered_else, net_error};
use crate::request::spool::Spool;
use abreast_net::{Request, Response, StatusCode};
use abreast_store::mirror::Document;
use abreast_webtypes::Timestamp;
use std::fs::File;
use std::time::{Instant, UNIX_EPOCH};

/// The head of a response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answered {
    /// The URL of the response, after redirects.
    pub(crate) url: String,
    /// The time in the header `Date`, or our clock if the header is missing.
    pub(crate) date: Timestamp,
    /// The time in the header `Date`, if present.
    pub(crate) stated_date: Option<Timestamp>,
    /// `Last-Modified` as an instant.
    pub(crate) last_modified: Option<Timestamp>,
    /// Validators for the next conditional request. The fingerprint is set only if the document was
    /// read completely.
    pub(crate) validators: Document,
    /// `Content-Type`.
    pub(crate) media_type: Option<String>,
    /// The values of all `Link` headers.
    pub(crate) links: Vec<String>,
}

/// Whether reading continues after an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Go {
    /// Read on.
    On,
    /// Enough was read.
    Enough,
}

/// Receives the pieces of a document, once: repeated transfers of the document are not visible.
pub(crate) trait Pieces {
    /// Called before the first piece.
    fn begin(&mut self, answered: &Answered) -> Result<(), Error>;

    /// Called if the file itself is compressed with gzip, not only its transfer; the pieces are
    /// decompressed.
    fn is_packed(&mut self, _answered: &Answered) -> Result<(), Error> {
        Ok(())
    }

    /// Processes the next piece; returns whether more pieces are needed.
    fn piece(&mut self, bytes: &[u8]) -> Result<bool, Error>;

    /// Called after the last piece of a document that was read completely.
    fn end(&mut self) -> Result<(), Error>;
}

/// Ignores the body of a document, for callers that need the response's head only.
pub(crate) struct Nothing;

impl Pieces for Nothing {
    fn begin(&mut self, _: &Answered) -> Result<(), Error> {
        Ok(())
    }

    fn piece(&mut self, _: &[u8]) -> Result<bool, Error> {
        Ok(true)
    }

    fn end(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

/// A request for a document.
pub(crate) struct Asked<'r> {
    pub(crate) url: &'r str,
    /// The value of `Accept`, if the protocol specifies one.
    pub(crate) accept: Option<&'r str>,
    /// The validators of a known version; an unchanged document is not sent again.
    pub(crate) known: Option<&'r Document>,
    /// Maximum length of the document in bytes, both compressed and decompressed.
    pub(crate) bytes_max: u64,
    /// The part of the document to receive.
    pub(crate) wanted: Wanted<'r>,
}

impl<'r> Asked<'r> {
    /// A request for a whole document.
    pub(crate) const fn whole(url: &'r str, bytes_max: u64) -> Self {
        Self { url, accept: None, known: None, bytes_max, wanted: Wanted::Whole }
    }

    /// The first bytes of a document.
    pub(crate) const fn begin(url: &'r str, bytes: usize, bytes_max: u64) -> Self {
        let wanted = Wanted::Begin { bytes, whole_if: &|_| false };
        Self { wanted, ..Self::whole(url, bytes_max) }
    }
}

/// The part of a document to receive.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<'w> {
    /// The whole document.
    Whole,
    /// At least the first `bytes` bytes. The whole document is received if `whole_if` returns true
    /// for these bytes after decompression.
    Begin { bytes: usize, whole_if: &'w dyn Fn(&[u8]) -> bool },
}

/// The source of documents: the network, or a model of a server in a simulation.
pub(crate) trait Documents {
    /// Requests a document, repeats the request after transient failures, and receives the
    /// requested part. Returns `None` if the document has not changed since the known version.
    fn receive(
        &self,
        requests: &Requests<'_>,
        asked: &Asked<'_>,
        to: &mut Spool<'_>,
    ) -> Result<Option<Answered>, Error>;

    /// Downloads a package or a file with descriptions, and verifies its digests.
    fn download(
        &self,
        requests: &Requests<'_>,
        downloads: &Downloads,
        file: &ListedPackage,
        accept: Option<&str>,
    ) -> Result<File, Error> {
        downloads.fetch_any(requests, file, accept)
    }
}

/// Documents of servers.
pub(crate) struct Network;

impl Documents for Network {
    /// Requests the document again while the server is creating it.
    fn receive(
        &self,
        requests: &Requests<'_>,
        asked: &Asked<'_>,
        to: &mut Spool<'_>,
    ) -> Result<Option<Answered>, Error> {
        let Asked { url, accept, known, bytes_max, .. } = *asked;
        let request = Request {
            accept,
            if_none_match: known.and_then(|known| known.etag.as_deref()),
            if_modified_since: known.and_then(|known| known.last_modified.as_deref()),
            ..requests.request(url)
        };
        let work = abreast_net::with_retries(&requests.client, url, async |_| {
            let Begun { mut response, begin, round_trip } = requests.begin(&request).await?;
            requests.origins.note(&response);
            if known.is_some() {
                requests.fresh.note(&response);
            }
            let mut pace = Pace::of_head(round_trip);
            if response.status() == StatusCode::NOT_MODIFIED {
                requests.diagnostics.keep_pace(pace);
                return Ok(Ok(None));
            }
            if !response.is_whole() {
                return Ok(Err(answered_else(url, response.status())));
            }
            response.set_limit(bytes_max);
            to.begin();
            let mut more = to.add(&begin);
            while let Ok(true) = more {
                let waiting = Instant::now();
                let chunk = response.chunk().await?;
                pace.add(chunk.as_ref().map_or(0, bytes::Bytes::len), waiting.elapsed());
                let Some(chunk) = chunk else {
                    to.end();
                    break;
                };
                more = to.add(&chunk);
            }
            requests.diagnostics.keep_pace(pace);
            Ok(more.map(|_| Some(Answered::of(&response))))
        });
        match requests.run(work)? {
            Ok(answer) => answer,
            Err(error) => Err(net_error(error)),
        }
    }
}

/// A received document, whose pieces are still to be passed on.
pub(crate) struct Received<'r> {
    pub(crate) answered: Answered,
    spool: Spool<'r>,
}

/// Receives a document; `None` when it has not changed since it was known.
pub(crate) fn receive<'r>(
    requests: &Requests<'_>,
    asked: &'r Asked<'r>,
) -> Result<Option<Received<'r>>, Error> {
    let mut spool = Spool::new(asked);
    let answered = requests.documents.receive(requests, asked, &mut spool)?;
    Ok(answered.map(|answered| Received { answered, spool }))
}

impl<'r> Received<'r> {
    /// The requested URL, before redirects.
    pub(crate) const fn url(&self) -> &'r str {
        self.spool.url()
    }

    /// The first bytes of the document as they were sent, at most `most`.
    pub(crate) fn first_bytes(&mut self, most: usize) -> Result<Vec<u8>, Error> {
        self.spool.first_bytes(most)
    }

    /// Passes the document on in pieces, decompressed if the file itself is compressed with gzip.
    pub(crate) fn hand_over(
        mut self,
        requests: &Requests<'_>,
        to: &mut dyn Pieces,
    ) -> Result<Answered, Error> {
        self.answered.validators.fingerprint =
            self.spool.hand_over(requests, &self.answered, to)?.unwrap_or_default();
        Ok(self.answered)
    }
}

/// Receives a document and passes on its pieces; `None` if the document has not changed since the
/// known version.
pub(crate) fn read_document(
    requests: &Requests<'_>,
    asked: &Asked<'_>,
    to: &mut dyn Pieces,
) -> Result<Option<Answered>, Error> {
    let received = receive(requests, asked)?;
    received.map(|received| received.hand_over(requests, to)).transpose()
}

/// The same of a document that was not known.
pub(crate) fn read_unknown(
    requests: &Requests<'_>,
    asked: &Asked<'_>,
    to: &mut dyn Pieces,
) -> Result<Answered, Error> {
    read_document(requests, asked, to)?.ok_or_else(|| unasked(asked.url))
}

/// A server answered an unconditional request with "not modified".
pub(crate) fn unasked(url: &str) -> Error {
    Error::new("http.status", ExitCode::SourceInvalid, format!("{url} answered 304 unasked"))
}

impl Answered {
    pub(crate) fn of(response: &Response) -> Self {
        let links = response.values("link");
        Self::from_headers(response.url(), &|name| response.header(name), links)
    }

    /// Reads the headers of a response. `Link` is separate, because a response may have several.
    pub(crate) fn from_headers<'h>(
        url: &str,
        header: &dyn Fn(&str) -> Option<&'h str>,
        links: Vec<String>,
    ) -> Self {
        let instant = |name: &str| {
            let time = httpdate::parse_http_date(header(name)?).ok()?;
            let since = time.duration_since(UNIX_EPOCH).ok()?;
            Some(Timestamp::from_seconds(i64::try_from(since.as_secs()).ok()?))
        };
        let (last_modified, stated_date) = (instant("last-modified"), instant("date"));
        Self {
            url: url.to_owned(),
            date: stated_date.unwrap_or_else(now),
            stated_date,
            last_modified,
            validators: Document {
                etag: header("etag").map(str::to_owned),
                last_modified: header("last-modified")
                    .filter(|_| tells_states_apart(last_modified, stated_date))
                    .map(str::to_owned),
                fingerprint: 0,
            },
            media_type: header("content-type").map(str::to_owned),
            links,
        }
    }

    /// The latest instant that may be the present, by our clock and by the server's clock, which
    /// has a precision of a second.
    pub(crate) fn latest_now(&self) -> Timestamp {
        now().max(self.stated_date.map_or(Timestamp::MIN, |date| date.plus_micros(1_000_000)))
    }

    /// The earliest instant that may be the present, by our clock and by the server's clock.
    pub(crate) fn earliest_now(&self) -> Timestamp {
        self.stated_date.map_or_else(now, |date| date.min(now()))
    }

    /// Whether a document that is packed with gzip shows that by its name or its type.
    pub(crate) fn names_gzip(&self) -> bool {
        let path = self.url.split(['?', '#']).next().unwrap_or_default();
        path.to_ascii_lowercase().ends_with(".gz")
            || self.media_type.as_ref().is_some_and(|media_type| media_type.contains("gzip"))
    }
}

/// Whether `Last-Modified` is a strong validator. A document that changed within the second of its
/// response may change again in that second, with the same `Last-Modified` [rfc9110 §8.8.2].
fn tells_states_apart(modified: Option<Timestamp>, date: Option<Timestamp>) -> bool {
    const CERTAIN_AFTER: i64 = 2_000_000;
    matches!((modified, date), (Some(modified), Some(date)) if date >= modified.plus_micros(CERTAIN_AFTER))
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
