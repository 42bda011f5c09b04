//! Prefixes for namespaces.

use std::collections::BTreeMap;

/// Prefixes by namespace.
///
/// The default has the prefixes of common vocabularies: `rdf`, `rdfs`, `owl`, `xsd`, `skos`, `dc`,
/// `dcterms`, `dcat`, `foaf`, `prov`, `schema`, `sh`, `void`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefixes {
    by_namespace: BTreeMap<String, String>,
}

/// Error for an invalid prefix. A prefix has letters, digits, `-` and `_`, starts with a letter,
/// and not with `xml`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` cannot be a prefix: use letters, digits, `-` and `_`, a letter first, and not `xml`"
)]
pub struct InvalidPrefix(pub String);

const COMMON: [(&str, &str); 13] = [
    ("dc", "http://purl.org/dc/elements/1.1/"),
    ("dcat", "http://www.w3.org/ns/dcat#"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("prov", "http://www.w3.org/ns/prov#"),
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("schema", "http://schema.org/"),
    ("sh", "http://www.w3.org/ns/shacl#"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
    ("void", "http://rdfs.org/ns/void#"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
];

impl Default for Prefixes {
    fn default() -> Self {
        let common = COMMON.into_iter();
        Self {
            by_namespace: common.map(|(prefix, of)| (of.to_owned(), prefix.to_owned())).collect(),
        }
    }
}

impl Prefixes {
    /// No prefixes: all IRIs are written in full if the syntax permits this.
    pub fn none() -> Self {
        Self { by_namespace: BTreeMap::new() }
    }

    /// Adds a prefix. It replaces a prefix with the same name or namespace.
    ///
    /// # Examples
    /// ```
    /// use abreast_rdf::{Prefixes, Syntax, WriteOptions, write};
    ///
    /// let prefixes = Prefixes::none().with("lib", "http://library.example/terms#")?;
    /// let lines = b"<http://h/7> <http://library.example/terms#shelf> \"B 3\" .\n";
    /// let mut turtle = Vec::new();
    /// write(Syntax::Turtle, lines, &WriteOptions::default().with_prefixes(prefixes), &mut turtle)?;
    /// assert!(turtle.starts_with(b"@prefix lib: <http://library.example/terms#> ."));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The prefix has characters that not every syntax allows.
    pub fn with(mut self, prefix: &str, namespace: &str) -> Result<Self, InvalidPrefix> {
        let good = prefix.starts_with(|first: char| first.is_ascii_alphabetic())
            && prefix
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
            && !prefix.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("xml"));
        // Reserved for namespaces without prefix.
        let taken = prefix
            .strip_prefix("ns")
            .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()));
        if !good || taken || (prefix == "rdf" && namespace != crate::write::prefixes::RDF) {
            return Err(InvalidPrefix(prefix.to_owned()));
        }
        self.by_namespace.retain(|_, other| other.as_str() != prefix);
        self.by_namespace.insert(namespace.to_owned(), prefix.to_owned());
        Ok(self)
    }

    /// An IRI with its prefix, such as `skos:prefLabel`; `None` without a prefix for it.
    ///
    /// # Examples
    /// ```
    /// use abreast_rdf::Prefixes;
    ///
    /// let short = Prefixes::default().short("http://www.w3.org/2004/02/skos/core#prefLabel");
    /// assert_eq!(short.as_deref(), Some("skos:prefLabel"));
    /// ```
    pub fn short(&self, iri: &str) -> Option<String> {
        self.split(iri).map(|(prefix, _, local)| format!("{prefix}:{local}"))
    }

    /// The prefix of a namespace.
    pub(super) fn of(&self, namespace: &str) -> Option<&str> {
        self.by_namespace.get(namespace).map(String::as_str)
    }

    /// The prefix, namespace and rest of an IRI, if the rest needs no escapes in Turtle.
    pub(super) fn split<'a>(&'a self, iri: &'a str) -> Option<(&'a str, &'a str, &'a str)> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let mut at = iri.len() - iri.bytes().rev().take_while(|byte| plain(*byte)).count();
        // The namespace may include a part of the plain end, in rare cases.
        loop {
            let local = &iri[at..];
            if let Some(prefix) = self.of(&iri[..at])
                && !local.starts_with('-')
            {
                return Some((prefix, &iri[..at], local));
            }
            if at == iri.len() || iri.len() - at > 64 {
                return None;
            }
            at += 1;
        }
    }
}

pub(super) const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
