//! Patches of successive changes of one entity, applied to whichever version is known.

use std::borrow::Cow;
use std::collections::HashMap;

use rdf_patch::{AFTER, BEFORE, ENTITY_PREV, ID, Patch, SKOLEM};

use crate::entity_patch::{ApplyError, apply_entity_patch, named_for, stated};

/// Most bytes of descriptions and patches that are read to apply a chain.
const WORK_MAX: usize = 256 << 20;

/// What a chain of patches made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedChain {
    /// Canonical lines of the last version.
    pub lines: Vec<u8>,
    /// Which of the known versions it was made of; `None` if it begins with nothing.
    pub base: Option<usize>,
    /// How many patches were applied; 0 if that version is the last one.
    pub applied: usize,
}

/// Why a chain of patches leads nowhere. The whole description is to be fetched then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ChainError {
    /// A patch does not state which versions it leads from and to.
    #[error("a patch has no `H before` and `H after`")]
    NoDigests,
    /// A patch has rows about another entity.
    #[error("a patch has rows about another entity")]
    OtherSubject,
    /// A patch names another one than that before it as the one before, or leads from the version
    /// that the last one leads to.
    #[error("the patches do not follow each other")]
    Order,
    /// No patch applies to a version that is known.
    #[error("no patch applies to the version that is kept")]
    NoBase,
    /// The last patch deletes the description.
    #[error("the last patch leaves no statement")]
    Nothing,
    /// The patches and the versions between them are too large together.
    #[error("applying the patches reads more than {} MiB", WORK_MAX >> 20)]
    TooLarge,
    /// A patch does not apply.
    #[error(transparent)]
    Apply(#[from] ApplyError),
}

/// Applies patches of one entity, the oldest first, to one of the known versions: to that which is
/// the latest by their digests. Those before it are left out, and so is one that is there twice.
///
/// # Errors
/// - A patch from there on states no digests, or is about another entity.
/// - The patches do not follow each other, by `H entityPrev` where it is stated, or lead from no known
///   version.
pub fn apply_entity_patches(
    entity: &str,
    known: &[&[u8]],
    patches: &[Patch],
) -> Result<AppliedChain, ChainError> {
    let patches = &each_once(patches);
    let last = *patches.last().ok_or(ChainError::NoBase)?;
    check_order(patches)?;
    let digest = |patch, word| stated(patch, word)?.ok_or(ChainError::NoDigests);
    let mut digests = Digests { entity, known, found: Vec::new() };
    let after = digest(last, AFTER)?;
    if let Some(at) = digests.find(last, after) {
        return Ok(AppliedChain { lines: known[at].to_vec(), base: Some(at), applied: 0 });
    }
    for (first, patch) in patches.iter().enumerate().rev() {
        let before = digest(patch, BEFORE)?;
        let base = digests.find(patch, before);
        if base.is_none() && before != digest_of_nothing() {
            continue;
        }
        let mut lines = Cow::Borrowed(base.map_or(&[][..], |at| known[at]));
        let (mut applied, mut work) = (0, 0_usize);
        for (at, patch) in patches.iter().enumerate().skip(first) {
            if at > first && *patch == patches[at - 1] {
                continue;
            }
            let done = apply_entity_patch(entity, &lines, patch)?;
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

/// The patches without those that were read again: a patch has a name of its own.
fn each_once(patches: &[Patch]) -> Vec<&Patch> {
    let (mut known, mut once) = (HashMap::new(), Vec::with_capacity(patches.len()));
    for patch in patches {
        let id = patch.header.iri(ID);
        if id.is_none_or(|id| known.insert(id, patch) != Some(patch)) {
            once.push(patch);
        }
    }
    once
}

/// Patches in a wrong order would lead to an earlier version.
fn check_order(patches: &[&Patch]) -> Result<(), ChainError> {
    let mut pairs = patches.windows(2).filter(|pair| pair[0] != pair[1]);
    let of = |patch: &Patch, word| patch.header.get(word).cloned();
    let has_names = patches.iter().any(|patch| of(patch, ENTITY_PREV).is_some());
    let is_right = if has_names {
        pairs.all(|pair| of(pair[0], ID).is_some_and(|id| of(pair[1], ENTITY_PREV) == Some(id)))
    } else {
        // Some may be missing, but none may lead on from the last one.
        let end = patches.last().and_then(|last| of(last, AFTER));
        pairs.all(|pair| of(pair[0], AFTER) == of(pair[1], BEFORE))
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

/// The digests of the known versions, as patches state them: by what is in place of blank nodes.
struct Digests<'k> {
    entity: &'k str,
    known: &'k [&'k [u8]],
    found: Vec<(Option<String>, Vec<Option<String>>)>,
}

impl Digests<'_> {
    /// The known version with a digest as this patch states them.
    fn find(&mut self, patch: &Patch, digest: &str) -> Option<usize> {
        let skolem = patch.header.iri(SKOLEM);
        let position = self.found.iter().position(|(known, _)| known.as_deref() == skolem);
        let at = position.unwrap_or_else(|| {
            let of = |lines: &&[u8]| {
                named_for(self.entity, lines, patch).ok().map(|lines| crate::digest_text(&lines))
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

    fn patch(old: &[u8], new: &[u8]) -> Patch {
        patch_after(old, new, "uuid:1", None)
    }

    fn patch_after(old: &[u8], new: &[u8], id: &str, entity_prev: Option<&str>) -> Patch {
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
        Patch::from_slice(&text).unwrap()
    }

    /// `(base, applied)`
    fn made(known: &[&[u8]], patches: &[Patch], expected: &[u8]) -> (Option<usize>, usize) {
        let made = apply_entity_patches(ADA, known, patches).unwrap();
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
        let fails = |known: &[&[u8]], patches: &[Patch]| {
            apply_entity_patches(ADA, known, patches).unwrap_err().to_string()
        };
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
        let error = apply_entity_patches(ADA, &[&a], &[patch(&b, &c), patch(&a, &b)]).unwrap_err();
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
            let error = apply_entity_patches(ADA, &[&a, &b], &wrong).unwrap_err();
            assert!(matches!(error, ChainError::Order), "{error}");
        }
    }

    #[test]
    fn patches_without_digests_or_of_others_are_not_applied() {
        let (a, b) = (version("a"), version("b"));
        let foreign = Patch::from_slice(b"TX .\nA <http://e/ada> <http://e/name> \"a\" .\nTC .\n");
        let foreign = foreign.unwrap();
        let apply = |patches: &[Patch]| apply_entity_patches(ADA, &[&a], patches).unwrap_err();
        assert!(matches!(apply(std::slice::from_ref(&foreign)), ChainError::NoDigests));
        assert!(matches!(apply(&[]), ChainError::NoBase));
        assert!(matches!(apply(&[patch(&a, &b), foreign]), ChainError::NoDigests));
        let text = patch(&a, &b).to_text().unwrap();
        let text = text.replace("TC .", "A <http://e/bob> <http://e/name> \"B\" .\nTC .");
        let other = Patch::from_slice(text.as_bytes()).unwrap();
        assert!(matches!(apply(&[other]), ChainError::OtherSubject));
    }
}
