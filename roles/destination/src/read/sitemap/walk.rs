//! The only way through an index and its lists: Resource Lists [rs-core §10], or Sitemaps
//! [rs-0.1 §3].
//!
//! [`Lists`] is what differs between versions.

use super::document::Read;
use crate::plan::listed::Listed;
use crate::read::walk::Walk;
use crate::report::error::{Error, ExitCode};
use crate::request::requests::Requests;
use abreast_resourcesync::sitemap::{NAMES_ITSELF, Version, named_again};
use abreast_store::mirror::Document;
use abreast_webtypes::{Moment, Timestamp};
use std::collections::{HashSet, VecDeque};

/// Maximum number of lists in one walk, in all indexes.
pub(super) const LISTS_MAX: usize = 200_000;

/// The lists of a version of ResourceSync.
pub(crate) trait Lists {
    type Version: Version;

    /// Reads one list or index, and passes on its contents.
    fn read(
        &mut self,
        requests: &Requests<'_>,
        url: &str,
        each: &mut dyn FnMut(Found<'_>) -> Result<(), Error>,
    ) -> Result<Read<Self::Version>, Error>;

    /// Called after a list was read to its end. `member` is the entry of the list in an index;
    /// `None` for the first document.
    fn note(&mut self, url: &str, read: &Read<Self::Version>, member: Option<&Member>);
}

/// An entry of a list or index.
pub(crate) enum Found<'a> {
    /// A list in an index.
    Member(Member),
    /// A resource, and the time of its list, if the list contains it.
    Resource(&'a Listed<'a>, Option<Moment>),
    /// A resource is listed as deleted [rs-0.1 §3.1.2].
    Deleted,
}

/// A list in an index.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) url: String,
    /// The time of the list, according to the index.
    pub(crate) time: Option<Timestamp>,
    /// Whether the categories show that the list does not contain required resources.
    pub(crate) is_other: bool,
}

/// The members that are still to be read, each with the number of indexes above it.
#[derive(Default)]
struct Waiting {
    members: VecDeque<(Member, u8)>,
    /// Number of lists so far, in all indexes.
    named: usize,
    read: Vec<(String, Document)>,
    indexes: Vec<String>,
}

/// A snapshot that was read.
pub(crate) struct ListsRead<V: Version> {
    /// The first document.
    pub(crate) top: Read<V>,
    /// The documents that were read, to test later whether they have changed.
    pub(crate) read: Vec<(String, Document)>,
    /// The documents that are indexes.
    pub(crate) indexes: Vec<String>,
}

/// Reads a list, or an index and its lists, and passes on each resource.
///
/// # Errors
/// The first document cannot be read, or the visitor does not tolerate the failure of a list.
pub(crate) fn read_lists<L: Lists>(
    walk: &mut Walk<'_, '_>,
    list: &str,
    lists: &mut L,
) -> Result<ListsRead<L::Version>, Error> {
    let mut admission = walk.admission(list);
    let mut waiting = Waiting::default();
    let top = waiting.read_one(walk, list, 0, lists)?;
    lists.note(list, &top, None);
    let mut seen = HashSet::from([list.to_owned(), top.answered.url.clone()]);
    let (named, mut others) = (waiting.named, VecDeque::new());
    loop {
        let Some((member, depth)) = waiting.members.pop_front() else {
            if others.is_empty() || !walk.needs_all()? {
                return Ok(ListsRead { top, read: waiting.read, indexes: waiting.indexes });
            }
            waiting.members = std::mem::take(&mut others);
            continue;
        };
        walk.requests.check_cancelled()?;
        if member.is_other {
            others.push_back((Member { is_other: false, ..member }, depth));
            continue;
        }
        let url = &member.url;
        let read = if !seen.insert(url.clone()) {
            let is_itself = depth == 1 && (url == list || *url == top.answered.url);
            let message =
                if is_itself { format!("{url}: {NAMES_ITSELF}") } else { named_again(url) };
            Err(Error::new("list.cycle", ExitCode::Limit, message))
        } else if let Err(refusal) = admission.check(url) {
            let message = format!("{url}: {}", refusal.message());
            Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message))
        } else {
            waiting.read_one(walk, url, depth, lists)
        };
        match read {
            Ok(read) => lists.note(url, &read, Some(&member)),
            Err(error) if is_of_document(&error) => walk.failed(url, error, named)?,
            Err(error) => return Err(error),
        }
    }
}

/// Whether an error concerns a single document, so that other documents can be read.
const fn is_of_document(error: &Error) -> bool {
    matches!(
        error.exit_code(),
        ExitCode::SourceInvalid
            | ExitCode::Retryable
            | ExitCode::Tls
            | ExitCode::Auth
            | ExitCode::Limit
    )
}

impl Waiting {
    fn read_one<L: Lists>(
        &mut self,
        walk: &mut Walk<'_, '_>,
        url: &str,
        depth: u8,
        lists: &mut L,
    ) -> Result<Read<L::Version>, Error> {
        let named_before = self.named;
        let requests = walk.requests;
        walk.begin_document(url);
        let read = lists.read(requests, url, &mut |found| {
            match found {
                Found::Member(member) => self.add(url, member, depth)?,
                Found::Resource(listed, as_of) => walk.resource(listed, as_of, None)?,
                Found::Deleted => walk.gone(),
            }
            Ok(())
        })?;
        if depth > 0 && self.named > named_before {
            let message = "an index inside an index; the specification has no such thing";
            walk.notice("list.nested-index", url, message);
        }
        walk.end_document(url)?;
        walk.skipped(url, read.skipped)?;
        self.indexes.extend(read.is_index.then(|| url.to_owned()));
        self.read.push((url.to_owned(), read.answered.validators.clone()));
        Ok(read)
    }

    fn add(&mut self, index: &str, member: Member, depth: u8) -> Result<(), Error> {
        if depth >= 2 {
            let message = format!("{index} is an index inside an index inside an index");
            return Err(Error::new("limit.index-depth", ExitCode::Limit, message));
        }
        if self.named >= LISTS_MAX {
            let message = format!(
                "{index}, with the indexes read before it, names more than {LISTS_MAX} lists"
            );
            return Err(Error::new("limit.lists", ExitCode::Limit, message));
        }
        self.named += 1;
        self.members.push_back((member, depth + 1));
        Ok(())
    }
}
