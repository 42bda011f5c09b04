//! Where the store may be: not where it would be published, and not around what is published.

use std::path::Path;

/// The reason why the store may not be in that folder: it would be published, or would contain
/// published files.
pub(super) fn misplaced_store(data: &Path, folder: &Path) -> Option<String> {
    use std::os::unix::ffi::OsStrExt as _;
    // It need not exist yet: what exists of the way to it is resolved.
    let data = std::path::absolute(data).ok()?;
    let existing = data.ancestors().find(|ancestor| ancestor.exists())?;
    let rest = data.strip_prefix(existing).ok()?;
    let data = std::fs::canonicalize(existing).ok()?.join(rest);
    let (shown, published) = (data.display(), folder.display());
    if let Ok(inside) = data.strip_prefix(folder) {
        let visible = inside.iter().all(|name| abreast_source::is_published_name(name.as_bytes()));
        return visible.then(|| {
            format!(
                "`data`: the store `{shown}` lies in the published folder `{published}` and would be published with it \
                 (help: name a folder elsewhere, or one whose name begins with `.`)"
            )
        });
    }
    // Where rendered documents, archived ones, dumps, snapshots and versions are kept.
    let inside = ["archives", "documents", "dumps", "snapshots", "contents"]
        .iter()
        .any(|own| folder.starts_with(data.join(own)));
    inside.then(|| {
        format!("`data`: the published folder `{published}` lies in the store `{shown}` (help: name another folder)")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_would_be_published_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(temporary.path()).unwrap();
        let folder = root.join("folder");
        std::fs::create_dir_all(folder.join("documents")).unwrap();
        std::os::unix::fs::symlink(&folder, root.join("alias")).unwrap();
        for refused in ["folder", "folder/store", "folder/new/store", "alias/store", "alias"] {
            assert!(misplaced_store(&root.join(refused), &folder).is_some(), "{refused}");
        }
        assert!(misplaced_store(&folder, &folder.join("documents")).is_some());
        assert!(misplaced_store(&folder, &folder.join("archives/x")).is_some());
        for allowed in [
            "folder/.abreast",
            "folder/.store/new",
            "folder/new/.store",
            "folders",
            "store",
            "alias/.abreast",
            "",
        ] {
            assert_eq!(misplaced_store(&root.join(allowed), &folder), None, "{allowed}");
        }
    }
}
