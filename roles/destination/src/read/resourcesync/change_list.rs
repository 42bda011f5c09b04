//! Change Lists and their indexes: what changed since the cursor, and whether anything was missed
//! [rs-core §12].

use super::cursor;
use super::document::{Kind, Member, Part, Read, read_parts};
use super::keys;
use super::listed::listed;
use super::pushed::{LISTS_LATE, PUSHED, is_pushed};
use crate::admit::Admission;
use crate::alternates::Changed;
use crate::error::{Error, ExitCode};
use crate::options::SyncOptions;
use crate::plan::changes::{Followed, Seen, Span};
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use crate::read::pieces::Go;
use crate::read::sitemap::document as sitemap;
use crate::requests::Requests;
use abreast_resourcesync::v1_1::{Head, V1_1};
use abreast_store::mirror::Document;
use abreast_webtypes::Timestamp;
use std::collections::{HashSet, VecDeque};

/// Most Change Lists read in one run.
const LISTS_MAX: usize = 100_000;
/// Most Change Lists of a chain, each of which costs a round trip before the next is known.
const CHAIN_MAX: usize = 10_000;

/// One Change List to read, in order.
struct Named {
    url: String,
    /// The document that names it.
    index: String,
    from: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Named {
    fn by(document: &str, member: Member) -> Self {
        Self { url: member.url, index: document.to_owned(), from: member.from, until: member.until }
    }
}

/// How far back the lists read so far reach, and where there may be more.
#[derive(Default)]
struct Reach {
    /// All changes since then are in them.
    earliest: Option<Timestamp>,
    /// The list before the earliest one, where that links to it.
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
        if read.is_index {
            return;
        }
        let Some(from) = read.head.from.map(|from| read.at_earliest(from.instant)) else { return };
        // One that does not reach further back leads nowhere.
        if self.earliest.is_none_or(|earliest| from < earliest) {
            self.before =
                links_of(read, "prev").into_iter().chain(links_of(read, "previous")).next();
        }
        self.earliest = self.earliest.into_iter().chain([from]).min();
    }

    /// Whether they begin only after the cursor.
    fn is_late(&self, cursor: Timestamp) -> bool {
        self.earliest.is_some_and(|earliest| earliest > cursor)
    }
}

/// Puts lists into the order of their spans, if all of them state where these begin; an index may
/// name the newest first.
fn sort_by_span(lists: &mut [Named]) {
    if lists.iter().all(|list| list.from.is_some()) {
        lists.sort_by_key(|list| list.from);
    }
}

/// Where the links of a relation lead, from the top of a document.
fn links_of(read: &Read, rel: &str) -> Vec<String> {
    let base = url::Url::parse(&read.answered.url).ok();
    let links = read.head.links.iter().filter(|link| link.has_rel(rel));
    links.filter_map(|link| base.as_ref()?.join(&link.href).ok()).map(String::from).collect()
}

fn too_many_lists(url: &str) -> Error {
    Error::new("limit.lists", ExitCode::Limit, format!("{url} names more than {LISTS_MAX} lists"))
}

/// The span that a document states.
pub(super) fn span_of(head: &Head) -> Span {
    Span { from: head.from.map(|from| from.instant), until: head.until.map(|until| until.instant) }
}

fn is_index(head: &Head) -> bool {
    head.root == abreast_resourcesync::v1_1::Root::SitemapIndex
}

