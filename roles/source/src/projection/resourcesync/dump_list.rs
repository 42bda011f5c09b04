//! Resource Dumps and Change Dumps: lists of packages, and their indexes [rs-core §11.1, §13.1].
//!
//! Only complete packages are listed. A Resource Dump lists the packages of the newest dump. A
//! Change Dump lists all stored packages, one span after the other, and does not have `until`,
//! because more packages will follow.

use super::dumps::{Dump, DumpKind, Package};
use super::values::{XML, exactly, link};
use super::{PublishError, PublishedSet, Rendered};
use abreast_resourcesync::v1_1::{Entry, Head, Root, write_end, write_entry, write_head};
use abreast_webtypes::Timestamp;
use std::sync::Arc;

/// Packages in one document [rs-core §7].
pub(super) const MAX_PACKAGES: usize = 50_000;

/// Packages below one entry point.
pub(super) struct Packages<'a> {
    kind: DumpKind,
    set: &'a PublishedSet,
    all: Vec<&'a Package>,
    /// Most packages in one document.
    most: usize,
    begin: Timestamp,
    end: Timestamp,
    /// Whether more packages will be added.
    open: bool,
}

impl<'a> Packages<'a> {
    /// Packages of a Resource Dump.
    pub(super) fn of_resources(set: &'a PublishedSet, dump: &'a Dump, most: usize) -> Self {
        let all = dump.packages.iter().collect();
        Self {
            kind: DumpKind::Resources,
            set,
            all,
            most,
            begin: dump.begin,
            end: dump.end,
            open: false,
        }
    }

    /// Packages of one dump, which never changes: a document for the archive.
    pub(super) fn of_one(set: &'a PublishedSet, kind: DumpKind, dump: &'a Dump) -> Self {
        Self { kind, ..Self::of_resources(set, dump, usize::MAX) }
    }

    /// Packages of the Change Dump, oldest first; `None` if there are no packages.
    pub(super) fn of_changes(
        set: &'a PublishedSet,
        dumps: &'a [Arc<Dump>],
        most: usize,
    ) -> Option<Self> {
        let (begin, end) = (dumps.first()?.begin, dumps.last()?.end);
        let all = dumps.iter().flat_map(|dump| &dump.packages).collect();
        Some(Self { kind: DumpKind::Changes, set, all, most, begin, end, open: true })
    }

    /// Renders the document if one is enough, otherwise the index.
    pub(super) fn entry_point(&self) -> Rendered {
        if self.all.len() <= self.most {
            return self.list(&self.all, false, true);
        }
        let mut bytes = Vec::new();
        write_head(
            &mut bytes,
            &self.head(Root::SitemapIndex, self.begin, (!self.open).then_some(self.end)),
        );
        let count = self.all.len().div_ceil(self.most);
        for (number, part) in self.all.chunks(self.most).enumerate() {
            let number = number as u64 + 1;
            let (Some(first), Some(last)) = (part.first(), part.last()) else { continue };
            let (begin, end) = (exactly(first.begin), exactly(last.end));
            let mut entry = Entry { lastmod: Some(end), ..Entry::default() };
            match self.kind {
                DumpKind::Resources => {
                    entry.loc = self.set.urls.resource_dump_part(number);
                    (entry.at, entry.completed) = (Some(begin), Some(end));
                }
                DumpKind::Changes => {
                    entry.loc = self.set.urls.change_dump_part(number);
                    entry.from = Some(begin);
                    entry.until = (number < count as u64).then_some(end);
                }
            }
            write_entry(&mut bytes, Root::SitemapIndex, &entry);
        }
        write_end(&mut bytes, Root::SitemapIndex);
        Rendered { bytes, content_type: XML }
    }

    /// Renders one document of the index.
    pub(super) fn part(&self, number: u64) -> Result<Rendered, PublishError> {
        let mut parts = self.all.chunks(self.most);
        let count = parts.len();
        let place = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let part = place
            .filter(|_| count > 1)
            .and_then(|place| parts.nth(place))
            .ok_or(PublishError::NotFound)?;
        Ok(self.list(part, true, number == count as u64))
    }

