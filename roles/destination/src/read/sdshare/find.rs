//! The way from an address to the feeds of a collection [sdshare §Server Role].

use super::feed::read_feed_of_feeds;
use crate::read::moved::other_source;
use crate::read::sets::{choose, name_of};
use crate::read::{SourceSet, check_url};
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::admit::Admission;
use crate::request::diagnostics::Remark;
use crate::request::pieces::Go;
use crate::request::requests::Requests;
use abreast_sdshare::{Entry, FeedKind, Relation, other_feed, without_since};
use abreast_store::mirror::Mirror;
use abreast_webtypes::without_fragment;
use std::collections::HashSet;

/// Maximum number of collections of a server, and of entries that are read to determine the kind of
/// a feed.
const ENTRIES_MAX: usize = 50_000;

const COLLECTION: &str = "sdshare-collection";
const SNAPSHOTS: &str = "sdshare-snapshots";
const FRAGMENTS: &str = "sdshare-fragments";

/// The feeds of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Feeds {
    pub(super) collection: Option<String>,
    pub(super) snapshots: Option<String>,
    pub(super) fragments: Option<String>,
}

/// The kind of a feed without entries, according to the last segment of its address.
fn kind_by_name(url: &str) -> Option<FeedKind> {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    match (name.contains("fragment"), name.contains("snapshot")) {
        (true, false) => Some(FeedKind::Fragments),
        (false, true) => Some(FeedKind::Snapshots),
        _ => None,
    }
}

/// The document at an address.
enum Found {
    Overview(Vec<SourceSet>),
    Collection(Feeds),
}

impl Feeds {
    /// The feeds that an earlier run stored.
    pub(super) fn known(mirror: &Mirror) -> Result<Self, Error> {
        Ok(Self {
            collection: mirror.meta(COLLECTION)?,
            snapshots: mirror.meta(SNAPSHOTS)?,
            fragments: mirror.meta(FRAGMENTS)?,
        })
    }

    /// Stores the feeds for the next run.
    pub(super) fn keep(&self, mirror: &Mirror) -> Result<(), Error> {
        for (key, url) in [
            (COLLECTION, &self.collection),
            (SNAPSHOTS, &self.snapshots),
            (FRAGMENTS, &self.fragments),
        ] {
            mirror.set_meta(key, url.as_deref())?;
        }
        Ok(())
    }

    /// The feed that identifies the collection: hosts are judged by it.
    pub(super) fn first(&self) -> Option<&str> {
        [&self.collection, &self.fragments, &self.snapshots].into_iter().find_map(Option::as_deref)
    }

    /// # Errors
    /// The copy is of another collection, `known`.
    pub(super) fn check_same(&self, known: &Self) -> Result<(), Error> {
        let same = |one: &Option<String>, two: &Option<String>| one.is_some() && one == two;
        if known.first().is_none()
            || same(&self.fragments, &known.fragments)
            || same(&self.snapshots, &known.snapshots)
        {
            return Ok(());
        }
        let of = |feeds: &Self| feeds.first().unwrap_or_default().to_owned();
        let message = format!("this is a copy of {}, not of {}", of(known), of(self));
        Err(other_source(message))
    }
}

/// Finds the collection that the user means.
pub(super) fn find(requests: &Requests<'_>, options: &SyncOptions) -> Result<Feeds, Error> {
    check_url(&options.url)?;
    let sets = match read(requests, options, &options.url)? {
        Found::Collection(feeds) => {
            let url = feeds.first().unwrap_or(&options.url).to_owned();
            if options.set.is_some() {
                let only = [SourceSet { name: name_of(&url).to_owned(), url }];
                choose(&only, options.set.as_deref(), &options.url)?;
            }
            return Ok(feeds);
        }
        Found::Overview(sets) => sets,
    };
    let chosen = choose(&sets, options.set.as_deref(), &options.url)?;
    match read(requests, options, &chosen.url)? {
        Found::Collection(feeds) => Ok(feeds),
        Found::Overview(_) => {
            let message = format!("{} is listed as a collection, and is an overview", chosen.url);
            Err(Error::new("sdshare.kind", ExitCode::SourceInvalid, message))
        }
    }
}

