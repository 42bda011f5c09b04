//! Fetching one resource from its address into the sink, completely and verified, or not at all.

mod again;
mod description;
pub(crate) mod entity_patch;
mod held;
pub(crate) mod mirrors;
pub(crate) mod patch;
mod places;
pub(crate) mod together;

use crate::copy::names::temporary_name;
use crate::copy::partial::{Note, Partials, RESUME_BYTES};
use crate::copy::state_folder::open_begun;
use crate::report::failure::Failure;
use crate::request::limits::Allowance;
use crate::request::verify::{Verdict, hash_into, judge};
use crate::sink::outcome::{Notice, Outcome};
use crate::sink::{Prepared, Sink, TemporaryFile};
use crate::transfer::fetch::mirrors::Place;
use crate::transfer::fetch::together::{Held, TOGETHER_BYTES};
use crate::transfer::rules::Rules;
use crate::transfer::store::{Facts, Incoming, Received, Storer, finish, is_large};
use abreast_folder::Dir;
use abreast_net::{Client, Request, Response, StatusCode, UnaskedEncoding};
use abreast_store::mirror::Task;
use abreast_webtypes::Digests;
use std::io::Seek as _;
use std::sync::Arc;

/// Longest listed length of a resource that is requested before earlier requests are answered.
const PIPELINED_BYTES: u64 = 64 << 10;

/// The work of a connection: fetches items one after the other.
pub(crate) struct Fetcher {
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) storer: Storer,
    pub(crate) client: Client,
    /// Status line and headers of the response, for sinks that store them.
    pub(crate) head: Vec<u8>,
    allowance: Allowance,
    /// Buffers for reuse by later bodies.
    pub(crate) spare: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The result of an attempt to fetch.
pub(crate) enum Fetched {
    Done(Outcome),
    /// The body is complete, and its digests are computed faster together with others.
    Held(Held),
    /// Too few bytes are left in the budget of the run.
    NotBegun,
}

/// A request for a resource at one address, and the expected response.
#[derive(Clone, Copy)]
struct Target<'a> {
    place: &'a Place<'a>,
    accept: Option<&'a str>,
    /// Identifies the transfer: the URI of the resource, or the URL of a mirror, at which a partial
    /// transfer can be continued.
    name: &'a str,
    dir: &'a Dir,
    listed: &'a Digests,
    length: Option<u64>,
    /// The `ETag` of the stored version.
    etag: Option<&'a str>,
    /// Whether the media type of the response is needed.
    wants_type: bool,
}

impl Fetcher {
    pub(crate) fn new(
        sink: &Arc<dyn Sink>,
        rules: &Arc<Rules>,
        client: Client,
        allowance: &Allowance,
    ) -> Self {
        Self {
            sink: Arc::clone(sink),
            storer: Storer::new(sink, rules),
            client,
            head: Vec::new(),
            allowance: allowance.clone(),
            spare: Vec::new(),
        }
    }

    pub(crate) async fn fetch(&mut self, task: &Task) -> Fetched {
        self.try_fetch(task).await.unwrap_or_else(|failure| Fetched::Done(Outcome::Failed(failure)))
    }

