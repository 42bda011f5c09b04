//! Resource Dumps, Change Dumps, and their indexes [rs-core §11.1, §13.1].

use super::document::{Kind, Member, Part, Read, read_parts};
use super::spans::Ends;
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::admit::Admission;
use crate::request::package::listing::{Dump, ListedPackage, Packaged};
use crate::request::pieces::{Answered, Go, unasked};
use crate::request::requests::Requests;
use abreast_resourcesync::sitemap::{NAMES_ITSELF, named_again};
use abreast_resourcesync::v1_1::Entry;
use abreast_store::mirror::Document;
use abreast_webtypes::{Moment, Timestamp, W3cDatetime, resolve};
use std::collections::HashSet;
use url::Url;

/// Maximum number of packages in one dump.
const PACKAGES_MAX: usize = 100_000;

/// A dump according to its documents.
#[derive(Debug, Default)]
pub(crate) struct DumpDocument {
    pub(crate) packages: Vec<ListedPackage>,
    /// The time of the snapshot, or the first that changes are in.
    pub(crate) begins: Option<Moment>,
    /// The end of the interval of the changes, if known.
    pub(crate) until: Option<Moment>,
    /// The end times of the documents in an index.
    pub(super) ends: Ends,
    /// The head of the response, without validators if the document may remain the same when its
    /// packages change.
    pub(crate) answered: Answered,
}

impl DumpDocument {
    /// The dump as a source of individual resources.
    pub(super) fn offered(self, packaged: Packaged) -> Dump {
        let at = self.begins.filter(|_| packaged == Packaged::Snapshot).map(Moment::first);
        let latest = Some(self.answered.latest_now());
        Dump { packages: self.packages, packaged, at, latest, is_plan: false }
    }
}

/// The URL of the package with what changed since then.
pub(super) fn since_url(address: &str, since: Timestamp) -> Option<String> {
    let mut url = Url::parse(address).ok()?;
    url.set_fragment(None);
    url.query_pairs_mut().append_pair("time", &since.to_string());
    Some(url.into())
}

/// Whether the document changes whenever its packages change: it contains a past time that covers
/// all packages, or the digest of each package. A package with all changes of a past interval does
/// not change.
fn shows_changes(dump: &DumpDocument, packaged: Packaged, top: &Read) -> bool {
    let clock = top.answered.earliest_now();
    let is_over = |time: Moment| time.last() < clock;
    let is_shown = |package: &ListedPackage| {
        let is_closed = packaged == Packaged::Changes && package.until.is_some_and(is_over);
        is_closed || package.digests.strongest().is_some()
    };
    top.head.at.is_some_and(|at| is_over(top.moment(at)))
        || !top.is_index && dump.packages.iter().all(is_shown)
}

fn listed_package(document: &str, entry: &Entry, admission: &mut Admission) -> ListedPackage {
    let contents = entry.links.iter().find(|link| link.has_rel("contents"));
    let manifest = contents.and_then(|link| resolve(document, &link.href).ok());
    ListedPackage {
        manifest: manifest.filter(|url| admission.check(url).is_ok()),
        url: entry.loc.clone(),
        length: entry.length,
        digests: entry.digests.clone(),
        media_type: entry.media_type.clone(),
        from: entry.from.map(W3cDatetime::moment),
        until: entry.until.map(W3cDatetime::moment),
        ..ListedPackage::default()
    }
}

