//! Record of a dump: a document with the packages of the dump, in the folder of the dump.

use crate::publish::SetUrls;
use abreast_resourcesync::package::ZIP;
use abreast_resourcesync::v1_1::{Capability, Document, Entry, Head, Ln, Root};
use abreast_webtypes::{Digests, Precision, Timestamp, W3cDatetime};

/// Relation in the record for a dump of ResourceSync 0.1 that a package becomes.
const PART: &str = "part";
/// The link to the manifest of a package.
const CONTENTS: &str = "contents";

/// One package, a ZIP file of a dump.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Name of the package without `.zip`, and of its manifest without `.xml`.
    pub stem: String,
    /// Length of the ZIP file in bytes.
    pub length: u64,
    /// Digests of the ZIP file, as documents list them.
    pub digests: Digests,
    /// SHA-256 of the manifest next to the package; `None` in a record of an earlier version.
    pub manifest: Option<[u8; 32]>,
    /// Time `at` of resources, or `from` of changes.
    pub begin: Timestamp,
    /// Time `completed` of resources, or `until` of changes.
    pub end: Timestamp,
    /// Number of dumps of ResourceSync 0.1 that the package becomes; `None` in a record of an
    /// earlier version.
    pub parts: Option<u64>,
}

/// A complete dump with its packages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dump {
    /// Name of the dump, the prefix of the names of its packages; never reused.
    pub name: String,
    /// Time `at` of resources, up to which every change is included, or `from` of changes.
    pub begin: Timestamp,
    /// Time `completed` of resources, or `until` of changes.
    pub end: Timestamp,
    /// Packages of the dump, in the order of their entries.
    pub packages: Vec<Package>,
}

/// Kind of a dump: resources or changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpKind {
    /// A Resource Dump [rs-core §11.1].
    Resources,
    /// A Change Dump, or a part of a Change Dump [rs-core §13.1].
    Changes,
}

impl DumpKind {
    pub(crate) const fn capability(self) -> Capability {
        match self {
            Self::Resources => Capability::ResourceDump,
            Self::Changes => Capability::ChangeDump,
        }
    }
}

impl Dump {
    /// Total length of all packages in bytes.
    pub fn bytes(&self) -> u64 {
        self.packages.iter().map(|package| package.length).sum()
    }

    /// Renders the record as a document.
    pub(super) fn to_document(&self, kind: DumpKind, urls: &SetUrls) -> Document {
        let mut head = Head {
            root: Root::UrlSet,
            capability: Some(kind.capability()),
            links: vec![Ln { rel: "up".to_owned(), href: urls.capability_list(), ..Ln::default() }],
            ..Head::default()
        };
        match kind {
            DumpKind::Resources => {
                (head.at, head.completed) = (Some(exactly(self.begin)), Some(exactly(self.end)));
            }
            DumpKind::Changes => {
                (head.from, head.until) = (Some(exactly(self.begin)), Some(exactly(self.end)));
            }
        }
        Document {
            head,
            entries: self.packages.iter().map(|package| package.to_record(kind, urls)).collect(),
        }
    }

    /// Parses a record; `None` if the document is not a record, or has URLs of another public base.
    pub(super) fn from_document(
        name: &str,
        kind: DumpKind,
        urls: &SetUrls,
        document: Document,
    ) -> Option<Self> {
        let head = &document.head;
        if head.capability != Some(kind.capability()) {
            return None;
        }
        let (begin, end) = match kind {
            DumpKind::Resources => (head.at?, head.completed?),
            DumpKind::Changes => (head.from?, head.until?),
        };
        let packages: Option<Vec<_>> = document
            .entries
            .into_iter()
            .enumerate()
            .map(|(number, entry)| {
                let stem = format!("{name}-{}", number + 1);
                let (begin, end) = match kind {
                    DumpKind::Resources => (entry.at?, entry.completed?),
                    DumpKind::Changes => (entry.from?, entry.until?),
                };
                let parts = entry.links.iter().filter(|link| link.rel == PART).count() as u64;
                let package = Package {
                    length: entry.length?,
                    manifest: manifest_digest(&entry),
                    digests: entry.digests,
                    begin: begin.instant,
                    end: end.instant,
                    parts: Some(parts).filter(|parts| *parts > 0),
                    stem,
                };
                (entry.loc == urls.package(&package.stem)).then_some(package)
            })
            .collect();
        Some(Self {
            name: name.to_owned(),
            begin: begin.instant,
            end: end.instant,
            packages: packages?,
        })
    }
}

