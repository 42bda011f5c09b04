//! A document that is parsed while it comes, for readers of any protocol.

use crate::error::{Error, ExitCode};
use crate::requests::{Begun, Requests, net_error};
use abreast_net::{Request, Response, StatusCode};
use abreast_webtypes::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// The head of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answered {
    /// The URL that answered, after redirects.
    pub(crate) url: String,
    /// The server's clock; ours where it does not state that.
    pub(crate) date: Timestamp,
}

/// Takes a document in pieces.
pub(crate) trait Pieces {
    /// The document begins; again when a transfer broke off and is repeated: what came before does
    /// not count then.
    fn begin(&mut self, answered: &Answered) -> Result<(), Error>;

    /// The next piece; whether more is wanted.
    fn piece(&mut self, bytes: &[u8]) -> Result<bool, Error>;

    /// All of it was read.
    fn end(&mut self) -> Result<(), Error>;
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
    let request = Request { accept: Some(accept), ..requests.request(url) };
    let work = abreast_net::with_retries(&requests.client, url, async |_| {
        let Begun { mut response, begin } = requests.begin(&request).await?;
        if response.status() != StatusCode::OK {
            let message = format!("cannot read {url}: the server answered {}", response.status());
            return Ok(Err(Error::new("http.status", ExitCode::SourceInvalid, message)));
        }
        response.set_limit(bytes_max);
        let answered = Answered { url: response.url().to_owned(), date: date_of(&response) };
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

fn date_of(response: &Response) -> Timestamp {
    let stated = response.header("date").and_then(|text| httpdate::parse_http_date(text).ok());
    let since = stated.unwrap_or_else(SystemTime::now).duration_since(UNIX_EPOCH);
    Timestamp::from_seconds(since.map_or(0, |since| since.as_secs() as i64))
}
