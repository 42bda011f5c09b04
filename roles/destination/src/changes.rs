//! Change Lists: what changed since the cursor, and whether anything was missed [rs-core §12].
//!
//! Of several changes of one resource the last one counts. The time of a change is its `datetime`; where there is none,
//! the order of the document decides, and among documents the order of their spans. `lastmod` never orders changes: it
//! is the time of the change in version 1.0 only, and deletions often keep the one from before, or have none.

use crate::admit::Admission;
use crate::alternates::Changed;
use crate::baseline::{compare, widen};
use crate::document::{Answer, Documents, Go, Read};
use crate::error::{Error, ExitCode};
use crate::plan::listed;
use crate::push::{LISTS_LATE, PUSHED};
use crate::read::resourcesync::listed::listed;
use crate::session::Session;
use crate::state::key;
use abreast_resourcesync::v1_1::{Capability, Entry, Head, Root};
use abreast_store::mirror::{Document, Pending, PendingAction, Task};
use abreast_webtypes::{Digests, Timestamp};
use std::collections::{HashSet, VecDeque};

/// Changes looked at together.
const ITEMS: usize = 512;
/// Most Change Lists read in one run.
const LISTS_MAX: usize = 100_000;
/// Most Change Lists of a chain, each of which costs a round trip before the next is known.
const CHAIN_MAX: usize = 10_000;

/// What following the Change Lists came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Followed {
    /// The Source says nothing has changed.
    Unchanged,
    /// What changed is in the plan.
    Planned,
    /// The lists do not know yet what was told; what that would mean if they should.
    Late(String),
    /// Changes since the cursor cannot all be known; why.
    Gap(String),
}

/// One Change List to read, in order.
struct Listed {
    url: String,
    /// The document that names it.
    named_by: String,
    from: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Listed {
    fn new(named_by: &str, entry: &Entry) -> Self {
        Self {
            url: entry.loc.clone(),
            named_by: named_by.to_owned(),
            from: entry.from.map(|from| from.instant),
            until: entry.until.map(|until| until.instant),
        }
    }
}

/// How far back the lists read so far reach, and where there may be more.
#[derive(Default)]
struct Reach {
    /// All changes since then are in them.
    earliest: Option<Timestamp>,
    /// The list before the earliest one, where that says so.
    before: Option<String>,
    /// Where older lists may be.
    archives: Vec<String>,
    /// The list that is still growing.
    open: Option<(String, Document)>,
    read_urls: HashSet<String>,
    /// The server's clock.
    date: Option<Timestamp>,
}

impl Reach {
    /// Takes a list, or an index, into account.
    fn note(&mut self, read: &Read) {
        self.archives.extend(links_of(read, "archives"));
        if read.head.root == Root::SitemapIndex {
            return;
        }
        let Some(from) = read.head.from.map(|from| read.at_earliest(from.instant)) else { return };
        // One that does not reach further back leads nowhere.
        if self.earliest.is_none_or(|earliest| from < earliest) {
            self.before = links_of(read, "prev").into_iter().chain(links_of(read, "previous")).next();
        }
        self.earliest = self.earliest.into_iter().chain([from]).min();
    }

