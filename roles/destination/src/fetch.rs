//! How does one resource get from its URL to its place, whole and verified or not at all?

use crate::admit::{Admission, Refusal};
use crate::partial::{Partials, RESUME_BYTES};
use crate::path_map::Form;
use crate::place::{Ground, LastDir, NoPlace, Place, code_of, create_temporary, temporary_name};
use crate::verify::{Hasher, Verdict, hash_file, hash_into, judge};
use abreast_folder::{Dir, ErrorKind, Kind, set_modified};
use abreast_net::{Authorization, Client, Request, Response, StatusCode, UnaskedEncoding};
use abreast_store::mirror::{PendingAction, Row, Task};
use abreast_webtypes::Digests;
use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::sync::Arc;

/// Bodies up to this length are verified in memory before a file is made.
const MEMORY_BYTES: usize = 1 << 20;
/// How often the place is looked at again when another thread changed it meanwhile.
const PLACE_ATTEMPTS: usize = 4;

/// What became of one item.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The file is there, verified as far as it can be.
    Stored { row: Row, created: bool, notices: Vec<Notice> },
    /// The right file was there already.
    Right { row: Row },
    /// Waits for its parent folder.
    Conflict,
    /// Not done.
    Failed(Failure),
}

/// Something to tell about an item that was done.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

/// Why an item was not done.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    /// Refused by rule rather than failed by accident.
    pub(crate) refused: bool,
    /// Nothing else will work either: the disk is full or broken.
    pub(crate) fatal: bool,
}

impl Failure {
    fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), refused: false, fatal: false }
    }

    pub(crate) fn refused(code: &'static str, message: impl Into<String>) -> Self {
        Self { refused: true, ..Self::new(code, message) }
    }
}

impl From<abreast_folder::Error> for Failure {
    fn from(error: abreast_folder::Error) -> Self {
        let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
        Self {
            fatal: matches!(error.kind(), ErrorKind::Full | ErrorKind::Other),
            ..Self::new(code_of(&error), format!("{error}{cause}"))
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let full = matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
        Self {
            fatal: true,
            ..Self::new(if full { "disk.full" } else { "io" }, format!("cannot write the file: {error}"))
        }
    }
}

impl From<abreast_net::Error> for Failure {
    fn from(error: abreast_net::Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<NoPlace> for Failure {
    fn from(no_place: NoPlace) -> Self {
        match no_place {
            NoPlace::Path(error) => Self::refused(error.code(), error.to_string()),
            NoPlace::Parent => Self::new("path.conflict", "a file stands where a folder is needed"),
            NoPlace::Refused(error) => error.into(),
        }
    }
}

/// What all items of a run are judged by.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) require_fixity: bool,
    pub(crate) immutable: bool,
    pub(crate) authorization: Option<Authorization>,
    /// The URL the credentials are for.
    pub(crate) authorized_url: String,
    /// Which hosts resources may be on; nothing is fetched before it is set.
    pub(crate) admission: Option<Admission>,
    pub(crate) epoch: i64,
}

/// One connection's worth of work: fetches items one after the other.
pub(crate) struct Fetcher {
    pub(crate) ground: Arc<Ground>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) client: Client,
    pub(crate) admission: Option<Admission>,
    pub(crate) last: LastDir,
    pub(crate) body: Vec<u8>,
}

/// The bytes of one resource, on their way.
struct Received {
    /// Where they are when they are too many for memory.
    file: Option<TemporaryFile>,
    digests: Digests,
    length: u64,
    etag: Option<String>,
    last_modified: Option<i64>,
    packed: bool,
}

/// A file that is removed again unless it got its final name.
struct TemporaryFile {
    dir: Dir,
    name: Vec<u8>,
    file: File,
    kept: bool,
    /// Another run can go on with it.
    resumable: bool,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.kept && !self.resumable {
            let _ = self.dir.unlink(&self.name);
        }
    }
}

impl Fetcher {
    pub(crate) async fn fetch(&mut self, task: &Task) -> Outcome {
        match self.try_fetch(task).await {
            Ok(outcome) => outcome,
            Err(failure) => Outcome::Failed(failure),
        }
    }

