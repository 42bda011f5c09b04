//! Complete snapshots of a set of descriptions, as files in RDF, for any protocol that has such
//! files.
//!
//! All files are sorted together, in bounded memory, so that each description is found completely,
//! for any order of its statements.

use crate::plan::listed::Listed;
use crate::read::walk::Walk;
use crate::report::error::{Error, ExitCode};
use crate::request::package::download::Downloads;
use crate::request::package::listing::ListedPackage;
use crate::request::requests::Requests;
use crate::sink::rdf_rules::message;
use abreast_core::spawn_scoped;
use abreast_rdf::{LeftOut, Syntax};
use abreast_statements::{Bytes, Describer, Input, SortOptions, SortedStatements, with_parts};
use abreast_webtypes::{Digests, Moment, md5_lanes};
use std::fs::File;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Memory for sorting.
const SORT_BYTES: usize = 16 << 20;
/// Files that wait to be sorted while others are fetched.
const AHEAD: usize = 4;
/// Bytes of descriptions that are digested together, about.
const TOGETHER_BYTES: usize = 64 << 10;
/// How soon a stop is noticed.
const TICK: Duration = Duration::from_millis(50);

/// A file of descriptions.
#[derive(Clone, Debug)]
pub(crate) struct DescriptionFile {
    pub(crate) url: String,
    /// The media type to request.
    pub(crate) media_type: Option<String>,
    pub(crate) syntax: Syntax,
}

/// The statements of a complete snapshot.
pub(crate) struct SortedDescriptions {
    statements: SortedStatements,
    /// IRIs in place of blank nodes that are parts of descriptions.
    parts: u64,
    /// Statements that are not valid, and were left out.
    left_out: LeftOut,
}

/// Fetches the files of a complete snapshot and sorts their statements. Sorting starts while later
/// files are being fetched.
pub(crate) fn fetch_sorted(
    requests: &Requests<'_>,
    name: &str,
    files: &[DescriptionFile],
    downloads: &Downloads,
) -> Result<SortedDescriptions, Error> {
    let package = |file: &DescriptionFile| ListedPackage {
        url: file.url.clone(),
        ..ListedPackage::default()
    };
    let sort = SortOptions {
        memory: SORT_BYTES,
        contexts: requests.contexts.clone(),
        leave_out_invalid: requests.leaves_out_invalid,
        ..SortOptions::new(downloads.path())
    };
    let (stop, are_resources) = (sort.stop.clone(), requests.skolems_are_resources.get());
    let (fetched, waiting) = sync_channel::<(&DescriptionFile, Option<String>, File)>(AHEAD);
    let (ended, end) = sync_channel::<()>(0);
    let (done, sorted) = std::thread::scope(|scope| {
        let sort = &sort;
        let sorting = spawn_scoped(scope, move || {
            let _ended = ended;
            let inputs = waiting.into_iter().map(|(file, address, bytes)| Input {
                name: file.url.clone(),
                syntax: file.syntax,
                base: address.or_else(|| Some(file.url.clone())),
                bytes: Bytes::of_file(bytes),
            });
            let sorted = abreast_statements::sorted(sort, inputs)?;
            let left_out = sorted.left_out().clone();
            let (sorted, parts) =
                if are_resources { (sorted, 0) } else { with_parts(sort, sorted)? };
            Ok((sorted, parts, left_out))
        });
        let fetch = || {
            for file in files {
                let media_type = file.media_type.as_deref();
                let documents = &requests.documents;
                let package = package(file);
                let bytes = documents.download(requests, downloads, &package, media_type)?;
                // The receiver has stopped because of an error.
                if fetched.send((file, downloads.address_of(&package), bytes)).is_err() {
                    break;
                }
            }
            Ok::<_, Error>(())
        };
        let done = fetch();
        drop(fetched);
        while end.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            if done.is_err() || requests.is_cancelled() || requests.allowance.check().is_err() {
                stop.store(true, Ordering::Relaxed);
            }
        }
        (done, sorting.join())
    });
    let sorted = sorted.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    done?;
    requests.check_cancelled()?;
    requests.allowance.check()?;
    for file in files {
        downloads.discard(&package(file));
    }
    let (statements, parts, left_out) = sorted.map_err(|error| unreadable(name, error))?;
    Ok(SortedDescriptions { statements, parts, left_out })
}

/// Passes on the descriptions of a complete snapshot; returns their number.
pub(crate) fn hand_over(
    walk: &mut Walk<'_, '_>,
    name: &str,
    sorted: &SortedDescriptions,
    as_of: Option<Moment>,
) -> Result<u64, Error> {
    let (requests, mut count) = (walk.requests, 0);
    walk.begin_document(name);
    let blanks = each_description(name, sorted, &mut |described| {
        requests.check_cancelled()?;
        count += 1;
        walk.resource(&described.listed(name), as_of, Some(described.lines))
    })?;
    walk.parts(sorted.parts);
    if sorted.left_out.count() > 0 {
        walk.notice("rdf.invalid", name, &message(&sorted.left_out));
    }
    walk.walked.invalid = Some((name.to_owned(), sorted.left_out.clone()));
    blanks.report(walk, name);
    Ok(count)
}

