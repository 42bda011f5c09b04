//! Namespaces of an element and its attributes, and duplicate attributes [xml-names §6].

use super::entities::Entities;
use super::namespaces::{Namespaces, Ns};
use super::references::attribute_value;
use super::tag::{Fault, Kind, RawAttribute, RawName};
use crate::excerpt;

pub(super) const TOO_EXPANDED: &str = "the entities make the document too long";

/// Applies the declarations of an element, then finds the namespaces of its name and attributes.
pub(super) fn resolve(
    token: &str,
    name: RawName,
    attributes: &mut [RawAttribute],
    namespaces: &mut Namespaces,
    entities: &mut Entities,
    (depth, document_length): (usize, u64),
) -> Result<Ns, Fault> {
    for attribute in &*attributes {
        if attribute.special {
            let raw = attribute.value(token);
            let fault = |code, message: String| Err((code, attribute.value.0 as usize, message));
            match attribute_value(raw, entities) {
                Err(message) => return fault("xml.syntax", message),
                Ok(value) if !entities.spend(raw.len(), value.len(), document_length) => {
                    return fault("xml.doctype", TOO_EXPANDED.to_owned());
                }
                Ok(_) => {}
            }
        }
        if attribute.kind == Kind::Declaration {
            let uri = attribute_value(attribute.value(token), entities).unwrap_or_default();
            let at = attribute.name.start as usize;
            namespaces
                .declare(attribute.declares(token), &uri, depth)
                .map_err(|(code, message)| (code, at, message))?;
        }
    }
    let unbound = |name: RawName| {
        let message = format!("the prefix `{}` is not declared", excerpt(name.prefix(token)));
        ("xml.syntax", name.start as usize, message)
    };
    for attribute in attributes.iter_mut() {
        // An attribute without a prefix has no namespace, even with a default namespace [xml-names
        // §6.2].
        if attribute.name.colon != 0 && attribute.kind == Kind::Attribute {
            attribute.ns = namespaces
                .resolve(attribute.name.prefix(token))
                .ok_or_else(|| unbound(attribute.name))?;
        }
    }
    refuse_duplicates(token, attributes, namespaces)?;
    namespaces.resolve(name.prefix(token)).ok_or_else(|| unbound(name))
}

/// Refuses an attribute that occurs twice, as written or by namespace [xml-names §6.3]. Many
/// attributes are sorted first.
fn refuse_duplicates(
    token: &str,
    attributes: &[RawAttribute],
    namespaces: &Namespaces,
) -> Result<(), Fault> {
    const FEW: usize = 8;
    let key = |raw: &RawAttribute| {
        let prefix = raw.name.prefix(token);
        let uri = match prefix {
            "" => "",
            "xmlns" => "xmlns",
            prefix => namespaces.uri(prefix),
        };
        (raw.name.local(token), uri)
    };
    let duplicate = if attributes.len() <= FEW {
        let pair = |(index, one): (usize, &RawAttribute)| {
            let local = one.name.local(token).as_bytes();
            let same = |other: &RawAttribute| {
                let other_local = other.name.local(token).as_bytes();
                // The first byte nearly always distinguishes them.
                local.len() == other_local.len()
                    && local[0] == other_local[0]
                    && key(other) == key(one)
            };
            attributes[..index].iter().any(same).then_some(*one)
        };
        attributes.iter().enumerate().find_map(pair)
    } else {
        let mut sorted: Vec<_> = attributes.iter().collect();
        sorted.sort_by_key(|raw| key(raw));
        // The sort is stable: of two equal ones the later is reported.
        sorted
            .windows(2)
            .filter(|pair| key(pair[0]) == key(pair[1]))
            .map(|pair| *pair[1])
            .min_by_key(|raw| raw.name.start)
    };
    match duplicate {
        Some(raw) => {
            let message =
                format!("attribute `{}` twice on one element", excerpt(raw.name.whole(token)));
            Err(("xml.attributes", raw.name.start as usize, message))
        }
        None => Ok(()),
    }
}
