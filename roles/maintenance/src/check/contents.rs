//! Checks stored contents against the rows that need them. Both lists are sorted by address and are
//! merged, so that memory use does not depend on their length.

use crate::place::{Context as _, Result};
use abreast_contents::{Condition, ErrorKind, View};
use abreast_core::{ContentId, LogError, Meter};
use abreast_store::NeededContents;
use abreast_store::integrity::Findings;
use abreast_webtypes::count;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Contents that seem to be missing while a server uses the store; then they are searched for
/// again.
const UNSETTLED: usize = 1_000;

/// How a store's contents are checked.
pub(crate) struct ContentsCheck<'c> {
    /// The folder of the store.
    pub(crate) store: &'c Path,
    /// Whether a server uses it: contents that it adds or removes meanwhile are not findings.
    pub(crate) is_served: bool,
    /// Selects the contents to read.
    pub(crate) wants: &'c dyn Fn(&str) -> bool,
    pub(crate) cancel: &'c AtomicBool,
    pub(crate) meter: &'c Meter,
}

/// Numbers of contents.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) kept: u64,
    pub(crate) read: u64,
    pub(crate) orphans: u64,
}

/// Called for each content with a finding: its code, and the content.
pub(crate) type Damaged<'d> = &'d mut dyn FnMut(&'static str, ContentId);

impl ContentsCheck<'_> {
    /// Checks the contents of a store whose rows can be read.
    pub(crate) fn run(&self, findings: &mut Findings, damaged: Damaged<'_>) -> Result<Counts> {
        let folder = self.store.join("contents");
        let place = folder.display().to_string();
        let view = match View::open(&folder) {
            Err(error) if error.kind() == ErrorKind::Damaged => {
                let message =
                    "the index of packed contents is damaged, so that contents were not checked";
                findings.add("contents.index", place, message);
                return Ok(Counts::default());
            }
            view => view.with_context(|| format!("cannot read the kept contents in `{place}`"))?,
        };
        let mut needed = NeededContents::open(&self.store.join("source.db"))?;
        let next = needed.next().transpose()?;
        let mut merge = Merge {
            check: self,
            folder,
            needed,
            next,
            unsettled: Vec::new(),
            counts: Counts::default(),
            findings,
            damaged,
        };
        self.meter.begin("checking");
        if self.meter.is_listening() {
            let mut total = 0;
            view.visit(&mut |_, _| {
                total += 1;
                Ok(())
            })
            .with_context(|| format!("cannot read the kept contents in `{place}`"))?;
            self.meter.expect(total, 0);
        }
        view.visit(&mut |id, length| {
            self.meter.add(1, 0);
            if self.cancel.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            merge.kept(&view, id, length).map_err(io::Error::other)
        })
        .with_context(|| format!("cannot read the kept contents in `{place}`"))?;
        merge.end()?;
        Ok(merge.counts)
    }
}

/// The check, up to an address.
struct Merge<'m> {
    check: &'m ContentsCheck<'m>,
    folder: PathBuf,
    needed: NeededContents,
    /// The next content that rows need.
    next: Option<(ContentId, u64)>,
    /// Contents that were not found where they should be, in a store that is being used.
    unsettled: Vec<ContentId>,
    counts: Counts,
    findings: &'m mut Findings,
    damaged: Damaged<'m>,
}

impl Merge<'_> {
    /// Compares a stored content with the next needed one.
    fn kept(&mut self, view: &View, id: ContentId, length: u64) -> Result<(), LogError> {
        self.counts.kept += 1;
        while let Some((missing, _)) = self.next.filter(|(next, _)| *next < id) {
            self.missing(missing)?;
            self.advance()?;
        }
        let Some((_, expected)) = self.next.filter(|(next, _)| *next == id) else {
            self.counts.orphans += 1;
            return Ok(());
        };
        self.advance()?;
        if length != expected {
            self.report(
                "contents.length",
                id,
                &format!("{}, {expected} were kept", count(length, "byte")),
            );
        } else if (self.check.wants)(&id.to_string()) {
            self.counts.read += 1;
            let _named = self.check.meter.item(|| id.to_string());
            self.check.meter.add(0, length);
            match view.examine(&id) {
                Ok(Condition::Whole) => {}
                Ok(Condition::Missing) => self.missing(id)?,
                Ok(Condition::RecordDamaged) => {
                    let message = "the bytes are whole, but their record in the segment is damaged";
                    self.report("contents.record", id, message);
                }
                Ok(_) => self.report("contents.digest", id, "other bytes than were kept"),
                Err(error) => self.report("contents.digest", id, &error.to_string()),
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), LogError> {
        while let Some((missing, _)) = self.next {
            self.missing(missing)?;
            self.advance()?;
        }
        self.settle()
    }

    fn advance(&mut self) -> Result<(), LogError> {
        self.next = self.needed.next().transpose()?;
        Ok(())
    }

    fn missing(&mut self, id: ContentId) -> Result<(), LogError> {
        self.unsettled.push(id);
        if self.unsettled.len() >= UNSETTLED { self.settle() } else { Ok(()) }
    }

    /// Reports missing contents, except contents that a running server stored since, or removed
    /// together with the rows that needed them.
    fn settle(&mut self) -> Result<(), LogError> {
        let unsettled = std::mem::take(&mut self.unsettled);
        let now = if unsettled.is_empty() || !self.check.is_served {
            None
        } else {
            View::open(&self.folder).ok()
        };
        for id in unsettled {
            let is_there = now.as_ref().is_some_and(|now| matches!(now.length(&id), Ok(Some(_))));
            if !is_there && (!self.check.is_served || self.needed.is_needed(&id)?) {
                self.report("contents.missing", id, "rows need bytes that are not kept");
            }
        }
        Ok(())
    }

    fn report(&mut self, rule: &'static str, id: ContentId, message: &str) {
        self.findings.add(rule, format!("{}: {id}", self.folder.display()), message);
        (self.damaged)(rule, id);
    }
}
