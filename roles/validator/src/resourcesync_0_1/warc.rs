//! Comparison of a dump in WARC with its manifest [rs-0.1 §4.2].
//!
//! The draft does not define the names of records. A record belongs to an entry if `rs:path` is the
//! `WARC-Record-ID` or `WARC-Target-URI` of the record, or if `loc` is the `WARC-Target-URI`.

use super::document::Facts;
use super::dump::{MEMBERS, MEMBERS_MAX, end_manifest};
use crate::fetch::archive::{CHUNK, Member, each_chunk};
use crate::fetch::digest::Hasher;
use crate::fetch::paths::MANIFEST;
use crate::fetch::{Budget, Failure};
use crate::report::{Findings, rules as r};
use crate::resourcesync_0_1::alpha::Alpha;
use crate::walk::feeds::Feeds;
use abreast_warc::{
    CountingReader, Head, Kind, Payload, ReadError, parse_digest, read_record, skip_padding,
};
use abreast_webtypes::{excerpt, without_fragment};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Seek as _, SeekFrom};

type Input<'a> = CountingReader<BufReader<&'a File>>;

/// Result of a record that was read. The error describes broken bytes.
type Passed = Result<(), String>;

/// Called with the position of a record in bytes, and the record.
type Each<'e> = dyn FnMut(u64, Payload<&mut Input<'_>>) -> Result<Passed, Failure> + 'e;

impl Feeds<'_> {
    /// Compares the records with the manifest. The manifest is the first record `resource` with the
    /// name of a manifest.
    pub(super) fn warc(
        &mut self,
        url: &str,
        file: &File,
        dump: &mut Alpha,
        found: &mut Findings,
    ) -> Result<(), Failure> {
        let (mut checker, mut in_manifest) = self.begin_manifest(url);
        checker.names_records = true;
        let mut manifest = None;
        let read = each_record(file, self.budget, &mut |at, payload| {
            if manifest.is_some() || !is_manifest(&payload.head) {
                return pass(payload, self.budget, &mut |_| {}).map(|passed| passed.map(|_| ()));
            }
            manifest = Some(at);
            let passed =
                pass(payload, self.budget, &mut |bytes| checker.feed(bytes, &mut in_manifest));
            passed.map(|passed| passed.map(|_| ()))
        })?;
        if let Err(problem) = read {
            found.add(&r::A_MEMBERS, (0, 0), || format!("this is no whole WARC file: {problem}"));
        }
        let Some(manifest) = manifest else {
            let message = || format!("the dump has no record `resource` of a {MANIFEST}");
            found.add(&r::A_MANIFEST, (0, 0), message);
            return Ok(());
        };
        let mut facts = end_manifest(checker, dump, &mut in_manifest);
        let mut by_loc: HashMap<String, String> = HashMap::new();
        for (path, member) in &facts.members {
            by_loc.insert(without_fragment(&member.loc).to_owned(), path.clone());
        }
        let mut left = MEMBERS_MAX;
        let _ = each_record(file, self.budget, &mut |at, payload| {
            if at == manifest || left == 0 {
                return pass(payload, self.budget, &mut |_| {}).map(|passed| passed.map(|_| ()));
            }
            left -= 1;
            compare_record(payload, self.budget, &mut facts, &by_loc, (&mut in_manifest, found))
        })?;
        MEMBERS.add_absent(&facts.members, &mut in_manifest);
        found.append(in_manifest);
        Ok(())
    }
}

fn is_manifest(head: &Head) -> bool {
    head.kind() == Some(Kind::Resource)
        && head.target().is_some_and(|target| target.rsplit('/').next() == Some(MANIFEST))
}

/// Passes on the records that may contain a resource, with their positions, up to the first broken
/// record. The inner error describes the broken record.
fn each_record(
    mut file: &File,
    budget: &Budget<'_>,
    each: &mut Each<'_>,
) -> Result<Passed, Failure> {
    file.seek(SeekFrom::Start(0)).map_err(|error| Failure::Missing(error.to_string()))?;
    let mut input = CountingReader::new(BufReader::with_capacity(CHUNK, file));
    loop {
        let padding = skip_padding(&mut input);
        let at = input.taken;
        let problem = |error: &ReadError| Ok(Err(format!("{error}, at byte {at}")));
        if let Err(error) = padding {
            return problem(&error);
        }
        let read = match read_record(&mut input) {
            Ok(Some(read)) => read,
            Ok(None) => return Ok(Ok(())),
            Err(error) => return problem(&error),
        };
        let is_content =
            matches!(read.head.kind(), Some(Kind::Response | Kind::Resource | Kind::Revisit));
        let passed = if is_content && read.head.target().is_some() {
            match read.payload() {
                Ok(payload) => each(at, payload)?,
                Err(error) => return problem(&error),
            }
        } else {
            each_chunk(read.block, budget, |_| {})?.map_err(|error| error.to_string())
        };
        if let Err(what) = passed {
            return Ok(Err(format!("{what}, at byte {at}")));
        }
    }
}

