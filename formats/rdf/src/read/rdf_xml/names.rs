//! Elements and attributes with a meaning in RDF/XML [rdf-xml §5.1].

use super::fault::Fault;
use abreast_webtypes::excerpt;
use abreast_webtypes::xml::{Attribute, Ns};

pub(super) const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
/// The namespace of RDF, as it is numbered by the XML reader.
pub(super) const RDF_NS: Ns = Ns::known(0);

/// An attribute by its role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    About,
    Id,
    NodeId,
    Resource,
    ParseType,
    Datatype,
    /// A property with a literal, or with an IRI for `rdf:type`.
    Property,
    /// `xml:base` and `xml:lang`, which apply to the element and its content.
    Scope,
    /// An attribute of XML, without meaning for RDF.
    Ignored,
}

/// The role of an attribute, independent of its element.
pub(super) fn role(attribute: &Attribute<'_>) -> Result<Role, Fault> {
    let local = attribute.local();
    let reserved = match local {
        "about" => Some(Role::About),
        "ID" => Some(Role::Id),
        "nodeID" => Some(Role::NodeId),
        "resource" => Some(Role::Resource),
        "parseType" => Some(Role::ParseType),
        "datatype" => Some(Role::Datatype),
        _ => None,
    };
    if attribute.ns() == RDF_NS {
        return match (reserved, local) {
            (Some(role), _) => Ok(role),
            (None, "aboutEach" | "aboutEachPrefix" | "bagID") => Err(Fault::new(
                "rdf.syntax",
                format!("`rdf:{local}` is no longer part of RDF/XML [rdf-xml §5.1]"),
            )
            .with_help("write the statements it stands for")),
            (None, "RDF" | "Description" | "li") => {
                let message = format!("`rdf:{local}` cannot be an attribute");
                Err(Fault::new("rdf.syntax", message))
            }
            (None, _) => Ok(Role::Property),
        };
    }
    if attribute.ns() == Ns::XML {
        return Ok(if matches!(local, "base" | "lang") { Role::Scope } else { Role::Ignored });
    }
    if attribute.ns() != Ns::NONE {
        return Ok(Role::Property);
    }
    // Attributes without prefix from RDF/XML of 1999 are treated as attributes of RDF
    // [rdf-xml §6.1.4].
    match (reserved, local) {
        (Some(role @ (Role::About | Role::Id | Role::Resource | Role::ParseType)), _) => Ok(role),
        (None, "type") => Ok(Role::Property),
        _ if local.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("xml")) => {
            Ok(Role::Ignored)
        }
        _ => Err(Fault::new(
            "rdf.syntax",
            format!("attribute `{}` has no namespace", excerpt(local)),
        )
        .with_help("give it a prefix: in RDF/XML every property has a namespace")),
    }
}

/// Whether an element of the RDF namespace with that name may be a node [rdf-xml §7.2.5].
pub(super) fn may_be_node(local: &str) -> bool {
    local != "li" && !is_syntax(local)
}

/// Whether an element of the RDF namespace with that name may be a property [rdf-xml §7.2.6].
pub(crate) fn may_be_property(local: &str) -> bool {
    local != "Description" && !is_syntax(local)
}

fn is_syntax(local: &str) -> bool {
    matches!(
        local,
        "RDF"
            | "ID"
            | "about"
            | "parseType"
            | "resource"
            | "nodeID"
            | "datatype"
            | "aboutEach"
            | "aboutEachPrefix"
            | "bagID"
    )
}