    async fn try_fetch(&mut self, task: &Task) -> Result<Fetched, Failure> {
        let item = &task.pending;
        let (listed, dir, conditional) = match self.storer.prepare(task)? {
            (_, Prepared::Done(outcome)) => return Ok(Fetched::Done(outcome)),
            (listed, Prepared::Wanted { dir, conditional }) => (listed, dir, conditional),
        };
        if let Some(at) = item.body {
            if item.length.is_some() {
                return self.take_body(task, &listed, at).await;
            }
            if let Some(stored) = self.patched_description(task, &listed, at).await {
                return stored;
            }
            self.storer.admit(task)?;
        }
        if let Some(robots) = &self.storer.rules.robots {
            robots.check(&self.client, item.href(), false).await?;
        }
        if item.describes() {
            return self.fetch_description(task, &listed, &dir, conditional).await;
        }
        let alternate = self.storer.rules.alternates.of(&item.uri).unwrap_or_default();
        if !alternate.patches.is_empty()
            && let Some(outcome) = self.patched(task, &listed, &alternate.patches).await
        {
            return Ok(Fetched::Done(outcome));
        }
        if alternate.mirrors.is_empty() {
            let own = Place::own(item);
            return self.fetch_from(&own, task, &listed, &dir, conditional, true).await;
        }
        let mut first_failure = None;
        for place in self.places(item, &listed, alternate.mirrors) {
            let fetched = if place.is_mirror {
                let rules = Arc::clone(&self.storer.rules);
                let Some(turn) = rules.mirror_hosts.enter(&place.url).await else { continue };
                // There are other places: what fails here is not asked twice.
                let impatient = self.client.with_retries(0);
                let patient = std::mem::replace(&mut self.client, impatient);
                let fetched =
                    self.fetch_from(&place, task, &listed, &dir, conditional, false).await;
                self.client = patient;
                turn.note(fetched.as_ref().err());
                fetched
            } else {
                self.fetch_from(&place, task, &listed, &dir, conditional, false).await
            };
            match fetched {
                Err(failure) if !failure.fatal && !failure.refused => {
                    // The report describes the failure at the resource's own address.
                    if first_failure.is_none() || !place.is_mirror {
                        first_failure = Some(failure);
                    }
                }
                done => return done,
            }
        }
        Err(first_failure
            .unwrap_or_else(|| Failure::new("uri.authority", "none of its places may be asked")))
    }

    /// Fetches from one address. `is_only` if there are no other addresses.
    async fn fetch_from(
        &mut self,
        place: &Place<'_>,
        task: &Task,
        listed: &Digests,
        dir: &Dir,
        conditional: bool,
        is_only: bool,
    ) -> Result<Fetched, Failure> {
        let item = &task.pending;
        let url: &str = &place.url;
        if let (true, Some(robots)) = (place.is_mirror, &self.storer.rules.robots) {
            // A mirror that does not want us is as good as none.
            let asked = robots.check(&self.client, url, place.public_only).await;
            asked.map_err(|failure| Failure { refused: false, ..failure })?;
        }
        let known = listed.strongest().is_some();
        let etag =
            task.row.as_ref().filter(|_| conditional && !known).and_then(|row| row.etag.as_deref());
        let (accept, name) =
            if place.is_mirror { (None, url) } else { (item.accept(), item.uri.as_str()) };
        let length = item.length;
        let target = Target { place, accept, name, dir, listed, length, etag, wants_type: false };
        // The length of a response is unknown if the length is not listed or the resource may be
        // unchanged; then nothing is reserved.
        let reserved = match length.filter(|_| etag.is_none()) {
            Some(length) => {
                let stored = Part::stored_length(self.sink.partials(), &target);
                match self.allowance.clone().reserve(length, stored).await {
                    None => return Ok(Fetched::NotBegun),
                    reserved => reserved,
                }
            }
            None => None,
        };
        let received = self.receive(target).await;
        drop(reserved);
        let Some(part) = received? else {
            // 304: the stored bytes are current.
            return Ok(Fetched::Done(Outcome::Right {
                row: self.storer.writer.still_right(task)?,
            }));
        };
        let mut stored = self.store(task, listed, (part.incoming, part.facts), is_only).await;
        if let (true, Ok(Fetched::Done(Outcome::Stored { notices, .. }))) =
            (place.is_mirror, &mut stored)
        {
            notices.push(Notice::new("mirror.used", format!("it came from {url}")));
        }
        stored
    }

    /// Stores the received body, or retains it until several bodies can be hashed together.
    async fn store(
        &mut self,
        task: &Task,
        listed: &Digests,
        (incoming, facts): (Incoming, Facts),
        may_wait: bool,
    ) -> Result<Fetched, Failure> {
        if may_wait
            && self.sink.stores_later()
            && incoming.file.is_none()
            && incoming.length <= TOGETHER_BYTES
            && incoming.hasher.is_md5_only()
        {
            let (bytes, head) = self.spare.pop().unwrap_or_default();
            let bytes = std::mem::replace(&mut self.storer.bytes, bytes);
            let head = std::mem::replace(&mut self.head, head);
            return Ok(Fetched::Held(Held { bytes, head, listed: listed.clone(), facts }));
        }
        let Storer { writer, rules, bytes, .. } = &mut self.storer;
        let digests = incoming.digests(bytes);
        let Incoming { length, file, .. } = incoming;
        let received = Received { file, digests, length, facts, head: &self.head };
        finish(writer.as_mut(), rules, task, listed, bytes, received).await.map(Fetched::Done)
    }

