//! Change Lists, their indexes and archives, and the selection of the lists with changes since the
//! position [rs-core §12].

use super::document::{Kind, Member, Part, Read, read_parts};
use super::listed::listed;
use super::spans::{Ends, Span, hole, older_index};
use crate::read::position::{Bookmark, Of};
use crate::read::sitemap::document::ZONE_MICROS;
use crate::read::walk::{Cut, Trail, Walk};
use crate::report::clock::now;
use crate::report::error::{Error, ExitCode};
use crate::request::pieces::Go;
use abreast_resourcesync::sitemap::{NAMES_ITSELF, named_again};
use abreast_resourcesync::v1_1::Head;
use abreast_store::mirror::Document;
use abreast_webtypes::{Moment, Timestamp, W3cDatetime};
use std::collections::{HashMap, HashSet, VecDeque};

/// Maximum number of Change Lists that are read in a run.
const LISTS_MAX: usize = 100_000;

/// A Change List to read, in order.
#[derive(Clone)]
struct Named {
    url: String,
    /// The document that contains the URL of the list.
    index: String,
    from: Option<Moment>,
    until: Option<Moment>,
    /// The end time in the list itself, if this walk has already read the list.
    ended: Option<Moment>,
}

impl Named {
    fn by(document: &str, member: Member) -> Self {
        let Member { url, from, until, .. } = member;
        Self { url, index: document.to_owned(), from, until, ended: None }
    }

    /// A list that no index contains.
    fn itself(url: &str) -> Self {
        let (from, until, ended) = (None, None, None);
        Self { url: url.to_owned(), index: url.to_owned(), from, until, ended }
    }

    /// Whether the list may have changes at or after the position.
    fn may_be_new(&self, walk: &Walk<'_, '_>) -> bool {
        let is_known = |until: Moment| walk.since().is_some_and(|since| until.is_before(since));
        !self.until.is_some_and(is_known) || is_of_begin(walk, self.from, self.until)
    }
}

/// The interval that the lists cover so far, and the addresses of further lists.
#[derive(Default)]
struct Reach {
    /// Start of the earliest list that was read. An index may contain earlier lists.
    read_from: Option<Moment>,
    /// The end of the skipped lists, whose changes are all known.
    passed: Option<Timestamp>,
    /// The list before the earliest one, if the earliest list links to it.
    before: Option<String>,
    /// The addresses of archives of older lists.
    archives: Vec<String>,
    /// The list to which the Source still adds changes.
    open: Option<(Bookmark, Document)>,
    read_urls: HashSet<String>,
    /// The end times of the lists in an index.
    ends: Ends,
    /// A list starts later than according to an index: the index is older than the list, and lacks
    /// newer lists.
    is_named_late: bool,
    /// The intervals of lists. The interval in a list itself has precedence over the interval in an
    /// index.
    spans: HashMap<String, (Moment, Option<Moment>)>,
}

impl Reach {
    /// Adds a list or an index that was read.
    fn note(&mut self, url: &str, read: &Read, has_entries: bool) {
        self.archives.extend(links_of(read, "archives"));
        if read.is_index {
            return;
        }
        let Some(from) = read.head.from.map(|from| read.moment(from)) else { return };
        // A list with the same start does not lead further back. Several lists with changes may
        // have the same start.
        let begin = |earliest: Moment| (from.first(), !has_entries) < (earliest.first(), true);
        if self.earliest().is_none_or(begin) {
            self.before =
                links_of(read, "prev").into_iter().chain(links_of(read, "previous")).next();
        }
        if self.read_from.is_none_or(|earliest| from.first() < earliest.first()) {
            self.read_from = Some(from);
        }
        let until = read.head.until.map(|until| read.moment(until));
        let stated = self.spans.insert(url.to_owned(), (from, until));
        self.is_named_late |= stated.is_some_and(|(named, _)| named.is_before(from));
    }

    /// Whether a list starts before another list, or has the same start and ends before it.
    fn is_before(&self, list: &str, other: &str) -> bool {
        let span = |url: &str| {
            let (from, until) = self.spans.get(url)?;
            Some((from.first(), until.map_or(Timestamp::MAX, Moment::first)))
        };
        span(list).zip(span(other)).is_some_and(|(list, other)| list < other)
    }

    /// All changes since then are in the lists.
    fn earliest(&self) -> Option<Moment> {
        self.spans.values().map(|span| span.0).min_by_key(|from| from.first())
    }

