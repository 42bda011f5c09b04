//! Patches: the listed version is made from the stored version by a chain of patches
//! [rs-core §14.4].
//!
//! Each patch is verified, and each intermediate version whose digest is listed. The result is
//! accepted only if it has the digest in the Source's list. If a patch is missing or does not
//! apply, or if the chain costs more than the resource, the whole resource is fetched.

pub(crate) mod fuzz_property;

use crate::plan::alternates::{Patch, is_public_only};
use crate::plan::patch_format::Format;
use crate::request::verify::{Hasher, Verdict, judge};
use crate::sink::outcome::Outcome;
use crate::transfer::fetch::{Fetcher, last_modified};
use crate::transfer::store::Facts;
use abreast_net::{Request, UnaskedEncoding};
use abreast_store::mirror::{PendingAction, Row, Task};
use abreast_webtypes::{Digests, memory_of_json};
use json_patch::PatchOperation;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read as _, Write};

/// Maximum length of a version to patch, and maximum total length of the patches in a chain, in
/// bytes.
const BYTES_MAX: u64 = 64 << 20;
/// The cost of another request, as a number of bytes of the resource.
const REQUEST_BYTES: u64 = 1 << 10;
/// The first bytes of a binary difference.
const DIFFERENCE_MARK: &[u8; 16] = b"ENDSLEY/BSDIFF43";
/// Maximum number of operations in one JSON patch.
const OPERATIONS_MAX: usize = 100_000;
/// Maximum memory for the values of both documents, in bytes; larger documents are fetched as a
/// whole.
const MEMORY_MAX: u64 = 128 << 20;
/// Maximum depth of JSON, equal to the limit of the parser.
const DEPTH_MAX: usize = 127;
/// Maximum number of values that the operations of a JSON patch may insert, including the bytes of
/// their texts.
const MOVED_MAX: usize = 16 << 20;

impl Format {
    /// The new version, of this length if it is known; `None` if the patch does not apply.
    fn apply(self, kept: Vec<u8>, patch: &[u8], length: Option<u64>) -> Option<Vec<u8>> {
        let most = length.unwrap_or(BYTES_MAX);
        let new = match self {
            Self::Json => apply_json(&kept, patch, most)?,
            Self::Append => {
                let mut new = kept;
                new.extend_from_slice(patch);
                new
            }
            Self::Difference => {
                let (mark, rest) = patch.split_first_chunk::<16>()?;
                let (stated, mut rest) = rest.split_first_chunk::<8>()?;
                let stated = u64::from_le_bytes(*stated);
                if mark != DIFFERENCE_MARK || stated > most {
                    return None;
                }
                let mut new = Vec::with_capacity(stated as usize);
                bsdiff::patch(&kept, &mut rest, &mut new).ok()?;
                new
            }
        };
        let found = new.len() as u64;
        (found <= most && length.is_none_or(|length| length == found)).then_some(new)
    }
}

impl Fetcher {
    /// Makes the listed version with a chain of patches; `None` when it has to be fetched whole.
    /// After [`crate::transfer::store::Storer::prepare`].
    pub(crate) async fn patched(
        &mut self,
        task: &Task,
        listed: &Digests,
        chain: &[Patch],
    ) -> Option<Outcome> {
        let (item, row) = (&task.pending, task.row.as_ref()?);
        let length = item.length.filter(|length| *length <= BYTES_MAX)?;
        if item.action != PendingAction::Fetch || listed.strongest().is_none() || !row.verified {
            return None;
        }
        let chain = not_applied(chain, row);
        let mut left = bytes_for(chain, length)?;
        let mut version = as_kept(self.storer.writer.kept(task)?, row)?;
        for (at, patch) in chain.iter().enumerate() {
            if patch.before.as_ref().is_some_and(|before| !has_digests(&version, before, None)) {
                return None;
            }
            let bytes = self.fetch_patch(patch, left).await?;
            left = left.checked_sub(bytes.len() as u64)?;
            let is_last = at + 1 == chain.len();
            version = patch.format.apply(
                version,
                &bytes,
                if is_last { Some(length) } else { patch.length_after },
            )?;
            if !is_last
                && patch
                    .after
                    .as_ref()
                    .is_some_and(|after| !has_digests(&version, after, patch.length_after))
            {
                tracing::debug!(
                    uri = item.uri,
                    patch = patch.url,
                    "a patch leads to another version than the one stated"
                );
                return None;
            }
        }
        if !has_digests(&version, listed, Some(length)) {
            tracing::debug!(uri = item.uri, "patches lead to another version than the one listed");
            return None;
        }
        let facts = Facts { last_modified: self.modified(task).await, ..Facts::default() };
        Some(self.storer.store_slice(task, facts, &version).await)
    }

