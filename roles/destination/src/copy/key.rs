//! Keys of the properties of a copy as a whole, in its database.

pub(crate) const BASE: &str = "base";
/// The folder of a copy whose database is in another folder.
pub(crate) const FOLDER: &str = "folder";
pub(crate) const FILE_SYSTEM: &str = "file-system";
pub(crate) const SOURCE_URL: &str = "source-url";
/// The protocol of the Source, if the reader was chosen by the response.
pub(crate) const PROTOCOL: &str = "protocol";
/// The set that was chosen, in the user's words.
pub(crate) const SET: &str = "set";
/// The common start of all listed URIs, until a base is fixed.
pub(crate) const COMMON: &str = "common";
/// Number of the last run that wrote files.
pub(crate) const EPOCH: &str = "epoch";
/// The last run that carried out its plan to the end.
pub(crate) const FINISHED: &str = "finished";
/// The last run whose files are known to be on the disk.
pub(crate) const SETTLED: &str = "settled";
/// The file of planned bytes.
pub(crate) const BODIES: &str = "bodies";
/// When and in which life of the machine the last writing run ended.
pub(crate) const WRITTEN: &str = "written";
/// Number of resources created since the due deletions were last within the limit.
pub(crate) const CREATED: &str = "created";
