//! The stored contents of a migrated store.

use crate::store::migration_options::Options;
use abreast_contents::View;
use abreast_core::contents::{Content, ContentStore, Error};
use abreast_core::{ContentId, on_threads};
use abreast_store::migrate::Migration;
use anyhow::{Context as _, Result, bail};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Contents that are copied before their place is recorded.
const PART: usize = 512;
/// Threads that copy contents, since a bucket takes time for each request.
const THREADS: usize = 8;

/// The contents of the present store, which are not changed.
pub(crate) enum ContentSource {
    Folder(View),
    Shared(Arc<dyn ContentStore>),
}

/// Numbers of contents.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CopiedContents {
    pub(crate) copied: u64,
    pub(crate) bytes: u64,
    /// Contents that the new store had before.
    pub(crate) present: u64,
}

impl ContentSource {
    /// Opens the contents in a folder.
    ///
    /// # Errors
    /// They cannot be read.
    pub(crate) fn folder(path: &Path) -> Result<Self> {
        let view = View::open(path);
        Ok(Self::Folder(
            view.with_context(|| format!("cannot open the kept contents `{}`", path.display()))?,
        ))
    }

    fn open(&self, id: &ContentId) -> Result<Content, Error> {
        match self {
            Self::Folder(view) => view.open_read(id),
            Self::Shared(contents) => contents.open_read(id),
        }
    }
}

/// Copies a content, unless the new store has it. Returns whether it was copied.
fn copy(from: &ContentSource, to: &dyn ContentStore, id: &ContentId, length: u64) -> Result<bool> {
    if to.length(id)? == Some(length) && to.hold(id)?.is_some() {
        return Ok(false);
    }
    let mut content = from.open(id).with_context(|| {
        format!("cannot read the kept content {id} (help: `abreast check --read-data` lists all that are damaged or missing)")
    })?;
    let stored = to.put_reader(&mut content, length)?;
    if stored.id() != *id {
        bail!(
            "the kept content {id} is damaged (help: `abreast check --read-data` lists all that are)"
        );
    }
    Ok(true)
}

fn cancelled() -> anyhow::Error {
    anyhow::anyhow!("the migration was stopped (help: start it again; it continues)")
}

/// Copies all contents that rows need, in the order of their addresses.
///
/// # Errors
/// A content is damaged or missing, a store failed, or the run was cancelled.
pub(crate) fn copy_contents(
    migration: &mut Migration<'_>,
    from: &ContentSource,
    to: &dyn ContentStore,
    options: &Options<'_>,
) -> Result<CopiedContents> {
    options.meter.begin("copying contents");
    let (copied, bytes, present) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    loop {
        let after = migration.contents_after().to_vec();
        let part = migration.needed_contents(&after, PART)?;
        let Some((last, _)) = part.last().copied() else { break };
        on_threads(THREADS, &part, &|(id, length)| {
            if (options.is_cancelled)() {
                return Err(cancelled());
            }
            if copy(from, to, id, *length)? {
                copied.fetch_add(1, Ordering::Relaxed);
                bytes.fetch_add(*length, Ordering::Relaxed);
            } else {
                present.fetch_add(1, Ordering::Relaxed);
            }
            options.meter.add(1, *length);
            Ok(())
        })?;
        to.sync().context("cannot make the copied contents durable")?;
        migration.set_contents_after(&last)?;
    }
    Ok(CopiedContents {
        copied: copied.into_inner(),
        bytes: bytes.into_inner(),
        present: present.into_inner(),
    })
}

/// Reads contents of the new store, and compares them with their addresses: all, or some whose
/// addresses are evenly distributed.
///
/// # Errors
/// A content is damaged or missing, or the store failed.
pub(crate) fn read_back(
    migration: &mut Migration<'_>,
    to: &dyn ContentStore,
    options: &Options<'_>,
) -> Result<u64> {
    options.meter.begin("reading contents back");
    let verify = |(id, length): &(ContentId, u64)| -> Result<()> {
        if (options.is_cancelled)() {
            return Err(cancelled());
        }
        if !to.is_whole(id)? {
            bail!(
                "the new store has the content {id} damaged or not at all (help: empty it, and start the migration again)"
            );
        }
        options.meter.add(1, *length);
        Ok(())
    };
    let (mut after, mut read) = (Vec::new(), 0);
    if options.sample == u64::MAX {
        loop {
            let part = migration.needed_contents(&after, PART)?;
            let Some((last, _)) = part.last() else { return Ok(read) };
            after = last.as_bytes().to_vec();
            on_threads(THREADS, &part, &verify)?;
            read += part.len() as u64;
        }
    }
    let mut last = None;
    for number in 0..options.sample {
        // Addresses are digests, so the content after an evenly distributed place is a random one.
        let place = u128::from(number) * (1 << 32) / u128::from(options.sample);
        let found = migration.needed_contents(&(place as u32).to_be_bytes(), 1)?;
        let Some(found) = found.first().copied().filter(|(id, _)| last != Some(*id)) else {
            continue;
        };
        last = Some(found.0);
        verify(&found)?;
        read += 1;
    }
    Ok(read)
}