    async fn try_fetch(&mut self, task: &Task) -> Result<Outcome, Failure> {
        let item = &task.pending;
        if let Err(refusal) = self.admission.as_mut().map_or(Err(Refusal::Authority), |rule| rule.check(&item.uri)) {
            return Err(Failure::refused(refusal.code(), refusal.message()));
        }
        let mut listed = Digests::default();
        listed.set_from_bytes(&item.digests);
        let form = if task.row.as_ref().is_some_and(|row| row.leaf) { Form::Leaf } else { Form::Plain };
        let mut place = match self.ground.place(&item.uri, form, true, &mut self.last) {
            Err(NoPlace::Parent) => return Ok(Outcome::Conflict),
            place => place?,
        };
        if let Some(row) = self.already_right(task, &listed, &mut place)? {
            return Ok(Outcome::Right { row });
        }
        let ours = match (&task.row, &place.found) {
            (Some(row), Some(found)) => self.ground.is_as_written(row, found),
            _ => false,
        };
        if self.rules.immutable && place.found.is_some() && !ours {
            return Err(Failure::refused("local.changed", Self::changed_here(&place)));
        }
        let known = listed.strongest().is_some();
        let etag = task.row.as_ref().filter(|_| ours && !known).and_then(|row| row.etag.as_deref());
        let Some(received) = self.receive(&item.uri, &place, &listed, item.length, etag).await? else {
            // 304: the bytes kept are still the right ones.
            let row = task.row.clone().unwrap_or_default();
            return Ok(Outcome::Right { row: self.with_time(task, row, &place)? });
        };
        let verdict = judge(&listed, item.length, &received.digests, received.length);
        let mut notices = Vec::new();
        match verdict {
            Verdict::Mismatch => return Err(mismatch(&listed, item.length, &received)),
            Verdict::Unverified if self.rules.require_fixity => {
                let (code, what) = if item.unknown {
                    ("fixity.unknown", "only digests of unknown algorithms are listed for it")
                } else {
                    ("fixity.missing", "no digest is listed for it")
                };
                return Err(Failure::refused(code, format!("{what}, and `--require-fixity` asks for one")));
            }
            Verdict::Verified | Verdict::Unverified => {}
        }
        if item.unknown {
            let message = match verdict {
                Verdict::Verified => "one of its digests is of an unknown algorithm; verified by the others",
                _ => "its digests are of unknown algorithms; stored unverified",
            };
            notices.push(Notice { code: "fixity.unknown", message: message.to_owned() });
        }
        self.store(task, place, received, verdict, ours, notices)
    }

    /// Is the right file there already, ours or somebody's?
    fn already_right(&self, task: &Task, listed: &Digests, place: &mut Place) -> Result<Option<Row>, Failure> {
        let (item, Some(found)) = (&task.pending, place.found) else { return Ok(None) };
        if let Some(row) = &task.row
            && self.ground.is_as_written(row, &found)
        {
            let mut kept = Digests::default();
            kept.set_from_bytes(&row.digests);
            let right = item.action == PendingAction::Touch
                || judge(listed, item.length, &kept, row.length) == Verdict::Verified;
            return if right { self.with_time(task, row.clone(), place).map(Some) } else { Ok(None) };
        }
        if listed.strongest().is_none() || item.length.is_some_and(|length| length != found.size) {
            return Ok(None);
        }
        let (mut file, _) = place.dir.open_read(place.name())?;
        let (digests, length) = hash_file(&mut file, listed)?;
        if judge(listed, item.length, &digests, length) != Verdict::Verified {
            return Ok(None);
        }
        let row = Row {
            uri: item.uri.clone(),
            leaf: place.form == Form::Leaf,
            length,
            digests: digests.to_bytes(),
            file_mtime: found.mtime_ns,
            verified: true,
            epoch: self.rules.epoch,
            ..Row::default()
        };
        self.with_time(task, row, place).map(Some)
    }

