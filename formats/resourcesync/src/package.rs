//! Paths of the members of Resource Dump and Change Dump packages [rs-core §11.2, §13.2].
//!
//! A package is a ZIP file with `manifest.xml` at its top level. Each entry of the manifest has the
//! `path` of its bitstream: `/` and the name of the member.

use abreast_webtypes::decode_segment;

/// The member that lists all others.
pub const MANIFEST: &str = "manifest.xml";

/// Media type of a package.
pub const ZIP: &str = "application/zip";

/// The `path` of a bitstream: the resource's key below a folder of the package, readable for anyone
/// who unpacks it by hand. Two keys never share a path.
///
/// `key` is a reference relative to the set's base, each segment percent-encoded. A key with
/// segments that some systems cannot unpack (no UTF-8, control characters, a backslash, a blank at
/// the end) remains percent-encoded, below `encoded`, where it cannot equal a readable path.
///
/// # Examples
/// ```
/// use abreast_resourcesync::package::bitstream_path;
///
/// let readable = bitstream_path("resources", "letters/1843/an%20Clara.xml");
/// assert_eq!(readable, "/resources/letters/1843/an Clara.xml");
/// // A name in ISO 8859-1 is not UTF-8.
/// assert_eq!(bitstream_path("resources", "M%FCller.pdf"), "/encoded/resources/M%FCller.pdf");
/// ```
pub fn bitstream_path(folder: &str, key: &str) -> String {
    let mut path = format!("/{folder}/");
    let start = path.len();
    for (number, segment) in key.split('/').enumerate() {
        if number > 0 {
            path.push('/');
        }
        match String::from_utf8(decode_segment(segment.as_bytes())) {
            Ok(name) if is_readable(&name) => path.push_str(&name),
            _ => return format!("/encoded/{folder}/{key}"),
        }
    }
    debug_assert!(path.len() > start, "a key is not empty");
    path
}

/// The name of the member for a manifest's `path`.
///
/// Lenient: the slash at its beginning may be missing, as some publishers leave it out.
///
/// # Examples
/// ```
/// use abreast_resourcesync::package::member_name;
///
/// assert_eq!(member_name("/resources/thesis.pdf"), "resources/thesis.pdf");
/// assert_eq!(member_name("resources/thesis.pdf"), "resources/thesis.pdf");
/// ```
pub fn member_name(path: &str) -> &str {
    path.strip_prefix('/').unwrap_or(path)
}

/// Whether every system can unpack a member with this name.
fn is_readable(name: &str) -> bool {
    let odd = |character: char| {
        character.is_control() || matches!(character, '/' | '\\' | '\u{fffe}' | '\u{ffff}')
    };
    !name.is_empty() && !matches!(name, "." | "..") && !name.contains(odd) && name.trim() == name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_readable_where_they_can_be() {
        assert_eq!(bitstream_path("resources", "a%20b/%C3%A9%25.txt"), "/resources/a b/é%.txt");
        assert_eq!(member_name("/resources/a b"), "resources/a b");
        assert_eq!(member_name("a"), "a");
    }

    #[test]
    fn names_that_no_zip_can_hold_everywhere_stay_encoded_and_apart() {
        for key in ["a/%FF", "x%5Cy", "a%0Ab", "%2e%2e/a", "a%2Fb", "a%20", "%C2%85", "a//b"] {
            assert_eq!(bitstream_path("resources", key), format!("/encoded/resources/{key}"));
        }
        assert_ne!(bitstream_path("resources", "a%25FF"), bitstream_path("resources", "a%FF"));
    }
}