    /// Receives a body; `None` if the server responds that it has not changed.
    async fn receive(&mut self, target: Target<'_>) -> Result<Option<Part>, Failure> {
        let Target { listed, length, .. } = target;
        let checkable = listed.strongest().is_some() || length.is_some();
        let as_sent =
            checkable || !self.sink.keeps_statements() && is_named_as_gzip(&target.place.url);
        let packing = if as_sent { UnaskedEncoding::Raw } else { UnaskedEncoding::Decode };
        let Some(part) = self.receive_as(target, packing).await? else { return Ok(None) };
        // The server compresses without being asked: the list may describe the decompressed bytes.
        if part.packed && as_sent {
            let is_other = if checkable {
                let digests = part.incoming.digests(&self.storer.bytes);
                judge(listed, length, &digests, part.incoming.length) == Verdict::Mismatch
            } else {
                !part.is_gzip
            };
            if is_other {
                drop(part);
                return self
                    .receive_as(Target { etag: None, ..target }, UnaskedEncoding::Decode)
                    .await;
            }
        }
        Ok(Some(part))
    }

    async fn receive_as(
        &mut self,
        target: Target<'_>,
        unasked_encoding: UnaskedEncoding,
    ) -> Result<Option<Part>, Failure> {
        let Target { place, accept, name, listed, length: listed_length, etag, .. } = target;
        let Place { url, public_only, is_mirror, past_caches: no_cache } = place;
        let (url, public_only, no_cache): (&str, _, _) = (url, *public_only, *no_cache);
        let Self { client, sink, storer, head, .. } = self;
        let wants_type = sink.wants_head() || target.wants_type;
        let target = Target { wants_type, ..target };
        let Storer { rules, bytes, .. } = storer;
        let partials = sink.partials();
        let authorization = rules
            .authorization
            .as_ref()
            .filter(|_| crate::request::admit::same_origin(url, &rules.authorized_url));
        head.clear();
        let begun = if is_large(listed_length) {
            Part::begun_before(partials, &target, unasked_encoding)
        } else {
            None
        };
        let mut part = begun.map(|(part, note)| {
            head.extend_from_slice(note.head.as_bytes());
            part
        });
        // A digest shows whether a server mixes up answers; large bodies would delay later answers.
        let may_be_pipelined = !is_mirror
            && client.retries() > 0
            && !rules.again.is_over()
            && listed.strongest().is_some()
            && listed_length.is_some_and(|length| length <= PIPELINED_BYTES);
        let received = abreast_net::with_retries(client, url, async |attempt| {
            // A file of an earlier attempt is continued if the server still has the same version.
            let resume = part
                .as_ref()
                .filter(|part| part.is_as_sent)
                .and_then(|part| Some((part.incoming.length, part.facts.etag.clone()?)));
            let request = Request {
                if_none_match: etag,
                range_from: resume.as_ref().map(|(from, etag)| (*from, etag.as_str())),
                unasked_encoding,
                authorization,
                public_only,
                no_cache,
                pipelined: may_be_pipelined && attempt == 0,
                accept,
                ..Request::new(url)
            };
            let mut response = client.send(&request).await?.require_success()?;
            if listed.strongest().is_none() {
                response.refuse_challenge().await?;
            }
            if response.status() == StatusCode::NOT_MODIFIED {
                return Ok(Ok(None));
            }
            let goes_on =
                resume.as_ref().is_some_and(|(from, etag)| response.is_partial_from(*from, etag));
            if !goes_on {
                discard(&mut part);
                if !response.is_whole() {
                    let message = match response.status() {
                        StatusCode::ACCEPTED => "it is still being made (202)".to_owned(),
                        other => format!(
                            "the server answered {other} where the whole resource was asked for"
                        ),
                    };
                    return Ok(Err(Failure::new("http.status", message)));
                }
            }
            bytes.clear();
            let state = part.get_or_insert_with(|| {
                let mut part = Part::new(&response, listed, wants_type, unasked_encoding);
                let is_elsewhere = wants_type && !is_mirror && response.url() != url;
                part.facts.address = is_elsewhere.then(|| response.url().to_owned());
                let is_large = response.content_length().is_none_or(|sent| sent >= RESUME_BYTES);
                head.clear();
                if is_large || sink.wants_head() {
                    write_head(&response, part.packed && part.is_as_sent, head);
                }
                part
            });
            let packed = state.packed;
            if *is_mirror {
                // The Source does not know the tag of another server. A body without a tag is not
                // stored for continuation.
                state.facts.etag = None;
            }
            // The compressed bytes may be longer than the decompressed ones, whose length may be
            // the listed one.
            let most =
                listed_length.filter(|_| !packed || unasked_encoding == UnaskedEncoding::Decode);
            match read_body(&mut response, state, bytes, head, &target, most, partials).await {
                Ok(()) => Ok(Ok(Some(()))),
                Err(Interrupted::Net(error)) => {
                    if state.incoming.file.is_none() {
                        part = None;
                    }
                    Err(error)
                }
                Err(Interrupted::Failed(failure)) => Ok(Err(failure)),
            }
        })
        .await;
        // An interrupted transfer is continued by a later run, unless the resource was deleted or
        // cannot be used.
        let is_refused = match &received {
            Ok(received) => received.is_err(),
            Err(error) => {
                matches!(error.status(), Some(404 | 410))
                    || matches!(error.code(), "http.size" | "http.encoding" | "http.protocol")
            }
        };
        if is_refused {
            discard(&mut part);
            partials.forget(name);
        }
        if received??.is_none() {
            return Ok(None);
        }
        let mut part = part.expect("a body was read");
        // The body is complete: the file gets its name, or is useless.
        if let Some(temporary) = &mut part.incoming.file
            && std::mem::take(&mut temporary.resumable)
        {
            partials.forget(name);
        }
        Ok(Some(part))
    }
}

