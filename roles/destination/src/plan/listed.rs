//! A resource, or a change of one, as a Source lists it: what the readers of all protocols yield and the plan works on.
//!
//! It borrows from the document that is read, so an entry of a list of millions costs no copy.

use crate::filter::{MediaType, Subject};
use abreast_store::mirror::{Pending, PendingAction};
use abreast_webtypes::{Digests, Timestamp, resolve};

/// One listed resource or change.
#[derive(Clone, Debug)]
pub(crate) struct Listed<'a> {
    /// The resource's URI, without fragment.
    pub(crate) uri: &'a str,
    /// The document that lists it: links are relative to its URL.
    pub(crate) document: &'a str,
    /// Last modification, microseconds.
    pub(crate) modified: Option<i64>,
    /// `modified` may be the time of the change: only the server, or a package, knows when the resource was modified.
    pub(crate) modified_is_change: bool,
    pub(crate) length: Option<u64>,
    pub(crate) media_type: Option<&'a str>,
    pub(crate) digests: &'a Digests,
    /// What happened to it; `None` in a list of all there is.
    pub(crate) change: Option<Change>,
    /// When that happened, where it is stated.
    pub(crate) changed: Option<Timestamp>,
    /// What it links to, of the relations that a copy makes use of.
    pub(crate) links: Vec<Link<'a>>,
}

/// What happened to a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// There is a new state: created or updated.
    Put,
    /// It is gone.
    Deleted,
}

/// A link of a listed resource.
#[derive(Clone, Debug)]
pub(crate) struct Link<'a> {
    pub(crate) relation: Relation,
    /// Where it leads, as written.
    pub(crate) href: &'a str,
    /// Among links of one relation the lowest comes first.
    pub(crate) priority: u32,
    /// Of the target, as the next ones.
    pub(crate) modified: Option<Timestamp>,
    pub(crate) media_type: Option<&'a str>,
    pub(crate) length: Option<u64>,
    pub(crate) digests: &'a Digests,
}

/// What a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// The same bytes at another place.
    Mirror,
    /// What makes this version out of the one before.
    Patch,
    /// An earlier version.
    Version,
    /// A list of earlier versions.
    VersionList,
    /// The resource that this one is a copy of.
    Origin,
}

impl<'a> Listed<'a> {
    /// Whether it is a deletion.
    pub(crate) fn is_deletion(&self) -> bool {
        self.change == Some(Change::Deleted)
    }

    /// When the resource was last modified, microseconds, if that is sure.
    pub(crate) fn sure_modified(&self) -> Option<i64> {
        self.modified.filter(|_| !self.modified_is_change)
    }

    /// Its links of one relation.
    pub(crate) fn links_to(&self, relation: Relation) -> impl Iterator<Item = &Link<'a>> {
        self.links.iter().filter(move |link| link.relation == relation)
    }

    /// Where a link of it leads.
    pub(crate) fn url_of(&self, link: &Link<'_>) -> Option<String> {
        resolve(self.document, link.href).ok()
    }

    /// What filters judge it by.
    pub(crate) fn subject(&self) -> Subject<'a> {
        Subject {
            uri: self.uri,
            path: &[],
            media_type: MediaType::Listed(self.media_type),
            length: self.length,
            modified: self.modified,
        }
    }

    /// What has to be fetched for it.
    pub(crate) fn pending_into(&self, out: &mut Pending) {
        self.uri.clone_into(&mut out.uri);
        out.action = PendingAction::Fetch;
        out.modified = self.sure_modified();
        out.length = self.length;
        out.digests = self.digests.to_bytes();
        out.unknown = !self.digests.unknown.is_empty();
        out.changed = None;
        out.via = if self.links.is_empty() { None } else { crate::sink::via::listed_via(self) };
    }
}

/// A URI without its fragment.
pub(crate) fn without_fragment(uri: &str) -> &str {
    uri.split('#').next().unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod testing {
    //! Listed resources for tests.

    use super::*;

    /// Digests of nothing.
    pub(crate) static NO_DIGESTS: std::sync::LazyLock<Digests> = std::sync::LazyLock::new(Digests::default);

    /// A resource with no more than its links.
    pub(crate) fn listed<'a>(document: &'a str, uri: &'a str, links: Vec<Link<'a>>) -> Listed<'a> {
        Listed {
            uri,
            document,
            modified: None,
            modified_is_change: false,
            length: None,
            media_type: None,
            digests: &NO_DIGESTS,
            change: None,
            changed: None,
            links,
        }
    }

    /// A link that states nothing of its target.
    pub(crate) fn link(relation: Relation, href: &str) -> Link<'_> {
        Link { relation, href, priority: 1, modified: None, media_type: None, length: None, digests: &NO_DIGESTS }
    }
}
