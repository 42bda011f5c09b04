//! Resource Dumps, Change Dumps, and their indexes [rs-core §11.1, §13.1].

use super::document::{Kind, Part, read_parts};
use crate::admit::Admission;
use crate::error::{Error, ExitCode};
use crate::package::listing::{Dump, ListedPackage, Packaged};
use crate::plan::planner::PlanContext;
use crate::read::pieces::Go;
use abreast_resourcesync::v1_1::Entry;
use abreast_store::mirror::Document;
use abreast_webtypes::Timestamp;
use std::collections::HashSet;
use url::Url;

/// Most packages of one dump.
const PACKAGES_MAX: usize = 100_000;

/// A dump as its documents describe it.
#[derive(Debug, Default)]
pub(crate) struct DumpDocument {
    pub(crate) packages: Vec<ListedPackage>,
    /// The instant of the snapshot, or the first that changes are in.
    pub(crate) begins: Option<Timestamp>,
    /// The last instant that changes are in, where that is stated.
    pub(crate) until: Option<Timestamp>,
    /// The server's clock.
    pub(crate) date: Option<Timestamp>,
    /// For asking again whether it has changed.
    pub(crate) validators: Document,
}

impl DumpDocument {
    /// As a dump that resources may be taken out of.
    pub(super) fn offered(self, packaged: Packaged) -> Dump {
        let at = self.begins.filter(|_| packaged == Packaged::Snapshot);
        Dump { packages: self.packages, packaged, at, date: self.date, is_plan: false }
    }
}

/// The URL of the package with what changed since then.
pub(super) fn since_url(address: &str, since: Timestamp) -> Option<String> {
    let mut url = Url::parse(address).ok()?;
    url.set_fragment(None);
    url.query_pairs_mut().append_pair("time", &since.to_string());
    Some(url.into())
}

fn listed_package(entry: &Entry) -> ListedPackage {
    ListedPackage {
        url: entry.loc.clone(),
        length: entry.length,
        digests: entry.digests.clone(),
        media_type: entry.media_type.clone(),
        from: entry.from.map(|from| from.instant),
        until: entry.until.map(|until| until.instant),
        ..ListedPackage::default()
    }
}

/// Reads a dump's document, or its index and the documents that this names. `None` when it has not
/// changed.
pub(crate) fn read_dump(
    run: &mut PlanContext<'_, '_>,
    url: &str,
    packaged: Packaged,
    known: Option<&Document>,
) -> Result<Option<DumpDocument>, Error> {
    let mut dump = DumpDocument::default();
    let mut members = Vec::new();
    if !read_dump_document(run, url, packaged, known, &mut dump, &mut members)? {
        return Ok(None);
    }
    let mut seen = HashSet::from([url.to_owned()]);
    for member in members {
        run.requests.check_cancelled()?;
        let mut admission = Admission::new(
            url,
            &run.planner.options.allow_hosts,
            run.planner.options.allow_downgrade,
        );
        if let Err(refusal) = admission.check(&member) {
            let message = format!("{member}: {}", refusal.message());
            return Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message));
        }
        if !seen.insert(member.clone()) {
            run.report.notice(
                "list.cycle",
                &member,
                "an index names it more than once, or names itself",
            );
            continue;
        }
        let mut nested = Vec::new();
        read_dump_document(run, &member, packaged, None, &mut dump, &mut nested)?;
        if !nested.is_empty() {
            let message = format!("{member} is an index inside an index");
            return Err(Error::new("limit.index-depth", ExitCode::Limit, message));
        }
    }
    run.requests.diagnostics.report(run.report);
    Ok(Some(dump))
}

/// `false` when it has not changed.
fn read_dump_document(
    run: &mut PlanContext<'_, '_>,
    url: &str,
    packaged: Packaged,
    known: Option<&Document>,
    dump: &mut DumpDocument,
    members: &mut Vec<String>,
) -> Result<bool, Error> {
    let before = dump.packages.len();
    let mut admission =
        Admission::new(url, &run.planner.options.allow_hosts, run.planner.options.allow_downgrade);
    let mut refused = Vec::new();
    let answer = read_parts(run.requests, url, Kind::Dump(packaged), known, &mut |part| {
        let is_full = dump.packages.len() + members.len() >= PACKAGES_MAX;
        match part {
            Part::Begin(_) => {}
            _ if is_full => {
                let message = format!("{url} names more than {PACKAGES_MAX} packages");
                return Err(Error::new("limit.packages", ExitCode::Limit, message));
            }
            Part::Member(member) => members.push(member.url),
            Part::Entry(_, entry) => match admission.check(&entry.loc) {
                Err(refusal) => refused.push((entry.loc.clone(), refusal)),
                Ok(()) => dump.packages.push(listed_package(entry)),
            },
        }
        Ok(Go::On)
    })?;
    let Some(read) = answer else { return Ok(false) };
    if let Some((url, refusal)) = refused.first() {
        // Without one of its packages a dump does not show what is not in it.
        let message = format!("{url}: {}", refusal.message());
        return Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message));
    }
    let begins = read.head.at.or(read.head.from).map(|at| read.at_earliest(at.instant));
    dump.begins = dump.begins.into_iter().chain(begins).min();
    dump.until = dump.until.max(read.head.until.map(|until| read.at_earliest(until.instant)));
    dump.date = dump.date.or(read.answered.stated_date);
    if before == 0 {
        dump.validators = read.answered.validators;
    }
    Ok(true)
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
