//! Storage of verified bodies in the sink, the same for responses, packages and patches.

use crate::copy::names::temporary_name;
use crate::copy::partial::RESUME_BYTES;
use crate::copy::place::create_temporary;
use crate::report::failure::Failure;
use crate::request::admit::Admission;
use crate::request::verify::{Hasher, Verdict, judge};
use crate::sink::outcome::{Notice, Outcome};
use crate::sink::{Body, Prepared, Sink, SinkWriter, TemporaryFile};
use crate::transfer::rules::Rules;
use abreast_folder::Dir;
use abreast_store::mirror::{Pending, Task};
use abreast_webtypes::{Digests, Timestamp};
use std::io::{Read, Write as _};
use std::sync::Arc;

/// Bodies up to this length are verified in memory before a file is made.
pub(crate) const MEMORY_BYTES: usize = 1 << 20;
/// Bytes read from a body at a time.
const BLOCK_BYTES: usize = 64 << 10;

/// Metadata of a body.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    /// `ETag`
    pub(crate) etag: Option<String>,
    /// `Last-Modified`, nanoseconds since 1970.
    pub(crate) last_modified: Option<i64>,
    /// The media type.
    pub(crate) media_type: Option<String>,
    /// The time of the response, for sinks that store the head.
    pub(crate) received: Option<Timestamp>,
    /// The URL of the response, if the request was redirected: relative IRIs are resolved against
    /// it [rfc3986 §5.1.3].
    pub(crate) address: Option<String>,
}

/// Stores bodies, one after the other, for one thread.
///
/// The bytes of a resource come from a response ([`crate::transfer::fetch::Fetcher`]), from the
/// entry of a package, or from a patch. All bytes pass through [`Storer::store_body`], and are
/// admitted, verified and stored in the same way:
///
/// ```text
/// let mut storer = Storer::new(&transfer.sink, &transfer.rules);
/// session.mirror.begin()?;
/// for (task, entry) in entries {                       // `Task`: the plan's item with the row kept, if any
///     let outcome = storer.store_body(&task, Facts::default(), entry).await;   // any `Read`; read to its end only if wanted
///     fatal = transfer.take(vec![(task, Some(outcome))], report)?;              // counts, reports, puts the row
/// }
/// session.settle_and_commit()?;                        // content durable, then the rows
/// ```
///
/// `session.mirror.task(uri)` returns the task of a planned item. `keep` removes stored and current
/// items from the plan, and marks failed items in the plan. To request a failed item individually,
/// call `mirror.set_pending_state(uri, PendingState::Due, false)` instead of `keep`.
pub(crate) struct Storer {
    pub(crate) writer: Box<dyn SinkWriter>,
    pub(crate) rules: Arc<Rules>,
    admission: Admission,
    /// The body in memory.
    pub(crate) bytes: Vec<u8>,
}

/// A body that is being received: its first bytes are in memory, and a longer body is in a file.
pub(crate) struct Incoming {
    /// The hasher of the bytes in the file; a body in memory is hashed when it is complete.
    pub(crate) hasher: Hasher,
    pub(crate) length: u64,
    pub(crate) file: Option<TemporaryFile>,
}

impl Incoming {
    pub(crate) fn new(listed: &Digests) -> Self {
        Self { hasher: Hasher::for_listed(listed), length: 0, file: None }
    }

    /// Adds more bytes; `most` is the listed length.
    pub(crate) fn add(
        &mut self,
        chunk: &[u8],
        bytes: &mut Vec<u8>,
        dir: &Dir,
        uri: &str,
        most: Option<u64>,
    ) -> Result<(), Failure> {
        self.length += chunk.len() as u64;
        if let Some(listed) = most
            && self.length > listed
        {
            let message = format!(
                "more than the listed {} was sent",
                abreast_webtypes::count(listed, "byte")
            );
            return Err(Failure::new("fixity.mismatch", message));
        }
        if let Some(temporary) = &mut self.file {
            self.hasher.update(chunk);
            temporary.file.write_all(chunk)?;
        } else if bytes.len() + chunk.len() <= MEMORY_BYTES {
            bytes.extend_from_slice(chunk);
        } else {
            self.hasher.update(bytes);
            self.hasher.update(chunk);
            let name = temporary_name(uri);
            let file = create_temporary(dir, &name)?;
            let mut temporary =
                TemporaryFile { dir: dir.clone(), name, file, kept: false, resumable: false };
            temporary.file.write_all(bytes).and_then(|()| temporary.file.write_all(chunk))?;
            self.file = Some(temporary);
        }
        Ok(())
    }

