//! Folders that are published: what a copy writes into one is published with it.

use crate::error::{Error, ExitCode};
use crate::options::SyncOptions;
use crate::path_map::STATE_FOLDER;
use crate::sink::Sink;
use crate::sink::options::SinkOptions;
use crate::state_folder::make_folder;
use abreast_folder::{CopyOf, Folder};
use std::path::{Path, PathBuf};

/// The store of a Source in its published folder.
const SOURCE_DATABASE: &str = "source.db";
/// Marks a folder of replaced files, so that no Source publishes it.
pub(crate) const BACKUP_MARK: &str = ".abreast-backup";

/// The published folder that would publish the contents of a path: one of these, or one with its store in it. `None` beneath
/// names that begin with a dot, which no folder publishes.
pub fn published_above(path: &Path, known: &[PathBuf]) -> Option<PathBuf> {
    let path = resolved(path);
    let known: Vec<_> = known.iter().map(|folder| resolved(folder)).collect();
    for above in path.ancestors() {
        let is_known = || known.iter().any(|folder| folder == above);
        if above.join(STATE_FOLDER).join(SOURCE_DATABASE).is_file() || is_known() {
            return Some(above.to_owned());
        }
        if above.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) {
            return None;
        }
    }
    None
}

/// A path without symbolic links, as far as it exists.
pub fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    for above in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (above.canonicalize(), path.strip_prefix(above)) {
            return real.join(rest);
        }
    }
    path
}

/// Refuses a copy that would be published unasked, and a state or replaced files that would be published at all.
pub(crate) fn check_outputs(options: &SyncOptions) -> Result<(), Error> {
    #[cfg(feature = "s3")]
    let objects = match &options.sink {
        SinkOptions::Objects(objects) => {
            let url = url::Url::parse(&objects.url).ok().filter(|url| url.scheme() == "file");
            url.and_then(|url| url.to_file_path().ok())
        }
        _ => None,
    };
    let copy = match &options.sink {
        #[cfg(feature = "s3")]
        SinkOptions::Objects(_) => objects.as_ref(),
        SinkOptions::Labels(labels) => Some(&labels.path),
        sink => sink.is_local().then_some(&options.folder),
    };
    let own_state = (!options.sink.is_local()).then_some(&options.folder);
    for (what, path, may) in [
        ("the copy", copy, options.republish),
        ("the state of the copy", own_state, false),
        ("the state of the copy", options.state.as_ref(), false),
        ("replaced files", options.backup_dir.as_ref(), false),
    ] {
        let Some(path) = path.filter(|_| !may) else { continue };
        let Some(folder) = published_above(path, &options.published) else { continue };
        let (shown, folder) = (path.display(), folder.display());
        let message = format!(
            "{shown} is in {folder}, which is published: {what} would be published with it"
        );
        let help = if what == "the copy" {
            "copy into another folder; to publish a copy again, give `--republish` in each run"
        } else {
            "name a folder elsewhere, or one whose name begins with a dot"
        };
        return Err(Error::new("folder.published", ExitCode::Usage, message).with_help(help));
    }
    Ok(())
}

/// Notes in the folder of a copy the addresses that it is made from. `false` if what was noted before was damaged.
pub(crate) fn note_source(folder: &Folder, urls: [&str; 2]) -> Result<bool, Error> {
    note(folder, |record, known| {
        for url in urls {
            record.add_source(url);
        }
        record.sources.extend(known.sources.into_iter().skip(urls.len()));
        record.parts = known.parts;
    })
}

/// Notes in the folder of a copy which of its folders its Source copied from other Sources: each is in `parts` with the address of
/// its Source. What is in no folder of its own makes all of the copy one of that Source, from then on: its Source may not
/// publish that part any longer only because it recognised its own copy.
pub(crate) fn note_parts(
    folder: &Folder,
    sink: &dyn Sink,
    parts: Vec<(String, String)>,
) -> Result<(), Error> {
    note(folder, |record, known| {
        record.sources = known.sources;
        for (uri, source) in parts {
            match sink.folder_of(&uri).filter(|path| !path.is_empty()) {
                Some(path) => record.add_part(path, &source),
                None => record.add_source(&source),
            }
        }
        // A Source that was just started may not name all.
        let is_there = |path: &[u8]| folder.dir(path.split(|byte| *byte == b'/')).is_ok();
        for (path, source) in known.parts.into_iter().filter(|(path, _)| is_there(path)) {
            record.add_part(path, &source);
        }
    })
    .map(drop)
}

fn note(folder: &Folder, change: impl FnOnce(&mut CopyOf, CopyOf)) -> Result<bool, Error> {
    let state = make_folder(&folder.root(), STATE_FOLDER.as_bytes())?;
    let name = CopyOf::NAME.as_bytes();
    let bytes = state.read_begin(name, CopyOf::BYTES_MAX).ok();
    let known = bytes.as_deref().map(CopyOf::parse).unwrap_or_default();
    let is_intact = !known.is_damaged;
    let mut record = CopyOf::default();
    // The Source names again what a damaged record had.
    change(&mut record, if is_intact { known } else { CopyOf::default() });
    let record = record.to_record();
    if bytes.as_ref() != Some(&record) {
        crate::state_folder::replace(&state, CopyOf::NAME, &record)
            .map_err(|cause| crate::state::unusable(folder.path(), cause))?;
    }
    Ok(is_intact)
}
