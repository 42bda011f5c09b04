//! Places to check: URLs and files.

/// Is it a URL, rather than the path of a file?
pub(crate) fn is_url(start: &str) -> bool {
    start
        .split_once("://")
        .is_some_and(|(scheme, _)| ["http", "https"].iter().any(|s| scheme.eq_ignore_ascii_case(s)))
}
