//! Files in a store's folder that belong to sets of RDF.

use crate::store::stores::Stores;
use anyhow::{Context as _, Result};
use std::path::PathBuf;

/// The folder for temporary files, in the store's folder: they may be as large as the input.
///
/// # Errors
/// It cannot be made.
pub(crate) fn temporary_folder(stores: &Stores) -> Result<PathBuf> {
    let path = stores.path("temporary");
    crate::program::there::make_folder(&path)
        .with_context(|| format!("cannot make the folder `{}`", path.display()))?;
    Ok(path)
}