    /// Sets the listed time on a file that has the right bytes.
    fn with_time(&self, task: &Task, mut row: Row, place: &Place) -> Result<Row, Failure> {
        let item = &task.pending;
        row.changed = item.changed.or(row.changed);
        row.leaf = place.form == Form::Leaf;
        if let Some(modified) = item.modified {
            let mtime = modified.saturating_mul(1_000);
            if place.found.is_some_and(|found| !self.ground.system.same_time(mtime, found.mtime_ns)) {
                place.dir.set_modified(place.name(), mtime)?;
                row.file_mtime = mtime;
            }
        }
        row.modified = item.modified;
        Ok(row)
    }

    /// `None` when the server says that nothing has changed.
    async fn receive(
        &mut self,
        uri: &str,
        place: &Place,
        listed: &Digests,
        listed_length: Option<u64>,
        etag: Option<&str>,
    ) -> Result<Option<Received>, Failure> {
        let checkable = listed.strongest().is_some() || listed_length.is_some();
        let packing = if checkable { UnaskedEncoding::Raw } else { UnaskedEncoding::Decode };
        let received = self.receive_as(uri, place, listed, listed_length, etag, packing).await?;
        match received {
            // A server that packs without being asked: the list may speak of the bytes inside.
            Some(received)
                if received.packed
                    && checkable
                    && judge(listed, listed_length, &received.digests, received.length) == Verdict::Mismatch =>
            {
                drop(received);
                self.receive_as(uri, place, listed, listed_length, None, UnaskedEncoding::Decode).await
            }
            received => Ok(received),
        }
    }

    async fn receive_as(
        &mut self,
        uri: &str,
        place: &Place,
        listed: &Digests,
        listed_length: Option<u64>,
        etag: Option<&str>,
        unasked_encoding: UnaskedEncoding,
    ) -> Result<Option<Received>, Failure> {
        let Self { client, body, rules, ground, .. } = self;
        let authorization =
            rules.authorization.as_ref().filter(|_| crate::admit::same_origin(uri, &rules.authorized_url));
        let large = listed_length.is_none_or(|length| length >= RESUME_BYTES);
        let mut part =
            if large { Part::begun_before(&ground.partials, place, uri, listed, listed_length) } else { None };
        let result = abreast_net::with_retries(client, uri, async |_| {
            // A file begun by an earlier attempt is continued when the server still has the same version.
            let resume = part.as_ref().and_then(|part| Some((part.length, part.etag.clone()?)));
            let request = Request {
                if_none_match: etag,
                range_from: resume.as_ref().map(|(from, etag)| (*from, etag.as_str())),
                unasked_encoding,
                authorization,
                ..Request::new(uri)
            };
            let mut answered = client.send(&request).await?;
            if answered.status() == StatusCode::RANGE_NOT_SATISFIABLE && resume.is_some() {
                drop(answered);
                answered = client.send(&Request { range_from: None, ..request }).await?;
            }
            let mut response = answered.require_success()?;
            if response.status() == StatusCode::NOT_MODIFIED {
                return Ok(Ok(None));
            }
            let goes_on = resume.as_ref().is_some_and(|(from, etag)| response.is_partial_from(*from, etag));
            if !goes_on {
                discard(&mut part);
                if response.status() != StatusCode::OK {
                    let message =
                        format!("the server answered {} where the whole resource was asked for", response.status());
                    return Ok(Err(Failure::new("http.status", message)));
                }
            }
            body.clear();
            let packed =
                response.header("content-encoding").is_some_and(|value| !value.eq_ignore_ascii_case("identity"));
            let state = part.get_or_insert_with(|| Part::new(&response, listed));
            // Packed bytes may be more than those inside, which may be what is listed.
            let most = listed_length.filter(|_| !packed || unasked_encoding == UnaskedEncoding::Decode);
            match read_body(&mut response, state, body, place, uri, most, &ground.partials).await {
                Ok(()) => Ok(Ok(Some(packed))),
                Err(Interrupted::Net(error)) => {
                    if state.file.is_none() {
                        part = None;
                    }
                    Err(error)
                }
                Err(Interrupted::Failed(failure)) => {
                    discard(&mut part);
                    Ok(Err(failure))
                }
            }
        })
        .await?;
        let Some(packed) = result? else { return Ok(None) };
        let mut part = part.expect("a body was read");
        // Whole now: either it gets its name, or it is of no use.
        if let Some(temporary) = &mut part.file
            && std::mem::take(&mut temporary.resumable)
        {
            ground.partials.forget(uri);
        }
        Ok(Some(Received {
            file: part.file,
            digests: part.hasher.finish(),
            length: part.length,
            etag: part.etag,
            last_modified: part.last_modified,
            packed,
        }))
    }