    /// Adds the lists of an index.
    fn name(&mut self, lists: &[Named]) {
        for list in lists {
            if let Some(from) = list.from {
                let (own, _) = self.spans.entry(list.url.clone()).or_insert((from, list.until));
                self.is_named_late |= from.is_before(*own);
            }
        }
    }

    /// Whether earlier lists may have changes at or after the position: changes with the same time
    /// may be divided between two lists.
    fn is_unsure(&self, walk: &Walk<'_, '_>) -> bool {
        let known = walk.position().bookmark.as_ref();
        let begin = self.earliest().map(|earliest| earliest.first().as_micros());
        // A list with another start follows the list that was read, which may have grown since.
        let is_sure =
            known.is_some_and(|known| begin == known.from && (known.is_past || is_fine(begin)));
        self.is_late(walk.since())
            || !is_sure
                && self
                    .earliest()
                    .zip(walk.since())
                    .is_some_and(|(earliest, since)| !earliest.is_before(since))
    }

    /// Whether an earlier list may contain the last known changes.
    fn lacks_known(&self, walk: &Walk<'_, '_>) -> bool {
        let begins_there =
            self.earliest().zip(walk.since()).is_some_and(|(from, since)| !from.is_before(since));
        self.is_unsure(walk) || begins_there && walk.marks().are_lost(None)
    }

    /// Whether other changes of the second of the position were in a list that was removed.
    fn may_miss(&self, walk: &Walk<'_, '_>) -> bool {
        let begin = self.earliest().map(|from| from.first().as_micros());
        !is_fine(begin)
            && self.is_unsure(walk)
            && walk.marks().are_any()
            && !walk.marks().are_found()
    }

    /// Whether the lists start only after the position.
    fn is_late(&self, since: Option<Moment>) -> bool {
        self.earliest().zip(since).is_some_and(|(earliest, since)| since.is_before(earliest))
    }

    /// Whether changes with the time of a list of all resources, which that list need not include,
    /// may be in a Change List that is missing in the index.
    fn may_lack_named(&self, walk: &Walk<'_, '_>) -> bool {
        let is_of_list = walk.position().of() == Of::Snapshot && !walk.is_conditional();
        let since = walk.since().filter(|_| is_of_list && walk.walked.hole.is_none());
        since.is_some_and(|since| {
            self.hole(Some(Moment::exact(since.first().plus_micros(-1)))).is_some()
        })
    }

    /// A span after the position that no list is about.
    fn hole(&self, since: Option<Moment>) -> Option<String> {
        let spans = self.spans.iter().map(|(url, &(from, until))| Span { url, from, until });
        let earliest = self.earliest().filter(|_| self.is_named_late && self.is_late(since));
        hole(spans.collect(), since).or_else(|| earliest.map(older_index))
    }
}

/// Whether an interval is within the second in which the last open list starts: its changes may
/// precede that list, and may have been missing in the index before.
fn is_of_begin(walk: &Walk<'_, '_>, from: Option<Moment>, until: Option<Moment>) -> bool {
    let begin = walk.position().bookmark.as_ref().and_then(|open| open.from);
    let is_there = |time: Option<Moment>| time.map(|it| it.first().as_micros()) == begin;
    begin.is_some() && !is_fine(begin) && is_there(from) && is_there(until)
}

/// Sorts lists by their intervals. If a list occurs several times, the first entry with an interval
/// is used.
fn sort_by_span(walk: &mut Walk<'_, '_>, lists: &mut Vec<Named>) {
    let is_spanned = |list: &Named| list.from.is_some();
    let spanned: HashSet<String> =
        lists.iter().filter(|list| is_spanned(list)).map(|list| list.url.clone()).collect();
    let mut seen = HashSet::new();
    lists.retain(|list| {
        let is_first =
            (is_spanned(list) || !spanned.contains(&list.url)) && seen.insert(list.url.clone());
        if !is_first {
            walk.notice("list.cycle", &list.url, &again(list));
        }
        is_first
    });
    walk.sort_by_span(lists, |list| (list.from.map(Moment::first), list.until.map(Moment::first)));
}

/// The words for a list that is read already.
fn again(list: &Named) -> String {
    if list.url == list.index { NAMES_ITSELF.to_owned() } else { named_again(&list.url) }
}

/// The targets of the links with this relation at the top of a document.
fn links_of(read: &Read, rel: &str) -> Vec<String> {
    let base = url::Url::parse(&read.answered.url).ok();
    let links = read.head.links.iter().filter(|link| link.has_rel(rel));
    links.filter_map(|link| base.as_ref()?.join(&link.href).ok()).map(String::from).collect()
}

