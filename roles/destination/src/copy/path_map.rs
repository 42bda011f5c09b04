//! The map from URIs to paths in the destination folder, and back.
//!
//! The map is defined for every URI that it does not refuse. It is injective and reversible, and
//! depends only on the base and on the rules of the file system for names, so all runs yield the
//! same paths. It maps the segments of a URI's path as follows:
//!
//! | segment | name |
//! |---|---|
//! | the canonical encoding of a name that a folder can contain | that name |
//! | anything else (empty, with a query, oddly encoded, reserved) | `%_` and the segment, all but
//! `A-Za-z0-9._-` as `%XX` |
//! | longer than one name | the name, divided into nested folders; each continuation starts with
//! `%+` |
//! | last segment, of a resource whose plain name belongs to a folder | `%!` before the name |
//! | all segments, of a URI outside the base | below `%^` and the escaped scheme and authority |
//!
//! The map refuses segments that a reader could decode to `.` or `..`, and paths longer than
//! [`MAX_PATH_BYTES`]. A query is data, not a path: dots in a query are harmless after escaping.

pub(crate) mod fuzz_property;

use abreast_webtypes::{decode_segment, encode_segment};
use std::fmt;
use thiserror::Error;

/// Maximum length of a relative path, in bytes. The system's limit is about 4,096 bytes, including
/// the path of the destination folder.
pub const MAX_PATH_BYTES: usize = 3_500;
/// Maximum length of the name of a file or folder, in bytes.
const MAX_NAME_BYTES: usize = 255;
/// Name of the state folder in a destination; no URI is mapped to this name.
pub const STATE_FOLDER: &str = ".abreast";
/// Prefix of temporary files; no URI is mapped to a name with this prefix.
pub(crate) const TEMPORARY_PREFIX: &[u8] = b".%~";

const ESCAPED: &[u8] = b"%_";
const CONTINUED: &[u8] = b"%+";
const LEAF: &[u8] = b"%!";
const FOREIGN: &[u8] = b"%^";

/// The two forms of the path of a resource.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Form {
    /// The path that corresponds to the URI.
    #[default]
    Plain,
    /// The reserved leaf name, because a folder with other resources has the plain name.
    Leaf,
}

/// The rules of a file system for file names: letter case, encoding and control characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NameRules {
    /// `a` and `A` are the same name: upper case is escaped.
    pub folds_case: bool,
    /// Names must be valid text, or the file system normalises them: bytes above 0x7F are escaped.
    pub ascii_only: bool,
    /// Names must not contain control characters: they are escaped.
    pub no_controls: bool,
}

/// The reason why a URI has no path in the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PathError {
    /// A segment is or hides `.` or `..`.
    #[error("a path segment is or hides `.` or `..`")]
    Escape,
    /// The path would be longer than [`MAX_PATH_BYTES`].
    #[error("the path would be longer than {MAX_PATH_BYTES} bytes")]
    Length,
}

impl PathError {
    /// The stable code of reports.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Escape => "path.escape",
            Self::Length => "path.length",
        }
    }
}

/// The base is not an absolute URI that ends in `/`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no base: expected an absolute URI that ends in `/`, without query, fragment or dot segments"
)]
pub struct BaseError(String);

/// The map for a base and a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathMap {
    base: String,
    rules: NameRules,
}

impl fmt::Display for PathMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

impl PathMap {
    /// The map for URIs that start with `base`.
    ///
    /// # Errors
    /// The base is not an absolute URI that ends in `/`.
    pub fn new(base: &str, rules: NameRules) -> Result<Self, BaseError> {
        let refuse = || BaseError(base.chars().take(200).collect());
        let path = base
            .find("://")
            .and_then(|at| base[at + 3..].find('/').map(|slash| &base[at + 3 + slash..]));
        let path = path.ok_or_else(refuse)?;
        if !path.ends_with('/')
            || base.contains(['?', '#'])
            || path.split('/').any(|segment| is_escape(segment.as_bytes()))
        {
            return Err(refuse());
        }
        Ok(Self { base: base.to_owned(), rules })
    }

