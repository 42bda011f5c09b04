//! An object store: S3 and compatible services, or a folder through the same interface. One object
//! for each resource, under the key to which its URI is mapped.
//!
//! An object becomes visible completely, when the store confirms it. A new object is created only
//! under a free key. An existing object is adopted if its metadata contains the same URI, or if it
//! has the same bytes; otherwise it is not changed.

mod kept;
mod store;

pub(crate) use self::store::KEY_RULES;

use self::kept::ObjectsKept;
use self::store::{DIGESTS, Store, URI, failed, is_no_bucket};
use super::kept::ReadBack;
use super::kind::{KeptCopy, Opening, PathKind, SinkKind};
use super::newest::{self, Verdict};
use super::outcome::Outcome;
use super::{Body, Deleted, Deleting, Found, Prepared, Sink, SinkWriter, Storing};
use crate::copy::partial::Partials;
use crate::copy::path_map::PathMap;
use crate::copy::probe::FileSystem;
use crate::copy::state_folder::StateFolder;
use crate::report::error::{Error, ExitCode};
use crate::report::failure::Failure;
use crate::report::reporter::Reporter;
use crate::report::sinks::ObjectsOptions;
use crate::sink::target::{OBJECT_FORMS, Target, TargetError, TargetKind};
use abreast_folder::Dir;
use abreast_objects::object_store::path::Path as Key;
use abreast_objects::object_store::{
    self, Attribute, Attributes, MultipartUpload, ObjectStoreExt as _, PutMode,
    PutMultipartOptions, PutOptions,
};
use abreast_store::mirror::{Mirror, PendingAction, Row, Task};
use abreast_webtypes::{Digests, visible};
use bytes::Bytes;
use futures_util::StreamExt as _;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Length of the parts of a large object, in bytes.
const PART_BYTES: usize = 16 << 20;
/// Number of objects that are deleted in parallel.
const DELETES: usize = 16;
/// Maximum length of objects that are read to identify their version, in bytes.
const JUDGED_BYTES: u64 = 1 << 20;

/// Key of the address of the store in the database.
const STORE: &str = "sink-store";

/// A prefix of an object store as a sink.
#[derive(Debug)]
pub(crate) struct ObjectsSink {
    store: Arc<Store>,
    partials: Partials,
    spill: Dir,
    epoch: i64,
    /// Objects that were stored and deleted since the last [`Sink::settle`].
    newest: Mutex<VecDeque<newest::Change>>,
}

impl ObjectsSink {
    pub(crate) fn open(
        options: &ObjectsOptions,
        state: &StateFolder,
        map: PathMap,
        epoch: i64,
    ) -> Result<Self, Error> {
        let (partials, spill) = super::spill_folder(state)?;
        let (store, newest) = (Arc::new(Store::open(options, map)?), Mutex::default());
        Ok(Self { store, partials, spill, epoch, newest })
    }

    /// Records a change that was carried out.
    fn note(&self, uri: &str, new: Option<&Row>, old: Option<&Row>) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        let [new, old] = [new, old].map(|row| row.map(|row| version(&row.digests, row.length)));
        newest.push_back(newest::Change {
            uri: uri.to_owned(),
            name: uri.to_owned(),
            new,
            old,
            older: Vec::new(),
        });
        if newest.len() > newest::CHANGES {
            newest.pop_front();
        }
    }
}

impl Sink for ObjectsSink {
    fn writer(self: Arc<Self>) -> Box<dyn SinkWriter> {
        Box::new(ObjectsWriter { sink: self })
    }

    fn partials(&self) -> &Partials {
        &self.partials
    }

    fn shown(&self, uri: &str, _leaf: bool) -> String {
        self.store.key(uri).map_or_else(|_| uri.to_owned(), |key| key.to_string())
    }

    fn wants_head(&self) -> bool {
        true
    }

    fn may_be_ahead(&self) -> bool {
        true
    }

    fn settle(&self, mirror: &Mirror) -> Result<Vec<(String, Failure)>, Error> {
        let changes =
            std::mem::take(&mut *self.newest.lock().unwrap_or_else(PoisonError::into_inner));
        newest::note(mirror, changes)?;
        Ok(Vec::new())
    }

    fn restored(&self, mirror: &Mirror) -> Result<Option<String>, Error> {
        let is_there = newest::is_there(mirror, |change| {
            self.store.handle().block_on(judge_object(&self.store, change))
        })?;
        let why = "the object store does not have what was stored in it last: it was emptied, replaced or restored from a backup";
        Ok((!is_there).then(|| why.to_owned()))
    }

    fn sweep(&self, uri: &str) {
        let _ = self.spill.unlink(&crate::copy::names::temporary_name(uri));
    }
}

