//! Every kind of document of every protocol, in two versions, one of which a test makes odd.

use super::{emm, resourcesync, resourcesync_0_1, sdshare};
use abreast_testkit::pages::Server;

/// An edit of the text of a document.
pub(crate) type Edit<'e> = &'e dyn Fn(String) -> String;

/// A Source whose second version differs from its first: `/b` was deleted, `/e` is new, and changes
/// also list that `/x` was deleted.
#[derive(Clone, Copy)]
pub(crate) struct Scene {
    /// The kind of the document that is made odd.
    pub(crate) name: &'static str,
    pub(crate) family: Family,
    /// The address that a copy is made of.
    pub(crate) address: &'static str,
    /// The address of the document.
    pub(crate) path: &'static str,
    pub(crate) read: Read,
}

/// Kinds of documents that go wrong in the same ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Documents of 1.1 that name other documents.
    Members,
    Resources,
    Changes,
    /// Sitemaps without a statement of ResourceSync.
    Sitemap,
    OldSitemap,
    OldChanges,
    /// Feeds of SDShare that name other feeds, or snapshots.
    Feeds,
    Fragments,
    EntryPoint,
    ChangeSet,
}

/// Which runs read a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    Always,
    ByComparisons,
    ByNewCopies,
}

const fn of(
    family: Family,
    read: Read,
    name: &'static str,
    address: &'static str,
    path: &'static str,
) -> Scene {
    Scene { name, family, address, path, read }
}

const SOURCE: &str = "/.well-known/resourcesync";

pub(crate) const SCENES: &[Scene] = {
    use Family as F;
    use Read::{Always, ByComparisons, ByNewCopies};
    &[
        of(F::Members, ByNewCopies, "Source Description", SOURCE, SOURCE),
        of(F::Members, ByNewCopies, "Capability List", "/caps.xml", "/caps.xml"),
        of(F::Resources, Always, "Resource List", "/list.xml", "/list.xml"),
        of(F::Members, Always, "Resource List Index", "/lists.xml", "/lists.xml"),
        of(F::Resources, Always, "Resource List of an index", "/lists.xml", "/one.xml"),
        of(F::Changes, Always, "Change List", "/caps.xml", "/changes.xml"),
        of(F::Members, ByNewCopies, "Change List Index", "/caps-of-index.xml", "/changelists.xml"),
        of(F::Changes, Always, "Change List of an index", "/caps-of-index.xml", "/changes.xml"),
        of(F::Members, Always, "Resource Dump", "/caps-of-dump.xml", "/dump.xml"),
        of(F::Resources, Always, "Resource Dump Manifest", "/caps-of-dump.xml", "/dump.zip"),
        of(F::Sitemap, Always, "Sitemap", "/sitemap.xml", "/sitemap.xml"),
        of(F::OldSitemap, Always, "Sitemap of 0.1", "/old.xml", "/old.xml"),
        of(F::OldSitemap, Always, "Sitemap of 0.1 of an index", "/old-index.xml", "/old-one.xml"),
        of(F::OldSitemap, Always, "dump of 0.1", "/old.zip", "/old.zip"),
        of(F::OldChanges, Always, "change set", "/old-begin.xml", "/c.xml"),
        of(F::Feeds, ByNewCopies, "overview feed", "/overview", "/overview"),
        of(F::Feeds, ByNewCopies, "collection feed", "/collection", "/collection"),
        of(F::Feeds, ByComparisons, "snapshots feed", "/collection", "/snapshots"),
        of(F::Feeds, ByComparisons, "chunked snapshot feed", "/collection", "/chunks"),
        of(F::Fragments, Always, "fragments feed", "/collection", "/fragments"),
        of(F::EntryPoint, Always, "Entry Point", "/feed", "/feed"),
        of(F::ChangeSet, Always, "Change Set", "/feed", "/feed/1"),
    ]
};

/// The resources that are always served, listed or not, so that a wrongly listed resource is
/// wrongly copied.
pub(crate) const NAMES: [&str; 6] = ["/a", "/b", "/c", "/d", "/e", "/x"];
/// Instants of the changes in the first and the second version.
pub(crate) const FIRST: &str = "2026-01-01T01:00:00Z";
pub(crate) const SECOND: &str = "2026-01-01T02:00:00Z";

impl Scene {
    /// Serves the first version.
    pub(crate) fn begin(&self, server: &Server) {
        self.serve(server, false, &|text| text);
    }

    /// Serves the second version, in which `edit` changes the document.
    pub(crate) fn go_on(&self, server: &Server, edit: Edit<'_>) {
        self.serve(server, true, edit);
    }

    fn serve(&self, server: &Server, is_later: bool, edit: Edit<'_>) {
        let site = Site { server, is_later, path: self.path, edit };
        match self.family {
            Family::Feeds | Family::Fragments => sdshare::serve(&site),
            Family::EntryPoint | Family::ChangeSet => emm::serve(&site),
            Family::OldSitemap | Family::OldChanges => resourcesync_0_1::serve(&site),
            _ => resourcesync::serve(&site),
        }
    }
}

/// The documents of a version.
pub(crate) struct Site<'s> {
    pub(crate) server: &'s Server,
    pub(crate) is_later: bool,
    path: &'s str,
    edit: Edit<'s>,
}

impl Site<'_> {
    /// The document at a path, made odd if it is the one.
    pub(crate) fn edited(&self, path: &str, text: String) -> String {
        if path == self.path { (self.edit)(text) } else { text }
    }

    pub(crate) fn put(&self, path: &str, text: String) {
        self.server.body(path, self.edited(path, text));
    }

    pub(crate) fn url(&self, path: &str) -> String {
        self.server.url(path)
    }

    /// The resources of the version.
    pub(crate) fn kept(&self) -> &'static [&'static str] {
        if self.is_later { &["/a", "/c", "/d", "/e"] } else { &["/a", "/b", "/c", "/d"] }
    }

    /// The instant of the version.
    pub(crate) fn now(&self) -> &'static str {
        if self.is_later { SECOND } else { FIRST }
    }
}