    fn store(
        &mut self,
        task: &Task,
        mut place: Place,
        received: Received,
        verdict: Verdict,
        ours: bool,
        mut notices: Vec<Notice>,
    ) -> Result<Outcome, Failure> {
        let item = &task.pending;
        let same_bytes = |place: &Place, received: &Received| -> Result<bool, Failure> {
            if place.found.is_none_or(|found| found.size != received.length) {
                return Ok(false);
            }
            let (mut file, _) = place.dir.open_read(place.name())?;
            Ok(hash_file(&mut file, &received.digests)?.0.agree(&received.digests) == Some(true))
        };
        let mut row = Row {
            uri: item.uri.clone(),
            leaf: place.form == Form::Leaf,
            modified: item.modified.or(received.last_modified.map(|nanoseconds| nanoseconds / 1_000)),
            length: received.length,
            digests: received.digests.to_bytes(),
            changed: item.changed,
            etag: received.etag.clone(),
            file_mtime: 0,
            verified: verdict == Verdict::Verified,
            epoch: self.rules.epoch,
        };
        // Without a listed digest only the bytes themselves tell that nothing has changed: never rewrite those.
        if place.found.is_some() && verdict != Verdict::Verified && same_bytes(&place, &received)? {
            row.file_mtime = place.found.map_or(0, |found| found.mtime_ns);
            return Ok(Outcome::Right { row: self.with_time(task, row, &place)? });
        }
        let mtime = item.modified.map(|micros| micros.saturating_mul(1_000)).or(received.last_modified);
        let name = temporary_name(&item.uri);
        let mut temporary = if let Some(file) = received.file {
            file
        } else {
            let file = create_temporary(&place.dir, &name)?;
            let mut temporary = TemporaryFile { dir: place.dir.clone(), name, file, kept: false, resumable: false };
            temporary.file.write_all(&self.body)?;
            temporary
        };
        row.file_mtime = match mtime {
            Some(mtime) => {
                set_modified(&temporary.file, mtime)?;
                mtime
            }
            None => abreast_folder::Stat::of(&temporary.file)?.mtime_ns,
        };
        let created = task.row.is_none() && place.found.is_none();
        for _ in 0..PLACE_ATTEMPTS {
            match place.found.map(|found| found.kind) {
                None => match temporary.dir.rename_noreplace(&temporary.name, &place.dir, place.name()) {
                    Err(error) if error.kind() == ErrorKind::Exists => {
                        place = self.ground.place(&item.uri, place.form, true, &mut self.last)?;
                        row.leaf = place.form == Form::Leaf;
                        continue;
                    }
                    renamed => renamed?,
                },
                Some(Kind::File) => {
                    if !ours {
                        let to = self.ground.backup.take(&place)?;
                        let message =
                            format!("the file here was not the one written before; it is now {}", to.display());
                        notices.push(Notice { code: "local.backup", message });
                        place.look()?;
                        continue;
                    }
                    temporary.dir.rename(&temporary.name, &place.dir, place.name())?;
                }
                Some(_) => return Err(Failure::new("path.conflict", "a folder or special file took its place")),
            }
            temporary.kept = true;
            return Ok(Outcome::Stored { row, created, notices });
        }
        Err(Failure::new("path.conflict", "its place changed while it was being stored"))
    }

    fn changed_here(place: &Place) -> String {
        format!(
            "`{}` is not the file written before, and `--immutable` keeps it\n  help: move it away, or run without `--immutable`",
            place.shown()
        )
    }
}

