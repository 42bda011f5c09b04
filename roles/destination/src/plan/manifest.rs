//! A manifest: the mapping from resources to members of a package.

use crate::plan::listed::Listed;
use crate::report::failure::Failure;
use crate::request::package::archive::{Found, Package};
use crate::request::package::buckets::Buckets;
use abreast_webtypes::{Moment, Timestamp, excerpt};
use std::hash::{BuildHasher as _, RandomState};

/// Maximum number of entries without a member that are reported individually.
const FAULTS_MAX: usize = 1_000;

/// Maximum number of different media types; the media types of further entries are ignored.
const MEDIA_TYPES_MAX: usize = 64;

/// A manifest that was read: the members for each URI.
#[derive(Debug)]
pub(crate) struct Manifest {
    /// Entries, sorted by the hashes of their URIs. Several entries for a URI remain in the order
    /// of the manifest.
    listed: Vec<Placed>,
    buckets: Buckets,
    hasher: RandomState,
    /// The different media types in the entries, up to a maximum number.
    media_types: Vec<Box<str>>,
    /// One bit for each member, set if an entry refers to the member.
    named: Vec<u64>,
    /// Entries whose path does not lead to a member.
    pub(crate) faults: Vec<(String, Failure)>,
    /// Number of entries with such a path, including unreported ones.
    pub(crate) faulty: u64,
    /// Number of members to which no entry refers.
    pub(crate) strays: u64,
    /// The instant of the snapshot, at the earliest.
    pub(crate) at: Option<Timestamp>,
    /// The interval of the changes, if the manifest contains it.
    pub(crate) from: Option<Moment>,
    pub(crate) until: Option<Moment>,
    /// Number of entries that could not be parsed and were left out.
    pub(crate) skipped: u64,
    /// Times were written without a zone.
    pub(crate) zoneless: bool,
}

/// The place and the properties of the bytes of an entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    uri: u64,
    pub(crate) number: u32,
    /// Last modification of the resource in microseconds, if the entry contains it.
    pub(crate) modified: Option<i64>,
    /// The time of the change in microseconds, if the entry contains it.
    pub(crate) changed: Option<i64>,
    /// Index of the entry's media type in [`Manifest::media_types`].
    media_type: Option<u8>,
}

impl Manifest {
    pub(crate) fn new(package: &Package) -> Self {
        Self {
            listed: Vec::new(),
            buckets: Buckets::of(0, |_| 0),
            hasher: RandomState::new(),
            media_types: Vec::new(),
            named: vec![0_u64; package.members() / 64 + 1],
            faults: Vec::new(),
            faulty: 0,
            strays: 0,
            at: None,
            from: None,
            until: None,
            skipped: 0,
            zoneless: false,
        }
    }

    /// Records that an entry refers to a member.
    pub(crate) fn name(&mut self, number: u32) {
        self.named[number as usize / 64] |= 1 << (number % 64);
    }

    /// All entries were added.
    pub(crate) fn finish(&mut self, package: &Package) {
        // The sort is stable, so several entries for a URI remain in the order of the manifest.
        self.listed.sort_by_key(|listed| listed.uri);
        self.buckets = Buckets::of(self.listed.len(), |at| self.listed[at].uri);
        let named: u64 = self.named.iter().map(|bits| u64::from(bits.count_ones())).sum();
        self.strays = (package.count() as u64).saturating_sub(named);
        self.named = Vec::new();
    }

    /// Adds an entry; `path` is the path of the member with its bytes.
    pub(crate) fn add(&mut self, package: &Package, listed: &Listed<'_>, path: Option<&str>) {
        if listed.is_deletion() {
            return;
        }
        let (uri, place) = (listed.uri, package.place(listed.uri, path));
        let (has_path, path) = (path.is_some(), path.unwrap_or_default());
        let fault = match place {
            Found::Member(number)
                if package.member(number).is_coded() && listed.digests.strongest().is_none() =>
            {
                self.name(number);
                let message = "its record has a Content-Encoding, and no digest is listed";
                Failure::new("dump.encoding", message)
            }
            Found::Member(number) => {
                self.name(number);
                let (uri, modified) =
                    (self.hasher.hash_one(uri.as_bytes()), listed.sure_modified());
                let changed = listed.changed.map(|time| time.first().as_micros());
                let media_type = listed.media_type.and_then(|name| self.number_of(name));
                self.listed.push(Placed { uri, number, modified, changed, media_type });
                return;
            }
            Found::Escape if !has_path => {
                Failure::refused("dump.missing", "the manifest gives no path")
            }
            Found::Escape => {
                let message = format!("`{}` is not a path within the package", excerpt(path));
                Failure::refused("path.escape", message)
            }
            Found::Missing if package.is_warc() => {
                Failure::new("dump.missing", "there is no record of it in the package")
            }
            Found::Missing => {
                let message =
                    format!("the manifest names `{}`, which is not in the package", excerpt(path));
                Failure::refused("dump.missing", message)
            }
        };
        self.faulty += 1;
        if self.faults.len() < FAULTS_MAX {
            self.faults.push((uri.to_owned(), fault));
        }
    }

    fn number_of(&mut self, media_type: &str) -> Option<u8> {
        if let Some(known) = self.media_types.iter().position(|known| **known == *media_type) {
            return Some(known as u8);
        }
        // The media type is later used as the value of a header.
        let is_header = media_type.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        let has_room = self.media_types.len() < MEDIA_TYPES_MAX;
        (is_header && has_room).then(|| {
            self.media_types.push(media_type.into());
            (self.media_types.len() - 1) as u8
        })
    }

    /// The media type in an entry.
    pub(crate) fn media_type(&self, placed: Placed) -> Option<&str> {
        placed.media_type.map(|number| &*self.media_types[usize::from(number)])
    }

    /// The members for a URI; the newest last.
    pub(crate) fn members_for(&self, uri: &str) -> impl DoubleEndedIterator<Item = Placed> {
        let hash = self.hasher.hash_one(uri.as_bytes());
        let places = self.buckets.find(hash, |at| self.listed[at].uri);
        self.listed[places].iter().copied()
    }
}