/// Reads the payload of a record piece by piece. `false` if the headers or chunks of HTTP are
/// broken.
fn pass<R: io::BufRead>(
    mut payload: Payload<R>,
    budget: &Budget<'_>,
    each: &mut dyn FnMut(&[u8]),
) -> Result<Result<bool, String>, Failure> {
    let passed = each_chunk(&mut payload, budget, each)?;
    Ok(match passed {
        Err(_) if payload.is_broken() => each_chunk(payload.into_block(), budget, |_| {})?
            .map(|()| false)
            .map_err(|error| error.to_string()),
        passed => passed.map(|()| true).map_err(|error| error.to_string()),
    })
}

/// Removes the entry of a record from the manifest, and compares the record with it.
fn compare_record<R: io::BufRead>(
    mut payload: Payload<R>,
    budget: &Budget<'_>,
    facts: &mut Facts,
    by_loc: &HashMap<String, String>,
    (in_manifest, found): (&mut Findings, &mut Findings),
) -> Result<Passed, Failure> {
    let skip = |payload| pass(payload, budget, &mut |_| {}).map(|passed| passed.map(|_| ()));
    let (head, http) = (std::mem::take(&mut payload.head), payload.http.take());
    let target = head.target().unwrap_or_default();
    if head.kind() == Some(Kind::Revisit) {
        // A `revisit` record does not have bytes; the resource needs another record.
        return skip(payload);
    }
    let Some((name, member)) = take_member(&head, facts, by_loc) else {
        if facts.is_whole {
            let message = if by_loc.contains_key(without_fragment(target)) {
                "has several records"
            } else {
                "is not in the manifest"
            };
            found.add(&r::A_MEMBERS, (0, 0), || format!("{} {message}", excerpt(target)));
        }
        return skip(payload);
    };
    let place = member.place;
    if let Some(http) = http.as_ref().filter(|http| http.status != 200) {
        let message = || format!("{} is an answer with status {}", excerpt(&name), http.status);
        in_manifest.add(&r::A_MEMBERS, place, message);
        return skip(payload);
    }
    let stated = head.field("WARC-Block-Digest").filter(|_| !payload.is_chunked());
    let stated = stated.map(parse_digest).unwrap_or_default();
    let (mut hasher, mut of_block) = (Hasher::of(&member.digests), Hasher::of(&stated));
    of_block.update(http.as_ref().map_or(&[], |http| &http.bytes));
    let passed = pass(payload, budget, &mut |bytes| {
        hasher.update(bytes);
        of_block.update(bytes);
    })?;
    let is_whole = match passed {
        Ok(is_whole) => is_whole,
        Err(problem) => return Ok(Err(problem)),
    };
    if !is_whole {
        in_manifest.add(&r::A_MEMBERS, place, || {
            format!("the head or the chunks of {} are broken", excerpt(&name))
        });
    } else if of_block.finish().agree(&stated) == Some(false) {
        let message =
            || format!("{} has other bytes than its WARC-Block-Digest states", excerpt(&name));
        in_manifest.add(&r::A_MEMBERS, place, message);
    } else {
        MEMBERS.compare(&name, &member, hasher, in_manifest);
    }
    Ok(Ok(()))
}

fn take_member(
    head: &Head,
    facts: &mut Facts,
    by_loc: &HashMap<String, String>,
) -> Option<(String, Member)> {
    let id = head.field("WARC-Record-ID").unwrap_or_default();
    let target = head.target().unwrap_or_default();
    let path = by_loc.get(without_fragment(target)).map_or("", String::as_str);
    let names = [id, id.trim_start_matches('<').trim_end_matches('>'), target, path];
    names.into_iter().find_map(|name| facts.members.remove_entry(name))
}
