//! How is a ResourceSync document fetched and read, entry by entry, within limits? [rs-core §7]

use crate::error::{Error, ExitCode};
use abreast_net::{Authorization, Client, Request, Response, StatusCode, UnaskedEncoding};
use abreast_resourcesync::v1_1::{Entry, Head, Limits, Parser, Step};
use abreast_store::mirror::Document;
use abreast_webtypes::Timestamp;
use std::hash::{DefaultHasher, Hasher as _};
use std::io::Write as _;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use tokio::runtime::Runtime;

/// Largest document read, unpacked; ten times what the specification allows.
pub(crate) const DOCUMENT_BYTES_MAX: u64 = 512 << 20;
/// Unpacked bytes above which the ratio counts, and the largest ratio.
const RATIO_FREE_BYTES: u64 = 10 << 20;
const RATIO_MAX: u64 = 200;
/// Packed bytes unpacked at a time, so that no piece becomes large.
const PACKED_PIECE: usize = 4 << 10;
/// Longest page scanned for links.
const PAGE_BYTES_MAX: usize = 256 << 10;

/// Fetches and reads documents on the run's own thread.
#[derive(Clone)]
pub(crate) struct Documents<'a> {
    pub(crate) runtime: Rc<Runtime>,
    pub(crate) client: Client,
    pub(crate) authorization: Option<Authorization>,
    /// The URL the credentials are for.
    pub(crate) authorized_url: String,
    /// Stops waiting for a server.
    pub(crate) cancel: &'a AtomicBool,
}

/// What a document's server said about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Read {
    /// The document's own head.
    pub(crate) head: Head,
    /// The URL that answered.
    pub(crate) url: String,
    /// Validators and fingerprint, for the next conditional request.
    pub(crate) validators: Document,
    /// `Last-Modified` as an instant.
    pub(crate) last_modified: Option<Timestamp>,
    /// The server's clock.
    pub(crate) date: Option<Timestamp>,
    /// How many entries it has.
    pub(crate) entries: u64,
}

/// The answer to a conditional request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Nothing has changed.
    Unchanged,
    /// The document was read to its end.
    Read(Box<Read>),
}

/// What to do after an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Go {
    /// Read on.
    On,
    /// Enough was read.
    Enough,
}

/// What a URL turned out to be, for discovery.
#[derive(Debug)]
pub(crate) enum Page {
    /// A ResourceSync document or Sitemap, read as far as was asked.
    Document(Box<Read>),
    /// Something else: its first bytes.
    Other(Vec<u8>),
    /// Nothing is there, or nothing for us.
    Missing(Error),
}

type Each<'a> = &'a mut dyn FnMut(&Head, &Entry) -> Result<Go, Error>;