impl Package {
    /// Entry of the package in the record: the entry in the dump, with the digest of the manifest
    /// and a link for each part.
    fn to_record(&self, kind: DumpKind, urls: &SetUrls) -> Entry {
        let mut entry = self.to_entry(kind, urls);
        for link in entry.links.iter_mut().filter(|link| link.rel == CONTENTS) {
            link.digests.sha256 = self.manifest;
        }
        for part in 1..=self.parts.unwrap_or_default() {
            let href = format!("{}#{part}", entry.loc);
            entry.links.push(Ln { rel: PART.to_owned(), href, ..Ln::default() });
        }
        entry
    }

    /// Entry of the package in a Resource Dump or a Change Dump [rs-core §11.1, §13.1].
    pub(crate) fn to_entry(&self, kind: DumpKind, urls: &SetUrls) -> Entry {
        let mut entry = Entry {
            loc: urls.package(&self.stem),
            digests: self.digests.clone(),
            length: Some(self.length),
            media_type: Some(ZIP.to_owned()),
            links: vec![Ln {
                rel: CONTENTS.to_owned(),
                href: urls.package_manifest(&self.stem),
                media_type: Some("application/xml".to_owned()),
                ..Ln::default()
            }],
            ..Entry::default()
        };
        match kind {
            DumpKind::Resources => {
                (entry.at, entry.completed) = (Some(exactly(self.begin)), Some(exactly(self.end)));
            }
            DumpKind::Changes => {
                (entry.from, entry.until) = (Some(exactly(self.begin)), Some(exactly(self.end)));
                entry.lastmod = Some(exactly(self.end));
            }
        }
        entry
    }
}

/// SHA-256 of the manifest of a package, from the entry in the record.
pub(super) fn manifest_digest(entry: &Entry) -> Option<[u8; 32]> {
    entry.links.iter().find(|link| link.rel == CONTENTS)?.digests.sha256
}

fn exactly(instant: Timestamp) -> W3cDatetime {
    W3cDatetime { instant, precision: Precision::Fraction }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::SourceUrls;

    #[test]
    fn a_dump_reads_back_under_the_same_address_only() {
        let at = Timestamp::from_micros;
        let digests = Digests { md5: Some([7; 16]), ..Digests::default() };
        let package = |number: usize| Package {
            stem: format!("resources-x-{number}"),
            length: 10,
            digests: digests.clone(),
            manifest: Some([number as u8; 32]),
            begin: at(1),
            end: at(1_500_000),
            parts: Some(number as u64).filter(|_| number > 1),
        };
        let dump = Dump {
            name: "resources-x".into(),
            begin: at(1),
            end: at(2),
            packages: vec![package(1), package(2)],
        };
        for kind in [DumpKind::Resources, DumpKind::Changes] {
            let urls = SourceUrls::new("https://example.org/").set("set");
            let bytes = dump.to_document(kind, &urls).to_bytes();
            let read = |kind, urls| {
                Dump::from_document(
                    "resources-x",
                    kind,
                    urls,
                    Document::from_slice(&bytes).unwrap(),
                )
            };
            assert_eq!(read(kind, &urls), Some(dump.clone()));
            let other = SourceUrls::new("https://example.net/").set("set");
            assert_eq!(read(kind, &other), None);
        }
    }
}
