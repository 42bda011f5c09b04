//! Comparison of a copy with its source: byte for byte, nothing missing, nothing extra.

use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// `Ok(n)`: all n files are equal. Files that a Source does not publish are not asked for, and the
/// copy's own state in `.abreast` is not counted; nor are files named `beside`, which some peers
/// leave behind.
///
/// # Errors
/// The first differences.
pub(crate) fn check(source: &Path, copy: &Path, beside: Option<&str>) -> Result<usize> {
    let (wanted, found) = (files(source)?, files(copy)?);
    let mut faults: Vec<String> = Vec::new();
    faults.extend(wanted.difference(&found).map(|path| format!("missing {}", path.display())));
    let more = found
        .difference(&wanted)
        .filter(|path| beside.is_none() || path.file_name() != beside.map(str::as_ref));
    faults.extend(more.map(|path| format!("besides {}", path.display())));
    for path in wanted.intersection(&found) {
        let read = |root: &Path| {
            fs::read(root.join(path)).with_context(|| format!("cannot read {}", path.display()))
        };
        if read(source)? != read(copy)? {
            faults.push(format!("different {}", path.display()));
        }
    }
    if !faults.is_empty() {
        anyhow::bail!(
            "the copy differs in {} files: {}",
            faults.len(),
            faults[..faults.len().min(3)].join(", ")
        );
    }
    Ok(wanted.len())
}

fn files(root: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        let path = root.join(&folder);
        for entry in
            fs::read_dir(&path).with_context(|| format!("cannot read {}", path.display()))?
        {
            let entry = entry?;
            let name = entry.file_name();
            if !abreast_source::is_published_name(name.as_encoded_bytes()) {
                continue;
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(folder.join(name));
            } else if kind.is_file() {
                found.insert(folder.join(name));
            }
        }
    }
    Ok(found)
}
