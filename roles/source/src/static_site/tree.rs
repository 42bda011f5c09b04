//! Folder of the copied resources in a site.

use crate::publish::PublishedSet;
use crate::publish::publisher::Publisher;

/// Path of the folder with the copies of a set's resources; ends in `/`.
pub(super) fn tree_of(publisher: &Publisher, set: &PublishedSet) -> String {
    let url = set.urls.resources();
    publisher.urls().path_of(&url)
}
