//! The newest snapshot of a collection, and the descriptions in it [sdshare §Snapshots Feed,
//! §Chunked Snapshot Feed, §Snapshot Processing].
//!
//! All files of a snapshot are sorted together, in bounded memory, so that each description is found
//! whole whatever the order of its statements is.

use super::feed::{Go, read_feed};
use super::fragments::cost;
use crate::admit::Admission;
use crate::error::{Error, ExitCode};
use crate::options::SyncOptions;
use crate::package::download::Downloads;
use crate::package::listing::ListedPackage;
use crate::requests::Requests;
use crate::verify::Hasher;
use abreast_rdf::Syntax;
use abreast_sdshare::{Entry, Link, Relation};
use abreast_statements::{Bytes, Describer, Input, SortOptions, SortedStatements};
use abreast_webtypes::{Digests, Timestamp};
use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Most chunks of a snapshot.
const CHUNKS_MAX: usize = 100_000;
/// Memory for sorting.
const SORT_BYTES: usize = 16 << 20;
/// How soon a stop is noticed.
const TICK: Duration = Duration::from_millis(50);

/// A snapshot that a feed lists.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    /// The time up to which changes are in it, if that is stated.
    pub(super) updated: Option<Timestamp>,
    /// The feed of its chunks.
    chunks: Option<String>,
    /// Its one file.
    whole: Option<Link>,
}

/// A file of a snapshot.
struct Part {
    link: Link,
    syntax: Syntax,
}

/// The newest snapshot that can be read.
pub(super) fn newest(requests: &Requests<'_>, feed: &str) -> Result<Option<Snapshot>, Error> {
    let mut newest: Option<Snapshot> = None;
    let read = read_feed(requests, feed, &mut |_, entry| {
        let found = Snapshot::of(entry);
        let is_newer =
            |found: &Snapshot| newest.as_ref().is_none_or(|newest| newest.updated < found.updated);
        if let Some(found) = found.filter(is_newer) {
            newest = Some(found);
        }
        Ok(Go::On)
    })?;
    if let Some(Snapshot { updated: Some(updated), .. }) = &mut newest {
        // Fragments from then on are read: a clock that is ahead must not hide any.
        *updated = (*updated).min(read.answered.date.plus_micros(1_000_000));
    }
    Ok(newest)
}

impl Snapshot {
    fn of(entry: &Entry) -> Option<Self> {
        let chunks = entry.targets(&Relation::ChunkedSnapshot).next();
        let chunks = chunks.map(|link| link.href.clone());
        let whole = readable(entry, &Relation::Snapshot).cloned();
        let has_any = chunks.is_some() || whole.is_some();
        has_any.then_some(Self { updated: entry.updated, chunks, whole })
    }

    /// The name of the snapshot in messages.
    pub(super) fn name(&self) -> &str {
        let whole = self.whole.as_ref().map(|link| link.href.as_str());
        self.chunks.as_deref().or(whole).unwrap_or_default()
    }

    /// Its files: the chunks where there are any.
    fn parts(&self, requests: &Requests<'_>, options: &SyncOptions) -> Result<Vec<Part>, Error> {
        let (mut links, mut known) = (Vec::new(), HashSet::new());
        match &self.chunks {
            None => links.extend(self.whole.clone()),
            Some(chunks) => {
                check_host(options, self.name(), chunks)?;
                let read = read_feed(requests, chunks, &mut |_, entry| {
                    let Some(link) = readable(entry, &Relation::SnapshotComponent) else {
                        // A snapshot without one of its chunks is no snapshot.
                        let message = format!(
                            "cannot use {chunks}: the chunk at line {} has no link to RDF",
                            entry.line
                        );
                        return Err(Error::new("sdshare.link", ExitCode::SourceInvalid, message));
                    };
                    // Again after a transfer that was repeated.
                    if known.insert(link.href.clone()) {
                        links.push(link.clone());
                    }
                    if links.len() > CHUNKS_MAX {
                        let message = format!("{chunks} has more than {CHUNKS_MAX} chunks");
                        return Err(Error::new("limit.chunks", ExitCode::Limit, message));
                    }
                    Ok(Go::On)
                })?;
                if read.feed.link(&Relation::Next).is_some() {
                    let message = format!("cannot use {chunks}: it has several pages");
                    return Err(Error::new("sdshare.link", ExitCode::SourceInvalid, message));
                }
            }
        }
        let part = |link: Link| {
            check_host(options, self.name(), &link.href)?;
            let syntax = Syntax::of_sdshare_media_type(&link.essence()).unwrap_or(Syntax::RdfXml);
            Ok(Part { link, syntax })
        };
        links.into_iter().map(part).collect()
    }

