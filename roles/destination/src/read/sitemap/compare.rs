//! The comparison of a copy with the lists of its Source [rs-core §10, rs-0.1 §2.2.1].

use super::document::{Read, has_changed};
use super::unchanged::kept_indexes;
use super::walk::{Lists, Visitor, walk};
use crate::error::{Error, ExitCode};
use crate::plan::comparison::Comparison;
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use crate::requests::Requests;
use abreast_resourcesync::sitemap::Version;
use abreast_store::mirror::{Document, Mirror};

/// Lists up to which each is asked again whether it changed meanwhile.
const RECHECKED_MAX: usize = 1_000;
/// Failed lists that end a run; beyond, one in a hundred.
const LIST_BUDGET: usize = 100;

/// What was compared.
pub(crate) struct Compared<V: Version> {
    /// The first document.
    pub(crate) top: Read<V>,
    pub(crate) comparison: Comparison,
    /// Everything was read and understood.
    pub(crate) whole: bool,
    /// The documents that were read.
    read: Vec<(String, Document)>,
    /// Those of them that are indexes.
    indexes: Vec<String>,
}

/// Compares with a list, or with an index and its lists. With `keeps_all` later runs can ask for each
/// of them, however many there are.
pub(crate) fn compare<L: Lists>(
    run: &mut PlanContext<'_, '_>,
    list: &str,
    lists: &mut L,
    keeps_all: bool,
) -> Result<Compared<L::Version>, Error> {
    let (requests, options) = (run.requests, run.planner.options);
    let comparison = run.begin_comparison(list)?;
    let (read, indexes) = (Vec::new(), Vec::new());
    let mut comparing =
        Comparing { run, comparison, list, keeps_all, read, indexes, failed: 0, partial: false };
    let top = walk(requests, options, list, lists, &mut comparing)?;
    let Comparing { comparison, read, indexes, failed, partial, .. } = comparing;
    Ok(Compared { top, comparison, whole: failed == 0 && !partial, read, indexes })
}

impl<V: Version> Compared<V> {
    /// Whether one of the lists of an index changed while others were read.
    pub(crate) fn changed_meanwhile(&self, requests: &Requests<'_>) -> Result<bool, Error> {
        if !self.whole || !self.top.is_index {
            return Ok(false);
        }
        for (url, known) in self.read.iter().take(RECHECKED_MAX) {
            if has_changed(requests, url, known)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Keeps what later runs ask the lists with, if all of it was read; the indexes under `key`.
    pub(crate) fn keep(&self, mirror: &Mirror, key: &str) -> Result<(), Error> {
        mirror.set_meta(key, kept_indexes(&self.indexes).as_deref())?;
        for (url, validators) in self.read.iter().filter(|_| self.whole) {
            mirror.set_document(url, validators)?;
        }
        Ok(())
    }
}

/// The visitor of a run.
struct Comparing<'s, 'p, 'a> {
    run: &'s mut PlanContext<'p, 'a>,
    comparison: Comparison,
    list: &'s str,
    keeps_all: bool,
    read: Vec<(String, Document)>,
    indexes: Vec<String>,
    failed: usize,
    partial: bool,
}

impl<V: Version> Visitor<V> for Comparing<'_, '_, '_> {
    fn begin(&mut self) {
        self.comparison.begin_document();
    }

    fn listed(&mut self, listed: &Listed<'_>) -> Result<(), Error> {
        self.comparison.entry(self.run, listed)?;
        if self.comparison.entries.is_multiple_of(1_024) {
            self.run.requests.check_cancelled()?;
            self.run.report.status(self.comparison.entries, 0, 0);
        }
        Ok(())
    }

    fn deleted(&mut self) {
        self.comparison.deleted();
    }

    fn end(&mut self, url: &str, read: &Read<V>) -> Result<(), Error> {
        self.run.refuse_elsewhere(url, &self.comparison)?;
        self.partial |= self.run.report.left_out(url, read.skipped);
        self.indexes.extend(read.is_index.then(|| url.to_owned()));
        if self.read.len() <= RECHECKED_MAX || self.keeps_all {
            self.read.push((url.to_owned(), read.answered.validators.clone()));
        }
        Ok(())
    }

    fn nested(&mut self, url: &str) {
        let message = "an index inside an index; the specification has no such thing";
        self.run.report.notice("list.nested-index", url, message);
    }

    fn failed(&mut self, url: &str, error: Error, named: usize) -> Result<(), Error> {
        self.failed += 1;
        self.run.report.list_failed(error.code(), url, &error.to_string());
        if self.failed > LIST_BUDGET.max(named / 100) {
            let message = format!(
                "{} of {named} lists named by {} could not be read",
                self.failed, self.list
            );
            return Err(Error::new("budget.lists", ExitCode::Limit, message)
                .with_help("nothing was changed; the Source has to correct its index"));
        }
        Ok(())
    }

    /// A kept resource that was not named may have left its category: it may be in one of them.
    fn needs_all(&mut self) -> Result<bool, Error> {
        self.comparison.finish(self.run.planner.mirror)?;
        let mut unseen = Vec::new();
        self.run.planner.mirror.unseen_after("", 1, &mut unseen)?;
        Ok(!unseen.is_empty())
    }
}
