//! Patches of successive changes of an entity, applied to any known version.
//!
//! Headers are read first, then the rows of one patch after the other: a chain needs the memory of
//! its largest patch.

use std::borrow::Cow;
use std::collections::HashMap;

use rdf_patch::{
    AFTER, BEFORE, ENTITY_PREV, Header, ID, Patch, ReadError, ReadLimits, ReadOptions, Reader, Row,
    SKOLEM,
};

use crate::entity::closure::DescriptionLimits;
use crate::patch::entity_patch::{ApplyError, apply_entity_patch, named_for, stated};

/// Most bytes of descriptions and patches that are read to apply a chain.
const WORK_MAX: usize = 256 << 20;
/// Most different `H skolem` in a chain: for each, all known versions are written and hashed.
const SKOLEM_MAX: usize = 4;
/// Most rows of a patch in addition to its changes.
const OTHER_ROWS_MAX: u64 = 1_000;

/// The result of applying a chain of patches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedChain {
    /// Canonical lines of the last version.
    pub lines: Vec<u8>,
    /// Index of the known version that was used; `None` if the chain starts from nothing.
    pub base: Option<usize>,
    /// How many patches were applied; 0 if that version is the last one.
    pub applied: usize,
}

/// The reason why a chain of patches cannot be applied. Then fetch the whole description.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// A patch is not strict RDF Patch, or has more rows than two descriptions may have statements.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A patch does not have the digests of the versions before and after it.
    #[error("a patch has no `H before` and `H after`")]
    NoDigests,
    /// A patch has rows about another entity.
    #[error("a patch has rows about another entity")]
    OtherSubject,
    /// `H entityPrev` of a patch is not the patch before it, or a patch starts from the version
    /// that the last one leads to.
    #[error("the patches do not follow each other")]
    Order,
    /// None of the patches applies to a known version.
    #[error("no patch applies to the version that is kept")]
    NoBase,
    /// The last patch deletes the description.
    #[error("the last patch leaves no statement")]
    Nothing,
    /// The patches and the versions between them are too large together.
    #[error("applying the patches reads more than {} MiB", WORK_MAX >> 20)]
    TooLarge,
    /// The patches have too many prefixes of IRIs in place of blank nodes.
    #[error("the patches have more than {SKOLEM_MAX} different `H skolem`")]
    Skolem,
    /// A patch does not apply.
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

/// A patch whose rows were not read yet.
#[derive(Clone, Copy)]
struct Unread<'p> {
    text: &'p [u8],
    header: &'p Header,
}

/// Applies patches of an entity as text, the oldest first, to one of the known versions: the
/// version that is the latest by the digests of the patches. Earlier patches are skipped, and
/// duplicates too.
///
/// # Errors
/// - A later patch is not strict RDF Patch, does not have digests, or is about another entity.
/// - The patches do not follow each other, by `H entityPrev` if present, or do not start from a
///   known version.
/// - A patch or a version has more than [`DescriptionLimits`] permits by default.
pub fn apply_entity_patches(
    entity: &str,
    known: &[&[u8]],
    patches: &[&[u8]],
) -> Result<AppliedChain, ChainError> {
    let headers: Vec<Header> =
        patches.iter().map(|text| read_header(text)).collect::<Result<_, _>>()?;
    check_skolem(&headers)?;
    let patches = &each_once(patches, &headers);
    let last = *patches.last().ok_or(ChainError::NoBase)?;
    check_order(patches)?;
    let digest = |patch: Unread<'_>, word| {
        Ok::<_, ChainError>(stated(patch.header, word)?.ok_or(ChainError::NoDigests)?.to_owned())
    };
    let mut digests = Digests { entity, known, found: Vec::new() };
    if let Some(at) = digests.find(last.header, &digest(last, AFTER)?) {
        return Ok(AppliedChain { lines: known[at].to_vec(), base: Some(at), applied: 0 });
    }
    for (first, patch) in patches.iter().enumerate().rev() {
        let before = digest(*patch, BEFORE)?;
        let base = digests.find(patch.header, &before);
        if base.is_none() && before != digest_of_nothing() {
            continue;
        }
        let mut lines = Cow::Borrowed(base.map_or(&[][..], |at| known[at]));
        let (mut applied, mut work) = (0, 0_usize);
        for (at, patch) in patches.iter().enumerate().skip(first) {
            if at > first && patch.text == patches[at - 1].text {
                continue;
            }
            let done = apply_entity_patch(entity, &lines, &read(patch.text)?)?;
            if !done.is_verified {
                return Err(ChainError::NoDigests);
            }
            if done.other_subjects > 0 {
                return Err(ChainError::OtherSubject);
            }
            work = work.saturating_add(lines.len() + done.description.lines.len());
            if work > WORK_MAX {
                return Err(ChainError::TooLarge);
            }
            lines = Cow::Owned(done.description.lines);
            applied += 1;
        }
        if lines.is_empty() {
            return Err(ChainError::Nothing);
        }
        return Ok(AppliedChain { lines: lines.into_owned(), base, applied });
    }
    Err(ChainError::NoBase)
}

