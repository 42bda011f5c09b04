//! IRIs in place of blank nodes, and back [rdf11-concepts §3.5].
//!
//! The IRI is made of the node's content. Therefore equal descriptions have equal IRIs in each
//! copy, and no table of labels is needed.
//!
//! Other programs create such IRIs too. If such an IRI is a subject, and an entity leads to it, it
//! is a blank node of this entity: the next version may have another IRI.

use std::collections::{BTreeMap, BTreeSet};

use oxrdf::NamedNode;

use crate::canonical::label::hash_part;
use crate::canonical::{Canonical, MAX_WORK, Work, canonical_statements, content_hashes};

use crate::notation::statement::{Statement, StatementError, is_blank, statements};

pub(crate) const PATH: &str = "/.well-known/genid/";
/// Prefix of the labels that stand for IRIs of other programs.
const LABEL: &[u8] = b"_:genid";
/// Hexadecimal digits of the last segment in an IRI of [`skolemize`].
const NAME_DIGITS: usize = 32;

/// Errors of the conversion between blank nodes and IRIs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SkolemError {
    /// The base of the IRIs is not an IRI.
    #[error("`{base}` is not the beginning of an IRI\n  help: use one like `https://example.org`")]
    Base {
        /// The base that was given.
        base: String,
    },
    /// A line is not a statement as this crate writes it.
    #[error(transparent)]
    Statement(#[from] StatementError),
}

/// Whether an IRI stands for a blank node: it has the scheme `http` or `https`, and the path
/// `/.well-known/genid/` with a further segment [rdf11-concepts §3.5].
///
/// # Examples
/// ```
/// use abreast_rdf::is_skolem_iri;
///
/// assert!(is_skolem_iri("https://museum.example/.well-known/genid/b17"));
/// assert!(!is_skolem_iri("https://museum.example/objects/17"));
/// ```
pub fn is_skolem_iri(iri: &str) -> bool {
    split_skolem(iri).is_some()
}

/// Whether an IRI for a blank node has the form that this program creates.
pub fn is_own_skolem_iri(iri: &str) -> bool {
    split_skolem(iri).is_some_and(|(_, name)| {
        let (hash, number) = name.split_at_checked(NAME_DIGITS).unwrap_or_default();
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        !hash.is_empty()
            && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            && (number.is_empty() || number.strip_prefix('-').is_some_and(is_number))
    })
}

/// Splits an IRI for a blank node into the prefix of all such IRIs of a server, and the rest, which
/// identifies the blank node.
///
/// # Examples
/// ```
/// use abreast_rdf::split_skolem;
///
/// let (begin, name) = split_skolem("https://museum.example/.well-known/genid/b17").unwrap();
/// assert_eq!((begin, name), ("https://museum.example/.well-known/genid/", "b17"));
/// ```
pub fn split_skolem(iri: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = iri.split_once("://")?;
    let is_http = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let authority = rest.find(['/', '?', '#']).filter(|end| is_http && *end > 0)?;
    let name = rest[authority..].strip_prefix(PATH).filter(|name| !name.is_empty())?;
    Some(iri.split_at(iri.len() - name.len()))
}

/// The label of the blank node for a term `<IRI>`, made of the IRI.
pub fn skolem_label(term: &[u8]) -> Vec<u8> {
    [LABEL, &blake3::hash(term).to_hex().as_bytes()[..NAME_DIGITS]].concat()
}

/// Whether a term stands for a blank node.
fn is_skolem_term(term: &[u8]) -> bool {
    let iri = term.strip_prefix(b"<").and_then(|term| term.strip_suffix(b">"));
    iri.and_then(|iri| std::str::from_utf8(iri).ok()).is_some_and(is_skolem_iri)
}

