//! What differs between the Resource List and what is kept? One pass over both, in constant memory [rs-core §10].
//!
//! The list and the state are read side by side in the order of URIs. Entries out of that order are looked up one by
//! one. Kept resources that were passed are noted, and taken out again when a later entry names them after all.

use crate::admit::Admission;
use crate::document::{Answer, Documents, Go, Read};
use crate::error::{Error, ExitCode};
use crate::events::Mode;
use crate::options::MaxDelete;
use crate::path_map::common_directory;
use crate::plan::listed::Listed;
use crate::probe::FileSystem;
use crate::read::resourcesync::listed::listed;
use crate::session::Session;
use crate::state::key;
use abreast_resourcesync::v1_1::{Entry, Head, Root};
use abreast_store::mirror::{Document, Pending, PendingAction, Row};
use abreast_webtypes::{Digests, Timestamp};
use std::collections::{HashSet, VecDeque};

/// Rows of the state read at a time.
const ROWS: usize = 512;
/// Times a list that changes while it is read is read again.
const READS_MAX: usize = 3;
/// Most lists of one index.
const LISTS_MAX: usize = 200_000;
/// Lists up to which each is asked again whether it changed meanwhile.
const RECHECKED_MAX: usize = 1_000;
/// Failed lists that end a run; beyond, one in a hundred.
const LIST_BUDGET: usize = 100;
/// How far before a list's own time changes are looked for when it does not say `at`, microseconds.
const MARGIN_MICROS: i64 = 3_600_000_000;

/// What came of comparing with the Resource List.
#[derive(Debug, Default)]
pub(crate) struct Baseline {
    /// Every list answered that it has not changed.
    pub(crate) unchanged: bool,
    /// All lists were read, so what they do not name is gone.
    pub(crate) whole: bool,
    /// The instant from which changes are to be replayed.
    pub(crate) at: Option<Timestamp>,
}