/// Reads a patch from one description to another. It may remove all statements of the first, and
/// add all of the second.
fn read(text: &[u8]) -> Result<Patch, ReadError> {
    let mut limits = ReadLimits::default();
    limits.rows = 2 * DescriptionLimits::default().statements as u64 + OTHER_ROWS_MAX;
    Patch::read(text, &ReadOptions::default().with_limits(limits)).map(|(patch, _)| patch)
}

/// Reads the rows of a patch's header that a chain needs.
fn read_header(text: &[u8]) -> Result<Header, ReadError> {
    let mut header = Header::default();
    for row in Reader::new(text, ReadOptions::default()) {
        let Row::Header { word, value } = row? else { break };
        let is_used = [ID, ENTITY_PREV, BEFORE, AFTER, SKOLEM].contains(&word.as_str());
        if is_used && header.get(&word).is_none() {
            header.push(word, value);
        }
    }
    Ok(header)
}

fn check_skolem(headers: &[Header]) -> Result<(), ChainError> {
    let mut different = Vec::new();
    for skolem in headers.iter().filter_map(|header| header.iri(SKOLEM)) {
        if !different.contains(&skolem) {
            different.push(skolem);
        }
        if different.len() > SKOLEM_MAX {
            return Err(ChainError::Skolem);
        }
    }
    Ok(())
}

/// The patches without duplicates: patches are identified by their `H id`.
fn each_once<'p>(patches: &[&'p [u8]], headers: &'p [Header]) -> Vec<Unread<'p>> {
    let (mut known, mut once) = (HashMap::new(), Vec::with_capacity(patches.len()));
    for (text, header) in patches.iter().zip(headers) {
        let id = header.iri(ID);
        if id.is_none_or(|id| known.insert(id, *text) != Some(*text)) {
            once.push(Unread { text, header });
        }
    }
    once
}

/// Checks the order, because patches in a wrong order would lead to an earlier version.
fn check_order(patches: &[Unread<'_>]) -> Result<(), ChainError> {
    let mut pairs = patches.windows(2).filter(|pair| pair[0].text != pair[1].text);
    let of = |patch: &Unread<'_>, word| patch.header.get(word).cloned();
    let has_names = patches.iter().any(|patch| of(patch, ENTITY_PREV).is_some());
    let is_right = if has_names {
        pairs.all(|pair| of(&pair[0], ID).is_some_and(|id| of(&pair[1], ENTITY_PREV) == Some(id)))
    } else {
        // Patches may be missing, but the last patch must be the end of the chain.
        let end = patches.last().and_then(|last| of(last, AFTER));
        pairs.all(|pair| of(&pair[0], AFTER) == of(&pair[1], BEFORE))
            || end.is_none()
            || patches.iter().all(|patch| of(patch, BEFORE) != end)
    };
    if is_right { Ok(()) } else { Err(ChainError::Order) }
}

fn digest_of_nothing() -> &'static str {
    static NOTHING: std::sync::LazyLock<String> =
        std::sync::LazyLock::new(|| crate::digest_text(b""));
    &NOTHING
}

/// The digests of the known versions, by the terms that a patch has in place of blank nodes.
struct Digests<'k> {
    entity: &'k str,
    known: &'k [&'k [u8]],
    found: Vec<(Option<String>, Vec<Option<String>>)>,
}