struct ObjectsWriter {
    sink: Arc<ObjectsSink>,
}

impl SinkWriter for ObjectsWriter {
    fn prepare(&mut self, task: &Task, listed: &Digests) -> Result<Prepared, Failure> {
        self.sink.store.key(&task.pending.uri)?;
        if let Some(row) = &task.row
            && super::is_right(task, row, listed)
        {
            return Ok(Prepared::Done(Outcome::Right { row: super::with_time(task, row.clone()) }));
        }
        Ok(Prepared::Wanted { dir: self.sink.spill.clone(), conditional: task.row.is_some() })
    }

    fn inspect(&mut self, tasks: &[Task]) -> Vec<Result<Found, Failure>> {
        let store = Arc::clone(&self.sink.store);
        let (handle, epoch) = (store.handle().clone(), self.sink.epoch);
        let inspections = futures_util::stream::iter(tasks.to_vec())
            .map(|task| {
                let store = Arc::clone(&store);
                async move { inspect_object(&store, &task, epoch).await }
            })
            .buffered(DELETES)
            .collect::<Vec<_>>();
        handle.block_on(inspections)
    }

    fn still_right(&mut self, task: &Task) -> Result<Row, Failure> {
        Ok(super::with_time(task, task.row.clone().unwrap_or_default()))
    }

    fn store<'a>(&'a mut self, task: &'a Task, body: Body<'a>) -> Storing<'a> {
        Box::pin(self.put(task, body))
    }

    fn delete<'a>(&'a mut self, tasks: &'a [Task]) -> Deleting<'a> {
        let store = Arc::clone(&self.sink.store);
        let handle = store.handle().clone();
        let uris: Vec<Option<String>> =
            tasks.iter().map(|task| task.row.as_ref().map(|row| row.uri.clone())).collect();
        let deletes = async move {
            futures_util::stream::iter(uris)
                .map(|uri| {
                    let store = Arc::clone(&store);
                    async move {
                        let Some(uri) = uri else { return Ok(Deleted::default()) };
                        let key = store.key(&uri)?;
                        match store.backend().delete(&key).await {
                            Err(error) if is_no_bucket(&error) => Err(failed(&error)),
                            Ok(()) | Err(object_store::Error::NotFound { .. }) => {
                                Ok(Deleted { gone: true, notices: Vec::new() })
                            }
                            Err(error) => Err(failed(&error)),
                        }
                    }
                })
                .buffered(DELETES)
                .collect::<Vec<_>>()
                .await
        };
        Box::pin(async move {
            let mut results = handle.spawn(deletes).await.unwrap_or_else(|error| {
                vec![Err(Failure::fatal("objects.failed", format!("deleting broke off: {error}")))]
            });
            for (task, result) in tasks.iter().zip(&results) {
                if let (Some(row), Ok(Deleted { gone: true, .. })) = (&task.row, result) {
                    self.sink.note(&row.uri, None, Some(row));
                }
            }
            if let Some(fatal) = results
                .iter()
                .position(|result| result.as_ref().is_err_and(|failure| failure.fatal))
            {
                results.truncate(fatal + 1);
            }
            results
        })
    }
}

impl ObjectsWriter {
    async fn put(&mut self, task: &Task, body: Body<'_>) -> Result<Outcome, Failure> {
        let row = body.row(task, self.sink.epoch);
        let same = |kept: &&Row| kept.length == row.length && kept.digests == row.digests;
        if let Some(kept) = task.row.as_ref().filter(same) {
            return Ok(Outcome::Right {
                row: Row { etag: row.etag, ..super::with_time(task, kept.clone()) },
            });
        }
        let store = Arc::clone(&self.sink.store);
        let key = store.key(&row.uri)?;
        let attributes = store.attributes(&row, &body);
        let created = task.row.is_none();
        let Body { bytes, file, notices, length, digests, .. } = body;
        let coming = Coming { uri: row.uri.clone(), length, digests };
        let handle = store.handle().clone();
        let work = if let Some(mut temporary) = file {
            temporary.file.rewind()?;
            // Dropping `_temporary` removes the file, but the other handle can still be read.
            let file = temporary.file.try_clone()?;
            handle.spawn(async move {
                let _temporary = temporary;
                if created {
                    is_free(&store, &key, &coming).await?;
                }
                put_large(&store, &key, attributes, file).await
            })
        } else {
            let bytes = Bytes::copy_from_slice(bytes);
            handle.spawn(async move {
                put_small(&store, &key, &coming, attributes, bytes, created).await
            })
        };
        work.await.map_err(|error| {
            Failure::new("objects.failed", format!("the upload broke off: {error}"))
        })??;
        self.sink.note(&row.uri, Some(&row), task.row.as_ref());
        Ok(Outcome::Stored { row, created, notices })
    }
}

