//! The manifest of a package: the manifest of version 1.1, converted entry by entry
//! [rs-0.1 §4.2.1].

use super::super::links::add_link;
use crate::projection::resourcesync_0_1::values::Limits;
use abreast_resourcesync::v0_1::{self, Root, write_end, write_entry, write_head};
use abreast_resourcesync::v1_1;
use std::fs::File;
use std::io;
use std::path::Path;

/// Called with each entry of a part, and with the written entry.
type Visit<'v> = &'v mut dyn FnMut(&v0_1::Entry, &[u8]) -> io::Result<()>;
/// Called with the number of the part, each entry of all parts, and the written entry.
type VisitAll<'v> = &'v mut dyn FnMut(u64, &v0_1::Entry, &[u8]) -> io::Result<()>;

/// The manifest of a package of version 1.1.
pub(super) struct Manifest<'a> {
    pub(super) path: &'a Path,
    pub(super) limits: Limits,
    /// Number of parts, or the largest number if the parts were not counted yet.
    pub(super) parts: u64,
}

impl Manifest<'_> {
    /// Counts the parts of the manifest, at least one.
    pub(super) fn parts(&self) -> io::Result<u64> {
        let mut parts = 1;
        self.each(&mut |part, _, _| {
            parts = part;
            Ok(())
        })?;
        Ok(parts)
    }

    /// Renders the manifest of a part.
    pub(super) fn document(&self, part: u64) -> io::Result<Vec<u8>> {
        let head = self.reader()?.head().map_err(io::Error::other)?.clone();
        let mut bytes = Vec::new();
        write_head(&mut bytes, &v0_1::Head { modified: head.at, ..v0_1::Head::default() });
        self.of_part(part, &mut |_, written| {
            bytes.extend_from_slice(written);
            Ok(())
        })?;
        write_end(&mut bytes, Root::UrlSet);
        Ok(bytes)
    }

    /// Time of the last change that the package includes.
    pub(super) fn time(&self) -> io::Result<abreast_webtypes::Timestamp> {
        let head = self.reader()?.head().map_err(io::Error::other)?.at;
        Ok(head.map(|at| at.instant).unwrap_or_default())
    }

    /// Visits the entries of a part.
    pub(super) fn of_part(&self, wanted: u64, visit: Visit<'_>) -> io::Result<()> {
        self.each(&mut |part, entry, written| {
            if part == wanted { visit(entry, written) } else { Ok(()) }
        })
    }

    fn reader(&self) -> io::Result<v1_1::Reader<File>> {
        Ok(v1_1::Reader::new(File::open(self.path)?))
    }

    fn each(&self, visit: VisitAll<'_>) -> io::Result<()> {
        let mut reader = self.reader()?;
        let (mut entry, mut counter) = (v1_1::Entry::default(), PartCounter::new(self.limits));
        while reader.next(&mut entry).map_err(io::Error::other)? {
            let entry = counter.add(&entry);
            // The dump's description fixes the number of parts.
            visit(counter.part.min(self.parts), &entry, &counter.written)?;
        }
        Ok(())
    }
}

/// Divides the entries of a package into parts.
pub(crate) struct PartCounter {
    limits: Limits,
    part: u64,
    entries: u64,
    length: usize,
    /// The written form of the last added entry.
    written: Vec<u8>,
}

impl Default for PartCounter {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl PartCounter {
    fn new(limits: Limits) -> Self {
        Self { limits, part: 1, entries: 0, length: 0, written: Vec::new() }
    }

    /// Adds the next entry, and returns the entry in version 0.1.
    pub(crate) fn add(&mut self, entry: &v1_1::Entry) -> v0_1::Entry {
        let entry = converted(entry);
        self.written.clear();
        write_entry(&mut self.written, Root::UrlSet, &entry);
        let full = self.length + self.written.len() > self.limits.bytes
            || self.entries == self.limits.entries;
        if full && self.entries > 0 {
            self.part += 1;
            (self.entries, self.length) = (0, 0);
        }
        self.entries += 1;
        self.length += self.written.len();
        entry
    }

    /// Number of parts of the entries added until now, at least one.
    pub(crate) const fn parts(&self) -> u64 {
        self.part
    }
}

/// Converts an entry to version 0.1; categories that are words become words again.
fn converted(entry: &v1_1::Entry) -> v0_1::Entry {
    let mut out = v0_1::Entry::from_1_1(entry, false);
    for link in std::mem::take(&mut out.links) {
        add_link(&mut out, Some(link));
    }
    out
}