impl Documents<'_> {
    fn request<'r>(&'r self, url: &'r str) -> Request<'r> {
        let authorization =
            self.authorization.as_ref().filter(|_| crate::admit::same_origin(url, &self.authorized_url));
        Request { accept_gzip: true, unasked_encoding: UnaskedEncoding::Decode, authorization, ..Request::new(url) }
    }

    /// Reads a document and hands over each entry. After a broken transfer all entries come again.
    pub(crate) fn read(&self, url: &str, known: Option<&Document>, each: Each<'_>) -> Result<Answer, Error> {
        let request = Request {
            if_none_match: known.and_then(|known| known.etag.as_deref()),
            if_modified_since: known.and_then(|known| known.last_modified.as_deref()),
            ..self.request(url)
        };
        let work = abreast_net::with_retries(&self.client, url, async |_| {
            let mut response = self.client.send(&request).await?.require_success()?;
            if response.status() == StatusCode::NOT_MODIFIED {
                return Ok(Ok(Answer::Unchanged));
            }
            if response.status() != StatusCode::OK {
                let message =
                    format!("cannot read {url}: the server answered {} without a document", response.status());
                return Ok(Err(Error::new("http.status", ExitCode::SourceInvalid, message)));
            }
            response.set_limit(DOCUMENT_BYTES_MAX);
            match read_response(url, &mut response, &[], each).await {
                Ok(read) => Ok(Ok(Answer::Read(Box::new(read)))),
                Err(Stop::Net(error)) => Err(error),
                Err(Stop::Document(error)) => Ok(Err(error)),
            }
        });
        match self.run(work)? {
            Ok(answer) => answer,
            Err(error) => Err(net_error(error)),
        }
    }

    /// Runs to the end, or until the user wants to stop.
    fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                done = work => Ok(done),
                () = crate::workers::stopped(self.cancel) => Err(Error::cancelled()),
            }
        })
    }

    /// Has a document changed since it was read?
    pub(crate) fn has_changed(&self, url: &str, known: &Document) -> Result<bool, Error> {
        match self.read(url, Some(known), &mut |_, _| Ok(Go::On))? {
            Answer::Unchanged => Ok(false),
            Answer::Read(read) => Ok(read.validators.fingerprint != known.fingerprint),
        }
    }

    /// Finds out what a URL is. Entries are handed over while `each` wants them.
    pub(crate) fn look(&self, url: &str, links: &mut Vec<String>, each: Each<'_>) -> Result<Page, Error> {
        let request = self.request(url);
        let work = abreast_net::with_retries(&self.client, url, async |_| {
            let mut response = match self.client.send(&request).await?.require_success() {
                Ok(response) => response,
                Err(error) if error.is_transient() => return Err(error),
                Err(error) => return Ok(Ok(Page::Missing(net_error(error)))),
            };
            for value in response.headers().get_all("link") {
                links.extend(value.to_str().ok().into_iter().flat_map(crate::links::in_header));
            }
            let mut begin = Vec::new();
            while begin.len() < 1_024
                && let Some(chunk) = response.chunk().await?
            {
                begin.extend_from_slice(&chunk);
            }
            let text = begin.trim_ascii_start();
            let is_packed = begin.starts_with(&[0x1f, 0x8b]);
            let is_page = crate::links::is_html(text);
            let is_xml = text.starts_with(b"<") || text.starts_with(b"\xef\xbb\xbf");
            if is_packed || is_xml && !is_page {
                response.set_limit(DOCUMENT_BYTES_MAX);
                return match read_response(url, &mut response, &begin, each).await {
                    Ok(read) => Ok(Ok(Page::Document(Box::new(read)))),
                    Err(Stop::Net(error)) => Err(error),
                    Err(Stop::Document(error)) => Ok(Err(error)),
                };
            }
            while begin.len() < PAGE_BYTES_MAX
                && let Some(chunk) = response.chunk().await?
            {
                begin.extend_from_slice(&chunk);
            }
            begin.truncate(PAGE_BYTES_MAX);
            Ok(Ok(Page::Other(begin)))
        });
        match self.run(work)? {
            Ok(page) => page,
            Err(error) if error.is_transient() => Err(net_error(error)),
            Err(error) => Ok(Page::Missing(net_error(error))),
        }
    }
}

enum Stop {
    Net(abreast_net::Error),
    Document(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Document(error)
    }
}

async fn read_response(url: &str, response: &mut Response, begin: &[u8], each: Each<'_>) -> Result<Read, Stop> {
    let instant = |name: &str| {
        let time = httpdate::parse_http_date(response.header(name)?).ok()?;
        let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
        Some(Timestamp::from_seconds(i64::try_from(since.as_secs()).ok()?))
    };
    let mut read = Read {
        url: response.url().to_owned(),
        last_modified: instant("last-modified"),
        date: instant("date"),
        validators: Document {
            etag: response.header("etag").map(str::to_owned),
            last_modified: response.header("last-modified").map(str::to_owned),
            fingerprint: 0,
        },
        ..Read::default()
    };
    let mut parser = Parser::new(Limits::default());
    let mut entry = Entry::default();
    let mut fingerprint = DefaultHasher::new();
    let mut unpacker: Option<Unpacker> = None;
    let mut first = true;
    let mut pending = begin.to_vec();
    loop {
        let chunk = if pending.is_empty() {
            response.chunk().await.map_err(Stop::Net)?
        } else {
            Some(std::mem::take(&mut pending).into())
        };
        let Some(chunk) = chunk else { break };
        fingerprint.write(&chunk);
        if first && !chunk.is_empty() {
            first = false;
            if chunk.starts_with(&[0x1f, 0x8b]) {
                unpacker = Some(Unpacker::new());
            }
        }
        let go = match &mut unpacker {
            None => {
                parser.feed(&chunk);
                drain(url, &mut parser, &mut entry, &mut read, each)?
            }
            Some(unpacker) => {
                let mut go = Go::On;
                for piece in chunk.chunks(PACKED_PIECE) {
                    parser.feed(unpacker.unpack(url, piece)?);
                    go = drain(url, &mut parser, &mut entry, &mut read, each)?;
                    if go == Go::Enough {
                        break;
                    }
                }
                go
            }
        };
        if go == Go::Enough {
            return Ok(read);
        }
    }
    if let Some(unpacker) = unpacker {
        unpacker.finish(url)?;
    }
    parser.finish();
    drain(url, &mut parser, &mut entry, &mut read, each)?;
    read.validators.fingerprint = fingerprint.finish().cast_signed();
    Ok(read)
}