/// Reads what an archive of Change Lists names [rs-archives §5]; `true` when it is an index of
/// archives.
fn read_archive(requests: &Requests<'_>, url: &str, lists: &mut Vec<Named>) -> Result<bool, Error> {
    let read = read_parts(requests, url, Kind::ChangesArchive, None, &mut |part| {
        let member = match part {
            Part::Begin(_) => {
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

/// Hands over the changes since an instant with their times, microseconds, in their order.
///
/// # Errors
/// A list cannot be read, or `each` fails.
pub(crate) fn each_change(
    requests: &Requests<'_>,
    options: &SyncOptions,
    url: &str,
    since: i64,
    each: &mut dyn FnMut(&Listed<'_>, i64) -> Result<(), Error>,
) -> Result<(), Error> {
    let admission = Admission::new(url, &options.allow_hosts, options.allow_downgrade);
    let mut replay = Replay { requests, since, admission, last: i64::MIN, seen: HashSet::new() };
    replay.read(url, 0, each)
}

/// Changes that are read again since an instant.
struct Replay<'a> {
    requests: &'a Requests<'a>,
    since: i64,
    admission: Admission,
    /// The newest time among the changes read so far, microseconds.
    last: i64,
    seen: HashSet<String>,
}

impl Replay<'_> {
    fn read(
        &mut self,
        url: &str,
        depth: u8,
        each: &mut dyn FnMut(&Listed<'_>, i64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if !self.seen.insert(url.to_owned()) || depth > 1 {
            return Ok(());
        }
        let mut lists = Vec::new();
        let micros = |time: Option<Timestamp>| time.map(Timestamp::as_micros);
        let (requests, since) = (self.requests, self.since);
        // Without `datetime` the order of the document decides, as for a run.
        let last_before = self.last.max(since);
        let (last, mut until) = (&mut self.last, None);
        read_parts(requests, url, Kind::Changes, None, &mut |part| {
            requests.check_cancelled()?;
            match part {
                Part::Begin(head) => {
                    lists.clear();
                    let span = span_of(head);
                    until = micros(span.until);
                    *last = last_before.max(micros(span.from).unwrap_or(since));
                }
                Part::Member(member)
                    if member.until.is_none_or(|until| until.as_micros() >= since) =>
                {
                    lists.push(member);
                }
                Part::Member(_) => {}
                Part::Entry(head, entry) => {
                    let listed = listed(url, head, entry);
                    let stated = micros(listed.changed);
                    *last = (*last).max(stated.unwrap_or(since));
                    let time = stated.unwrap_or(*last);
                    let is_old = stated.is_none() && until.is_some_and(|until| until < since);
                    if time >= since && !is_old {
                        each(&listed, time)?;
                    }
                }
            }
            Ok(Go::On)
        })?;
        if lists.iter().all(|list: &Member| list.from.is_some()) {
            lists.sort_by_key(|list| list.from);
        }
        for list in lists {
            if let Err(refusal) = self.admission.check(&list.url) {
                let message = format!("{}: {}", list.url, refusal.message());
                return Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message));
            }
            self.read(&list.url, depth + 1, each)?;
        }
        Ok(())
    }
}

/// Plans what changed since the cursor. With `conditional`, one request shows that nothing did.
pub(crate) fn plan_changes(
    run: &mut PlanContext<'_, '_>,
    change_list: &str,
    cursor: Timestamp,
    conditional: bool,
) -> Result<Followed, Error> {
    run.report.begin_phase("reading");
    if conditional && run.planner.since.is_none() {
        run.planner.since = Some(cursor);
    }
    run.plan_noted(&mut |run| follow_lists(run, change_list, cursor, conditional))
}

fn follow_lists(
    run: &mut PlanContext<'_, '_>,
    change_list: &str,
    cursor: Timestamp,
    conditional: bool,
) -> Result<Followed, Error> {
    run.planner.mirror.clear_scratch()?;
    let open = run.planner.mirror.meta(keys::OPEN_LIST)?;
    let start = open.clone().unwrap_or_else(|| change_list.to_owned());
    let known = if conditional { run.planner.mirror.document(&start)? } else { None };
    let mut seen = Seen::default();
    let mut index_entries: Vec<Named> = Vec::new();
    let read =
        match read_changes(run, &start, known.as_ref(), cursor, &mut seen, &mut index_entries) {
            Ok(Some(read)) => read,
            Ok(None) => return Ok(Followed::Unchanged),
            // The list polled last is gone: the way to the others begins where it did at first.
            Err(error)
                if open.is_some()
                    && start != change_list
                    && matches!(error.exit_code(), ExitCode::SourceInvalid) =>
            {
                run.planner.mirror.set_meta(keys::OPEN_LIST, None)?;
                return follow_lists(run, change_list, cursor, false);
            }
            Err(error) => return Err(error),
        };
    let mut reach = Reach { date: read.answered.stated_date, ..Reach::default() };
    reach.read_urls.insert(start.clone());
    reach.note(&read);
    let is_index = read.is_index;
    let is_open = !is_index && read.head.until.is_none();
    if is_open {
        reach.open = Some((start.clone(), read.answered.validators.clone()));
    } else if !is_index {
        run.requests.fresh.forget();
    }
    if !is_index && (!is_open || reach.is_late(cursor)) {
        // Closed, or begun after the cursor: the index knows the others.
        for index in indexes(run, &read, change_list, &start) {
            if !reach.read_urls.insert(index.clone()) {
                continue;
            }
            let mut own = Seen::default();
            let mut listed = Vec::new();
            let read = read_changes(run, &index, None, cursor, &mut own, &mut listed)?;
            if let Some(read) = read
                && read.is_index
            {
                reach.archives.extend(links_of(&read, "archives"));
                index_entries = listed;
                break;
            }
        }
    }
    sort_by_span(&mut index_entries);
    if let Some(place) = index_entries.iter().position(|list| list.url == start && !is_index) {
        if index_entries[..place].iter().any(|list| list.until.is_none_or(|until| until >= cursor))
        {
            // Of changes of one instant the last counts: those of the lists before come first.
            run.planner.mirror.clear_scratch()?;
            run.planner.changed = Changed::default();
            seen.last = None;
            reach.read_urls.remove(&start);
            reach.open = None;
        } else {
            index_entries.remove(place);
        }
    }
    read_listed(run, index_entries, cursor, &mut seen, &mut reach)?;
    if reach.is_late(cursor) {
        walk_back(run, cursor, &mut seen, &mut reach)?;
    }
    if let Some(earliest) = reach.earliest
        && earliest > cursor
    {
        return Ok(Followed::Gap(format!(
            "the Change Lists begin at {earliest}, after {cursor}, up to which the copy is known"
        )));
    }
    let after_change = cursor::is_change(run.planner.mirror)?;
    if after_change && !seen.reaches_cursor && (seen.stated || seen.entries == 0) {
        let why = format!(
            "the change of {cursor}, which was applied, is in the Change Lists no longer: the Source went back"
        );
        return Ok(if is_pushed(run, cursor)? { Followed::Late(why) } else { Followed::Gap(why) });
    }
    if run.planner.mirror.meta(PUSHED)?.is_some() {
        run.planner.mirror.set_meta(PUSHED, None)?;
        run.planner.mirror.set_meta(LISTS_LATE, None)?;
    }
    run.plan_coming()?;
    run.keep_common(&mut seen)?;
    if seen.left_out {
        // What was left out may be any change: the next run reads all of them again.
        run.planner.mirror.set_document(&start, &Document::default())?;
        return Ok(Followed::Planned);
    }
    if let Some(newest) = seen.newest.filter(|newest| *newest >= cursor) {
        let newest = run.not_after(&start, "datetime", newest, reach.date);
        if newest >= cursor {
            cursor::set_to_change(run.planner.mirror, newest)?;
        }
    }
    if let Some((url, validators)) = reach.open {
        run.planner.mirror.set_meta(keys::OPEN_LIST, Some(&url))?;
        run.planner.mirror.set_document(&url, &validators)?;
    } else {
        run.planner.mirror.set_meta(keys::OPEN_LIST, None)?;
        // No list is open: the first document asked is the one that will name the next.
        run.planner.mirror.set_document(
            &start,
            &if is_index { read.answered.validators } else { Document::default() },
        )?;
    }
    Ok(Followed::Planned)
}

/// Reads the lists of an index that may hold changes since the cursor, in order.
fn read_listed(
    run: &mut PlanContext<'_, '_>,
    lists: Vec<Named>,
    cursor: Timestamp,
    seen: &mut Seen,
    reach: &mut Reach,
) -> Result<(), Error> {
    let listed = lists.iter().filter_map(|list| list.from).min();
    reach.earliest = reach.earliest.into_iter().chain(listed).min();
    let mut waiting: VecDeque<(Named, bool)> =
        lists.into_iter().map(|list| (list, false)).collect();
    while let Some((list, nested)) = waiting.pop_front() {
        run.requests.check_cancelled()?;
        if list.until.is_some_and(|until| until < cursor) {
            continue;
        }
        let mut admission = Admission::new(
            &list.index,
            &run.planner.options.allow_hosts,
            run.planner.options.allow_downgrade,
        );
        if let Err(refusal) = admission.check(&list.url) {
            let message = format!("{}: {}", list.url, refusal.message());
            return Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message));
        }
        if !reach.read_urls.insert(list.url.clone()) {
            run.report.notice(
                "list.cycle",
                &list.url,
                "an index names it more than once, or names itself",
            );
            continue;
        }
        let mut inner = Vec::new();
        // A list that cannot be read is a hole: without it the cursor may not move.
        let Some(read) = read_changes(run, &list.url, None, cursor, seen, &mut inner)? else {
            continue;
        };
        reach.date = read.answered.stated_date.or(reach.date);
        if read.is_index {
            if nested {
                let message = format!("{} is an index inside an index inside an index", list.url);
                return Err(Error::new("limit.index-depth", ExitCode::Limit, message));
            }
            let message = "an index inside an index; the specification has no such thing";
            run.report.notice("list.nested-index", &list.url, message);
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
            reach.open = Some((list.url, read.answered.validators));
        }
    }
    Ok(())
}

