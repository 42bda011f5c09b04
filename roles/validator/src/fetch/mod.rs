//! Reads the bytes of a URL or file within limits, and unpacks gzip.

pub(crate) mod archive;
pub(crate) mod digest;
pub(crate) mod hosts;
pub(crate) mod html;
pub(crate) mod manners;
pub(crate) mod paths;
pub(crate) mod root;
pub(crate) mod values;

use crate::report::{MAKING, Unreachable};
use abreast_net::{Client, Request, Response, Retries, UnaskedEncoding, Unpacker};
use abreast_webtypes::{Link, Timestamp};
use std::fs::File;
use std::io::{self, Read as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// Bytes read from a file at a time.
const CHUNK: usize = 64 << 10;

/// Status and headers of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct ResponseFacts {
    /// URL of the answer, after redirects.
    pub(crate) url: String,
    pub(crate) status: u16,
    pub(crate) content_type: Option<String>,
    pub(crate) content_length: Option<u64>,
    pub(crate) content_encoding: Option<String>,
    pub(crate) etag: Option<String>,
    pub(crate) last_modified: Option<String>,
    /// Time of the answer, from the header `Date`.
    pub(crate) date: Option<String>,
    pub(crate) retry_after: Option<String>,
    /// Whether scripts of any web page may read the answer, by the headers for CORS.
    pub(crate) is_shared: bool,
    /// Targets of `rel=resourcesync`, as written.
    pub(crate) links: Vec<String>,
    /// Relations and target of each link, as written.
    pub(crate) relations: Vec<(String, String)>,
    /// Targets of `rel=self`, as written.
    pub(crate) selves: Vec<String>,
    /// Targets of `rel=hub`, as written.
    pub(crate) hubs: Vec<String>,
}

impl ResponseFacts {
    /// Whether the answer contains the requested representation.
    pub(crate) const fn is_success(&self) -> bool {
        matches!(self.status, 200 | 203)
    }

    /// Size of the resource in bytes by Content-Length; unknown for an encoded answer, whose
    /// Content-Length is the encoded size.
    pub(crate) fn length(&self) -> Option<u64> {
        let coding = self.content_encoding.as_deref().unwrap_or("identity");
        self.content_length.filter(|_| coding.eq_ignore_ascii_case("identity"))
    }

    /// `Content-Type` with its parameters: the reader of a document uses `charset`.
    pub(crate) fn media_type(&self) -> &str {
        self.content_type.as_deref().unwrap_or_default()
    }

    /// Clock of the server at the time of the answer.
    pub(crate) fn time(&self) -> Option<Timestamp> {
        let time = httpdate::parse_http_date(self.date.as_deref()?).ok()?;
        let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
        i64::try_from(since.as_secs()).ok().map(Timestamp::from_seconds)
    }

    fn of(response: &Response) -> Self {
        let header = |name: &str| response.header(name).map(str::to_owned);
        let links: Vec<Link> = response
            .values("link")
            .iter()
            .filter_map(|value| abreast_webtypes::parse_link_header(value).ok())
            .flatten()
            .filter(|link| link.anchor().is_none())
            .collect();
        let targets = |rel| {
            links.iter().filter(|link| link.has_rel(rel)).map(|link| link.target.clone()).collect()
        };
        Self {
            url: response.url().to_owned(),
            status: response.status().as_u16(),
            content_type: header("content-type"),
            content_length: response.content_length(),
            content_encoding: header("content-encoding"),
            etag: header("etag"),
            last_modified: header("last-modified"),
            date: header("date"),
            retry_after: header("retry-after"),
            is_shared: response.header("access-control-allow-origin").is_some(),
            links: targets("resourcesync"),
            selves: targets("self"),
            hubs: targets("hub"),
            relations: links.into_iter().map(|link| (link.rel, link.target)).collect(),
        }
    }
}

/// Whether a start is a URL, not the path of a file.
pub(crate) fn is_url(start: &str) -> bool {
    start
        .split_once("://")
        .is_some_and(|(scheme, _)| ["http", "https"].iter().any(|s| scheme.eq_ignore_ascii_case(s)))
}

/// An async runtime for requests in the calling thread.
pub(crate) fn runtime() -> Option<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().ok()
}

/// Why reading a URL or file ended early.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The document does not exist or cannot be fetched; contains the message for the report.
    Missing(String),
    /// A limit of the whole walk was reached; contains the name of its option.
    Limit(&'static str),
    /// The user stopped the validation.
    Cancelled,
}

/// Whether a reader needs more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Go {
    On,
    Enough,
}

