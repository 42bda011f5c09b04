//! Places of the store, logs and secrets: not where they would be published, and no store around a published folder.

use std::path::{Path, PathBuf};

/// The part of a path below a folder; `None` if the path is outside.
///
/// The path need not exist yet: links are resolved in the part that exists.
fn inside(path: &Path, folder: &Path) -> Option<PathBuf> {
    resolved(path)?.strip_prefix(folder).ok().map(Path::to_owned)
}

fn resolved(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let existing = path.ancestors().find(|ancestor| ancestor.exists())?;
    let rest = path.strip_prefix(existing).ok()?;
    Some(std::fs::canonicalize(existing).ok()?.join(rest))
}

/// Whether each name of a path inside a published folder is one that is published.
fn is_visible(inside: &Path) -> bool {
    use std::os::unix::ffi::OsStrExt as _;
    inside.iter().all(|name| abreast_source::is_published_name(name.as_bytes()))
}

/// The reason why a log or a secret may not be in that file: everyone could read it.
pub(super) fn published_file(key: &str, file: &Path, folder: &Path) -> Option<String> {
    let is_published = inside(file, folder).is_some_and(|inside| is_visible(&inside));
    is_published.then(|| {
        format!(
            "`{key}`: `{}` lies in the published folder `{}` and would be published with it (help: name a file elsewhere, or one \
             whose name begins with `.`)",
            file.display(),
            folder.display()
        )
    })
}

/// The reason why the store may not be in that folder: it would be published, or would contain
/// published files.
pub(super) fn misplaced_store(data: &Path, folder: &Path) -> Option<String> {
    let data = resolved(data)?;
    let (shown, published) = (data.display(), folder.display());
    if let Ok(inside) = data.strip_prefix(folder) {
        return is_visible(inside).then(|| {
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

    #[test]
    fn a_secret_that_would_be_published_is_refused() {
        let temporary = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(temporary.path()).unwrap();
        let folder = root.join("folder");
        std::fs::create_dir(&folder).unwrap();
        std::os::unix::fs::symlink(&folder, root.join("alias")).unwrap();
        for (file, is_refused) in [
            ("folder/key.pem", true),
            ("folder/new/access.log", true),
            ("alias/key.pem", true),
            ("folder/.key.pem", false),
            ("folder/.private/key.pem", false),
            ("key.pem", false),
        ] {
            let refused = published_file("tls.key", &root.join(file), &folder);
            assert_eq!(refused.is_some(), is_refused, "{file}: {refused:?}");
        }
    }
}
