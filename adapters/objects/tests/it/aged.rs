//! An object store whose objects become old without waiting.

use abreast_objects::object_store::path::Path as Key;
use abreast_objects::object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// A store that shows objects as older than they are.
#[derive(Clone, Debug)]
pub(crate) struct Aged {
    store: Arc<dyn ObjectStore>,
    /// Times at which all objects became older.
    times: Arc<Mutex<Vec<SystemTime>>>,
    age: Duration,
}

impl Aged {
    /// Each call of [`Self::pass`] makes objects older by `age`.
    pub(crate) fn new(store: Arc<dyn ObjectStore>, age: Duration) -> Self {
        Self { store, times: Arc::default(), age }
    }

    /// Makes all objects older.
    pub(crate) fn pass(&self) {
        self.times.lock().unwrap().push(SystemTime::now());
        // S3 counts times in seconds, and rounds them down.
        std::thread::sleep(Duration::from_millis(1_100));
    }

    fn shown(&self, mut meta: ObjectMeta) -> ObjectMeta {
        let written = SystemTime::from(meta.last_modified);
        let passed = self.times.lock().unwrap().iter().filter(|time| **time >= written).count();
        meta.last_modified = (written - self.age * u32::try_from(passed).unwrap()).into();
        meta
    }
}

impl fmt::Display for Aged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, with older objects", self.store)
    }
}

#[async_trait::async_trait]
impl ObjectStore for Aged {
    async fn put_opts(
        &self,
        key: &Key,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.store.put_opts(key, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        key: &Key,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.store.put_multipart_opts(key, options).await
    }

    async fn get_opts(&self, key: &Key, options: GetOptions) -> Result<GetResult> {
        let mut found = self.store.get_opts(key, options).await?;
        found.meta = self.shown(found.meta);
        Ok(found)
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, Result<Key>>,
    ) -> BoxStream<'static, Result<Key>> {
        self.store.delete_stream(keys)
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        let aged = self.clone();
        self.store.list(prefix).map(move |meta| meta.map(|meta| aged.shown(meta))).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> Result<ListResult> {
        self.store.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Key, to: &Key, options: CopyOptions) -> Result<()> {
        self.store.copy_opts(from, to, options).await
    }
}