/// A description in such a file.
pub(crate) struct Described<'d> {
    pub(crate) iri: &'d str,
    /// Canonical N-Triples.
    pub(crate) lines: &'d [u8],
    pub(crate) digests: Digests,
}

impl SortedDescriptions {
    /// Whether the files contain all entities. If statements were left out, an entity that is
    /// missing in the files may have had only these statements.
    pub(crate) fn lists_all(&self) -> bool {
        self.left_out.count() == 0
    }
}

impl<'d> Described<'d> {
    /// The description as a resource.
    fn listed(&'d self, document: &'d str) -> Listed<'d> {
        Listed {
            uri: self.iri,
            href: None,
            accept: None,
            describes: false,
            body: None,
            document,
            modified: None,
            modified_is_change: false,
            length: Some(self.lines.len() as u64),
            media_type: Some(Syntax::NTriples.media_type()),
            digests: &self.digests,
            change: None,
            changed: None,
            id: None,
            patch: None,
            replaced_by: &[],
            patches: Vec::new(),
            links: Vec::new(),
            categories: Vec::new(),
        }
    }
}

/// Descriptions that are digested together, which takes half the time.
#[derive(Default)]
struct Together {
    iris: String,
    lines: Vec<u8>,
    /// The ends of each IRI and its lines.
    ends: Vec<(usize, usize)>,
}

impl Together {
    fn add(&mut self, iri: &str, lines: &[u8]) {
        self.iris.push_str(iri);
        self.lines.extend_from_slice(lines);
        self.ends.push((self.iris.len(), self.lines.len()));
    }

    fn hand_over(
        &mut self,
        each: &mut dyn FnMut(&Described<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let begins = [(0, 0)].into_iter().chain(self.ends.iter().copied());
        let places = begins.zip(&self.ends);
        let all: Vec<(&str, &[u8])> = places
            .map(|(begin, end)| (&self.iris[begin.0..end.0], &self.lines[begin.1..end.1]))
            .collect();
        let sums = md5_lanes::digests(&all.iter().map(|(_, lines)| *lines).collect::<Vec<_>>());
        for ((iri, lines), md5) in all.into_iter().zip(sums) {
            let digests = Digests { md5: Some(md5), ..Digests::default() };
            each(&Described { iri, lines, digests })?;
        }
        self.iris.clear();
        self.lines.clear();
        self.ends.clear();
        Ok(())
    }
}

/// Counts of blank nodes that differ between the file and the descriptions.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Blanks {
    pub(crate) shared: u64,
    pub(crate) unreached: u64,
}

impl Blanks {
    fn report(self, walk: &mut Walk<'_, '_>, name: &str) {
        if self.unreached > 0 {
            let message = format!(
                "blank nodes that belong to no resource and are not kept: {}",
                self.unreached
            );
            walk.notice("rdf.blank", name, &message);
        }
        if self.shared > 0 {
            let message = format!(
                "blank nodes that belong to several resources, each of which has a copy: {}",
                self.shared
            );
            walk.notice("rdf.blank", name, &message);
        }
    }
}

/// Passes on each description in the sorted statements.
fn each_description(
    name: &str,
    SortedDescriptions { statements: sorted, .. }: &SortedDescriptions,
    each: &mut dyn FnMut(&Described<'_>) -> Result<(), Error>,
) -> Result<Blanks, Error> {
    let odd = |error| unreadable(name, error);
    let mut blanks = sorted.blank_nodes().map_err(odd)?;
    let mut groups = sorted.entities().map_err(odd)?;
    let mut describer = Describer::new(sorted);
    let mut together = Together::default();
    while groups.advance().map_err(odd)? {
        let Some(group) = groups.current() else { break };
        let gathered = describer.gather(&group, &mut blanks).map_err(odd)?;
        together.add(group.iri, &describer.canonical(gathered).map_err(odd)?);
        if together.lines.len() >= TOGETHER_BYTES {
            together.hand_over(each)?;
        }
    }
    together.hand_over(each)?;
    let (shared, unreached) = blanks.shared_and_unreached();
    Ok(Blanks { shared, unreached })
}

fn unreadable(name: &str, error: abreast_statements::Error) -> Error {
    let (code, exit) = match &error {
        abreast_statements::Error::TooLarge(_) | abreast_statements::Error::Together(_) => {
            ("rdf.size", ExitCode::Limit)
        }
        abreast_statements::Error::Io(_) => ("io", ExitCode::Io),
        abreast_statements::Error::Stopped => return Error::cancelled(),
        abreast_statements::Error::Input { cause, .. } => {
            (cause.syntax().map_or("body.read", |fault| fault.code()), ExitCode::SourceInvalid)
        }
        _ => ("rdf.syntax", ExitCode::SourceInvalid),
    };
    let message = format!("cannot use the snapshot {name}: {error}");
    let unusable = Error::new(code, exit, message).with_cause(error);
    if code == "jsonld.context" {
        return unusable
            .with_help("give the context with `--context URL=FILE`: it is never fetched");
    }
    unusable
}
