//! Packages of one dump while it is made, each within the size limit and with a manifest next to
//! it.

use super::package::PackageWriter;
use super::record::Package;
use super::{DumpError, Job, digest_of};
use crate::DigestPolicy;
use crate::made::sync_folder;
use crate::projection::resourcesync::capability_list::URI_SPACE;
use abreast_resourcesync::v1_1::{Capability, Head, Ln, Root};
use abreast_webtypes::{Precision, Timestamp, W3cDatetime};
use std::path::Path;

/// Time span that a dump covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Span {
    /// All resources, with all changes until `at`.
    Resources { at: Timestamp },
    /// All changes after `from` until `until`.
    Changes { from: Timestamp, until: Timestamp },
}

/// Packages of a dump that is being made.
pub(super) struct Parts<'a> {
    folder: &'a Path,
    name: &'a str,
    span: Span,
    job: &'a Job<'a>,
    current: Option<PackageWriter>,
    /// Time after which the current package covers changes.
    from: Timestamp,
    /// Time of the item that was packaged last.
    last: Timestamp,
    done: Vec<Package>,
}

impl<'a> Parts<'a> {
    pub(super) fn new(folder: &'a Path, name: &'a str, span: Span, job: &'a Job<'a>) -> Self {
        let from = match span {
            Span::Resources { at } => at,
            Span::Changes { from, .. } => from,
        };
        Self { folder, name, span, job, current: None, from, last: from, done: Vec::new() }
    }

    /// Package for the next bitstream of this number of bytes; a new package if the current one is
    /// full.
    pub(super) fn room_for(&mut self, bytes: u64) -> Result<&mut PackageWriter, DumpError> {
        if self
            .current
            .as_ref()
            .is_some_and(|current| !current.has_room(bytes, self.job.options.part_size))
        {
            self.end_part(self.last)?;
        }
        if self.current.is_none() {
            let path = self.folder.join(format!("{}.zip", self.stem()));
            let package = PackageWriter::create(&path, self.job.options.compression)
                .map_err(DumpError::Write)?;
            self.current = Some(package);
        }
        self.current.as_mut().ok_or(DumpError::Cancelled)
    }

    /// Notes the time of a packaged item.
    pub(super) fn wrote(&mut self, time: Timestamp) {
        self.last = time;
    }

    /// Completes the last package. A dump has at least one package, which may be empty.
    pub(super) fn finish(mut self) -> Result<Vec<Package>, DumpError> {
        self.room_for(0)?;
        self.end_part(match self.span {
            Span::Resources { .. } => self.last,
            Span::Changes { until, .. } => until,
        })?;
        sync_folder(self.folder).map_err(DumpError::Write)?;
        Ok(self.done)
    }

    fn stem(&self) -> String {
        format!("{}-{}", self.name, self.done.len() + 1)
    }

    fn end_part(&mut self, until: Timestamp) -> Result<(), DumpError> {
        let Some(package) = self.current.take() else { return Ok(()) };
        let stem = self.stem();
        let (begin, end) = match self.span {
            Span::Resources { at } => (at, self.job.log.now().max(at)),
            Span::Changes { .. } => (self.from, until),
        };
        let copy = self.folder.join(format!("{stem}.xml"));
        let parts = package.finish(&self.head(begin, end), &copy).map_err(DumpError::Write)?;
        let path = self.folder.join(format!("{stem}.zip"));
        let (length, digests) =
            digest_of(&path, self.job.options.digests).map_err(DumpError::Write)?;
        let manifest = digest_of(&copy, DigestPolicy::Sha256).map_err(DumpError::Write)?.1.sha256;
        self.done.push(Package { stem, length, digests, manifest, begin, end, parts: Some(parts) });
        self.from = until;
        Ok(())
    }

    fn head(&self, begin: Timestamp, end: Timestamp) -> Head {
        let link = |rel: &str, href: String| Ln { rel: rel.to_owned(), href, ..Ln::default() };
        let at = |instant| Some(W3cDatetime { instant, precision: Precision::Fraction });
        let links = vec![
            link("up", self.job.set.urls.capability_list()),
            link(URI_SPACE, self.job.set.urls.resources()),
        ];
        let head = Head { root: Root::UrlSet, links, ..Head::default() };
        match self.span {
            Span::Resources { .. } => {
                let capability = Some(Capability::ResourceDumpManifest);
                Head { capability, at: at(begin), completed: at(end), ..head }
            }
            Span::Changes { .. } => Head {
                capability: Some(Capability::ChangeDumpManifest),
                from: at(begin),
                until: at(end),
                ..head
            },
        }
    }
}