    /// The digests of the whole body; `bytes` is the body if it is in memory.
    pub(crate) fn digests(&self, bytes: &[u8]) -> Digests {
        let mut hasher = self.hasher.clone();
        if self.file.is_none() {
            hasher.update(bytes);
        }
        hasher.finish()
    }
}

/// A complete body with its digests, before the verdict.
pub(crate) struct Received<'a> {
    pub(crate) file: Option<TemporaryFile>,
    pub(crate) digests: Digests,
    pub(crate) length: u64,
    pub(crate) facts: Facts,
    pub(crate) head: &'a [u8],
}

impl Storer {
    pub(crate) fn new(sink: &Arc<dyn Sink>, rules: &Arc<Rules>) -> Self {
        Self {
            writer: Arc::clone(sink).writer(),
            admission: rules.admission.clone(),
            rules: Arc::clone(rules),
            bytes: Vec::new(),
        }
    }

    /// Checks that the resource may be fetched and is needed, and prepares the sink.
    pub(crate) fn prepare(&mut self, task: &Task) -> Result<(Digests, Prepared), Failure> {
        // Bytes that a list contains need no request.
        if task.pending.body.is_none() {
            self.admit(task)?;
        }
        let mut listed = Digests::default();
        listed.set_from_bytes(&task.pending.digests);
        let prepared = self.writer.prepare(task, &listed)?;
        Ok((listed, prepared))
    }

    /// Checks that the resource may be fetched.
    pub(crate) fn admit(&mut self, task: &Task) -> Result<(), Failure> {
        let checked = self.admission.check(task.pending.href());
        checked.map_err(|refusal| Failure::refused(refusal.code(), refusal.message()))
    }

    /// Verifies a body by the listed length and digests, and stores it unless they differ.
    pub(crate) async fn store_body(
        &mut self,
        task: &Task,
        facts: Facts,
        body: impl Read,
    ) -> Outcome {
        self.try_store_body(task, facts, body).await.unwrap_or_else(Outcome::Failed)
    }

    /// Like [`Storer::store_body`], for a body in memory, which is not copied.
    pub(crate) async fn store_slice(&mut self, task: &Task, facts: Facts, body: &[u8]) -> Outcome {
        let digests = digests_of(task, body);
        self.store_hashed(task, facts, body, digests).await
    }

    /// As [`Storer::store_slice`], with the digests of [`digests_of`].
    pub(crate) async fn store_hashed(
        &mut self,
        task: &Task,
        facts: Facts,
        body: &[u8],
        digests: Digests,
    ) -> Outcome {
        self.try_store_hashed(task, facts, body, digests).await.unwrap_or_else(Outcome::Failed)
    }

    async fn try_store_hashed(
        &mut self,
        task: &Task,
        facts: Facts,
        body: &[u8],
        digests: Digests,
    ) -> Result<Outcome, Failure> {
        let listed = match self.prepare(task)? {
            (_, Prepared::Done(outcome)) => return Ok(outcome),
            (listed, Prepared::Wanted { .. }) => listed,
        };
        let received =
            Received { file: None, digests, length: body.len() as u64, facts, head: &[] };
        finish(self.writer.as_mut(), &self.rules, task, &listed, body, received).await
    }

