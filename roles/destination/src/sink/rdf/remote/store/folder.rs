//! Opening the Oxigraph store in a folder.

use crate::copy::names::CURRENT;
use crate::copy::path_map::STATE_FOLDER;
use crate::report::error::{Error, ExitCode};
use crate::report::open_store::OpenStore;
use oxigraph::store::{StorageError, Store, StoreOptions};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Files of a store that are open at a time.
const OPEN_FILES: u32 = 256;

/// The stores that are open: RocksDB opens each only once, and a run that compares a copy also reads
/// it.
static OPEN: Mutex<BTreeMap<PathBuf, Weak<Store>>> = Mutex::new(BTreeMap::new());

/// Opens the store in a folder. A folder with files that do not belong to an Oxigraph store is
/// refused.
pub(super) fn open(folder: &Path, is_known: bool) -> Result<OpenStore, Error> {
    let unusable = |cause: std::io::Error| {
        Error::new("io", ExitCode::Io, format!("cannot read {}", folder.display()))
            .with_cause(cause)
    };
    let path = folder.canonicalize().map_err(unusable)?;
    let mut all = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|_, store| store.strong_count() > 0);
    if let Some(store) = all.get(&path).and_then(Weak::upgrade) {
        return Ok(OpenStore::shared(store));
    }
    if !path.join(CURRENT).exists() {
        if is_known {
            let message = format!("the store in {} is missing", folder.display());
            let help = "restore it; or run once with `--baseline`, which fetches everything again";
            return Err(Error::new("oxigraph.damaged", ExitCode::Io, message).with_help(help));
        }
        let mut entries = std::fs::read_dir(&path).map_err(unusable)?.flatten();
        if let Some(other) = entries.find(|entry| !is_begin(&entry.file_name().to_string_lossy())) {
            let message = format!(
                "{} has other files, such as {}, and no store",
                folder.display(),
                other.file_name().display()
            );
            return Err(Error::new("oxigraph.folder", ExitCode::Usage, message)
                .with_help("name an empty folder, or one that has a store of Oxigraph"));
        }
    }
    let options = StoreOptions::default().with_max_open_files(OPEN_FILES);
    let store = Store::open_with_options(&path, options);
    let store = Arc::new(store.map_err(|cause| cannot_open(folder, cause))?);
    all.insert(path, Arc::downgrade(&store));
    Ok(OpenStore::shared(store))
}

/// Whether a file is the state folder, or was left by a run that was killed while it created a
/// store, so that it does not contain statements.
fn is_begin(name: &str) -> bool {
    [STATE_FOLDER, "IDENTITY", "LOCK", "LOG"].contains(&name)
        || ["LOG.old.", "MANIFEST-", "OPTIONS-"].iter().any(|begin| name.starts_with(begin))
        || Path::new(name).extension().is_some_and(|end| end == "dbtmp")
}

fn cannot_open(folder: &Path, cause: StorageError) -> Error {
    let text = cause.to_string();
    let message = format!("cannot open the store in {}", folder.display());
    if text.contains("LOCK") {
        let message = format!("another program has opened the store in {}", folder.display());
        return Error::new("oxigraph.locked", ExitCode::Locked, message)
            .with_cause(cause)
            .with_help("stop it; `oxigraph serve-read-only` does not keep others from writing");
    }
    if std::io::Error::from(cause).kind() == std::io::ErrorKind::StorageFull {
        return Error::new("disk.full", ExitCode::Io, format!("{message}: {text}"))
            .with_help("free space, then run the same command again");
    }
    Error::new("oxigraph.damaged", ExitCode::Io, format!("{message}: {text}"))
        .with_help("check that it was written by a version of Oxigraph that is not newer")
}