/// The text that identifies a version of an object.
fn version(digests: &[u8], length: u64) -> String {
    let mut all = Digests::default();
    all.set_from_bytes(digests);
    format!("{length} {all}")
}

/// Whether a store has a change. Where metadata does not show which version it has, the bytes do.
async fn judge_object(store: &Store, change: &newest::Change) -> Verdict {
    let Ok(key) = store.key(&change.name) else { return Verdict::Unknown };
    let options = object_store::GetOptions::new().with_head(true);
    let found = match store.backend().get_opts(&key, options).await {
        Err(object_store::Error::NotFound { .. }) => return change.judge(None),
        Err(_) => return Verdict::Unknown,
        Ok(found) => found,
    };
    let size = found.meta.size;
    let mut known = Digests::default();
    if let Some(digests) = found.attributes.get(&Attribute::Metadata(DIGESTS.into())) {
        known.parse_leniently_into(digests.as_ref().as_bytes());
    }
    let mut own: Option<Digests> = None;
    // The version that has this length and, as far as can be compared, these digests.
    for version in change.versions() {
        let Some((length, digests)) = version.split_once(' ') else { continue };
        let mut wanted = Digests::default();
        wanted.parse_leniently_into(digests.as_bytes());
        if length.parse() != Ok(size) || wanted.strongest().is_none() {
            continue;
        }
        let agrees = match known.agree(&wanted) {
            None if size <= JUDGED_BYTES => {
                if own.is_none() {
                    own = store.digests(&key, &wanted).await.ok().map(|(found, _)| found);
                }
                own.as_ref().and_then(|own| own.agree(&wanted))
            }
            agrees => agrees,
        };
        if agrees == Some(true) {
            return change.judge(Some(version));
        }
    }
    Verdict::Unknown
}

/// The object of an item that a killed run may have stored or deleted. The object is identified by
/// its metadata, or by its bytes if it lacks metadata.
async fn inspect_object(store: &Store, task: &Task, epoch: i64) -> Result<Found, Failure> {
    let (item, row) = (&task.pending, task.row.as_ref());
    let key = store.key(&item.uri)?;
    let options = object_store::GetOptions::new().with_head(true);
    let found = match store.backend().get_opts(&key, options).await {
        Err(object_store::Error::NotFound { .. }) if row.is_some() => return Ok(Found::Gone),
        Err(object_store::Error::NotFound { .. }) => return Ok(Found::AsKept),
        Err(error) => return Err(failed(&error)),
        Ok(found) => found,
    };
    let metadata = |name: &'static str| found.attributes.get(&Attribute::Metadata(name.into()));
    if metadata(URI).is_some_and(|uri| uri.as_ref() != item.uri) {
        return Ok(Found::AsKept);
    }
    let mut kept = Digests::default();
    if let Some(digests) = metadata(DIGESTS) {
        kept.parse_leniently_into(digests.as_ref().as_bytes());
    }
    let size = found.meta.size;
    let is = async |digests: &[u8], length: u64| -> Result<bool, Failure> {
        let mut wanted = Digests::default();
        wanted.set_from_bytes(digests);
        if size != length || wanted.strongest().is_none() {
            return Ok(false);
        }
        if let Some(agrees) = kept.agree(&wanted) {
            return Ok(agrees);
        }
        let (digests, _) = store.digests(&key, &wanted).await.map_err(|error| failed(&error))?;
        Ok(digests.agree(&wanted) == Some(true))
    };
    if let Some(row) = row
        && is(&row.digests, row.length).await?
    {
        return Ok(Found::AsKept);
    }
    if item.action == PendingAction::Fetch && is(&item.digests, item.length.unwrap_or(size)).await?
    {
        return Ok(Found::Other(super::row_as_planned(task, size, epoch)));
    }
    // The object differs from the database, so the digests in the row are not reliable.
    Ok(row.map_or(Found::AsKept, |row| {
        Found::Other(Row { digests: Vec::new(), verified: false, etag: None, ..row.clone() })
    }))
}

/// An object to be put under a key.
struct Coming {
    uri: String,
    length: u64,
    digests: Digests,
}

async fn put_small(
    store: &Store,
    key: &Key,
    coming: &Coming,
    attributes: Attributes,
    bytes: Bytes,
    created: bool,
) -> Result<(), Failure> {
    let put = |mode| {
        let options = PutOptions { mode, attributes: attributes.clone(), ..PutOptions::default() };
        store.backend().put_opts(key, bytes.clone().into(), options)
    };
    if created {
        match put(PutMode::Create).await {
            Ok(_) => return Ok(()),
            Err(object_store::Error::AlreadyExists { .. }) => is_free(store, key, coming).await?,
            // A store without conditional writes.
            Err(
                object_store::Error::NotImplemented { .. }
                | object_store::Error::NotSupported { .. },
            ) => {
                is_free(store, key, coming).await?;
            }
            Err(error) => return Err(failed(&error)),
        }
    }
    put(PutMode::Overwrite).await.map(|_| ()).map_err(|error| failed(&error))
}