    /// The start of URIs that is not part of their paths.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// The path of the folder for resources whose URIs start with `uri`, which ends with a slash.
    /// The path is empty for the base.
    pub fn folder_of(&self, uri: &str) -> Option<Vec<u8>> {
        if self.base == uri {
            return Some(Vec::new());
        }
        let mut path = Vec::new();
        self.path_into(&format!("{uri}_"), Form::Plain, &mut path).ok()?;
        path.truncate(path.iter().rposition(|byte| *byte == b'/')?);
        Some(path)
    }

    /// Writes the relative path of a URI into `out` and replaces the previous value. A fragment is
    /// part of the last name, as a query is.
    ///
    /// # Errors
    /// See [`PathError`]; the value of `out` is then unspecified.
    pub fn path_into(&self, uri: &str, form: Form, out: &mut Vec<u8>) -> Result<(), PathError> {
        out.clear();
        let (path, query) = uri.split_at(uri.find(['?', '#']).unwrap_or(uri.len()));
        let mut name = Vec::with_capacity(64);
        let segments = if let Some(inside) = path.strip_prefix(self.base.as_str()) {
            Some(inside)
        } else {
            let (front, segments) = foreign_front(path);
            name.extend_from_slice(FOREIGN);
            self.escape_into(front.as_bytes(), &mut name);
            match segments {
                Some(_) => push_name(&name, out),
                None => self.escape_into(query.as_bytes(), &mut name),
            }
            segments
        };
        if let Some(segments) = segments {
            let mut segments = segments.split('/').peekable();
            while let Some(segment) = segments.next() {
                if is_escape(segment.as_bytes()) {
                    return Err(PathError::Escape);
                }
                name.clear();
                if segments.peek().is_some() {
                    self.name_into(segment, "", &mut name);
                    push_name(&name, out);
                } else {
                    self.name_into(segment, query, &mut name);
                }
                if out.len() > MAX_PATH_BYTES {
                    return Err(PathError::Length);
                }
            }
        }
        if form == Form::Leaf {
            name.splice(0..0, LEAF.iter().copied());
        }
        push_name(&name, out);
        if out.len() > MAX_PATH_BYTES { Err(PathError::Length) } else { Ok(()) }
    }

    /// The URI a relative path stands for; `None` for a path that no URI maps to.
    pub fn uri(&self, path: &[u8]) -> Option<(String, Form)> {
        let mut names: Vec<Vec<u8>> = Vec::new();
        for name in path.split(|byte| *byte == b'/') {
            match name.strip_prefix(CONTINUED) {
                Some(rest) => names.last_mut()?.extend_from_slice(rest),
                None => names.push(name.to_vec()),
            }
        }
        let last = names.last_mut()?;
        let form = if last.starts_with(LEAF) {
            last.drain(..LEAF.len());
            Form::Leaf
        } else {
            Form::Plain
        };
        let mut uri;
        let mut names = names.as_slice();
        if let Some(front) = names.first()?.strip_prefix(FOREIGN) {
            uri = String::from_utf8(decode_segment(front)).ok()?;
            names = &names[1..];
            if !names.is_empty() {
                uri.push('/');
            }
        } else {
            uri = self.base.clone();
        }
        let mut first = true;
        for name in names {
            if !first {
                uri.push('/');
            }
            first = false;
            match name.strip_prefix(ESCAPED) {
                Some(escaped) => uri.push_str(std::str::from_utf8(&decode_segment(escaped)).ok()?),
                None => encode_segment(name, &mut uri),
            }
        }
        // A path belongs to a URI only if the map yields this path for the URI.
        let mut again = Vec::with_capacity(path.len());
        (self.path_into(&uri, form, &mut again).is_ok() && again == path).then_some((uri, form))
    }

