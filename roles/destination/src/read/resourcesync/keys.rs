//! Keys of the documents of a Source in the database of a copy.

pub(super) const CAPABILITY_LIST: &str = "capability-list";
/// The Capability List to which a document of the set links, and which was missing.
pub(super) const MISSING_CAPABILITY_LIST: &str = "missing-capability-list";
pub(super) const RESOURCE_LIST: &str = "resource-list";
pub(super) const CHANGE_LIST: &str = "change-list";
pub(super) const RESOURCE_DUMP: &str = "resource-dump";
pub(super) const CHANGE_DUMP: &str = "change-dump";
pub(super) const CHANGE_LIST_ARCHIVE: &str = "change-list-archive";
/// The address that creates a package with all changes since a time.
pub(super) const CHANGES_SINCE: &str = "changes-since";
/// The common start of the URIs of the resources.
pub(super) const URI_SPACE: &str = "uri-space";
/// The URLs of the indexes among the Resource List and its parts, one for each line.
pub(super) const LIST_INDEXES: &str = "list-is-index";