fn too_many_lists(url: &str) -> Error {
    Error::new("limit.lists", ExitCode::Limit, format!("{url} names more than {LISTS_MAX} lists"))
}

/// The open list, for the next run.
fn bookmark(walk: &Walk<'_, '_>, url: &str, read: &Read) -> (Bookmark, Document) {
    let from = read.head.from.map(|from| read.moment(from).first().as_micros());
    let begin = read.head.from.map(|from| read.moment(from));
    let newest = walk.walked.newest.into_iter().chain(walk.since()).chain(begin);
    let newest = newest.map(Moment::last).max();
    let clock = walk.walked.date.map_or_else(now, |date| date.min(now()));
    let is_past = newest.is_some_and(|newest| newest < clock);
    let bookmark = Bookmark { from, is_past, ..walk.bookmark_of(url) };
    // The list may be unchanged although changes of the second in which it starts were moved to
    // earlier lists, which were missing in the index before.
    let may_repeat = !is_past && !is_fine(from);
    let validators =
        if may_repeat { Document::default() } else { read.answered.validators.clone() };
    (bookmark, validators)
}

fn is_fine(from: Option<i64>) -> bool {
    from.is_some_and(|from| from % 1_000_000 != 0)
}

/// The bookmark of an earlier run for the open list with this URL.
fn known_as<'w>(walk: &'w Walk<'_, '_>, open: &Bookmark) -> Option<&'w Bookmark> {
    walk.position().bookmark.as_ref().filter(|known| known.document == open.document)
}

/// Whether an open list is the list that an earlier run read, and not a new list with the same URL.
fn is_known(walk: &Walk<'_, '_>, open: &Bookmark) -> bool {
    known_as(walk, open).is_some_and(|known| {
        let is_clear = known.is_past || is_fine(open.from);
        open.from.is_some() && known.from == open.from && is_clear && walk.has_same_begin()
    })
}

/// Whether an open list has the start and the URL of the list that an earlier run read, and lacks
/// some of its entries. Within one second, these entries may have been moved to an earlier list.
fn is_emptied(walk: &Walk<'_, '_>, open: &Bookmark) -> bool {
    known_as(walk, open).is_some_and(|known| known.from == open.from && !walk.has_same_begin())
}

/// Whether an open list that starts in the second of the position was empty in an earlier run. A
/// change in that second that was published late may then be in an earlier list.
fn has_begun(walk: &Walk<'_, '_>, open: &Bookmark) -> bool {
    let was_empty = known_as(walk, open).is_some_and(|known| known.entries == 0);
    let at = walk.since().map(|since| since.first().as_micros());
    was_empty && open.entries > 0 && !is_fine(open.from) && open.from == at
}

/// The span that a document gives.
fn span_of(head: &Head) -> (Option<Moment>, Option<Moment>) {
    (head.from.map(W3cDatetime::moment), head.until.map(W3cDatetime::moment))
}

fn is_index(head: &Head) -> bool {
    head.root == abreast_resourcesync::v1_1::Root::SitemapIndex
}

/// The addresses of Change Lists and their archive.
pub(super) struct ChangeLists<'c> {
    /// The Change List or index in the Capability List.
    pub(super) list: &'c str,
    /// The archive in the Capability List.
    pub(super) archive: Option<&'c str>,
}

