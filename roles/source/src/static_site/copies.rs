//! Copies of resources in the site, made before the lists with their URLs are published, and
//! removed afterwards.
//!
//! After the first build, changed resources are compared by their bytes, and all others by length
//! and time. A copy is retained only if it has the digest in the lists.

use super::build_record::{BuildRecord, Mark};
use super::report::{SiteError, SiteReport};
use super::site_folder::SiteFolder;
use super::tree::tree_of;
use crate::names::keys::{key_of, path_of, too_long};
use crate::publish::PublishedSet;
use crate::publish::publisher::Publisher;
use crate::{Naming, Representation};
use abreast_core::{KeyRange, Meter, Position, Resource, State};
use abreast_folder::{ErrorKind, set_modified};
use abreast_webtypes::Digests;
use md5::{Digest as _, Md5};
use sha2::Sha256;
use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// Resources or changes read from the log at a time.
const PAGE: usize = 1_024;
const CHUNK: usize = 256 * 1024;

pub(super) struct Copies<'a> {
    pub(super) publisher: &'a Publisher,
    pub(super) stop: &'a AtomicBool,
    /// Compare the bytes of all copies, not only of changed resources.
    pub(super) reread: bool,
}

/// How an existing copy is compared with the state of its resource.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    /// Compare the bytes with the digests of the resource.
    Whole,
    /// Copy again if the length differs; compare the bytes only if the time differs.
    Seen,
}

