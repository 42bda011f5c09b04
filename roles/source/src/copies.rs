//! The copies of other Sources in a published folder: answers name their Sources, so that a Source recognises its own resources
//! in a copy of a copy.

use crate::names::key_of;
use abreast_folder::CopyOf;
use abreast_webtypes::{Link, visible, without_login, write_link};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most bytes of the links of one answer: web servers in front often read 4 KiB of header fields.
const LINKS_BYTES_MAX: usize = 2 << 10;
/// Copies remembered at most.
const COPIES_MAX: usize = 4_096;

/// The copies that were met in a published folder, by their paths. Cloning shares them.
#[derive(Clone, Debug, Default)]
pub struct Copies(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// The folders of each copy, the first one its own, that are of others, with the addresses of their Sources.
    others: BTreeMap<Vec<u8>, Vec<(Vec<u8>, String)>>,
    /// The folders in each copy that are copies of this Source.
    own: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    /// All of these.
    hidden: HashSet<Vec<u8>>,
}

impl Copies {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a folder was copied from this Source by the Source of the copy that it is in.
    pub(crate) fn has_own_part(&self, path: &[u8]) -> bool {
        self.lock().hidden.contains(path)
    }

    /// Notes what a folder is: a published copy with this record, or not a copy.
    pub(crate) fn set(&self, path: &[u8], copy: Option<CopyOf>, is_own: impl Fn(&str) -> bool) {
        let mut state = self.lock();
        if copy.is_none() && state.others.is_empty() && state.own.is_empty() {
            return;
        }
        let known = state.own.remove(path);
        state.others.remove(path);
        let (mut others, mut own) = (Vec::new(), Vec::new());
        if let Some(copy) = copy.filter(|_| state.others.len() < COPIES_MAX) {
            others.extend(copy.sources.into_iter().map(|source| (path.to_vec(), source)));
            for (part, address) in copy.parts {
                let part = if path.is_empty() { part } else { [path, b"/", &part].concat() };
                if is_own(&address) {
                    own.push(part);
                } else {
                    others.push((part, address));
                }
            }
            others.retain(|(part, _)| !own.contains(part));
        }
        for part in &own {
            if !known.as_ref().is_some_and(|known| known.contains(part)) {
                let part = String::from_utf8_lossy(part);
                tracing::warn!(
                    "`{}` is a copy of this Source itself, which is not published",
                    visible(&part)
                );
            }
        }
        if !others.is_empty() {
            state.others.insert(path.to_vec(), others);
        }
        if known.is_some() || !own.is_empty() {
            if !own.is_empty() {
                state.own.insert(path.to_vec(), own);
            }
            state.hidden = state.own.values().flatten().cloned().collect();
        }
    }

    /// The links of an answer about a set whose resources have addresses below `resources`: where the resources in each copy come
    /// from. `None` if there is no copy.
    pub fn links(&self, resources: &str) -> Option<String> {
        let state = self.lock();
        if state.others.is_empty() {
            return None;
        }
        let mut value = String::new();
        for (path, anchor, target) in announced(&state, resources).take(CopyOf::SOURCES_MAX) {
            let params = vec![("anchor".to_owned(), anchor)];
            let mut next = if value.is_empty() { String::new() } else { ", ".to_owned() };
            write_link(&mut next, &Link { target, rel: "via".into(), params });
            if value.len() + next.len() > LINKS_BYTES_MAX {
                let path = String::from_utf8_lossy(path);
                tracing::debug!("no link names the Source of `{}`", visible(&path));
                continue;
            }
            value.push_str(&next);
        }
        (!value.is_empty()).then_some(value)
    }
}

/// The path of each copy, its address below `resources`, and an address of its Source.
fn announced<'s>(
    state: &'s State,
    resources: &'s str,
) -> impl Iterator<Item = (&'s [u8], String, String)> {
    let mut folder: (&[u8], Vec<String>) = Default::default();
    // The document that was found is a better name of a Source than the address that led to it.
    let of_copy = |others: &'s Vec<(Vec<u8>, String)>| {
        let has_document = others.get(1).is_some_and(|(path, _)| *path == others[0].0);
        let order = if has_document { [1, 0] } else { [0, 1] };
        order.into_iter().chain(2..).take(others.len()).map(|at| &others[at])
    };
    state.others.values().flat_map(of_copy).filter_map(move |(path, address)| {
        let address = without_login(address.split(['?', '#']).next()?).into_owned();
        if folder.0 != path {
            folder = (path, Vec::new());
        }
        if folder.1.iter().any(|known| known.starts_with(&address)) {
            return None;
        }
        folder.1.push(address.clone());
        let slash = if path.is_empty() { "" } else { "/" };
        let key = if path.is_empty() { String::new() } else { key_of(path) };
        Some((path.as_slice(), format!("{resources}{key}{slash}"), address))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(copies: &Copies, path: &[u8], text: &str) {
        let copy = CopyOf::parse(text.as_bytes());
        copies.set(path, Some(copy), |url| url.starts_with("http://h/"));
    }

    #[test]
    fn links_name_the_sources_of_copies() {
        let copies = Copies::default();
        let links = || copies.links("http://h/set/r/").unwrap_or_default();
        copies.set(b"x", None, |_| false);
        assert_eq!(copies.links("http://h/set/r/"), None);
        let record = "http://u:p@b/\nhttp://u:p@b/s/list.xml?key=1\npart http://c/ c d\npart http://h/ h/h\n";
        set(&copies, b"b c", record);
        let expected = "<http://b/s/list.xml>; rel=\"via\"; anchor=\"http://h/set/r/b%20c/\", \
                        <http://c/>; rel=\"via\"; anchor=\"http://h/set/r/b%20c/c%20d/\"";
        assert_eq!(links(), expected);
        assert!(copies.has_own_part(b"b c/h/h") && !copies.has_own_part(b"b c/h"));
        // An address that only redirects is another name.
        set(&copies, b"b c", "http://a/\nhttp://b/list.xml\n");
        assert_eq!((links().matches("rel=").count(), copies.has_own_part(b"b c/h/h")), (2, false));
        copies.set(b"b c", None, |_| false);
        assert_eq!(links(), "");
        // The published folder itself.
        set(&copies, b"", "http://a/\n");
        assert_eq!(links(), "<http://a/>; rel=\"via\"; anchor=\"http://h/set/r/\"");
    }

    #[test]
    fn links_have_a_limit() {
        let copies = Copies::default();
        for number in 0..10_000 {
            let path = format!("{number}");
            set(&copies, path.as_bytes(), &format!("http://{number}/\n"));
        }
        let links = copies.links("http://h/set/r/").unwrap();
        assert!((1_500..=LINKS_BYTES_MAX).contains(&links.len()), "{}", links.len());
        assert_eq!(copies.lock().others.len(), COPIES_MAX);
    }
}