/// Searches for older Change Lists, after a long absence: in the archives, then along the links to
/// the ones before.
fn walk_back(
    run: &mut PlanContext<'_, '_>,
    cursor: Timestamp,
    seen: &mut Seen,
    reach: &mut Reach,
) -> Result<(), Error> {
    // What is open stays so, however old the lists read from here on.
    let open = reach.open.take();
    seen.earlier_list();
    let mut archives: VecDeque<(String, u8)> = reach
        .archives
        .drain(..)
        .chain(run.planner.mirror.meta(keys::CHANGE_LIST_ARCHIVE)?)
        .map(|url| (url, 0))
        .collect();
    while let Some((archive, depth)) = archives.pop_front() {
        if !reach.is_late(cursor) || reach.read_urls.len() > LISTS_MAX {
            break;
        }
        if !run.planner.is_admitted(&archive) || !reach.read_urls.insert(archive.clone()) {
            continue;
        }
        let mut lists = Vec::new();
        match read_archive(run.requests, &archive, &mut lists) {
            Ok(true) if depth == 0 => {
                archives.extend(lists.into_iter().map(|list| (list.url, 1)));
            }
            Ok(_) => {
                // The archive may name what was read already: that is no circle.
                lists.retain(|list| !reach.read_urls.contains(&list.url));
                sort_by_span(&mut lists);
                let message = format!("changes since {cursor} are read from the archive");
                run.report.notice("changes.archive", &archive, &message);
                read_listed(run, lists, cursor, seen, reach)?;
            }
            Err(error) if error.exit_code() == ExitCode::Cancelled => return Err(error),
            // Archives are a help: without them there is a gap, which is reported.
            Err(error) => run.report.notice(error.code(), &archive, &error.to_string()),
        }
    }
    while reach.is_late(cursor)
        && reach.read_urls.len() <= CHAIN_MAX
        && let Some(before) = reach.before.take()
    {
        run.requests.check_cancelled()?;
        seen.earlier_list();
        if !run.planner.is_admitted(&before) || !reach.read_urls.insert(before.clone()) {
            break;
        }
        match read_changes(run, &before, None, cursor, seen, &mut Vec::new()) {
            Ok(Some(read)) if !read.is_index => reach.note(&read),
            Ok(_) => break,
            Err(error) if error.exit_code() == ExitCode::Cancelled => return Err(error),
            Err(error) => {
                run.report.notice(error.code(), &before, &error.to_string());
                break;
            }
        }
    }
    reach.open = open;
    Ok(())
}