impl ChangeLists<'_> {
    /// Passes on the changes since the position of the walk. `now_named` reads the Capability List
    /// again: a Source that closes a list may announce the next list only there.
    pub(super) fn read(
        &self,
        walk: &mut Walk<'_, '_>,
        now_named: &mut dyn FnMut() -> Result<Option<String>, Error>,
    ) -> Result<(), Error> {
        let bookmark = walk.position().bookmark.as_ref().map(|bookmark| bookmark.document.clone());
        let start = bookmark.clone().unwrap_or_else(|| self.list.to_owned());
        let known = walk.known(&start)?;
        match self.read_from(walk, &start, known.as_ref(), now_named) {
            // The last list was removed. The search for the others starts again at the list of the
            // Capability List.
            Err(error) if start != self.list && error.may_be_gone() => {
                walk.restart()?;
                self.read_from(walk, self.list, None, now_named)
            }
            read => read,
        }
    }

    fn read_from(
        &self,
        walk: &mut Walk<'_, '_>,
        start: &str,
        known: Option<&Document>,
        now_named: &mut dyn FnMut() -> Result<Option<String>, Error>,
    ) -> Result<(), Error> {
        let since = walk.since();
        let mut named: Vec<Named> = Vec::new();
        walk.reads_back(None);
        let Some(read) = read_changes(walk, start, known, &mut named)? else {
            walk.walked.is_unchanged = true;
            return Ok(());
        };
        let mut reach = Reach::default();
        reach.read_urls.insert(start.to_owned());
        reach.note(start, &read, true);
        let is_index = read.is_index;
        let is_open = !is_index && read.head.until.is_none();
        if !is_index {
            reach.ends.read(None, read.head.until.map(|until| read.moment(until)));
            if !is_open {
                walk.gave_end();
            }
        }
        let mut may_lack = !is_index;
        if is_open {
            let open = bookmark(walk, start, &read);
            may_lack = reach.is_late(since)
                || is_emptied(walk, &open.0)
                || has_begun(walk, &open.0)
                || reach.lacks_known(walk) && !is_known(walk, &open.0);
            reach.open = Some(open);
        } else if !is_index {
            walk.requests.fresh.forget();
        }
        if may_lack {
            // The list is closed, or starts at or after the position: the index contains the other
            // lists.
            for index in self.indexes(walk, &read, start) {
                if !reach.read_urls.insert(index.clone()) {
                    continue;
                }
                let mut listed = Vec::new();
                if let Some(read) = read_changes(walk, &index, None, &mut listed)?
                    && read.is_index
                {
                    reach.archives.extend(links_of(&read, "archives"));
                    named = listed;
                    break;
                }
            }
        }
        sort_by_span(walk, &mut named);
        reach.name(&named);
        let is_unnamed = !is_index && named.iter().all(|list| list.url != start);
        if let Some(place) = named.iter().position(|list| list.url == start && !is_index) {
            // A list that was closed meanwhile, or that comes from a cache, may have more changes.
            let is_closed = is_open && named[place].until.is_some();
            if is_closed || named[..place].iter().any(|list| list.may_be_new(walk)) {
                // Among changes of the same instant the last one is applied, so the earlier lists
                // must be read first.
                walk.restart()?;
                reach.read_urls.remove(start);
                (reach.open, reach.ends) = (None, Ends::default());
                named[place].ended = read.head.until.map(|until| read.moment(until));
            } else {
                named.remove(place);
            }
        }
        read_named(walk, named.clone(), &mut reach)?;
        let was_read = |list: &&Named| reach.read_urls.contains(&list.url);
        if is_unnamed && named.iter().filter(was_read).any(|list| reach.is_before(&list.url, start))
        {
            // An older index does not contain the list: insert it after the lists that start
            // earlier.
            walk.restart()?;
            let last = named.iter().rposition(|list| reach.is_before(&list.url, start));
            named.insert(last.map_or(0, |last| last + 1), Named::itself(start));
            for list in &named {
                reach.read_urls.remove(&list.url);
            }
            (reach.open, reach.ends) = (None, Ends::default());
            read_named(walk, named, &mut reach)?;
        }
        let may_have_more = since.is_none() && !is_index || may_lack && reach.lacks_known(walk);
        if reach.is_late(since) || may_have_more {
            self.walk_back(walk, start, &mut reach)?;
        }
        if reach.open.is_none()
            && !is_index
            && let Some(next) = now_named()?.filter(|next| !reach.read_urls.contains(next))
        {
            let named = Named { index: self.list.to_owned(), ..Named::itself(&next) };
            walk.later_document();
            read_named(walk, vec![named], &mut reach)?;
        }
        reach.ends.judge(walk, true);
        walk.walked.hole = reach.hole(since);
        if walk.walked.hole.is_none() && reach.may_miss(walk) {
            let at = since.map(|since| since.first().to_string()).unwrap_or_default();
            let message = format!(
                "the changes that are listed begin within the second of {at}, and lack those that were read"
            );
            walk.walked.hole = Some(message);
        }
        if let Some(earliest) = reach.earliest() {
            walk.reaches_back_to(earliest);
        }
        // The lists must contain the known changes with the newest time.
        let newest = walk.marks().newest_known().map(|newest| newest.plus_micros(-1));
        walk.walked.end = reach.read_from.map(Moment::first).max(newest).max(reach.passed);
        if reach.may_lack_named(walk) {
            // The next run requests the index again, and the lists with changes at that time.
            walk.limit_to(since.map_or(Timestamp::MIN, Moment::first));
            walk.keep_document(start, &Document::default());
        } else if reach.ends.are_several_open() {
            // Each open list may get changes, and none leads to the others.
            walk.keep_document(start, &Document::default());
        } else if let Some((bookmark, validators)) = reach.open {
            walk.keep_document(&bookmark.document, &validators);
            walk.walked.bookmark = Some(bookmark);
        } else {
            // No list is open: the document that was requested first will contain the next list.
            let validators = if is_index { read.answered.validators } else { Document::default() };
            walk.keep_document(start, &validators);
        }
        Ok(())
    }

    /// The addresses of possible indexes: the links of the list, then the list in the Capability
    /// List.
    fn indexes(&self, walk: &Walk<'_, '_>, read: &Read, start: &str) -> Vec<String> {
        let mut admission = walk.admission(start);
        let mut found: Vec<String> = links_of(read, "index")
            .into_iter()
            .filter(|url| admission.check(url).is_ok())
            .collect();
        if self.list != start {
            found.push(self.list.to_owned());
        }
        found
    }

    /// Searches for older Change Lists after a long pause: in the archives, then along the links to
    /// previous lists.
    fn walk_back(
        &self,
        walk: &mut Walk<'_, '_>,
        start: &str,
        reach: &mut Reach,
    ) -> Result<(), Error> {
        let since = walk.since();
        // The open list remains the same, regardless of the lists that are read from here on.
        let open = reach.open.take();
        walk.earlier_document();
        let named = reach.archives.drain(..).chain(self.archive.map(str::to_owned));
        let mut archives: VecDeque<(String, u8)> = named.map(|url| (url, 0)).collect();
        while let Some((archive, depth)) = archives.pop_front() {
            if !reach.is_late(since) || reach.read_urls.len() > LISTS_MAX {
                break;
            }
            if !walk.is_admitted(&archive) || !reach.read_urls.insert(archive.clone()) {
                continue;
            }
            let mut lists = Vec::new();
            match read_archive(walk, &archive, &mut lists) {
                Ok(true) if depth == 0 => {
                    archives.extend(lists.into_iter().map(|list| (list.url, 1)));
                }
                Ok(_) => {
                    // An archive may contain lists that were already read, which is not a circle.
                    lists.retain(|list| !reach.read_urls.contains(&list.url));
                    sort_by_span(walk, &mut lists);
                    reach.name(&lists);
                    let since = since.map(|since| since.first().to_string()).unwrap_or_default();
                    let message = format!("changes since {since} are read from the archive");
                    walk.notice("changes.archive", &archive, &message);
                    read_named(walk, lists, reach)?;
                }
                Err(error) if error.exit_code() == ExitCode::Cancelled => return Err(error),
                // Archives are optional: if they fail, there is a gap, which is reported.
                Err(error) => walk.notice(error.code(), &archive, &error.to_string()),
            }
        }
        let (mut trail, mut url, mut entries) = (Trail::new(false), start.to_owned(), 1);
        for read in &reach.read_urls {
            trail.visit(read);
        }
        while (since.is_none() || reach.lacks_known(walk))
            && let Some(before) = reach.before.take()
        {
            walk.requests.check_cancelled()?;
            let next = trail.check(&url, entries, &before).and_then(|()| {
                let cut = |code, why| Err(Cut { is_newer: false, code, url: url.clone(), why });
                if !walk.is_admitted(&before) {
                    return cut(
                        "uri.authority",
                        format!("{before} is on a host that is not allowed"),
                    );
                }
                Ok(())
            });
            let entries_before = walk.walked.entries;
            let cut = if let Err(cut) = next {
                cut
            } else {
                walk.earlier_document();
                reach.read_urls.insert(before.clone());
                trail.visit(&before);
                match read_changes(walk, &before, None, &mut Vec::new()) {
                    Ok(Some(read)) if !read.is_index => {
                        entries = (walk.walked.entries - entries_before) as usize;
                        reach.note(&before, &read, entries > 0);
                        url = before;
                        continue;
                    }
                    Ok(_) => break,
                    Err(error) if !error.may_be_gone() => return Err(error),
                    Err(error) => {
                        let why = error.to_string();
                        Cut { is_newer: false, code: "list.chain", url: url.clone(), why }
                    }
                }
            };
            // A list that starts at the position need not lead further back.
            if since.is_none() || reach.is_late(since) {
                walk.cut(cut);
            } else {
                walk.notice(cut.code, &cut.url, &cut.why);
            }
            break;
        }
        reach.open = open;
        Ok(())
    }
}