    /// Requests a patch of at most `most` bytes, and verifies the patch by its listed length and
    /// digests.
    async fn fetch_patch(&self, patch: &Patch, most: u64) -> Option<Vec<u8>> {
        let rules = &self.storer.rules;
        let public_only = is_public_only(&mut rules.admission.clone(), &patch.url)?;
        if let Some(robots) = &rules.robots {
            robots.check(&self.client, &patch.url, public_only).await.ok()?;
        }
        let authorized = crate::request::admit::same_origin(&patch.url, &rules.authorized_url);
        let request = Request {
            authorization: rules.authorization.as_ref().filter(|_| authorized),
            accept_gzip: true,
            unasked_encoding: UnaskedEncoding::Decode,
            public_only,
            ..Request::new(&patch.url)
        };
        let mut bytes = Vec::new();
        self.client
            .fetch_to(&request, &mut bytes, patch.length.unwrap_or(most).min(most))
            .await
            .ok()?;
        let mut hasher = Hasher::for_listed(&patch.digests);
        hasher.update(&bytes);
        let verdict = judge(&patch.digests, patch.length, &hasher.finish(), bytes.len() as u64);
        (verdict != Verdict::Mismatch).then_some(bytes)
    }

    /// The time of the resource's last modification, in nanoseconds since 1970, if no list contains
    /// it; patches do not contain it either.
    async fn modified(&self, task: &Task) -> Option<i64> {
        let item = &task.pending;
        if item.modified.is_some() {
            return None;
        }
        let rules = &self.storer.rules;
        let authorized = crate::request::admit::same_origin(item.href(), &rules.authorized_url);
        let authorization = rules.authorization.as_ref().filter(|_| authorized);
        let request = Request {
            head: true,
            authorization,
            accept: item.accept(),
            ..Request::new(item.href())
        };
        let response = self.client.send(&request).await;
        last_modified(response.ok()?.require_success().ok()?.header("last-modified"))
    }
}

/// The patches of a chain that are still to be applied: the patches after the one that resulted in
/// the stored version.
fn not_applied<'c>(chain: &'c [Patch], row: &Row) -> &'c [Patch] {
    let mut kept = Digests::default();
    kept.set_from_bytes(&row.digests);
    let applied =
        |patch: &Patch| patch.after.as_ref().is_some_and(|after| after.agree(&kept) == Some(true));
    chain.iter().rposition(applied).map_or(chain, |at| &chain[at + 1..])
}

/// Maximum total length in bytes of the patches of a chain that makes a version of length `length`;
/// `None` if a request for the whole resource costs less, or the chain is empty.
fn bytes_for(chain: &[Patch], length: u64) -> Option<u64> {
    let requests = (chain.len() as u64).checked_sub(1)? * REQUEST_BYTES;
    let left = length.min(BYTES_MAX).checked_sub(requests)?;
    let stated: u64 = chain.iter().filter_map(|patch| patch.length).fold(0, u64::saturating_add);
    (stated < left).then_some(left)
}

/// Whether a version provably has these digests and this length.
pub(super) fn has_digests(version: &[u8], digests: &Digests, length: Option<u64>) -> bool {
    let mut hasher = Hasher::for_listed(digests);
    hasher.update(version);
    judge(digests, length, &hasher.finish(), version.len() as u64) == Verdict::Verified
}

/// The stored bytes, if they are unchanged since they were written.
fn as_kept(file: File, row: &Row) -> Option<Vec<u8>> {
    if row.length > BYTES_MAX {
        return None;
    }
    let mut bytes = Vec::with_capacity(row.length as usize);
    file.take(row.length + 1).read_to_end(&mut bytes).ok()?;
    let mut digests = Digests::default();
    digests.set_from_bytes(&row.digests);
    has_digests(&bytes, &digests, Some(row.length)).then_some(bytes)
}

