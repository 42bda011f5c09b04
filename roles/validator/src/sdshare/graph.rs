//! RDF of fragments and snapshots: parsing, descriptions by resource, and comparison.

use crate::report::{Rule, rules as r};
use abreast_rdf::{DescriptionLimits, Entities, Naming, ReadLimits, ReadOptions, Syntax, read};
use abreast_sdshare::{Entry, Link, Relation};
use oxrdf::{BlankNodeRef, NamedOrBlankNodeRef, TermRef, Triple, TripleRef};
use sha2::{Digest as _, Sha256};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;

/// Digests of canonical descriptions, by resource. `None` if a description cannot be compared
/// because it is too large or too symmetric.
pub(super) type Descriptions = BTreeMap<String, Option<[u8; 32]>>;

/// Parses a document in RDF; `url` is its base IRI.
///
/// # Errors
/// The fault of the document with its place.
pub(super) fn triples(
    syntax: Syntax,
    bytes: &[u8],
    url: &str,
    document: u64,
) -> Result<Vec<Triple>, (&'static Rule, String)> {
    let options = ReadOptions::default()
        .with_base(url)
        .with_document(document)
        .with_limits(ReadLimits::in_memory());
    let mut triples = Vec::new();
    let done = read(syntax, bytes, &options, &mut |quad| {
        triples.push(Triple::from(TripleRef::from(quad)));
        ControlFlow::Continue(())
    });
    done.map(|()| triples).map_err(|error| {
        // A document over the limits of the validator may be correct.
        let is_limit = error.syntax().is_some_and(|fault| fault.code() == "rdf.size");
        let text = error.to_string();
        let rule = if is_limit { &r::LIMIT } else { &r::SDS_SYNTAX };
        (rule, text.lines().next().unwrap_or_default().to_owned())
    })
}

pub(super) fn descriptions(entities: &Entities) -> Descriptions {
    // Descriptions over a limit are errors, without a canonical form.
    let described = entities.descriptions(DescriptionLimits::default());
    described
        .map(|described| match described {
            Ok(described) => {
                let is_certain = described.canonical.naming != Naming::Arbitrary;
                (
                    described.entity,
                    is_certain.then(|| Sha256::digest(&described.canonical.lines).into()),
                )
            }
            Err(error) => (error.root.trim_matches(['<', '>']).to_owned(), None),
        })
        .collect()
}

/// IRI of a resource with different descriptions.
pub(super) fn difference(one: &Descriptions, other: &Descriptions) -> Option<String> {
    let differs =
        |(iri, lines): (&String, &Option<[u8; 32]>), others: &Descriptions| match others.get(iri) {
            Some(other) => lines.is_some() && other.is_some() && lines != other,
            None => true,
        };
    let differing = |one: &Descriptions, other: &Descriptions| {
        one.iter().find(|pair| differs(*pair, other)).map(|(iri, _)| iri.clone())
    };
    differing(one, other).or_else(|| differing(other, one))
}

/// Statements outside the descriptions of the resources: their number, and the subject of the first
/// one [sdshare §Fragments Feed].
pub(super) fn strangers(triples: &[Triple], resources: &[String]) -> Option<(usize, String)> {
    let mut of_blank: HashMap<BlankNodeRef<'_>, Vec<&Triple>> = HashMap::new();
    let mut pending = Vec::new();
    let mut strangers = Vec::new();
    for triple in triples {
        match triple.subject.as_ref() {
            NamedOrBlankNodeRef::BlankNode(node) => of_blank.entry(node).or_default().push(triple),
            NamedOrBlankNodeRef::NamedNode(iri) => {
                if resources.iter().any(|resource| resource == iri.as_str()) {
                    pending.push(triple);
                } else {
                    strangers.push(triple);
                }
            }
        }
    }
    while let Some(triple) = pending.pop() {
        if let TermRef::BlankNode(node) = triple.object.as_ref() {
            pending.extend(of_blank.remove(&node).unwrap_or_default());
        }
    }
    strangers.extend(of_blank.into_values().flatten());
    let unique: HashSet<&Triple> = strangers.iter().copied().collect();
    let first = strangers.first()?;
    let subject = match first.subject.as_ref() {
        NamedOrBlankNodeRef::NamedNode(_) => first.subject.to_string(),
        NamedOrBlankNodeRef::BlankNode(_) => "a blank node".to_owned(),
    };
    Some((unique.len(), subject))
}

/// Links of an entry with their RDF syntax; `None` for other media types.
///
/// `text/plain` is N-Triples only if the entry has another RDF type: feeds of files also use
/// `text/plain`.
pub(super) fn forms<'e>(entry: &'e Entry, relation: &Relation) -> Vec<(&'e Link, Option<Syntax>)> {
    let links: Vec<&Link> = entry.targets(relation).collect();
    let registered = |link: &&Link| Syntax::of_media_type(&link.essence());
    let has_rdf = links.iter().any(|link| registered(link).is_some());
    let syntax = |link: &Link| {
        if has_rdf { Syntax::of_sdshare_media_type(&link.essence()) } else { None }
    };
    links.into_iter().map(|link| (link, syntax(link))).collect()
}