/// Writes the head of a response as it applies to the stored bytes: headers of the transfer are
/// left out, and so is an encoding that was removed.
fn write_head(response: &Response, encoded: bool, head: &mut Vec<u8>) {
    head.clear();
    // The response that completes a file represents the whole body.
    head.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    for (name, value) in response.headers() {
        let of_transfer = matches!(
            name.as_str(),
            "connection"
                | "keep-alive"
                | "transfer-encoding"
                | "te"
                | "trailer"
                | "upgrade"
                | "content-length"
                | "content-range"
                | "set-cookie"
        );
        if of_transfer || (name == "content-encoding" && !encoded) {
            continue;
        }
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
}

/// Extensions of names of files that are packed with gzip.
const GZIP_EXTENSIONS: [&str; 4] = ["gz", "tgz", "taz", "svgz"];

/// Whether an address names a file that is packed with gzip. Servers send such files with that
/// `Content-Encoding`, and unpacked their names would be wrong.
fn is_named_as_gzip(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().and_then(|name| name.rsplit_once('.'));
    name.is_some_and(|(_, extension)| {
        GZIP_EXTENSIONS.iter().any(|gzip| extension.eq_ignore_ascii_case(gzip))
    })
}

fn is_gzip(encoding: &str) -> bool {
    ["gzip", "x-gzip"].iter().any(|gzip| encoding.eq_ignore_ascii_case(gzip))
}

/// Whether a content encoding is a compression.
fn is_packing(encoding: &str) -> bool {
    !encoding.eq_ignore_ascii_case("identity")
}

/// `Last-Modified`, nanoseconds since 1970.
pub(crate) fn last_modified(header: Option<&str>) -> Option<i64> {
    let time = httpdate::parse_http_date(header?).ok()?;
    i64::try_from(time.duration_since(std::time::UNIX_EPOCH).ok()?.as_nanos()).ok()
}

/// The received bytes of a resource.
struct Part {
    incoming: Incoming,
    facts: Facts,
    /// Whether the bytes were sent with a content encoding.
    packed: bool,
    /// Whether this encoding is gzip.
    is_gzip: bool,
    /// Whether no encoding was removed, so that the bytes have the same offsets as in the transfer.
    is_as_sent: bool,
}

impl Part {
    fn new(
        response: &Response,
        listed: &Digests,
        with_type: bool,
        unasked_encoding: UnaskedEncoding,
    ) -> Self {
        let last_modified = last_modified(response.header("last-modified"));
        let etag = response.header("etag").map(str::to_owned);
        let media_type =
            with_type.then(|| response.header("content-type")).flatten().map(str::to_owned);
        let received = with_type.then(crate::report::clock::now);
        let encoding = response.header("content-encoding");
        let (packed, is_gzip) = (encoding.is_some_and(is_packing), encoding.is_some_and(is_gzip));
        let is_as_sent = !packed || unasked_encoding == UnaskedEncoding::Raw;
        let facts = Facts { etag, last_modified, media_type, received, address: None };
        Self { incoming: Incoming::new(listed), facts, packed, is_gzip, is_as_sent }
    }

    /// Number of bytes that earlier runs received of a file which this run can continue.
    fn stored_length(partials: &Partials, target: &Target<'_>) -> u64 {
        let stored = || {
            let length = target.length.filter(|length| is_large(Some(*length)))?;
            partials.note_at(target.name, &target.place.url)?;
            let (_, stat) = open_begun(target.dir, &temporary_name(target.name))?;
            (stat.size <= length).then_some(stat.size)
        };
        stored().unwrap_or(0)
    }

    /// The part of a large file from an earlier run: its bytes are read again, and the rest is
    /// requested on condition that the server still has the same version.
    fn begun_before(
        partials: &Partials,
        target: &Target<'_>,
        unasked_encoding: UnaskedEncoding,
    ) -> Option<(Self, Note)> {
        let Target { dir, listed, length, wants_type, .. } = *target;
        let note = partials.note_at(target.name, &target.place.url)?;
        let encoding = note.header("content-encoding");
        let (packed, is_gzip) = (encoding.is_some_and(is_packing), encoding.is_some_and(is_gzip));
        if packed && unasked_encoding != UnaskedEncoding::Raw {
            return None;
        }
        let name = temporary_name(target.name);
        let (mut file, stat) = open_begun(dir, &name)?;
        if stat.size == 0 || length.is_some_and(|length| stat.size > length) {
            return None;
        }
        if length == Some(stat.size) {
            // The file may be complete. The last byte is requested again, since a request for zero
            // bytes is not possible.
            file.set_len(stat.size - 1).ok()?;
        }
        let mut incoming = Incoming::new(listed);
        incoming.length = hash_into(&mut file, &mut incoming.hasher).ok()?;
        incoming.file =
            Some(TemporaryFile { dir: dir.clone(), name, file, kept: false, resumable: true });
        let facts = Facts {
            etag: Some(note.etag.clone()),
            last_modified: last_modified(note.header("last-modified")),
            media_type: note.header("content-type").filter(|_| wants_type).map(str::to_owned),
            received: wants_type.then(crate::report::clock::now),
            // The part of a body from another address is never stored for continuation.
            address: None,
        };
        Some((Self { incoming, facts, packed, is_gzip, is_as_sent: true }, note))
    }
}

/// Discards the received bytes, because they belong to another version or are useless.
fn discard(part: &mut Option<Part>) {
    if let Some(file) = part.as_mut().and_then(|part| part.incoming.file.as_mut()) {
        file.resumable = false;
    }
    *part = None;
}

enum Interrupted {
    Net(abreast_net::Error),
    Failed(Failure),
}

async fn read_body(
    response: &mut Response,
    part: &mut Part,
    bytes: &mut Vec<u8>,
    head: &[u8],
    target: &Target<'_>,
    listed_length: Option<u64>,
    partials: &Partials,
) -> Result<(), Interrupted> {
    let Part { incoming, facts, is_as_sent, .. } = part;
    if let Some(temporary) = &mut incoming.file {
        let begin = std::io::SeekFrom::Start(incoming.length);
        temporary.file.seek(begin).map_err(|error| Interrupted::Failed(error.into()))?;
    }
    while let Some(chunk) = response.chunk().await.map_err(Interrupted::Net)? {
        incoming
            .add(&chunk, bytes, target.dir, target.name, listed_length)
            .map_err(Interrupted::Failed)?;
        if let Some(temporary) = &mut incoming.file
            && incoming.length >= RESUME_BYTES
            && !temporary.resumable
            && *is_as_sent
            && facts.address.is_none()
            && let Some(etag) = facts.etag.as_deref().filter(|etag| etag.starts_with('"'))
        {
            temporary.resumable = partials.note(target.name, &target.place.url, etag, head);
        }
    }
    Ok(())
}