    /// Do they begin only after the cursor?
    fn is_late(&self, cursor: Timestamp) -> bool {
        self.earliest.is_some_and(|earliest| earliest > cursor)
    }
}

/// Puts lists into the order of their spans, if all of them state where these begin; an index may name the newest first.
fn sort_by_span(lists: &mut [Listed]) {
    if lists.iter().all(|list| list.from.is_some()) {
        lists.sort_by_key(|list| list.from);
    }
}

/// Where the links of a relation lead, from the top of a document.
fn links_of(read: &Read, rel: &str) -> Vec<String> {
    let base = url::Url::parse(&read.url).ok();
    let links = read.head.links.iter().filter(|link| link.has_rel(rel));
    links.filter_map(|link| base.as_ref()?.join(&link.href).ok()).map(String::from).collect()
}

fn too_many_lists(url: &str) -> Error {
    Error::new("limit.lists", ExitCode::Limit, format!("{url} names more than {LISTS_MAX} lists"))
}

/// One document of changes while it is read.
pub(crate) struct ReadingChanges {
    wants_base: bool,
    admission: Admission,
    item: Pending,
    /// The newest stated time.
    pub(crate) newest: Option<Timestamp>,
}

/// What was seen while reading.
#[derive(Default)]
pub(crate) struct Seen {
    /// The newest stated time of a change.
    pub(crate) newest: Option<Timestamp>,
    /// A stated time at or after the cursor.
    reaches_cursor: bool,
    /// Any stated time at all.
    stated: bool,
    pub(crate) base: Option<String>,
    entries: u64,
    /// Where the list being read stands among all: less than those read before, when they are walked back.
    list: i64,
    /// Changes were left out because they could not be understood.
    pub(crate) left_out: bool,
    /// An entry without `datetime` comes after all entries read before it: the newest `datetime` among these, or `from`.
    last: Option<Timestamp>,
    /// The end of the list being read.
    until: Option<Timestamp>,
}

impl Seen {
    /// What is read from here on comes after what was read before, where times say nothing.
    pub(crate) const fn next_list(&mut self) {
        self.list += 1;
    }

    /// What is read from here on comes before what was read so far, where times say nothing.
    const fn earlier_list(&mut self) {
        self.list -= 1;
        self.last = None;
    }

    /// Begins a list, again if its transfer is repeated; `before` is the value of `last` when it began first.
    fn begin_list(&mut self, head: &Head, before: Option<Timestamp>) {
        self.last = before.max(head.from.map(|from| from.instant));
        self.until = head.until.map(|until| until.instant);
    }

    /// Begins a list that is read without interruption.
    pub(crate) fn begin_whole_list(&mut self, head: &Head) {
        self.begin_list(head, self.last);
    }
}

impl Session<'_> {
    /// Plans what changed since the cursor. With `conditional`, one request tells that nothing did.
    pub(crate) fn plan_changes(
        &mut self,
        change_list: &str,
        cursor: Timestamp,
        conditional: bool,
    ) -> Result<Followed, Error> {
        self.begin_phase("reading");
        if conditional && self.packages.since.is_none() {
            self.packages.since = Some(cursor);
        }
        self.changed = Changed::default();
        self.begin()?;
        let followed = self.follow_lists(change_list, cursor, conditional);
        self.tell_noticed();
        match &followed {
            Ok(Followed::Planned) => self.commit()?,
            _ => self.abandon()?,
        }
        self.mirror.clear_scratch()?;
        followed
    }