fn drain(url: &str, parser: &mut Parser, entry: &mut Entry, read: &mut Read, each: Each<'_>) -> Result<Go, Stop> {
    loop {
        match parser.next(entry).map_err(|fault| syntax_error(url, &fault))? {
            Step::NeedInput | Step::End => return Ok(Go::On),
            Step::Head => {
                read.head = parser.head().cloned().unwrap_or_default();
                check_interval(url, &read.head)?;
                // Even before the first entry: the head may be all that was asked for.
                if each(&read.head, &Entry::default())? == Go::Enough {
                    return Ok(Go::Enough);
                }
            }
            Step::Entry => {
                read.entries += 1;
                if each(&read.head, entry)? == Go::Enough {
                    return Ok(Go::Enough);
                }
            }
        }
    }
}

/// A snapshot cannot end before it began, nor can an interval [rs-core §7].
fn check_interval(url: &str, head: &Head) -> Result<(), Error> {
    for (begin, end, what) in
        [(head.at, head.completed, "`completed` is before `at`"), (head.from, head.until, "`until` is before `from`")]
    {
        if let (Some(begin), Some(end)) = (begin, end)
            && end.instant < begin.instant
            && end.precision >= begin.precision
        {
            return Err(Error::new("time.interval", ExitCode::SourceInvalid, format!("cannot use {url}: {what}"))
                .with_help("the Source must publish the document again"));
        }
    }
    Ok(())
}

pub(crate) fn syntax_error(url: &str, fault: &abreast_resourcesync::v1_1::Error) -> Error {
    let exit = match fault.code() {
        "rs.entries" | "rs.links" | "xml.size" => ExitCode::Limit,
        _ => ExitCode::SourceInvalid,
    };
    Error::new(fault.code(), exit, format!("cannot read {url}\n  {fault}"))
}

pub(crate) fn net_error(error: abreast_net::Error) -> Error {
    let exit = match error.status() {
        Some(401 | 403 | 407) => ExitCode::Auth,
        _ if error.is_transient() => ExitCode::Retryable,
        _ => ExitCode::SourceInvalid,
    };
    Error::new(error.code(), exit, error.to_string()).with_cause(error)
}

/// Unpacks gzip that a server hands out as it is, as `sitemap.xml.gz` files are.
struct Unpacker {
    decoder: flate2::write::GzDecoder<Vec<u8>>,
    packed: u64,
    unpacked: u64,
}

impl Unpacker {
    fn new() -> Self {
        Self { decoder: flate2::write::GzDecoder::new(Vec::new()), packed: 0, unpacked: 0 }
    }

    fn unpack(&mut self, url: &str, piece: &[u8]) -> Result<&[u8], Error> {
        self.decoder.get_mut().clear();
        self.decoder.write_all(piece).map_err(|cause| broken(url).with_cause(cause))?;
        self.decoder.flush().map_err(|cause| broken(url).with_cause(cause))?;
        self.packed += piece.len() as u64;
        let out: &[u8] = self.decoder.get_ref();
        self.unpacked += out.len() as u64;
        if self.unpacked > DOCUMENT_BYTES_MAX
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
    Error::new("http.encoding", ExitCode::SourceInvalid, format!("cannot read {url}: the gzip is broken"))
}
