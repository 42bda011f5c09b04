//! The stack of open elements, and their statements.

use super::fault::Fault;
use super::literal::XmlLiteral;
use super::names::{self, RDF, RDF_NS, Role};
use super::scope::Scope;
use crate::read::error::ReadError;
use crate::read::options::{ReadOptions, Visit};
use abreast_webtypes::excerpt;
use abreast_webtypes::xml::{Attribute, Element};
use oxrdf::vocab::rdf;
use oxrdf::{
    BlankNode, GraphNameRef, NamedNode, NamedNodeRef, NamedOrBlankNode, QuadRef, Term, TermRef,
};
use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::ops::ControlFlow;

/// Most `rdf:ID`s whose uniqueness is checked; later ones are not, to limit the memory.
const MAX_CHECKED_IDS: usize = 1_000_000;

pub(super) type Step = Result<ControlFlow<()>, Fault>;
pub(super) const GO_ON: Step = Ok(ControlFlow::Continue(()));

/// Returns early if the visitor breaks.
macro_rules! emit {
    ($visit:expr, $subject:expr, $predicate:expr, $object:expr) => {
        if $crate::read::rdf_xml::frame::visited($visit, $subject, $predicate, $object).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    };
}
pub(super) use emit;

/// A statement whose object was not read yet.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) subject: NamedOrBlankNode,
    pub(super) predicate: NamedNode,
    /// IRI of the statement itself, from `rdf:ID` [rdf-xml §7.3].
    pub(super) reified: Option<NamedNode>,
}

/// An open element, by the content that it may have.
pub(super) enum Frame {
    /// `rdf:RDF`, which contains nodes.
    Root,
    /// A node, which contains properties, with the number of its `rdf:li`.
    Node { subject: NamedOrBlankNode, members: u64 },
    /// A property, which contains a text or one node.
    Property { statement: Statement, datatype: Option<NamedNode>, text: String, filled: bool },
    /// A property whose object is in its attributes. It must be empty.
    Empty,
    /// `rdf:parseType="Collection"`, which contains nodes; with the last cell of the list.
    Collection { statement: Statement, last: Option<BlankNode> },
    /// `rdf:parseType="Literal"`, which contains any XML.
    Literal { statement: Statement, xml: XmlLiteral },
}

pub(super) struct Parser {
    pub(super) open: Vec<(Frame, Scope)>,
    outside: Scope,
    ids: HashSet<u128>,
    hashers: [RandomState; 2],
    blanks: u64,
    token_length: usize,
}

impl Parser {
    pub(super) fn new(options: &ReadOptions) -> Result<Self, ReadError> {
        let base = options.base_iri()?;
        Ok(Self {
            open: Vec::new(),
            outside: Scope::new(base, options.left_out.is_some()),
            ids: HashSet::new(),
            hashers: [RandomState::new(), RandomState::new()],
            blanks: 0,
            token_length: options.limits.token_length,
        })
    }

    /// Base and language around the element that starts or ends now.
    pub(super) fn scope(&self) -> &Scope {
        self.open.last().map_or(&self.outside, |(_, scope)| scope)
    }

