//! The keys under which the state keeps the documents of a Source.

pub(super) const CAPABILITY_LIST: &str = "capability-list";
/// A Capability List that a document of the set links to, and that was not there.
pub(super) const MISSING_CAPABILITY_LIST: &str = "missing-capability-list";
pub(super) const RESOURCE_LIST: &str = "resource-list";
pub(super) const CHANGE_LIST: &str = "change-list";
pub(super) const RESOURCE_DUMP: &str = "resource-dump";
pub(super) const CHANGE_DUMP: &str = "change-dump";
pub(super) const CHANGE_LIST_ARCHIVE: &str = "change-list-archive";
/// Where a package with all changes since a time is made on request.
pub(super) const CHANGES_SINCE: &str = "changes-since";
/// The common begin of the URIs of the resources.
pub(super) const URI_SPACE: &str = "uri-space";
/// The indexes among the Resource List and its parts, a line each.
pub(super) const LIST_INDEXES: &str = "list-is-index";