/// Replaces IRIs for blank nodes that are subjects in the document by blank nodes, except the
/// entity that it describes. Other IRIs do not change.
///
/// # Errors
/// A line is not a statement as this crate writes it.
pub fn blank_skolems(lines: &[u8], entity: &str) -> Result<Vec<u8>, StatementError> {
    let all: Result<Vec<Statement<'_>>, StatementError> = statements(lines).collect();
    let (all, entity) = (all?, format!("<{entity}>"));
    let subjects = all.iter().map(|statement| statement.subject);
    let described: BTreeSet<&[u8]> =
        subjects.filter(|term| is_skolem_term(term) && *term != entity.as_bytes()).collect();
    let labels: BTreeMap<&[u8], Vec<u8>> =
        described.into_iter().map(|term| (term, skolem_label(term))).collect();
    let mut renamed = Vec::with_capacity(lines.len());
    for statement in all {
        let label = |term| labels.get(term).map_or(term, Vec::as_slice);
        let (subject, object) = (label(statement.subject), label(statement.object));
        Statement { subject, object, ..statement }.write(&mut renamed);
    }
    Ok(renamed)
}

/// The first IRI for a blank node that is an object in these lines, but not a subject.
///
/// # Examples
/// ```
/// use abreast_rdf::loose_skolem;
///
/// let lines = b"<http://h/7> <http://h/maker> <http://h/.well-known/genid/b1> .\n";
/// assert_eq!(loose_skolem(lines), Some("http://h/.well-known/genid/b1"));
/// ```
pub fn loose_skolem(lines: &[u8]) -> Option<&str> {
    let all = || statements(lines).filter_map(Result::ok);
    let is_described = |term: &[u8]| all().any(|statement| statement.subject == term);
    let mut objects = all().map(|statement| statement.object);
    let object = objects.find(|object| is_skolem_term(object) && !is_described(object))?;
    std::str::from_utf8(&object[1..object.len() - 1]).ok()
}

/// The only IRI for a blank node that is a subject in these lines and not an object of another
/// subject.
pub fn skolem_root(lines: &[u8]) -> Option<&str> {
    let all = || statements(lines).filter_map(Result::ok);
    let led_to = all().filter(|statement| statement.subject != statement.object);
    let led_to: BTreeSet<&[u8]> = led_to.map(|statement| statement.object).collect();
    let subjects = all().map(|statement| statement.subject);
    let mut roots = subjects.filter(|term| is_skolem_term(term) && !led_to.contains(term));
    let root = roots.next().filter(|root| roots.all(|other| other == *root))?;
    std::str::from_utf8(&root[1..root.len() - 1]).ok()
}

/// The prefix of all IRIs for blank nodes with a base: `BASE/.well-known/genid/`.
///
/// # Examples
/// ```
/// use abreast_rdf::skolem_prefix;
///
/// let prefix = skolem_prefix("https://museum.example")?;
/// assert_eq!(prefix, "https://museum.example/.well-known/genid/");
/// # Ok::<(), abreast_rdf::SkolemError>(())
/// ```
///
/// # Errors
/// `base` is not the beginning of an IRI.
pub fn skolem_prefix(base: &str) -> Result<String, SkolemError> {
    prefix(base).map(|prefix| prefix[1..].to_owned())
}

/// Replaces each blank node of canonical lines by `BASE/.well-known/genid/HASH`. The result is
/// canonical too.
///
/// With a salt, usually the entity, the hash is made of the salt and the label in this description:
/// blank nodes of different entities have different IRIs, and an IRI changes only with the label.
/// With `None`, the hash is made of all statements of the blank node: a blank node that several
/// entities share has the same IRI in each, and blank nodes with equal content in different
/// descriptions do too.
///
/// # Examples
/// ```
/// use abreast_rdf::{skolemize, unskolemize};
///
/// let lines = b"<http://h/7> <http://h/maker> _:b1 .\n_:b1 <http://h/name> \"Mercator\" .\n";
/// let named = skolemize(lines, "https://museum.example", Some("http://h/7"))?;
/// let text = String::from_utf8_lossy(&named);
/// assert!(text.contains("<https://museum.example/.well-known/genid/"));
/// assert!(!text.contains("_:"));
/// let back = unskolemize(&named, "https://museum.example")?;
/// assert!(String::from_utf8_lossy(&back.lines).contains("_:"));
/// # Ok::<(), abreast_rdf::SkolemError>(())
/// ```
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

