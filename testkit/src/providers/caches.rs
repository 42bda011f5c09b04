//! Documents of caches, and up to which change the documents of a run show.

use super::adversity::Fault;
use super::atom;
use super::data::Cached;
use super::kinds::{Changes, Dumps};
use super::provider::{Provider, is_statements};
use super::rendering::Rendering;

impl Provider {
    /// A consumer begins a run.
    pub const fn begin_run(&mut self) {
        self.shown = (0, false);
    }

    /// Whether all documents of the run are those of a server that was restored to a time when the entity was not there.
    pub fn may_be_restored(&self, iri: &str) -> bool {
        let (shown, has_changes) = self.shown;
        let Some(log) = self.data.log.get(..shown).filter(|_| has_changes) else { return false };
        let is_of = |entity: u64| self.iri(entity) == iri;
        let last = log.iter().rev().find(|it| is_of(it.entity) || is_of(it.target));
        last.is_none_or(|last| last.is_deletion() || !is_of(last.target))
    }

    /// The place in the log up to which a document shows changes, and whether it has changes.
    fn shown_by(&self, path: &str) -> (usize, bool) {
        if ["/list", "/dump", "/s"].iter().any(|begin| path.starts_with(begin)) {
            return (self.data.listing.end, false);
        }
        if path.starts_with("/id/") || path == "/caps.xml" {
            return (0, false);
        }
        let end = match &self.rendering {
            Rendering::Lists(lists) | Rendering::Dumps(Dumps { lists, .. }) => {
                let all = self.change_lists(lists);
                // An index shows nothing of what is in the open list.
                let is_index =
                    matches!(lists.changes, Changes::Index(..)) && path == "/changes.xml";
                let open = all.last().filter(|_| is_index).map(|list| list.begin);
                all.iter().find(|list| list.path == path).map(|list| list.end).or(open)
            }
            Rendering::Sitemaps(sitemaps) => {
                let set = path.strip_prefix("/c/").and_then(|set| set.strip_suffix(".xml"));
                let set = set.and_then(|set| set.parse::<usize>().ok());
                set.map(|set| (set + 1) * sitemaps.length)
            }
            Rendering::Activities(_) | Rendering::Atom(_) => None,
        };
        (end.unwrap_or(self.published).min(self.published), true)
    }

    /// Notes which changes a document of a run shows.
    fn note_shown(&mut self, (place, has_changes): (usize, bool)) {
        self.shown = (self.shown.0.max(place), self.shown.1 | has_changes);
    }

    pub(super) fn as_cached(&self, path: &str, body: Vec<u8>) -> Cached {
        let (place, made, page) = (self.shown_by(path).0, self.data.listing.made, self.page);
        Cached { body, place, made, page }
    }

    /// Whether a page of a feed is from before pages had another size, and they got it during this run. Pages that are read again
    /// are all that shows that: if they are as before, pages of two sizes are the same as those of a feed some of whose pages
    /// have fewer activities.
    fn hides_size(&self, cached: &Cached) -> bool {
        let is_feed = matches!(self.rendering, Rendering::Activities(_));
        is_feed && self.is_resized && cached.page != self.page
    }

    /// A document, with the time when the list of all entities was made that it is of.
    pub(super) fn document_of_caches(&mut self, path: &str) -> Option<(Vec<u8>, i64)> {
        if path == self.rendering.entry_path()
            && self.has(Fault::OldEntry)
            && let Some(cached) = &self.cached_entry
        {
            let Cached { body, place, made, .. } = cached.clone();
            self.note_shown((place, self.shown_by(path).1));
            return Some((body, made));
        }
        let is_ageless =
            matches!(&self.rendering, Rendering::Dumps(dumps) if dumps.is_ageless(path));
        if path.starts_with("/id/") || is_statements(path) || is_ageless || !self.has(Fault::Caches)
        {
            let body = self.document(path)?;
            self.note_shown(self.shown_by(path));
            return Some((body, self.data.listing.made));
        }
        if let Some(cached) = self.cached.get(path)
            && self.random.below(2) == 0
            && !self.hides_size(cached)
        {
            let Cached { body: cached, place, made, .. } = cached.clone();
            self.note_shown((place, self.shown_by(path).1));
            if !matches!(self.rendering, Rendering::Atom(_)) {
                return Some((cached, made));
            }
            // The time of a feed is all that shows the age of its pages: it differs from those of the page read before, and of
            // this page now.
            let now = self.document(path).filter(|_| path.starts_with("/fragments"));
            let time = atom::time_of(&cached);
            let is_hidden = time == self.feed_time.as_deref();
            let is_hidden = |now: &Vec<u8>| is_hidden || time == atom::time_of(now);
            return Some((now.filter(is_hidden).unwrap_or(cached), made));
        }
        let body = self.document(path)?;
        self.note_shown(self.shown_by(path));
        if self.chance(2) {
            self.cached.insert(path.to_owned(), self.as_cached(path, body.clone()));
        }
        Some((body, self.data.listing.made))
    }
}
