//! Published folders: files that a copy writes into a published folder are published too.

use crate::copy::path_map::STATE_FOLDER;
use crate::copy::state_folder::make_folder;
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use abreast_folder::{CopyOf, Folder};
use std::path::{Path, PathBuf};

/// The store of a Source in its published folder.
const SOURCE_DATABASE: &str = "source.db";
/// Marks a folder of replaced files, so that no Source publishes it.
pub(crate) const BACKUP_MARK: &str = ".abreast-backup";

/// The published folder that contains a path: a folder in `known`, or a folder with the database of
/// a Source. `None` if a folder between the two has a name with a leading dot, since such folders
/// are never published.
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

/// Refuses a copy in a published folder, unless the user wants to publish the copy; and state or
/// replaced files in a published folder.
pub(crate) fn check_outputs(options: &SyncOptions) -> Result<(), Error> {
    let elsewhere = options.sink.facts().place();
    let own_folder = options.sink.is_local().then_some(&options.folder);
    let copy = elsewhere.as_ref().or(own_folder);
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

/// Whether a folder of the copy exists.
pub(crate) fn is_there(folder: &Folder, path: &[u8]) -> bool {
    path.is_empty() || folder.dir(path.split(|byte| *byte == b'/')).is_ok()
}

/// Records the addresses from which a copy is made, before anything is stored, and the parts of the
/// folder that the Source itself copied from other Sources. A recorded part is preserved as long as
/// its folder exists: a Source that was just started, or has recognised its own copy, may not list
/// the part. The record that the whole folder is a copy is removed only if `forgets_whole`. Returns
/// `false` if the previous record was damaged; then its readable lines are used.
pub(crate) fn note_sources(
    folder: &Folder,
    urls: [&str; 2],
    parts: Vec<(Vec<u8>, String)>,
    forgets_whole: bool,
) -> Result<bool, Error> {
    let state = make_folder(&folder.root(), STATE_FOLDER.as_bytes())?;
    let name = CopyOf::NAME.as_bytes();
    let bytes = state.read_begin(name, CopyOf::BYTES_MAX).ok();
    let known = bytes.as_deref().map(CopyOf::parse).unwrap_or_default();
    let mut record = CopyOf::default();
    for url in urls {
        record.add_source(url);
    }
    let remains =
        |path: &[u8]| if path.is_empty() { !forgets_whole } else { is_there(folder, path) };
    let known_parts = known.parts.into_iter().filter(|(path, _)| remains(path));
    for (path, source) in parts.into_iter().chain(known_parts) {
        record.add_part(path, &source);
    }
    let record = record.to_record();
    if bytes.as_ref() != Some(&record) {
        crate::copy::state_folder::replace(&state, CopyOf::NAME, &record)
            .map_err(|cause| crate::copy::unusable::unusable(folder.path(), cause))?;
    }
    Ok(!known.is_damaged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copy::path_map::{NameRules, PathMap};

    const URLS: [&str; 2] = ["http://b/", "http://b/list.xml"];

    fn part(path: &str, address: &str) -> (Vec<u8>, String) {
        (path.as_bytes().to_vec(), address.to_owned())
    }

    fn noted(folder: &Folder) -> CopyOf {
        CopyOf::read(&folder.root(), b".abreast/copy-of").unwrap()
    }

    #[test]
    fn parts_stay_noted_while_they_are_there() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let named = vec![part("x", "http://a/"), part("y/z", "http://c/"), part("", "http://d/")];
        assert!(note_sources(&folder, URLS, named.clone(), false).unwrap());
        assert_eq!(
            (noted(&folder).sources, noted(&folder).parts),
            (URLS.map(str::to_owned).to_vec(), named)
        );
        std::fs::create_dir_all(place.path().join("y/z")).unwrap();
        assert!(note_sources(&folder, URLS, vec![part("w", "http://a/")], false).unwrap());
        let expected = [part("w", "http://a/"), part("y/z", "http://c/"), part("", "http://d/")];
        assert_eq!(noted(&folder).parts, expected);
        // The record that the whole copy belongs to another Source can be removed.
        assert!(note_sources(&folder, URLS, Vec::new(), true).unwrap());
        assert_eq!(noted(&folder).parts, [part("y/z", "http://c/")]);
    }

    #[test]
    fn a_damaged_record_keeps_what_is_readable() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        std::fs::create_dir_all(place.path().join("x")).unwrap();
        let parts = vec![part("x", "http://a/"), part("", "http://d/")];
        note_sources(&folder, URLS, parts.clone(), false).unwrap();
        let file = place.path().join(".abreast/copy-of");
        let mut record = std::fs::read(&file).unwrap();
        record[3] ^= 1;
        std::fs::write(&file, record).unwrap();
        assert!(!note_sources(&folder, URLS, Vec::new(), false).unwrap());
        assert_eq!((noted(&folder).parts, noted(&folder).is_damaged), (parts, false));
        assert!(note_sources(&folder, URLS, Vec::new(), false).unwrap());
    }

    #[test]
    fn only_the_base_itself_is_the_whole_copy() {
        let map = PathMap::new("http://b/r/", NameRules::default()).unwrap();
        let long = format!("http://b/r/{}/", "a".repeat(10_000));
        let folder_of = |uri: &str| map.folder_of(uri).map(|path| String::from_utf8(path).unwrap());
        assert_eq!(folder_of("http://b/r/").as_deref(), Some(""));
        assert_eq!(folder_of("http://b/r/x%20y/z/").as_deref(), Some("x y/z"));
        // Above the base, next to it, on another host, and too long.
        for uri in ["http://b/", "http://b/other/", "http://c/r/", &long] {
            assert_ne!(folder_of(uri).as_deref(), Some(""), "{uri}");
        }
        assert_eq!(folder_of(&long), None);
    }
}