/// Limits of the whole walk, shared by all threads.
#[derive(Debug)]
pub(crate) struct Budget<'a> {
    pub(crate) bytes_left: AtomicU64,
    pub(crate) until: Instant,
    pub(crate) cancel: &'a AtomicBool,
    /// Why a server did not answer: the first cause in the order of [`Unreachable`].
    pub(crate) unreachable: Mutex<Option<Unreachable>>,
}

impl Budget<'_> {
    pub(crate) fn take(&self, bytes: usize) -> Result<(), Failure> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Failure::Cancelled);
        }
        if Instant::now() > self.until {
            return Err(Failure::Limit("--max-time"));
        }
        let bytes = bytes as u64;
        let left = self
            .bytes_left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        left.map(|_| ()).map_err(|_| Failure::Limit("--max-bytes"))
    }

    /// Records why a server did not answer, unless a more important cause is known.
    pub(crate) fn cannot_ask(&self, cause: Unreachable) {
        let mut known = self.unreachable.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some(known.map_or(cause, |known| known.min(cause)));
    }
}

/// The message for the report about a URL that cannot be fetched. Records the cause in the budget.
pub(crate) fn missing(url: &str, error: &abreast_net::Error, budget: &Budget<'_>) -> Failure {
    if let Some(cause) = Unreachable::of(error) {
        budget.cannot_ask(cause);
    }
    let text = error.to_string();
    let text = text.strip_prefix(&format!("cannot fetch {url}: ")).unwrap_or(&text).to_owned();
    Failure::Missing(text.lines().next().unwrap_or_default().to_owned())
}

/// Requests the headers of a URL with HEAD.
pub(crate) async fn head(
    client: &Client,
    url: &str,
    budget: &Budget<'_>,
) -> Result<ResponseFacts, Failure> {
    let mut retries = Retries::default();
    loop {
        budget.take(0)?;
        let request =
            Request { head: true, unasked_encoding: UnaskedEncoding::Raw, ..Request::new(url) };
        match client.send(&request).await.and_then(Response::require_success) {
            Ok(response) => return Ok(ResponseFacts::of(&response)),
            Err(error) => retries
                .wait_after(client, error)
                .await
                .map_err(|error| missing(url, &error, budget))?,
        }
    }
}

/// Downloads a URL with GET. `begin` is called with the headers before the first piece of each
/// attempt.
///
/// If `raw` is set, `piece` receives the bytes as delivered. Otherwise gzip is unpacked, both as a
/// content coding and as the format of the file.
pub(crate) async fn url(
    client: &Client,
    url: &str,
    raw: bool,
    budget: &Budget<'_>,
    mut begin: impl FnMut(&ResponseFacts) -> Go,
    mut piece: impl FnMut(&[u8]) -> Go,
) -> Result<ResponseFacts, Failure> {
    let mut retries = Retries::default();
    loop {
        budget.take(0)?;
        let request = Request {
            accept_gzip: !raw,
            unasked_encoding: if raw { UnaskedEncoding::Raw } else { UnaskedEncoding::Decode },
            ..Request::new(url)
        };
        let attempt = async {
            let mut response = client.send(&request).await?.require_success()?;
            response.refuse_challenge().await?;
            let facts = ResponseFacts::of(&response);
            if begin(&facts) == Go::Enough {
                return Ok(Ok(facts));
            }
            if !response.is_whole() {
                let status = response.status();
                response.discard().await;
                return Ok(Err(Failure::Missing(if facts.status == 202 {
                    MAKING.to_owned()
                } else {
                    format!("the server answered {status}")
                })));
            }
            let mut unpacker: Option<Unpacker> = None;
            let mut first = !raw;
            while let Some(chunk) = response.chunk().await? {
                if let Err(failure) = budget.take(chunk.len()) {
                    return Ok(Err(failure));
                }
                if std::mem::take(&mut first) && chunk.starts_with(&Unpacker::MAGIC) {
                    unpacker = Some(Unpacker::new(u64::MAX));
                }
                let go = match &mut unpacker {
                    None => piece(&chunk),
                    Some(unpacker) => match unpacked(unpacker, &chunk, &mut piece) {
                        Ok(go) => go,
                        Err(failure) => return Ok(Err(failure)),
                    },
                };
                if go == Go::Enough {
                    return Ok(Ok(facts));
                }
            }
            if let Some(unpacker) = unpacker
                && let Err(error) = unpacker.finish()
            {
                return Ok(Err(Failure::Missing(error.to_string())));
            }
            Ok(Ok(facts))
        };
        match attempt.await {
            Ok(done) => return done,
            Err(error) => retries
                .wait_after(client, error)
                .await
                .map_err(|error| missing(url, &error, budget))?,
        }
    }
}