    fn follow_lists(&mut self, change_list: &str, cursor: Timestamp, conditional: bool) -> Result<Followed, Error> {
        let documents = self.documents.clone();
        self.mirror.clear_scratch()?;
        let open = self.mirror.meta(key::OPEN_LIST)?;
        let start = open.clone().unwrap_or_else(|| change_list.to_owned());
        let known = if conditional { self.mirror.document(&start)? } else { None };
        let mut seen = Seen::default();
        let mut index_entries: Vec<Listed> = Vec::new();
        let read = match self.read_changes(&documents, &start, known.as_ref(), cursor, &mut seen, &mut index_entries) {
            Ok(Some(read)) => read,
            Ok(None) => return Ok(Followed::Unchanged),
            // The list polled last is gone: the way to the others begins where it did at first.
            Err(error)
                if open.is_some() && start != change_list && matches!(error.exit_code(), ExitCode::SourceInvalid) =>
            {
                self.mirror.set_meta(key::OPEN_LIST, None)?;
                return self.follow_lists(change_list, cursor, false);
            }
            Err(error) => return Err(error),
        };
        let mut reach = Reach { date: read.date, ..Reach::default() };
        reach.read_urls.insert(start.clone());
        reach.note(&read);
        let is_index = read.head.root == Root::SitemapIndex;
        let is_open = !is_index && read.head.until.is_none();
        if is_open {
            reach.open = Some((start.clone(), read.validators.clone()));
        }
        if !is_index && (!is_open || reach.is_late(cursor)) {
            // Closed, or begun after the cursor: the index knows the others.
            for index in self.indexes(&read, change_list, &start) {
                if !reach.read_urls.insert(index.clone()) {
                    continue;
                }
                let mut own = Seen::default();
                let mut listed = Vec::new();
                let read = self.read_changes(&documents, &index, None, cursor, &mut own, &mut listed)?;
                if let Some(read) = read
                    && read.head.root == Root::SitemapIndex
                {
                    reach.archives.extend(links_of(&read, "archives"));
                    index_entries = listed;
                    break;
                }
            }
        }
        sort_by_span(&mut index_entries);
        if let Some(place) = index_entries.iter().position(|list| list.url == start && !is_index) {
            if index_entries[..place].iter().any(|list| list.until.is_none_or(|until| until >= cursor)) {
                // Of changes of one instant the last counts: those of the lists before come first.
                self.mirror.clear_scratch()?;
                self.changed = Changed::default();
                seen.last = None;
                reach.read_urls.remove(&start);
                reach.open = None;
            } else {
                index_entries.remove(place);
            }
        }
        self.read_listed(&documents, index_entries, cursor, &mut seen, &mut reach)?;
        if reach.is_late(cursor) {
            self.walk_back(&documents, cursor, &mut seen, &mut reach)?;
        }
        if let Some(earliest) = reach.earliest
            && earliest > cursor
        {
            return Ok(Followed::Gap(format!(
                "the Change Lists begin at {earliest}, after {cursor}, up to which the copy is known"
            )));
        }
        let after_change = self.mirror.meta(key::CURSOR_IS_CHANGE)?.is_some();
        if after_change && !seen.reaches_cursor && (seen.stated || seen.entries == 0) {
            let why = format!(
                "the change of {cursor}, which was applied, is in the Change Lists no longer: the Source went back"
            );
            return Ok(if self.is_pushed(cursor)? { Followed::Late(why) } else { Followed::Gap(why) });
        }
        if self.mirror.meta(PUSHED)?.is_some() {
            self.mirror.set_meta(PUSHED, None)?;
            self.mirror.set_meta(LISTS_LATE, None)?;
        }
        self.plan_coming()?;
        if let Some(base) = seen.base.take()
            && self.mirror.meta(key::BASE)?.is_none()
            && self.mirror.meta("common")?.is_none()
        {
            self.mirror.set_meta("common", Some(&base))?;
        }
        if seen.left_out {
            // What was left out may be any change: the next run looks at all of them again.
            self.mirror.set_document(&start, &Document::default())?;
            return Ok(Followed::Planned);
        }
        if let Some(newest) = seen.newest.filter(|newest| *newest >= cursor) {
            let newest = self.not_after(&start, "datetime", newest, reach.date);
            if newest >= cursor {
                self.mirror.set_meta(key::CURSOR, Some(&newest.as_micros().to_string()))?;
                self.mirror.set_meta(key::CURSOR_IS_CHANGE, Some("1"))?;
            }
        }
        if let Some((url, validators)) = reach.open {
            self.mirror.set_meta(key::OPEN_LIST, Some(&url))?;
            self.mirror.set_document(&url, &validators)?;
        } else {
            self.mirror.set_meta(key::OPEN_LIST, None)?;
            // No list is open: the first document asked is the one that will name the next.
            self.mirror.set_document(&start, &if is_index { read.validators } else { Document::default() })?;
        }
        Ok(Followed::Planned)
    }

