//! Statements that the JSON-LD parser drops silently, because an IRI, a label or a language tag is
//! invalid. Another parser, which drops nothing, finds them before the statements are visited.
//!
//! A key that contexts do not map to an IRI makes no statements, and neither does its content; a
//! blank node cannot be a predicate. Both are dropped, as the algorithms of JSON-LD require.

use crate::read::error::ReadError;
use crate::read::input::length;
use crate::read::json_ld_base::{is_relative, relative, shown};
use crate::read::left_out::{LeftOut, fault_in};
use crate::read::options::Visit;
use abreast_webtypes::excerpt;
use oxjsonld::JsonLdSyntaxError;
use oxrdf::{BlankNode, GraphNameRef, Literal, NamedOrBlankNodeRef, Quad, QuadRef, TermRef};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::ControlFlow;

const HELP: &str = "correct it, or leave out what is not valid (`--leave-out-invalid`)";
/// Spellings of language tags that are distinguished; the tags of a document with more are in lower
/// case from there on.
const SPELLINGS_MAX: usize = 10_000;
/// Most runs that are searched for a tag.
const SEARCHED_MAX: usize = 1_000;

/// The language tags of a document as written, because the other parser returns them in lower case.
#[derive(Default)]
pub(crate) struct WrittenTags {
    spellings: Vec<Box<str>>,
    places: HashMap<Box<str>, usize>,
    /// For the literals in order: a spelling, and the number of consecutive literals with it.
    runs: VecDeque<(usize, u32)>,
}

/// The result of examining a document.
#[derive(Default)]
pub(crate) struct Examined {
    pub(crate) tags: WrittenTags,
    /// Whether the whole document was examined.
    pub(crate) is_whole: bool,
}

/// Finds the statements that the parser drops. If the document has another fault, the other parser
/// finds it.
pub(crate) fn examine(
    quads: impl Iterator<Item = Result<Quad, JsonLdSyntaxError>>,
    allowed: u64,
    left_out: Option<&LeftOut>,
) -> Result<Examined, ReadError> {
    let (mut tags, mut unmapped, mut written) = (WrittenTags::default(), Unmapped::default(), 0);
    for quad in quads {
        let Ok(quad) = quad else { return Ok(Examined { tags, is_whole: false }) };
        let quad = quad.as_ref();
        written += length(quad);
        if written > allowed {
            return Ok(Examined { tags, is_whole: false });
        }
        if unmapped.has(quad) {
            continue;
        }
        let fault = fault_in(quad).or_else(|| fault_of_label(quad));
        match (fault, left_out) {
            (Some((_, fault)), Some(left_out)) => left_out.note(&shown(&fault)),
            (Some((code, fault)), None) => {
                let statement = shown(&quad.to_string());
                let message =
                    format!("the statement `{statement}` cannot be used: {}", shown(&fault));
                return Err(ReadError::new(code, (0, 0), message, Some(HELP)));
            }
            (None, Some(left_out)) if let Some(iri) = relative(quad) => {
                left_out.note(&is_relative(iri));
            }
            (None, _) => tags.note(quad),
        }
    }
    Ok(Examined { tags, is_whole: true })
}

/// The fault of a label that other syntaxes do not allow.
fn fault_of_label(quad: QuadRef<'_>) -> Option<(&'static str, String)> {
    let subject = match quad.subject {
        NamedOrBlankNodeRef::BlankNode(node) => Some(node),
        NamedOrBlankNodeRef::NamedNode(_) => None,
    };
    let object = match quad.object {
        TermRef::BlankNode(node) => Some(node),
        _ => None,
    };
    let graph = match quad.graph_name {
        GraphNameRef::BlankNode(node) => Some(node),
        _ => None,
    };
    let is_none = |label: &&str| BlankNode::new(*label).is_err();
    let labels = [subject, object, graph].into_iter().flatten().map(oxrdf::BlankNodeRef::as_str);
    let label = labels.into_iter().find(is_none)?;
    Some(("rdf.syntax", format!("`_:{}` is not a label of a blank node", excerpt(label))))
}

/// Objects inside keys that do not make statements; they follow directly. Only objects without
/// `@id` are known to be inside: an object with `@id` may be described elsewhere too, and its
/// faults are then not dropped silently.
#[derive(Default)]
struct Unmapped {
    nodes: HashSet<String>,
}

impl Unmapped {
    fn has(&mut self, quad: QuadRef<'_>) -> bool {
        let predicate = quad.predicate.as_str();
        let is_none = !predicate.contains(':') || predicate.starts_with("_:");
        let is_inside = !self.nodes.is_empty()
            && (self.nodes.contains(&quad.subject.to_string())
                || self.nodes.contains(&quad.graph_name.to_string()));
        if !is_inside {
            self.nodes.clear();
        }
        if !is_none && !is_inside {
            return false;
        }
        if let TermRef::BlankNode(node) = quad.object
            && node.unique_id().is_some()
        {
            self.nodes.insert(quad.object.to_string());
        }
        true
    }
}

impl WrittenTags {
    fn note(&mut self, quad: QuadRef<'_>) {
        let TermRef::Literal(literal) = quad.object else { return };
        let Some(tag) = literal.language() else { return };
        let place = match self.places.get(tag) {
            Some(place) => *place,
            None if self.spellings.len() >= SPELLINGS_MAX => return,
            None => {
                self.spellings.push(tag.into());
                self.places.insert(tag.into(), self.spellings.len() - 1);
                self.spellings.len() - 1
            }
        };
        match self.runs.back_mut() {
            Some((last, count)) if *last == place && *count < u32::MAX => *count += 1,
            _ => self.runs.push_back((place, 1)),
        }
    }

    /// Visits a statement with its language tag as it is written.
    pub(crate) fn visit(&mut self, quad: QuadRef<'_>, visit: &mut Visit<'_>) -> ControlFlow<()> {
        let TermRef::Literal(literal) = quad.object else { return visit(quad) };
        let written = literal.language().and_then(|tag| self.written(tag));
        let Some(written) = written else { return visit(quad) };
        let literal = Literal::new_language_tagged_literal_unchecked(literal.value(), written);
        visit(QuadRef { object: literal.as_ref().into(), ..quad })
    }

    /// The next tag whose lower-case form is `tag`.
    fn written(&mut self, tag: &str) -> Option<&str> {
        let is_tag = |(place, _): &(usize, u32)| self.spellings[*place].eq_ignore_ascii_case(tag);
        let at = self.runs.iter().take(SEARCHED_MAX).position(is_tag)?;
        self.runs.drain(..at);
        let (place, count) = self.runs.front_mut()?;
        let place = *place;
        *count -= 1;
        if *count == 0 {
            self.runs.pop_front();
        }
        Some(&*self.spellings[place])
    }
}