/// An answer with any status.
pub(crate) struct Answer {
    pub(crate) facts: ResponseFacts,
    /// Content of the answer; empty unless the status is 200 or 203.
    pub(crate) body: Vec<u8>,
    /// Whether the body is within the limit.
    pub(crate) is_whole: bool,
}

/// Sends a request and returns the answer with any status. Temporary failures are retried.
pub(crate) async fn answer(
    client: &Client,
    request: &Request<'_>,
    most: u64,
    budget: &Budget<'_>,
) -> Result<Answer, Failure> {
    let mut retries = Retries::default();
    loop {
        budget.take(0)?;
        let attempt = async {
            let mut response = client.send(request).await?;
            if matches!(response.status().as_u16(), 429 | 502..=504) {
                response = response.require_success()?;
            }
            let facts = ResponseFacts::of(&response);
            let (mut body, mut is_whole) = (Vec::new(), true);
            if response.is_whole() && !request.head {
                while let Some(chunk) = response.chunk().await? {
                    if let Err(failure) = budget.take(chunk.len()) {
                        return Ok(Err(failure));
                    }
                    if (body.len() + chunk.len()) as u64 > most {
                        is_whole = false;
                        break;
                    }
                    body.extend_from_slice(&chunk);
                }
            } else {
                response.discard().await;
            }
            Ok(Ok(Answer { facts, body, is_whole }))
        };
        match attempt.await {
            Ok(done) => return done,
            Err(error) => retries
                .wait_after(client, error)
                .await
                .map_err(|error| missing(request.url, &error, budget))?,
        }
    }
}

/// The failure for a file that cannot be read.
pub(crate) fn unreadable(error: &io::Error) -> Failure {
    Failure::Missing(match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::IsADirectory => "this is a folder; name a document in it".to_owned(),
        _ => error.to_string(),
    })
}

/// Reads a local file piece by piece, and unpacks gzip.
pub(crate) fn file(
    path: &str,
    budget: &Budget<'_>,
    mut piece: impl FnMut(&[u8]) -> Go,
) -> Result<(), Failure> {
    let missing = unreadable;
    let mut file = File::open(path).map_err(|error| missing(&error))?;
    let mut buffer = vec![0; CHUNK];
    let mut unpacker: Option<Unpacker> = None;
    let mut first = true;
    loop {
        let length = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(missing(&error)),
        };
        budget.take(length)?;
        let chunk = &buffer[..length];
        if std::mem::take(&mut first) && chunk.starts_with(&Unpacker::MAGIC) {
            unpacker = Some(Unpacker::new(u64::MAX));
        }
        let go = match &mut unpacker {
            None => piece(chunk),
            Some(unpacker) => unpacked(unpacker, chunk, &mut piece)?,
        };
        if go == Go::Enough {
            return Ok(());
        }
    }
    let ended = unpacker.map_or(Ok(()), Unpacker::finish);
    ended.map_err(|error| Failure::Missing(error.to_string()))
}

/// Unpacks a chunk of gzip and passes on its content.
fn unpacked(
    unpacker: &mut Unpacker,
    chunk: &[u8],
    piece: &mut impl FnMut(&[u8]) -> Go,
) -> Result<Go, Failure> {
    let is_on = unpacker.unpack(chunk, &mut |bytes| piece(bytes) == Go::On);
    let is_on = is_on.map_err(|error| Failure::Missing(error.to_string()))?;
    Ok(if is_on { Go::On } else { Go::Enough })
}

/// Sends a conditional request and reports whether the answer contains another version of the
/// document. `None` if the answer does not show a version, such as 304 or an error.
pub(crate) async fn is_other_now(
    client: &Client,
    url: &str,
    facts: &ResponseFacts,
) -> Option<bool> {
    let request = Request {
        if_none_match: facts.etag.as_deref(),
        if_modified_since: facts.last_modified.as_deref().filter(|_| facts.etag.is_none()),
        accept_gzip: true,
        unasked_encoding: UnaskedEncoding::Raw,
        ..Request::new(url)
    };
    let response = client.send(&request).await.ok()?;
    match response.status().as_u16() {
        200 => Some(
            response.header("etag") != facts.etag.as_deref()
                || response.header("last-modified") != facts.last_modified.as_deref(),
        ),
        404 | 410 => Some(true),
        _ => None,
    }
}