/// What was received in earlier attempts.
struct Part {
    hasher: Hasher,
    length: u64,
    etag: Option<String>,
    last_modified: Option<i64>,
    file: Option<TemporaryFile>,
}

impl Part {
    fn new(response: &Response, listed: &Digests) -> Self {
        let last_modified = response
            .header("last-modified")
            .and_then(|value| httpdate::parse_http_date(value).ok())
            .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
            .and_then(|since| i64::try_from(since.as_nanos()).ok());
        Self {
            hasher: Hasher::for_listed(listed),
            length: 0,
            etag: response.header("etag").map(str::to_owned),
            last_modified,
            file: None,
        }
    }
}

impl Part {
    /// What an earlier run has of a large file: its bytes are read again, and the rest asked for on condition that the
    /// server still has the same version.
    fn begun_before(
        partials: &Partials,
        place: &Place,
        uri: &str,
        listed: &Digests,
        length: Option<u64>,
    ) -> Option<Self> {
        let etag = partials.etag(uri)?;
        let name = temporary_name(uri);
        let (mut file, stat) = place.dir.open_append(&name).ok()?;
        if stat.size == 0 || length.is_some_and(|length| stat.size > length) {
            return None;
        }
        if length == Some(stat.size) {
            // All of it: the last byte is asked for again, since nothing cannot be.
            file.set_len(stat.size - 1).ok()?;
        }
        let mut hasher = Hasher::for_listed(listed);
        let read = hash_into(&mut file, &mut hasher).ok()?;
        let file = TemporaryFile { dir: place.dir.clone(), name, file, kept: false, resumable: true };
        Some(Self { hasher, length: read, etag: Some(etag), last_modified: None, file: Some(file) })
    }
}

/// Forgets what was received: it is of another version, or of no use.
fn discard(part: &mut Option<Part>) {
    if let Some(Part { file: Some(file), .. }) = part {
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
    body: &mut Vec<u8>,
    place: &Place,
    uri: &str,
    listed_length: Option<u64>,
    partials: &Partials,
) -> Result<(), Interrupted> {
    let io = |error: std::io::Error| Interrupted::Failed(error.into());
    if let Some(temporary) = &mut part.file {
        temporary.file.seek(std::io::SeekFrom::Start(part.length)).map_err(io)?;
    }
    while let Some(chunk) = response.chunk().await.map_err(Interrupted::Net)? {
        part.length += chunk.len() as u64;
        if listed_length.is_some_and(|listed| part.length > listed) {
            let listed = listed_length.unwrap_or_default();
            let message = format!("more than the {listed} bytes that are listed were sent");
            return Err(Interrupted::Failed(Failure::new("fixity.mismatch", message)));
        }
        part.hasher.update(&chunk);
        if let Some(temporary) = &mut part.file {
            temporary.file.write_all(&chunk).map_err(io)?;
            if part.length >= RESUME_BYTES
                && !temporary.resumable
                && let Some(etag) = part.etag.as_deref().filter(|etag| etag.starts_with('"'))
            {
                temporary.resumable = partials.note(uri, etag);
            }
        } else if body.len() + chunk.len() <= MEMORY_BYTES {
            body.extend_from_slice(&chunk);
        } else {
            let name = temporary_name(uri);
            let file = create_temporary(&place.dir, &name).map_err(|error| Interrupted::Failed(error.into()))?;
            let mut temporary = TemporaryFile { dir: place.dir.clone(), name, file, kept: false, resumable: false };
            temporary.file.write_all(body).and_then(|()| temporary.file.write_all(&chunk)).map_err(io)?;
            part.file = Some(temporary);
        }
    }
    Ok(())
}

fn mismatch(listed: &Digests, length: Option<u64>, received: &Received) -> Failure {
    let message = match length {
        Some(length) if length != received.length => {
            format!("{length} bytes are listed, {} were sent; the copy here was left as it is", received.length)
        }
        _ => {
            format!("`{listed}` is listed, the bytes sent have `{}`; the copy here was left as it is", received.digests)
        }
    };
    Failure::new("fixity.mismatch", message)
}
