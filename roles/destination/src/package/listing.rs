//! Which packages does a dump name? Resource Dumps, Change Dumps, and their indexes [rs-core §11.1, §13.1].

use crate::admit::Admission;
use crate::document::{Answer, Go};
use crate::error::{Error, ExitCode};
use crate::session::Session;
use abreast_resourcesync::v1_1::{Capability, Entry, Head, Root};
use abreast_store::mirror::Document;
use abreast_webtypes::{Digests, Timestamp};
use std::collections::HashSet;

/// Most packages of one dump.
const PACKAGES_MAX: usize = 100_000;

/// One package as a dump names it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listed {
    pub(crate) url: String,
    pub(crate) length: Option<u64>,
    pub(crate) digests: Digests,
    pub(crate) media_type: Option<String>,
    /// Changes since then are in it.
    pub(crate) from: Option<Timestamp>,
    /// Changes until then are in it.
    pub(crate) until: Option<Timestamp>,
    /// It is made when it is asked for, and should not have more bytes than this.
    pub(crate) made_to: Option<u64>,
}

/// A dump as its documents describe it.
#[derive(Debug, Default)]
pub(crate) struct Dump {
    pub(crate) packages: Vec<Listed>,
    /// The instant of the snapshot, or the first that changes are in.
    pub(crate) begins: Option<Timestamp>,
    /// The last instant that changes are in, where that is said.
    pub(crate) until: Option<Timestamp>,
    /// The server's clock.
    pub(crate) date: Option<Timestamp>,
    /// For asking again whether it has changed.
    pub(crate) validators: Document,
}

impl Listed {
    /// Is it a ZIP file, as far as its type or its name says? Without either it is tried.
    ///
    /// # Errors
    /// `dump.format`, with the name of the format.
    pub(crate) fn check_format(&self) -> Result<(), Error> {
        let media_type = self.media_type.as_deref().unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let path = self.url.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
        let named = |endings: &[&str]| endings.iter().any(|ending| path.ends_with(ending));
        let format = match media_type.as_str() {
            "application/warc" | "application/warc+gzip" => "WARC",
            "application/x-xz" | "application/x-xz-compressed-tar" => "tar packed with xz",
            "application/x-tar" => "tar",
            "application/gzip" | "application/x-gzip" | "application/x-gtar" | "application/x-tgz" => {
                "tar packed with gzip"
            }
            "application/zstd" => "packed with zstd",
            "application/x-7z-compressed" => "7z",
            "" | "application/octet-stream" if named(&[".warc", ".warc.gz"]) => "WARC",
            "" | "application/octet-stream" if named(&[".tar.xz", ".txz"]) => "tar packed with xz",
            "" | "application/octet-stream" if named(&[".tar.gz", ".tgz"]) => "tar packed with gzip",
            "" | "application/octet-stream" if named(&[".tar"]) => "tar",
            ""
            | "application/octet-stream"
            | "application/zip"
            | "application/x-zip-compressed"
            | "application/x-zip" => {
                return Ok(());
            }
            other => other,
        };
        let message = format!("{} is a package of another kind: {format}", self.url);
        Err(Error::new("dump.format", ExitCode::SourceInvalid, message)
            .with_help("packages in ZIP are read; resources are asked for one by one instead"))
    }
}

impl Session<'_> {
    /// Reads a dump's document, or its index and the documents that this names. `None` when it has not changed.
    pub(crate) fn read_dump(
        &mut self,
        url: &str,
        capability: Capability,
        known: Option<&Document>,
    ) -> Result<Option<Dump>, Error> {
        let mut dump = Dump::default();
        let mut members = Vec::new();
        if !self.read_dump_document(url, capability, known, &mut dump, &mut members)? {
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
                self.notice("list.cycle", &member, "an index names it more than once, or names itself");
                continue;
            }
            let mut nested = Vec::new();
            self.read_dump_document(&member, capability, None, &mut dump, &mut nested)?;
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
        capability: Capability,
        known: Option<&Document>,
        dump: &mut Dump,
        members: &mut Vec<String>,
    ) -> Result<bool, Error> {
        let documents = self.documents.clone();
        let before = dump.packages.len();
        let mut admission = Admission::new(url, &self.options.allow_hosts, self.options.allow_downgrade);
        let mut refused = Vec::new();
        let answer = documents.read(url, known, &mut |head: &Head, entry: &Entry| {
            if head.capability != Some(capability) {
                let message = format!("{url} is no `{}`", capability.token());
                return Err(Error::new("list.capability", ExitCode::SourceInvalid, message));
            }
            if entry.loc.is_empty() {
                // The head comes first, and again when a transfer broke off and is repeated.
                dump.packages.truncate(before);
                members.clear();
                refused.clear();
                return Ok(Go::On);
            }
            if dump.packages.len() + members.len() >= PACKAGES_MAX {
                let message = format!("{url} names more than {PACKAGES_MAX} packages");
                return Err(Error::new("limit.packages", ExitCode::Limit, message));
            }
            if head.root == Root::SitemapIndex {
                members.push(entry.loc.clone());
            } else if let Err(refusal) = admission.check(&entry.loc) {
                refused.push((entry.loc.clone(), refusal));
            } else {
                dump.packages.push(Listed {
                    url: entry.loc.clone(),
                    length: entry.length,
                    digests: entry.digests.clone(),
                    media_type: entry.media_type.clone(),
                    from: entry.from.map(|from| from.instant),
                    until: entry.until.map(|until| until.instant),
                    made_to: None,
                });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_other_kinds_are_named() {
        let listed = |url: &str, media_type: Option<&str>| Listed {
            url: url.to_owned(),
            media_type: media_type.map(str::to_owned),
            ..Listed::default()
        };
        for (url, media_type) in [
            ("http://h/p.zip", None),
            ("http://h/p", None),
            ("http://h/p.tar.xz", Some("application/zip")),
            ("http://h/p", Some("application/ZIP; x=y")),
            ("http://h/p", Some("application/octet-stream")),
        ] {
            assert!(listed(url, media_type).check_format().is_ok(), "{url} {media_type:?}");
        }
        for (url, media_type, format) in [
            ("http://h/p.tar.xz?x", None, "tar packed with xz"),
            ("http://h/p.warc.gz", Some("application/octet-stream"), "WARC"),
            ("http://h/p", Some("application/warc"), "WARC"),
            ("http://h/p.zip", Some("application/x-rar"), "application/x-rar"),
        ] {
            let error = listed(url, media_type).check_format().unwrap_err();
            assert_eq!(error.code(), "dump.format");
            assert!(error.to_string().contains(format), "{error}");
        }
    }
}