/// Applies a JSON patch, and writes the result in the formatting of the stored version, so that the
/// bytes can be identical to the Source's. `None` if the formatting is unknown, or the result is
/// longer than expected.
fn apply_json(kept: &[u8], patch: &[u8], length: u64) -> Option<Vec<u8>> {
    if memory_of_json(kept) + memory_of_json(patch) > MEMORY_MAX {
        return None;
    }
    let mut value: Value = serde_json::from_slice(kept).ok()?;
    let way = Way::of(kept, &value)?;
    let operations: Vec<PatchOperation> = serde_json::from_slice(patch).ok()?;
    if operations.len() > OPERATIONS_MAX {
        return None;
    }
    let mut left = MOVED_MAX;
    for operation in &operations {
        // A copy may be of all there is: few operations would make it as large, and as deep, as
        // they like.
        let put = match operation {
            PatchOperation::Add(add) => Some(&add.value),
            PatchOperation::Replace(replace) => Some(&replace.value),
            PatchOperation::Move(moved) => value.pointer(moved.from.as_str()),
            PatchOperation::Copy(copy) => value.pointer(copy.from.as_str()),
            PatchOperation::Remove(_) | PatchOperation::Test(_) => None,
        };
        if let Some(put) = put {
            let depth = DEPTH_MAX.checked_sub(operation.path().count())?;
            spend(put, depth, &mut left)?;
        }
        // The partial result of a patch that fails is discarded.
        json_patch::patch_unsafe(&mut value, std::slice::from_ref(operation)).ok()?;
    }
    let mut new = Bounded { most: usize::try_from(length).ok()?, bytes: Vec::new() };
    way.write(&value, &mut new)?;
    Some(new.bytes)
}

/// Subtracts the cost of a value from the remaining limit; `None` if the limit is exceeded, or the
/// value is too deep.
fn spend(value: &Value, depth: usize, left: &mut usize) -> Option<()> {
    let cost = match value {
        Value::String(text) => text.len() + 1,
        _ => 1,
    };
    *left = left.checked_sub(cost)?;
    match value {
        Value::Array(values) => {
            let depth = depth.checked_sub(1)?;
            values.iter().try_for_each(|value| spend(value, depth, left))
        }
        Value::Object(members) => {
            let depth = depth.checked_sub(1)?;
            members.iter().try_for_each(|(name, value)| {
                *left = left.checked_sub(name.len())?;
                spend(value, depth, left)
            })
        }
        _ => Some(()),
    }
}

/// The formatting of JSON: its indentation, and the end of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    /// The blanks of a level; `None` if the text is not indented.
    indent: Option<&'static [u8]>,
    newline: bool,
}

impl Way {
    fn of(text: &[u8], value: &Value) -> Option<Self> {
        let newline = text.ends_with(b"\n");
        [None, Some(&b"  "[..]), Some(b"    "), Some(b"\t")]
            .into_iter()
            .map(|indent| Self { indent, newline })
            .find(|way| {
                let mut left = text;
                way.write(value, &mut Same(&mut left)).is_some() && left.is_empty()
            })
    }

    fn write(self, value: &Value, mut out: impl Write) -> Option<()> {
        use serde::Serialize as _;
        match self.indent {
            None => serde_json::to_writer(&mut out, value).ok()?,
            Some(indent) => {
                let formatter = serde_json::ser::PrettyFormatter::with_indent(indent);
                value
                    .serialize(&mut serde_json::Serializer::with_formatter(&mut out, formatter))
                    .ok()?;
            }
        }
        if self.newline { out.write_all(b"\n").ok() } else { Some(()) }
    }
}

/// A writer that accepts only a limited number of bytes.
struct Bounded {
    most: usize,
    bytes: Vec<u8>,
}

impl Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > self.most - self.bytes.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A writer that accepts only the bytes of an existing text.
struct Same<'a, 't>(&'a mut &'t [u8]);

