//! Property elements: a statement about the node around them [rdf-xml §7.2.14].

use super::fault::Fault;
use super::frame::{Frame, GO_ON, Parser, Statement, Step, emit, iri_of_name, state};
use super::literal::XmlLiteral;
use super::names::{self, RDF, RDF_NS, Role};
use super::node::property_attribute;
use super::scope::Scope;
use crate::read::options::Visit;
use abreast_webtypes::excerpt;
use abreast_webtypes::xml::{Attribute, Element};
use oxrdf::{NamedNode, NamedOrBlankNode};
use std::ops::ControlFlow;

/// The attributes of a property element, by role.
#[derive(Default)]
struct Attributes {
    reified: Option<NamedNode>,
    parse_type: Option<String>,
    datatype: Option<NamedNode>,
    object: Option<NamedOrBlankNode>,
    properties: bool,
}

impl Parser {
    pub(super) fn property(
        &mut self,
        element: &Element<'_>,
        scope: Scope,
        visit: &mut Visit<'_>,
    ) -> Step {
        let local = element.local();
        let is_rdf = element.ns() == RDF_NS;
        if is_rdf && !names::may_be_property(local) {
            let message = format!("`rdf:{}` cannot be a property", excerpt(local));
            return Err(Fault::new("rdf.syntax", message));
        }
        let Attributes { reified, parse_type, datatype, object, properties } =
            self.property_attributes(element, &scope)?;
        let Some((Frame::Node { subject, members }, _)) = self.open.last_mut() else {
            return GO_ON;
        };
        let predicate = if is_rdf && local == "li" {
            *members += 1;
            NamedNode::new_unchecked(format!("{RDF}_{members}"))
        } else {
            iri_of_name(element.namespace(), local)?
        };
        let statement = Statement { subject: subject.clone(), predicate, reified };
        let frame = match parse_type.as_deref() {
            Some("Resource") => {
                let node: NamedOrBlankNode = self.blank().into();
                if state(visit, &statement, &node.clone().into())?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                Frame::Node { subject: node, members: 0 }
            }
            Some("Collection") => Frame::Collection { statement, last: None },
            // Any other type is read as Literal [rdf-xml §7.2.20].
            Some(_) => Frame::Literal { statement, xml: XmlLiteral::default() },
            None if object.is_some() || properties => {
                let object = object.unwrap_or_else(|| self.blank().into());
                if state(visit, &statement, &object.clone().into())?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                for attribute in element.attributes() {
                    if names::role(&attribute)? == Role::Property {
                        let (predicate, value) = property_attribute(&attribute, &scope)?;
                        emit!(visit, &object, predicate.as_ref(), value.as_ref());
                    }
                }
                Frame::Empty
            }
            None => Frame::Property { statement, datatype, text: String::new(), filled: false },
        };
        self.open.push((frame, scope));
        GO_ON
    }

    /// Reads the attributes and refuses mutually exclusive ones [rdf-xml §7.2.15, §7.2.21].
    fn property_attributes(
        &mut self,
        element: &Element<'_>,
        scope: &Scope,
    ) -> Result<Attributes, Fault> {
        let mut found = Attributes::default();
        let fault = |message: &str| Err(Fault::new("rdf.syntax", message));
        for attribute in element.attributes() {
            let value = |attribute: &Attribute<'_>| attribute.value().into_owned();
            let object: NamedOrBlankNode = match names::role(&attribute)? {
                Role::Id => {
                    found.reified = Some(self.id(scope, &attribute.value())?);
                    continue;
                }
                Role::ParseType => {
                    found.parse_type = Some(value(&attribute));
                    continue;
                }
                Role::Datatype => {
                    found.datatype = Some(scope.iri(&attribute.value())?);
                    continue;
                }
                Role::Property => {
                    found.properties = true;
                    continue;
                }
                Role::Scope | Role::Ignored => continue,
                Role::About => {
                    return Err(Fault::new("rdf.syntax", "`rdf:about` on a property")
                        .with_help("`rdf:resource` names the object of a property"));
                }
                Role::Resource => scope.iri(&attribute.value())?.into(),
                Role::NodeId => Self::named_blank(&attribute.value())?.into(),
            };
            if found.object.replace(object).is_some() {
                return fault("a property with both `rdf:resource` and `rdf:nodeID`");
            }
        }
        let valued = found.object.is_some() || found.properties;
        if found.parse_type.is_some() && (valued || found.datatype.is_some()) {
            return fault("`rdf:parseType` beside another attribute than `rdf:ID`");
        }
        if found.datatype.is_some() && valued {
            return fault("`rdf:datatype` on a property whose value is in its attributes");
        }
        Ok(found)
    }
}