/// Reads the document of a dump, or its index and the documents in the index. `None` if the
/// document has not changed.
pub(crate) fn read_dump(
    via: (&Requests<'_>, &SyncOptions),
    url: &str,
    packaged: Packaged,
    known: Option<&Document>,
    notice: &mut dyn FnMut(&str, &str, &str),
) -> Result<Option<DumpDocument>, Error> {
    let mut dump = DumpDocument::default();
    let mut members = Vec::new();
    let (requests, options) = via;
    let Some(top) = read_dump_document(via, url, packaged, known, &mut dump, &mut members)? else {
        return Ok(None);
    };
    let mut seen = HashSet::from([url.to_owned()]);
    // If the documents contain the start of their changes, an older index is not evidence.
    let of_index = dump.begins.take_if(|_| top.is_index && packaged == Packaged::Changes);
    for Member { url: member, until, .. } in members {
        requests.check_cancelled()?;
        let mut admission = Admission::new(url, &options.allow_hosts, options.allow_downgrade);
        if let Err(refusal) = admission.check(&member) {
            let message = format!("{member}: {}", refusal.message());
            return Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message));
        }
        if !seen.insert(member.clone()) {
            let is_itself = member == url;
            let message = if is_itself { NAMES_ITSELF.to_owned() } else { named_again(&member) };
            notice("list.cycle", &member, &message);
            continue;
        }
        let mut nested = Vec::new();
        let read = read_dump_document(via, &member, packaged, None, &mut dump, &mut nested)?
            .ok_or_else(|| unasked(&member))?;
        dump.ends.note(until, read.head.until.map(|until| read.moment(until)));
        if !nested.is_empty() {
            let message = format!("{member} is an index inside an index");
            return Err(Error::new("limit.index-depth", ExitCode::Limit, message));
        }
    }
    dump.begins = dump.begins.or(of_index);
    dump.answered = top.answered.clone();
    if !shows_changes(&dump, packaged, &top) {
        dump.answered.validators = Document::default();
    }
    Ok(Some(dump))
}

/// Returns `None` if the document has not changed.
fn read_dump_document(
    (requests, options): (&Requests<'_>, &SyncOptions),
    url: &str,
    packaged: Packaged,
    known: Option<&Document>,
    dump: &mut DumpDocument,
    members: &mut Vec<Member>,
) -> Result<Option<Read>, Error> {
    let mut admission = Admission::new(url, &options.allow_hosts, options.allow_downgrade);
    let mut refused = Vec::new();
    let answer = read_parts(requests, url, Kind::Dump(packaged), known, &mut |part| {
        let is_full = dump.packages.len() + members.len() >= PACKAGES_MAX;
        match part {
            Part::Begin(..) => {}
            _ if is_full => {
                let message = format!("{url} names more than {PACKAGES_MAX} packages");
                return Err(Error::new("limit.packages", ExitCode::Limit, message));
            }
            Part::Member(member) => members.push(member),
            Part::Entry(_, entry) => match admission.check(&entry.loc) {
                Err(refusal) => refused.push((entry.loc.clone(), refusal)),
                Ok(()) => dump.packages.push(listed_package(url, entry, &mut admission)),
            },
        }
        Ok(Go::On)
    })?;
    let Some(read) = answer else { return Ok(None) };
    if let Some((url, refusal)) = refused.first() {
        // If one of its packages is refused, the dump does not show which resources are missing.
        let message = format!("{url}: {}", refusal.message());
        return Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message));
    }
    let begins = read.head.at.or(read.head.from).map(|at| read.moment(at));
    dump.begins = dump.begins.into_iter().chain(begins).min_by_key(|at| at.first());
    let until = read.head.until.map(|until| read.moment(until));
    dump.until = dump.until.into_iter().chain(until).max_by_key(|until| until.first());
    Ok(Some(read))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_added_to_the_query() {
        let since = Timestamp::from_micros(1_767_225_600_000_001);
        let url = |address| since_url(address, since).unwrap_or_default();
        assert_eq!(
            url("http://h/s/since"),
            "http://h/s/since?time=2026-01-01T00%3A00%3A00.000001Z"
        );
        assert_eq!(
            url("http://h/s?set=a#b"),
            "http://h/s?set=a&time=2026-01-01T00%3A00%3A00.000001Z"
        );
        assert_eq!(since_url("/s", since), None);
    }
}
