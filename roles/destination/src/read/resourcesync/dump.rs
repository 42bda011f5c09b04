//! Resource Dumps, Change Dumps, and their indexes [rs-core §11.1, §13.1].

use super::document::{Answer, Go, Kind, Part, read_parts};
use crate::admit::Admission;
use crate::error::{Error, ExitCode};
use crate::package::Packaged;
use crate::package::listing::{Dump, ListedPackage};
use crate::session::Session;
use abreast_resourcesync::v1_1::Entry;
use abreast_store::mirror::Document;
use std::collections::HashSet;

/// Most packages of one dump.
const PACKAGES_MAX: usize = 100_000;

fn listed_package(entry: &Entry) -> ListedPackage {
    ListedPackage {
        url: entry.loc.clone(),
        length: entry.length,
        digests: entry.digests.clone(),
        media_type: entry.media_type.clone(),
        from: entry.from.map(|from| from.instant),
        until: entry.until.map(|until| until.instant),
        made_to: None,
    }
}

impl Session<'_> {
    /// Reads a dump's document, or its index and the documents that this names. `None` when it has not changed.
    pub(crate) fn read_dump(
        &mut self,
        url: &str,
        packaged: Packaged,
        known: Option<&Document>,
    ) -> Result<Option<Dump>, Error> {
        let mut dump = Dump::default();
        let mut members = Vec::new();
        if !self.read_dump_document(url, packaged, known, &mut dump, &mut members)? {
            return Ok(None);
        }
        let mut seen = HashSet::from([url.to_owned()]);
        for member in members {
            self.check_cancelled()?;
            let mut admission = Admission::new(url, &self.options.allow_hosts, self.options.allow_downgrade);
            if let Err(refusal) = admission.check(&member) {
                let message = format!("{member}: {}", refusal.message());
                return Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message));
            }
            if !seen.insert(member.clone()) {
                self.report.notice("list.cycle", &member, "an index names it more than once, or names itself");
                continue;
            }
            let mut nested = Vec::new();
            self.read_dump_document(&member, packaged, None, &mut dump, &mut nested)?;
            if !nested.is_empty() {
                let message = format!("{member} is an index inside an index");
                return Err(Error::new("limit.index-depth", ExitCode::Limit, message));
            }
        }
        self.tell_noticed();
        Ok(Some(dump))
    }

    /// `false` when it has not changed.
    fn read_dump_document(
        &mut self,
        url: &str,
        packaged: Packaged,
        known: Option<&Document>,
        dump: &mut Dump,
        members: &mut Vec<String>,
    ) -> Result<bool, Error> {
        let requests = self.requests.clone();
        let before = dump.packages.len();
        let mut admission = Admission::new(url, &self.options.allow_hosts, self.options.allow_downgrade);
        let mut refused = Vec::new();
        let answer = read_parts(&requests, url, Kind::Dump(packaged), known, &mut |part| {
            let is_full = dump.packages.len() + members.len() >= PACKAGES_MAX;
            match part {
                Part::Begin(_) => {
                    dump.packages.truncate(before);
                    members.clear();
                    refused.clear();
                }
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
        let Answer::Read(read) = answer else { return Ok(false) };
        if let Some((url, refusal)) = refused.first() {
            // Without one of its packages a dump says nothing about what is not in it.
            let message = format!("{url}: {}", refusal.message());
            return Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message));
        }
        let begins = read.head.at.or(read.head.from).map(|at| read.at_earliest(at.instant));
        dump.begins = dump.begins.into_iter().chain(begins).min();
        dump.until = dump.until.max(read.head.until.map(|until| read.at_earliest(until.instant)));
        dump.date = dump.date.or(read.date);
        if before == 0 {
            dump.validators = read.validators;
        }
        Ok(true)
    }
}