impl Copies<'_> {
    /// Copies new and changed resources of one set. Returns the position up to which copies are
    /// complete; `None` if some failed.
    pub(super) fn put(
        &self,
        set: &PublishedSet,
        site_folder: &mut SiteFolder,
        record: &BuildRecord,
        report: &mut SiteReport,
    ) -> Result<Option<Mark>, SiteError> {
        let log = self.publisher.log();
        let head = log.head(set.id)?;
        let now = Mark { created: head.created, position: head.position };
        let problems = report.problem_count;
        let before = record.mark(&set.slug).filter(|mark| mark.created == head.created);
        if let Some(mark) = before {
            self.changed(set, mark.position, &mut |key| match log.resource(set.id, key)? {
                Some(resource) => self.copy(set, &resource, Compared::Whole, site_folder, report),
                None => Ok(()),
            })?;
        }
        // Unchanged resources are compared too, because their copies may have been lost or changed.
        let how = if before.is_some() && !self.reread { Compared::Seen } else { Compared::Whole };
        let mut range = KeyRange::default();
        loop {
            let mut page = Vec::new();
            log.scan(set.id, &range, &mut |resource| {
                page.push(resource.clone());
                if page.len() < PAGE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            for resource in &page {
                self.publisher.meter().add(1, 0);
                self.copy(set, resource, how, site_folder, report)?;
            }
            let Some(last) = page.last().filter(|_| page.len() == PAGE) else { break };
            range.start = format!("{}\0", last.key);
        }
        // If a copy failed, the next build reads all changes since `before` again.
        Ok(if report.problem_count == problems { Some(now) } else { before })
    }

    /// Removes copies of deleted resources; in the first build, all files that are not in the set.
    pub(super) fn remove(
        &self,
        set: &PublishedSet,
        record: &BuildRecord,
        site_folder: &mut SiteFolder,
        report: &mut SiteReport,
    ) -> Result<(), SiteError> {
        let log = self.publisher.log();
        let tree = tree_of(self.publisher, set);
        let keep = tree.split('/').filter(|name| !name.is_empty()).count();
        let created = log.head(set.id)?.created;
        if let Some(mark) = record.mark(&set.slug).filter(|mark| mark.created == created) {
            return self.changed(set, mark.position, &mut |key| {
                if log.resource(set.id, key)?.is_none() {
                    let gone = target(&tree, set, key);
                    let removed =
                        gone.map(|path| site_folder.remove_bytes(&path, keep)).transpose()?;
                    report.removed += u64::from(removed.unwrap_or(false));
                }
                Ok(())
            });
        }
        for path in self.unknown(set, site_folder)? {
            report.removed += u64::from(site_folder.remove_bytes(&path, keep)?);
        }
        Ok(())
    }

    /// Files in the folder of copies that the set does not have.
    pub(super) fn unknown(
        &self,
        set: &PublishedSet,
        site_folder: &SiteFolder,
    ) -> Result<Vec<Vec<u8>>, SiteError> {
        let tree = tree_of(self.publisher, set);
        let mut unknown = Vec::new();
        site_folder.visit(&tree, &mut |path| {
            let key = set.urls.naming().key_at(&key_of(&path[tree.len()..]));
            let known = match key {
                Some(key) => self.publisher.log().resource(set.id, &key)?.is_some(),
                None => false,
            };
            if !known {
                unknown.push(path.to_vec());
            }
            Ok(())
        })?;
        Ok(unknown)
    }

    /// Visits the keys of all changes after a position.
    fn changed(
        &self,
        set: &PublishedSet,
        mut after: Position,
        see: &mut dyn FnMut(&str) -> Result<(), SiteError>,
    ) -> Result<(), SiteError> {
        loop {
            let mut page = Vec::new();
            self.publisher.log().read(set.id, after, &mut |record| {
                page.push((record.position, record.key.clone()));
                if page.len() < PAGE { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
            let Some((last, _)) = page.last() else { return Ok(()) };
            after = *last;
            let all = set.urls.naming().names_entities();
            for (_, key) in page.iter().filter(|(_, key)| all || Naming::is_own(key)) {
                if self.stop.load(Ordering::Relaxed) {
                    return Err(SiteError::Stopped);
                }
                see(key)?;
            }
        }
    }

    fn copy(
        &self,
        set: &PublishedSet,
        resource: &Resource,
        how: Compared,
        site_folder: &mut SiteFolder,
        report: &mut SiteReport,
    ) -> Result<(), SiteError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(SiteError::Stopped);
        }
        let tree = tree_of(self.publisher, set);
        // A resource with a URI outside the set has no path in the site.
        let Some(target) = target(&tree, set, &resource.key) else { return Ok(()) };
        let shown = || String::from_utf8_lossy(&target).escape_debug().to_string();
        if let Some(why) = too_long(&target) {
            report.left_out(&resource.key, &why);
            return Ok(());
        }
        let length = resource.state.length.unwrap_or(0);
        let meter = self.publisher.meter();
        let mtime_ns = resource.state.modified.as_micros().saturating_mul(1_000);
        if let Some((file, stat)) = site_folder.open_file(&target, length)? {
            let has_time = stat.mtime_ns == mtime_ns;
            if how == Compared::Seen && has_time {
                return Ok(());
            }
            let _named = meter.item(|| resource.key.clone());
            if digests_of(&mut &file, &mut io::sink(), &resource.state, meter)
                .is_ok_and(|same| same)
            {
                if !has_time {
                    // With the time set, the next build does not read the copy.
                    let _ = set_modified(&file, mtime_ns);
                }
                return Ok(());
            }
        }
        let opened = set.representations.open(&resource.key, &resource.state);
        let mut bytes: Box<dyn io::Read> = match opened {
            Ok(Representation::File(file)) => Box::new(file),
            Ok(Representation::Kept(kept)) => Box::new(kept),
            // The bytes are on another server.
            Ok(Representation::Elsewhere) => return Ok(()),
            Err(error) => {
                report.problem(error);
                return Ok(());
            }
        };
        let _named = meter.item(|| resource.key.clone());
        let mut draft = site_folder.draft()?;
        match digests_of(&mut bytes, &mut draft.file, &resource.state, meter) {
            Ok(true) => {}
            Ok(false) => {
                report.problem(format!(
                    "`{}` changed while it was copied (help: build again)",
                    shown()
                ));
                return site_folder.discard(&draft);
            }
            Err(Failed::Read(error)) => {
                report.problem(format!("cannot read `{}`: {error}", shown()));
                return site_folder.discard(&draft);
            }
            Err(Failed::Write(error)) => return Err(SiteError::Write(shown(), error)),
        }
        set_modified(&draft.file, mtime_ns)?;
        let ours = tree.split('/').filter(|name| !name.is_empty()).count();
        match site_folder.place(&draft, &target, ours) {
            // The file system of the site may have a smaller limit for names than that of the
            // folder.
            Err(SiteError::Folder(error))
                if matches!(error.kind(), ErrorKind::Name | ErrorKind::TooLong) =>
            {
                report.left_out(&resource.key, "its name is too long for a file of the site");
                return site_folder.discard(&draft);
            }
            placed => placed?,
        }
        report.copied += 1;
        Ok(())
    }
}

/// Path of a copy in the site; `None` for a URI.
fn target(tree: &str, set: &PublishedSet, key: &str) -> Option<Vec<u8>> {
    let naming = set.urls.naming();
    let path = if naming.names_entities() {
        path_of(&naming.address_path(key))
    } else {
        Naming::path(key)?
    };
    Some([tree.as_bytes(), path.as_slice()].concat())
}

enum Failed {
    Read(io::Error),
    Write(io::Error),
}

/// Copies the bytes, and returns whether they have the digests of the state.
fn digests_of(
    from: &mut impl io::Read,
    to: &mut impl io::Write,
    state: &State,
    meter: &Meter,
) -> Result<bool, Failed> {
    let Digests { md5: wanted_md5, sha256: wanted_sha256, .. } = &state.digests;
    let (mut md5, mut sha256) =
        (wanted_md5.map(|_| Md5::new()), wanted_sha256.map(|_| Sha256::new()));
    let mut chunk = vec![0; CHUNK];
    let mut length = 0_u64;
    loop {
        let read = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Failed::Read(error)),
        };
        length += read as u64;
        meter.add(0, read as u64);
        if state.length.is_some_and(|wanted| length > wanted) {
            return Ok(false);
        }
        if let Some(md5) = &mut md5 {
            md5.update(&chunk[..read]);
        }
        if let Some(sha256) = &mut sha256 {
            sha256.update(&chunk[..read]);
        }
        to.write_all(&chunk[..read]).map_err(Failed::Write)?;
    }
    let md5 = md5.map(|md5| md5.finalize().into());
    let sha256 = sha256.map(|sha256| sha256.finalize().into());
    Ok(state.length.is_none_or(|wanted| wanted == length)
        && md5 == *wanted_md5
        && sha256 == *wanted_sha256)
}
