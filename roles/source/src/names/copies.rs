//! Copies of other Sources in a published folder. Responses contain links to these Sources, so that
//! a Source recognizes its own resources in a copy of a copy.

use crate::names::keys::key_of;
use abreast_folder::{CopyOf, ErrorKind, Folder};
use abreast_net::Reach;
use abreast_webtypes::{Link, visible, without_login, write_link};
use std::collections::{BTreeMap, HashSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most bytes of the links in a response. Many reverse proxies accept 4 KiB of header fields in
/// total.
const LINKS_BYTES_MAX: usize = 2 << 10;
/// Most copies of other Sources in memory.
const COPIES_MAX: usize = 4_096;

/// Copies found in a published folder, by path. Clones share the copies.
#[derive(Clone, Debug, Default)]
pub struct Copies(Arc<Mutex<State>>);

/// Device and inode number of a folder.
pub(crate) type Number = (u64, u64);

#[derive(Debug, Default)]
struct State {
    /// Copies by the path of their folder.
    found: BTreeMap<Vec<u8>, Found>,
    /// Folders in copies that are copies of this Source.
    hidden: HashSet<Vec<u8>>,
    /// Whether the log already contains the message that links of some copies are omitted.
    is_cut: bool,
}

/// A copy of another Source in the published folder.
#[derive(Debug)]
struct Found {
    number: Number,
    others: Vec<Other>,
    /// Folders in the copy that are copies of this Source.
    own: Vec<Vec<u8>>,
}

/// A folder of a copy, with an address of its Source that may be published. The folder of the copy
/// itself comes first.
#[derive(Debug)]
struct Other {
    path: Vec<u8>,
    address: String,
    reach: Reach,
}

impl Other {
    fn new(path: Vec<u8>, address: &str) -> Self {
        let end = address.find(['?', '#']).unwrap_or(address.len());
        let address = without_login(&address[..end]).into_owned();
        Self { path, reach: Reach::of(&address), address }
    }
}

impl State {
    fn hide(&mut self) {
        self.hidden = self.found.values().flat_map(|found| &found.own).cloned().collect();
    }
}

impl Copies {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a folder in a copy is a copy of this Source, made by the Source of the outer copy.
    pub(crate) fn has_own_part(&self, path: &[u8]) -> bool {
        self.lock().hidden.contains(path)
    }

    /// Whether the copy at a path is known and still has this device and inode number.
    pub(crate) fn has(&self, path: &[u8], number: Number) -> bool {
        self.lock().found.get(path).is_some_and(|found| found.number == number)
    }

    /// Records the result of examining a folder: a published copy with this record, or not a copy.
    pub(crate) fn set(
        &self,
        path: &[u8],
        copy: Option<(Number, CopyOf)>,
        is_own: impl Fn(&str) -> bool,
    ) {
        let mut state = self.lock();
        if copy.is_none() && state.found.is_empty() {
            return;
        }
        let known = state.found.remove(path).map(|found| found.own).unwrap_or_default();
        let mut own = Vec::new();
        if let Some((number, copy)) = copy.filter(|_| state.found.len() < COPIES_MAX) {
            let sources = copy.sources.iter();
            let mut others: Vec<_> =
                sources.map(|source| Other::new(path.to_vec(), source)).collect();
            for (part, address) in copy.parts {
                let is_whole = part.is_empty();
                let part = match (path, &part[..]) {
                    (b"", _) => part,
                    (_, b"") => path.to_vec(),
                    _ => [path, b"/", &part].concat(),
                };
                if !is_own(&address) {
                    others.push(Other::new(part, &address));
                } else if !is_whole {
                    own.push(part);
                }
            }
            others.retain(|other| !own.contains(&other.path));
            state.found.insert(path.to_vec(), Found { number, others, own: own.clone() });
        }
        for part in own.iter().filter(|part| !known.contains(part)) {
            let part = String::from_utf8_lossy(part);
            tracing::warn!(
                "`{}` is a copy of this Source itself, which is not published",
                visible(&part)
            );
        }
        if !known.is_empty() || !own.is_empty() {
            state.hide();
        }
    }

    /// Removes deleted copies at or below a path from memory.
    pub(crate) fn sweep(&self, folder: &Folder, path: &[u8]) {
        let known: Vec<_> = {
            let state = self.lock();
            let range = state.found.range::<[u8], _>((Bound::Included(path), Bound::Unbounded));
            let beneath = range.map(|(known, _)| known).take_while(|known| known.starts_with(path));
            beneath.filter(|known| is_beneath(known, path)).cloned().collect()
        };
        let names = |path: &[u8]| folder.dir(path.split(|b| *b == b'/').filter(|n| !n.is_empty()));
        let is_gone = |path: &Vec<u8>| {
            let absent = [ErrorKind::NotFound, ErrorKind::NotFolder, ErrorKind::Symlink];
            names(path).is_err_and(|error| absent.contains(&error.kind()))
        };
        let gone: Vec<_> = known.into_iter().filter(is_gone).collect();
        if !gone.is_empty() {
            let mut state = self.lock();
            state.found.retain(|path, _| !gone.contains(path));
            state.hide();
        }
    }

    /// Returns the value of the Link header for a set whose resources have addresses below
    /// `resources`: the origin of the resources in each copy; `None` if the folder does not contain
    /// a copy. If `resources` is public, addresses that are valid only on this machine or its
    /// network are omitted, because they would lead a client to another host.
    pub fn links(&self, resources: &str) -> Option<String> {
        let mut state = self.lock();
        if state.found.is_empty() {
            return None;
        }
        let (mut value, mut cut) = (String::new(), None);
        for (path, anchor, target) in announced(&state, resources) {
            let params = vec![("anchor".to_owned(), anchor)];
            let mut next = if value.is_empty() { String::new() } else { ", ".to_owned() };
            write_link(&mut next, &Link { target, rel: "via".into(), params });
            if value.len() + next.len() > LINKS_BYTES_MAX {
                cut = Some(String::from_utf8_lossy(path).into_owned());
                break;
            }
            value.push_str(&next);
        }
        if let Some(path) = cut
            && !std::mem::replace(&mut state.is_cut, true)
        {
            tracing::warn!(
                "answers do not name the Sources of all copies in the folder, such as that of `{}`: their links have at most {LINKS_BYTES_MAX} bytes",
                visible(&path)
            );
        }
        (!value.is_empty()).then_some(value)
    }
}

/// Whether a path is equal to `outer` or below it.
fn is_beneath(path: &[u8], outer: &[u8]) -> bool {
    let rest = path.strip_prefix(outer);
    outer.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// Iterates over copies: path, address below `resources`, and an address of the Source.
fn announced<'s>(
    state: &'s State,
    resources: &'s str,
) -> impl Iterator<Item = (&'s [u8], String, String)> {
    let reach = Reach::of(resources);
    let mut folder: (&[u8], Vec<&str>) = Default::default();
    // The URL of the document that was found identifies a Source better than a URL that redirected
    // to the document.
    let of_copy = |found: &'s Found| {
        let others = &found.others;
        let has_document = others.get(1).is_some_and(|other| other.path == others[0].path);
        let order = if has_document { [1, 0] } else { [0, 1] };
        order.into_iter().chain(2..).take(others.len()).map(|at| &others[at])
    };
    let others = state.found.values().flat_map(of_copy).filter(move |other| other.reach >= reach);
    others.filter_map(move |Other { path, address, .. }| {
        if folder.0 != path {
            folder = (path, Vec::new());
        }
        if folder.1.iter().any(|known| known.starts_with(address)) {
            return None;
        }
        folder.1.push(address);
        let slash = if path.is_empty() { "" } else { "/" };
        let key = if path.is_empty() { String::new() } else { key_of(path) };
        Some((path.as_slice(), format!("{resources}{key}{slash}"), address.clone()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(copies: &Copies, path: &[u8], text: &str) {
        let copy = CopyOf::parse(text.as_bytes());
        copies.set(path, Some(((0, 0), copy)), |url| url.starts_with("http://h/"));
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
        // An address that only redirects also identifies the Source.
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
            set(&copies, path.as_bytes(), &format!("http://n{number}/\n"));
        }
        let links = copies.links("http://h/set/r/").unwrap();
        assert!((1_500..=LINKS_BYTES_MAX).contains(&links.len()), "{}", links.len());
        assert!(copies.lock().is_cut);
        assert_eq!(copies.lock().found.len(), COPIES_MAX);
    }

    #[test]
    fn addresses_of_a_machine_stay_in_it() {
        let copies = Copies::default();
        let record = "http://127.0.0.1:8080/\nhttp://localhost/list.xml\npart http://10.1.1.1/ x\n\
                      part http://[::1]/ y\npart http://c.example/ z\n";
        set(&copies, b"b", record);
        for (resources, expected) in [
            ("http://127.0.0.1/r/", 5),
            ("http://localhost:80/r/", 5),
            ("http://192.168.1.1/r/", 2),
            ("http://8.8.8.8/r/", 1),
            ("https://papers.example.org/r/", 1),
        ] {
            let links = copies.links(resources).unwrap();
            assert_eq!(links.matches("rel=").count(), expected, "{resources}: {links}");
        }
        set(&copies, b"b", "http://127.0.0.1:8080/\n");
        assert_eq!(copies.links("http://8.8.8.8/r/"), None);
    }

    #[test]
    fn a_part_without_a_folder_is_the_whole_copy() {
        let copies = Copies::default();
        set(&copies, b"b", "http://b/\nhttp://b/\npart http://c/ \npart http://h/ \n");
        let links = copies.links("http://x/").unwrap();
        let expected = "<http://b/>; rel=\"via\"; anchor=\"http://x/b/\", \
                        <http://c/>; rel=\"via\"; anchor=\"http://x/b/\"";
        assert_eq!(links, expected);
        // The rule for folders hides the copy.
        assert!(!copies.has_own_part(b"b") && !copies.has_own_part(b"b/"));
        set(&copies, b"", "http://b/\nhttp://b/\npart http://h/ \npart http://h/ y\n");
        assert!(!copies.has_own_part(b"") && copies.has_own_part(b"y"));
    }

    #[test]
    fn copies_that_are_gone_are_forgotten() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let copies = Copies::default();
        let known = || {
            let state = copies.lock();
            let paths = state.found.keys().map(|path| String::from_utf8(path.clone()).unwrap());
            (paths.collect::<Vec<_>>().join(" "), state.hidden.len())
        };
        for path in ["", "a", "a/b", "a b", "c/d"] {
            std::fs::create_dir_all(place.path().join(path)).unwrap();
            set(&copies, path.as_bytes(), "http://x/\npart http://h/ own\n");
        }
        copies.sweep(&folder, b"");
        assert_eq!(known(), (" a a b a/b c/d".to_owned(), 5));
        std::fs::remove_dir(place.path().join("a b")).unwrap();
        std::fs::remove_dir_all(place.path().join("a")).unwrap();
        std::fs::write(place.path().join("a"), "").unwrap();
        copies.sweep(&folder, b"a/x");
        assert_eq!(known().1, 5);
        copies.sweep(&folder, b"a");
        assert_eq!(known(), (" a b c/d".to_owned(), 3));
        std::fs::rename(place.path().join("c"), place.path().join("e")).unwrap();
        copies.sweep(&folder, b"");
        assert_eq!(known(), (String::new(), 1));
    }
}
