//! IRIs in place of blank nodes, and back [rdf11-concepts §3.5].
//!
//! The IRI is made of the content, so that equal descriptions have equal IRIs in each copy and no
//! table of names is needed.

use std::collections::BTreeMap;

use oxrdf::NamedNode;

use crate::canonical::{Canonical, MAX_WORK, canonical_statements, content_hashes, hash_part};
use crate::entity_patch::ANY_LABEL;
use crate::statement::{Statement, StatementError, is_blank, statements};

pub(crate) const PATH: &str = "/.well-known/genid/";

/// Why blank nodes and IRIs cannot be exchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkolemError {
    /// The base is not an IRI.
    #[error("`{base}` is not the beginning of an IRI\n  help: use one like `https://example.org`")]
    Base {
        /// The base.
        base: String,
    },
    /// A line is not a statement as this crate writes it.
    #[error(transparent)]
    Statement(#[from] StatementError),
}

/// Replaces each blank node of canonical lines by `BASE/.well-known/genid/HASH`. The result is
/// canonical too.
///
/// With a salt, usually the entity, the hash is that of the name in this description: blank nodes of
/// different entities have different IRIs, and an IRI remains the same where the name does. Without
/// one, it is that of all that is stated of the blank node: one that several entities share
/// has the same IRI in each, and so have blank nodes of equal content in different descriptions.
///
/// # Errors
/// - `base` is not the beginning of an IRI.
/// - A line is not a statement as this crate writes it.
pub fn skolemize(lines: &[u8], base: &str, salt: Option<&str>) -> Result<Vec<u8>, SkolemError> {
    let prefix = prefix(base)?;
    let all: Result<Vec<Statement<'_>>, StatementError> = statements(lines).collect();
    let all = all?;
    let hashes = match salt {
        Some(salt) => salted_hashes(&all, salt),
        None => content_hashes(all.clone()),
    };
    Ok(replaced(all, &hashes, &prefix))
}

/// As [`skolemize`] with a salt, where `prefix` is the beginning of the terms, with `<`.
pub(crate) fn name_by_prefix(
    lines: &[u8],
    prefix: &str,
    salt: &str,
) -> Result<Vec<u8>, StatementError> {
    let all: Result<Vec<Statement<'_>>, StatementError> = statements(lines).collect();
    let all = all?;
    let hashes = salted_hashes(&all, salt);
    Ok(replaced(all, &hashes, prefix))
}

fn salted_hashes<'a>(all: &[Statement<'a>], salt: &str) -> BTreeMap<&'a [u8], [u8; 32]> {
    let terms = all.iter().flat_map(|statement| [statement.subject, statement.object]);
    terms.filter(|term| is_blank(term)).map(|term| (term, salted(salt, term))).collect()
}

fn replaced(all: Vec<Statement<'_>>, hashes: &BTreeMap<&[u8], [u8; 32]>, prefix: &str) -> Vec<u8> {
    let iris: BTreeMap<&[u8], Vec<u8>> =
        hashes.iter().map(|(term, hash)| (*term, skolem_iri(prefix, *hash))).collect();
    let iri = |term| iris.get(term).map_or(term, Vec::as_slice);
    let mut renamed: Vec<Statement<'_>> = Vec::with_capacity(all.len());
    for statement in all {
        let (subject, object) = (iri(statement.subject), iri(statement.object));
        renamed.push(Statement { subject, object, ..statement });
    }
    canonical_statements(renamed, MAX_WORK).lines
}

/// Replaces the IRIs that [`skolemize`] makes with this base by blank nodes. Other IRIs are kept,
/// even those of other hosts that have the same path.
///
/// # Errors
/// As [`skolemize`].
pub fn unskolemize(lines: &[u8], base: &str) -> Result<Canonical, SkolemError> {
    Ok(blank_by_prefix(lines, &prefix(base)?)?)
}

/// As [`unskolemize`], where `prefix` is the beginning of the terms, with `<`.
pub(crate) fn blank_by_prefix(lines: &[u8], prefix: &str) -> Result<Canonical, StatementError> {
    let statements: Result<Vec<Statement<'_>>, StatementError> = statements(lines).collect();
    let statements = statements?;
    let label = |term: &[u8]| {
        let name = term.strip_prefix(prefix.as_bytes())?.strip_suffix(b">")?;
        let is_name =
            prefix == ANY_LABEL || (!name.is_empty() && name.iter().all(u8::is_ascii_alphanumeric));
        is_name.then(|| [b"_:", name].concat())
    };
    let names: Vec<[Option<Vec<u8>>; 2]> = statements
        .iter()
        .map(|statement| [statement.subject, statement.object].map(label))
        .collect();
    let renamed = statements.iter().zip(&names).map(|(statement, [subject, object])| Statement {
        subject: subject.as_deref().unwrap_or(statement.subject),
        object: object.as_deref().unwrap_or(statement.object),
        ..*statement
    });
    Ok(canonical_statements(renamed.collect(), MAX_WORK))
}

