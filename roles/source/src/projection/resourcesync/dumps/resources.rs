//! A Resource Dump: everything that is in the set, in packages [rs-core §11].
//!
//! `at` is the time of the last change before the table is first read. The table is read in slices
//! and every slice is at least that new, so the dump and the changes after `at` together give
//! exactly the Source: what changed in between is in the dump as it was, as it became, or not at
//! all, and the Change List has it in each case.
//!
//! Only bytes with the digests in the log are packaged. A file that does not agree with the log was
//! changed a moment ago: it is retried until both agree, or the time for that is over. Then a
//! resource with a change after `at` is left to the Change List; without any other the dump would
//! be incomplete, so there is no dump. There is none either of a set with resources whose bytes are
//! not here: every resource of the Resource List must be in the dump [rs-core §9], with its
//! bitstream [rs-core §11.2].

use super::copy::{Copier, Item, Refused};
use super::parts::{Parts, Span};
use super::record::Dump;
use super::{DumpError, Job, path_in_package};
use crate::projection::resourcesync::{LinkDocument, state_links};
use abreast_core::{KeyRange, Position, Resource};
use abreast_resourcesync::v1_1::Entry;
use abreast_webtypes::{Precision, Timestamp, W3cDatetime};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

/// Resources read from the table at a time.
const SLICE: usize = 1_024;
/// Resources that may wait for a second try.
const MOST_OPEN: usize = 50_000;
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// Makes the packages of a dump in a folder; the packages are durable on return.
pub(super) fn make(job: &Job<'_>, folder: &Path, name: &str) -> Result<Dump, DumpError> {
    let head = job.log.head(job.set.id)?;
    if head.importing {
        return Err(DumpError::Importing);
    }
    job.meter.begin("dumping");
    job.meter.expect(head.resources, 0);
    let mut parts = Parts::new(folder, name, Span::Resources { at: head.time }, job);
    let mut copier = Copier::new(&job.bytes, job.cancel);
    let mut open = BTreeMap::new();
    let mut range = KeyRange::default();
    loop {
        let mut slice = Vec::with_capacity(SLICE);
        job.log.scan(job.set.id, &range, &mut |resource| {
            slice.push(resource.clone());
            if slice.len() < SLICE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        let Some(last) = slice.last() else { break };
        // The smallest key after the last one.
        range.start = format!("{}\0", last.key);
        for resource in slice {
            job.meter.add(1, resource.state.length.unwrap_or(0));
            if !job.bytes.has(&resource.key, &resource.state) {
                if resource.position <= head.position {
                    return Err(DumpError::Elsewhere(resource.key));
                }
                // The resource was added after `at`, so the Change List has it.
                continue;
            }
            copier.take(item(job, resource, head.time), &mut parts)?;
        }
        copier.flush(&mut parts)?;
        open.extend(copier.refused.drain(..).map(|Refused { key, why }| (key, why)));
        if open.len() > MOST_OPEN {
            return Err(DumpError::TooLively(open.len()));
        }
    }
    settle(job, &mut copier, &mut parts, open, (head.position, head.time))?;
    let packages = parts.finish()?;
    Ok(Dump {
        name: name.to_owned(),
        begin: head.time,
        end: job.log.now().max(head.time),
        packages,
    })
}

/// Retries items that did not agree with the log.
fn settle(
    job: &Job<'_>,
    copier: &mut Copier<'_>,
    parts: &mut Parts<'_>,
    mut open: BTreeMap<String, String>,
    (position, at): (Position, Timestamp),
) -> Result<(), DumpError> {
    let deadline = Instant::now() + job.options.patience;
    while !open.is_empty() {
        let mut missing = None;
        let mut left = 0_u64;
        for key in std::mem::take(&mut open).into_keys() {
            // The resource was deleted after the table was read, so the Change List has the
            // deletion.
            let Some(resource) = job.log.resource(job.set.id, &key)? else { continue };
            let changed = resource.position > position;
            copier.take(item(job, resource, at), parts)?;
            copier.flush(parts)?;
            if let Some(Refused { key, why }) = copier.refused.pop() {
                if changed {
                    left += 1;
                } else {
                    missing = Some((key.clone(), why.clone()));
                }
                open.insert(key, why);
            }
        }
        if Instant::now() >= deadline {
            if let Some((key, why)) = missing {
                return Err(DumpError::Unreadable { key, why });
            }
            if left > 0 {
                tracing::info!(
                    "resources that changed all the time, which the dump leaves to the Change List: {left}"
                );
            }
            return Ok(());
        }
        if !open.is_empty() {
            if job.cancel.is_wanted() {
                return Err(DumpError::Cancelled);
            }
            std::thread::sleep(PAUSE);
        }
    }
    Ok(())
}

fn item(job: &Job<'_>, resource: Resource, at: Timestamp) -> Item {
    let Resource { key, state, .. } = resource;
    let resources = job.set.urls.resources();
    let mut entry = Entry {
        lastmod: Some(W3cDatetime { instant: state.modified, precision: Precision::Second }),
        digests: state.digests.clone(),
        length: state.length,
        media_type: state.media_type.clone(),
        encoding: state.encoding.clone(),
        path: Some(path_in_package("resources", &key)),
        ..Entry::default()
    };
    job.set.urls.naming().write_uri(&key, &mut entry.loc);
    state_links(&resources, &state, LinkDocument::ResourceDumpManifest, &mut entry.links);
    Item { key, state: Some(state), entry, time: at }
}