    fn list(&self, packages: &[&Package], indexed: bool, last: bool) -> Rendered {
        let begin = packages.first().map_or(self.begin, |package| package.begin);
        let end = packages.last().map_or(self.end, |package| package.end);
        let end = if indexed { end } else { self.end };
        let mut head = self.head(Root::UrlSet, begin, (!(last && self.open)).then_some(end));
        if indexed {
            head.links.push(link(
                "index",
                &match self.kind {
                    DumpKind::Resources => self.set.urls.resource_dump(),
                    DumpKind::Changes => self.set.urls.change_dump(),
                },
            ));
        }
        let mut bytes = Vec::with_capacity(512 + packages.len() * 400);
        write_head(&mut bytes, &head);
        for package in packages {
            write_entry(&mut bytes, Root::UrlSet, &package.to_entry(self.kind, &self.set.urls));
        }
        write_end(&mut bytes, Root::UrlSet);
        Rendered { bytes, content_type: XML }
    }

    fn head(&self, root: Root, begin: Timestamp, end: Option<Timestamp>) -> Head {
        let links = vec![link("up", &self.set.urls.capability_list())];
        let mut head =
            Head { root, capability: Some(self.kind.capability()), links, ..Head::default() };
        let (begin, end) = (Some(exactly(begin)), end.map(exactly));
        match self.kind {
            DumpKind::Resources => (head.at, head.completed) = (begin, end),
            DumpKind::Changes => (head.from, head.until) = (begin, end),
        }
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::SourceUrls;
    use abreast_core::SetId;
    use abreast_resourcesync::v1_1::Document;
    use abreast_webtypes::Digests;

    fn read(rendered: &Rendered) -> Document {
        Document::from_slice(&rendered.bytes).unwrap()
    }

    fn dump(first: i64, packages: i64) -> Dump {
        let at = Timestamp::from_seconds;
        let package = |number: i64| Package {
            stem: format!("x-{number}"),
            length: 1,
            digests: Digests::default(),
            manifest: None,
            begin: at(first + number),
            end: at(first + number + 1),
            parts: None,
        };
        let packages: Vec<_> = (0..packages).map(package).collect();
        let end = packages.last().unwrap().end;
        Dump { name: "x".into(), begin: at(first), end, packages }
    }

    #[test]
    fn many_packages_are_listed_through_an_index() {
        let set =
            PublishedSet::new(SetId(1), "set", SourceUrls::new("https://example.org/").set("set"));
        let dump = dump(100, 5);
        let one = read(&Packages::of_resources(&set, &dump, 5).entry_point());
        assert_eq!((one.head.root, one.entries.len()), (Root::UrlSet, 5));
        assert!(one.head.at.is_some() && one.head.completed.is_some());
        assert!(one.entries[0].links[0].has_rel("contents"));
        let many = Packages::of_resources(&set, &dump, 2);
        let index = read(&many.entry_point());
        assert_eq!((index.head.root, index.entries.len()), (Root::SitemapIndex, 3));
        let listed: usize =
            (1..=3).map(|number| read(&many.part(number).unwrap()).entries.len()).sum();
        assert_eq!(listed, 5);
        assert!(many.part(0).is_err() && many.part(4).is_err());
        assert!(read(&many.part(2).unwrap()).head.links.iter().any(|ln| ln.has_rel("index")));
    }

    #[test]
    fn only_the_last_part_of_a_change_dump_is_open() {
        let set =
            PublishedSet::new(SetId(1), "set", SourceUrls::new("https://example.org/").set("set"));
        let dumps = [Arc::new(dump(100, 2)), Arc::new(dump(102, 1))];
        let packages = Packages::of_changes(&set, &dumps, 2).unwrap();
        let index = read(&packages.entry_point());
        assert!(index.head.until.is_none() && index.entries[1].until.is_none());
        assert_eq!(index.entries[0].until, index.entries[1].from);
        let parts = [1, 2].map(|number| read(&packages.part(number).unwrap()).head.until.is_some());
        assert_eq!(parts, [true, false]);
        assert!(
            read(&Packages::of_changes(&set, &dumps, 9).unwrap().entry_point())
                .head
                .until
                .is_none()
        );
        assert!(Packages::of_changes(&set, &[], 9).is_none());
    }
}