/// As [`skolemize`] with a salt; `prefix` is the start of the terms, including `<`.
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
    canonical_statements(renamed, &mut Work::new(MAX_WORK)).lines
}

/// Replaces the IRIs that [`skolemize`] makes with this base by blank nodes. Other IRIs do not
/// change, even if they have the same path on another host.
///
/// # Errors
/// As [`skolemize`].
pub fn unskolemize(lines: &[u8], base: &str) -> Result<Canonical, SkolemError> {
    Ok(blank_by_prefix(lines, &prefix(base)?)?)
}

/// As [`unskolemize`]; `prefix` is the start of the terms, including `<`.
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
    Ok(canonical_statements(renamed.collect(), &mut Work::new(MAX_WORK)))
}

/// The prefix of terms, `<BASE/.well-known/genid/`.
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
    [prefix.as_bytes(), &hash.as_bytes()[..NAME_DIGITS], b">"].concat()
}

/// Prefix of blank node labels in all rows.
pub(crate) const ANY_LABEL: &str = "<_:";

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
    fn skolem_iris_are_well_known_iris_of_http() {
        let name = "0123456789abcdef0123456789abcdef";
        for (iri, is_skolem, is_own) in [
            ("https://h/.well-known/genid/x", true, false),
            ("HTTP://h:81/.well-known/genid/rdflib/x", true, false),
            (&format!("http://h/.well-known/genid/{name}"), true, true),
            (&format!("http://h/.well-known/genid/{name}-12"), true, true),
            (&format!("http://h/.well-known/genid/{name}-"), true, false),
            (&format!("http://h/.well-known/genid/{name}-a"), true, false),
            ("http://h/.well-known/genid/", false, false),
            ("http://h/a/.well-known/genid/x", false, false),
            ("http://h?/.well-known/genid/x", false, false),
            ("http:///.well-known/genid/x", false, false),
            ("urn://h/.well-known/genid/x", false, false),
            ("http://h/.well-known/genidx", false, false),
        ] {
            assert_eq!((is_skolem_iri(iri), is_own_skolem_iri(iri)), (is_skolem, is_own), "{iri}");
        }
    }

    #[test]
    fn described_skolem_iris_become_blank_nodes() {
        let iri = |name: &str| format!("<https://d/.well-known/genid/{name}>");
        let (x, y, z) = (iri("x"), iri("y"), iri("z"));
        let lines = format!(
            "<http://e/a> <http://e/p> {x} .\n<http://e/a> <http://e/p> {z} .\n{x} <http://e/p> {y} .\n\
             {y} <http://e/p> \"y\" .\n"
        );
        let text =
            String::from_utf8(blank_skolems(lines.as_bytes(), "http://e/a").unwrap()).unwrap();
        let labels = [&x, &y].map(|iri| String::from_utf8(skolem_label(iri.as_bytes())).unwrap());
        assert_eq!(text, lines.replace(&x, &labels[0]).replace(&y, &labels[1]));
        assert_eq!(loose_skolem(text.as_bytes()), Some("https://d/.well-known/genid/z"));
        // The entity itself is one.
        let text = blank_skolems(lines.as_bytes(), "https://d/.well-known/genid/x").unwrap();
        assert_eq!(text, lines.replace(&y, &labels[1]).as_bytes());
    }

    #[test]
    fn a_base_that_is_no_iri_is_refused() {
        for base in ["", "example.org", "https://e> <x", "mailto:a"] {
            let error = skolemize(b"", base, None).unwrap_err();
            assert_eq!(error, SkolemError::Base { base: base.to_owned() });
        }
    }
}
