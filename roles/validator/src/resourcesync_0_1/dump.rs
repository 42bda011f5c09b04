//! Comparison of a dump with its manifest [rs-0.1 §4.2].

use super::document::{self, Checker, Facts};
use crate::fetch::Failure;
use crate::fetch::archive::{Got, MemberRules, TOO_LARGE, each_piece, get, is_named_warc};
use crate::fetch::paths::MANIFEST;
use crate::report::{Findings, MAKING, rules as r};
use crate::resourcesync_0_1::alpha::Alpha;
use crate::walk::feeds::{Feeds, From};
use crate::walk::node::Outcome;
use abreast_webtypes::{count, excerpt};
use std::fs::File;
use std::io::{self, Read, Seek as _};
use zip::ZipArchive;

/// Most members of a dump that are checked.
pub(super) const MEMBERS_MAX: usize = 200_000;
pub(super) static MEMBERS: MemberRules =
    MemberRules { listed: &r::A_MEMBERS, is_there: &r::A_MEMBERS, is_true: &r::A_MEMBER_TRUE };

impl Feeds<'_> {
    /// Fetches a dump, and compares its members with its manifest.
    pub(super) async fn dump(&mut self, number: usize, from: From) -> Result<(), Failure> {
        let url = self.walked.nodes[number].url.clone();
        let got = get(&self.client, &url, self.budget, self.options.max_file_bytes).await;
        let mut file = match got {
            Ok(Got::File(file)) => file,
            Ok(Got::TooLarge(_)) => {
                let message = || format!("{} was not checked: {TOO_LARGE}", excerpt(&url));
                self.add(from.0, &r::LIMIT, from.1, message);
                self.walked.nodes[number].outcome = Outcome::Left(TOO_LARGE);
                return Ok(());
            }
            Err(Failure::Missing(message)) if message == MAKING => {
                self.walked.nodes[number].outcome = Outcome::Left(MAKING);
                return Ok(());
            }
            Err(Failure::Missing(message)) => {
                let text = format!("{}: {message}", excerpt(&url));
                self.add(from.0, &r::A_REACHABLE, from.1, || text);
                self.walked.nodes[number].outcome = Outcome::Failed(message);
                return Ok(());
            }
            Err(other) => return Err(other),
        };
        let missing = |error: io::Error| Failure::Missing(error.to_string());
        let bytes = file.metadata().map_or(0, |metadata| metadata.len());
        let mut dump = Alpha { name: "ResourceSync 0.1 Dump", bytes, ..Alpha::default() };
        let mut found = Findings::new(&url, self.options.mode, self.options.most_each);
        let archive = if is_warc(&file).map_err(missing)? {
            None
        } else {
            file.rewind().map_err(missing)?;
            Some(ZipArchive::new(file.try_clone().map_err(missing)?))
        };
        match archive {
            Some(Ok(archive)) => self.zip(&url, archive, &mut dump, &mut found)?,
            Some(Err(error)) if !is_named_warc(&url) => {
                let message = || format!("this is neither a ZIP nor a WARC file: {error}");
                found.add(&r::A_MANIFEST, (0, 0), message);
            }
            // Dumps may have other formats than ZIP [rs-0.1 §4.2].
            None | Some(Err(_)) => {
                dump.name = "ResourceSync 0.1 Dump (WARC)";
                self.warc(&url, &file, &mut dump, &mut found)?;
            }
        }
        self.walked.nodes[number].outcome = Outcome::read(dump);
        self.keep(number, found);
        Ok(())
    }

    fn zip(
        &mut self,
        url: &str,
        mut archive: ZipArchive<File>,
        dump: &mut Alpha,
        found: &mut Findings,
    ) -> Result<(), Failure> {
        let Some(manifest) = archive.index_for_name(MANIFEST) else {
            found.add(&r::A_MANIFEST, (0, 0), || format!("the dump has no {MANIFEST}"));
            return Ok(());
        };
        let (mut checker, mut in_manifest) = self.begin_manifest(url);
        let read = each_piece(&mut archive, manifest, self.budget, |bytes| {
            checker.feed(bytes, &mut in_manifest);
        })?;
        if let Err(error) = read {
            found.add(&r::A_MANIFEST, (0, 0), || format!("{MANIFEST} cannot be unpacked: {error}"));
            return Ok(());
        }
        let mut facts = end_manifest(checker, dump, &mut in_manifest);
        let members = (&mut facts.members, facts.is_whole);
        let (most, both) = (MEMBERS_MAX, (&mut in_manifest, &mut *found));
        MEMBERS.compare_all(&mut archive, most, members, self.budget, both)?;
        found.append(in_manifest);
        Ok(())
    }

    /// Creates the checker and the findings for the manifest of a dump.
    pub(super) fn begin_manifest(&self, url: &str) -> (Checker, Findings) {
        let label = format!("{url}!/{MANIFEST}");
        let (most, seed) = (self.options.max_document_bytes, self.options.seed);
        let found = Findings::new(&label, self.options.mode, self.options.most_each);
        (Checker::of_manifest(&label, most, seed), found)
    }
}

/// Finishes the check of a manifest and returns its facts.
pub(super) fn end_manifest(
    mut checker: Checker,
    dump: &mut Alpha,
    in_manifest: &mut Findings,
) -> Facts {
    checker.finish(in_manifest);
    let facts = checker.facts;
    dump.entries = facts.entries;
    dump.modified = facts.head.modified.map(|time| time.instant);
    let paths = facts.members.len() as u64;
    if facts.is_whole && paths == 0 && facts.entries > 0 {
        let message = || format!("none of {} has `rs:path`", count(facts.entries, "entry"));
        in_manifest.add(&r::A_PATH_MISSING, (0, 0), message);
    }
    facts
}

/// Whether a file is a WARC file, or a ZIP file with a manifest of 0.1.
pub(crate) fn is_dump(file: &File) -> bool {
    if is_warc(file).unwrap_or(false) {
        return true;
    }
    let Some(mut archive) = file.try_clone().ok().and_then(|file| ZipArchive::new(file).ok())
    else {
        return false;
    };
    let Ok(member) = archive.by_name(MANIFEST) else { return false };
    let mut beginning = Vec::new();
    let read = member.take(document::BEGINNING as u64).read_to_end(&mut beginning);
    read.is_ok() && document::is_document(&beginning)
}

fn is_warc(mut file: &File) -> io::Result<bool> {
    let begins = |input: &mut dyn Read| {
        let mut begin = [0; 5];
        input.read_exact(&mut begin).is_ok() && begin == *b"WARC/"
    };
    file.rewind()?;
    let is_plain = begins(&mut file);
    file.rewind()?;
    Ok(is_plain || begins(&mut flate2::read::GzDecoder::new(file)))
}