/// Whether the key is free, or has an object of an earlier run of this copy. An object without
/// metadata is identified by its bytes.
async fn is_free(store: &Store, key: &Key, coming: &Coming) -> Result<(), Failure> {
    let options = object_store::GetOptions::new().with_head(true);
    let found = match store.backend().get_opts(key, options).await {
        Err(object_store::Error::NotFound { .. }) => return Ok(()),
        Err(error) => return Err(failed(&error)),
        Ok(found) => found,
    };
    let known = found.attributes.get(&Attribute::Metadata(URI.into()));
    let is_ours = match known {
        Some(known) => known.as_ref() == coming.uri,
        None if found.meta.size == coming.length => {
            let (digests, length) =
                store.digests(key, &coming.digests).await.map_err(|error| failed(&error))?;
            length == coming.length && digests.agree(&coming.digests) == Some(true)
        }
        None => false,
    };
    if is_ours {
        return Ok(());
    }
    Err(Failure::refused(
        "local.changed",
        format!(
            "an object `{}` is there that is not ours\n  help: move it away, or use another prefix",
            visible(key.as_ref())
        ),
    ))
}

async fn put_large(
    store: &Store,
    key: &Key,
    attributes: Attributes,
    mut file: File,
) -> Result<(), Failure> {
    let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
    let mut upload =
        store.backend().put_multipart_opts(key, options).await.map_err(|error| failed(&error))?;
    let result = put_parts(upload.as_mut(), &mut file).await;
    if result.is_err() {
        // The uploaded parts are useless. A store that retains them has a rule for their removal.
        let _ = upload.abort().await;
    }
    result
}

async fn put_parts(upload: &mut dyn MultipartUpload, file: &mut File) -> Result<(), Failure> {
    loop {
        let mut part = Vec::with_capacity(PART_BYTES);
        file.take(PART_BYTES as u64).read_to_end(&mut part)?;
        if part.is_empty() {
            break;
        }
        upload.put_part(part.into()).await.map_err(|error| failed(&error))?;
    }
    upload.complete().await.map(|_| ()).map_err(|error| failed(&error))
}

impl TargetKind for ObjectsOptions {
    const FORMS: &'static [&'static str] = OBJECT_FORMS;

    fn read(target: &mut Target<'_>) -> Result<Self, TargetError> {
        target.use_state("an object store")?;
        Ok(Self { url: target.text.to_owned(), settings: Vec::new() })
    }
}

impl SinkKind for ObjectsOptions {
    fn check_state(&self, mirror: &Mirror, folder: &Path) -> Result<(), Error> {
        let asked = self.url.trim_end_matches('/');
        match mirror.meta(STORE)? {
            Some(known) if known != asked => {
                let message = format!(
                    "the state in {} is of the copy in {known}, not of one in {asked}",
                    folder.display()
                );
                Err(Error::new("sink.kind", ExitCode::Usage, message)
                    .with_help("give each copy a state of its own (`--state`)"))
            }
            Some(_) => Ok(()),
            None => Ok(mirror.set_meta(STORE, Some(asked))?),
        }
    }

    fn paths(&self) -> Option<&dyn PathKind> {
        Some(self)
    }

    fn open(
        &self,
        _opening: Opening<'_>,
        _report: &mut Reporter<'_>,
    ) -> Result<Option<Arc<dyn Sink>>, Error> {
        Ok(None)
    }

    fn kept(&self, copy: &KeptCopy<'_>) -> Result<Option<Box<dyn ReadBack>>, Error> {
        let kept = ObjectsKept::of_copy(self, copy.mirror)?;
        Ok(kept.map(|kept| Box::new(kept) as Box<dyn ReadBack>))
    }
}

impl PathKind for ObjectsOptions {
    fn system(&self, _opening: Opening<'_>) -> Result<FileSystem, Error> {
        Ok(FileSystem::with_rules(KEY_RULES))
    }

    fn open(
        &self,
        opening: Opening<'_>,
        map: PathMap,
        _system: FileSystem,
    ) -> Result<Arc<dyn Sink>, Error> {
        if opening.options.dry_run {
            return Ok(opening.dry());
        }
        Ok(Arc::new(ObjectsSink::open(self, opening.state, map, opening.epoch)?))
    }
}
