//! The folder of copied resources in a site.

use crate::publish::PublishedSet;
use crate::publish::publisher::Publisher;

/// The folder of the copies of a set's resources; ends in `/`.
pub(super) fn tree_of(publisher: &Publisher, set: &PublishedSet) -> String {
    let url = set.urls.resources();
    publisher.urls().path_of(&url)
}
