//! Checks of the paths of members in packages.

use crate::report::{Findings, rules as r};
use abreast_webtypes::excerpt;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Checks the path of a bitstream or patch in a package, which must be unique [rs-core §11.2].
pub(crate) fn path(path: &str, place: (u64, u64), paths: &mut HashSet<u64>, found: &mut Findings) {
    let inside = path.strip_prefix('/');
    if inside.is_none() {
        found.add(&r::MANIFEST_SLASH, place, || format!("`path` is \"{}\"", excerpt(path)));
    }
    let inside = inside.unwrap_or(path);
    let mut segments = inside.split('/');
    let unsafe_path =
        segments.any(|segment| matches!(segment, "" | "." | "..")) || inside == MANIFEST;
    if unsafe_path || path.contains('\\') || path.bytes().any(|byte| byte < b' ') {
        found.add(&r::MANIFEST_SAFE, place, || format!("`path` is \"{}\"", excerpt(path)));
    }
    if is_again(inside, paths) {
        let message = || format!("a second entry for the path {}", excerpt(inside));
        found.add(&r::MANIFEST_ALL, place, message);
    }
}

/// Whether a text is a duplicate. Texts after the limit are not remembered, so their duplicates are
/// not found.
pub(crate) fn is_again(text: &str, seen: &mut HashSet<u64>) -> bool {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let hash = hasher.finish();
    if seen.contains(&hash) {
        return true;
    }
    if seen.len() < SEEN_MAX {
        seen.insert(hash);
    }
    false
}

/// Paths of a manifest, or documents of an index, that are remembered to find duplicates.
pub(crate) const SEEN_MAX: usize = 1_000_000;

pub(crate) const MANIFEST: &str = "manifest.xml";
