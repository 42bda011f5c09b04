//! What has changed since the cursor? Change Lists, their index, and whether anything was missed [rs-core §12].

use crate::admit::Admission;
use crate::baseline::{change_into, compare, widen};
use crate::document::{Answer, Documents, Go, Read};
use crate::error::{Error, ExitCode};
use crate::session::Session;
use crate::state::key;
use abreast_resourcesync::v1_1::{Capability, Change, Entry, Head, Root};
use abreast_store::mirror::{Document, Pending, PendingAction, Task};
use abreast_webtypes::{Digests, Timestamp};
use std::collections::HashSet;

/// Changes looked at together.
const ITEMS: usize = 512;
/// Most Change Lists read in one run.
const LISTS_MAX: usize = 100_000;

/// What following the Change Lists came to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Followed {
    /// The Source says nothing has changed.
    Unchanged,
    /// What changed is in the plan.
    Planned,
    /// Changes since the cursor cannot all be known; why.
    Gap(String),
}

/// One Change List to read, in order.
struct Listed {
    url: String,
    from: Option<Timestamp>,
    until: Option<Timestamp>,
}

/// What was seen while reading.
#[derive(Default)]
struct Seen {
    /// The newest stated time of a change.
    newest: Option<Timestamp>,
    /// A stated time at or after the cursor.
    reaches_cursor: bool,
    /// Any stated time at all.
    stated: bool,
    base: Option<String>,
    entries: u64,
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
        self.begin()?;
        let followed = self.follow_lists(change_list, cursor, conditional);
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
        let mut read_urls: HashSet<String> = HashSet::from([start.clone()]);
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
        let mut date = read.date;
        let mut open_now: Option<(String, Document)> = None;
        let mut earliest = read.head.from.map(|from| from.instant);
        let is_index = read.head.root == Root::SitemapIndex;
        let is_open = !is_index && read.head.until.is_none();
        if is_open {
            open_now = Some((start.clone(), read.validators.clone()));
        }
        let starts_late = earliest.is_some_and(|from| from > cursor);
        if !is_index && (!is_open || starts_late) {
            // Closed, or begun after the cursor: the index knows the others.
            for index in self.indexes(&read, change_list, &start) {
                if !read_urls.insert(index.clone()) {
                    continue;
                }
                let mut own = Seen::default();
                let mut listed = Vec::new();
                let read = self.read_changes(&documents, &index, None, cursor, &mut own, &mut listed)?;
                if let Some(read) = read
                    && read.head.root == Root::SitemapIndex
                {
                    index_entries = listed;
                    break;
                }
            }
        }
        if is_index {
            earliest = None;
        }
        let listed_all = index_entries.len();
        if listed_all > LISTS_MAX {
            return Err(Error::new(
                "limit.lists",
                ExitCode::Limit,
                format!("{change_list} names more than {LISTS_MAX} lists"),
            ));
        }
        let reachable = index_entries.iter().filter_map(|list| list.from).min();
        let mut admission = Admission::new(&start, &self.options.allow_hosts, self.options.allow_downgrade);
        index_entries.retain(|list| list.until.is_none_or(|until| until >= cursor));
        for list in index_entries {
            self.check_cancelled()?;
            if list.url == start && !is_index {
                continue;
            }
            if let Err(refusal) = admission.check(&list.url) {
                let message = format!("{}: {}", list.url, refusal.message());
                return Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message));
            }
            if !read_urls.insert(list.url.clone()) {
                self.notice("list.cycle", &list.url, "an index names it more than once, or names itself");
                continue;
            }
            let mut nested = Vec::new();
            // A list that cannot be read is a hole: without it the cursor may not move.
            let Some(read) = self.read_changes(&documents, &list.url, None, cursor, &mut seen, &mut nested)? else {
                continue;
            };
            if read.head.root == Root::SitemapIndex {
                return Err(Error::new(
                    "limit.index-depth",
                    ExitCode::Limit,
                    format!("{} is an index inside an index", list.url),
                ));
            }
            date = read.date.or(date);
            let from = read.head.from.map(|from| from.instant).or(list.from);
            earliest = match (earliest, from) {
                (Some(one), Some(two)) => Some(one.min(two)),
                (one, two) => one.or(two),
            };
            if read.head.until.is_none() {
                open_now = Some((list.url, read.validators));
            }
        }
        let earliest = match (earliest, reachable) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        if let Some(earliest) = earliest
            && earliest > cursor
        {
            return Ok(Followed::Gap(format!(
                "the Change Lists begin at {earliest}, after {cursor}, up to which the copy is known"
            )));
        }
        let after_change = self.mirror.meta(key::CURSOR_IS_CHANGE)?.is_some();
        if after_change && !seen.reaches_cursor && (seen.stated || seen.entries == 0) {
            return Ok(Followed::Gap(format!(
                "the change of {cursor}, which was applied, is in the Change Lists no longer: the Source went back"
            )));
        }
        self.plan_coming()?;
        if let Some(base) = seen.base
            && self.mirror.meta(key::BASE)?.is_none()
            && self.mirror.meta("common")?.is_none()
        {
            self.mirror.set_meta("common", Some(&base))?;
        }
        if let Some(newest) = seen.newest.filter(|newest| *newest >= cursor) {
            let newest = self.not_after(&start, "datetime", newest, date);
            if newest >= cursor {
                self.mirror.set_meta(key::CURSOR, Some(&newest.as_micros().to_string()))?;
                self.mirror.set_meta(key::CURSOR_IS_CHANGE, Some("1"))?;
            }
        }
        if let Some((url, validators)) = open_now {
            self.mirror.set_meta(key::OPEN_LIST, Some(&url))?;
            self.mirror.set_document(&url, &validators)?;
        } else {
            self.mirror.set_meta(key::OPEN_LIST, None)?;
            // No list is open: the first document asked is the one that will name the next.
            self.mirror.set_document(&start, &if is_index { read.validators } else { Document::default() })?;
        }
        Ok(Followed::Planned)
    }

    /// Where an index of Change Lists may be: what the list links to, then what the Capability List names.
    fn indexes(&self, read: &Read, change_list: &str, start: &str) -> Vec<String> {
        let base = url::Url::parse(&read.url).ok();
        let mut admission = Admission::new(start, &self.options.allow_hosts, self.options.allow_downgrade);
        let links = read.head.links.iter().filter(|link| link.has_rel("index"));
        let mut found: Vec<String> = links
            .filter_map(|link| base.as_ref()?.join(&link.href).ok())
            .map(String::from)
            .filter(|url| admission.check(url).is_ok())
            .collect();
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
        let wants_base = self.ground.is_none();
        let mut admission = Admission::new(url, &self.options.allow_hosts, self.options.allow_downgrade);
        let mut item = Pending::default();
        // Entries without a time of their own take the place after those before them.
        let mut last = Timestamp::MIN;
        let lists_before = lists.len();
        let answer = documents.read(url, known, &mut |head: &Head, entry: &Entry| {
            if head.capability != Some(Capability::ChangeList) {
                return Err(Error::new("list.capability", ExitCode::SourceInvalid, format!("{url} is no Change List")));
            }
            if entry.loc.is_empty() {
                // The head comes first, and again when a transfer broke off and is repeated.
                lists.truncate(lists_before);
                // A list that begins at the cursor continues what was applied, also while it is empty.
                seen.reaches_cursor |=
                    head.root == Root::UrlSet && head.from.is_some_and(|from| from.instant == cursor);
                return Ok(Go::On);
            }
            if head.root == Root::SitemapIndex {
                let instant =
                    |datetime: Option<abreast_webtypes::W3cDatetime>| datetime.map(|datetime| datetime.instant);
                lists.push(Listed { url: entry.loc.clone(), from: instant(entry.from), until: instant(entry.until) });
                if lists.len() > LISTS_MAX {
                    return Err(Error::new(
                        "limit.lists",
                        ExitCode::Limit,
                        format!("{url} names more than {LISTS_MAX} lists"),
                    ));
                }
                return Ok(Go::On);
            }
            seen.entries += 1;
            if let Some(datetime) = entry.datetime {
                seen.stated = true;
                seen.newest = seen.newest.max(Some(datetime.instant));
                seen.reaches_cursor |= datetime.instant >= cursor;
                last = last.max(datetime.instant);
                if datetime.instant < cursor {
                    return Ok(Go::On);
                }
            }
            let time = entry.datetime.or(entry.lastmod).map_or(last, |time| time.instant);
            change_into(entry, &mut item);
            item.action = match entry.change {
                Some(Change::Deleted) => PendingAction::Delete,
                _ => PendingAction::Fetch,
            };
            if wants_base && admission.check(&item.uri).is_ok() {
                widen(&mut seen.base, &item.uri);
            }
            self.mirror.put_coming(&item, time.as_micros(), entry.datetime.is_some())?;
            if seen.entries.is_multiple_of(1_024) {
                self.check_cancelled()?;
                self.status(seen.entries, 0, 0);
            }
            Ok(Go::On)
        })?;
        Ok(match answer {
            Answer::Unchanged => None,
            Answer::Read(read) => Some(read),
        })
    }

    /// Turns the newest change of each resource into what is to be done about it.
    fn plan_coming(&mut self) -> Result<(), Error> {
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
        let applied = row.as_ref().is_some_and(|row| row.changed.is_some() && row.changed == pending.changed);
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