/// All collections of the server that the address belongs to.
pub(super) fn sets(
    requests: &Requests<'_>,
    options: &SyncOptions,
) -> Result<Vec<SourceSet>, Error> {
    match read(requests, options, &options.url)? {
        Found::Overview(sets) => Ok(sets),
        Found::Collection(feeds) => {
            let url = feeds.first().unwrap_or(&options.url).to_owned();
            Ok(vec![SourceSet { name: name_of(&url).to_owned(), url }])
        }
    }
}

fn read(requests: &Requests<'_>, options: &SyncOptions, given: &str) -> Result<Found, Error> {
    // A copy of what changed since some time would lack everything else.
    let url = &*without_since(given);
    if url != without_fragment(given) {
        let (code, line) = ("sdshare.since", 1);
        let message =
            format!("`since` is left out: the feed is read as {url}, and all of it is copied");
        requests.diagnostics.note(given, Remark { code, line, message, count: 1 });
    }
    let (mut kind, mut feeds) = (None, Feeds::default());
    let (mut sets, mut named) = (Vec::new(), HashSet::new());
    let mut admission = Admission::new(url, &options.allow_hosts, options.allow_downgrade);
    let mut take = |entry: &Entry, relation: &Relation| {
        let Some(link) = entry.targets(relation).next() else { return Ok(None) };
        admission.check(&link.href).map(|()| Some(link.href.clone())).map_err(|refusal| {
            let message = format!("{url} links to {}: {}", link.href, refusal.message());
            Error::new(refusal.code(), ExitCode::SourceInvalid, message)
        })
    };
    let mut entries = 0;
    let read = read_feed_of_feeds(requests, url, &mut |_, entry, _| {
        entries += 1;
        kind = kind.or(entry.kind());
        match kind {
            Some(FeedKind::Overview) if sets.len() < ENTRIES_MAX => {
                let url = take(entry, &Relation::CollectionFeed)?;
                if let Some(url) = url.filter(|url| named.insert(url.clone())) {
                    sets.push(SourceSet { name: name_of(&url).to_owned(), url });
                }
                Ok(Go::On)
            }
            Some(FeedKind::Collection) | None if entries < ENTRIES_MAX => {
                feeds.snapshots = feeds.snapshots.take().or(take(entry, &Relation::SnapshotsFeed)?);
                feeds.fragments = feeds.fragments.take().or(take(entry, &Relation::FragmentsFeed)?);
                Ok(Go::On)
            }
            _ => Ok(Go::Enough),
        }
    })?;
    feeds.fragments = feeds.fragments.map(|feed| without_since(&feed));
    let own = Some(url.to_owned());
    match kind.or_else(|| kind_by_name(url).filter(|_| entries == 0)) {
        Some(FeedKind::Overview) => return Ok(Found::Overview(sets)),
        Some(FeedKind::Collection) => feeds.collection = own,
        Some(FeedKind::Fragments) => feeds.fragments = own,
        Some(FeedKind::Snapshots) => feeds.snapshots = own,
        Some(FeedKind::ChunkedSnapshot) => {
            let message = format!("{url} has the chunks of one snapshot, which is never updated");
            return Err(Error::new("sdshare.kind", ExitCode::Usage, message)
                .with_help("give the address of the collection feed"));
        }
        None => {
            let message = format!("{url} is {}", other_feed(&read.feed.title));
            return Err(Error::new("discover.nothing", ExitCode::SourceInvalid, message).with_help(
                "give the address of an overview feed or a collection feed; of a feed without entries, the address states by \
                 `fragments` or `snapshots` at its end which it is",
            ));
        }
    }
    Ok(Found::Collection(feeds))
}