    async fn try_store_body(
        &mut self,
        task: &Task,
        facts: Facts,
        mut body: impl Read,
    ) -> Result<Outcome, Failure> {
        let item = &task.pending;
        let (listed, dir) = match self.prepare(task)? {
            (_, Prepared::Done(outcome)) => return Ok(outcome),
            (listed, Prepared::Wanted { dir, .. }) => (listed, dir),
        };
        let mut incoming = Incoming::new(&listed);
        self.bytes.clear();
        let mut block = vec![0; BLOCK_BYTES];
        loop {
            match body.read(&mut block) {
                Ok(0) => break,
                Ok(count) => {
                    incoming.add(&block[..count], &mut self.bytes, &dir, &item.uri, item.length)?;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(Failure::new(
                        "body.read",
                        format!("cannot read its bytes: {error}"),
                    ));
                }
            }
        }
        let Self { writer, rules, bytes, .. } = self;
        let digests = incoming.digests(bytes);
        let Incoming { length, file, .. } = incoming;
        let received = Received { file, digests, length, facts, head: &[] };
        finish(writer.as_mut(), rules, task, &listed, bytes, received).await
    }
}

/// The digests of a body, for the algorithms that are listed for its item.
pub(crate) fn digests_of(task: &Task, body: &[u8]) -> Digests {
    let mut listed = Digests::default();
    listed.set_from_bytes(&task.pending.digests);
    let mut hasher = Hasher::for_listed(&listed);
    hasher.update(body);
    hasher.finish()
}

/// Judges a complete body and passes it to the sink.
pub(crate) async fn finish(
    writer: &mut dyn SinkWriter,
    rules: &Rules,
    task: &Task,
    listed: &Digests,
    bytes: &[u8],
    received: Received<'_>,
) -> Result<Outcome, Failure> {
    let item = &task.pending;
    let verdict = judge(listed, item.length, &received.digests, received.length);
    if verdict == Verdict::Mismatch {
        return Err(mismatch(listed, item, &received));
    }
    let notices = accept(rules, item, verdict == Verdict::Verified)?;
    let Received { file, digests, length, facts, head } = received;
    let Facts { etag, last_modified, media_type, received, address } = facts;
    let bytes = if file.is_some() { &[] } else { bytes };
    let body = Body {
        bytes,
        file,
        length,
        digests,
        verdict,
        etag,
        last_modified,
        media_type,
        received,
        address,
        head,
        rdf: &rules.rdf,
        notices,
    };
    writer.store(task, body).await
}

/// Whether bytes that agree with the list are acceptable; returns the notices about them. The
/// result depends on the list alone.
pub(crate) fn accept(
    rules: &Rules,
    item: &Pending,
    verified: bool,
) -> Result<Vec<Notice>, Failure> {
    if !verified && rules.require_fixity {
        let (code, what) = if item.unknown {
            (
                "fixity.unknown",
                "no digest that can be verified is listed for it: each is of an unknown algorithm or has the wrong length",
            )
        } else {
            ("fixity.missing", "no digest is listed for it")
        };
        return Err(Failure::refused(code, format!("{what}, and `--require-fixity` asks for one")));
    }
    let message = match (item.unknown, verified) {
        (false, _) => return Ok(Vec::new()),
        (true, true) => {
            "one of its digests is of an unknown algorithm or has the wrong length; verified by the others"
        }
        (true, false) => {
            "its digests are of unknown algorithms or have the wrong length; stored unverified"
        }
    };
    Ok(vec![Notice::new("fixity.unknown", message)])
}

fn mismatch(listed: &Digests, item: &Pending, received: &Received<'_>) -> Failure {
    let message = match item.length {
        Some(length) if length != received.length => {
            format!(
                "{} listed, {} sent; the copy here was left as it is",
                abreast_webtypes::count(length, "byte"),
                received.length
            )
        }
        _ => {
            format!(
                "`{listed}` is listed, the bytes sent have `{}`; the copy here was left as it is",
                received.digests
            )
        }
    };
    Failure::new("fixity.mismatch", message)
}

/// Whether a body of this listed length is worth continuing in another run.
pub(crate) const fn is_large(listed_length: Option<u64>) -> bool {
    match listed_length {
        Some(length) => length >= RESUME_BYTES,
        None => true,
    }
}