/// Where an index of Change Lists may be: what the list links to, then what the Capability List
/// names.
fn indexes(run: &PlanContext<'_, '_>, read: &Read, change_list: &str, start: &str) -> Vec<String> {
    let mut admission = Admission::new(
        start,
        &run.planner.options.allow_hosts,
        run.planner.options.allow_downgrade,
    );
    let mut found: Vec<String> =
        links_of(read, "index").into_iter().filter(|url| admission.check(url).is_ok()).collect();
    if change_list != start {
        found.push(change_list.to_owned());
    }
    found
}

/// Reads one Change List into the changes noted, or an index into `lists`; `None` when it has not
/// changed.
fn read_changes(
    run: &mut PlanContext<'_, '_>,
    url: &str,
    known: Option<&Document>,
    cursor: Timestamp,
    seen: &mut Seen,
    lists: &mut Vec<Named>,
) -> Result<Option<Read>, Error> {
    let known = known.filter(|known| known.etag.is_some() || known.last_modified.is_some());
    let mut reading = run.reading_changes(url);
    let lists_before = lists.len();
    let last_before = seen.last;
    let answer = read_parts(run.requests, url, Kind::Changes, known, &mut |part| {
        match part {
            Part::Begin(head) => {
                lists.truncate(lists_before);
                let span = span_of(head);
                seen.begin_list(span, last_before);
                // A list that begins at the cursor continues what was applied, also while it is
                // empty.
                seen.reaches_cursor |= !is_index(head) && span.from == Some(cursor);
            }
            Part::Member(_) if lists.len() >= LISTS_MAX => return Err(too_many_lists(url)),
            Part::Member(member) => lists.push(Named::by(url, member)),
            Part::Entry(head, entry) => {
                run.note_change(&listed(url, head, entry), cursor, seen, &mut reading)?;
            }
        }
        Ok(Go::On)
    })?;
    let Some(read) = answer else { return Ok(None) };
    seen.newest = seen.newest.max(reading.newest.map(|newest| read.at_earliest(newest)));
    if read.zoneless {
        for list in &mut lists[lists_before..] {
            list.from = list.from.map(|from| read.at_earliest(from));
        }
    }
    seen.left_out |= run.report.left_out(url, read.skipped);
    Ok(Some(read))
}

/// The lists begin after the snapshot: follow them from their own beginning, so that the next run
/// need not compare everything again.
pub(crate) fn skip_gap(run: &mut PlanContext<'_, '_>, changes: &str) -> Result<(), Error> {
    let mut from = None;
    sitemap::read::<V1_1>(run.requests, changes, None, &mut |part| {
        let stated = match part {
            sitemap::Part::Begin(head, _) => head.from,
            sitemap::Part::Entry(head, entry) => head.from.or(entry.from),
        };
        if let Some(stated) = stated {
            from = Some(from.map_or(stated.instant, |known: Timestamp| known.min(stated.instant)));
        }
        Ok(Go::On)
    })?;
    if let Some(from) = from {
        let followed = plan_changes(run, changes, from, false)?;
        if followed == Followed::Planned
            && cursor::get(run.planner.mirror)?.is_none_or(|cursor| cursor < from)
        {
            cursor::set(run.planner.mirror, Some(from))?;
        }
    }
    Ok(())
}
