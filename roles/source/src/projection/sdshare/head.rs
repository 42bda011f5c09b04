//! What feeds of a set have in common.

use crate::publish::PublishedSet;

/// Media type of all feeds.
pub(super) const ATOM: &str = abreast_sdshare::ATOM_MEDIA_TYPE;

/// The title of a set for people.
pub(super) fn title(set: &PublishedSet) -> &str {
    if set.about.title.is_empty() { &set.slug } else { &set.about.title }
}

/// Who a set's feeds are by.
pub(super) fn author(set: &PublishedSet) -> String {
    title(set).to_owned()
}