/// Reads the entries of an archive of Change Lists [rs-archives §5]; returns `true` if it is an
/// index of archives.
fn read_archive(walk: &Walk<'_, '_>, url: &str, lists: &mut Vec<Named>) -> Result<bool, Error> {
    let read = read_parts(walk.requests, url, Kind::ChangesArchive, None, &mut |part| {
        let member = match part {
            Part::Begin(..) => {
                lists.clear();
                return Ok(Go::On);
            }
            Part::Member(member) => member,
            Part::Entry(_, entry) => Member::of(entry),
        };
        if lists.len() >= LISTS_MAX {
            return Err(too_many_lists(url));
        }
        lists.push(Named::by(url, member));
        Ok(Go::On)
    })?;
    Ok(read.is_some_and(|read| read.is_index))
}

/// Reads the lists of an index that may hold changes since the position, in order.
fn read_named(walk: &mut Walk<'_, '_>, lists: Vec<Named>, reach: &mut Reach) -> Result<(), Error> {
    let mut waiting: VecDeque<(Named, bool)> =
        lists.into_iter().map(|list| (list, false)).collect();
    while let Some((list, nested)) = waiting.pop_front() {
        walk.requests.check_cancelled()?;
        if !list.may_be_new(walk) {
            reach.passed = reach.passed.max(list.until.map(Moment::first));
            continue;
        }
        if let Err(refusal) = walk.admission(&list.index).check(&list.url) {
            let message = format!("{}: {}", list.url, refusal.message());
            return Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message));
        }
        if !reach.read_urls.insert(list.url.clone()) {
            walk.notice("list.cycle", &list.url, &again(&list));
            continue;
        }
        let mut inner = Vec::new();
        // A list that cannot be read is a hole, and the position must not move past it.
        let Some(read) = read_changes(walk, &list.url, None, &mut inner)? else { continue };
        if read.is_index {
            if nested {
                let message = format!("{} is an index inside an index inside an index", list.url);
                return Err(Error::new("limit.index-depth", ExitCode::Limit, message));
            }
            let message = "an index inside an index; the specification has no such thing";
            walk.notice("list.nested-index", &list.url, message);
            if waiting.len() + inner.len() > LISTS_MAX {
                return Err(too_many_lists(&list.url));
            }
            sort_by_span(walk, &mut inner);
            reach.spans.remove(&list.url);
            reach.name(&inner);
            for list in inner.into_iter().rev() {
                waiting.push_front((list, true));
            }
            continue;
        }
        reach.note(&list.url, &read, true);
        reach.ends.read(list.ended.or(list.until), read.head.until.map(|until| read.moment(until)));
        if read.head.until.is_some() {
            walk.gave_end();
        }
        if read.head.until.is_none() {
            reach.open = Some(bookmark(walk, &list.url, &read));
        }
    }
    Ok(())
}