/// `<BASE/.well-known/genid/`.
pub(crate) fn prefix(base: &str) -> Result<String, SkolemError> {
    let base = base.strip_suffix('/').unwrap_or(base);
    let iri = format!("{base}{PATH}");
    match NamedNode::new(iri.as_str()) {
        Ok(_) if base.contains("://") => Ok(format!("<{iri}")),
        _ => Err(SkolemError::Base { base: base.to_owned() }),
    }
}

fn salted(salt: &str, label: &[u8]) -> [u8; 32] {
    let mut content = b"skolem".to_vec();
    hash_part(&mut content, salt.as_bytes());
    content.extend_from_slice(label);
    *blake3::hash(&content).as_bytes()
}

fn skolem_iri(prefix: &str, hash: [u8; 32]) -> Vec<u8> {
    let hash = blake3::Hash::from_bytes(hash).to_hex();
    [prefix.as_bytes(), &hash.as_bytes()[..32], b">"].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical_lines;

    const LINES: &[u8] = b"<http://e/a> <http://e/p> _:x .\n\
        <http://e/a> <http://e/p> _:y .\n\
        <http://e/a> <http://e/p> <https://other.example/.well-known/genid/1> .\n\
        _:x <http://e/p> _:y .\n\
        _:y <http://e/p> \"_:x\" .\n";

    #[test]
    fn skolem_iris_depend_on_content_and_salt() {
        let canonical = canonical_lines(LINES).unwrap().lines;
        let of = |salt| skolemize(&canonical, "https://example.org", salt).unwrap();
        assert_eq!(of(Some("http://e/a")), of(Some("http://e/a")));
        assert_ne!(of(Some("http://e/a")), of(Some("http://e/b")));
        assert_ne!(of(Some("http://e/a")), of(None));
        let text = String::from_utf8(of(None)).unwrap();
        assert!(!text.contains(" _:") && !text.contains("\n_:"), "{text}");
        assert_eq!(text.matches("<https://example.org/.well-known/genid/").count(), 5, "{text}");
    }

    #[test]
    fn unskolemizing_gives_back_the_same_lines() {
        let canonical = canonical_lines(LINES).unwrap();
        let iris = skolemize(&canonical.lines, "https://example.org/", Some("salt")).unwrap();
        assert_eq!(unskolemize(&iris, "https://example.org").unwrap(), canonical);
        // IRIs of another base stay IRIs.
        assert_eq!(unskolemize(&iris, "https://example.com").unwrap().lines, iris);
    }

    #[test]
    fn a_shared_blank_node_has_one_iri_without_a_salt() {
        let shared = "_:x <http://e/p> _:y .\n_:y <http://e/rest> <http://e/nil> .\n";
        let iris = |own: &str, salt| {
            let canonical = canonical_lines(format!("{own}{shared}").as_bytes()).unwrap();
            let lines = skolemize(&canonical.lines, "https://e", salt).unwrap();
            let text = String::from_utf8(lines).unwrap();
            let iris = text.split_whitespace().filter(|term| term.contains("genid"));
            iris.map(str::to_owned).collect::<std::collections::BTreeSet<_>>()
        };
        let a = "<http://e/a> <http://e/p> _:x .\n";
        let b = "<http://e/b> <http://e/q> _:x .\n<http://e/b> <http://e/q> _:other .\n";
        assert_eq!(iris(a, None).len(), 2);
        assert!(iris(a, None).is_subset(&iris(b, None)));
        assert!(iris(a, Some("a")).is_disjoint(&iris(b, Some("b"))));
        let cycle = "_:y <http://e/p> _:x .\n";
        let (a, b) = (format!("{a}{cycle}"), format!("{b}{cycle}"));
        assert!(iris(&a, None).is_disjoint(&iris(&b, None)));
    }

    #[test]
    fn a_base_that_is_no_iri_is_refused() {
        for base in ["", "example.org", "https://e> <x", "mailto:a"] {
            let error = skolemize(b"", base, None).unwrap_err();
            assert_eq!(error, SkolemError::Base { base: base.to_owned() });
        }
    }
}