    /// Fetches it and sorts its statements.
    pub(super) fn read(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        downloads: &Downloads,
    ) -> Result<SortedStatements, Error> {
        let mut inputs = Vec::new();
        let parts = self.parts(requests, options)?;
        for part in &parts {
            let package = ListedPackage { url: part.link.href.clone(), ..ListedPackage::default() };
            let accept = part.link.media_type.as_deref();
            let file = downloads.fetch_any(requests, &package, accept)?;
            inputs.push((part, file));
        }
        let sort = SortOptions { memory: SORT_BYTES, ..SortOptions::new(downloads.path()) };
        let stop = sort.stop.clone();
        let sorted = std::thread::scope(|scope| {
            let sorting = scope.spawn(|| {
                let inputs = inputs.into_iter().map(|(part, file)| Input {
                    name: part.link.href.clone(),
                    syntax: part.syntax,
                    base: Some(part.link.href.clone()),
                    bytes: Bytes::File(file),
                });
                abreast_statements::sorted(&sort, inputs)
            });
            while !sorting.is_finished() {
                if requests.is_cancelled() || requests.allowance.check().is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                std::thread::sleep(TICK);
            }
            sorting.join()
        });
        requests.check_cancelled()?;
        requests.allowance.check()?;
        let sorted = sorted.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        for part in &parts {
            let url = part.link.href.clone();
            downloads.discard(&ListedPackage { url, ..ListedPackage::default() });
        }
        sorted.map_err(|error| unreadable(self.name(), error))
    }
}

/// A description in a snapshot.
pub(super) struct Described<'d> {
    pub(super) iri: &'d str,
    /// Canonical N-Triples.
    pub(super) lines: &'d [u8],
    pub(super) digests: Digests,
}

/// Blank nodes that descriptions do not have as the snapshot has them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Blanks {
    pub(super) shared: u64,
    pub(super) unreached: u64,
}

/// Hands over each description.
pub(super) fn each_description(
    name: &str,
    sorted: &SortedStatements,
    each: &mut dyn FnMut(&Described<'_>) -> Result<(), Error>,
) -> Result<Blanks, Error> {
    let odd = |error| unreadable(name, error);
    let mut blanks = sorted.blank_nodes().map_err(odd)?;
    let mut groups = sorted.entities().map_err(odd)?;
    let mut describer = Describer::new(sorted.canonical_lines());
    while groups.advance().map_err(odd)? {
        let Some(group) = groups.current() else { break };
        let gathered = describer.gather(&group, &mut blanks).map_err(odd)?;
        let lines = describer.canonical(gathered).map_err(odd)?;
        let mut hasher = Hasher::for_listed(&Digests::default());
        hasher.update(&lines);
        each(&Described { iri: group.iri, lines: &lines, digests: hasher.finish() })?;
    }
    let (shared, unreached) = blanks.shared_and_unreached();
    Ok(Blanks { shared, unreached })
}

/// The link of an entry to RDF, of the syntax that is cheapest to read; without a type it may be
/// RDF/XML, which is what most servers have.
fn readable<'e>(entry: &'e Entry, relation: &Relation) -> Option<&'e Link> {
    let is_readable = |link: &&Link| {
        link.media_type.is_none() || Syntax::of_sdshare_media_type(&link.essence()).is_some()
    };
    entry.targets(relation).filter(is_readable).min_by_key(|link| cost(link))
}

fn check_host(options: &SyncOptions, named_by: &str, url: &str) -> Result<(), Error> {
    let mut admission = Admission::new(&options.url, &options.allow_hosts, options.allow_downgrade);
    admission.check(url).map_err(|refusal| {
        let message = format!("the snapshot {named_by} is at {url}: {}", refusal.message());
        Error::new(refusal.code(), ExitCode::SourceInvalid, message)
    })
}

fn unreadable(name: &str, error: abreast_statements::Error) -> Error {
    let (code, exit) = match &error {
        abreast_statements::Error::TooLarge(_) => ("rdf.size", ExitCode::Limit),
        abreast_statements::Error::Io(_) => ("io", ExitCode::Io),
        abreast_statements::Error::Stopped => return Error::cancelled(),
        abreast_statements::Error::Input { cause, .. } => {
            (cause.syntax().map_or("body.read", |fault| fault.code()), ExitCode::SourceInvalid)
        }
        _ => ("rdf.syntax", ExitCode::SourceInvalid),
    };
    Error::new(code, exit, format!("cannot use the snapshot {name}: {error}")).with_cause(error)
}
