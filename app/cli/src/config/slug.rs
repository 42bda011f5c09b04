//! Names of sets in URLs.

use std::path::Path;

/// Names of sets that would hide other addresses.
pub(super) const RESERVED: &[&str] = &[
    "admin",
    "api",
    "hub",
    "sourcedescription",
    "livez",
    "readyz",
    "metrics",
    "sdshare",
    "timegate",
    "timemap",
    "r",
    "m",
];

/// A set's name made from a folder's name.
pub(crate) fn slug_of(folder: &Path) -> String {
    let name =
        folder.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    let slug: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-') {
                c
            } else {
                '-'
            }
        })
        .collect();
    let slug = slug.trim_matches(['-', '.', '_']);
    let slug: String = slug.chars().take(64).collect();
    if slug.is_empty() || RESERVED.contains(&slug.as_str()) { "set".to_owned() } else { slug }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_sets_are_made_from_folders() {
        assert_eq!(slug_of(Path::new("/x/My Papers (2026)")), "my-papers--2026");
        assert_eq!(slug_of(Path::new("/")), "set");
        assert_eq!(slug_of(Path::new("/x/api")), "set");
    }
}
