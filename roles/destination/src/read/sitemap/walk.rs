//! The only way through an index and its lists: Resource Lists [rs-core §10], or Sitemaps
//! [rs-0.1 §3].
//!
//! A run, an audit and the filters' test are [`Visitor`]s: they differ in what they do with what is
//! listed, and with lists that cannot be read. [`Lists`] is what differs between versions.

use super::document::Read;
use crate::admit::Admission;
use crate::error::{Error, ExitCode};
use crate::options::SyncOptions;
use crate::plan::listed::Listed;
use crate::read::Expecting;
use crate::requests::Requests;
use abreast_resourcesync::sitemap::Version;
use abreast_webtypes::Timestamp;
use std::collections::{HashSet, VecDeque};

/// Most lists of one walk, in all indexes.
pub(super) const LISTS_MAX: usize = 200_000;

/// The lists of one version of ResourceSync.
pub(crate) trait Lists {
    type Version: Version;

    /// Reads one of them, and hands over what is in it.
    fn read(
        &mut self,
        requests: &Requests<'_>,
        url: &str,
        each: &mut dyn FnMut(Found<'_>) -> Result<(), Error>,
    ) -> Result<Read<Self::Version>, Error>;

    /// One was read to its end; `member` is how an index names it, if it is not the first.
    fn note(&mut self, url: &str, read: &Read<Self::Version>, member: Option<&Member>);
}

/// What is in a list or index.
pub(crate) enum Found<'a> {
    /// It is an index and names this one.
    Member(Member),
    Resource(&'a Listed<'a>),
    /// A resource is listed as deleted [rs-0.1 §3.1.2].
    Deleted,
}

/// A list that an index names.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) url: String,
    /// Its time, as the index states it.
    pub(crate) time: Option<Timestamp>,
    /// Its categories show that nothing wanted is in it.
    pub(crate) is_other: bool,
}

/// A consumer of the resources of lists.
pub(crate) trait Visitor<V: Version> {
    /// A document begins.
    fn begin(&mut self) {}

    /// A resource is listed.
    fn listed(&mut self, listed: &Listed<'_>) -> Result<(), Error>;

    /// A resource is listed as deleted.
    fn deleted(&mut self) {}

    /// A document was read to its end. An error counts as one of that document.
    fn end(&mut self, _url: &str, _read: &Read<V>) -> Result<(), Error> {
        Ok(())
    }

    /// A document is an index that another index names.
    fn nested(&mut self, _url: &str) {}

    /// One of `named` documents that an index names cannot be read; an error ends the walk.
    fn failed(&mut self, url: &str, error: Error, named: usize) -> Result<(), Error>;

    /// Whether the lists that were left out because of their categories are read after all.
    fn needs_all(&mut self) -> Result<bool, Error> {
        Ok(false)
    }
}

/// The members that are still to be read, each with the number of indexes above it.
#[derive(Default)]
struct Waiting {
    members: VecDeque<(Member, u8)>,
    /// How many were named so far, in all indexes.
    named: usize,
}

/// Reads a list, or an index and its lists, and hands over each resource; returns the first
/// document.
///
/// # Errors
/// The first document cannot be read; what the visitor does not pass over.
pub(crate) fn walk<L: Lists>(
    requests: &Requests<'_>,
    options: &SyncOptions,
    list: &str,
    lists: &mut L,
    visitor: &mut dyn Visitor<L::Version>,
) -> Result<Read<L::Version>, Error> {
    let mut admission = Admission::new(list, &options.allow_hosts, options.allow_downgrade);
    let mut waiting = Waiting::default();
    let top = waiting.read_one(requests, list, 0, lists, visitor)?;
    lists.note(list, &top, None);
    let mut seen = HashSet::from([list.to_owned(), top.answered.url.clone()]);
    let (named, mut others) = (waiting.named, VecDeque::new());
    loop {
        let Some((member, depth)) = waiting.members.pop_front() else {
            if others.is_empty() || !visitor.needs_all()? {
                return Ok(top);
            }
            waiting.members = std::mem::take(&mut others);
            continue;
        };
        requests.check_cancelled()?;
        if member.is_other {
            others.push_back((Member { is_other: false, ..member }, depth));
            continue;
        }
        let url = &member.url;
        let read = if !seen.insert(url.clone()) {
            let message = format!("an index names {url} more than once, or names itself");
            Err(Error::new("list.cycle", ExitCode::Limit, message))
        } else if let Err(refusal) = admission.check(url) {
            let message = format!("{url}: {}", refusal.message());
            Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message))
        } else {
            waiting.read_one(requests, url, depth, lists, visitor)
        };
        match read {
            Ok(read) => lists.note(url, &read, Some(&member)),
            Err(error) if is_of_document(&error) => visitor.failed(url, error, named)?,
            Err(error) => return Err(error),
        }
    }
}

/// Whether it is a failure of one document, without which others may be read.
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
        requests: &Requests<'_>,
        url: &str,
        depth: u8,
        lists: &mut L,
        visitor: &mut dyn Visitor<L::Version>,
    ) -> Result<Read<L::Version>, Error> {
        let named_before = self.named;
        visitor.begin();
        let read = lists.read(requests, url, &mut |found| {
            match found {
                Found::Member(member) => self.add(url, member, depth)?,
                Found::Resource(listed) => visitor.listed(listed)?,
                Found::Deleted => visitor.deleted(),
            }
            Ok(())
        })?;
        if depth > 0 && self.named > named_before {
            visitor.nested(url);
        }
        visitor.end(url, &read)?;
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

/// Hands over each resource. Lists that cannot be read are left out: a run that reads them reports
/// them.
pub(crate) fn each_resource<L: Lists>(
    requests: &Requests<'_>,
    options: &SyncOptions,
    list: &str,
    lists: &mut L,
    each: &mut dyn FnMut(&Listed<'_>),
) -> Result<(), Error> {
    struct Each<'a>(&'a mut dyn FnMut(&Listed<'_>));
    impl<V: Version> Visitor<V> for Each<'_> {
        fn listed(&mut self, listed: &Listed<'_>) -> Result<(), Error> {
            (self.0)(listed);
            Ok(())
        }

        fn failed(&mut self, _: &str, error: Error, _: usize) -> Result<(), Error> {
            let is_passed = error.exit_code() != ExitCode::Limit || error.code() == "list.cycle";
            if is_passed { Ok(()) } else { Err(error) }
        }
    }
    walk(requests, options, list, lists, &mut Each(each)).map(drop)
}

/// Hands over all resources: without one of the lists, a resource that is not listed may be in it.
/// Returns the first document.
pub(crate) fn expect_all<L: Lists>(
    requests: &Requests<'_>,
    options: &SyncOptions,
    list: &str,
    lists: &mut L,
    to: &mut dyn Expecting,
) -> Result<Read<L::Version>, Error> {
    struct All<'a>(&'a mut dyn Expecting);
    impl<V: Version> Visitor<V> for All<'_> {
        fn listed(&mut self, listed: &Listed<'_>) -> Result<(), Error> {
            self.0.listed(listed)
        }

        fn failed(&mut self, _: &str, error: Error, _: usize) -> Result<(), Error> {
            Err(error)
        }
    }
    walk(requests, options, list, lists, &mut All(to))
}
