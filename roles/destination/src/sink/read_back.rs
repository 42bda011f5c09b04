//! Opening the stored data of a copy for verification, by the kind of copy.

use super::folder::FolderKept;
use super::kept::ReadBack;
use super::rdf::nquads::NQuadsKept;
use super::warc::WarcKept;
use crate::report::error::Error;
use abreast_store::mirror::Mirror;
use std::path::Path;

/// Opens the stored data of a copy of the kind `folder`, `warc` or `nquads`; `None` for other
/// kinds, and before the first run.
pub(crate) fn read_back(
    kind: &str,
    folder: &Path,
    mirror: &Mirror,
) -> Result<Option<Box<dyn ReadBack>>, Error> {
    match kind {
        "folder" => {
            Ok(FolderKept::open(folder, mirror)?.map(|kept| Box::new(kept) as Box<dyn ReadBack>))
        }
        "warc" => Ok(Some(Box::new(WarcKept::open(folder, mirror)?))),
        "nquads" => Ok(Some(Box::new(NQuadsKept::open(folder, mirror)?))),
        _ => Ok(None),
    }
}