    /// Writes the name of a segment and its query, before the name is divided.
    fn name_into(&self, segment: &str, query: &str, name: &mut Vec<u8>) {
        if query.is_empty() {
            name.extend(decode_segment(segment.as_bytes()));
            if self.is_plain(name) {
                let mut canonical = String::with_capacity(segment.len());
                encode_segment(name, &mut canonical);
                if canonical == segment {
                    return;
                }
            }
            name.clear();
        }
        name.extend_from_slice(ESCAPED);
        self.escape_into(segment.as_bytes(), name);
        self.escape_into(query.as_bytes(), name);
    }

    fn is_plain(&self, name: &[u8]) -> bool {
        let is_reserved = [ESCAPED, CONTINUED, LEAF, FOREIGN, TEMPORARY_PREFIX]
            .iter()
            .any(|marker| name.starts_with(marker))
            || name.eq_ignore_ascii_case(STATE_FOLDER.as_bytes());
        let is_changed = self.rules.folds_case && name.iter().any(u8::is_ascii_uppercase)
            || self.rules.ascii_only && !name.is_ascii()
            || self.rules.no_controls && name.iter().any(u8::is_ascii_control);
        abreast_folder::is_component(name) && !is_reserved && !is_changed
    }

    fn escape_into(&self, text: &[u8], out: &mut Vec<u8>) {
        const HEX: &[u8; 16] = b"0123456789ABCDEF";
        for &byte in text {
            let raw = byte.is_ascii_lowercase()
                || byte.is_ascii_digit()
                || matches!(byte, b'.' | b'_' | b'-')
                || byte.is_ascii_uppercase() && !self.rules.folds_case;
            if raw {
                out.push(byte);
            } else {
                out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
    }
}

/// The longest prefix of both that ends in `/` and is at least scheme and authority; `None` when
/// they share none.
pub fn common_directory<'a>(one: &'a str, other: &str) -> Option<&'a str> {
    let one = one.split(['?', '#']).next().unwrap_or_default();
    let other = other.split(['?', '#']).next().unwrap_or_default();
    let authority_end =
        one.find("://").and_then(|at| one[at + 3..].find('/').map(|slash| at + 3 + slash))?;
    let shared = one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
    let end = one.as_bytes()[..shared].iter().rposition(|byte| *byte == b'/')?;
    (end >= authority_end).then(|| &one[..=end])
}

/// Adds a name to a path, divided into nested folders if it is too long.
fn push_name(name: &[u8], out: &mut Vec<u8>) {
    let (first, mut rest) = name.split_at(name.len().min(MAX_NAME_BYTES));
    if !out.is_empty() {
        out.push(b'/');
    }
    out.extend_from_slice(first);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.len().min(MAX_NAME_BYTES - CONTINUED.len()));
        out.push(b'/');
        out.extend_from_slice(CONTINUED);
        out.extend_from_slice(piece);
        rest = after;
    }
}

/// Scheme and authority of a URI, and its path without the first `/`; the whole URI and `None` if
/// the URI has no path.
fn foreign_front(uri: &str) -> (&str, Option<&str>) {
    let slash = uri.find("://").and_then(|at| uri[at + 3..].find('/').map(|slash| at + 3 + slash));
    match slash {
        Some(at) => (&uri[..at], Some(&uri[at + 1..])),
        None => (uri, None),
    }
}

