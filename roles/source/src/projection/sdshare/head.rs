//! Common elements of the feeds of a set.

use crate::publish::PublishedSet;

/// Media type of all feeds.
pub(super) const ATOM: &str = abreast_sdshare::ATOM_MEDIA_TYPE;

/// Title of a set for people.
pub(super) fn title(set: &PublishedSet) -> &str {
    if set.about.title.is_empty() { &set.slug } else { &set.about.title }
}

/// Author of a set's feeds, required by Atom.
pub(super) fn author(set: &PublishedSet) -> String {
    title(set).to_owned()
}
