//! Further paths of a file that symbolic links lead to. A file system event contains only the path
//! of the target.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Most symbolic links in memory. Scans detect changes of files behind further links.
pub(crate) const MAX_ALIASES: usize = 10_000;

/// A followed symbolic link: path of the link, and path of its target.
pub(crate) type Alias = (Vec<u8>, Vec<u8>);

/// Followed symbolic links by the paths of their targets.
#[derive(Debug, Default)]
pub(crate) struct Aliases(Mutex<BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>>);

impl Aliases {
    /// Replaces all links with the links found by a full scan.
    pub(crate) fn replace(&self, aliases: Vec<Alias>) {
        let mut known = self.lock();
        known.clear();
        for (alias, real) in aliases {
            known.entry(real).or_default().insert(alias);
        }
    }

    /// Adds links, up to [`MAX_ALIASES`].
    pub(crate) fn add(&self, aliases: impl IntoIterator<Item = Alias>) {
        let mut known = self.lock();
        let mut count: usize = known.values().map(BTreeSet::len).sum();
        for (alias, real) in aliases {
            if count >= MAX_ALIASES {
                return;
            }
            count += usize::from(known.entry(real).or_default().insert(alias));
        }
    }

    /// Returns the further paths of the file or folder at a path.
    pub(crate) fn of(&self, path: &[u8]) -> Vec<Vec<u8>> {
        let known = self.lock();
        if known.is_empty() {
            return Vec::new();
        }
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end);
        let mut others = Vec::new();
        for end in ends.chain([path.len()]) {
            for alias in known.get(&path[..end]).into_iter().flatten() {
                others.push([alias.as_slice(), &path[end..]].concat());
            }
        }
        others
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, BTreeSet<Vec<u8>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_to_a_path_or_its_folders_gives_another_path() {
        let aliases = Aliases::default();
        let pair = |alias: &str, real: &str| (alias.as_bytes().to_vec(), real.as_bytes().to_vec());
        aliases.replace(vec![pair("gone", "a")]);
        aliases.replace(vec![pair("link", "a/b"), pair("other", "a/b"), pair("leaf", "a/b/c")]);
        let of = |path: &str| -> Vec<String> {
            aliases
                .of(path.as_bytes())
                .into_iter()
                .map(|path| String::from_utf8(path).unwrap())
                .collect()
        };
        assert_eq!(of("a/b/c"), ["link/c", "other/c", "leaf"]);
        assert_eq!(of("a/b"), ["link", "other"]);
        assert!(of("a").is_empty() && of("a/bc").is_empty());
        aliases.add((0..2 * MAX_ALIASES).map(|number| pair(&number.to_string(), "x")));
        assert_eq!(of("x").len(), MAX_ALIASES - 3);
    }
}