impl Digests<'_> {
    /// The known version with this digest, computed as in a patch with this header.
    fn find(&mut self, header: &Header, digest: &str) -> Option<usize> {
        let skolem = header.iri(SKOLEM);
        let position = self.found.iter().position(|(known, _)| known.as_deref() == skolem);
        let at = position.unwrap_or_else(|| {
            let of = |lines: &&[u8]| {
                named_for(self.entity, lines, header).ok().map(|lines| crate::digest_text(&lines))
            };
            let digests = self.known.iter().map(of).collect();
            self.found.push((skolem.map(str::to_owned), digests));
            self.found.len() - 1
        });
        self.found[at].1.iter().position(|known| known.as_deref() == Some(digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EntityPatch, PatchBlankNodes, canonical_lines};

    const ADA: &str = "http://e/ada";

    /// A version of an entity that has blank nodes.
    fn version(name: &str) -> Vec<u8> {
        let text = format!(
            "<http://e/ada> <http://e/name> \"{name}\" .\n<http://e/ada> <http://e/home> _:x .\n\
             _:x <http://e/of> \"{name}\" .\n_:x <http://e/in> \"London\" .\n"
        );
        canonical_lines(text.as_bytes()).unwrap().lines
    }

    fn patch(old: &[u8], new: &[u8]) -> Vec<u8> {
        patch_after(old, new, "uuid:1", None)
    }

    fn patch_after(old: &[u8], new: &[u8], id: &str, entity_prev: Option<&str>) -> Vec<u8> {
        let mut text = Vec::new();
        EntityPatch {
            entity: ADA,
            old,
            new,
            id,
            prev: None,
            entity_prev,
            blank_nodes: PatchBlankNodes::Skolem("https://example.org"),
        }
        .write(&mut text)
        .unwrap();
        text
    }

    fn apply(known: &[&[u8]], patches: &[Vec<u8>]) -> Result<AppliedChain, ChainError> {
        let patches: Vec<&[u8]> = patches.iter().map(Vec::as_slice).collect();
        apply_entity_patches(ADA, known, &patches)
    }

    /// `(base, applied)`
    fn made(known: &[&[u8]], patches: &[Vec<u8>], expected: &[u8]) -> (Option<usize>, usize) {
        let made = apply(known, patches).unwrap();
        assert_eq!(made.lines, expected);
        (made.base, made.applied)
    }

    #[test]
    fn a_chain_begins_with_whatever_is_known() {
        let [a, b, c, other] = ["a", "b", "c", "other"].map(version);
        let chain = [patch(b"", &a), patch(&a, &b), patch(&b, &c)];
        assert_eq!(made(&[], &chain, &c), (None, 3));
        assert_eq!(made(&[&a], &chain, &c), (Some(0), 2));
        assert_eq!(made(&[&a, &b], &chain, &c), (Some(1), 1));
        assert_eq!(made(&[&c], &chain, &c), (Some(0), 0));
        assert_eq!(made(&[&other], &chain, &c), (None, 3));
        let fails =
            |known: &[&[u8]], patches: &[Vec<u8>]| apply(known, patches).unwrap_err().to_string();
        assert!(fails(&[&other], &chain[1..]).contains("no patch applies"));
        // A patch is missing between two others.
        let gap = [patch(&a, &b), patch(&c, &other)];
        assert!(fails(&[&a], &gap).contains("another version"));
        assert_eq!(made(&[&c], &gap, &other), (Some(0), 1));
        let deleted = [patch(&a, b"")];
        assert!(fails(&[&a], &deleted).contains("no statement"));
    }

    #[test]
    fn a_version_that_comes_back_is_found() {
        let [a, b, c] = ["a", "b", "c"].map(version);
        let chain = [patch(&a, &b), patch(&b, &a), patch(&a, &c)];
        assert_eq!(made(&[&a], &chain, &c), (Some(0), 1));
        let again = [patch(b"", &a), patch(&a, b""), patch(b"", &b)];
        assert_eq!(made(&[&c], &again, &b), (None, 1));
        // Two of one time are in the wrong order, and nothing but the versions shows it.
        let error = apply(&[&a], &[patch(&b, &c), patch(&a, &b)]).unwrap_err();
        assert!(matches!(error, ChainError::Order), "{error}");
        // The change at the end of an earlier reading is read again.
        let twice = [patch(&a, &b), patch(&a, &b), patch(&b, &c), patch(&b, &c)];
        assert_eq!(made(&[&a], &twice, &c), (Some(0), 2));
    }

    #[test]
    fn patches_that_name_those_before_them_are_in_that_order() {
        let [a, b, c] = ["a", "b", "c"].map(version);
        let one = patch_after(b"", &a, "uuid:1", None);
        let two = patch_after(&a, &b, "uuid:2", Some("uuid:1"));
        let three = patch_after(&b, &c, "uuid:3", Some("uuid:2"));
        let all = [&one, &two, &two, &three].map(Clone::clone);
        assert_eq!(made(&[], &all, &c), (None, 3));
        let again = [&one, &two, &one, &two, &three].map(Clone::clone);
        assert_eq!(made(&[&a], &again, &c), (Some(0), 2));
        for wrong in [[&two, &one], [&three, &two], [&one, &three]] {
            let wrong = wrong.map(Clone::clone);
            let error = apply(&[&a, &b], &wrong).unwrap_err();
            assert!(matches!(error, ChainError::Order), "{error}");
        }
    }

    #[test]
    fn patches_without_digests_or_of_others_are_not_applied() {
        let (a, b) = (version("a"), version("b"));
        let foreign = b"TX .\nA <http://e/ada> <http://e/name> \"a\" .\nTC .\n".to_vec();
        let apply = |patches: &[Vec<u8>]| apply(&[&a], patches).unwrap_err();
        assert!(matches!(apply(std::slice::from_ref(&foreign)), ChainError::NoDigests));
        assert!(matches!(apply(&[]), ChainError::NoBase));
        assert!(matches!(apply(&[patch(&a, &b), foreign]), ChainError::NoDigests));
        let text = String::from_utf8(patch(&a, &b)).unwrap();
        let text = text.replace("TC .", "A <http://e/bob> <http://e/name> \"B\" .\nTC .");
        assert!(matches!(apply(&[text.into_bytes()]), ChainError::OtherSubject));
        assert!(matches!(apply(&[b"A <http".to_vec()]), ChainError::Read(_)));
    }

    /// A patch from nothing to what the rows add, or claim to.
    fn claimed(skolem: &str, rows: impl Iterator<Item = String>) -> Vec<u8> {
        let (before, after) = (digest_of_nothing(), crate::digest_text(b"other"));
        let rows: String = rows.collect();
        format!("H before \"{before}\" .\nH after \"{after}\" .\n{skolem}TX .\n{rows}TC .\n")
            .into_bytes()
    }

    #[test]
    fn rows_beyond_two_descriptions_are_not_held() {
        let most = DescriptionLimits::default().statements;
        // As many changes of one statement as fit: nothing of them is left in the end.
        let row = |number: usize| ["A", "D"][number % 2].to_owned() + " <a:> <b:> <c:> .\n";
        let long = claimed("", (0..3 * most).map(row));
        let error = apply(&[], &[long]).unwrap_err();
        assert!(matches!(&error, ChainError::Read(_)), "{error}");
        assert!(error.to_string().contains("rows"), "{error}");
        // A description may have less than a patch has rows.
        let row = |number: usize| format!("A <http://e/ada> <b:> <c:{number}> .\n");
        let error = apply(&[], &[claimed("", (0..=most).map(row))]).unwrap_err();
        assert!(matches!(error, ChainError::Apply(ApplyError::TooLarge(_))), "{error}");
        let transactions = (0..3 * most).map(|_| "TC .\nTX .\n".to_owned());
        let error = apply(&[], &[claimed("", transactions)]).unwrap_err();
        assert!(matches!(error, ChainError::Read(_)), "{error}");
    }

    #[test]
    fn a_chain_has_few_prefixes_of_blank_nodes() {
        let a = version("a");
        let with = |number: usize| {
            let skolem = format!("H skolem <https://h{number}.example/.well-known/genid/> .\n");
            claimed(&skolem, std::iter::empty())
        };
        let of = |count: usize| {
            let patches: Vec<Vec<u8>> = (0..1_000).map(|number| with(number % count)).collect();
            apply(&[&a], &patches).unwrap_err()
        };
        assert!(matches!(of(SKOLEM_MAX + 1), ChainError::Skolem));
        assert!(!matches!(of(SKOLEM_MAX), ChainError::Skolem));
    }
}
