//! Files in a store's folder that belong to sets of RDF.

use crate::stores::Stores;
use abreast_source::origin::rdf::RdfOptions;
use anyhow::{Context as _, Result};
use std::path::{Path, PathBuf};

/// The folder for temporary files, in the store's folder: they may be as large as the input.
///
/// # Errors
/// It cannot be made.
pub(crate) fn temporary_folder(stores: &Stores) -> Result<PathBuf> {
    let path = stores.path("temporary");
    crate::there::make_folder(&path)
        .with_context(|| format!("cannot make the folder `{}`", path.display()))?;
    Ok(path)
}

/// Path of the record of the files that a set was last read from.
pub(crate) fn record_of_files(options: &RdfOptions, slug: &str) -> PathBuf {
    options.sort.temporary.join(format!("{slug}.read"))
}

/// The records of files in a store's folder, of all sets.
///
/// # Errors
/// The folder cannot be listed.
pub(crate) fn records_of_files(store: &Path) -> std::io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(store.join("temporary")) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths = paths.collect::<std::io::Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "read"));
    Ok(paths)
}
