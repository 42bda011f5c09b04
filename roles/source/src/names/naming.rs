//! The names of a set's resources: keys in the log, paths in the folder, URIs in documents.

use super::keys::{key_of, path_of};

/// The names of a set's resources: keys in the log, paths in the folder, URIs in documents.
///
/// In a set of files, the key of a resource is its relative path, with each name percent-encoded,
/// including colons. The key of any other resource is its absolute URI.
///
/// In a set of entities, the key is the IRI of the entity. Documents contain the address at which
/// the Source serves the description of the entity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Naming {
    resources: String,
    /// Rules for the addresses of entities; `None` in a set of files.
    entities: Option<EntityPaths>,
}

/// Rules that convert the IRIs of entities to addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
struct EntityPaths {
    /// Prefix of IRIs that addresses omit; may be empty.
    namespace: String,
    /// Suffix of each address: the file extension in a static site, empty on a server.
    suffix: &'static str,
}

/// Extension of the files that contain descriptions.
const FILE_SUFFIX: &str = ".nt";

/// First segment in the path of an entity outside the namespace.
const OUTSIDE: &str = "!iri";
/// Prefix of each later part of a segment that is too long for a file name. After the `!` of an
/// escaped segment comes the end, `.`, `..` or another `!`, so the two cannot be confused.
const CONTINUED: &str = "!-";
/// Most bytes of a segment in one file name. File systems allow 255 bytes; the difference is for
/// prefix and extension.
const MAX_PIECE: usize = 250;

impl Naming {
    /// Creates the names of a set whose resources have URIs with this prefix, which ends in `/`.
    #[must_use]
    pub fn new(resources: impl Into<String>) -> Self {
        Self { resources: resources.into(), entities: None }
    }

    /// Changes the set to entities whose IRIs start with this namespace, which may be empty.
    #[must_use]
    pub fn of_entities(self, namespace: impl Into<String>) -> Self {
        let entities = EntityPaths { namespace: namespace.into(), suffix: "" };
        Self { entities: Some(entities), ..self }
    }

    /// Changes the addresses of descriptions to files of a static site. The addresses end in `.nt`,
    /// so that a web server can derive the media type, and both `a` and `a/b` can exist.
    #[must_use]
    pub(crate) fn in_files(mut self) -> Self {
        if let Some(entities) = &mut self.entities {
            entities.suffix = FILE_SUFFIX;
        }
        self
    }

    /// Prefix of the URIs of all resources that are served by the set.
    pub fn resources(&self) -> &str {
        &self.resources
    }

    /// Whether the resources are entities, rather than files.
    pub fn names_entities(&self) -> bool {
        self.entities.is_some()
    }

    /// Whether this is the key of a file in the set, rather than a URI.
    pub fn is_own(key: &str) -> bool {
        !key.contains(':')
    }

    /// Decodes a key to the relative path of the file; `None` if the key is a URI.
    ///
    /// # Examples
    /// ```
    /// use abreast_source::Naming;
    ///
    /// assert_eq!(Naming::path("letters/an%20Clara.xml"), Some(b"letters/an Clara.xml".to_vec()));
    /// assert_eq!(Naming::path("https://museum.example/objects/7"), None);
    /// ```
    pub fn path(key: &str) -> Option<Vec<u8>> {
        Self::is_own(key).then(|| path_of(key))
    }

    /// Encodes a relative path as a key, with each name as a segment.
    ///
    /// # Examples
    /// ```
    /// use abreast_source::Naming;
    ///
    /// assert_eq!(Naming::key("maps/Köln 1571.tif".as_bytes()), "maps/K%C3%B6ln%201571.tif");
    /// ```
    pub fn key(path: &[u8]) -> String {
        key_of(path)
    }

    /// Returns the URI of the resource with this key.
    ///
    /// # Examples
    /// ```
    /// use abreast_source::Naming;
    ///
    /// let naming = Naming::new("https://repo.example/maps/r/");
    /// assert_eq!(naming.uri("1571.tif"), "https://repo.example/maps/r/1571.tif");
    /// // A resource elsewhere has its URI as its key.
    /// assert_eq!(naming.uri("https://museum.example/7"), "https://museum.example/7");
    /// ```
    pub fn uri(&self, key: &str) -> String {
        let mut uri = String::with_capacity(self.resources.len() + key.len());
        self.write_uri(key, &mut uri);
        uri
    }