/// Whether the segment, decoded once, is `.` or `..`, or holds one between slashes of either kind.
fn is_escape(segment: &[u8]) -> bool {
    if !segment.iter().any(|byte| matches!(byte, b'.' | b'%')) {
        return false;
    }
    let is_dots = |part: &[u8]| part == b"." || part == b"..";
    is_dots(segment)
        || decode_segment(segment).split(|byte| matches!(byte, b'/' | b'\\')).any(is_dots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn map() -> PathMap {
        PathMap::new("http://source.example/", NameRules::default()).unwrap()
    }

    fn path(map: &PathMap, uri: &str, form: Form) -> Result<String, PathError> {
        let mut out = Vec::new();
        map.path_into(uri, form, &mut out).map(|()| String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn ordinary_uris_keep_their_names() {
        for (uri, expected) in [
            ("a/b.txt", "a/b.txt"),
            ("a%20b/%C3%A9.txt", "a b/é.txt"),
            ("100%25", "100%"),
            ("it's(1)~@&=+$,;!*", "it's(1)~@&=+$,;!*"),
            (".hidden", ".hidden"),
            ("...", "..."),
        ] {
            assert_eq!(
                path(&map(), &format!("http://source.example/{uri}"), Form::Plain).unwrap(),
                expected
            );
        }
    }

    #[test]
    fn odd_uris_get_escaped_names() {
        for (uri, expected) in [
            ("", "%_"),
            ("a/", "a/%_"),
            ("a//b", "a/%_/b"),
            ("i?", "%_i%3F"),
            ("i?id=1", "%_i%3Fid%3D1"),
            ("i?id=1#frag", "%_i%3Fid%3D1%23frag"),
            ("i#frag", "%_i%23frag"),
            ("a/#", "a/%_%23"),
            ("i?p=../../x", "%_i%3Fp%3D..%2F..%2Fx"),
            ("%c3%a9", "%_%25c3%25a9"),
            ("a:b", "%_a%3Ab"),
            ("%41", "%_%2541"),
            ("100%", "%_100%25"),
            ("a%2Fb", "%_a%252Fb"),
            ("a%00", "%_a%2500"),
            ("%25_x", "%_%2525_x"),
            (".abreast/mirror.db", "%_.abreast/mirror.db"),
            (".%25~1", "%_.%2525%7E1"),
            ("%252e%252e%252fsafe5", "%2e%2e%2fsafe5"),
        ] {
            assert_eq!(
                path(&map(), &format!("http://source.example/{uri}"), Form::Plain).unwrap(),
                expected,
                "{uri}"
            );
        }
    }

    #[test]
    fn segments_that_hide_dots_are_refused() {
        for uri in [
            "d/../../../escaped.txt",
            "..",
            ".",
            "a/./b",
            "a/..",
            "%2e%2e%2fescape1",
            "..%2fescape2",
            "%2e./escape3",
            "..%5cescape4",
            "%2E",
            "x%2F..%2Fy",
            "x\\..\\y",
            "..%2f?q",
        ] {
            assert_eq!(
                path(&map(), &format!("http://source.example/{uri}"), Form::Plain),
                Err(PathError::Escape),
                "{uri}"
            );
        }
        assert_eq!(
            path(&map(), "http://other.example/a/../b", Form::Plain),
            Err(PathError::Escape)
        );
    }

    #[test]
    fn uris_outside_the_base_have_a_reserved_folder() {
        let map = PathMap::new("http://source.example/set/", NameRules::default()).unwrap();
        for (uri, expected) in [
            ("http://source.example/other", "%^http%3A%2F%2Fsource.example/other"),
            ("http://source.example/set", "%^http%3A%2F%2Fsource.example/set"),
            ("http://source.example/set?x/y", "%^http%3A%2F%2Fsource.example/%_set%3Fx%2Fy"),
            ("https://o.example:8080/a/b?c", "%^https%3A%2F%2Fo.example%3A8080/a/%_b%3Fc"),
            ("http://o.example", "%^http%3A%2F%2Fo.example"),
            ("http://o.example/", "%^http%3A%2F%2Fo.example/%_"),
            ("http://o.example?a/b", "%^http%3A%2F%2Fo.example%3Fa%2Fb"),
            ("urn:x:y", "%^urn%3Ax%3Ay"),
        ] {
            assert_eq!(path(&map, uri, Form::Plain).unwrap(), expected, "{uri}");
            for form in [Form::Plain, Form::Leaf] {
                let path = path(&map, uri, form).unwrap();
                assert_eq!(map.uri(path.as_bytes()), Some((uri.to_owned(), form)), "{path}");
            }
        }
    }

    #[test]
    fn long_segments_are_cut_and_long_paths_refused() {
        let long = "x".repeat(600);
        let uri = format!("http://source.example/a/{long}/b");
        let path_of_long = path(&map(), &uri, Form::Plain).unwrap();
        assert!(path_of_long.split('/').all(|name| name.len() <= 255), "{path_of_long}");
        assert_eq!(path_of_long.matches("/%+").count(), 2);
        assert_eq!(map().uri(path_of_long.as_bytes()), Some((uri, Form::Plain)));
        let uri = format!("http://source.example/{}", "y/".repeat(1_800));
        assert_eq!(path(&map(), &uri, Form::Plain), Err(PathError::Length));
        // A name of 255 bytes fits; with the leaf marker it is cut.
        let uri = format!("http://source.example/{}", "z".repeat(255));
        assert_eq!(path(&map(), &uri, Form::Plain).unwrap(), "z".repeat(255));
        assert_eq!(path(&map(), &uri, Form::Leaf).unwrap(), format!("%!{}/%+zz", "z".repeat(253)));
    }

    #[test]
    fn paths_no_uri_maps_to_stand_for_nothing() {
        for path in [
            "",
            "a//b",
            "/a",
            "a/",
            "%+x",
            "%_a",
            "%_%zz",
            ".abreast/mirror.db",
            ".%~1",
            "%!%!a",
            "a/%^b",
            "..",
            "a/../b",
        ] {
            assert_eq!(map().uri(path.as_bytes()), None, "{path}");
        }
        assert_eq!(map().uri(b"a"), Some(("http://source.example/a".to_owned(), Form::Plain)));
        assert_eq!(map().uri(b"%!a"), Some(("http://source.example/a".to_owned(), Form::Leaf)));
        assert_eq!(map().uri(b"\xff"), Some(("http://source.example/%FF".to_owned(), Form::Plain)));
    }

    #[test]
    fn names_differ_where_case_does_not_count() {
        let map = PathMap::new(
            "http://source.example/",
            NameRules { folds_case: true, ascii_only: true, no_controls: false },
        )
        .unwrap();
        assert_eq!(path(&map, "http://source.example/readme", Form::Plain).unwrap(), "readme");
        assert_eq!(
            path(&map, "http://source.example/README", Form::Plain).unwrap(),
            "%_%52%45%41%44%4D%45"
        );
        assert_eq!(
            path(&map, "http://source.example/%C3%A9", Form::Plain).unwrap(),
            "%_%25%433%25%419"
        );
    }

    #[test]
    fn a_base_is_an_absolute_folder() {
        for base in [
            "",
            "http://h",
            "http://h/a",
            "/a/",
            "http://h/a?/",
            "http://h/#/",
            "http://h/a/../",
            "http://h/%2e%2e/",
        ] {
            assert!(PathMap::new(base, NameRules::default()).is_err(), "{base}");
        }
    }

    #[test]
    fn the_common_directory_never_leaves_the_authority() {
        assert_eq!(common_directory("http://h/a/b/c", "http://h/a/bc"), Some("http://h/a/"));
        assert_eq!(common_directory("http://h/a/b", "http://h/a/b"), Some("http://h/a/"));
        assert_eq!(common_directory("http://h/a?x/y", "http://h/a?x/z"), Some("http://h/"));
        assert_eq!(common_directory("http://h/a", "http://hh/a"), None);
        assert_eq!(common_directory("http://h/a", "https://h/a"), None);
        assert_eq!(common_directory("http://h", "http://h"), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn two_uris_never_share_a_path_even_when_case_is_folded(
            one in "([aA]|[bB]|/|\\?|%4[12]|%6[12]|%|_){0,6}",
            two in "([aA]|[bB]|/|\\?|%4[12]|%6[12]|%|_){0,6}",
        ) {
            let map = PathMap::new("http://source.example/", NameRules { folds_case: true, ascii_only: true, no_controls: false }).unwrap();
            let of = |text: &str, form| path(&map, &format!("http://source.example/{text}"), form).unwrap().to_ascii_lowercase();
            if one != two {
                prop_assert_ne!(of(&one, Form::Plain), of(&two, Form::Plain));
            }
            prop_assert_ne!(of(&one, Form::Plain), of(&two, Form::Leaf));
        }
    }
}