    pub(super) fn start(&mut self, element: &Element<'_>, visit: &mut Visit<'_>) -> Step {
        if let Some((Frame::Literal { xml, .. }, _)) = self.open.last_mut() {
            xml.start(element);
            return check_length(xml.len(), self.token_length);
        }
        let value = |name: &str| {
            let of_xml = |attribute: &Attribute<'_>| {
                attribute.prefix() == "xml" && attribute.local() == name
            };
            element.attributes().find(of_xml).map(|attribute| attribute.value())
        };
        let scope = self.scope().inside(value("base").as_deref(), value("lang").as_deref())?;
        match self.open.last_mut() {
            None if element.ns() == RDF_NS && element.local() == "RDF" => self.root(element, scope),
            None | Some((Frame::Root | Frame::Collection { .. }, _)) => {
                self.node(element, scope, visit)
            }
            Some((Frame::Property { datatype, text, filled, .. }, _)) => {
                let message = if datatype.is_some() {
                    "an element inside a property with `rdf:datatype`, which holds text only"
                } else if !text.trim_matches(is_space).is_empty() {
                    "an element beside text inside a property"
                } else if std::mem::replace(filled, true) {
                    "a second node inside a property, which holds one"
                } else {
                    text.clear();
                    return self.node(element, scope, visit);
                };
                Err(Fault::new("rdf.syntax", message)
                    .with_help("markup as a value needs `rdf:parseType=\"Literal\"`"))
            }
            Some((Frame::Node { .. }, _)) => self.property(element, scope, visit),
            Some((Frame::Empty, _)) => Err(Fault::new(
                "rdf.syntax",
                "an element inside a property whose value is in its attributes",
            )),
            Some((Frame::Literal { .. }, _)) => GO_ON,
        }
    }

    fn root(&mut self, element: &Element<'_>, scope: Scope) -> Step {
        for attribute in element.attributes() {
            if !matches!(names::role(&attribute)?, Role::Scope | Role::Ignored) {
                let message = format!("`rdf:RDF` has attribute `{}`", excerpt(attribute.local()));
                return Err(Fault::new("rdf.syntax", message));
            }
        }
        self.open.push((Frame::Root, scope));
        GO_ON
    }

    pub(super) fn text(&mut self, piece: &str) -> Step {
        let limit = self.token_length;
        match self.open.last_mut() {
            Some((Frame::Literal { xml, .. }, _)) => {
                xml.text(piece);
                check_length(xml.len(), limit)
            }
            Some((Frame::Property { text, filled: false, .. }, _)) => {
                text.push_str(piece);
                check_length(text.len(), limit)
            }
            _ if piece.trim_matches(is_space).is_empty() => GO_ON,
            _ => {
                let message =
                    format!("expected an element, found the text `{}`", excerpt(piece.trim()));
                Err(Fault::new("rdf.syntax", message))
            }
        }
    }

    pub(super) fn markup(&mut self, markup: &str) -> Step {
        if let Some((Frame::Literal { xml, .. }, _)) = self.open.last_mut() {
            xml.markup(markup);
            return check_length(xml.len(), self.token_length);
        }
        GO_ON
    }

    pub(super) fn end(&mut self, visit: &mut Visit<'_>) -> Step {
        if let Some((Frame::Literal { xml, .. }, _)) = self.open.last_mut()
            && xml.end()
        {
            return GO_ON;
        }
        let Some((frame, scope)) = self.open.pop() else { return GO_ON };
        match frame {
            Frame::Root
            | Frame::Node { .. }
            | Frame::Empty
            | Frame::Property { filled: true, .. } => GO_ON,
            Frame::Property { statement, datatype, text, .. } => {
                let literal = match datatype {
                    Some(datatype) => oxrdf::Literal::new_typed_literal(text, datatype),
                    None => scope.literal(text),
                };
                state(visit, &statement, &literal.into())
            }
            Frame::Collection { statement, last } => match last {
                None => state(visit, &statement, &rdf::NIL.into_owned().into()),
                Some(last) => {
                    emit!(visit, &last.into(), rdf::REST, rdf::NIL.into());
                    GO_ON
                }
            },
            Frame::Literal { statement, xml } => {
                let literal = oxrdf::Literal::new_typed_literal(xml.finish(), rdf::XML_LITERAL);
                state(visit, &statement, &literal.into())
            }
        }
    }

    /// A new blank node, for an element without `rdf:nodeID`.
    pub(super) fn blank(&mut self) -> BlankNode {
        self.blanks += 1;
        BlankNode::new_unchecked(format!("g{}", self.blanks))
    }

    /// The blank node of an `rdf:nodeID`.
    pub(super) fn named_blank(id: &str) -> Result<BlankNode, Fault> {
        check_name("nodeID", id)?;
        // A label must not end with a point; the suffix makes the labels of different `rdf:nodeID`s
        // different.
        let suffix = if id.ends_with(['.', '_']) { "_" } else { "" };
        Ok(BlankNode::new_unchecked(format!("n{id}{suffix}")))
    }

    /// The IRI of an `rdf:ID`, which must be unique [rdf-xml §7.2.22].
    pub(super) fn id(&mut self, scope: &Scope, id: &str) -> Result<NamedNode, Fault> {
        check_name("ID", id)?;
        let iri = scope.iri(&format!("#{id}"))?;
        if self.ids.len() < MAX_CHECKED_IDS {
            let [one, other] = &self.hashers;
            let hash = u128::from(one.hash_one(iri.as_str())) << 64
                | u128::from(other.hash_one(iri.as_str()));
            if !self.ids.insert(hash) {
                let message = format!("`rdf:ID=\"{}\"` a second time", excerpt(id));
                return Err(Fault::new("rdf.syntax", message)
                    .with_help("`rdf:about` may be repeated, `rdf:ID` may not"));
            }
        }
        Ok(iri)
    }
}

/// Emits a statement, and four statements about it if it has an IRI.
pub(super) fn state(visit: &mut Visit<'_>, statement: &Statement, object: &Term) -> Step {
    let Statement { subject, predicate, reified } = statement;
    emit!(visit, subject, predicate.as_ref(), object.as_ref());
    if let Some(name) = reified {
        let name: NamedOrBlankNode = name.clone().into();
        let subject: Term = subject.clone().into();
        emit!(visit, &name, rdf::TYPE, rdf::STATEMENT.into());
        emit!(visit, &name, rdf::SUBJECT, subject.as_ref());
        emit!(visit, &name, rdf::PREDICATE, predicate.as_ref().into());
        emit!(visit, &name, rdf::OBJECT, object.as_ref());
    }
    GO_ON
}

/// Visits one statement.
pub(super) fn visited(
    visit: &mut Visit<'_>,
    subject: &NamedOrBlankNode,
    predicate: NamedNodeRef<'_>,
    object: TermRef<'_>,
) -> ControlFlow<()> {
    visit(QuadRef::new(subject.as_ref(), predicate, object, GraphNameRef::DefaultGraph))
}

/// The IRI of an element or attribute: its namespace followed by its name.
pub(super) fn iri_of_name(namespace: &str, local: &str) -> Result<NamedNode, Fault> {
    if namespace.is_empty() {
        let message = format!("`{}` has no namespace", excerpt(local));
        return Err(Fault::new("rdf.syntax", message)
            .with_help("in RDF/XML every node and property element has a namespace"));
    }
    if namespace == RDF {
        return Ok(NamedNode::new_unchecked(format!("{RDF}{local}")));
    }
    let iri = format!("{namespace}{local}");
    NamedNode::new(iri).map_err(|error| {
        let message = format!("the namespace `{}` makes no IRI: {error}", excerpt(namespace));
        Fault::new("rdf.iri", message)
    })
}

fn check_name(attribute: &str, value: &str) -> Result<(), Fault> {
    if abreast_webtypes::xml::is_nc_name(value) {
        return Ok(());
    }
    let message = format!("`rdf:{attribute}=\"{}\"` is not an XML name", excerpt(value));
    Err(Fault::new("rdf.syntax", message)
        .with_help("begin it with a letter or `_`; no colon, space or slash in it"))
}

fn check_length(length: usize, limit: usize) -> Step {
    if length > limit {
        let message = format!("a literal is longer than {limit} bytes");
        return Err(Fault::new("rdf.size", message));
    }
    GO_ON
}

/// Whether a character is white space in XML.
pub(super) fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r')
}
