//! Node elements: a resource, its type and properties [rdf-xml §7.2.11].

use super::fault::Fault;
use super::frame::{Frame, GO_ON, Parser, Step, emit, iri_of_name, state, visited};
use super::names::{self, RDF_NS, Role};
use super::scope::Scope;
use crate::read::options::Visit;
use abreast_webtypes::excerpt;
use abreast_webtypes::xml::{Attribute, Element};
use oxrdf::vocab::rdf;
use oxrdf::{NamedNode, NamedOrBlankNode, Term};
use std::ops::ControlFlow;

impl Parser {
    pub(super) fn node(
        &mut self,
        element: &Element<'_>,
        scope: Scope,
        visit: &mut Visit<'_>,
    ) -> Step {
        let is_rdf = element.ns() == RDF_NS;
        if is_rdf && !names::may_be_node(element.local()) {
            let message = format!("`rdf:{}` cannot be a node", excerpt(element.local()));
            return Err(Fault::new("rdf.syntax", message));
        }
        let subject = self.subject(element, &scope)?;
        if let ControlFlow::Break(()) = self.link(&subject, visit)? {
            return Ok(ControlFlow::Break(()));
        }
        if !(is_rdf && element.local() == "Description") {
            let class = iri_of_name(element.namespace(), element.local())?;
            emit!(visit, &subject, rdf::TYPE, class.as_ref().into());
        }
        for attribute in element.attributes() {
            if names::role(&attribute)? == Role::Property {
                let (predicate, object) = property_attribute(&attribute, &scope)?;
                emit!(visit, &subject, predicate.as_ref(), object.as_ref());
            }
        }
        self.open.push((Frame::Node { subject, members: 0 }, scope));
        GO_ON
    }

    /// The node of an element: an IRI or blank node from its attributes, or a new blank node.
    fn subject(&mut self, element: &Element<'_>, scope: &Scope) -> Result<NamedOrBlankNode, Fault> {
        let mut subject: Option<NamedOrBlankNode> = None;
        for attribute in element.attributes() {
            let named = match names::role(&attribute)? {
                Role::About => scope.iri(&attribute.value())?.into(),
                Role::Id => self.id(scope, &attribute.value())?.into(),
                Role::NodeId => Self::named_blank(&attribute.value())?.into(),
                Role::Property | Role::Scope | Role::Ignored => continue,
                Role::Resource | Role::ParseType | Role::Datatype => {
                    let message =
                        format!("`rdf:{}` on a node; it belongs to a property", attribute.local());
                    return Err(Fault::new("rdf.syntax", message));
                }
            };
            if subject.replace(named).is_some() {
                let message = "a node with two of `rdf:about`, `rdf:ID` and `rdf:nodeID`";
                return Err(Fault::new("rdf.syntax", message).with_help("keep one of them"));
            }
        }
        Ok(subject.unwrap_or_else(|| self.blank().into()))
    }

    /// Emits the statement that has this node as object, or as an item of the collection around it.
    fn link(&mut self, node: &NamedOrBlankNode, visit: &mut Visit<'_>) -> Step {
        let object: Term = node.clone().into();
        let Some((frame, scope)) = self.open.pop() else { return GO_ON };
        let (frame, step) = match frame {
            Frame::Collection { statement, last } => {
                let cell = self.blank();
                let step = match last {
                    None => state(visit, &statement, &cell.clone().into())?,
                    Some(last) => visited(visit, &last.into(), rdf::REST, cell.as_ref().into()),
                };
                let first = cell.clone().into();
                let step = match step {
                    ControlFlow::Continue(()) => {
                        visited(visit, &first, rdf::FIRST, object.as_ref())
                    }
                    stop @ ControlFlow::Break(()) => stop,
                };
                (Frame::Collection { statement, last: Some(cell) }, step)
            }
            Frame::Property { statement, datatype, text, filled } => {
                let step = state(visit, &statement, &object)?;
                (Frame::Property { statement, datatype, text, filled }, step)
            }
            other => (other, ControlFlow::Continue(())),
        };
        self.open.push((frame, scope));
        Ok(step)
    }
}

/// The property and value of an attribute.
pub(super) fn property_attribute(
    attribute: &Attribute<'_>,
    scope: &Scope,
) -> Result<(NamedNode, Term), Fault> {
    let value = attribute.value();
    let is_type = attribute.local() == "type"
        && (attribute.ns() == RDF_NS || attribute.namespace().is_empty());
    if is_type {
        return Ok((rdf::TYPE.into_owned(), scope.iri(&value)?.into()));
    }
    let predicate = iri_of_name(attribute.namespace(), attribute.local())?;
    Ok((predicate, scope.literal(value.into_owned()).into()))
}