    /// Replaces the content of `out` with the URI of a key.
    pub(crate) fn write_uri(&self, key: &str, out: &mut String) {
        out.clear();
        match &self.entities {
            Some(entities) => {
                out.push_str(&self.resources);
                entities.write(key, out);
            }
            None if Self::is_own(key) => {
                out.push_str(&self.resources);
                out.push_str(key);
            }
            None => out.push_str(key),
        }
    }

    /// Returns the URI of a key, without the prefix [`Self::resources`] if the URI starts with it.
    ///
    /// # Examples
    /// ```
    /// use abreast_source::Naming;
    ///
    /// let naming = Naming::new("https://library.example/subjects/r/")
    ///     .of_entities("https://id.example.org/subjects/");
    /// assert_eq!(naming.address_path("https://id.example.org/subjects/maps"), "maps");
    /// let outside = naming.address_path("https://museum.example/coins");
    /// assert!(outside.starts_with("!iri/"));
    /// ```
    pub fn address_path(&self, key: &str) -> String {
        let mut path = String::with_capacity(key.len());
        match &self.entities {
            Some(entities) => entities.write(key, &mut path),
            None => path.push_str(key),
        }
        path
    }

    /// Returns the key of the resource at a path below [`Self::resources`]; `None` if a resource
    /// cannot have this path.
    ///
    /// # Examples
    /// ```
    /// use abreast_source::Naming;
    ///
    /// let naming = Naming::new("https://library.example/subjects/r/")
    ///     .of_entities("https://id.example.org/subjects/");
    /// let key = naming.key_at("maps");
    /// assert_eq!(key.as_deref(), Some("https://id.example.org/subjects/maps"));
    /// ```
    pub fn key_at(&self, path: &str) -> Option<String> {
        let Some(entities) = &self.entities else {
            return Some(key_of(&path_of(path)));
        };
        let key = entities.read(path)?;
        let mut canonical = String::new();
        entities.write(&key, &mut canonical);
        // Percent signs can be encoded in two ways; only one path is accepted for each entity.
        (path_of(&canonical) == path_of(path)).then_some(key)
    }
}

impl EntityPaths {
    /// Appends the path of an entity: the IRI without the namespace, or `!iri` and the whole IRI.
    /// Segments that some paths cannot contain (empty, `.`, `..`) get the prefix `!`. Segments that
    /// could also be the name of a file get the suffix `!`. Segments that are too long for a file
    /// name are divided into nested folders.
    fn write(&self, iri: &str, out: &mut String) {
        let rest = match iri.strip_prefix(&self.namespace) {
            Some(rest) if !self.namespace.is_empty() && !rest.is_empty() => rest,
            _ => {
                out.push_str(OUTSIDE);
                out.push('/');
                iri
            }
        };
        let mut pieces = rest.split('/').flat_map(|segment| self.pieces(segment)).peekable();
        while let Some((is_first, piece)) = pieces.next() {
            if !is_first {
                out.push_str(CONTINUED);
            } else if matches!(piece, "" | "." | "..") || piece.starts_with('!') {
                out.push('!');
            }
            abreast_webtypes::encode_segment(piece.as_bytes(), out);
            if pieces.peek().is_some() {
                if self.is_file_name(piece) {
                    out.push('!');
                }
                out.push('/');
            }
        }
        out.push_str(self.suffix);
    }

