//! The store's folder as commands find it that work on a store and do not make one.

use crate::config::Unusable;
use anyhow::{Context as _, Result, bail};
use std::path::Path;

/// What a store's folder has, one of them.
const OF_A_STORE: &[&str] = &["source.db", "hub.db", "tokens.json"];

/// Checks that a folder named with `--data` is a store's, or empty: a mistyped path must not become a store.
///
/// # Errors
/// There is no such folder, or it belongs to something else.
pub(crate) fn check_data(data: &Path) -> Result<()> {
    let shown = data.display();
    let mut entries = match std::fs::read_dir(data) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => bail!(Unusable(format!(
            "`--data`: there is no folder `{shown}`\n  help: check the path; for a store that is still to be made: mkdir {shown}"
        ))),
        Err(error) => return Err(error).with_context(|| format!("cannot open the store's folder `{shown}`")),
    };
    let is_store = OF_A_STORE.iter().any(|name| data.join(name).is_file());
    let inner = data.join(".abreast");
    if !is_store && OF_A_STORE.iter().any(|name| inner.join(name).is_file()) {
        bail!(Unusable(format!(
            "`--data`: the folder `{shown}` holds no store\n  help: name the store of this published folder: --data {}",
            inner.display()
        )));
    }
    if !is_store && entries.next().is_some() {
        bail!(Unusable(format!(
            "`--data`: the folder `{shown}` holds no store, and is not empty\n  help: check the path"
        )));
    }
    Ok(())
}