/// Reads a Change List into the walk, or an index into `lists`; `None` if the document has not
/// changed.
fn read_changes(
    walk: &mut Walk<'_, '_>,
    url: &str,
    known: Option<&Document>,
    lists: &mut Vec<Named>,
) -> Result<Option<Read>, Error> {
    let lists_before = lists.len();
    let (requests, mut is_list) = (walk.requests, false);
    let answer = read_parts(requests, url, Kind::Changes, known, &mut |part| {
        match part {
            Part::Begin(head, answered) => {
                walk.clock(answered);
                is_list = !is_index(head);
                if is_list {
                    let (from, until) = span_of(head);
                    walk.begin_changes(url, from, until);
                    if is_of_begin(walk, from, until) {
                        walk.may_all_be_late();
                    }
                }
            }
            Part::Member(_) if lists.len() >= LISTS_MAX => return Err(too_many_lists(url)),
            Part::Member(member) => lists.push(Named::by(url, member)),
            Part::Entry(head, entry) => walk.change(&listed(url, head, entry))?,
        }
        Ok(Go::On)
    })?;
    let Some(read) = answer else { return Ok(None) };
    if is_list {
        walk.end_changes();
    }
    if read.zoneless {
        walk.walked.widen = ZONE_MICROS;
        for list in &mut lists[lists_before..] {
            list.from = list.from.map(|from| from.widened(ZONE_MICROS));
            list.until = list.until.map(|until| until.widened(ZONE_MICROS));
        }
    }
    walk.skipped(url, read.skipped)?;
    Ok(Some(read))
}