    /// Divides a segment into parts that fit in a file name. The flag is true for the first part.
    fn pieces<'a>(&self, segment: &'a str) -> impl Iterator<Item = (bool, &'a str)> {
        let max = if self.suffix.is_empty() { usize::MAX } else { MAX_PIECE };
        let mut rest = Some(segment);
        let mut is_first = true;
        std::iter::from_fn(move || {
            let text = rest?;
            let mut end = text.len().min(max);
            while !text.is_char_boundary(end) {
                end -= 1;
            }
            let (piece, after) = text.split_at(end);
            rest = (!after.is_empty()).then_some(after);
            Some((std::mem::take(&mut is_first), piece))
        })
    }

    /// Returns the IRI of the entity with this path.
    fn read(&self, path: &str) -> Option<String> {
        let path = path.strip_suffix(self.suffix)?;
        let outside = path.strip_prefix(OUTSIDE).and_then(|rest| rest.strip_prefix('/'));
        let (mut iri, rest) = match outside {
            Some(rest) => (String::new(), rest),
            None if self.namespace.is_empty() => return None,
            None => (self.namespace.clone(), path),
        };
        let mut segments = rest.split('/').enumerate().peekable();
        while let Some((number, segment)) = segments.next() {
            let decoded = abreast_webtypes::decode_segment(segment.as_bytes());
            let decoded = String::from_utf8(decoded).ok()?;
            let continued = decoded.strip_prefix(CONTINUED).filter(|_| !self.suffix.is_empty());
            let mut text = continued.or(decoded.strip_prefix('!')).unwrap_or(&decoded);
            let is_last = segments.peek().is_none();
            if !is_last && self.is_file_name(text) {
                text = text.strip_suffix('!')?;
            }
            if number > 0 && continued.is_none() {
                iri.push('/');
            }
            iri.push_str(text);
        }
        Some(iri)
    }

    /// Whether the name of a folder could also be the name of a file with a description.
    fn is_file_name(&self, segment: &str) -> bool {
        !self.suffix.is_empty() && segment.trim_end_matches('!').ends_with(self.suffix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_keys_have_paths_and_uris_of_the_set() {
        let naming = Naming::new("https://example.org/set/r/");
        assert_eq!(naming.uri("a%20b/c"), "https://example.org/set/r/a%20b/c");
        assert_eq!(Naming::path("a%20b/c").unwrap(), b"a b/c");
        assert_eq!(Naming::key(b"a b/x:y"), "a%20b/x%3Ay");
        for uri in ["https://example.net/a", "urn:isbn:0451450523"] {
            assert_eq!((naming.uri(uri).as_str(), Naming::path(uri)), (uri, None));
        }
    }

    #[test]
    fn every_entity_has_an_address_of_its_own() {
        let iris = [
            "http://id.example/a",
            "http://id.example/a/",
            "http://id.example/a//b",
            "http://id.example/",
            "http://id.example",
            "http://id.example/../x",
            "http://id.example/./x",
            "http://id.example/!",
            "http://id.example/!!",
            "http://id.example/!!/x",
            "http://id.example/a%2Fb",
            "http://id.example/a%2fb",
            "http://id.example/a?b=c/d#e",
            "http://id.example/\u{e9}",
            "http://id.example/%C3%A9",
            "urn:isbn:1",
            "http://other.example/a",
            "http://id.example/http://id.example/a",
            "tag:x,2026:/",
        ];
        let long = ["a".repeat(250), "\u{e9}".repeat(400), "!.nt".repeat(200), "./".repeat(300)]
            .map(|segment| ["", "/x", "!"].map(|end| format!("http://id.example/{segment}{end}")));
        let iris: Vec<_> =
            iris.into_iter().chain(long.iter().flatten().map(String::as_str)).collect();
        for namespace in
            ["", "http://id.example/", "http://id.example", "urn:isbn:", "http://id.example/a"]
        {
            let naming = Naming::new("https://example.org/set/r/").of_entities(namespace);
            for naming in [naming.clone(), naming.in_files()] {
                let mut addresses = std::collections::BTreeSet::new();
                for &iri in &iris {
                    let address = naming.uri(iri);
                    let path = address.strip_prefix("https://example.org/set/r/").unwrap();
                    let is_file = naming.entities.as_ref().unwrap().suffix == FILE_SUFFIX;
                    let names = path_of(path);
                    assert!(
                        !is_file || names.split(|byte| *byte == b'/').all(|name| name.len() < 256)
                    );
                    assert!(path.split('/').all(|part| !["", ".", ".."].contains(&part)), "{path}");
                    assert!(path.is_ascii() && !path.contains("%2F"), "{path}");
                    assert_eq!(naming.key_at(path).as_deref(), Some(iri), "{path}");
                    assert!(addresses.insert(address), "{iri}");
                }
            }
        }
        let naming = Naming::new("r/").of_entities("http://id.example/");
        assert_eq!(naming.uri("http://id.example/sh85/x"), "r/sh85/x");
        assert_eq!(naming.uri("http://b.example/x"), "r/!iri/http%3A/!/b.example/x");
        for path in ["", "a//b", "!x", "a/../b", "!iri/", "!iri"] {
            assert_eq!(naming.key_at(path), None, "{path}");
        }
    }

    #[test]
    fn odd_names_become_encoded_keys() {
        let path = b"a b/<&\"'>\n/\xff%41";
        assert_eq!(key_of(path), "a%20b/%3C&%22'%3E%0A/%FF%2541");
        assert_eq!(path_of(&key_of(path)), path);
    }
}