impl Session<'_> {
    /// Plans what makes the folder equal to the Resource List.
    pub(crate) fn plan_baseline(&mut self, list: &str, has_changes: bool) -> Result<Baseline, Error> {
        self.begin_phase("reading");
        if !has_changes && !self.options.baseline && !self.filter_changed() && self.all_lists_unchanged(list)? {
            return Ok(Baseline { unchanged: true, whole: true, at: None });
        }
        self.summary.mode = Mode::Baseline;
        self.check_kept()?;
        for _ in 0..READS_MAX {
            self.begin()?;
            let read = self.read_lists(list, has_changes);
            self.tell_noticed();
            match read {
                Ok(Some(baseline)) => {
                    self.commit()?;
                    self.mirror.clear_scratch()?;
                    return Ok(baseline);
                }
                Ok(None) => self.abandon()?,
                Err(error) => {
                    self.abandon()?;
                    return Err(error);
                }
            }
        }
        let message = format!("{list} changed each time it was read");
        Err(Error::new("list.unstable", ExitCode::Retryable, message).with_help("try again when the Source is quiet"))
    }

    /// Without a Change List, asking each list is the way to find that nothing has changed.
    fn all_lists_unchanged(&mut self, list: &str) -> Result<bool, Error> {
        let Some(known) = self.mirror.document(list)? else { return Ok(false) };
        let documents = self.documents.clone();
        let mut members = Vec::new();
        if matches!(documents.read(list, Some(&known), &mut |_, _| Ok(Go::Enough))?, Answer::Read(_)) {
            return Ok(false);
        }
        if self.mirror.meta("list-is-index")?.is_none() {
            return Ok(true);
        }
        documents.read(list, None, &mut |_, entry| {
            if !entry.loc.is_empty() {
                members.push(entry.loc.clone());
            }
            Ok(Go::On)
        })?;
        for member in members {
            let Some(known) = self.mirror.document(&member)? else { return Ok(false) };
            if matches!(documents.read(&member, Some(&known), &mut |_, _| Ok(Go::Enough)), Err(_) | Ok(Answer::Read(_)))
            {
                return Ok(false);
            }
            self.check_cancelled()?;
        }
        Ok(true)
    }

    /// Reads the list or the index and its lists; `None` when they changed meanwhile.
    fn read_lists(&mut self, list: &str, has_changes: bool) -> Result<Option<Baseline>, Error> {
        let documents = self.documents.clone();
        self.mirror.clear_scratch()?;
        let stale = self.mirror.mark_stale()? > 0;
        let mut diff = Diff::new(list, self, stale)?;
        let mut members: VecDeque<Member> = VecDeque::new();
        let mut seen: HashSet<String> = HashSet::from([list.to_owned()]);
        let mut read_so_far: Vec<(String, Document)> = Vec::new();
        let mut failed = 0_usize;
        let mut partial = false;
        let top = self.read_list(&documents, list, 0, &mut diff, &mut members)?;
        seen.insert(top.url.clone());
        let is_index = top.head.root == Root::SitemapIndex;
        read_so_far.push((list.to_owned(), top.validators.clone()));
        let mut earliest = top.head.at.map(|at| top.at_earliest(at.instant));
        partial |= self.left_out(list, top.skipped);
        let lists = members.len();
        while let Some(Member { url: member, depth, at: promised }) = members.pop_front() {
            self.check_cancelled()?;
            if !seen.insert(member.clone()) {
                failed += 1;
                self.list_failed("list.cycle", &member, "an index names it more than once, or names itself");
                continue;
            }
            let mut admission = Admission::new(list, &self.options.allow_hosts, self.options.allow_downgrade);
            let result = match admission.check(&member) {
                Err(refusal) => {
                    Err(Error::new(refusal.code(), ExitCode::SourceInvalid, format!("{member}: {}", refusal.message())))
                }
                Ok(()) => self.read_list(&documents, &member, depth, &mut diff, &mut members),
            };
            match result {
                Ok(read) => {
                    partial |= self.left_out(&member, read.skipped);
                    // A list older than its index says comes from some cache: the changes in between are replayed.
                    if let Some(at) = read.head.at
                        && (top.head.at.is_none() || promised.is_some_and(|promised| at.instant < promised))
                    {
                        let at = read.at_earliest(at.instant);
                        earliest = Some(earliest.map_or(at, |known| known.min(at)));
                    }
                    if read_so_far.len() <= RECHECKED_MAX || !has_changes {
                        read_so_far.push((member, read.validators));
                    }
                }
                Err(error)
                    if matches!(
                        error.exit_code(),
                        ExitCode::SourceInvalid
                            | ExitCode::Retryable
                            | ExitCode::Tls
                            | ExitCode::Auth
                            | ExitCode::Limit
                    ) =>
                {
                    failed += 1;
                    self.list_failed(error.code(), &member, &error.to_string());
                    if failed > LIST_BUDGET.max(lists / 100) {
                        let message = format!("{failed} of {lists} lists named by {list} could not be read");
                        return Err(Error::new("budget.lists", ExitCode::Limit, message)
                            .with_help("nothing was changed; the Source has to mend its index"));
                    }
                }
                Err(error) => return Err(error),
            }
        }
        let whole = failed == 0 && !partial;
        let exact = earliest.is_some() && has_changes;
        if whole && is_index && !exact && Self::changed_meanwhile(&documents, &read_so_far)? {
            return Ok(None);
        }
        let at = self.replay_from(list, &top, earliest, has_changes);
        self.conclude(list, &mut diff, whole, at)?;
        self.mirror.set_meta("list-is-index", is_index.then_some("1"))?;
        if whole {
            for (url, validators) in &read_so_far {
                self.mirror.set_document(url, validators)?;
            }
        }
        Ok(Some(Baseline { unchanged: false, whole, at }))
    }

    /// Ends a comparison: what no list named is to go, if all of them were read.
    pub(crate) fn conclude(
        &mut self,
        list: &str,
        diff: &mut Diff,
        whole: bool,
        at: Option<Timestamp>,
    ) -> Result<(), Error> {
        diff.finish(self)?;
        let (entries, base) = (diff.entries, diff.base.take());
        if whole && entries == 0 && self.mirror.count_rows()? > 0 && self.options.max_delete == MaxDelete::Default {
            let message = format!("{list} lists nothing, and there are resources kept from it");
            return Err(Error::new("list.empty", ExitCode::SourceInvalid, message)
                .with_help("nothing was deleted; if the Source really is empty, run once with `--max-delete 100%`"));
        }
        if whole {
            self.spare_unseen()?;
            self.mirror.plan_unseen()?;
            self.mirror.forget_stale()?;
        }
        if self.mirror.meta(key::BASE)?.is_none()
            && let Some(base) = base
        {
            self.mirror.set_meta("common", Some(&base))?;
        }
        self.mirror.set_meta(key::CURSOR_IS_CHANGE, None)?;
        let at = at.filter(|_| whole).map(|at| at.as_micros().to_string());
        self.mirror.set_meta(key::CURSOR, at.as_deref())?;
        if whole {
            self.mirror.set_meta(key::OPEN_LIST, None)?;
            self.keep_filter()?;
        }
        Ok(self.mirror.forget_documents()?)
    }

    /// Tells how many entries of a list were left out, if any: the list is not whole then.
    pub(crate) fn left_out(&mut self, url: &str, skipped: u64) -> bool {
        if skipped > 0 {
            self.summary.skipped += skipped;
            self.new_failures += skipped;
            let message = format!("entries that cannot be understood and were left out (`--lenient`): {skipped}");
            self.problem("rs.entry", url, &message);
        }
        skipped > 0
    }

    pub(crate) fn list_failed(&mut self, code: &str, url: &str, message: &str) {
        self.summary.failed += 1;
        self.new_failures += 1;
        self.problem(code, url, message);
    }

    fn read_list(
        &mut self,
        documents: &Documents<'_>,
        url: &str,
        depth: u8,
        diff: &mut Diff,
        members: &mut VecDeque<Member>,
    ) -> Result<Box<Read>, Error> {
        let mut nested = false;
        let members_before = members.len();
        let answer = documents.read(url, None, &mut |head: &Head, entry: &Entry| {
            if !matches!(head.capability, None | Some(abreast_resourcesync::v1_1::Capability::ResourceList)) {
                return Err(Error::new(
                    "list.capability",
                    ExitCode::SourceInvalid,
                    format!("{url} is no Resource List"),
                ));
            }
            if entry.loc.is_empty() {
                // The head comes first, and again when a transfer broke off and is repeated.
                members.truncate(members_before);
                diff.begin_document();
                return Ok(Go::On);
            }
            match head.root {
                Root::UrlSet => diff.entry(self, &listed(url, head, entry))?,
                Root::SitemapIndex if depth < 2 => {
                    nested = depth > 0;
                    if members.len() >= LISTS_MAX {
                        return Err(Error::new(
                            "limit.lists",
                            ExitCode::Limit,
                            format!("{url} names more than {LISTS_MAX} lists"),
                        ));
                    }
                    let at = entry.at.map(|at| at.instant);
                    members.push_back(Member { url: entry.loc.clone(), depth: depth + 1, at });
                }
                Root::SitemapIndex => {
                    return Err(Error::new(
                        "limit.index-depth",
                        ExitCode::Limit,
                        format!("{url} is an index inside an index inside an index"),
                    ));
                }
            }
            if diff.entries.is_multiple_of(1_024) {
                self.check_cancelled()?;
                self.status(diff.entries, 0, 0);
            }
            Ok(Go::On)
        })?;
        if nested {
            self.notice("list.nested-index", url, "an index inside an index; the specification has no such thing");
        }
        match answer {
            Answer::Read(read) => {
                self.refuse_elsewhere(url, diff)?;
                Ok(read)
            }
            Answer::Unchanged => {
                Err(Error::new("http.status", ExitCode::SourceInvalid, format!("{url} answered 304 unasked")))
            }
        }
    }

    /// A document that names nothing but resources elsewhere is of another Source: it says nothing about what is kept.
    pub(crate) fn refuse_elsewhere(&self, url: &str, diff: &Diff) -> Result<(), Error> {
        if !diff.wanted || diff.admitted || self.mirror.count_rows()? == 0 {
            return Ok(());
        }
        let message = format!("{url} names only resources of other hosts or schemes");
        Err(Error::new("list.elsewhere", ExitCode::SourceInvalid, message)
            .with_help("nothing was deleted; if they are meant, see `--allow-host` and `--allow-downgrade`"))
    }

    fn changed_meanwhile(documents: &Documents<'_>, read: &[(String, Document)]) -> Result<bool, Error> {
        for (url, known) in read.iter().take(RECHECKED_MAX) {
            if documents.has_changed(url, known)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// From which instant are changes to be replayed? Never later than the server's own clock.
    fn replay_from(&mut self, list: &str, top: &Read, at: Option<Timestamp>, has_changes: bool) -> Option<Timestamp> {
        let stated = if let Some(at) = at {
            at
        } else {
            let found = top.last_modified.or(top.date)?.plus_micros(-MARGIN_MICROS);
            if has_changes {
                let message = format!("the Resource List does not say `at`; changes are replayed from {found}");
                self.notice("list.no-at", list, &message);
            }
            found
        };
        Some(self.not_after(list, "at", stated, top.date))
    }

    /// A document may not speak for a time that its own server has not reached.
    pub(crate) fn not_after(&mut self, url: &str, what: &str, stated: Timestamp, date: Option<Timestamp>) -> Timestamp {
        match date {
            Some(date) if stated > date.plus_micros(1_000_000) => {
                self.notice("time.future", url, &format!("`{what}` is {stated}, but the server's clock says {date}"));
                date
            }
            _ => stated,
        }
    }
}

/// A list that an index names.
struct Member {
    url: String,
    depth: u8,
    /// What the index says that it includes.
    at: Option<Timestamp>,
}

/// Reads list and state side by side.
pub(crate) struct Diff {
    admission: Admission,
    rows: VecDeque<Row>,
    key: String,
    exhausted: bool,
    last: String,
    stale: bool,
    entries: u64,
    /// What all admitted URIs start with, while the base is not known.
    base: Option<String>,
    wants_base: bool,
    /// Whether the document that is read names anything that is wanted, and any of that may be asked for.
    wanted: bool,
    admitted: bool,
    listed: Pending,
    /// What the file system of a copy in a folder does to times.
    system: Option<FileSystem>,
}

impl Diff {
    pub(crate) fn new(list: &str, session: &Session<'_>, stale: bool) -> Result<Self, Error> {
        let system = session.mirror.meta(key::FILE_SYSTEM)?.filter(|_| session.options.sink.is_folder());
        Ok(Self {
            admission: Admission::new(list, &session.options.allow_hosts, session.options.allow_downgrade),
            rows: VecDeque::new(),
            key: String::new(),
            exhausted: false,
            last: String::new(),
            stale,
            entries: 0,
            base: None,
            wants_base: !session.knows_base(),
            wanted: false,
            admitted: false,
            listed: Pending::default(),
            system: system.as_deref().and_then(FileSystem::from_text),
        })
    }

    /// Before the entries of a document.
    pub(crate) fn begin_document(&mut self) {
        (self.wanted, self.admitted) = (false, false);
    }

    pub(crate) fn entry(&mut self, session: &mut Session<'_>, listed: &Listed<'_>) -> Result<(), Error> {
        self.entries += 1;
        let uri = listed.uri;
        if self.wants_base && self.admission.check(uri).is_ok() {
            widen(&mut self.base, uri);
        }
        let row = self.matching(session, uri)?;
        if !session.wants(listed, row.is_some())? {
            if self.stale {
                session.mirror.forget_pending(uri)?;
            }
            return Ok(());
        }
        self.wanted = true;
        self.admitted = self.admitted || self.admission.check(uri).is_ok();
        session.note_versions(listed);
        listed.pending_into(&mut self.listed);
        let due = compare(&self.listed, listed.digests, row.as_ref()).or_else(|| {
            // A file that was only touched here gets its time back.
            let (system, row, modified) = (self.system?, row.as_ref()?, self.listed.modified?);
            let has_time = system.same_time(modified.saturating_mul(1_000), row.file_mtime);
            (!has_time).then_some(PendingAction::Touch)
        });
        match due {
            None => {
                session.summary.unchanged += 1;
                if self.stale {
                    session.mirror.forget_pending(uri)?;
                }
            }
            Some(action) => {
                self.listed.action = action;
                session.mirror.put_pending(&self.listed)?;
                if !listed.links.is_empty() {
                    session.rules.alternates.note(listed, false);
                }
            }
        }
        Ok(())
    }

    /// The row of a URI, passing those before it.
    fn matching(&mut self, session: &Session<'_>, uri: &str) -> Result<Option<Row>, Error> {
        if uri <= self.last.as_str() {
            let row = session.mirror.row(uri)?;
            if row.is_some() {
                session.mirror.take_unseen(uri)?;
            }
            return Ok(row);
        }
        uri.clone_into(&mut self.last);
        while let Some(front) = self.front(session)? {
            if front.uri.as_str() > uri {
                return Ok(None);
            }
            let Some(row) = self.rows.pop_front() else { break };
            if row.uri == uri {
                return Ok(Some(row));
            }
            session.mirror.add_unseen(&row.uri)?;
        }
        Ok(None)
    }

    fn front(&mut self, session: &Session<'_>) -> Result<Option<&Row>, Error> {
        if self.rows.is_empty() && !self.exhausted {
            let mut read = Vec::with_capacity(ROWS);
            session.mirror.rows_after(&self.key, ROWS, &mut read)?;
            self.exhausted = read.len() < ROWS;
            if let Some(last) = read.last() {
                self.key.clone_from(&last.uri);
            }
            self.rows = read.into();
        }
        Ok(self.rows.front())
    }

    fn finish(&mut self, session: &Session<'_>) -> Result<(), Error> {
        while self.front(session)?.is_some() {
            while let Some(row) = self.rows.pop_front() {
                session.mirror.add_unseen(&row.uri)?;
            }
        }
        Ok(())
    }
}

/// Makes a base so short that a URI starts with it.
pub(crate) fn widen(base: &mut Option<String>, uri: &str) {
    match base {
        None => *base = common_directory(uri, uri).map(str::to_owned),
        Some(known) if uri.starts_with(known.as_str()) => {}
        Some(known) => {
            if let Some(shared) = common_directory(known, uri) {
                let length = shared.len();
                known.truncate(length);
            }
        }
    }
}

/// What is to be done about a listed resource, given what is kept; `None` when nothing is.
pub(crate) fn compare(listed: &Pending, digests: &Digests, row: Option<&Row>) -> Option<PendingAction> {
    let Some(row) = row else { return Some(PendingAction::Fetch) };
    if listed.length.is_some_and(|length| length != row.length) {
        return Some(PendingAction::Fetch);
    }
    let mut kept = Digests::default();
    kept.set_from_bytes(&row.digests);
    let same_time = listed.modified == row.modified;
    match digests.agree(&kept) {
        Some(true) if same_time || listed.modified.is_none() => None,
        Some(true) => Some(PendingAction::Touch),
        // Without a digest to compare, length and time have to do; without a time only the server knows.
        None if same_time && listed.modified.is_some() => None,
        Some(false) | None => Some(PendingAction::Fetch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(text: &str) -> Digests {
        let mut digests = Digests::default();
        digests.parse_into(text.as_bytes()).unwrap();
        digests
    }

    #[test]
    fn what_agrees_is_left_alone() {
        let hello = digests("md5:5d41402abc4b2a76b9719d911017c592");
        let other = digests("md5:00000000000000000000000000000000");
        let sha = digests("sha-256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
        let none = Digests::default();
        let row = Row { length: 5, modified: Some(7), digests: hello.to_bytes(), ..Row::default() };
        let listed = |length, modified| Pending { length, modified, ..Pending::default() };
        let compare = |length, modified, digests: &Digests| compare(&listed(length, modified), digests, Some(&row));
        assert_eq!(compare(Some(5), Some(7), &hello), None);
        assert_eq!(compare(None, None, &hello), None);
        assert_eq!(compare(None, Some(8), &hello), Some(PendingAction::Touch));
        assert_eq!(compare(None, Some(7), &other), Some(PendingAction::Fetch));
        assert_eq!(compare(Some(6), Some(7), &hello), Some(PendingAction::Fetch));
        assert_eq!(compare(Some(5), Some(7), &sha), None);
        assert_eq!(compare(Some(5), Some(8), &sha), Some(PendingAction::Fetch));
        assert_eq!(compare(Some(5), None, &none), Some(PendingAction::Fetch));
    }

    #[test]
    fn a_base_is_what_all_have_in_common() {
        let mut base = None;
        widen(&mut base, "http://h/a/b/c");
        assert_eq!(base.as_deref(), Some("http://h/a/b/"));
        widen(&mut base, "http://h/a/b/d");
        widen(&mut base, "http://h/a/x");
        assert_eq!(base.as_deref(), Some("http://h/a/"));
        widen(&mut base, "http://h/");
        assert_eq!(base.as_deref(), Some("http://h/"));
    }
}
