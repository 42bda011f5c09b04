//! Files of the repository: a walk that skips build output and downloads.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::process::root;

/// Folders that are never inspected.
const LEFT_OUT: [&str; 6] = ["target", ".git", ".venv", "corpus", "artifacts", "node_modules"];

/// All files below `start` whose name ends with one of `endings` (all files when empty), in order.
pub(crate) fn files(start: &Path, endings: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(start, endings, &mut found)?;
    found.sort();
    Ok(found)
}

/// The path as people write it: from the repository's root.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The part of a Rust file before its unit tests, which by habit are at its end.
pub(crate) fn before_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod ").map_or(text, |end| &text[..end])
}

fn collect(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let kind = entry.file_type()?;
        if LEFT_OUT.contains(&name.as_ref()) {
            // In a linked worktree `.git` is a file.
            continue;
        }
        if kind.is_dir() {
            collect(&entry.path(), endings, found)?;
        } else if kind.is_file()
            && (endings.is_empty() || endings.iter().any(|ending| name.ends_with(ending)))
        {
            found.push(entry.path());
        }
    }
    Ok(())
}