impl Write for Same<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        *self.0 = self.0.strip_prefix(bytes).ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_known_by_their_type() {
        assert_eq!(Format::of("Application/JSON-Patch+json; charset=utf-8"), Some(Format::Json));
        assert_eq!(Format::of("application/json-patch"), Some(Format::Json));
        assert_eq!(Format::of("application/x-append"), Some(Format::Append));
        assert_eq!(Format::of("application/x-bsdiff43"), Some(Format::Difference));
        assert_eq!(Format::of("application/x-tiff-diff"), None);
    }

    #[test]
    fn json_keeps_the_way_it_was_written() {
        let patch =
            br#"[{"op":"replace","path":"/z","value":3},{"op":"add","path":"/b","value":[1]}]"#;
        for (kept, new) in [
            (r#"{"z":1,"a":"x"}"#, r#"{"z":3,"a":"x","b":[1]}"#),
            ("{\n  \"z\": 1\n}\n", "{\n  \"z\": 3,\n  \"b\": [\n    1\n  ]\n}\n"),
            ("{\n\t\"z\": 1\n}", "{\n\t\"z\": 3,\n\t\"b\": [\n\t\t1\n\t]\n}"),
        ] {
            assert_eq!(
                apply_json(kept.as_bytes(), patch, 100).as_deref(),
                Some(new.as_bytes()),
                "{kept}"
            );
        }
        // The formatting cannot be reproduced, or the document differs from the patch's
        // expectations.
        assert_eq!(apply_json(br#"{ "z":1}"#, patch, 100), None);
        assert_eq!(apply_json(br#"{"a":1}"#, patch, 100), None);
        assert_eq!(apply_json(b"no json", patch, 100), None);
    }

    #[test]
    fn differences_of_bytes_are_applied_only_when_they_fit() {
        let kept = b"the quick brown fox jumps over the lazy dog".repeat(20);
        let mut new = kept.clone();
        new[100] = b'!';
        new.extend_from_slice(b" and away");
        let mut patch = DIFFERENCE_MARK.to_vec();
        patch.extend_from_slice(&(new.len() as u64).to_le_bytes());
        bsdiff::diff(&kept, &new, &mut patch).unwrap();
        let length = new.len() as u64;
        assert_eq!(Format::Difference.apply(kept.clone(), &patch, Some(length)), Some(new));
        assert_eq!(Format::Difference.apply(kept.clone(), &patch, Some(length + 1)), None);
        assert_eq!(
            Format::Difference.apply(kept.clone(), &patch[..patch.len() / 2], Some(length)),
            None
        );
        assert_eq!(Format::Difference.apply(kept, b"short", Some(5)), None);
        assert_eq!(
            Format::Append.apply(b"one ".to_vec(), b"two", Some(7)),
            Some(b"one two".to_vec())
        );
    }

    #[test]
    fn a_chain_is_used_only_if_it_costs_less_than_the_whole() {
        let patch = |length| Patch {
            url: String::new(),
            format: Format::Append,
            length,
            digests: Digests::default(),
            before: None,
            after: None,
            length_after: None,
            order: (0, 0),
        };
        let (short, long, unknown) = (patch(Some(100)), patch(Some(5_000)), patch(None));
        let bytes_for = |chain: &[&Patch], length| {
            let chain: Vec<Patch> = chain.iter().map(|patch| (*patch).clone()).collect();
            bytes_for(&chain, length)
        };
        assert_eq!(bytes_for(&[], 100), None);
        assert_eq!((bytes_for(&[&short], 100), bytes_for(&[&short], 101)), (None, Some(101)));
        assert_eq!(bytes_for(&[&unknown], 10), Some(10));
        assert_eq!(bytes_for(&[&short, &short], 1_000), None, "two requests for so little");
        assert_eq!(bytes_for(&[&short, &short], 4_096), Some(3_072));
        assert_eq!(bytes_for(&[&short, &long], 5_000), None);
        assert_eq!(bytes_for(&[&short, &unknown], 4_096), Some(3_072));
    }

    #[test]
    fn json_that_takes_too_much_memory_is_not_patched() {
        let kept = |count| format!("[{}]", vec!["{}"; count].join(","));
        let patch = br#"[{"op":"remove","path":"/0"}]"#;
        let apply = |count| apply_json(kept(count).as_bytes(), patch, BYTES_MAX);
        assert_eq!(apply(1_000).map(String::from_utf8), Some(Ok(kept(999))));
        assert_eq!(apply(200_000), None);
    }

    #[test]
    fn patched_json_exceeds_neither_its_length_nor_its_depth() {
        let times = |operation: &str, count| format!("[{}]", vec![operation; count].join(","));
        let doubling = times(r#"{"op":"copy","from":"","path":"/-"}"#, 1_000);
        assert_eq!(apply_json(b"[1,2]", doubling.as_bytes(), BYTES_MAX), None);
        let nesting = times(r#"{"op":"copy","from":"","path":"/a"}"#, 50_000);
        assert_eq!(apply_json(br#"{"a":1}"#, nesting.as_bytes(), BYTES_MAX), None);
        let wrapping = format!(r#"[{{"op":"add","path":"{}","value":[]}}]"#, "/0".repeat(200));
        assert_eq!(apply_json(b"[]", wrapping.as_bytes(), BYTES_MAX), None);
        let long = br#"[{"op":"add","path":"/-","value":3}]"#;
        assert_eq!(apply_json(b"[1,2]", long, 6), None);
        assert_eq!(apply_json(b"[1,2]", long, 7).as_deref(), Some(&b"[1,2,3]"[..]));
    }
}