    /// Reads the lists of an index that may hold changes since the cursor, in order.
    fn read_listed(
        &mut self,
        documents: &Documents<'_>,
        lists: Vec<Listed>,
        cursor: Timestamp,
        seen: &mut Seen,
        reach: &mut Reach,
    ) -> Result<(), Error> {
        let listed = lists.iter().filter_map(|list| list.from).min();
        reach.earliest = reach.earliest.into_iter().chain(listed).min();
        let mut waiting: VecDeque<(Listed, bool)> = lists.into_iter().map(|list| (list, false)).collect();
        while let Some((list, nested)) = waiting.pop_front() {
            self.check_cancelled()?;
            if list.until.is_some_and(|until| until < cursor) {
                continue;
            }
            let mut admission = Admission::new(&list.named_by, &self.options.allow_hosts, self.options.allow_downgrade);
            if let Err(refusal) = admission.check(&list.url) {
                let message = format!("{}: {}", list.url, refusal.message());
                return Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message));
            }
            if !reach.read_urls.insert(list.url.clone()) {
                self.notice("list.cycle", &list.url, "an index names it more than once, or names itself");
                continue;
            }
            let mut inner = Vec::new();
            // A list that cannot be read is a hole: without it the cursor may not move.
            let Some(read) = self.read_changes(documents, &list.url, None, cursor, seen, &mut inner)? else {
                continue;
            };
            reach.date = read.date.or(reach.date);
            if read.head.root == Root::SitemapIndex {
                if nested {
                    let message = format!("{} is an index inside an index inside an index", list.url);
                    return Err(Error::new("limit.index-depth", ExitCode::Limit, message));
                }
                let told = "an index inside an index; the specification has no such thing";
                self.notice("list.nested-index", &list.url, told);
                if waiting.len() + inner.len() > LISTS_MAX {
                    return Err(too_many_lists(&list.url));
                }
                sort_by_span(&mut inner);
                let listed = inner.iter().filter_map(|list| list.from).min();
                reach.earliest = reach.earliest.into_iter().chain(listed).min();
                for list in inner.into_iter().rev() {
                    waiting.push_front((list, true));
                }
                continue;
            }
            if read.head.from.is_none() {
                reach.earliest = reach.earliest.into_iter().chain(list.from).min();
            }
            reach.note(&read);
            if read.head.until.is_none() {
                reach.open = Some((list.url, read.validators));
            }
        }
        Ok(())
    }

    /// Looks for older Change Lists, after a long absence: in the archives, then along the links to the ones before.
    fn walk_back(
        &mut self,
        documents: &Documents<'_>,
        cursor: Timestamp,
        seen: &mut Seen,
        reach: &mut Reach,
    ) -> Result<(), Error> {
        // What is open stays so, however old the lists read from here on.
        let open = reach.open.take();
        seen.earlier_list();
        let mut archives: VecDeque<(String, u8)> =
            reach.archives.drain(..).chain(self.mirror.meta(key::CHANGE_LIST_ARCHIVE)?).map(|url| (url, 0)).collect();
        while let Some((archive, depth)) = archives.pop_front() {
            if !reach.is_late(cursor) || reach.read_urls.len() > LISTS_MAX {
                break;
            }
            if !self.is_admitted(&archive) || !reach.read_urls.insert(archive.clone()) {
                continue;
            }
            let mut lists = Vec::new();
            match Self::read_archive(documents, &archive, &mut lists) {
                Ok(Root::SitemapIndex) if depth == 0 => {
                    archives.extend(lists.into_iter().map(|list| (list.url, 1)));
                }
                Ok(_) => {
                    // The archive may name what was read already: that is no circle.
                    lists.retain(|list| !reach.read_urls.contains(&list.url));
                    sort_by_span(&mut lists);
                    let told = format!("changes since {cursor} are read from the archive");
                    self.notice("changes.archive", &archive, &told);
                    self.read_listed(documents, lists, cursor, seen, reach)?;
                }
                Err(error) if error.exit_code() == ExitCode::Cancelled => return Err(error),
                // Archives are a help: without them there is a gap, which is told.
                Err(error) => self.notice(error.code(), &archive, &error.to_string()),
            }
        }
        while reach.is_late(cursor)
            && reach.read_urls.len() <= CHAIN_MAX
            && let Some(before) = reach.before.take()
        {
            self.check_cancelled()?;
            seen.earlier_list();
            if !self.is_admitted(&before) || !reach.read_urls.insert(before.clone()) {
                break;
            }
            match self.read_changes(documents, &before, None, cursor, seen, &mut Vec::new()) {
                Ok(Some(read)) if read.head.root == Root::UrlSet => reach.note(&read),
                Ok(_) => break,
                Err(error) if error.exit_code() == ExitCode::Cancelled => return Err(error),
                Err(error) => {
                    self.notice(error.code(), &before, &error.to_string());
                    break;
                }
            }
        }
        reach.open = open;
        Ok(())
    }

    fn is_admitted(&self, url: &str) -> bool {
        self.rules.admission.clone().is_some_and(|mut rule| rule.check(url).is_ok())
    }

    /// Reads what an archive of Change Lists names [rs-archives §5].
    fn read_archive(documents: &Documents<'_>, url: &str, lists: &mut Vec<Listed>) -> Result<Root, Error> {
        let answer = documents.read(url, None, &mut |head: &Head, entry: &Entry| {
            if head.capability != Some(Capability::ChangeListArchive) {
                let message = format!("{url} is no archive of Change Lists");
                return Err(Error::new("list.capability", ExitCode::SourceInvalid, message));
            }
            if entry.loc.is_empty() {
                lists.clear();
            } else if lists.len() >= LISTS_MAX {
                return Err(too_many_lists(url));
            } else {
                lists.push(Listed::new(url, entry));
            }
            Ok(Go::On)
        })?;
        match answer {
            Answer::Read(read) => Ok(read.head.root),
            Answer::Unchanged => Ok(Root::UrlSet),
        }
    }

    /// Where an index of Change Lists may be: what the list links to, then what the Capability List names.
    fn indexes(&self, read: &Read, change_list: &str, start: &str) -> Vec<String> {
        let mut admission = Admission::new(start, &self.options.allow_hosts, self.options.allow_downgrade);
        let mut found: Vec<String> =
            links_of(read, "index").into_iter().filter(|url| admission.check(url).is_ok()).collect();
        if change_list != start {
            found.push(change_list.to_owned());
        }
        found
    }

    /// Reads one Change List into the changes noted, or an index into `lists`; `None` when it has not changed.
    fn read_changes(
        &mut self,
        documents: &Documents<'_>,
        url: &str,
        known: Option<&Document>,
        cursor: Timestamp,
        seen: &mut Seen,
        lists: &mut Vec<Listed>,
    ) -> Result<Option<Box<Read>>, Error> {
        let known = known.filter(|known| known.etag.is_some() || known.last_modified.is_some());
        let mut reading = self.reading_changes(url);
        let lists_before = lists.len();
        let last_before = seen.last;
        let answer = documents.read(url, known, &mut |head: &Head, entry: &Entry| {
            if head.capability != Some(Capability::ChangeList) {
                return Err(Error::new("list.capability", ExitCode::SourceInvalid, format!("{url} is no Change List")));
            }
            if entry.loc.is_empty() {
                // The head comes first, and again when a transfer broke off and is repeated.
                lists.truncate(lists_before);
                seen.begin_list(head, last_before);
                // A list that begins at the cursor continues what was applied, also while it is empty.
                seen.reaches_cursor |=
                    head.root == Root::UrlSet && head.from.is_some_and(|from| from.instant == cursor);
                return Ok(Go::On);
            }
            if head.root == Root::SitemapIndex {
                lists.push(Listed::new(url, entry));
                if lists.len() > LISTS_MAX {
                    return Err(too_many_lists(url));
                }
                return Ok(Go::On);
            }
            self.note_change(&listed(url, head, entry), cursor, seen, &mut reading)?;
            Ok(Go::On)
        })?;
        let Answer::Read(read) = answer else { return Ok(None) };
        seen.newest = seen.newest.max(reading.newest.map(|newest| read.at_earliest(newest)));
        if read.zoneless {
            for list in &mut lists[lists_before..] {
                list.from = list.from.map(|from| read.at_earliest(from));
            }
        }
        seen.left_out |= self.left_out(url, read.skipped);
        Ok(Some(read))
    }

    /// Before the changes of one document are noted.
    pub(crate) fn reading_changes(&self, url: &str) -> ReadingChanges {
        ReadingChanges {
            wants_base: !self.knows_base(),
            admission: Admission::new(url, &self.options.allow_hosts, self.options.allow_downgrade),
            item: Pending::default(),
            newest: None,
        }
    }

    /// Notes one change, unless it is older than what is known.
    pub(crate) fn note_change(
        &mut self,
        listed: &listed::Listed<'_>,
        cursor: Timestamp,
        seen: &mut Seen,
        reading: &mut ReadingChanges,
    ) -> Result<(), Error> {
        let ReadingChanges { wants_base, admission, item, newest } = reading;
        seen.entries += 1;
        if let Some(changed) = listed.changed {
            seen.stated = true;
            *newest = (*newest).max(Some(changed));
            seen.reaches_cursor |= changed >= cursor;
            seen.last = seen.last.max(Some(changed));
            if changed < cursor {
                return Ok(());
            }
        } else if seen.until.is_some_and(|until| until < cursor) {
            return Ok(());
        }
        let time = listed.changed.or(seen.last).unwrap_or(Timestamp::MIN);
        self.packages.changes.note(listed);
        listed.pending_into(item);
        if listed.is_deletion() {
            item.action = PendingAction::Delete;
        } else if self.excludes_change(listed) {
            item.action = PendingAction::Leave;
        }
        if *wants_base && admission.check(&item.uri).is_ok() {
            widen(&mut seen.base, &item.uri);
        }
        let is_first = self.changed.is_first(&item.uri);
        self.rules.alternates.note(listed, is_first);
        self.note_versions(listed);
        self.mirror.put_coming(item, time.as_micros(), listed.changed.is_some(), seen.list)?;
        if seen.entries.is_multiple_of(1_024) {
            self.check_cancelled()?;
            self.status(seen.entries, 0, 0);
        }
        Ok(())
    }

    /// Turns the newest change of each resource into what is to be done about it.
    pub(crate) fn plan_coming(&mut self) -> Result<(), Error> {
        let (mut key, mut tasks) = (String::new(), Vec::new());
        loop {
            tasks.clear();
            self.mirror.coming_after(&key, ITEMS, &mut tasks)?;
            let Some(last) = tasks.last() else { return Ok(()) };
            key.clone_from(&last.pending.uri);
            for task in &mut tasks {
                self.plan_change(task)?;
            }
        }
    }

    fn plan_change(&mut self, task: &mut Task) -> Result<(), Error> {
        let Task { pending, row } = task;
        if pending.action == PendingAction::Leave {
            // After a Resource List the same resources come once more.
            self.summary.excluded += u64::from(self.summary.mode != crate::Mode::Baseline);
            self.leave(&pending.uri, row.is_some())?;
            return Ok(self.mirror.forget_pending(&pending.uri)?);
        }
        if pending.action == PendingAction::Delete {
            if self.is_left(&pending.uri)? {
                return Ok(self.mirror.forget_pending(&pending.uri)?);
            }
        } else if let Some(row) = row {
            self.take_again(&pending.uri)?;
            self.check_one(row)?;
        }
        // Of several changes within one second of a coarse clock only the first may have been applied.
        let fine = |changed: i64| changed % 1_000_000 != 0;
        let applied = row.as_ref().is_some_and(|row| row.changed.is_some_and(fine) && row.changed == pending.changed);
        let action = if pending.action == PendingAction::Delete {
            row.as_ref().map(|_| PendingAction::Delete)
        } else {
            let mut digests = Digests::default();
            digests.set_from_bytes(&pending.digests);
            // A change that was applied already needs no look at the server, unless something says otherwise.
            match compare(pending, &digests, row.as_ref()) {
                Some(PendingAction::Fetch) if applied && digests.strongest().is_none() => None,
                action => action,
            }
        };
        if let Some(action) = action {
            pending.action = action;
            self.mirror.put_pending(pending)?;
        } else {
            self.summary.unchanged += u64::from(row.is_some());
            self.mirror.forget_pending(&pending.uri)?;
        }
        Ok(())
    }
}
